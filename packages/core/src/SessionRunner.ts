/**
 * The everyday loop of a server: load a session, be the only one who works on it, run or resume it, save it, let go of it.
 *
 * Whatever happens is saved before anything is built upon it: what a person said before the model is asked, the answer of
 * the model before its calls are run, each finished turn before the next. So a process may die at any point, and `resume`
 * goes on from there: calls that ended are answered from the journal, not run again.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Stream from "effect/Stream"
import type { ChatError } from "./Allm.ts"
import type { ChatResult } from "./ChatResult.ts"
import type { Engine } from "./Engine.ts"
import type { Event } from "./Event.ts"
import { type Sink, streamed } from "./internal/handover.ts"
import { runnerSettings } from "./internal/runnerOptions.ts"
import { type Caller, nameOf, ofRunner as by } from "./internal/sessionCaller.ts"
import * as Drive from "./internal/sessionDrive.ts"
import { type Hold, NotSaved, type Stop } from "./internal/sessionHold.ts"
import { holder } from "./internal/sessionHolder.ts"
import { readMessage } from "./internal/sessionInput.ts"
import { makeId, type Prepared } from "./internal/sessionLoop.ts"
import * as Orders from "./internal/sessionOrders.ts"
import * as Submit from "./internal/sessionSubmit.ts"
import { isUnfinished } from "./internal/sessionThread.ts"
import type { Content, UserMessage } from "./Message.ts"
import type * as Session from "./Session.ts"
import type { SessionError } from "./SessionError.ts"
import { type LeaseHeld, type LeaseLost, SessionLease } from "./SessionLease.ts"
import { type NotFound, SessionStore } from "./SessionStore.ts"
import type { StoreError } from "./StoreError.ts"
import type * as Tool from "./Tool.ts"
import type { EncodingFailed } from "./ToolError.ts"
import { type JournalError, ToolJournal } from "./ToolJournal.ts"
import type { ValidationError } from "./ValidationError.ts"

export {
  /**
   * Something was done to a session that could not be saved: `error` says why, and `session` is what was to be saved, so
   * that nothing is lost. In the middle of a run nothing was built upon it: no model was asked and no tool was run.
   *
   * @since 0.1.0
   * @category errors
   */
  NotSaved
}

/**
 * Everything that can keep a runner from its work: somebody else has the session, the runner's own right to it ran out, it
 * is not stored, it could not be saved, or a store or the journal does not answer.
 *
 * @since 0.1.0
 * @category errors
 */
export type RunnerError = LeaseHeld | LeaseLost | NotFound | NotSaved | StoreError | JournalError

/**
 * How a runner holds sessions: under which name, for how long, and how long it waits for one.
 *
 * @since 0.1.0
 * @category models
 */
export interface RunnerOptions {
  /** A name by which people know this process. Made up unless given. */
  readonly holder?: string | undefined
  /**
   * How long a session stays with a process that died. While a process lives it renews its right every third of this
   * time. Default 30 seconds.
   */
  readonly leaseDuration?: Duration.DurationInput | undefined
  /** How long to wait for a session that somebody else works on; 0 fails at once. Default 10 seconds. */
  readonly wait?: Duration.DurationInput | undefined
}

/**
 * The options of a run. They beat the engine's; `context` is merged over the session's.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options<T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>
  extends Omit<Session.Options<T, RE, RH, RP, RO>, "sessionId">
{}

/**
 * A session in somebody's hands; what can be done to it are the functions of this module.
 *
 * @since 0.1.0
 * @category models
 */
export interface Held {
  readonly "~@allm/core/SessionRunner": Hold
}

/**
 * Gives sessions into the hands of one at a time.
 *
 * @since 0.1.0
 * @category services
 */
export class SessionRunner extends Context.Tag("@allm/core/SessionRunner")<SessionRunner, {
  /**
   * Waits for the session, holds it while `use` works, and lets go of it, however that ends. The lease is renewed all the
   * while.
   */
  readonly hold: <A, E, R>(
    sessionId: string,
    use: (held: Held) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | LeaseHeld | StoreError, R>
}>() {}

/**
 * Provides a runner. Wrong options throw a `ValidationError` at once.
 *
 * @example
 * ```ts
 * import { Fake, SessionLease, SessionRunner, SessionStore, ToolJournal } from "@allm/core"
 * import { Effect, Layer } from "effect"
 *
 * const Stores = Layer.mergeAll(SessionStore.layerMemory, SessionLease.layerMemory, ToolJournal.layerMemory)
 * const Runner = SessionRunner.layer({ leaseDuration: "1 minute" }).pipe(Layer.provideMerge(Stores))
 * const Model = Fake.engine({
 *   scripts: [
 *     [Fake.text("Hello"), Fake.finish("stop")],
 *     [Fake.text("A model"), Fake.finish("stop")]
 *   ]
 * })
 *
 * const program = Effect.gen(function*() {
 *   yield* SessionRunner.start("s1", "Hi")
 *   return yield* SessionRunner.reply("s1", "And who are you?")
 * }).pipe(Effect.provide(Layer.merge(Runner, Model)))
 *
 * Effect.runPromise(program).then(({ result, session }) => {
 *   assert.strictEqual(result.finalResponse.outputText, "A model")
 *   assert.strictEqual(session.thread.messages.length, 4)
 * })
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: RunnerOptions = {}
): Layer.Layer<SessionRunner, never, SessionStore | SessionLease | ToolJournal> => {
  const settings = runnerSettings(options)
  return Layer.effect(
    SessionRunner,
    Effect.gen(function*() {
      const stores = { store: yield* SessionStore, leases: yield* SessionLease, journal: yield* ToolJournal }
      const hold = holder(stores, options.holder ?? `runner ${yield* makeId}`, settings)
      return SessionRunner.of({
        hold: (sessionId, use) => hold(sessionId, (held) => use({ "~@allm/core/SessionRunner": held }))
      })
    })
  )
}

type Running = ChatError | SessionError | RunnerError

type Needs<T extends Tool.Any, R> = SessionRunner | Engine | Tool.Requirements<T> | R

const holding = <A, E, R>(
  caller: Caller,
  sessionId: string,
  use: (hold: Hold) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | LeaseHeld | StoreError, R | SessionRunner> =>
  Effect.withSpan(
    Effect.flatMap(SessionRunner, (runner) => runner.hold(sessionId, (held) => use(held["~@allm/core/SessionRunner"]))),
    nameOf(caller),
    { attributes: { "gen_ai.conversation.id": sessionId } }
  )

/** Runs what an order makes of the stored session. */
const ordered = (
  caller: Caller,
  sessionId: string,
  order: (session: Session.Session) => Effect.Effect<Prepared, SessionError | ValidationError>,
  sink: Sink<Event> | undefined
): Effect.Effect<Session.Outcome<ChatResult>, Running, SessionRunner | Engine> =>
  holding(
    caller,
    sessionId,
    (hold) => Effect.flatMap(hold.change(order), ([prepared]) => Drive.drive(hold, prepared, sink))
  )

// --- asking the model ---------------------------------------------------------------------------------------------------

/**
 * What a session can start with. Of a session, everything but its id and version counts.
 *
 * @since 0.1.0
 * @category models
 */
export type Input = Session.Input

const starting = (
  caller: Caller,
  sessionId: string,
  input: Input,
  options: object | undefined,
  sink: Sink<Event> | undefined
): Effect.Effect<Session.Outcome<ChatResult>, Running, SessionRunner | Engine> =>
  Effect.flatMap(
    Orders.opened(caller, input, sessionId),
    (session) =>
      holding(caller, sessionId, (hold) =>
        Effect.flatMap(
          Orders.driven(caller, { ...session, id: sessionId, version: 0 }, "start", undefined, options),
          (prepared) => Effect.zipRight(hold.begin(caller, prepared.session), Drive.drive(hold, prepared, sink))
        ))
  )

/**
 * Starts a session under a new id. When there is one already, fails with `NotSaved`, whose error is a `Conflict`.
 *
 * @example
 * ```ts
 * import { Fake, SessionLease, SessionRunner, SessionStore, ToolJournal } from "@allm/core"
 * import { Effect, Layer } from "effect"
 *
 * const Stores = Layer.mergeAll(SessionStore.layerMemory, SessionLease.layerMemory, ToolJournal.layerMemory)
 * const Runner = Layer.provide(SessionRunner.layer(), Stores)
 * const Model = Fake.engine({ script: [Fake.text("Hello"), Fake.finish("stop")] })
 *
 * const program = Effect.provide(SessionRunner.start("s1", "Hi"), Layer.merge(Runner, Model))
 *
 * const { session } = await Effect.runPromise(program)
 *
 * assert.strictEqual(session.status, "completed")
 * assert.ok(session.version > 0)
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const start = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  sessionId: string,
  input: Input,
  options?: Options<T, RE, RH, RP, RO>
): Effect.Effect<Session.Outcome<ChatResult>, Running, Needs<T, RE | RH | RP | RO>> =>
  starting(by("start"), sessionId, input, options, undefined)

/**
 * Says something to the model, also in answer to the questions of a session that is `awaiting_user`. Once it is saved it
 * stays said: when the model fails afterwards, go on with `resume`, and do not say it again.
 *
 * @example
 * ```ts
 * import { Fake, SessionLease, SessionRunner, SessionStore, ToolJournal } from "@allm/core"
 * import { Effect, Layer } from "effect"
 *
 * const Stores = Layer.mergeAll(SessionStore.layerMemory, SessionLease.layerMemory, ToolJournal.layerMemory)
 * const Runner = Layer.provide(SessionRunner.layer(), Stores)
 * const Model = Fake.engine({
 *   respond: ({ messages }) => [Fake.text(`Message ${messages.length}`), Fake.finish("stop")]
 * })
 *
 * const program = Effect.gen(function*() {
 *   yield* SessionRunner.start("s1", "Hi")
 *   return yield* SessionRunner.reply("s1", "And now?")
 * }).pipe(Effect.provide(Layer.merge(Runner, Model)))
 *
 * assert.strictEqual((await Effect.runPromise(program)).result.finalResponse.outputText, "Message 3")
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const reply = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  sessionId: string,
  text: Content | UserMessage,
  options?: Options<T, RE, RH, RP, RO>
): Effect.Effect<Session.Outcome<ChatResult>, Running, Needs<T, RE | RH | RP | RO>> =>
  replying(by("reply"), sessionId, text, options, undefined)

const replying = (
  caller: Caller,
  sessionId: string,
  text: Content | UserMessage,
  options: object | undefined,
  sink: Sink<Event> | undefined
): Effect.Effect<Session.Outcome<ChatResult>, Running, SessionRunner | Engine> =>
  Effect.flatMap(
    readMessage(caller, text),
    (message) =>
      ordered(caller, sessionId, (session) => Orders.driven(caller, session, "reply", message, options), sink)
  )

const continue_ = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  sessionId: string,
  options?: Options<T, RE, RH, RP, RO>
): Effect.Effect<Session.Outcome<ChatResult>, Running, Needs<T, RE | RH | RP | RO>> =>
  continuing(by("continue"), sessionId, options, undefined)

const continuing = (
  caller: Caller,
  sessionId: string,
  options: object | undefined,
  sink: Sink<Event> | undefined
) => ordered(caller, sessionId, (session) => Orders.driven(caller, session, "continue", undefined, options), sink)

export {
  /**
   * Goes on without anything new being said. The model is asked in any case; `resume` asks it only when it still owes an
   * answer.
   *
   * The example of {@link streamContinue} does the same, as it happens.
   *
   * @since 0.1.0
   * @category running
   */
  continue_ as continue
}

/**
 * Goes on where a session was left: by a process that died or was interrupted, by a model that failed, or by a person who
 * has now answered everything. Calls that ended are answered from the journal, those in doubt follow the `replay` of their
 * tools. When nothing is left to do, the session is given as it is, without a result: it may be called any number of times.
 *
 * @example
 * ```ts
 * import { Fake, SessionLease, SessionRunner, SessionStore, ToolJournal } from "@allm/core"
 * import { Effect, Layer } from "effect"
 *
 * const Stores = Layer.mergeAll(SessionStore.layerMemory, SessionLease.layerMemory, ToolJournal.layerMemory)
 * const Runner = Layer.provide(SessionRunner.layer(), Stores)
 * const Model = Fake.engine({
 *   scripts: [[Fake.preflightError("authentication_failed")], [Fake.text("Hello"), Fake.finish("stop")]]
 * })
 *
 * const program = Effect.gen(function*() {
 *   yield* Effect.ignore(SessionRunner.start("s1", "Hi"))
 *   // What was said is saved, so it need not be said again.
 *   return yield* SessionRunner.resume("s1")
 * }).pipe(Effect.provide(Layer.merge(Runner, Model)))
 *
 * assert.strictEqual((await Effect.runPromise(program)).result?.finalResponse.outputText, "Hello")
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const resume = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  sessionId: string,
  options?: Options<T, RE, RH, RP, RO>
): Effect.Effect<Session.Outcome<ChatResult | undefined>, Running, Needs<T, RE | RH | RP | RO>> =>
  holding(by("resume"), sessionId, (hold) =>
    Effect.flatMap(
      hold.change((session): Effect.Effect<Resumed, SessionError | ValidationError> =>
        isUnfinished(session)
          ? Orders.driven(by("resume"), session, "continue", undefined, options)
          : Effect.succeed({ session })
      ),
      ([next, session]): Effect.Effect<Session.Outcome<ChatResult | undefined>, ChatError | Stop, Engine> =>
        "open" in next ? Drive.drive(hold, next, undefined) : Effect.succeed({ session, result: undefined })
    ))

type Resumed = Prepared | { readonly session: Session.Session }

/**
 * Like `start`, as it happens. When the events end without a failure, what they told is saved. Whoever stops reading stops
 * the run, and what has happened until then is saved.
 *
 * @example
 * ```ts
 * import { Fake, SessionLease, SessionRunner, SessionStore, ToolJournal } from "@allm/core"
 * import { Effect, Layer, Option, Stream } from "effect"
 *
 * const Stores = Layer.mergeAll(SessionStore.layerMemory, SessionLease.layerMemory, ToolJournal.layerMemory)
 * const Runner = Layer.provide(SessionRunner.layer(), Stores)
 * const Model = Fake.engine({ script: [Fake.text("Hel"), Fake.text("lo"), Fake.finish("stop")] })
 *
 * const program = SessionRunner.streamStart("s1", "Hi").pipe(
 *   Stream.filterMap((event) => event._tag === "TextDelta" ? Option.some(event.delta) : Option.none()),
 *   Stream.mkString,
 *   Effect.provide(Layer.merge(Runner, Model))
 * )
 *
 * assert.strictEqual(await Effect.runPromise(program), "Hello")
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const streamStart = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  sessionId: string,
  input: Input,
  options?: Options<T, RE, RH, RP, RO>
): Stream.Stream<Event, Running, Needs<T, RE | RH | RP | RO>> =>
  streamed((sink: Sink<Event>) => starting(by("streamStart"), sessionId, input, options, sink))

/**
 * Like `reply`, as it happens. When the events end without a failure, what they told is saved. Whoever stops reading stops
 * the run, and what has happened until then is saved.
 *
 * @example
 * ```ts
 * import { Fake, Session, SessionLease, SessionRunner, SessionStore, ToolJournal } from "@allm/core"
 * import { Effect, Layer, Stream } from "effect"
 *
 * const Stores = Layer.mergeAll(SessionStore.layerMemory, SessionLease.layerMemory, ToolJournal.layerMemory)
 * const Runner = Layer.provideMerge(SessionRunner.layer(), Stores)
 * const Model = Fake.engine({ script: [Fake.text("Hello"), Fake.finish("stop")] })
 *
 * const program = Effect.gen(function*() {
 *   const store = yield* SessionStore.SessionStore
 *   yield* store.save(Session.make({ id: "s1" }))
 *   yield* Stream.runDrain(SessionRunner.streamReply("s1", "Hi"))
 *   return yield* store.load("s1")
 * }).pipe(Effect.provide(Layer.merge(Runner, Model)))
 *
 * assert.strictEqual((await Effect.runPromise(program)).thread.messages.at(-1)?.content, "Hello")
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const streamReply = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  sessionId: string,
  text: Content | UserMessage,
  options?: Options<T, RE, RH, RP, RO>
): Stream.Stream<Event, Running, Needs<T, RE | RH | RP | RO>> =>
  streamed((sink: Sink<Event>) => replying(by("streamReply"), sessionId, text, options, sink))

/**
 * Like `continue`, as it happens. When the events end without a failure, what they told is saved. Whoever stops reading
 * stops the run, and what has happened until then is saved.
 *
 * @example
 * ```ts
 * import { Fake, Message, Session, SessionLease, SessionRunner, SessionStore, ToolJournal } from "@allm/core"
 * import { Effect, Layer, Stream } from "effect"
 *
 * const Stores = Layer.mergeAll(SessionStore.layerMemory, SessionLease.layerMemory, ToolJournal.layerMemory)
 * const Runner = Layer.provideMerge(SessionRunner.layer(), Stores)
 * const Model = Fake.engine({ script: [Fake.text("Hello"), Fake.finish("stop")] })
 *
 * const program = Effect.gen(function*() {
 *   const store = yield* SessionStore.SessionStore
 *   yield* store.save(Session.append(Session.make({ id: "s1" }), Message.user("Hi")))
 *   yield* Stream.runDrain(SessionRunner.streamContinue("s1"))
 *   return yield* store.load("s1")
 * }).pipe(Effect.provide(Layer.merge(Runner, Model)))
 *
 * assert.strictEqual((await Effect.runPromise(program)).status, "completed")
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const streamContinue = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  sessionId: string,
  options?: Options<T, RE, RH, RP, RO>
): Stream.Stream<Event, Running, Needs<T, RE | RH | RP | RO>> =>
  streamed((sink: Sink<Event>) => continuing(by("streamContinue"), sessionId, options, sink))

// --- answering what is pending ------------------------------------------------------------------------------------------

type Submitting = SessionError | ValidationError | RunnerError

const changing = <E, R>(
  operation: string,
  sessionId: string,
  change: (caller: Caller, session: Session.Session) => Effect.Effect<Session.Session, E, R>
): Effect.Effect<Session.Session, E | RunnerError, R | SessionRunner> => {
  const caller = by(operation)
  return holding(caller, sessionId, (hold) =>
    Effect.map(
      hold.change((session) => Effect.map(change(caller, session), (session) => ({ session }))),
      ([, saved]) => saved
    ))
}

/**
 * Answers the question of one call: the answer becomes that call's own result. Go on afterwards with `resume`.
 *
 * @example
 * ```ts
 * import { Fake, SessionLease, SessionRunner, SessionStore, Tool, ToolJournal, ToolResult } from "@allm/core"
 * import { Effect, Layer } from "effect"
 *
 * const askCity = Tool.make("ask_city", { description: "Asks", handler: () => ToolResult.askUser("Which city?") })
 * const Stores = Layer.mergeAll(SessionStore.layerMemory, SessionLease.layerMemory, ToolJournal.layerMemory)
 * const Runner = Layer.provide(SessionRunner.layer(), Stores)
 * const Model = Fake.engine({
 *   tools: [askCity],
 *   scripts: [
 *     [Fake.toolCall({ id: "c0", name: "ask_city" }), Fake.finish("tool_calls")],
 *     [Fake.text("Sunny in Oslo."), Fake.finish("stop")]
 *   ]
 * })
 *
 * const program = Effect.gen(function*() {
 *   yield* SessionRunner.start("s1", "How is the weather?")
 *   yield* SessionRunner.answer("s1", "c0", "Oslo")
 *   return yield* SessionRunner.resume("s1")
 * }).pipe(Effect.provide(Layer.merge(Runner, Model)))
 *
 * assert.strictEqual((await Effect.runPromise(program)).session.status, "completed")
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const answer = (
  sessionId: string,
  toolCallId: string,
  value: unknown
): Effect.Effect<Session.Session, Submitting | EncodingFailed, SessionRunner> =>
  changing("answer", sessionId, (caller, session) => Submit.answer(caller, session, toolCallId, value))

/**
 * Gives the result of a manual call. Go on afterwards with `resume`.
 *
 * @example
 * ```ts
 * import { Message, Session, SessionLease, SessionRunner, SessionStore } from "@allm/core"
 * import { Thread, ToolCall, ToolJournal } from "@allm/core"
 * import { Effect, Layer } from "effect"
 *
 * const call = ToolCall.make({ id: "c0", name: "locate", arguments: {} })
 * const waiting = Session.make({
 *   id: "s1",
 *   status: "awaiting_tools",
 *   thread: Thread.make([Message.user("Where am I?"), Message.assistant("", { toolCalls: [call] })]),
 *   pendingToolCalls: [call]
 * })
 * const Stores = Layer.mergeAll(SessionStore.layerMemory, SessionLease.layerMemory, ToolJournal.layerMemory)
 *
 * const program = Effect.gen(function*() {
 *   const store = yield* SessionStore.SessionStore
 *   yield* store.save(waiting)
 *   return yield* SessionRunner.submitToolResult("s1", "c0", { city: "Oslo" })
 * }).pipe(Effect.provide(Layer.provideMerge(SessionRunner.layer(), Stores)))
 *
 * assert.deepStrictEqual((await Effect.runPromise(program)).pendingToolCalls, [])
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const submitToolResult = (
  sessionId: string,
  toolCallId: string,
  result: unknown,
  options?: { readonly isError?: boolean | undefined }
): Effect.Effect<Session.Session, Submitting | EncodingFailed, SessionRunner> =>
  changing(
    "submitToolResult",
    sessionId,
    (caller, session) => Submit.submit(caller, session, toolCallId, result, options)
  )

/**
 * Gives the results of several manual calls, all of them or none. Go on afterwards with `resume`.
 *
 * @example
 * ```ts
 * import { Message, Session, SessionLease, SessionRunner, SessionStore } from "@allm/core"
 * import { Thread, ToolCall, ToolJournal } from "@allm/core"
 * import { Effect, Layer } from "effect"
 *
 * const calls = ["c0", "c1"].map((id) => ToolCall.make({ id, name: "locate", arguments: {} }))
 * const waiting = Session.make({
 *   id: "s1",
 *   status: "awaiting_tools",
 *   thread: Thread.make([Message.user("Where are we?"), Message.assistant("", { toolCalls: calls })]),
 *   pendingToolCalls: calls
 * })
 * const Stores = Layer.mergeAll(SessionStore.layerMemory, SessionLease.layerMemory, ToolJournal.layerMemory)
 *
 * const program = Effect.gen(function*() {
 *   const store = yield* SessionStore.SessionStore
 *   yield* store.save(waiting)
 *   return yield* SessionRunner.submitToolResults("s1", [["c0", "Oslo"], ["c1", "Rome"]])
 * }).pipe(Effect.provide(Layer.provideMerge(SessionRunner.layer(), Stores)))
 *
 * assert.deepStrictEqual((await Effect.runPromise(program)).pendingToolCalls, [])
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const submitToolResults = (
  sessionId: string,
  results: Iterable<readonly [toolCallId: string, result: unknown]>
): Effect.Effect<Session.Session, Submitting | EncodingFailed, SessionRunner> => {
  const given = Submit.readResults(results)
  return changing("submitToolResults", sessionId, (caller, session) => Submit.submitAll(caller, session, given))
}

/**
 * Consents to a call, which runs when the session goes on with `resume`. `digest` is the digest of what the person was
 * shown.
 *
 * @example
 * ```ts
 * import { Message, Session, SessionLease, SessionRunner, SessionStore } from "@allm/core"
 * import { Thread, ToolCall, ToolJournal } from "@allm/core"
 * import { Effect, Layer } from "effect"
 *
 * const call = ToolCall.make({ id: "c0", name: "pay", arguments: { amount: 10 } })
 * const waiting = Session.make({
 *   id: "s1",
 *   status: "awaiting_approval",
 *   thread: Thread.make([Message.user("Pay Ann"), Message.assistant("", { toolCalls: [call] })]),
 *   pendingApprovals: [{ toolCall: call, digest: Session.digest(call), requestedAt: 0 }]
 * })
 * const Stores = Layer.mergeAll(SessionStore.layerMemory, SessionLease.layerMemory, ToolJournal.layerMemory)
 *
 * const program = Effect.gen(function*() {
 *   const store = yield* SessionStore.SessionStore
 *   yield* store.save(waiting)
 *   return yield* SessionRunner.approve("s1", "c0", { digest: Session.digest(call) })
 * }).pipe(Effect.provide(Layer.provideMerge(SessionRunner.layer(), Stores)))
 *
 * assert.strictEqual((await Effect.runPromise(program)).pendingApprovals[0]?.decision?._tag, "Approved")
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const approve = (
  sessionId: string,
  toolCallId: string,
  options?: { readonly digest?: string | undefined }
): Effect.Effect<Session.Session, Submitting, SessionRunner> =>
  changing("approve", sessionId, (caller, session) => Submit.approve(caller, session, toolCallId, options))

/**
 * Refuses a call. The model is told when the session goes on with `resume`.
 *
 * @example
 * ```ts
 * import { Message, Session, SessionLease, SessionRunner, SessionStore } from "@allm/core"
 * import { Thread, ToolCall, ToolJournal } from "@allm/core"
 * import { Effect, Layer } from "effect"
 *
 * const call = ToolCall.make({ id: "c0", name: "pay", arguments: { amount: 10 } })
 * const waiting = Session.make({
 *   id: "s1",
 *   status: "awaiting_approval",
 *   thread: Thread.make([Message.user("Pay Ann"), Message.assistant("", { toolCalls: [call] })]),
 *   pendingApprovals: [{ toolCall: call, digest: Session.digest(call), requestedAt: 0 }]
 * })
 * const Stores = Layer.mergeAll(SessionStore.layerMemory, SessionLease.layerMemory, ToolJournal.layerMemory)
 *
 * const program = Effect.gen(function*() {
 *   const store = yield* SessionStore.SessionStore
 *   yield* store.save(waiting)
 *   return yield* SessionRunner.deny("s1", "c0", { reason: "too much" })
 * }).pipe(Effect.provide(Layer.provideMerge(SessionRunner.layer(), Stores)))
 *
 * assert.strictEqual((await Effect.runPromise(program)).pendingApprovals[0]?.decision?._tag, "Denied")
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const deny = (
  sessionId: string,
  toolCallId: string,
  options?: { readonly reason?: string | undefined }
): Effect.Effect<Session.Session, Submitting, SessionRunner> =>
  changing("deny", sessionId, (caller, session) => Submit.deny(caller, session, toolCallId, options))

/**
 * Says what became of a call of which nobody could know whether it took effect.
 *
 * @example
 * ```ts
 * import { Message, Session, SessionLease, SessionRunner, SessionStore } from "@allm/core"
 * import { Thread, ToolCall, ToolJournal } from "@allm/core"
 * import { Effect, Layer } from "effect"
 *
 * const call = ToolCall.make({ id: "c0", name: "pay", arguments: { amount: 10 } })
 * const waiting = Session.make({
 *   id: "s1",
 *   status: "error",
 *   thread: Thread.make([Message.user("Pay Ann"), Message.assistant("", { toolCalls: [call] })]),
 *   unknownOutcomes: [call],
 *   metadata: { error: "the process died" }
 * })
 * const Stores = Layer.mergeAll(SessionStore.layerMemory, SessionLease.layerMemory, ToolJournal.layerMemory)
 *
 * const program = Effect.gen(function*() {
 *   const store = yield* SessionStore.SessionStore
 *   yield* store.save(waiting)
 *   return yield* SessionRunner.resolve("s1", "c0", "it was paid")
 * }).pipe(Effect.provide(Layer.provideMerge(SessionRunner.layer(), Stores)))
 *
 * assert.deepStrictEqual((await Effect.runPromise(program)).unknownOutcomes, [])
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const resolve = (
  sessionId: string,
  toolCallId: string,
  result: unknown,
  options?: { readonly isError?: boolean | undefined }
): Effect.Effect<Session.Session, Submitting | EncodingFailed, SessionRunner> =>
  changing("resolve", sessionId, (caller, session) => Submit.resolve(caller, session, toolCallId, result, options))

/**
 * Takes a session out of its error.
 *
 * @example
 * ```ts
 * import { Message, Session, SessionLease, SessionRunner, SessionStore, Thread, ToolJournal } from "@allm/core"
 * import { Effect, Layer } from "effect"
 *
 * const broken = Session.make({
 *   id: "s1",
 *   status: "error",
 *   thread: Thread.make([Message.user("Hi")]),
 *   metadata: { error: "the disk was full" }
 * })
 * const Stores = Layer.mergeAll(SessionStore.layerMemory, SessionLease.layerMemory, ToolJournal.layerMemory)
 *
 * const program = Effect.gen(function*() {
 *   const store = yield* SessionStore.SessionStore
 *   yield* store.save(broken)
 *   return yield* SessionRunner.recover("s1")
 * }).pipe(Effect.provide(Layer.provideMerge(SessionRunner.layer(), Stores)))
 *
 * assert.strictEqual((await Effect.runPromise(program)).status, "idle")
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const recover = (
  sessionId: string
): Effect.Effect<Session.Session, Submitting, SessionRunner> => changing("recover", sessionId, Submit.recover)

/**
 * Does anything else to a session while nobody else can, and saves what comes of it, once, at the end. Tools that are run
 * meanwhile are noted in the journal, and stop when the right to the session is lost. What comes of it keeps its id: under
 * another one it is not saved, and is in the error.
 *
 * @example
 * ```ts
 * import { Session, SessionLease, SessionRunner, SessionStore, ToolJournal } from "@allm/core"
 * import { Effect, Layer } from "effect"
 *
 * const rename = (sessionId: string, title: string) =>
 *   SessionRunner.modify(sessionId, (session) =>
 *     Effect.succeed({
 *       session: { ...session, metadata: { ...session.metadata, title } },
 *       result: session.metadata["title"]
 *     })
 *   )
 *
 * const Stores = Layer.mergeAll(SessionStore.layerMemory, SessionLease.layerMemory, ToolJournal.layerMemory)
 *
 * const program = Effect.gen(function*() {
 *   const store = yield* SessionStore.SessionStore
 *   yield* store.save(Session.make({ id: "s1", metadata: { title: "Untitled" } }))
 *   return yield* rename("s1", "Oslo")
 * }).pipe(Effect.provide(Layer.provideMerge(SessionRunner.layer(), Stores)))
 *
 * Effect.runPromise(program).then(({ result, session }) => {
 *   assert.strictEqual(result, "Untitled")
 *   assert.strictEqual(session.metadata["title"], "Oslo")
 * })
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const modify = <A, E, R>(
  sessionId: string,
  change: (session: Session.Session) => Effect.Effect<Session.Outcome<A>, E, R>
): Effect.Effect<Session.Outcome<A>, E | ValidationError | RunnerError, SessionRunner | Exclude<R, ToolJournal>> =>
  holding(
    by("modify"),
    sessionId,
    (hold) => Effect.flatMap(hold.load, (session) => Drive.modify(hold, session, change))
  )
