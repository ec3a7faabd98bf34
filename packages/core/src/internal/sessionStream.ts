/**
 * A turn of a session as it happens, and what the session is afterwards, wherever it ended.
 */
import * as Effect from "effect/Effect"
import type { ChatError } from "../Allm.ts"
import type { Engine } from "../Engine.ts"
import type { Event } from "../Event.ts"
import type { Outcome, Turn } from "../Session.ts"
import type { SessionError } from "../SessionError.ts"
import type { ValidationError } from "../ValidationError.ts"
import { type Sink, streamed } from "./handover.ts"
import { type Prepared, termsOf } from "./sessionLoop.ts"
import type { Terms } from "./sessionProjection.ts"
import { TurnFold } from "./sessionTurn.ts"

type Refusal = SessionError | ValidationError

interface Record<A> {
  readonly prepared: Prepared
  readonly fold: TurnFold
  outcome: Outcome<A> | undefined
}

export const makeTurn = <A>(
  prepare: Effect.Effect<Prepared, Refusal>,
  drive: (prepared: Prepared, sink: Sink<Event>) => Effect.Effect<Outcome<A>, ChatError, Engine>,
  finish: (fold: TurnFold, terms: Terms) => Outcome<A>
): Turn<A, ChatError | SessionError, Engine> => {
  let record: Record<A> | undefined
  let refusal: Refusal | undefined

  const begin = Effect.tapBoth(prepare, {
    onFailure: (error) => Effect.sync(() => refusal = error),
    onSuccess: (prepared) =>
      Effect.sync(() => {
        refusal = undefined
        record = { prepared, fold: new TurnFold(prepared.session), outcome: undefined }
      })
  })

  const events = streamed<Event, ChatError | SessionError, Engine>((sink) =>
    Effect.flatMap(begin, (prepared) => {
      const current = record!
      return Effect.tapBoth(drive(prepared, watched(sink, current)), {
        onSuccess: (outcome) => Effect.sync(() => current.outcome = outcome),
        onFailure: (error) =>
          Effect.sync(() => {
            if (error._tag === "ValidationError") refusal = error
            else if (error._tag === "CallbackFailed") current.fold.end(error.result)
            else current.fold.fail(error)
          })
      })
    })
  )

  const outcome = Effect.suspend((): Effect.Effect<Outcome<A>, Refusal> => {
    if (refusal !== undefined) return Effect.fail(refusal)
    if (record === undefined) {
      return Effect.flatMap(begin, () => outcome)
    }
    const current = record
    if (current.outcome !== undefined) return Effect.succeed(current.outcome)
    return Effect.map(termsOf(current.prepared), (terms) => current.outcome ??= finish(current.fold, terms))
  })

  return { events, outcome }
}

/**
 * Sees every event where it is made: what a reader who stopped never got to see has happened all the same.
 */
const watched = <A>(sink: Sink<Event>, record: Record<A>): Sink<Event> => ({
  push: (event) => {
    record.fold.add(event)
    record.outcome = undefined
    sink.push(event)
  },
  get hasRoom() {
    return sink.hasRoom
  },
  onRoom: (proceed) => sink.onRoom(proceed)
})
