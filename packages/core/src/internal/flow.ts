/**
 * Work that goes on by callbacks, on the ground of the fiber that asked for it.
 *
 * A chat is a hundred small decisions around a few places where it really waits. As Effects each decision would cost as much
 * as an event; as callbacks they are nearly free. A flow waits only for fibers and batches, and becomes one Effect at its
 * edge: interruptible there, with the caller's services and FiberRefs inside.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as FiberRefs from "effect/FiberRefs"
import * as Runtime from "effect/Runtime"
import * as RuntimeFlags from "effect/RuntimeFlags"
import type * as Scheduler from "effect/Scheduler"
import * as Tracer from "effect/Tracer"
import { Deadlines } from "./timekeeper.ts"
import { isListening, Spans } from "./trace.ts"

/** What a flow stands on: everything of a fiber that its own fibers would otherwise inherit. */
export class Ground {
  readonly clock: Clock.Clock
  readonly scheduler: Scheduler.Scheduler
  readonly runtimeFlags: RuntimeFlags.RuntimeFlags
  readonly deadlines: Deadlines
  readonly spans: Spans | undefined
  private readonly services: Context.Context<never>
  private readonly fiberId: FiberId.Runtime
  private readonly changes: Array<FiberRefs.FiberRefs> = []
  private refs: FiberRefs.FiberRefs
  private merged: { readonly fallback: Context.Context<never>; readonly context: Context.Context<never> } | undefined
  private canceller: (() => Effect.Effect<void>) | undefined
  private onDefect: ((defect: unknown) => void) | undefined
  isCancelled = false

  constructor(
    fiber: Fiber.RuntimeFiber<unknown, unknown>,
    runtimeFlags: RuntimeFlags.RuntimeFlags,
    refs: FiberRefs.FiberRefs = fiber.getFiberRefs()
  ) {
    this.services = fiber.currentContext
    this.fiberId = fiber.id()
    this.refs = refs
    this.clock = Context.get(fiber.currentDefaultServices, Clock.Clock)
    this.scheduler = fiber.currentScheduler
    // What runs here can be stopped even where the caller cannot.
    this.runtimeFlags = RuntimeFlags.enable(runtimeFlags, RuntimeFlags.Interruption)
    this.deadlines = new Deadlines(this.clock, this.scheduler, this.fork)
    this.spans = isListening(fiber) ? new Spans(fiber.currentTracer, this.clock, fiber) : undefined
  }

  /** The services of what is forked now: those of the caller, inside the span that is open. */
  get context(): Context.Context<never> {
    const span = this.spans?.current
    return span === undefined
      ? this.services
      : Context.add(this.services, Tracer.ParentSpan, span) as Context.Context<never>
  }

  /** The services, with others that count where the caller has none. Merged once, as long as nothing changes. */
  contextOver(fallback: Context.Context<never> | undefined): Context.Context<never> {
    if (fallback === undefined) return this.context
    if (this.spans !== undefined) return Context.merge(fallback, this.context)
    if (this.merged?.fallback !== fallback) this.merged = { fallback, context: Context.merge(fallback, this.services) }
    return this.merged.context
  }

  get fiberRefs(): FiberRefs.FiberRefs {
    return this.refs
  }

  readonly fork = <A, E>(effect: Effect.Effect<A, E>): Fiber.RuntimeFiber<A, E> =>
    Runtime.runFork(
      Runtime.make({ context: this.context, fiberRefs: this.refs, runtimeFlags: this.runtimeFlags }),
      effect
    )

  /** What fibers changed for good, as when they are joined: seen by whatever comes next, and given to the caller. */
  adopt(changes: ReadonlyArray<FiberRefs.FiberRefs>): void {
    for (const changed of changes) {
      this.changes.push(changed)
      this.refs = FiberRefs.joinAs(this.refs, this.fiberId, changed)
    }
  }

  /** Waits for something that can be stopped. The callback it gets is the way back in. */
  wait<A>(begin: (proceed: (value: A) => void) => () => Effect.Effect<void>, next: (value: A) => void): void {
    let isOver = false
    const proceed = (value: A): void => {
      if (isOver) return
      isOver = true
      this.canceller = undefined
      if (!this.isCancelled) this.enter(() => next(value))
    }
    const canceller = begin(proceed)
    if (!isOver) this.canceller = canceller
  }

  private enter(work: () => void): void {
    try {
      work()
    } catch (defect) {
      this.onDefect?.(defect)
    }
  }

  /** Runs a flow to its end, as an Effect. */
  run<A, E>(flow: Flow<A, E>): Effect.Effect<A, E> {
    return Effect.async<A, E>((resume) => {
      const end = (exit: Effect.Effect<A, E>): void => {
        this.deadlines.stop()
        resume(this.changes.length === 0 ? exit : Effect.zipRight(this.join, exit))
      }
      this.onDefect = (defect) => end(Effect.die(defect))
      this.enter(() => flow(this, (value) => end(Effect.succeed(value)), (error) => end(Effect.fail(error))))
      return this.cancel
    })
  }

  private readonly join: Effect.Effect<void> = Effect.suspend(() =>
    Effect.forEach(this.changes.splice(0), Effect.inheritFiberRefs, { discard: true })
  )

  private readonly cancel: Effect.Effect<void> = Effect.suspend(() => {
    this.isCancelled = true
    const stopped = Effect.sync(() => {
      this.spans?.interrupt()
      this.deadlines.stop()
    })
    return this.canceller === undefined ? stopped : Effect.zipRight(this.canceller(), stopped)
  })
}

/** Work with two ends: exactly one of the callbacks is called, at once or later. */
export type Flow<out A, out E> = (ground: Ground, ok: (value: A) => void, fail: (error: E) => void) => void

export const succeed = <A>(value: A): Flow<A, never> => (_ground, ok) => ok(value)

export const fail = <E>(error: E): Flow<never, E> => (_ground, _ok, fail) => fail(error)

export const suspend = <A, E>(make: () => Flow<A, E>): Flow<A, E> => (ground, ok, fail) => make()(ground, ok, fail)

export const map = <A, E, B>(self: Flow<A, E>, f: (value: A) => B): Flow<B, E> => (ground, ok, fail) =>
  self(ground, (value) => ok(f(value)), fail)

export const mapError = <A, E, E2>(self: Flow<A, E>, f: (error: E) => E2): Flow<A, E2> => (ground, ok, fail) =>
  self(ground, ok, (error) => fail(f(error)))

export const flatMap =
  <A, E, B, E2>(self: Flow<A, E>, f: (value: A) => Flow<B, E2>): Flow<B, E | E2> => (ground, ok, fail) =>
    self(ground, (value) => f(value)(ground, ok, fail), fail)

export const match = <A, E, B, E2>(
  self: Flow<A, E>,
  options: {
    readonly onSuccess: (value: A) => Flow<B, E2>
    readonly onFailure: (error: E) => Flow<B, E2>
  }
): Flow<B, E2> =>
(ground, ok, fail) =>
  self(
    ground,
    (value) => options.onSuccess(value)(ground, ok, fail),
    (error) => options.onFailure(error)(ground, ok, fail)
  )

/** Runs an Effect in a fiber of its own, and goes on with how it ended. */
export const exitOf = <A, E>(effect: Effect.Effect<A, E>): Flow<Exit.Exit<A, E>, never> => (ground, ok) => {
  const fiber = ground.fork(effect)
  const early = fiber.unsafePoll()
  if (early !== null) return ok(early)
  ground.wait<Exit.Exit<A, E>>((proceed) => {
    fiber.addObserver(proceed)
    return () => interrupted(fiber)
  }, ok)
}

/** Interrupts a fiber and waits for it. */
const interrupted = (fiber: Fiber.RuntimeFiber<unknown, unknown>): Effect.Effect<void> =>
  Effect.async((resume) => {
    fiber.addObserver(() => resume(Effect.void))
    fiber.unsafeInterruptAsFork(FiberId.none)
  })

// Turns that may pass without waiting before other fibers get theirs.
const burst = 128

/** Repeats until there is a result, on a flat stack however many times it does not wait. */
export const loop = <A, E>(body: () => Flow<A | undefined, E>): Flow<A, E> => (ground, ok, fail) => {
  let isRunning = false
  let isDue = true
  const turn = (): void => {
    isDue = true
    if (isRunning) return
    isRunning = true
    for (let turns = 0; isDue; turns++) {
      if (turns === burst) {
        ground.wait<Exit.Exit<void>>((proceed) => {
          const fiber = ground.fork(Effect.yieldNow())
          fiber.addObserver(proceed)
          return () => interrupted(fiber)
        }, turn)
        break
      }
      isDue = false
      body()(ground, (value) => value === undefined ? turn() : ok(value), fail)
    }
    isRunning = false
  }
  turn()
}
