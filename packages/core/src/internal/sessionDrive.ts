/**
 * A run of a session by one who holds it: what it comes to is saved, also when it is cut off.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { ChatError } from "../Allm.ts"
import type { ChatResult } from "../ChatResult.ts"
import type { Engine } from "../Engine.ts"
import type { Event } from "../Event.ts"
import type { Outcome, Session } from "../Session.ts"
import { StoreError } from "../StoreError.ts"
import { ToolJournal } from "../ToolJournal.ts"
import { ValidationError } from "../ValidationError.ts"
import type { Sink } from "./handover.ts"
import { issue } from "./issues.ts"
import { fromStored } from "./journal.ts"
import { describe, isPlainObject, show } from "./json.ts"
import { type Hold, NotSaved, type Stop } from "./sessionHold.ts"
import * as Loop from "./sessionLoop.ts"
import { isSession, readSession } from "./sessionShape.ts"
import { TurnFold } from "./sessionTurn.ts"

/**
 * Does something as long as the holder may, with the journal of the holder. It is over when this ends, however it ends: a
 * race would come back from an interruption while the loser still runs.
 */
const whileHeld = <A, E, R>(
  hold: Hold,
  work: Effect.Effect<A, E, R>
): Effect.Effect<A, E | Stop, Exclude<R, ToolJournal>> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function*() {
      const fiber = yield* Effect.fork(restore(Effect.provideService(work, ToolJournal, hold.journal)))
      const guard = yield* Effect.forkDaemon(
        Effect.interruptible(Effect.catchAllCause(hold.stopped, () => Fiber.interruptFork(fiber)))
      )
      const exit = yield* restore(Fiber.await(fiber)).pipe(
        Effect.onInterrupt(() => Fiber.interrupt(fiber)),
        Effect.ensuring(Fiber.interruptFork(guard))
      )
      if (Exit.isSuccess(exit)) return yield* Effect.as(fiber.inheritAll, exit.value)
      return yield* (hold.isStopped ? hold.stopped : Effect.failCause(exit.cause))
    })
  )

/** Does something to a session that is all of it or nothing, and saves what comes of it. */
export const modify = <A, E, R>(
  hold: Hold,
  session: Session,
  change: (session: Session) => Effect.Effect<Outcome<A>, E, R>
): Effect.Effect<Outcome<A>, E | ValidationError | Stop, Exclude<R, ToolJournal>> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function*() {
      const given = yield* restore(whileHeld(hold, Effect.suspend(() => changed(change, session))))
      const outcome = yield* readOutcome(given)
      if (outcome.session.id !== hold.sessionId) return yield* otherId(hold.sessionId, outcome.session)
      return { session: yield* hold.finish(outcome.session), result: outcome.result }
    })
  )

const wrongChange = (message: string): ValidationError =>
  new ValidationError({
    reason: "invalid_options",
    issues: [
      issue(["change"], "invalid_type", `write (session) => Effect.succeed({ session, result }); ${message}`)
    ]
  })

const changed = <A, E, R>(
  change: (session: Session) => Effect.Effect<Outcome<A>, E, R>,
  session: Session
): Effect.Effect<Outcome<A>, E | ValidationError, R> => {
  if (typeof change !== "function") return wrongChange(`the change is ${describe(change)}`)
  const given: unknown = change(session)
  return Effect.isEffect(given)
    ? given as Effect.Effect<Outcome<A>, E, R>
    : wrongChange(`it gave ${describe(given)}, and no Effect`)
}

const readOutcome = <A>(given: Outcome<A>): Either.Either<Outcome<A>, ValidationError> => {
  if (!isPlainObject(given)) return Either.left(wrongChange(`it gave ${describe(given)}`))
  if (isSession(given)) return Either.left(wrongChange("it gave the session alone"))
  return Either.map(readSession("SessionRunner.modify", given.session), () => given)
}

/** Somebody else may hold the session of that id. */
const otherId = (sessionId: string, session: Session): NotSaved =>
  new NotSaved({
    session,
    error: new StoreError({
      reason: "invalid_id",
      operation: "SessionRunner.modify",
      id: sessionId,
      detail: `the session came back with the id ${show(session.id)}; leave the id as it is, ` +
        "and save a copy with SessionStore.save"
    })
  }, { disableValidation: true })

/** Chats until the model is done, or something has to be answered. */
export const drive = (
  hold: Hold,
  prepared: Loop.Prepared,
  sink: Sink<Event> | undefined
): Effect.Effect<Outcome<ChatResult>, ChatError | Stop, Engine> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      const watch = new Watch(hold, prepared.session, sink)
      const chat = Loop.driveChat({ ...prepared, checkpoint: hold.checkpoint }, watch)
      return Effect.flatMap(Effect.exit(restore(whileHeld(hold, chat))), (exit) => {
        if (Exit.isSuccess(exit)) {
          const { result, session } = exit.value
          return Effect.map(hold.finish(session), (saved) => ({ session: saved, result }))
        }
        const failed = Effect.failCause(exit.cause)
        return Exit.isInterrupted(exit) && !hold.isStopped ? Effect.zipRight(watch.keep(prepared), failed) : failed
      })
    })
  )

/** Sees every event where it is made, whether or not anybody listens. */
class Watch implements Sink<Event> {
  private readonly hold: Hold
  private readonly sink: Sink<Event> | undefined
  private readonly fold: TurnFold
  private hasHeard = false

  constructor(hold: Hold, session: Session, sink: Sink<Event> | undefined) {
    this.hold = hold
    this.sink = sink
    this.fold = new TurnFold(session)
  }

  push(event: Event): void {
    this.hasHeard = true
    if ("toolCallId" in event && endings.has(event._tag)) this.hold.untold.delete(event.toolCallId)
    this.fold.add(event)
    this.sink?.push(event)
  }

  get hasRoom(): boolean {
    return this.sink === undefined || this.sink.hasRoom
  }

  onRoom(proceed: () => void): void {
    this.sink?.onRoom(proceed)
  }

  /** Saves what has happened until the run was cut off. If it cannot be, the run is as one that crashed. */
  keep(prepared: Loop.Prepared): Effect.Effect<void> {
    if (!this.hasHeard) return Effect.void
    return Effect.flatMap(Loop.termsOf(prepared), (terms) => {
      for (const [toolCallId, { outcome, toolName }] of this.hold.untold) {
        for (const event of fromStored({ toolCallId, toolName }, outcome)) this.fold.add(event)
      }
      return this.hold.finish(this.fold.toChat(terms).session)
    }).pipe(
      Effect.catchAllCause((cause) => Effect.logError("a run that was cut off could not be saved; resume it", cause))
    )
  }
}

const endings: ReadonlySet<Event["_tag"]> = new Set<Event["_tag"]>([
  "ToolResultEncoded",
  "AskUserRequested",
  "ToolHalt"
])
