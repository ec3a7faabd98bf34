/**
 * Fibers of this process that want the same thing, one after the other, first come first served.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"

type Place = Deferred.Deferred<void>

export class Turns {
  /** Whose turn it is, and after that those who wait. */
  private readonly queues = new Map<string, Array<Place>>()

  /** Waits for its turn, but not longer than the limit in milliseconds, and then works in any case: the queue is a courtesy. */
  within<A, E, R>(key: string, limit: number, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() => {
        const place = Deferred.unsafeMake<void>(FiberId.none)
        this.join(key, place)
        const turn = Effect.timeoutOption(Deferred.await(place), limit)
        const waiting = this.isFirst(key, place) || limit <= 0 ? Effect.void : restore(turn)
        const working = Effect.suspend(() => {
          if (!this.isFirst(key, place)) this.leave(key, place)
          return restore(work)
        })
        return Effect.ensuring(Effect.zipRight(waiting, working), Effect.sync(() => this.leave(key, place)))
      })
    )
  }

  private isFirst(key: string, place: Place): boolean {
    return this.queues.get(key)?.[0] === place
  }

  private join(key: string, place: Place): void {
    const queue = this.queues.get(key)
    if (queue === undefined) this.queues.set(key, [place])
    else queue.push(place)
  }

  private leave(key: string, place: Place): void {
    const queue = this.queues.get(key) ?? []
    const index = queue.indexOf(place)
    if (index < 0) return
    queue.splice(index, 1)
    if (queue.length === 0) this.queues.delete(key)
    else if (index === 0) Deferred.unsafeDone(queue[0]!, Effect.void)
  }
}
