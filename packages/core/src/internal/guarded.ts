/**
 * A hard limit around one effect, cheaper than `Effect.timeout` and harder: what does not stop when told to is left behind.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import type { Flow, Ground } from "./flow.ts"
import type { Deadlines, Timed } from "./timekeeper.ts"

export interface Limits {
  /** From start to end, in milliseconds. */
  readonly total: number
  /** Between two signs of life, in milliseconds. */
  readonly idle: number
  /** When the last sign of life was, in nanoseconds of the clock. */
  readonly lastSign: () => bigint
}

/** How a guarded effect ended: by itself, or because of a limit. */
export type Ended<A, E> = Exit.Exit<A, E> | "total" | "idle"

/** Runs an effect within limits. */
export const guarded =
  <A, E>(effect: Effect.Effect<A, E>, limits: Limits): Flow<Ended<A, E>, never> => (ground, ok) => {
    const fiber = ground.fork(effect)
    const early = fiber.unsafePoll()
    if (early !== null) return ok(early)
    ground.wait<Ended<A, E>>((proceed) => {
      const guard = new Guard(ground, fiber, limits, proceed)
      fiber.addObserver((exit) => {
        const expired = guard.expiredBy
        if (guard.settle()) proceed(expired === undefined || Exit.isSuccess(exit) ? exit : expired)
      })
      return () => guard.cancel
    }, ok)
  }

class Guard implements Timed {
  deadline = Infinity
  keptBy: Deadlines | undefined
  isSettled = false
  expiredBy: "total" | "idle" | undefined
  private readonly fiber: Fiber.RuntimeFiber<unknown, unknown>
  private readonly ground: Ground
  private readonly limits: Limits
  private readonly onAbandoned: (limit: "total" | "idle") => void

  constructor(
    ground: Ground,
    fiber: Fiber.RuntimeFiber<unknown, unknown>,
    limits: Limits,
    onAbandoned: (limit: "total" | "idle") => void
  ) {
    this.ground = ground
    this.fiber = fiber
    this.limits = limits
    this.onAbandoned = onAbandoned
    ground.deadlines.add(this, limits.total, ground.clock.unsafeCurrentTimeNanos())
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
      this.onAbandoned(this.expiredBy ?? "total")
    }
  }

  watchIdle(): void {
    this.ground.deadlines.add(new IdleWatch(this), this.limits.idle, this.limits.lastSign())
  }

  /** Whether nothing was heard for as long as the limit says. */
  get isIdle(): boolean {
    const now = this.ground.clock.unsafeCurrentTimeNanos()
    return Number(now - this.limits.lastSign()) / 1_000_000 >= this.limits.idle - 1
  }
}

/** Looks whether there was a sign of life meanwhile; if so, it waits on from there. */
class IdleWatch implements Timed {
  deadline = Infinity
  keptBy: Deadlines | undefined
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
