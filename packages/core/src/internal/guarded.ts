/**
 * A hard limit around one piece of work, cheaper than `Effect.timeout` and harder: what does not stop when told to is left behind.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
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

/** Starts something that ends once, now or later. Gives the way to stop it, which makes it end if anything can. */
export type Start<A, E> = (ground: Ground, ended: (exit: Exit.Exit<A, E>) => void) => () => void

/** Starts an effect in a fiber of its own. */
export const inFiber = <A, E>(effect: Effect.Effect<A, E>): Start<A, E> => (ground, ended) => {
  const fiber = ground.fork(effect)
  const early = fiber.unsafePoll()
  if (early === null) fiber.addObserver(ended)
  else ended(early)
  return () => fiber.unsafeInterruptAsFork(FiberId.none)
}

/** Runs something within limits. */
export const guarded = <A, E>(start: Start<A, E>, limits: Limits): Flow<Ended<A, E>, never> => (ground, ok) => {
  let early: Exit.Exit<A, E> | undefined
  let guard: Guard<A, E> | undefined
  const stop = start(ground, (exit) => guard === undefined ? early = exit : guard.ended(exit))
  if (early !== undefined) return ok(early)
  ground.wait<Ended<A, E>>((proceed) => {
    const watched = guard = new Guard(ground, stop, limits, proceed)
    return () => watched.cancel
  }, ok)
}

class Guard<A, E> implements Timed {
  deadline = Infinity
  keptBy: Deadlines | undefined
  isSettled = false
  private expiredBy: "total" | "idle" | undefined
  private onCancelled: (() => void) | undefined
  private readonly ground: Ground
  private readonly stopIt: () => void
  private readonly limits: Limits
  private readonly proceed: (ended: Ended<A, E>) => void

  constructor(ground: Ground, stopIt: () => void, limits: Limits, proceed: (ended: Ended<A, E>) => void) {
    this.ground = ground
    this.stopIt = stopIt
    this.limits = limits
    this.proceed = proceed
    ground.deadlines.add(this, limits.total, ground.clock.unsafeCurrentTimeNanos())
    if (limits.idle !== Infinity) this.watchIdle()
  }

  ended(exit: Exit.Exit<A, E>): void {
    this.settle(this.expiredBy === undefined || Exit.isSuccess(exit) ? exit : this.expiredBy)
  }

  private settle(ended: Ended<A, E>): void {
    if (this.isSettled) return
    this.isSettled = true
    if (this.onCancelled === undefined) this.proceed(ended)
    else this.onCancelled()
  }

  /** The caller was interrupted: so is the rest, and the caller waits for it, but not beyond the limit. */
  get cancel(): Effect.Effect<void> {
    return Effect.async<void>((resume) => {
      if (this.isSettled) return resume(Effect.void)
      this.onCancelled = () => resume(Effect.void)
      this.stopIt()
    })
  }

  expire(): void {
    this.stop("total")
  }

  stop(limit: "total" | "idle"): void {
    this.expiredBy ??= limit
    this.stopIt()
  }

  abandon(): void {
    this.settle(this.expiredBy ?? "total")
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

/** What an idle watch needs to know of its guard. */
interface Watched {
  readonly isSettled: boolean
  readonly isIdle: boolean
  readonly stop: (limit: "idle") => void
  readonly watchIdle: () => void
  readonly abandon: () => void
}

/** Looks whether there was a sign of life meanwhile; if so, it waits on from there. */
class IdleWatch implements Timed {
  deadline = Infinity
  keptBy: Deadlines | undefined
  private readonly guard: Watched
  private didExpire = false

  constructor(guard: Watched) {
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
