/**
 * Models, tools and conversations of `@effect/ai` here, and ours there.
 *
 * Whoever has code on `@effect/ai` keeps it: its models drive this loop, its toolkits are run by it, its prompts go on as
 * threads; and an adapter serves code that asks for a `LanguageModel`.
 *
 * @since 0.1.0
 */
import {
  Adapter,
  Engine,
  type Message,
  type OnToolError,
  type Request,
  type Tool,
  type ToolError,
  type ToolResult,
  type ToolRunner,
  ValidationError
} from "@allm/core"
import * as LanguageModel from "@effect/ai/LanguageModel"
import { ProviderName } from "@effect/ai/Model"
import * as Prompt from "@effect/ai/Prompt"
import { CurrentSpanTransformer } from "@effect/ai/Telemetry"
import type * as AiTool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import * as Bridge from "./internal/adapter.ts"
import * as FromToolkit from "./internal/fromToolkit.ts"
import * as OurModel from "./internal/languageModel.ts"
import * as Conversation from "./internal/prompt.ts"
import type { AnyArguments } from "./internal/tools.ts"
import * as ToToolkit from "./internal/toToolkit.ts"

/**
 * How a language model is made an adapter.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** The provider's name, for errors and spans. A layer takes the one that `Model` of `@effect/ai` tells. */
  readonly name?: string | undefined
  readonly capabilities?: Adapter.Capabilities | undefined
  /**
   * How a request's `temperature`, `maxTokens`, `model` and `params` are told to the model: `@effect/ai` has no words for
   * them, its providers have `withConfigOverride`. Without it a request that sets one of them is refused, but for `model`,
   * which is a name only.
   */
  readonly configure?:
    | ((request: Request.Request) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>)
    | undefined
  /**
   * Tools that the provider defines, such as a web search. Those that the provider also runs are always offered; those that
   * are run here are offered instead of the tool of the same name, see `fromToolkit`.
   */
  readonly providerTools?: ReadonlyArray<AiTool.Any> | undefined
}

/**
 * Makes an adapter of a language model. Tool calls are not run there: the loop runs them.
 *
 * @example
 * ```ts
 * import { Adapter, Allm, Engine } from "@allm/core"
 * import { EffectAi } from "@allm/effect-ai"
 * import { LanguageModel, type Response } from "@effect/ai"
 * import { Effect, Layer, Stream } from "effect"
 *
 * const parrot = LanguageModel.make({
 *   generateText: () => Effect.succeed([]),
 *   streamText: ({ prompt }) =>
 *     Stream.fromIterable<Response.StreamPartEncoded>([
 *       { type: "text-start", id: "0" },
 *       { type: "text-delta", id: "0", delta: `You said ${prompt.content.length} things.` },
 *       { type: "text-end", id: "0" },
 *       { type: "finish", reason: "stop", usage: { inputTokens: 5, outputTokens: 4, totalTokens: 9 } }
 *     ])
 * })
 *
 * const program = Effect.gen(function*() {
 *   const adapter = EffectAi.fromLanguageModel(yield* parrot)
 *   const response = yield* Effect.provide(
 *     Allm.generate("Hello"),
 *     Engine.layer().pipe(Layer.provide(Adapter.layer(adapter)))
 *   )
 *   return [response.outputText, response.usage.totalTokens]
 * })
 *
 * assert.deepStrictEqual(Effect.runSync(program), ["You said 1 things.", 9])
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromLanguageModel = (model: LanguageModel.Service, options: Options = {}): Adapter.Service =>
  Bridge.make(model, {
    name: options.name ?? "effect-ai",
    capabilities: options.capabilities ?? {},
    configure: options.configure,
    providerTools: options.providerTools ?? [],
    transformer: Option.none()
  })

/**
 * Provides the language model in use as an adapter.
 *
 * @example
 * ```ts
 * import { Allm, Engine } from "@allm/core"
 * import { EffectAi } from "@allm/effect-ai"
 * import { LanguageModel, type Response } from "@effect/ai"
 * import { Effect, Layer, Stream } from "effect"
 *
 * const model = LanguageModel.make({
 *   generateText: () => Effect.succeed([]),
 *   streamText: () =>
 *     Stream.fromIterable<Response.StreamPartEncoded>([
 *       { type: "text-start", id: "0" },
 *       { type: "text-delta", id: "0", delta: "Hello" },
 *       { type: "text-end", id: "0" },
 *       { type: "finish", reason: "stop", usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } }
 *     ])
 * })
 * const Model = Layer.effect(LanguageModel.LanguageModel, model)
 *
 * const program = Effect.map(Allm.generate("Hi"), (response) => response.outputText).pipe(
 *   Effect.provide(Engine.layer().pipe(Layer.provide(EffectAi.layer()), Layer.provide(Model)))
 * )
 *
 * assert.strictEqual(await Effect.runPromise(program), "Hello")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options = {}): Layer.Layer<Adapter.Adapter, never, LanguageModel.LanguageModel> =>
  Layer.effect(
    Adapter.Adapter,
    Effect.gen(function*() {
      const model = yield* LanguageModel.LanguageModel
      const provider = yield* Effect.serviceOption(ProviderName)
      return Bridge.make(model, {
        name: options.name ?? Option.getOrElse(provider, () => "effect-ai"),
        capabilities: options.capabilities ?? {},
        configure: options.configure,
        providerTools: options.providerTools ?? [],
        transformer: yield* Effect.serviceOption(CurrentSpanTransformer)
      })
    })
  )

/**
 * Provides an engine on the language model in use.
 *
 * @example
 * ```ts
 * import { Allm } from "@allm/core"
 * import { EffectAi } from "@allm/effect-ai"
 * import { LanguageModel, type Response } from "@effect/ai"
 * import { Effect, Layer, Stream } from "effect"
 *
 * const model = LanguageModel.make({
 *   generateText: () => Effect.succeed([]),
 *   streamText: () =>
 *     Stream.fromIterable<Response.StreamPartEncoded>([
 *       { type: "text-start", id: "0" },
 *       { type: "text-delta", id: "0", delta: "Hello" },
 *       { type: "text-end", id: "0" },
 *       { type: "finish", reason: "stop", usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } }
 *     ])
 * })
 * const Model = Layer.effect(LanguageModel.LanguageModel, model)
 *
 * const program = Effect.map(Allm.chat("Hi"), (result) => result.finalResponse.outputText).pipe(
 *   Effect.provide(Layer.provide(EffectAi.engine({ maxTurns: 3 }), Model))
 * )
 *
 * assert.strictEqual(await Effect.runPromise(program), "Hello")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const engine = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  options: Options & Engine.Options<T, RE, RH, RP, RO> = {}
): Layer.Layer<
  Engine.Engine,
  never,
  LanguageModel.LanguageModel | Exclude<Tool.Requirements<NoInfer<T>> | NoInfer<RE | RH | RP | RO>, Adapter.Adapter>
> => {
  const { capabilities, configure, name, providerTools, ...rest } = options
  return Layer.provide(
    Engine.layer(rest as unknown as Engine.Options<T, RE, RH, RP, RO>),
    layer({ capabilities, configure, name, providerTools })
  )
}

/**
 * What goes with every request: `@effect/ai` leaves it to the model.
 *
 * @since 0.1.0
 * @category models
 */
export interface ModelOptions {
  readonly model?: string | undefined
  readonly temperature?: number | undefined
  readonly maxTokens?: number | undefined
  /** What only this provider knows. */
  readonly params?: { readonly [key: string]: unknown } | undefined
}

/**
 * Makes a language model of an adapter.
 *
 * @example
 * ```ts
 * import { Fake } from "@allm/core"
 * import { EffectAi } from "@allm/effect-ai"
 * import { LanguageModel } from "@effect/ai"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { adapter } = yield* Fake.make({ script: [Fake.text("Hello"), Fake.finish("stop")] })
 *   const model = yield* EffectAi.makeLanguageModel(adapter)
 *   return yield* LanguageModel.generateText({ prompt: "Hi" }).pipe(
 *     Effect.provideService(LanguageModel.LanguageModel, model)
 *   )
 * })
 *
 * assert.strictEqual((await Effect.runPromise(program)).text, "Hello")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeLanguageModel = (
  adapter: Adapter.Service,
  options: ModelOptions = {}
): Effect.Effect<LanguageModel.Service> => OurModel.make(adapter, options)

/**
 * Provides the adapter in use as a language model, for code that is written for `@effect/ai`.
 *
 * Failures keep their status: what the adapter tells as `rate_limited` is an `HttpResponseError` with 429 there.
 *
 * @example
 * ```ts
 * import { Fake } from "@allm/core"
 * import { EffectAi } from "@allm/effect-ai"
 * import { LanguageModel } from "@effect/ai"
 * import { Effect, Layer } from "effect"
 *
 * const program = LanguageModel.generateText({ prompt: "Hello" })
 *
 * const Model = EffectAi.toLanguageModel({ model: "small" }).pipe(
 *   Layer.provide(Fake.layer({ script: [Fake.text("Hi."), Fake.finish("stop")] }))
 * )
 *
 * const { finishReason, text } = Effect.runSync(Effect.provide(program, Model))
 *
 * assert.deepStrictEqual([text, finishReason], ["Hi.", "stop"])
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const toLanguageModel = (
  options: ModelOptions = {}
): Layer.Layer<LanguageModel.LanguageModel, never, Adapter.Adapter> =>
  Layer.effect(
    LanguageModel.LanguageModel,
    Effect.flatMap(Adapter.Adapter, (adapter) => OurModel.make(adapter, options))
  )

type Tools = Record<string, AiTool.Any>

/**
 * A tool of theirs as one of ours. `H` is what finds its handler.
 *
 * @since 0.1.0
 * @category models
 */
export type FromTool<T extends AiTool.Any, H = never> = AiTool.RequiresHandler<T> extends true ? Tool.Tool<
    T["name"],
    AiTool.Parameters<T>,
    AiTool.Success<T>,
    AiTool.Failure<T>,
    AiTool.Requirements<T> | H
  >
  : never

/**
 * What a tool of theirs gains here.
 *
 * @since 0.1.0
 * @category models
 */
export type ToolOptions<Params> = Pick<
  Tool.CommonOptions<Params, never, never>,
  "exclusive" | "manual" | "metadata" | "needsApproval" | "replay" | "retry" | "timeout"
>

/**
 * What the tools of a toolkit gain here, by name.
 *
 * @since 0.1.0
 * @category models
 */
export type ToolkitOptions<T extends Tools> = {
  readonly [Name in keyof T]?: ToolOptions<AiTool.Parameters<T[Name]>> | undefined
}

/**
 * Makes tools of a toolkit. Their handlers are found in the context when they are called, so what `toolkit.toLayer` provides
 * is what a run asks for; a toolkit that is already provided needs only what its tools need.
 *
 * Arguments and results are checked by their schemas. A failure is a reported failure in either mode; give
 * `onToolError: EffectAi.failureModes(toolkit)` to a run to have it stop where a tool's mode is `"error"`. Tools that a
 * provider runs itself are left out: they belong to the option `providerTools`.
 *
 * @example
 * ```ts
 * import { ToolCall, ToolRunner } from "@allm/core"
 * import { EffectAi } from "@allm/effect-ai"
 * import { Tool, Toolkit } from "@effect/ai"
 * import { Effect, Schema } from "effect"
 *
 * const Add = Tool.make("Add", {
 *   description: "Adds two numbers",
 *   parameters: { a: Schema.Number, b: Schema.Number },
 *   success: Schema.Number
 * })
 * const Calculator = Toolkit.make(Add)
 * const CalculatorLive = Calculator.toLayer({ Add: ({ a, b }) => Effect.succeed(a + b) })
 *
 * const tools = EffectAi.fromToolkit(Calculator, { Add: { timeout: "1 second" } })
 * const call = ToolCall.make({ id: "c0", name: "Add", arguments: { a: 2, b: 3 } })
 *
 * const { messages } = Effect.runSync(ToolRunner.run([call], tools).pipe(Effect.provide(CalculatorLive)))
 *
 * assert.strictEqual(messages[0]?.content, "5")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromToolkit: {
  <T extends Tools>(
    toolkit: Toolkit.Toolkit<T>,
    options?: ToolkitOptions<T>
  ): ReadonlyArray<{ [Name in keyof T]: FromTool<T[Name], AiTool.Handler<T[Name]["name"]>> }[keyof T]>
  <T extends Tools>(
    toolkit: Toolkit.WithHandler<T>,
    options?: ToolkitOptions<T>
  ): ReadonlyArray<{ [Name in keyof T]: FromTool<T[Name]> }[keyof T]>
} = (
  toolkit: Toolkit.Any | Toolkit.WithHandler<Tools>,
  options: { readonly [name: string]: object | undefined } = {}
): ReadonlyArray<never> => FromToolkit.fromToolkit(toolkit, options) as ReadonlyArray<never>

/**
 * The policy that the failure modes of a toolkit ask for: a failure of a tool whose mode is `"error"` ends the run with
 * reason `tool_error`, every other goes to the model.
 *
 * @example
 * ```ts
 * import { ToolCall, ToolRunner } from "@allm/core"
 * import { EffectAi } from "@allm/effect-ai"
 * import { Tool, Toolkit } from "@effect/ai"
 * import { Effect, Schema } from "effect"
 *
 * const Pay = Tool.make("Pay", { description: "Pays", failure: Schema.String, failureMode: "error" })
 * const Bank = Toolkit.make(Pay)
 * const Handlers = Bank.toLayer({ Pay: () => Effect.fail("no money") })
 *
 * const run = ToolRunner.run(
 *   [ToolCall.make({ id: "c0", name: "Pay", arguments: {} })],
 *   EffectAi.fromToolkit(Bank),
 *   { onToolError: EffectAi.failureModes(Bank) }
 * )
 *
 * assert.strictEqual(Effect.runSync(Effect.provide(run, Handlers)).halt?.reason, "tool_error")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const failureModes = (toolkit: {
  readonly tools: { readonly [name: string]: AiTool.Any }
}): OnToolError.OnToolError => FromToolkit.failureModes(toolkit)

/**
 * How a call of ours ends for theirs when it does not succeed: with what its handler reported, with what happened to it, or
 * because it wants a person or an end, which theirs leaves to you.
 *
 * @since 0.1.0
 * @category models
 */
export type Unfinished<E> =
  | E
  | Exclude<ToolError.ToolError, { readonly _tag: "HandlerFailed" }>
  | ToolResult.AskUser
  | ToolResult.Halt

/**
 * A tool of ours as one of theirs.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToTool<T extends Tool.Any, Mode extends AiTool.FailureMode> extends
  AiTool.Tool<
    T["name"],
    {
      readonly parameters: AnyArguments
      // Theirs takes no schema of nothing.
      readonly success: Schema.Schema<[Tool.Success<T>] extends [never] ? void : Tool.Success<T>>
      readonly failure: Schema.Schema<Unfinished<Tool.Failure<T>>>
      readonly failureMode: Mode
    },
    Tool.Requirements<T>
  >
{}

/**
 * Our tools as the record of tools a toolkit of theirs holds.
 *
 * @since 0.1.0
 * @category models
 */
export type ToTools<T extends Tool.Any, Mode extends AiTool.FailureMode> = {
  readonly [K in T as K["name"]]: ToTool<K, Mode>
}

/**
 * What the calls of a toolkit are run with.
 *
 * @since 0.1.0
 * @category models
 */
export interface RunOptions
  extends Pick<ToolRunner.Options, "context" | "maxArgumentsLength" | "requestId" | "sessionId" | "toolTimeout">
{}

/**
 * Makes a toolkit of tools, handlers included, to be given to `LanguageModel.generateText` and its kind.
 *
 * Its calls run as they do here: arguments are checked, limits kept, crashes told to the model in a word. So by default a
 * call that does not succeed is a result with `isFailure`; with `failureMode: "error"` the whole call of `@effect/ai` fails
 * with it.
 *
 * @example
 * ```ts
 * import { Tool } from "@allm/core"
 * import { EffectAi } from "@allm/effect-ai"
 * import { Effect, Schema } from "effect"
 *
 * const divide = Tool.make("divide", {
 *   description: "Divides a by b",
 *   parameters: { a: Schema.Number, b: Schema.Number },
 *   handler: ({ a, b }) => b === 0 ? Effect.fail("division by zero") : Effect.succeed(a / b)
 * })
 *
 * const toolkit = EffectAi.toToolkit([divide])
 *
 * assert.deepStrictEqual(Effect.runSync(toolkit.handle("divide", { a: 6, b: 0 })), {
 *   isFailure: true,
 *   result: "division by zero",
 *   encodedResult: { error: "division by zero" }
 * })
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const toToolkit = <const T extends ReadonlyArray<Tool.Any>, Mode extends AiTool.FailureMode = "return">(
  tools: T,
  options: RunOptions & { readonly failureMode?: Mode | undefined } = {}
): Toolkit.WithHandler<ToTools<T[number], Mode>> => {
  const { failureMode = "return", ...run } = options
  return ToToolkit.toToolkit(tools, { failureMode, run }) as unknown as Toolkit.WithHandler<ToTools<T[number], Mode>>
}

/**
 * Writes messages as a prompt. What a prompt has no place for travels in its options and comes back with `fromPrompt`. The
 * left side names what a prompt cannot hold, such as an image in a system message.
 *
 * @example
 * ```ts
 * import { Message } from "@allm/core"
 * import { EffectAi } from "@allm/effect-ai"
 * import { Either } from "effect"
 *
 * const prompt = Either.getOrThrow(EffectAi.toPrompt([Message.system("Be brief."), Message.user("Hi")]))
 *
 * assert.deepStrictEqual(prompt.content.map(({ role }) => role), ["system", "user"])
 * ```
 *
 * @since 0.1.0
 * @category encoding
 */
export const toPrompt = (
  messages: ReadonlyArray<Message.Message>
): Either.Either<Prompt.Prompt, ValidationError.ValidationError> =>
  Either.mapLeft(Conversation.toPrompt(messages), ({ index, problem }) =>
    new ValidationError.ValidationError({
      reason: "invalid_message",
      issues: [{ path: [index, "content"], code: "unsupported", message: problem }]
    }))

/**
 * Reads a prompt as messages, such as the history of a `Chat`: what it holds for one provider only, such as signatures of
 * reasoning, is kept in `metadata` and goes back with `toPrompt`.
 *
 * @example
 * ```ts
 * import { Message, Thread } from "@allm/core"
 * import { EffectAi } from "@allm/effect-ai"
 *
 * const messages = EffectAi.fromPrompt([
 *   { role: "system", content: "Be brief." },
 *   { role: "user", content: "Who are you?" },
 *   { role: "assistant", content: "A model." }
 * ])
 * const thread = Thread.append(Thread.make(messages), Message.user("And what can you do?"))
 *
 * assert.deepStrictEqual(thread.messages.map(({ role }) => role), ["system", "user", "assistant", "user"])
 * ```
 *
 * @since 0.1.0
 * @category decoding
 */
export const fromPrompt = (prompt: Prompt.RawInput): ReadonlyArray<Message.Message> =>
  Conversation.fromPrompt(Prompt.make(prompt))
