/**
 * A hard limit around one effect, cheaper than `Effect.timeout` and harder: what does not stop when told to is left behind.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Runtime from "effect/Runtime"
import * as RuntimeFlags from "effect/RuntimeFlags"
import type { Timed, Timekeeper } from "./timekeeper.ts"

export interface Limits {
  readonly clock: Clock.Clock
  readonly timekeeper: Timekeeper
  /** From start to end, in milliseconds. */
  readonly total: number
  /** Between two signs of life, in milliseconds. */
  readonly idle: number
  /** When the last sign of life was, in nanoseconds of the clock. */
  readonly lastSign: () => bigint
}

/** Runs an effect within limits. `onExpired` makes the failure of one that was too slow. */
export const guarded = <A, E, E2>(
  effect: Effect.Effect<A, E>,
  limits: Limits,
  onExpired: (limit: "total" | "idle") => Effect.Effect<never, E2>
): Effect.Effect<A, E | E2> =>
  Effect.withFiberRuntime((parent, { runtimeFlags }) => {
    const runtime = Runtime.make({
      context: parent.currentContext,
      fiberRefs: parent.getFiberRefs(),
      runtimeFlags: RuntimeFlags.enable(runtimeFlags, RuntimeFlags.Interruption)
    })
    return Effect.async<A, E | E2>((resume) => {
      const fiber = Runtime.runFork(runtime, effect)
      const early = fiber.unsafePoll()
      if (early !== null) return resume(early)
      const guard = new Guard(
        fiber,
        limits,
        (limit) => resume(limit === undefined ? Effect.interrupt : onExpired(limit))
      )
      fiber.addObserver((exit) => {
        const expired = guard.expiredBy
        if (guard.settle()) resume(expired === undefined || Exit.isSuccess(exit) ? exit : onExpired(expired))
      })
      return guard.cancel
    })
  })

class Guard implements Timed {
  deadline = Infinity
  isSettled = false
  expiredBy: "total" | "idle" | undefined
  private readonly fiber: Fiber.RuntimeFiber<unknown, unknown>
  private readonly limits: Limits
  private readonly onAbandoned: (limit: "total" | "idle" | undefined) => void
  private readonly startedAt: bigint

  constructor(
    fiber: Fiber.RuntimeFiber<unknown, unknown>,
    limits: Limits,
    onAbandoned: (limit: "total" | "idle" | undefined) => void
  ) {
    this.fiber = fiber
    this.limits = limits
    this.onAbandoned = onAbandoned
    this.startedAt = limits.clock.unsafeCurrentTimeNanos()
    limits.timekeeper.add(this, limits.total, this.startedAt)
    if (limits.idle !== Infinity) this.watchIdle()
  }

  /** Tells whether this was the first end. */
  settle(): boolean {
    const isFirst = !this.isSettled
    this.isSettled = true
    return isFirst
  }

  /** The caller was interrupted: so is the fiber, and the caller waits for it, but not beyond the limit. */
  readonly cancel: Effect.Effect<void> = Effect.suspend(() => {
    if (this.isSettled) return Effect.void
    this.fiber.unsafeInterruptAsFork(FiberId.none)
    return Effect.async<void>((resume) => {
      this.onCancelled = () => resume(Effect.void)
      this.fiber.addObserver(() => this.onCancelled?.())
    })
  })

  private onCancelled: (() => void) | undefined

  expire(): void {
    this.stop("total")
  }

  stop(limit: "total" | "idle"): void {
    this.expiredBy ??= limit
    this.fiber.unsafeInterruptAsFork(FiberId.none)
  }

  abandon(): void {
    if (this.onCancelled !== undefined) {
      this.isSettled = true
      this.onCancelled()
    } else if (this.settle()) {
      this.onAbandoned(this.expiredBy)
    }
  }

  watchIdle(): void {
    this.limits.timekeeper.add(new IdleWatch(this), this.limits.idle, this.limits.lastSign())
  }

  /** Whether nothing was heard for as long as the limit says. */
  get isIdle(): boolean {
    const now = this.limits.clock.unsafeCurrentTimeNanos()
    return Number(now - this.limits.lastSign()) / 1_000_000 >= this.limits.idle - 1
  }
}

/** Looks whether there was a sign of life meanwhile; if so, it waits on from there. */
class IdleWatch implements Timed {
  deadline = Infinity
  private readonly guard: Guard
  private didExpire = false

  constructor(guard: Guard) {
    this.guard = guard
  }

  get isSettled(): boolean {
    return this.guard.isSettled
  }

  expire(): void {
    this.didExpire = this.guard.isIdle
    if (this.didExpire) this.guard.stop("idle")
    else this.guard.watchIdle()
  }

  abandon(): void {
    if (this.didExpire) this.guard.abandon()
  }
}
