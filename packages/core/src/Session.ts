/**
 * A conversation that outlives a request: a plain value that goes in, and comes out changed.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { dual } from "effect/Function"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import type { ChatError } from "./Allm.ts"
import type { ChatResult } from "./ChatResult.ts"
import type { Engine, Settings } from "./Engine.ts"
import type { Event } from "./Event.ts"
import { Question } from "./Halt.ts"
import * as Issues from "./internal/issues.ts"
import { JsonObject } from "./internal/json.ts"
import { ofSession as by } from "./internal/sessionCaller.ts"
import * as Loop from "./internal/sessionLoop.ts"
import * as Orders from "./internal/sessionOrders.ts"
import { applyChat, applyStep } from "./internal/sessionProjection.ts"
import * as Rules from "./internal/sessionRules.ts"
import { readResult, readSession, sessionIssues } from "./internal/sessionShape.ts"
import { makeTurn } from "./internal/sessionStream.ts"
import * as Submit from "./internal/sessionSubmit.ts"
import type { Content, Message, UserMessage } from "./Message.ts"
import type { SessionError } from "./SessionError.ts"
import type { StepResult } from "./StepResult.ts"
import { empty, Thread } from "./Thread.ts"
import type * as Tool from "./Tool.ts"
import { ToolCall } from "./ToolCall.ts"
import type { EncodingFailed } from "./ToolError.ts"
import { Usage } from "./Usage.ts"
import type { ValidationError } from "./ValidationError.ts"

/**
 * Where a session stands. `idle` and `completed` can go on; the `awaiting_…` ones wait for a person or for the caller; an
 * `error` stops the session until `recover` says otherwise.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Status = Schema.Literal(
  "idle",
  "awaiting_user",
  "awaiting_approval",
  "awaiting_tools",
  "completed",
  "error"
)

/**
 * @since 0.1.0
 * @category models
 */
export type Status = typeof Status.Type

const Text = Schema.optionalWith(Schema.String, { exact: true })

/**
 * What a person decided about a call. It counts once, when the session goes on.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Decision = Schema.Union(
  Schema.TaggedStruct("Approved", { digest: Schema.String }),
  Schema.TaggedStruct("Denied", { reason: Text })
)

/**
 * @since 0.1.0
 * @category models
 */
export type Decision = typeof Decision.Type

/**
 * A call that waits for a person's consent. Consent is bound to `digest`, which is that of the tool's name and the
 * arguments, and counts until `expiresAt`; times are milliseconds of the Clock.
 *
 * @since 0.1.0
 * @category schemas
 */
export const PendingApproval = Schema.Struct({
  toolCall: ToolCall,
  digest: Schema.String,
  requestedAt: Schema.Finite,
  expiresAt: Schema.optionalWith(Schema.Finite, { exact: true }),
  decision: Schema.optionalWith(Decision, { exact: true })
}).annotations({ identifier: "Session.PendingApproval" })

/**
 * @since 0.1.0
 * @category models
 */
export interface PendingApproval extends Schema.Schema.Type<typeof PendingApproval> {}

const listOf = <A, I>(member: Schema.Schema<A, I>) =>
  Schema.optionalWith(Schema.Array(member), { default: () => [] as ReadonlyArray<A> })

/**
 * A session: JSON through and through, in every status. `version` counts how often it was stored, 0 is never.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Session = Schema.Struct({
  id: Schema.NonEmptyString,
  thread: Thread,
  status: Status,
  /** Manual calls: the caller's to run. */
  pendingToolCalls: listOf(ToolCall),
  pendingQuestions: listOf(Question),
  /** Those that wait, and those that are decided but not yet carried out. */
  pendingApprovals: listOf(PendingApproval),
  /** Calls that may or may not have run before a crash, halted for a person to find out. */
  unknownOutcomes: listOf(ToolCall),
  /** Of the whole life of the session. */
  usage: Schema.optionalWith(Usage, { default: () => ({}) }),
  /** Handed to every handler, over the engine's. */
  context: Schema.optionalWith(JsonObject, { default: () => ({}) }),
  metadata: Schema.optionalWith(JsonObject, { default: () => ({}) }),
  version: Schema.optionalWith(Schema.NonNegativeInt, { default: () => 0 })
}).annotations({ identifier: "Session" })

/**
 * @since 0.1.0
 * @category models
 */
export interface Session extends Schema.Schema.Type<typeof Session> {}

/**
 * What an operation gives back: the session it leaves, and what the model and the tools came to.
 *
 * @since 0.1.0
 * @category models
 */
export interface Outcome<A> {
  readonly session: Session
  readonly result: A
}

/**
 * An operation as it happens. `outcome` is there whenever it is asked for: after the last event, or wherever the events
 * were cut off. It then holds the person's message, every completed step and what the tools of the broken one did, and the
 * session is `idle`, never `completed`. It fails only when the operation was refused and nothing happened.
 *
 * @since 0.1.0
 * @category models
 */
export interface Turn<A, E = never, R = never> {
  readonly events: Stream.Stream<Event, E, R>
  readonly outcome: Effect.Effect<Outcome<A>, SessionError | ValidationError>
}

/**
 * The options of a call to the model. They beat the engine's; `context` is merged over the session's.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options<T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>
  extends Settings<Tool.Failure<T>, RE, RH, RP, RO>
{
  /** Tools besides the engine's. One of the same name is replaced. */
  readonly tools?: ReadonlyArray<T> | undefined
  /** What handlers get to see. The session's id unless given; for `start` it is also the new session's id. */
  readonly sessionId?: string | undefined
  readonly requestId?: string | undefined
  /** How long consent to a call counts, from when it is asked for until the call runs. Default 24 hours. */
  readonly approvalTimeout?: Duration.DurationInput | undefined
}

/**
 * What a session can start with. One that exists already goes on as with `continue`.
 *
 * @since 0.1.0
 * @category models
 */
export type Input = string | ReadonlyArray<Message> | Thread | Session

type Needs<T extends Tool.Any, R> = Engine | Tool.Requirements<T> | R

/**
 * Makes a session. Throws a `ValidationError` when a field does not fit.
 *
 * @example
 * ```ts
 * import { Session } from "@allm/core"
 *
 * const session = Session.make({ id: "s1", context: { userId: "u7" } })
 *
 * assert.strictEqual(session.status, "idle")
 * assert.deepStrictEqual(session.thread.messages, [])
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (fields: Partial<Session> & { readonly id: string }): Session =>
  Either.getOrThrowWith(validate({ thread: empty, status: "idle", ...fields }), (error) => error)

/**
 * Checks a value of unknown origin and reports every problem with it.
 *
 * @since 0.1.0
 * @category decoding
 */
export const validate = (input: unknown): Either.Either<Session, ValidationError> =>
  Issues.decode("invalid_session", Session, sessionIssues(input), input)

/**
 * Tells whether a value is a session.
 *
 * @since 0.1.0
 * @category guards
 */
export const isSession: (value: unknown) => value is Session = Schema.is(Session)

/**
 * Adds messages as they are, whatever the status: for history that comes from elsewhere. Throws a `ValidationError` when it
 * is given something that is no session.
 *
 * @since 0.1.0
 * @category combinators
 */
export const append: {
  (messages: Message | ReadonlyArray<Message>): (self: Session) => Session
  (self: Session, messages: Message | ReadonlyArray<Message>): Session
} = dual(2, (self: Session, messages: Message | ReadonlyArray<Message>): Session => {
  // Histories are built one message at a time, so each of these looks at no more than it needs.
  const isFit = Array.isArray((self as Partial<Session> | undefined)?.thread?.messages)
  const { thread } = isFit ? self : Either.getOrThrowWith(readSession("Session.append", self), (error) => error)
  return { ...self, thread: { ...thread, messages: thread.messages.concat(messages) } }
})

/**
 * What consent to a call is bound to: the SHA-256 of the tool's name and its arguments, whatever the order of their keys.
 *
 * @since 0.1.0
 * @category combinators
 */
export const digest = (call: ToolCall): string => Rules.digest(call)

// --- asking the model ---------------------------------------------------------------------------------------------------

/**
 * Starts a session with what is said first, and chats until the model is done or something has to be answered.
 *
 * @example
 * ```ts
 * import { Fake, Session } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const first = yield* Session.start("Hi", { sessionId: "s1" })
 *   return yield* Session.reply(first.session, "And who are you?")
 * }).pipe(
 *   Effect.provide(Fake.engine({
 *     scripts: [
 *       [Fake.text("Hello"), Fake.finish("stop")],
 *       [Fake.text("A model"), Fake.finish("stop")]
 *     ]
 *   }))
 * )
 *
 * const { result, session } = Effect.runSync(program)
 *
 * assert.strictEqual(result.finalResponse.outputText, "A model")
 * assert.strictEqual(session.status, "completed")
 * assert.strictEqual(session.thread.messages.length, 4)
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const start = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  input: Input,
  options?: Options<T, RE, RH, RP, RO>
): Effect.Effect<Outcome<ChatResult>, ChatError | SessionError, Needs<T, RE | RH | RP | RO>> =>
  Orders.chat(Orders.started(by("start"), input, options))

/**
 * Says something to the model, also in answer to the questions of a session that is `awaiting_user`.
 *
 * @since 0.1.0
 * @category running
 */
export const reply = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  session: Session,
  text: Content | UserMessage,
  options?: Options<T, RE, RH, RP, RO>
): Effect.Effect<Outcome<ChatResult>, ChatError | SessionError, Needs<T, RE | RH | RP | RO>> =>
  Orders.chat(Orders.replied(by("reply"), session, text, options))

const continue_ = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  session: Session,
  options?: Options<T, RE, RH, RP, RO>
): Effect.Effect<Outcome<ChatResult>, ChatError | SessionError, Needs<T, RE | RH | RP | RO>> =>
  Orders.chat(Orders.driven(by("continue"), session, "continue", undefined, options))

export {
  /**
   * Goes on without anything new being said: after everything pending was answered, or after a crash. Calls that were
   * approved, and those that a crash left without a result, run first. Once they ran, a failure of the model is told in the
   * result, so that what they did is never lost.
   *
   * @since 0.1.0
   * @category running
   */
  continue_ as continue
}

/**
 * Takes one turn. When calls of the last one have yet to run, they are that turn, and the model is not asked.
 *
 * @since 0.1.0
 * @category running
 */
export const step = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  session: Session,
  options?: Options<T, RE, RH, RP, RO>
): Effect.Effect<Outcome<StepResult>, ChatError | SessionError, Needs<T, RE | RH | RP | RO>> =>
  Effect.flatMap(
    Orders.driven(by("step"), session, "step", undefined, options),
    (prepared) => Loop.driveStep(prepared, undefined)
  )

/**
 * Like `start`, as it happens.
 *
 * @example
 * ```ts
 * import { Fake, Session } from "@allm/core"
 * import { Effect, Stream } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const turn = Session.streamStart("Tell me a story")
 *   yield* Stream.runDrain(Stream.take(turn.events, 2))
 *   return yield* turn.outcome
 * }).pipe(
 *   Effect.provide(Fake.engine({ script: [Fake.text("Once"), Fake.delay("1 hour"), Fake.finish("stop")] }))
 * )
 *
 * const { result, session } = await Effect.runPromise(program)
 *
 * assert.strictEqual(result.haltedReason, "cancelled")
 * assert.strictEqual(session.status, "idle")
 * assert.strictEqual(session.thread.messages[0]?.content, "Tell me a story")
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const streamStart = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  input: Input,
  options?: Options<T, RE, RH, RP, RO>
): Turn<ChatResult, ChatError | SessionError, Needs<T, RE | RH | RP | RO>> =>
  Orders.chatTurn(Orders.started(by("streamStart"), input, options))

/**
 * Like `reply`, as it happens.
 *
 * @since 0.1.0
 * @category running
 */
export const streamReply = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  session: Session,
  text: Content | UserMessage,
  options?: Options<T, RE, RH, RP, RO>
): Turn<ChatResult, ChatError | SessionError, Needs<T, RE | RH | RP | RO>> =>
  Orders.chatTurn(Orders.replied(by("streamReply"), session, text, options))

/**
 * Like `continue`, as it happens.
 *
 * @since 0.1.0
 * @category running
 */
export const streamContinue = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  session: Session,
  options?: Options<T, RE, RH, RP, RO>
): Turn<ChatResult, ChatError | SessionError, Needs<T, RE | RH | RP | RO>> =>
  Orders.chatTurn(Orders.driven(by("streamContinue"), session, "continue", undefined, options))

/**
 * Like `step`, as it happens.
 *
 * @since 0.1.0
 * @category running
 */
export const streamStep = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  session: Session,
  options?: Options<T, RE, RH, RP, RO>
): Turn<StepResult, ChatError | SessionError, Needs<T, RE | RH | RP | RO>> =>
  makeTurn(
    Orders.driven(by("streamStep"), session, "step", undefined, options),
    Loop.driveStep,
    (fold, terms) => fold.toStep(terms)
  )

// --- answering what is pending ------------------------------------------------------------------------------------------

/**
 * Answers the question of one call: the answer becomes that call's own result. Ask the model afterwards with `continue`.
 *
 * @since 0.1.0
 * @category combinators
 */
export const answer = (
  session: Session,
  toolCallId: string,
  value: unknown
): Effect.Effect<Session, SessionError | ValidationError | EncodingFailed> =>
  Submit.answer(by("answer"), session, toolCallId, value)

/**
 * Gives the result of a manual call.
 *
 * @since 0.1.0
 * @category combinators
 */
export const submitToolResult = (
  session: Session,
  toolCallId: string,
  result: unknown,
  options?: { readonly isError?: boolean | undefined }
): Effect.Effect<Session, SessionError | ValidationError | EncodingFailed> =>
  Submit.submit(by("submitToolResult"), session, toolCallId, result, options)

/**
 * Gives the results of several manual calls, all of them or none.
 *
 * @since 0.1.0
 * @category combinators
 */
export const submitToolResults = (
  session: Session,
  results: Iterable<readonly [toolCallId: string, result: unknown]>
): Effect.Effect<Session, SessionError | ValidationError | EncodingFailed> =>
  Submit.submitAll(by("submitToolResults"), session, Submit.readResults(results))

/**
 * Consents to a call, which runs when the session goes on. `digest` is the digest of what the person was shown: consent to
 * anything else is refused.
 *
 * @since 0.1.0
 * @category combinators
 */
export const approve = (
  session: Session,
  toolCallId: string,
  options?: { readonly digest?: string | undefined }
): Effect.Effect<Session, SessionError | ValidationError> => Submit.approve(by("approve"), session, toolCallId, options)

/**
 * Refuses a call. When the session goes on, the model is told, and told why. Consent that was not used yet is taken back.
 *
 * @since 0.1.0
 * @category combinators
 */
export const deny = (
  session: Session,
  toolCallId: string,
  options?: { readonly reason?: string | undefined }
): Effect.Effect<Session, SessionError | ValidationError> => Submit.deny(by("deny"), session, toolCallId, options)

/**
 * Says what became of a call of which nobody could know whether it took effect. When it was the last one, the session is out
 * of its error.
 *
 * @since 0.1.0
 * @category combinators
 */
export const resolve = (
  session: Session,
  toolCallId: string,
  result: unknown,
  options?: { readonly isError?: boolean | undefined }
): Effect.Effect<Session, SessionError | ValidationError | EncodingFailed> =>
  Submit.resolve(by("resolve"), session, toolCallId, result, options)

/**
 * Takes a session out of its error, with history as it is: what is pending waits again, else the session is `idle`.
 *
 * @since 0.1.0
 * @category combinators
 */
export const recover = (session: Session): Effect.Effect<Session, SessionError | ValidationError> =>
  Submit.recover(by("recover"), session)

/**
 * What a result makes of the session it came from: for a `CallbackFailed`, whose `result` holds everything up to there, and
 * for loops of your own.
 *
 * @since 0.1.0
 * @category combinators
 */
export const apply = (
  session: Session,
  result: ChatResult | StepResult
): Effect.Effect<Session, ValidationError> =>
  Effect.gen(function*() {
    yield* readSession("Session.apply", session)
    yield* readResult("Session.apply", result)
    const terms = { now: yield* Clock.currentTimeMillis, approvalTimeout: Loop.defaultApprovalTimeout }
    return "steps" in result ? applyChat(session, result, terms) : applyStep(session, result, terms)
  })
