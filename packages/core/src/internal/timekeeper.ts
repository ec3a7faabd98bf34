/**
 * The deadlines of a batch or a chat, kept by one fiber that sleeps until the next of them.
 *
 * `Effect.timeout` forks and races per call, which costs more than everything else together; one sleeper per batch costs
 * next to nothing, and as it sleeps on the Clock, a TestClock drives it.
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import type * as Scheduler from "effect/Scheduler"

export interface Timed {
  /** In milliseconds of the clock; set when the entry is added. */
  deadline: number
  /** Over and done with: its deadline no longer matters. */
  readonly isSettled: boolean
  /** The deadline has come: time to stop. */
  readonly expire: () => void
  /** It was told to stop, had its turn to do so, and has not. */
  readonly abandon: () => void
}

const patience = 8

const toMillis = (nanos: bigint): number => Number(nanos) / 1_000_000

export class Timekeeper {
  private readonly clock: Clock.Clock
  private readonly scheduler: Scheduler.Scheduler
  private readonly fork: (effect: Effect.Effect<void>) => Fiber.RuntimeFiber<void>
  // Entries with the same limit fall due in the order they came, so a queue per limit is sorted by itself.
  private readonly queues = new Map<number, Queue>()
  private sleeper: Fiber.RuntimeFiber<void> | undefined
  private wakesAt = Infinity
  // Between a deadline and its consequences, which a new entry must not cut short; it is looked at right after them.
  private waking = false
  // Turns of the scheduler until the sleeper is set, 0 when it need not be.
  private patience = 0

  constructor(
    clock: Clock.Clock,
    scheduler: Scheduler.Scheduler,
    fork: (effect: Effect.Effect<void>) => Fiber.RuntimeFiber<void>
  ) {
    this.clock = clock
    this.scheduler = scheduler
    this.fork = fork
  }

  /** Watches over an entry from `startedAt` on, in nanoseconds of the clock. */
  add(entry: Timed, limit: number, startedAt: bigint): void {
    if (limit === Infinity) return
    entry.deadline = toMillis(startedAt) + limit
    let queue = this.queues.get(limit)
    if (queue === undefined) this.queues.set(limit, queue = new Queue())
    queue.push(entry)
    if (!this.waking && this.patience === 0 && entry.deadline < this.wakesAt) {
      this.patience = patience
      this.scheduler.scheduleTask(this.setSleeper, 0)
    }
  }

  // Much that waits is over within a few turns of the scheduler, and a sleeper costs more than all of them.
  private readonly setSleeper = (): void => {
    if (this.patience === 0) return
    this.patience--
    if (this.patience > 0) this.scheduler.scheduleTask(this.setSleeper, 0)
    else if (this.earliest() < this.wakesAt) this.sleepAgain()
  }

  stop(): void {
    this.sleeper?.unsafeInterruptAsFork(FiberId.none)
    this.sleeper = undefined
    this.waking = false
    this.patience = 0
    this.wakesAt = Infinity
    this.queues.clear()
  }

  // The wall clock can be set back while a tool runs; this one cannot.
  private now(): number {
    return toMillis(this.clock.unsafeCurrentTimeNanos())
  }

  private sleepAgain(): void {
    const asleep = this.sleeper
    this.wakesAt = this.earliest()
    this.sleeper = this.fork(this.watch)
    asleep?.unsafeInterruptAsFork(FiberId.none)
  }

  private earliest(): number {
    let earliest = Infinity
    for (const queue of this.queues.values()) {
      const first = queue.peek()
      if (first !== undefined && first.deadline < earliest) earliest = first.deadline
    }
    return earliest
  }

  private readonly watch: Effect.Effect<void> = Effect.suspend(() => {
    this.wakesAt = this.earliest()
    if (this.wakesAt === Infinity) {
      this.sleeper = undefined
      return Effect.void
    }
    // Timers know whole milliseconds, and may fire a fraction early: `takeDue` allows for both.
    const rest = Duration.millis(Math.max(0, Math.round(this.wakesAt - this.now())))
    return Effect.zipRight(this.clock.sleep(rest), this.wake)
  })

  private readonly wake: Effect.Effect<void> = Effect.suspend(() => {
    this.waking = true
    const due = this.takeDue()
    for (const entry of due) entry.expire()
    // An interrupted fiber needs its turn of the scheduler to run its finalizers. Whoever is still there after that is not
    // going to stop by itself.
    return Effect.zipRight(
      Effect.zipRight(Effect.yieldNow(), Effect.yieldNow()),
      Effect.suspend(() => {
        for (const entry of due) if (!entry.isSettled) entry.abandon()
        this.waking = false
        return this.watch
      })
    )
  })

  private takeDue(): ReadonlyArray<Timed> {
    const soon = this.now() + 1
    const due: Array<Timed> = []
    for (const queue of this.queues.values()) {
      for (let entry = queue.peek(); entry !== undefined && entry.deadline < soon; entry = queue.peek()) {
        due.push(entry)
        queue.shift()
      }
    }
    return due
  }
}

/** First in, first out, forgetting settled entries at its head. */
class Queue {
  private readonly entries: Array<Timed> = []
  private head = 0

  push(entry: Timed): void {
    this.entries.push(entry)
    // A chat of many turns must not remember them all.
    if (this.entries.length >= 2 * this.head + 64) this.peek()
    if (this.head > 64 && 2 * this.head > this.entries.length) {
      this.entries.splice(0, this.head)
      this.head = 0
    }
  }

  shift(): void {
    this.head++
  }

  peek(): Timed | undefined {
    while (this.head < this.entries.length && this.entries[this.head]!.isSettled) this.head++
    return this.entries[this.head]
  }
}
