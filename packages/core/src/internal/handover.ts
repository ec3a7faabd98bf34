/**
 * Handing events from whoever makes them to whoever reads them: bounded, in order, and as many at once as have gathered.
 *
 * Waking a reader costs far more than an event does, so it is woken once per burst: a flush waits until nothing has come
 * for a few turns of the scheduler, or until there is no room left.
 */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Scheduler from "effect/Scheduler"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

/** Where events go. Pushing always works; a maker that cares about its reader stops while there is no room. */
export interface Sink<in A> {
  readonly push: (event: A) => void
  readonly hasRoom: boolean
  /** Calls back once, when there is room again. */
  readonly onRoom: (proceed: () => void) => void
}

/** Waits until there is room in a sink. */
export const roomIn = (sink: Sink<never>): Effect.Effect<void> =>
  Effect.suspend(() =>
    sink.hasRoom ? Effect.void : Effect.async<void>((resume) => sink.onRoom(() => resume(Effect.void)))
  )

// Events that may wait for a slow reader.
const room = 64

// Turns of the scheduler without a new event after which a burst is over.
const quietTurns = 10

class Handover<A, E> implements Sink<A> {
  private readonly scheduler: Scheduler.Scheduler
  private waiting: Array<A> = []
  private proceed: Array<() => void> = []
  private reader: ((effect: Effect.Effect<Chunk.Chunk<A>, Option.Option<E>>) => void) | undefined
  private end: Exit.Exit<unknown, E> | undefined
  private isFlushing = false
  private seen = 0
  private quiet = 0

  constructor(scheduler: Scheduler.Scheduler) {
    this.scheduler = scheduler
  }

  get hasRoom(): boolean {
    return this.waiting.length < room
  }

  onRoom(proceed: () => void): void {
    this.proceed.push(proceed)
  }

  push(event: A): void {
    this.waiting.push(event)
    if (this.reader !== undefined && !this.isFlushing) this.schedule()
  }

  close(exit: Exit.Exit<unknown, E>): void {
    this.end = exit
    if (this.reader !== undefined && !this.isFlushing) this.schedule()
  }

  private schedule(): void {
    this.isFlushing = true
    this.seen = this.waiting.length
    this.quiet = 0
    this.scheduler.scheduleTask(this.flush, 0)
  }

  private readonly flush = (): void => {
    if (this.end === undefined && this.hasRoom && this.quiet < quietTurns) {
      this.quiet = this.waiting.length === this.seen ? this.quiet + 1 : 0
      this.seen = this.waiting.length
      return this.scheduler.scheduleTask(this.flush, 0)
    }
    this.isFlushing = false
    const { reader } = this
    this.reader = undefined
    reader?.(this.take())
  }

  private take(): Effect.Effect<Chunk.Chunk<A>, Option.Option<E>> {
    if (this.waiting.length === 0) {
      return Exit.isSuccess(this.end!)
        ? Effect.fail(Option.none())
        : Effect.mapError(Effect.failCause(this.end!.cause), Option.some)
    }
    const chunk = Chunk.unsafeFromArray(this.waiting)
    this.waiting = []
    if (this.proceed.length > 0) {
      const proceed = this.proceed
      this.proceed = []
      for (const goOn of proceed) goOn()
    }
    return Effect.succeed(chunk)
  }

  readonly pull: Effect.Effect<Chunk.Chunk<A>, Option.Option<E>> = Effect.async((resume) => {
    if (this.waiting.length >= room || this.end !== undefined) return resume(this.take())
    this.reader = resume
    if (this.waiting.length > 0 && !this.isFlushing) this.schedule()
    return Effect.sync(() => {
      this.reader = undefined
    })
  })
}

/** The events of a run as a Stream. Whoever stops reading stops the run, and waits for its finalizers. */
export const streamed = <A, E, R>(
  run: (sink: Sink<A>) => Effect.Effect<unknown, E, R>
): Stream.Stream<A, E, R> =>
  Stream.unwrapScoped(
    Effect.withFiberRuntime<Stream.Stream<A, E>, never, R | Scope.Scope>((fiber) => {
      const handover = new Handover<A, E>(fiber.currentScheduler)
      return Effect.as(
        Effect.forkScoped(Effect.onExit(run(handover), (exit) => Effect.sync(() => handover.close(exit)))),
        Stream.repeatEffectChunkOption(handover.pull)
      )
    })
  )
