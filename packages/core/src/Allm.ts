/**
 * Asking a model: once, for one turn with its tools, or in a loop until it is done.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import type { AdapterError } from "./AdapterError.ts"
import type { CallbackFailed } from "./CallbackFailed.ts"
import { ChatResult } from "./ChatResult.ts"
import type { Engine, Settings } from "./Engine.ts"
import type { Event } from "./Event.ts"
import { withoutNulls } from "./internal/absence.ts"
import type { Chat, Failure } from "./internal/chat.ts"
import { type Sink, streamed } from "./internal/handover.ts"
import type { Input } from "./internal/input.ts"
import { withChat } from "./internal/openChat.ts"
import type { Response } from "./Response.ts"
import type { StepResult } from "./StepResult.ts"
import type * as Tool from "./Tool.ts"
import type { ApprovalDecision } from "./ToolRunner.ts"
import type { UnknownTool } from "./UnknownTool.ts"
import { Issue, type ValidationError } from "./ValidationError.ts"

export {
  /**
   * What may be said to a model: text, messages, a thread, or a whole request, whose fields beat every option.
   *
   * @since 0.1.0
   * @category models
   */
  type Input
}

/**
 * The options of one call. They beat the engine's.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options<T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>
  extends Settings<Tool.Failure<T>, RE, RH, RP, RO>
{
  /** Tools besides the engine's. One of the same name is replaced. */
  readonly tools?: ReadonlyArray<T> | undefined
  readonly sessionId?: string | undefined
  /** Made up unless given, and the same for everything the call does. */
  readonly requestId?: string | undefined
  /** Decisions about calls that need approval, by call id. */
  readonly approvals?: { readonly [toolCallId: string]: ApprovalDecision } | undefined
}

/**
 * Everything that can end a call without a result.
 *
 * @since 0.1.0
 * @category errors
 */
export type ChatError = AdapterError | UnknownTool | ValidationError | CallbackFailed

type Needs<T extends Tool.Any, R> = Engine | Tool.Requirements<T> | R

const start = <A, E = never, R = never>(
  input: Input,
  options: unknown,
  sink: Sink<Event> | undefined,
  use: (chat: Chat) => Effect.Effect<A, Failure | E, R>
): Effect.Effect<A, ChatError | E, Engine | R> => withChat(input, (options ?? {}) as Options, sink, use)

/**
 * Asks the model once. Tools are offered, not run.
 *
 * @example
 * ```ts
 * import { Allm, Fake } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const program = Allm.generate("Hi", { model: "small", temperature: 0 }).pipe(
 *   Effect.provide(Fake.engine({ script: [Fake.text("Hello"), Fake.usage({ outputTokens: 1 }), Fake.finish("stop")] }))
 * )
 *
 * const response = Effect.runSync(program)
 *
 * assert.strictEqual(response.outputText, "Hello")
 * assert.deepStrictEqual(response.usage, { outputTokens: 1 })
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const generate = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  input: Input,
  options?: Options<T, RE, RH, RP, RO>
): Effect.Effect<Response, ChatError, Needs<T, RE | RH | RP | RO>> =>
  start(input, options, undefined, (chat) => chat.generate())

/**
 * Takes one turn: asks the model and runs the tools it calls.
 *
 * @example
 * ```ts
 * import { Allm, Fake, Tool } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const ping = Tool.make("ping", { description: "Answers", handler: () => "pong" })
 *
 * const program = Allm.step("Play with me").pipe(
 *   Effect.provide(Fake.engine({
 *     tools: [ping],
 *     script: [Fake.toolCall({ id: "c0", name: "ping" }), Fake.finish("tool_calls")]
 *   }))
 * )
 *
 * const { done, toolResults } = Effect.runSync(program)
 *
 * assert.strictEqual(toolResults[0]?.content, "pong")
 * assert.strictEqual(done, false)
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const step = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  input: Input,
  options?: Options<T, RE, RH, RP, RO>
): Effect.Effect<StepResult, ChatError, Needs<T, RE | RH | RP | RO>> =>
  start(input, options, undefined, (chat) => chat.step())

/**
 * Takes turn after turn until the model is done, or something else ends the chat; `haltedReason` says what. Whatever the
 * tools do, the thread stays one that a provider accepts.
 *
 * @example
 * ```ts
 * import { Allm, Fake, Tool } from "@allm/core"
 * import { Effect, Schema } from "effect"
 *
 * const getWeather = Tool.make("get_weather", {
 *   description: "Current weather for a city",
 *   parameters: { city: Schema.String },
 *   handler: ({ city }) => Effect.succeed(`Sunny in ${city}`)
 * })
 *
 * const program = Allm.chat("How is the weather in Oslo?", { tools: [getWeather] }).pipe(
 *   Effect.provide(Fake.engine({
 *     scripts: [
 *       [
 *         Fake.toolCall({ id: "c0", name: "get_weather", arguments: { city: "Oslo" } }),
 *         Fake.finish("tool_calls")
 *       ],
 *       [Fake.text("It is sunny."), Fake.finish("stop")]
 *     ]
 *   }))
 * )
 *
 * const result = Effect.runSync(program)
 *
 * assert.strictEqual(result.haltedReason, "completed")
 * assert.deepStrictEqual(
 *   result.thread.messages.map((message) => [message.role, message.content]),
 *   [
 *     ["user", "How is the weather in Oslo?"],
 *     ["assistant", ""],
 *     ["tool", "Sunny in Oslo"],
 *     ["assistant", "It is sunny."]
 *   ]
 * )
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const chat = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  input: Input,
  options?: Options<T, RE, RH, RP, RO>
): Effect.Effect<ChatResult, ChatError, Needs<T, RE | RH | RP | RO>> =>
  start(input, options, undefined, (chat) => chat.chat())

/**
 * Like `generate`, as it happens.
 *
 * @example
 * ```ts
 * import { Allm, Fake } from "@allm/core"
 * import { Effect, Stream } from "effect"
 *
 * const program = Allm.streamGenerate("Hi").pipe(
 *   Stream.map((event) => event._tag),
 *   Stream.runCollect,
 *   Effect.provide(Fake.engine({ script: [Fake.text("Hello"), Fake.finish("stop")] }))
 * )
 *
 * const tags = Array.from(await Effect.runPromise(program))
 *
 * assert.ok(tags.includes("TextDelta"))
 * assert.strictEqual(tags.at(-1), "MessageCompleted")
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const streamGenerate = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  input: Input,
  options?: Options<T, RE, RH, RP, RO>
): Stream.Stream<Event, ChatError, Needs<T, RE | RH | RP | RO>> =>
  streamed<Event, ChatError, Engine>((sink) => start(input, options, sink, (chat) => chat.generate()))

/**
 * Like `step`, as it happens; `StepCompleted` is the last event.
 *
 * @example
 * ```ts
 * import { Allm, Fake, Tool } from "@allm/core"
 * import { Effect, Stream } from "effect"
 *
 * const ping = Tool.make("ping", { description: "Answers", handler: () => "pong" })
 *
 * const program = Allm.streamStep("Play with me").pipe(
 *   Stream.map((event) => event._tag),
 *   Stream.runCollect,
 *   Effect.provide(Fake.engine({
 *     tools: [ping],
 *     script: [Fake.toolCall({ id: "c0", name: "ping" }), Fake.finish("tool_calls")]
 *   }))
 * )
 *
 * const tags = Array.from(await Effect.runPromise(program))
 *
 * assert.ok(tags.includes("ToolExecutionCompleted"))
 * assert.strictEqual(tags.at(-1), "StepCompleted")
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const streamStep = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  input: Input,
  options?: Options<T, RE, RH, RP, RO>
): Stream.Stream<Event, ChatError, Needs<T, RE | RH | RP | RO>> =>
  streamed<Event, ChatError, Engine>((sink) => start(input, options, sink, (chat) => chat.step()))

/**
 * Like `chat`, as it happens: one Stream over all turns, with `ChatCompleted` as its last event. Whoever stops reading
 * stops the model and the tools.
 *
 * @example
 * ```ts
 * import { Allm, Fake } from "@allm/core"
 * import { Effect, Stream } from "effect"
 *
 * const program = Allm.stream("Say hi").pipe(
 *   Stream.runFold("", (text, event) => event._tag === "TextDelta" ? text + event.delta : text),
 *   Effect.provide(Fake.engine({ script: [Fake.text("Hi"), Fake.text(" there"), Fake.finish("stop")] }))
 * )
 *
 * assert.strictEqual(await Effect.runPromise(program), "Hi there")
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const stream = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  input: Input,
  options?: Options<T, RE, RH, RP, RO>
): Stream.Stream<Event, ChatError, Needs<T, RE | RH | RP | RO>> =>
  streamed<Event, ChatError, Engine>((sink) => start(input, options, sink, (chat) => chat.chat()))

/**
 * The answer does not fit the schema. `text` is what the model said, `issues` what is wrong with it, `result` the chat.
 *
 * @since 0.1.0
 * @category errors
 */
export class InvalidObject extends Schema.TaggedError<InvalidObject>("@allm/core/Allm/InvalidObject")("InvalidObject", {
  text: Schema.String,
  issues: Schema.NonEmptyArray(Issue),
  result: ChatResult
}) {
  override get message(): string {
    const found = this.issues.map((issue) => `- ${issue.path.join(".") || "the answer"}: ${issue.message}`)
    return ["the answer does not fit the schema", ...found].join("\n")
  }
}

/**
 * An answer as a typed value, and the chat it came from.
 *
 * @since 0.1.0
 * @category models
 */
export interface ObjectResult<A> {
  readonly value: A
  readonly result: ChatResult
}

/**
 * Chats, and decodes the final answer. With tools around, the answer is asked for in a second pass of its own, unless
 * `structuredFinalize` says otherwise. `correct` lets the model mend an answer that does not fit, once. A `null` where the
 * schema takes none is read as a field that was left out.
 *
 * @example
 * ```ts
 * import { Allm, Fake } from "@allm/core"
 * import { Effect, Schema } from "effect"
 *
 * const City = Schema.Struct({ name: Schema.String, population: Schema.Number })
 *
 * const program = Allm.object("The capital of Norway?", { schema: City }).pipe(
 *   Effect.provide(Fake.engine({
 *     script: [Fake.text("{\"name\":\"Oslo\",\"population\":709000}"), Fake.finish("stop")]
 *   }))
 * )
 *
 * assert.deepStrictEqual(Effect.runSync(program).value, { name: "Oslo", population: 709000 })
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const object = <
  A,
  I,
  SR = never,
  T extends Tool.Any = never,
  RE = never,
  RH = never,
  RP = never,
  RO = never
>(
  input: Input,
  options: Omit<Options<T, RE, RH, RP, RO>, "responseFormat"> & {
    readonly schema: Schema.Schema<A, I, SR>
    readonly correct?: boolean | undefined
  }
): Effect.Effect<ObjectResult<A>, ChatError | InvalidObject, Needs<T, RE | RH | RP | RO> | SR> => {
  const { correct = false, schema, ...rest } = options
  const decodeText = (text: string): Effect.Effect<A, ParseResult.ParseError, SR> =>
    Effect.catchAll(Schema.decodeUnknown(Schema.parseJson(schema), { errors: "all" })(text), (error) => {
      const mended = withoutNulls(Option.getOrUndefined(parseJson(text)), issuesOf(error))
      return mended === undefined
        ? Effect.fail(error)
        : Effect.mapError(Schema.decodeUnknown(schema)(mended), () => error)
    })
  const decode = (result: ChatResult): Effect.Effect<ObjectResult<A>, InvalidObject, SR> =>
    hasAnswer(result)
      ? Effect.mapBoth(decodeText(textOf(result)), {
        onSuccess: (value) => ({ value, result }),
        onFailure: (error) => invalidObject(result, issuesOf(error))
      })
      : Effect.fail(invalidObject(result, [{
        path: [],
        code: "no_answer",
        message: `the chat ended with "${result.haltedReason}" before there was an answer`
      }]))
  return start(
    input,
    { ...rest, responseFormat: schema },
    undefined,
    (chat) => chat.object(decode, correct ? correction : undefined)
  )
}

const withoutAnswer: ReadonlySet<string> = new Set(["ask_user", "approval", "tool_error", "manual_tool_calls", "error"])

const hasAnswer = (result: ChatResult): boolean => !withoutAnswer.has(result.haltedReason)

const textOf = (result: ChatResult): string => result.finalResponse.outputText ?? ""

const parseJson = Schema.decodeUnknownOption(Schema.parseJson())

const issuesOf = (error: ParseResult.ParseError): ReadonlyArray<Issue> =>
  ParseResult.ArrayFormatter.formatErrorSync(error).map(({ message, path }): Issue => ({
    path: path.map((key) => typeof key === "symbol" ? String(key) : key),
    code: "invalid",
    message
  }))

const invalidObject = (result: ChatResult, issues: ReadonlyArray<Issue>): InvalidObject =>
  new InvalidObject({ text: textOf(result), issues: issues as [Issue, ...Array<Issue>], result }, {
    disableValidation: true
  })

const correction = (error: InvalidObject): string =>
  `Your answer does not fit the schema:\n${
    error.issues.map((issue) => `- ${issue.path.join(".") || "the answer"}: ${issue.message}`).join("\n")
  }\nAnswer again, with JSON that fits.`

/**
 * The text of a response that came to its natural end, or why there is none.
 *
 * @example
 * ```ts
 * import { Allm, Response } from "@allm/core"
 * import { Either } from "effect"
 *
 * const whole = Response.make({ outputText: "Hello", finishReason: "stop" })
 * const cut = Response.make({ outputText: "Hel", finishReason: "length" })
 *
 * assert.strictEqual(Either.getOrThrow(Allm.unwrap(whole)), "Hello")
 * assert.strictEqual(Either.isLeft(Allm.unwrap(cut)), true)
 * ```
 *
 * @since 0.1.0
 * @category decoding
 */
export const unwrap = (response: Response): Either.Either<string, UnwrapError> => {
  const { finishReason, message, outputText } = response
  if (finishReason !== "stop") return Either.left({ _tag: "NonStopFinish", finishReason })
  const text = outputText !== undefined && outputText !== "" ? outputText : message?.content
  if (typeof text === "string" && text !== "") return Either.right(text)
  return Either.left(text === undefined || text === "" ? { _tag: "EmptyResponse" } : { _tag: "StructuredContent" })
}

/**
 * Why a response has no text that may be relied on.
 *
 * @since 0.1.0
 * @category models
 */
export type UnwrapError =
  | { readonly _tag: "NonStopFinish"; readonly finishReason: Response["finishReason"] }
  | { readonly _tag: "EmptyResponse" }
  | { readonly _tag: "StructuredContent" }
