/**
 * What drives a loop: an adapter, the tools, and the settings every call starts from.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Layer from "effect/Layer"
import type * as Schedule from "effect/Schedule"
import type * as Schema from "effect/Schema"
import * as Adapter from "./Adapter.ts"
import type { AdapterError } from "./AdapterError.ts"
import type { AdapterEvent } from "./Event.ts"
import { engineIssues, settingsIssues } from "./internal/engineOptions.ts"
import * as Environments from "./internal/environments.ts"
import * as Issues from "./internal/issues.ts"
import { isPlainObject } from "./internal/json.ts"
import type { Message } from "./Message.ts"
import type { OnToolError } from "./OnToolError.ts"
import type { ResponseFormat, ToolChoice } from "./Request.ts"
import type { StepResult } from "./StepResult.ts"
import type { Thread } from "./Thread.ts"
import type * as Tool from "./Tool.ts"

/**
 * Limits of a whole chat. What a breach ends with is the reason of the same name: `max_tool_calls`, `max_tokens`,
 * `max_duration`, `repeated_call`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Budget {
  /** Tool calls that may run. Those beyond are answered without running. */
  readonly maxToolCalls?: number | undefined
  /** Tokens of all model calls together, as far as the provider tells them. */
  readonly maxTokens?: number | undefined
  /** Time since the chat began. */
  readonly maxDuration?: Duration.DurationInput | undefined
  /** How often a tool may be called with equal arguments. */
  readonly maxRepeatedCalls?: number | undefined
}

/**
 * What is known before a step.
 *
 * @since 0.1.0
 * @category models
 */
export interface StepInfo {
  /** Zero-based. */
  readonly stepIndex: number
  readonly thread: Thread
  readonly steps: ReadonlyArray<StepResult>
}

/**
 * What `prepareStep` may change for one step. The thread stays as it is: `messages` only changes what the model reads.
 *
 * @since 0.1.0
 * @category models
 */
export interface StepChanges {
  readonly model?: string | undefined
  /** What the model reads in place of the thread. */
  readonly messages?: ReadonlyArray<Message> | undefined
  /** The names of the tools the model may use in this step. */
  readonly activeTools?: ReadonlyArray<string> | undefined
  readonly toolChoice?: ToolChoice | undefined
  readonly temperature?: number | undefined
  readonly maxTokens?: number | undefined
}

/**
 * The settings of a call, of an engine, or both: a call's beat its engine's, and those beat the defaults.
 *
 * @since 0.1.0
 * @category models
 */
export interface Settings<E = unknown, RE = never, RH = never, RP = never, RO = never> {
  readonly model?: string | undefined
  readonly temperature?: number | undefined
  /** Of one answer. */
  readonly maxTokens?: number | undefined
  /** Whether the model may, must or must not call a tool. */
  readonly toolChoice?: ToolChoice | undefined
  /** The form of the answer: a Schema, or the JSON Schema of one. */
  readonly responseFormat?: ResponseFormat | Schema.Schema.Any | undefined
  /** What only this provider knows; passed on as it is. `temperature` and `maxTokens` may stand here too. */
  readonly params?: { readonly [key: string]: unknown } | undefined
  /** Handed to every handler. An engine's and a call's are merged. */
  readonly context?: { readonly [key: string]: unknown } | undefined
  /** `"manual"` stops at the first tool calls and leaves all of them to the caller. Default `"auto"`. */
  readonly mode?: "auto" | "manual" | undefined
  /** Model calls of a chat. Default 8. */
  readonly maxTurns?: number | undefined
  /** Ends a chat after a step that would otherwise be followed by another. */
  readonly haltWhen?: ((step: StepResult) => boolean | Effect.Effect<boolean, unknown, RH>) | undefined
  /** Looks at what there is before each step, and may change what the model is asked in it. */
  readonly prepareStep?:
    | ((info: StepInfo) => StepChanges | undefined | void | Effect.Effect<StepChanges | undefined | void, unknown, RP>)
    | undefined
  /** What happens when a call fails. Default `"continue"`: the model is told. */
  readonly onToolError?: OnToolError<E, RE> | undefined
  /** The hard limit of each call whose tool has none of its own. Default 30 seconds. */
  readonly toolTimeout?: Duration.DurationInput | undefined
  /** How many calls of a turn run at once. */
  readonly concurrency?: number | "unbounded" | undefined
  /** What becomes of the other calls of a turn when one halts. Default `"drain"`. */
  readonly siblings?: "drain" | "interrupt" | { readonly drainFor: Duration.DurationInput } | undefined
  /** Whether a call of an unknown tool fails the chat or is fed back to the model. Default `"fail"`. */
  readonly unknownTool?: "fail" | "feedback" | undefined
  /** Longer arguments are refused. Default 1 MiB of characters. */
  readonly maxArgumentsLength?: number | undefined
  /** How a model call that failed before its first event is repeated. Default `AdapterError.retrySchedule()`. */
  readonly retry?: Schedule.Schedule<unknown, AdapterError> | false | undefined
  /** The hard limit of each attempt at a model call. Default 10 minutes. */
  readonly requestTimeout?: Duration.DurationInput | undefined
  /** How long a model call may be silent. No limit by default. */
  readonly idleTimeout?: Duration.DurationInput | undefined
  /** Answers in two passes: first with tools and without `responseFormat`, then once the other way round. */
  readonly structuredFinalize?: boolean | undefined
  /** What the second pass is asked with; `""` asks nothing. */
  readonly structuredFinalizeNudge?: string | undefined
  readonly budget?: Budget | undefined
  /** After `maxTurns` or a breach of the budget the model may answer once more, without tools. A text says so to it. */
  readonly softLanding?: boolean | string | undefined
  /** Called for every event of a model, before any is left out. */
  readonly onEvent?: ((event: AdapterEvent) => void | Effect.Effect<void, unknown, RO>) | undefined
  /** Whether streams tell `TextDelta`. Default true. */
  readonly emitTextDeltas?: boolean | undefined
  /** Whether streams tell `ToolCallDelta`. Default true. */
  readonly emitToolDeltas?: boolean | undefined
  /** Whether streams tell `RawChunk`. Default false. */
  readonly includeRawChunks?: boolean | undefined
}

/**
 * An engine: a plain value, never changed; the functions here give another one.
 *
 * @since 0.1.0
 * @category models
 */
export interface Service {
  readonly adapter: Adapter.Service
  readonly tools: ReadonlyArray<Tool.Any>
  readonly settings: Settings<unknown, unknown, unknown, unknown, unknown>
}

/**
 * The engine in use.
 *
 * @since 0.1.0
 * @category services
 */
export class Engine extends Context.Tag("@allm/core/Engine")<Engine, Service>() {}

/**
 * The settings of an engine, and its tools.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options<T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>
  extends Settings<Tool.Failure<T>, RE, RH, RP, RO>
{
  readonly tools?: ReadonlyArray<T> | undefined
}

/**
 * Makes an engine on the adapter in use. What its tools and functions need is taken here, once. Wrong options throw a
 * `ValidationError` at once.
 *
 * @example
 * ```ts
 * import { Allm, Engine, Fake } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const engine = yield* Engine.make({ model: "small" })
 *   const response = yield* Effect.provideService(Allm.generate("Hi"), Engine.Engine, engine)
 *   return response.outputText
 * }).pipe(Effect.provide(Fake.layer({ script: [Fake.text("Hello"), Fake.finish("stop")] })))
 *
 * assert.strictEqual(Effect.runSync(program), "Hello")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  options: Options<T, RE, RH, RP, RO> = {}
): Effect.Effect<Service, never, Adapter.Adapter | Tool.Requirements<T> | RE | RH | RP | RO> => {
  const { settings, tools } = checked(options as unknown as Options<Tool.Any>)
  return Effect.map(
    Effect.context<Adapter.Adapter | Tool.Requirements<T> | RE | RH | RP | RO>(),
    (environment) =>
      Environments.capture(
        { adapter: Context.get(environment, Adapter.Adapter), tools, settings },
        environment as Context.Context<never>
      )
  )
}

/**
 * Provides an engine.
 *
 * @example
 * ```ts
 * import { Allm, Engine, Fake, Tool } from "@allm/core"
 * import { Effect, Layer, Schema } from "effect"
 *
 * const add = Tool.make("add", {
 *   description: "Adds two numbers",
 *   parameters: { a: Schema.Number, b: Schema.Number },
 *   handler: ({ a, b }) => a + b
 * })
 *
 * const Model = Fake.layer({
 *   scripts: [
 *     [Fake.toolCall({ id: "c0", name: "add", arguments: { a: 2, b: 3 } }), Fake.finish("tool_calls")],
 *     [Fake.text("It is 5."), Fake.finish("stop")]
 *   ]
 * })
 *
 * const program = Allm.chat("What is 2 + 3?").pipe(
 *   Effect.provide(Engine.layer({ tools: [add] }).pipe(Layer.provide(Model)))
 * )
 *
 * assert.strictEqual(Effect.runSync(program).finalResponse.outputText, "It is 5.")
 * assert.throws(() => Engine.layer({ maxTurns: 0 }), /maxTurns/)
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  options: Options<T, RE, RH, RP, RO> = {}
): Layer.Layer<Engine, never, Adapter.Adapter | Tool.Requirements<NoInfer<T>> | NoInfer<RE | RH | RP | RO>> =>
  Layer.effect(Engine, make(options))

const checked = (
  options: Options<Tool.Any>
): { readonly settings: Settings; readonly tools: ReadonlyArray<Tool.Any> } => {
  Issues.orThrow("invalid_options", engineIssues(options), undefined)
  const { tools = [], ...settings } = options
  return { settings, tools }
}

/** Settings with nothing to capture, so that changing an engine needs no Effect. */
type PureSettings = Settings<unknown, never, never, never, never>

/**
 * The same engine with other settings; maps such as `params` and `context` are merged.
 *
 * @example
 * ```ts
 * import { Allm, Engine, Fake } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const program = Allm.generate("Hi").pipe(
 *   Effect.zipRight(Fake.requests),
 *   Effect.updateService(Engine.Engine, Engine.withSettings({ model: "small", temperature: 0 })),
 *   Effect.provide(Fake.engine({ script: [Fake.text("Hello"), Fake.finish("stop")] }))
 * )
 *
 * assert.strictEqual(Effect.runSync(program)[0]?.model, "small")
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const withSettings: {
  (settings: PureSettings): (self: Service) => Service
  (self: Service, settings: PureSettings): Service
} = dual(2, (self: Service, settings: PureSettings): Service => {
  Issues.orThrow("invalid_options", settingsIssues(settings), undefined)
  return Environments.derive(self, { ...self, settings: merge(self.settings, settings) })
})

/**
 * The same engine with another model.
 *
 * @example
 * ```ts
 * import { Allm, Engine, Fake } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const program = Allm.generate("Hi").pipe(
 *   Effect.zipRight(Fake.requests),
 *   Effect.updateService(Engine.Engine, Engine.withModel("small")),
 *   Effect.provide(Fake.engine({ model: "large", script: [Fake.text("Hello"), Fake.finish("stop")] }))
 * )
 *
 * assert.strictEqual(Effect.runSync(program)[0]?.model, "small")
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const withModel: {
  (model: string): (self: Service) => Service
  (self: Service, model: string): Service
} = dual(2, (self: Service, model: string): Service => withSettings(self, { model }))

/**
 * The same engine with more in the context of its handlers.
 *
 * @example
 * ```ts
 * import { Allm, Engine, Fake, Tool } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const whoAmI = Tool.make("who_am_i", {
 *   description: "Tells who asks",
 *   handler: (_params, { context }) => String(context["userId"])
 * })
 *
 * const program = Effect.map(Allm.step("Who am I?"), ({ toolResults }) => toolResults[0]?.content).pipe(
 *   Effect.updateService(Engine.Engine, Engine.withContext({ userId: "u7" })),
 *   Effect.provide(Fake.engine({
 *     tools: [whoAmI],
 *     script: [Fake.toolCall({ id: "c0", name: "who_am_i" }), Fake.finish("tool_calls")]
 *   }))
 * )
 *
 * assert.strictEqual(Effect.runSync(program), "u7")
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const withContext: {
  (context: { readonly [key: string]: unknown }): (self: Service) => Service
  (self: Service, context: { readonly [key: string]: unknown }): Service
} = dual(2, (self: Service, context: { readonly [key: string]: unknown }): Service => withSettings(self, { context }))

/**
 * The same engine with these parameters for its provider.
 *
 * @example
 * ```ts
 * import { Allm, Engine, Fake } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const program = Allm.generate("Hi").pipe(
 *   Effect.zipRight(Fake.requests),
 *   Effect.updateService(Engine.Engine, Engine.withParams({ seed: 7 })),
 *   Effect.provide(Fake.engine({ params: { top_k: 5 }, script: [Fake.text("Hello"), Fake.finish("stop")] }))
 * )
 *
 * assert.deepStrictEqual(Effect.runSync(program)[0]?.options, { top_k: 5, seed: 7 })
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const withParams: {
  (params: { readonly [key: string]: unknown }): (self: Service) => Service
  (self: Service, params: { readonly [key: string]: unknown }): Service
} = dual(2, (self: Service, params: { readonly [key: string]: unknown }): Service => withSettings(self, { params }))

/**
 * The same engine with these tools besides its own: one of the same name is replaced in its place, others come last. Tools
 * that need services go to `Engine.layer` or to the call instead, which can ask for them.
 *
 * @example
 * ```ts
 * import { Engine, Fake, Tool } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const ping = Tool.make("ping", { description: "Answers", handler: () => "pong" })
 *
 * const names = Effect.map(Engine.Engine, ({ tools }) => tools.map(({ name }) => name)).pipe(
 *   Effect.updateService(Engine.Engine, Engine.withTools([ping])),
 *   Effect.provide(Fake.engine({ script: [] }))
 * )
 *
 * assert.deepStrictEqual(Effect.runSync(names), ["ping"])
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const withTools: {
  <T extends Tool.Any>(
    tools: ReadonlyArray<T> & ([Tool.Requirements<T>] extends [never] ? unknown : never)
  ): (self: Service) => Service
  <T extends Tool.Any>(
    self: Service,
    tools: ReadonlyArray<T> & ([Tool.Requirements<T>] extends [never] ? unknown : never)
  ): Service
} = dual(2, (self: Service, tools: ReadonlyArray<Tool.Any>): Service => {
  checked({ tools })
  return Environments.derive(self, { ...self, tools: mergeTools(self.tools, tools) })
})

/**
 * An engine's tools with those of a call: one of the same name is replaced in its place, others come last.
 *
 * @example
 * ```ts
 * import { Engine, Tool } from "@allm/core"
 *
 * const slow = Tool.make("search", { description: "Searches slowly" })
 * const fast = Tool.make("search", { description: "Searches" })
 * const read = Tool.make("read", { description: "Reads" })
 *
 * assert.deepStrictEqual(Engine.mergeTools([slow, read], [fast]), [fast, read])
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const mergeTools = (
  own: ReadonlyArray<Tool.Any>,
  given: ReadonlyArray<Tool.Any>
): ReadonlyArray<Tool.Any> => {
  if (given.length === 0) return own
  const merged = new Map(own.map((tool) => [tool.name, tool]))
  for (const tool of given) merged.set(tool.name, tool)
  return [...merged.values()]
}

/**
 * Settings over settings: what is given beats what was there, `params`, `context` and `budget` are merged.
 *
 * @example
 * ```ts
 * import { Engine } from "@allm/core"
 *
 * const settings: Engine.Settings = { model: "large", context: { userId: "u7" } }
 *
 * assert.deepStrictEqual(Engine.merge(settings, { model: "small", context: { locale: "nb" } }), {
 *   model: "small",
 *   context: { userId: "u7", locale: "nb" }
 * })
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const merge = <S extends object>(own: S, given: S): S => {
  const merged: Record<string, unknown> = Object.fromEntries(Object.entries(own))
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined) continue
    const before = merged[key]
    merged[key] = mergedKeys.has(key) && isPlainObject(before) && isPlainObject(value)
      ? { ...before, ...value }
      : value
  }
  return merged as S
}

const mergedKeys: ReadonlySet<string> = new Set(["params", "context", "budget"])
