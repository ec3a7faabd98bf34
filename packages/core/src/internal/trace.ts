/**
 * Spans that cost nothing unless someone listens.
 */
import * as Context from "effect/Context"
import * as DefaultServices from "effect/DefaultServices"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as Predicate from "effect/Predicate"
import * as Tracer from "effect/Tracer"

export type Attributes = { readonly [name: string]: unknown }

const nativeTracer = Context.get(DefaultServices.liveServices, Tracer.Tracer)

/** Whether spans of this fiber reach anyone: Effect's own tracer only keeps them. */
export const isListening = (fiber: Fiber.RuntimeFiber<unknown, unknown>): boolean =>
  fiber.currentTracer !== nativeTracer && fiber.getFiberRef(FiberRef.currentTracerEnabled)

/**
 * Runs an effect in a span; `after` tells what is known of it at its end. A value that stands for a failure, as `failureOf`
 * finds, ends the span as failed.
 */
export const traced = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  span: { readonly name: string; readonly kind?: Tracer.SpanKind },
  before: () => Attributes,
  after: (value: A) => Attributes,
  failureOf: (value: A) => unknown = () => undefined
): Effect.Effect<A, E, R> =>
  Effect.withFiberRuntime<A, E, R>((fiber) =>
    isListening(fiber) ? inSpan(effect, span, before(), after, failureOf) : effect
  )

/** A value on its way out of a failed span. */
class Kept<out A> {
  readonly value: A
  readonly failure: unknown
  constructor(value: A, failure: unknown) {
    this.value = value
    this.failure = failure
  }
}

const inSpan = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  { name, kind = "internal" }: { readonly name: string; readonly kind?: Tracer.SpanKind },
  before: Attributes,
  after: (value: A) => Attributes,
  failureOf: (value: A) => unknown
): Effect.Effect<A, E, R> => {
  let kept: Kept<A> | undefined
  return effect.pipe(
    Effect.flatMap((value) => {
      const failure = failureOf(value)
      const settled = failure === undefined
        ? Effect.succeed(value)
        : Effect.fail((kept = new Kept(value, failure)).failure as E)
      return Effect.zipRight(Effect.annotateCurrentSpan(defined(after(value))), settled)
    }),
    Effect.tapError((error) => Effect.annotateCurrentSpan("error.type", typeOf(error))),
    Effect.withSpan(name, { attributes: defined(before), captureStackTrace: false, kind }),
    // Nothing can fail after that: the failure is the one that was kept.
    Effect.catchAll((error) => kept !== undefined ? Effect.succeed(kept.value) : Effect.fail(error))
  ) as Effect.Effect<A, E, R>
}

const typeOf = (error: unknown): string =>
  Predicate.hasProperty(error, "reason") && typeof error.reason === "string"
    ? error.reason
    : Predicate.hasProperty(error, "_tag")
    ? String(error._tag)
    : "unknown"

const defined = (attributes: Attributes): Record<string, unknown> =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))
