/**
 * Getting hold of sessions, and letting go of them.
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import type { Lease, LeaseHeld } from "../SessionLease.ts"
import type { StoreError } from "../StoreError.ts"
import type { RunnerSettings } from "./runnerOptions.ts"
import { Hold, type Stop, type Stores } from "./sessionHold.ts"
import { Turns } from "./turns.ts"

/** Holds a session while something is done to it. */
export type Holder = <A, E, R>(
  sessionId: string,
  use: (hold: Hold) => Effect.Effect<A, E, R>
) => Effect.Effect<A, E | LeaseHeld | StoreError, R>

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

export const holder = (stores: Stores, name: string, { leaseDuration, wait }: RunnerSettings): Holder => {
  // Those of the same process wait for each other, and need not look again and again.
  const turns = new Turns()

  const acquire = (
    sessionId: string,
    deadline: number,
    restore: Restore,
    tries = 0
  ): Effect.Effect<Lease, LeaseHeld | StoreError> =>
    Effect.catchTag(
      stores.leases.acquire(sessionId, { holder: name, duration: leaseDuration }),
      "LeaseHeld",
      (held) =>
        Effect.flatMap(Effect.zip(Clock.currentTimeMillis, Random.next), ([now, random]) => {
          const pause = Math.min(deadline - now, Math.max(1, held.until - now), pauseBefore(tries, random))
          const again = Effect.suspend(() => acquire(sessionId, deadline, restore, tries + 1))
          return pause > 0 ? Effect.zipRight(restore(Effect.sleep(Duration.millis(pause))), again) : held
        })
    )

  const hold = <A, E, R>(sessionId: string, deadline: number, use: (hold: Hold) => Effect.Effect<A, E, R>) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function*() {
        const lease = yield* acquire(sessionId, deadline, restore)
        if (lease.takenFrom !== undefined) {
          yield* Effect.logInfo(`took the session over from ${lease.takenFrom}, whose lease ran out`)
        }
        const held = new Hold(stores, lease, yield* Deferred.make<never, Stop>())
        const renewal = yield* Effect.forkDaemon(Effect.interruptible(held.renewing))
        return yield* Effect.ensuring(restore(use(held)), Effect.zipRight(Fiber.interrupt(renewal), held.release))
      })
    )

  return (sessionId, use) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => turns.within(sessionId, wait, hold(sessionId, now + wait, use)))
      .pipe(
        Effect.annotateLogs("sessionId", sessionId)
      )
}

// Soon at first, once a second later on, and not all at the same time.
const pauseBefore = (tries: number, random: number): number => Math.min(1000, 20 * 1.5 ** tries) * (0.5 + random / 2)
