import { Clock, Duration, Effect } from "effect"

/** A clock that stands still while anything moves, and jumps to the next sleeper when nothing does. */
export class IdleClock implements Clock.Clock {
  readonly [Clock.ClockTypeId]: Clock.ClockTypeId = Clock.ClockTypeId
  readonly currentTimeMillis = Effect.sync(() => this.unsafeCurrentTimeMillis())
  readonly currentTimeNanos = Effect.sync(() => this.unsafeCurrentTimeNanos())
  private readonly sleepers = new Set<{ readonly at: number; readonly wake: () => void }>()
  private now = 0
  private moves = 0
  private isWatching = false

  /** Who sleeps on it right now. */
  get timers(): number {
    return this.sleepers.size
  }

  unsafeCurrentTimeMillis(): number {
    return this.now
  }

  unsafeCurrentTimeNanos(): bigint {
    return BigInt(this.now) * 1_000_000n
  }

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    return Effect.async((resume) => {
      const sleeper = { at: this.now + Math.ceil(Duration.toMillis(duration)), wake: () => resume(Effect.void) }
      this.sleepers.add(sleeper)
      this.moves++
      this.watch()
      return Effect.sync(() => {
        this.sleepers.delete(sleeper)
        this.moves++
      })
    })
  }

  private watch(): void {
    if (this.isWatching) return
    this.isWatching = true
    const { moves } = this
    setImmediate(() =>
      setImmediate(() => {
        this.isWatching = false
        if (moves === this.moves) this.jump()
        if (this.sleepers.size > 0) this.watch()
      })
    )
  }

  private jump(): void {
    this.now = Math.max(this.now, Math.min(...Array.from(this.sleepers, ({ at }) => at)))
    for (const sleeper of Array.from(this.sleepers)) {
      if (sleeper.at > this.now) continue
      this.sleepers.delete(sleeper)
      sleeper.wake()
    }
  }
}

/** One turn of the event loop: whoever was told to stop has stopped after it. */
export const aTurn: Effect.Effect<void> = Effect.async((resume) => {
  setImmediate(() => resume(Effect.void))
})
