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
 * Where a session stands, and so which operations it takes.
 *
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
 * Consent to a call or its refusal, not yet carried out.
 *
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
 * A call that a person has to decide on, and the decision once there is one.
 *
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
 * A conversation as plain data: what was said, where it stands, and what it waits for.
 *
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
 * @example
 * ```ts
 * import { Session } from "@allm/core"
 * import { Either } from "effect"
 *
 * const stored = JSON.stringify(Session.make({ id: "s1" }))
 *
 * assert.strictEqual(Either.isRight(Session.validate(JSON.parse(stored))), true)
 * assert.strictEqual(Either.isLeft(Session.validate({ id: "s1" })), true)
 * ```
 *
 * @since 0.1.0
 * @category decoding
 */
export const validate = (input: unknown): Either.Either<Session, ValidationError> =>
  Issues.decode("invalid_session", Session, sessionIssues(input), input)

/**
 * Tells whether a value is a session.
 *
 * @example
 * ```ts
 * import { Session } from "@allm/core"
 *
 * assert.strictEqual(Session.isSession(Session.make({ id: "s1" })), true)
 * assert.strictEqual(Session.isSession({ id: "s1" }), false)
 * ```
 *
 * @since 0.1.0
 * @category guards
 */
export const isSession: (value: unknown) => value is Session = Schema.is(Session)

/**
 * Adds messages as they are, whatever the status: for history that comes from elsewhere. Throws a `ValidationError` when it
 * is given something that is no session.
 *
 * @example
 * ```ts
 * import { Message, Session } from "@allm/core"
 *
 * const session = Session.append(Session.make({ id: "s1" }), [Message.user("Hi"), Message.assistant("Hello")])
 *
 * assert.strictEqual(session.thread.messages.length, 2)
 * assert.strictEqual(session.status, "idle")
 * ```
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
 * @example
 * ```ts
 * import { Session, ToolCall } from "@allm/core"
 *
 * const shown = ToolCall.make({ id: "c0", name: "pay", arguments: { amount: 10, to: "Ann" } })
 * const made = ToolCall.make({ id: "c0", name: "pay", arguments: { to: "Ann", amount: 10 } })
 * const other = ToolCall.make({ id: "c0", name: "pay", arguments: { to: "Ann", amount: 1000 } })
 *
 * assert.strictEqual(Session.digest(made), Session.digest(shown))
 * assert.notStrictEqual(Session.digest(other), Session.digest(shown))
 * ```
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
 * @example
 * ```ts
 * import { Fake, Message, Session, Thread } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const first = Session.make({
 *   id: "s1",
 *   thread: Thread.make([Message.user("Hi"), Message.assistant("Hello")])
 * })
 * const program = Session.reply(first, "And who are you?").pipe(
 *   Effect.provide(Fake.engine({ script: [Fake.text("A model"), Fake.finish("stop")] }))
 * )
 *
 * const { result, session } = Effect.runSync(program)
 *
 * assert.strictEqual(result.finalResponse.outputText, "A model")
 * assert.strictEqual(session.thread.messages.length, 4)
 * ```
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
   * The example of {@link answer} goes on with it.
   *
   * @since 0.1.0
   * @category running
   */
  continue_ as continue
}

/**
 * Takes one turn. When calls of the last one have yet to run, they are that turn, and the model is not asked.
 *
 * @example
 * ```ts
 * import { Fake, Message, Session, Tool } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const ping = Tool.make("ping", { description: "Answers", handler: () => "pong" })
 * const asked = Session.append(Session.make({ id: "s1" }), Message.user("Play with me"))
 *
 * const program = Session.step(asked).pipe(
 *   Effect.provide(Fake.engine({
 *     tools: [ping],
 *     script: [Fake.toolCall({ id: "c0", name: "ping" }), Fake.finish("tool_calls")]
 *   }))
 * )
 *
 * const { result, session } = Effect.runSync(program)
 *
 * assert.strictEqual(result.done, false)
 * assert.strictEqual(session.thread.messages.at(-1)?.content, "pong")
 * ```
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
 * @example
 * ```ts
 * import { Fake, Session } from "@allm/core"
 * import { Effect, Stream } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const turn = Session.streamReply(Session.make({ id: "s1" }), "Hi")
 *   yield* Stream.runDrain(turn.events)
 *   return yield* turn.outcome
 * }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("Hello"), Fake.finish("stop")] })))
 *
 * const { session } = await Effect.runPromise(program)
 *
 * assert.strictEqual(session.status, "completed")
 * ```
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
 * @example
 * ```ts
 * import { Fake, Message, Session } from "@allm/core"
 * import { Effect, Stream } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const turn = Session.streamContinue(Session.append(Session.make({ id: "s1" }), Message.user("Hi")))
 *   yield* Stream.runDrain(turn.events)
 *   return yield* turn.outcome
 * }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("Hello"), Fake.finish("stop")] })))
 *
 * const { result } = await Effect.runPromise(program)
 *
 * assert.strictEqual(result.finalResponse.outputText, "Hello")
 * ```
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
 * @example
 * ```ts
 * import { Fake, Message, Session } from "@allm/core"
 * import { Effect, Stream } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const turn = Session.streamStep(Session.append(Session.make({ id: "s1" }), Message.user("Hi")))
 *   yield* Stream.runDrain(turn.events)
 *   return yield* turn.outcome
 * }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("Hello"), Fake.finish("stop")] })))
 *
 * const { result } = await Effect.runPromise(program)
 *
 * assert.strictEqual(result.done, true)
 * ```
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
 * @example
 * ```ts
 * import { Fake, Session, Tool, ToolResult } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const askCity = Tool.make("ask_city", { description: "Asks", handler: () => ToolResult.askUser("Which city?") })
 *
 * const program = Effect.gen(function*() {
 *   const { session } = yield* Session.start("How is the weather?")
 *   const answered = yield* Session.answer(session, session.pendingQuestions[0]!.toolCallId, "Oslo")
 *   return yield* Session.continue(answered)
 * }).pipe(Effect.provide(Fake.engine({
 *   tools: [askCity],
 *   scripts: [
 *     [Fake.toolCall({ id: "c0", name: "ask_city" }), Fake.finish("tool_calls")],
 *     [Fake.text("Sunny in Oslo."), Fake.finish("stop")]
 *   ]
 * })))
 *
 * assert.strictEqual(Effect.runSync(program).session.status, "completed")
 * ```
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
 * @example
 * ```ts
 * import { Message, Session, Thread, ToolCall } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const call = ToolCall.make({ id: "c0", name: "locate", arguments: {} })
 * const waiting = Session.make({
 *   id: "s1",
 *   status: "awaiting_tools",
 *   thread: Thread.make([Message.user("Where am I?"), Message.assistant("", { toolCalls: [call] })]),
 *   pendingToolCalls: [call]
 * })
 *
 * const session = Effect.runSync(Session.submitToolResult(waiting, "c0", { city: "Oslo" }))
 *
 * assert.strictEqual(session.thread.messages.at(-1)?.content, "{\"city\":\"Oslo\"}")
 * assert.strictEqual(session.status, "idle")
 * ```
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
 * @example
 * ```ts
 * import { Message, Session, Thread, ToolCall } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const calls = ["c0", "c1"].map((id) => ToolCall.make({ id, name: "locate", arguments: {} }))
 * const waiting = Session.make({
 *   id: "s1",
 *   status: "awaiting_tools",
 *   thread: Thread.make([Message.user("Where are we?"), Message.assistant("", { toolCalls: calls })]),
 *   pendingToolCalls: calls
 * })
 *
 * const session = Effect.runSync(Session.submitToolResults(waiting, [["c0", "Oslo"], ["c1", "Rome"]]))
 *
 * assert.deepStrictEqual(session.pendingToolCalls, [])
 * ```
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
 * @example
 * ```ts
 * import { Message, Session, Thread, ToolCall } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const call = ToolCall.make({ id: "c0", name: "pay", arguments: { amount: 10 } })
 * const digest = Session.digest(call)
 * const waiting = Session.make({
 *   id: "s1",
 *   status: "awaiting_approval",
 *   thread: Thread.make([Message.user("Pay Ann"), Message.assistant("", { toolCalls: [call] })]),
 *   pendingApprovals: [{ toolCall: call, digest, requestedAt: 0 }]
 * })
 *
 * const session = Effect.runSync(Session.approve(waiting, "c0", { digest }))
 *
 * assert.deepStrictEqual(session.pendingApprovals[0]?.decision, { _tag: "Approved", digest })
 * ```
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
 * @example
 * ```ts
 * import { Message, Session, Thread, ToolCall } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const call = ToolCall.make({ id: "c0", name: "pay", arguments: { amount: 10 } })
 * const waiting = Session.make({
 *   id: "s1",
 *   status: "awaiting_approval",
 *   thread: Thread.make([Message.user("Pay Ann"), Message.assistant("", { toolCalls: [call] })]),
 *   pendingApprovals: [{ toolCall: call, digest: Session.digest(call), requestedAt: 0 }]
 * })
 *
 * const session = Effect.runSync(Session.deny(waiting, "c0", { reason: "too much" }))
 *
 * assert.deepStrictEqual(session.pendingApprovals[0]?.decision, { _tag: "Denied", reason: "too much" })
 * ```
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
 * @example
 * ```ts
 * import { Message, Session, Thread, ToolCall } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const call = ToolCall.make({ id: "c0", name: "pay", arguments: { amount: 10 } })
 * const inDoubt = Session.make({
 *   id: "s1",
 *   status: "error",
 *   thread: Thread.make([Message.user("Pay Ann"), Message.assistant("", { toolCalls: [call] })]),
 *   unknownOutcomes: [call],
 *   metadata: { error: "the process died" }
 * })
 *
 * const session = Effect.runSync(Session.resolve(inDoubt, "c0", "it was paid"))
 *
 * assert.strictEqual(session.thread.messages.at(-1)?.content, "it was paid")
 * assert.strictEqual(session.status, "idle")
 * ```
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
 * @example
 * ```ts
 * import { Message, Session, Thread } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const broken = Session.make({
 *   id: "s1",
 *   status: "error",
 *   thread: Thread.make([Message.user("Hi")]),
 *   metadata: { error: "the disk was full" }
 * })
 *
 * assert.strictEqual(Effect.runSync(Session.recover(broken)).status, "idle")
 * ```
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
 * @example
 * ```ts
 * import { Allm, Fake, Message, Session } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const session = Session.append(Session.make({ id: "s1" }), Message.user("Hi"))
 *
 * const program = Allm.chat(session.thread).pipe(
 *   Effect.flatMap((result) => Session.apply(session, result)),
 *   Effect.provide(Fake.engine({ script: [Fake.text("Hello"), Fake.finish("stop")] }))
 * )
 *
 * const { status, thread } = Effect.runSync(program)
 *
 * assert.strictEqual(status, "completed")
 * assert.strictEqual(thread.messages.length, 2)
 * ```
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
