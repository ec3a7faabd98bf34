/**
 * Every model behind Chat Completions: OpenAI's own, and those of the many servers that speak this protocol, from Ollama,
 * vLLM and LM Studio to Groq, OpenRouter, DeepSeek, Together, Mistral and Azure. `baseUrl` says which.
 *
 * @since 0.1.0
 */
import type * as Adapter from "@allm/core/Adapter"
import { AdapterError } from "@allm/core/AdapterError"
import * as Engine from "@allm/core/Engine"
import * as HttpAdapter from "@allm/core/HttpAdapter"
import * as ProviderSettings from "@allm/core/ProviderSettings"
import type * as Tool from "@allm/core/Tool"
import type * as HttpClient from "@effect/platform/HttpClient"
import * as EffectConfig from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import type * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { authorize } from "./internal/authorize.ts"
import { ChatDecoder } from "./internal/chatDecode.ts"
import { chatBody } from "./internal/chatEncode.ts"
import { post } from "./internal/encode.ts"
import * as Failure from "./internal/failure.ts"

/**
 * How a server is reached.
 *
 * @since 0.1.0
 * @category models
 */
export interface Config {
  readonly apiKey?: Redacted.Redacted | undefined
  /**
   * What comes before `/chat/completions`, such as `http://localhost:11434/v1`, or
   * `https://….openai.azure.com/openai/deployments/…`. Default `https://api.openai.com/v1`.
   */
  readonly baseUrl?: string | undefined
  readonly headers?: { readonly [name: string]: string } | undefined
  /**
   * The name in errors, spans and `withApiKey`, and the one under which a message keeps what the server wants to see again.
   * Give each server its own. Default `openai-chat`.
   */
  readonly name?: string | undefined
  /** Has the server enforce the schemas of tools that have no optional parameters. Default false. */
  readonly strictTools?: boolean | undefined
  /** What `maxTokens` is called. Default `max_completion_tokens` for OpenAI and Azure, `max_tokens` for others. */
  readonly maxTokensField?: "max_tokens" | "max_completion_tokens" | undefined
  /** Where the key goes. Default `authorization`, or `api-key` with an `apiVersion`. */
  readonly keyHeader?: "authorization" | "api-key" | undefined
  /** The version of Azure's API, written as `api-version`. */
  readonly apiVersion?: string | undefined
}

/**
 * The same, where each setting is itself or is read by a `Config`.
 *
 * @since 0.1.0
 * @category models
 */
export type Configurable = ProviderSettings.Configurable<Config>

/**
 * The name of the provider, unless it is given another.
 *
 * @since 0.1.0
 * @category models
 */
export const name = "openai-chat"

const defaultBaseUrl = "https://api.openai.com/v1"
const variable = "OPENAI_API_KEY"
const defaultKey = ProviderSettings.keyNamed(variable)

const keys: ReadonlyArray<keyof Config> = [
  "apiKey",
  "baseUrl",
  "headers",
  "name",
  "strictTools",
  "maxTokensField",
  "keyHeader",
  "apiVersion"
]

/**
 * Chat Completions as a protocol, for whoever wants to adapt it.
 *
 * @example
 * ```ts
 * import { Message, Request } from "@allm/core"
 * import { OpenAiChat } from "@allm/openai"
 * import { Either } from "effect"
 *
 * const request = Request.make({ model: "gpt-5-mini", messages: [Message.user("Hi")] })
 * const written = Either.getOrThrow(OpenAiChat.protocol().encode(request))
 *
 * assert.strictEqual(written.url, "https://api.openai.com/v1/chat/completions")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const protocol = (config: Config = {}): HttpAdapter.Protocol => {
  const provider = config.name ?? name
  return {
    name: provider,
    apiKey: config.apiKey,
    authorize: authorize(config.keyHeader ?? (config.apiVersion === undefined ? "authorization" : "api-key")),
    // A server of one's own may need no key.
    keyHint: config.baseUrl === undefined
      ? `write apiKey: Redacted.make("…"), or use layerConfig and set ${variable}`
      : undefined,
    told: Failure.told,
    decoder: (request) => new ChatDecoder(provider, String(request.messages.length)),
    encode: (request) =>
      request.model === undefined && request.options["model"] === undefined && config.baseUrl === undefined
        ? Either.left(
          new AdapterError({
            reason: "invalid_request",
            provider,
            detail: "there is no model; write model: \"…\" for the engine or the call"
          })
        )
        : Either.flatMap(
          chatBody(request, {
            provider,
            maxTokensField: config.maxTokensField ?? (isOpenAi(config) ? "max_completion_tokens" : "max_tokens"),
            strictTools: config.strictTools ?? false
          }),
          (body) => post(provider, { ...config, baseUrl: config.baseUrl ?? defaultBaseUrl }, "/chat/completions", body)
        )
  }
}

const isOpenAi = ({ apiVersion, baseUrl }: Config): boolean => baseUrl === undefined || apiVersion !== undefined

/**
 * Provides a server that speaks Chat Completions as the adapter.
 *
 * @example
 * ```ts
 * import { Engine } from "@allm/core"
 * import { OpenAiChat } from "@allm/openai"
 * import { FetchHttpClient } from "@effect/platform"
 * import { Effect, Layer, Redacted } from "effect"
 *
 * const Assistant = Engine.layer({ maxTurns: 3 }).pipe(
 *   Layer.provide(OpenAiChat.layer({ apiKey: Redacted.make("a key") })),
 *   Layer.provide(FetchHttpClient.layer)
 * )
 * const named = Effect.map(Engine.Engine, ({ adapter }) => adapter.name)
 *
 * assert.strictEqual(Effect.runSync(Effect.provide(named, Assistant)), "openai-chat")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (config: Config = {}): Layer.Layer<Adapter.Adapter, never, HttpClient.HttpClient> =>
  HttpAdapter.layer(protocol(config))

/**
 * Provides a server as the adapter, with settings from `Config`. OpenAI's key is `OPENAI_API_KEY` unless another is given.
 * It is not shown to anybody else: the key of a server with a `baseUrl` has to be given, if it needs one.
 *
 * @example
 * ```ts
 * import { OpenAiChat } from "@allm/openai"
 * import { FetchHttpClient } from "@effect/platform"
 * import { Config, ConfigProvider, Effect, Layer } from "effect"
 *
 * const Groq = OpenAiChat.layerConfig({
 *   name: "groq",
 *   baseUrl: "https://api.groq.com/openai/v1",
 *   apiKey: Config.redacted("GROQ_API_KEY")
 * })
 *
 * const build = (variables: Record<string, string>) =>
 *   Layer.build(Layer.provide(Groq, FetchHttpClient.layer)).pipe(
 *     Effect.scoped,
 *     Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(variables)))),
 *     Effect.either,
 *     Effect.runSync
 *   )
 *
 * assert.strictEqual(build({ GROQ_API_KEY: "gsk-…" })._tag, "Right")
 * assert.strictEqual(build({})._tag, "Left")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = (
  config: Configurable = {}
): Layer.Layer<Adapter.Adapter, ConfigError.ConfigError, HttpClient.HttpClient> =>
  Layer.unwrapEffect(EffectConfig.map(
    ProviderSettings.resolved<Config>(
      config,
      config.baseUrl === undefined ? defaultKey : EffectConfig.succeed(undefined)
    ),
    layer
  ))

/**
 * Provides an engine on such a server: the settings of both in one place.
 *
 * @example
 * ```ts
 * import { Allm } from "@allm/core"
 * import { OpenAiChat } from "@allm/openai"
 * import { HttpClient, HttpClientResponse } from "@effect/platform"
 * import { Effect, Redacted } from "effect"
 *
 * // A client that answers at once; elsewhere it is FetchHttpClient.layer.
 * const client = HttpClient.make((request) =>
 *   Effect.succeed(HttpClientResponse.fromWeb(request, Response.json({
 *     choices: [{ message: { content: "Hello" }, finish_reason: "stop" }]
 *   })))
 * )
 *
 * const program = Effect.map(Allm.generate("Hi"), (response) => response.outputText).pipe(
 *   Effect.provide(OpenAiChat.engine({ apiKey: Redacted.make("a key"), model: "llama-4", baseUrl: "http://localhost:8080/v1" })),
 *   Effect.provideService(HttpClient.HttpClient, client)
 * )
 *
 * assert.strictEqual(await Effect.runPromise(program), "Hello")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const engine = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  options: Config & Engine.Options<T, RE, RH, RP, RO>
): Layer.Layer<
  Engine.Engine,
  never,
  HttpClient.HttpClient | Exclude<Tool.Requirements<NoInfer<T>> | NoInfer<RE | RH | RP | RO>, Adapter.Adapter>
> => {
  const [config, rest] = ProviderSettings.split<Config, Engine.Options<T, RE, RH, RP, RO>>(keys, options)
  return Layer.provide(Engine.layer(rest), layer(config))
}

/**
 * Provides an engine on such a server, with its settings from `Config`, as `layerConfig` reads them.
 *
 * @example
 * ```ts
 * import { Engine } from "@allm/core"
 * import { OpenAiChat } from "@allm/openai"
 * import { FetchHttpClient } from "@effect/platform"
 * import { ConfigProvider, Effect, Layer } from "effect"
 *
 * const Assistant = Layer.provide(
 *   OpenAiChat.engineConfig({ model: "gpt-5-mini", maxTurns: 3 }),
 *   FetchHttpClient.layer
 * )
 *
 * const model = Effect.map(Engine.Engine, ({ settings }) => settings.model).pipe(
 *   Effect.provide(Assistant),
 *   Effect.withConfigProvider(ConfigProvider.fromMap(new Map([["OPENAI_API_KEY", "a key"]])))
 * )
 *
 * assert.strictEqual(Effect.runSync(model), "gpt-5-mini")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const engineConfig = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  options: Configurable & Engine.Options<T, RE, RH, RP, RO>
): Layer.Layer<
  Engine.Engine,
  ConfigError.ConfigError,
  HttpClient.HttpClient | Exclude<Tool.Requirements<NoInfer<T>> | NoInfer<RE | RH | RP | RO>, Adapter.Adapter>
> => {
  const [config, rest] = ProviderSettings.split<Configurable, Engine.Options<T, RE, RH, RP, RO>>(keys, options)
  return Layer.provide(Engine.layer(rest), layerConfig(config))
}

/**
 * Runs an effect with another key: for servers that act for many people. A server with a name of its own is meant by that.
 *
 * @example
 * ```ts
 * import { Allm } from "@allm/core"
 * import { OpenAiChat } from "@allm/openai"
 * import { HttpClient, HttpClientResponse } from "@effect/platform"
 * import { Effect, Redacted } from "effect"
 *
 * const seen: Array<string | undefined> = []
 * const client = HttpClient.make((request) => {
 *   seen.push(request.headers["authorization"])
 *   return Effect.succeed(HttpClientResponse.fromWeb(request, Response.json({
 *     choices: [{ message: { content: "Hello" }, finish_reason: "stop" }]
 *   })))
 * })
 *
 * const program = Allm.generate("Hi").pipe(
 *   OpenAiChat.withApiKey(Redacted.make("theirs")),
 *   Effect.provide(OpenAiChat.engine({ apiKey: Redacted.make("ours"), model: "gpt-5-mini" })),
 *   Effect.provideService(HttpClient.HttpClient, client)
 * )
 *
 * await Effect.runPromise(program)
 *
 * assert.deepStrictEqual(seen, ["Bearer theirs"])
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const withApiKey = (
  apiKey: Redacted.Redacted,
  provider: string = name
): <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R> => HttpAdapter.withApiKey(provider, apiKey)
