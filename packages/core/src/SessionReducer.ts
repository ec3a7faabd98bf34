/**
 * Folding the events of a turn into the session it leaves, where only the events are at hand: at the other end of a wire.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { ChatResult } from "./ChatResult.ts"
import type { Event } from "./Event.ts"
import { defaultApprovalTimeout } from "./internal/sessionLoop.ts"
import { readSession } from "./internal/sessionShape.ts"
import { TurnFold } from "./internal/sessionTurn.ts"
import type { Outcome, Session } from "./Session.ts"
import type { StepResult } from "./StepResult.ts"

/**
 * What the events have made of a session so far. It changes as events are added: one reducer belongs to one turn.
 *
 * @since 0.1.0
 * @category models
 */
export interface SessionReducer {
  readonly "~@allm/core/SessionReducer": TurnFold
}

/**
 * Makes a reducer of the session as it was when the events began, with what the person said. Throws a `ValidationError` when
 * it is given something that is no session.
 *
 * @example
 * ```ts
 * import { Event, Message, Session, SessionReducer } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const session = Session.append(Session.make({ id: "s1" }), Message.user("Hi"))
 * const events: ReadonlyArray<Event.Event> = [{ _tag: "MessageStarted" }, { _tag: "TextDelta", delta: "Hel" }]
 *
 * const reducer = events.reduce(SessionReducer.add, SessionReducer.make(session))
 * const { result, session: cut } = Effect.runSync(SessionReducer.toChatOutcome(reducer))
 *
 * assert.strictEqual(result.haltedReason, "cancelled")
 * assert.deepStrictEqual(cut, session)
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (session: Session): SessionReducer => ({
  "~@allm/core/SessionReducer": new TurnFold(
    Either.getOrThrowWith(readSession("SessionReducer.make", session), (error) => error)
  )
})

/**
 * Adds an event. Total: what it does not know, it leaves out.
 *
 * @example
 * ```ts
 * import { Allm, Fake, Message, Session, SessionReducer } from "@allm/core"
 * import { Effect, Stream } from "effect"
 *
 * const session = Session.append(Session.make({ id: "s1" }), Message.user("Hi"))
 *
 * const program = Effect.gen(function*() {
 *   const reducer = SessionReducer.make(session)
 *   yield* Stream.runForEach(
 *     Allm.stream(session.thread),
 *     (event) => Effect.sync(() => SessionReducer.add(reducer, event))
 *   )
 *   return yield* SessionReducer.toChatOutcome(reducer)
 * }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("Hello"), Fake.finish("stop")] })))
 *
 * assert.strictEqual((await Effect.runPromise(program)).session.status, "completed")
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const add = (self: SessionReducer, event: Event): SessionReducer => {
  self["~@allm/core/SessionReducer"].add(event)
  return self
}

const termsNow = Effect.map(Clock.currentTimeMillis, (now) => ({ now, approvalTimeout: defaultApprovalTimeout }))

/**
 * The session and the chat so far. What was cut off is `cancelled`, or an `error` if there was one; never `completed`.
 *
 * @example
 * ```ts
 * import { Message, Session, SessionReducer } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const session = Session.append(Session.make({ id: "s1" }), Message.user("Hi"))
 * const reducer = SessionReducer.add(SessionReducer.make(session), { _tag: "TextDelta", delta: "Hel" })
 *
 * const { result } = Effect.runSync(SessionReducer.toChatOutcome(reducer))
 *
 * assert.strictEqual(result.haltedReason, "cancelled")
 * assert.strictEqual(result.finalResponse.outputText, "Hel")
 * ```
 *
 * @since 0.1.0
 * @category decoding
 */
export const toChatOutcome = (self: SessionReducer): Effect.Effect<Outcome<ChatResult>> =>
  Effect.map(termsNow, (terms) => self["~@allm/core/SessionReducer"].toChat(terms))

/**
 * The session and the turn so far; of one that was cut off, `done` is false.
 *
 * @example
 * ```ts
 * import { Message, Session, SessionReducer } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const session = Session.append(Session.make({ id: "s1" }), Message.user("Hi"))
 * const reducer = SessionReducer.add(SessionReducer.make(session), { _tag: "TextDelta", delta: "Hel" })
 *
 * const { result } = Effect.runSync(SessionReducer.toStepOutcome(reducer))
 *
 * assert.strictEqual(result.done, false)
 * assert.strictEqual(result.response.outputText, "Hel")
 * ```
 *
 * @since 0.1.0
 * @category decoding
 */
export const toStepOutcome = (self: SessionReducer): Effect.Effect<Outcome<StepResult>> =>
  Effect.map(termsNow, (terms) => self["~@allm/core/SessionReducer"].toStep(terms))
