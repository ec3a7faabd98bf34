/**
 * Deadlines, kept by one fiber that sleeps until the next of them.
 *
 * `Effect.timeout` forks and races per call, which costs more than everything else together. One sleeper for all the chats
 * and batches that share a clock costs next to nothing, and as it sleeps on the Clock, a TestClock drives it.
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
  /** Whose it is; set when the entry is added. */
  keptBy: Deadlines | undefined
  /** Over and done with: its deadline no longer matters. */
  readonly isSettled: boolean
  /** The deadline has come: time to stop. */
  readonly expire: () => void
  /** It was told to stop, had its turn to do so, and has not. */
  readonly abandon: () => void
}

// Nobody waits for entries of a chat that is over.
const isOpen = (entry: Timed): boolean => !entry.isSettled && entry.keptBy?.isOver === false

type Fork = (effect: Effect.Effect<void>) => Fiber.RuntimeFiber<void>

const patience = 8

const toMillis = (nanos: bigint): number => Number(nanos) / 1_000_000

// Fibers of one scheduler only: that of `runSync` is gone when its effect is over.
const keepers = new WeakMap<Scheduler.Scheduler, WeakMap<Clock.Clock, Timekeeper>>()

const keeperOf = (clock: Clock.Clock, scheduler: Scheduler.Scheduler): Timekeeper => {
  let ofScheduler = keepers.get(scheduler)
  if (ofScheduler === undefined) keepers.set(scheduler, ofScheduler = new WeakMap())
  let keeper = ofScheduler.get(clock)
  if (keeper === undefined) ofScheduler.set(clock, keeper = new Timekeeper(clock, scheduler))
  return keeper
}

/** The deadlines of one chat or batch. */
export class Deadlines {
  private readonly clock: Clock.Clock
  private readonly scheduler: Scheduler.Scheduler
  private readonly fork: Fork
  private keeper: Timekeeper | undefined
  isOver = false

  constructor(clock: Clock.Clock, scheduler: Scheduler.Scheduler, fork: Fork) {
    this.clock = clock
    this.scheduler = scheduler
    this.fork = fork
  }

  /** Watches over an entry from `startedAt` on, in nanoseconds of the clock. */
  add(entry: Timed, limit: number, startedAt: bigint): void {
    if (limit === Infinity) return
    if (this.keeper === undefined) {
      this.keeper = keeperOf(this.clock, this.scheduler)
      this.keeper.enter()
    }
    entry.deadline = toMillis(startedAt) + limit
    entry.keptBy = this
    this.keeper.add(entry, limit, this.fork)
  }

  stop(): void {
    this.isOver = true
    this.keeper?.leave()
    this.keeper = undefined
  }
}

class Timekeeper {
  private readonly clock: Clock.Clock
  private readonly scheduler: Scheduler.Scheduler
  // How many chats and batches may still add an entry.
  private users = 0
  // How the last user forks; where a sleeper comes from makes no difference to it.
  private fork: Fork | undefined
  // Entries with the same limit fall due in the order they came, so a queue per limit is sorted by itself.
  private readonly queues: Array<Queue> = []
  private sleeper: Fiber.RuntimeFiber<void> | undefined
  private wakesAt = Infinity
  // Between a deadline and its consequences, which a new entry must not cut short; it is looked at right after them.
  private waking = false
  // Turns of the scheduler until the sleeper is set, 0 when it need not be.
  private patience = 0
  // The scheduler has been asked for the next of them.
  private isWaiting = false

  constructor(clock: Clock.Clock, scheduler: Scheduler.Scheduler) {
    this.clock = clock
    this.scheduler = scheduler
  }

  enter(): void {
    this.users++
  }

  leave(): void {
    if (--this.users === 0) this.stop()
  }

  add(entry: Timed, limit: number, fork: Fork): void {
    this.fork = fork
    this.queueOf(limit).push(entry)
    if (!this.waking && this.patience === 0 && entry.deadline < this.wakesAt) {
      this.patience = patience
      this.waitOn()
    }
  }

  private queueOf(limit: number): Queue {
    for (const queue of this.queues) if (queue.limit === limit) return queue
    const queue = new Queue(limit)
    this.queues.push(queue)
    return queue
  }

  private waitOn(): void {
    if (this.isWaiting) return
    this.isWaiting = true
    this.scheduler.scheduleTask(this.setSleeper, 0)
  }

  // Much that waits is over within a few turns of the scheduler, and a sleeper costs more than all of them.
  private readonly setSleeper = (): void => {
    this.isWaiting = false
    if (this.patience === 0) return
    this.patience--
    if (this.patience > 0) this.waitOn()
    else if (this.earliest() < this.wakesAt) this.sleepAgain()
  }

  private stop(): void {
    this.sleeper?.unsafeInterruptAsFork(FiberId.none)
    this.sleeper = undefined
    this.waking = false
    this.patience = 0
    this.wakesAt = Infinity
    this.fork = undefined
    // Emptied in place: a Map that is cleared keeps its old table pointing at the new one, and with it every chat there was
    // until the next big collection.
    for (const queue of this.queues) queue.clear()
    if (this.queues.length > 16) this.queues.length = 0
  }

  // The wall clock can be set back while a tool runs; this one cannot.
  private now(): number {
    return toMillis(this.clock.unsafeCurrentTimeNanos())
  }

  private sleepAgain(): void {
    const asleep = this.sleeper
    this.wakesAt = this.earliest()
    this.sleeper = this.fork!(this.watch)
    asleep?.unsafeInterruptAsFork(FiberId.none)
  }

  private earliest(): number {
    let earliest = Infinity
    for (const queue of this.queues) {
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
        for (const entry of due) if (isOpen(entry)) entry.abandon()
        this.waking = false
        return this.watch
      })
    )
  })

  private takeDue(): ReadonlyArray<Timed> {
    const soon = this.now() + 1
    const due: Array<Timed> = []
    for (const queue of this.queues) {
      for (let entry = queue.peek(); entry !== undefined && entry.deadline < soon; entry = queue.peek()) {
        due.push(entry)
        queue.shift()
      }
    }
    return due
  }
}

/** First in, first out, forgetting settled entries. */
class Queue {
  readonly limit: number
  private entries: Array<Timed> = []
  private head = 0
  private room = 64

  constructor(limit: number) {
    this.limit = limit
  }

  clear(): void {
    this.entries.length = 0
    this.head = 0
    this.room = 64
  }

  push(entry: Timed): void {
    // A long call at the head must not make all the short ones behind it remembered.
    if (this.entries.length === this.room) {
      this.entries = this.entries.slice(this.head).filter(isOpen)
      this.head = 0
      this.room = 2 * this.entries.length + 64
    }
    this.entries.push(entry)
  }

  shift(): void {
    this.head++
  }

  peek(): Timed | undefined {
    while (this.head < this.entries.length && !isOpen(this.entries[this.head]!)) this.head++
    return this.entries[this.head]
  }
}
