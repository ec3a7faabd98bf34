/**
 * Spans that cost nothing unless someone listens.
 */
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DefaultServices from "effect/DefaultServices"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Tracer from "effect/Tracer"
import type { Flow } from "./flow.ts"

export type Attributes = { readonly [name: string]: unknown }

const nativeTracer = Context.get(DefaultServices.liveServices, Tracer.Tracer)

/** Whether spans of this fiber reach anyone: Effect's own tracer only keeps them. */
export const isListening = (fiber: Fiber.RuntimeFiber<unknown, unknown>): boolean =>
  fiber.currentTracer !== nativeTracer && fiber.getFiberRef(FiberRef.currentTracerEnabled)

/** The spans of a flow, one inside the other. */
export class Spans {
  readonly tracer: Tracer.Tracer
  private readonly clock: Clock.Clock
  private readonly outer: Option.Option<Tracer.AnySpan>
  private readonly annotations: HashMap.HashMap<string, unknown>
  private readonly open: Array<Tracer.Span> = []

  constructor(tracer: Tracer.Tracer, clock: Clock.Clock, fiber: Fiber.RuntimeFiber<unknown, unknown>) {
    this.tracer = tracer
    this.clock = clock
    this.outer = Context.getOption(fiber.currentContext, Tracer.ParentSpan)
    this.annotations = fiber.getFiberRef(FiberRef.currentTracerSpanAnnotations)
  }

  /** The innermost one of ours. */
  get current(): Tracer.Span | undefined {
    return this.open[this.open.length - 1]
  }

  /** What a new span hangs on. */
  get parent(): Option.Option<Tracer.AnySpan> {
    return this.current === undefined ? this.outer : Option.some(this.current)
  }

  /** A span below the innermost one, which it does not replace. */
  make(name: string, kind: Tracer.SpanKind, startedAt: bigint): Tracer.Span {
    const span = this.tracer.span(name, this.parent, Context.empty(), [], startedAt, kind)
    HashMap.forEach(this.annotations, (value, key) => span.attribute(key, value))
    return span
  }

  begin(name: string, kind: Tracer.SpanKind, attributes: Attributes): Tracer.Span {
    const span = this.make(name, kind, this.clock.unsafeCurrentTimeNanos())
    annotate(span, attributes)
    this.open.push(span)
    return span
  }

  end(span: Tracer.Span, exit: Exit.Exit<unknown, unknown>): void {
    this.open.splice(this.open.indexOf(span), 1)
    span.end(this.clock.unsafeCurrentTimeNanos(), exit)
  }

  /** Nothing goes on from here. */
  interrupt(): void {
    for (const span of this.open.splice(0).reverse()) {
      span.end(this.clock.unsafeCurrentTimeNanos(), Exit.interrupt(FiberId.none))
    }
  }
}

/** What is told of a flow. */
export interface Account<A> {
  readonly name: string
  readonly kind?: Tracer.SpanKind
  readonly before: Attributes
  /** What is known of it at its end. */
  readonly after: (value: A) => Attributes
  /** A value that stands for a failure ends the span as failed. */
  readonly failureOf?: (value: A) => unknown
}

/** Runs a flow in a span. */
export const traced = <A, E>(flow: () => Flow<A, E>, account: () => Account<A>): Flow<A, E> => (ground, ok, fail) => {
  const { spans } = ground
  if (spans === undefined) return flow()(ground, ok, fail)
  const { after, before, failureOf, kind = "internal", name } = account()
  const span = spans.begin(name, kind, before)
  flow()(ground, (value) => {
    const failure = failureOf?.(value)
    annotate(span, after(value))
    if (failure !== undefined) span.attribute("error.type", typeOf(failure))
    spans.end(span, failure === undefined ? Exit.succeed(value) : Exit.fail(failure))
    ok(value)
  }, (error) => {
    span.attribute("error.type", typeOf(error))
    spans.end(span, Exit.fail(error))
    fail(error)
  })
}

const typeOf = (error: unknown): string =>
  Predicate.hasProperty(error, "reason") && typeof error.reason === "string"
    ? error.reason
    : Predicate.hasProperty(error, "_tag")
    ? String(error._tag)
    : "unknown"

const annotate = (span: Tracer.Span, attributes: Attributes): void => {
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) span.attribute(name, value)
}
