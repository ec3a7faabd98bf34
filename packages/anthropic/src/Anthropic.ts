/**
 * Claude, over Anthropic's Messages API.
 *
 * @since 0.1.0
 */
import { type Adapter, Engine, HttpAdapter, ProviderSettings, type Tool } from "@allm/core"
import type * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as ConfigError from "effect/ConfigError"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { decoder } from "./internal/decode.ts"
import { encode, formOf } from "./internal/encode.ts"
import { told } from "./internal/errors.ts"
import { provider } from "./internal/transcript.ts"

/**
 * How long the start of a conversation is kept at Anthropic, so that reading it again costs less: `true` for as long as is
 * usual, which is 5 minutes.
 *
 * @since 0.1.0
 * @category models
 */
export type CacheControl = boolean | "5m" | "1h"

/**
 * How Claude is reached, and what goes with every request.
 *
 * @since 0.1.0
 * @category models
 */
export interface Config {
  readonly apiKey?: Redacted.Redacted | undefined
  /** Where the API is, with or without `/v1`. Default `https://api.anthropic.com`. */
  readonly baseUrl?: string | undefined
  /** Sent with every request. */
  readonly headers?: { readonly [name: string]: string } | undefined
  /** The model of requests that name none. */
  readonly model?: string | undefined
  /** The header `anthropic-version`. Default `2023-06-01`. */
  readonly version?: string | undefined
  /** The header `anthropic-beta`: what to switch on that is not for everybody yet. */
  readonly betas?: ReadonlyArray<string> | undefined
  /**
   * Keeps the whole conversation in Anthropic's cache, up to its last message. Messages and tools can also be marked one
   * by one, with `metadata: { anthropic: { cacheControl: true } }`: all up to there is kept.
   */
  readonly cacheControl?: CacheControl | undefined
  /** Tools that run at Anthropic, as the API writes them: `{ type: "web_search_20250305", name: "web_search" }`. */
  readonly serverTools?: ReadonlyArray<{ readonly [key: string]: unknown }> | undefined
  /**
   * How answers get the form of a schema: `"native"`, by the API itself, or `"tool"`, by a tool that takes the answer.
   * Default `"native"` from Claude 4.5 on, and `"tool"` for older and unknown models. A schema that the API cannot keep
   * to, one that is not strict, and `json_object` always go by a tool.
   */
  readonly structuredOutput?: "native" | "tool" | undefined
}

/**
 * The settings, each as itself or as what is read by `Config`.
 *
 * @since 0.1.0
 * @category models
 */
export type Configurable = ProviderSettings.Configurable<Config>

const keyName = "ANTHROPIC_API_KEY"
const defaultKey = ProviderSettings.keyNamed(keyName)

const keys: ReadonlyArray<keyof Config> = [
  "apiKey",
  "baseUrl",
  "betas",
  "cacheControl",
  "headers",
  "serverTools",
  "structuredOutput",
  "version"
]

/**
 * How the Messages API is spoken to, for whoever wants to change it: a gateway with other headers, say.
 *
 * @example
 * ```ts
 * import { Anthropic } from "@allm/anthropic"
 * import { HttpAdapter } from "@allm/core"
 * import { HttpClientRequest } from "@effect/platform"
 *
 * const gateway: HttpAdapter.Protocol = {
 *   ...Anthropic.protocol({ baseUrl: "https://gateway.example/anthropic" }),
 *   authorize: HttpClientRequest.bearerToken
 * }
 *
 * const Model = HttpAdapter.layer(gateway)
 *
 * assert.strictEqual(gateway.name, "anthropic")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const protocol = (config: Config = {}): HttpAdapter.Protocol => ({
  name: provider,
  capabilities: { tools: true, images: true, structuredOutput: true },
  encode: (request) => encode(config, request),
  decoder: (request) => {
    const form = Either.getOrUndefined(formOf(config, request))
    return decoder(form?.via === "tool" ? form.name : undefined)
  },
  apiKey: config.apiKey,
  authorize: (request, apiKey) => HttpClientRequest.setHeader(request, "x-api-key", Redacted.value(apiKey)),
  keyHint: `write Anthropic.layer({ apiKey }), or set ${keyName} and use Anthropic.layerConfig()`,
  told
})

/**
 * Provides an adapter for Claude.
 *
 * @example
 * ```ts
 * import { Anthropic } from "@allm/anthropic"
 * import { Engine } from "@allm/core"
 * import { FetchHttpClient } from "@effect/platform"
 * import { Effect, Layer, Redacted } from "effect"
 *
 * const Assistant = Engine.layer({ maxTurns: 3 }).pipe(
 *   Layer.provide(Anthropic.layer({ apiKey: Redacted.make("a key") })),
 *   Layer.provide(FetchHttpClient.layer)
 * )
 * const named = Effect.map(Engine.Engine, ({ adapter }) => adapter.name)
 *
 * assert.strictEqual(Effect.runSync(Effect.provide(named, Assistant)), "anthropic")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (config: Config = {}): Layer.Layer<Adapter.Adapter, never, HttpClient.HttpClient> =>
  HttpAdapter.layer(protocol(config))

/**
 * Like {@link layer}, with settings that come from `Config`. The key is read from `ANTHROPIC_API_KEY` unless it is given;
 * an empty one counts as missing.
 *
 * @example
 * ```ts
 * import { Anthropic } from "@allm/anthropic"
 * import { Adapter } from "@allm/core"
 * import { FetchHttpClient } from "@effect/platform"
 * import { ConfigProvider, Effect, Layer } from "effect"
 *
 * const named = Effect.map(Adapter.Adapter, (adapter) => adapter.name).pipe(
 *   Effect.provide(Layer.provide(Anthropic.layerConfig(), FetchHttpClient.layer)),
 *   Effect.withConfigProvider(ConfigProvider.fromMap(new Map([["ANTHROPIC_API_KEY", "a key"]])))
 * )
 *
 * assert.strictEqual(Effect.runSync(named), "anthropic")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = (
  config: Configurable = {}
): Layer.Layer<Adapter.Adapter, ConfigError.ConfigError, HttpClient.HttpClient> =>
  Layer.unwrapEffect(Effect.map(ProviderSettings.resolved<Config>(config, defaultKey), layer))

/**
 * Provides an engine on Claude: the settings of both in one.
 *
 * @example
 * ```ts
 * import { Anthropic } from "@allm/anthropic"
 * import { Allm } from "@allm/core"
 * import { HttpClient, HttpClientResponse } from "@effect/platform"
 * import { Effect, Layer, Redacted } from "effect"
 *
 * // In the place of FetchHttpClient.layer: it answers as Anthropic would.
 * const Client = Layer.succeed(
 *   HttpClient.HttpClient,
 *   HttpClient.make((request) =>
 *     Effect.succeed(HttpClientResponse.fromWeb(
 *       request,
 *       Response.json({ content: [{ type: "text", text: "Hello!" }], stop_reason: "end_turn" })
 *     ))
 *   )
 * )
 *
 * const Claude = Anthropic.engine({ apiKey: Redacted.make("sk-ant-0"), model: "claude-sonnet-5", maxTurns: 3 })
 *
 * const program = Allm.generate("Hi").pipe(
 *   Effect.map((response) => assert.strictEqual(response.outputText, "Hello!")),
 *   Effect.provide(Layer.provide(Claude, Client))
 * )
 *
 * Effect.runPromise(program)
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
 * Like {@link engine}, with settings of the provider that come from `Config`, as {@link layerConfig} reads them.
 *
 * @example
 * ```ts
 * import { Anthropic } from "@allm/anthropic"
 * import { Engine } from "@allm/core"
 * import { FetchHttpClient } from "@effect/platform"
 * import { ConfigProvider, Effect, Layer } from "effect"
 *
 * const Assistant = Layer.provide(
 *   Anthropic.engineConfig({ model: "claude-sonnet-5", maxTurns: 3 }),
 *   FetchHttpClient.layer
 * )
 *
 * const model = Effect.map(Engine.Engine, ({ settings }) => settings.model).pipe(
 *   Effect.provide(Assistant),
 *   Effect.withConfigProvider(ConfigProvider.fromMap(new Map([["ANTHROPIC_API_KEY", "a key"]])))
 * )
 *
 * assert.strictEqual(Effect.runSync(model), "claude-sonnet-5")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const engineConfig = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  options: Omit<Configurable, "model"> & Engine.Options<T, RE, RH, RP, RO>
): Layer.Layer<
  Engine.Engine,
  ConfigError.ConfigError,
  HttpClient.HttpClient | Exclude<Tool.Requirements<NoInfer<T>> | NoInfer<RE | RH | RP | RO>, Adapter.Adapter>
> => {
  const [config, rest] = ProviderSettings.split<Configurable, Engine.Options<T, RE, RH, RP, RO>>(keys, options)
  return Layer.provide(Engine.layer(rest), layerConfig(config))
}

/**
 * Runs an effect with another key: for servers that act for many people.
 *
 * @example
 * ```ts
 * import { Anthropic } from "@allm/anthropic"
 * import { Allm } from "@allm/core"
 * import { HttpClient, HttpClientResponse } from "@effect/platform"
 * import { Effect, Redacted } from "effect"
 *
 * const seen: Array<string | undefined> = []
 * const client = HttpClient.make((request) => {
 *   seen.push(request.headers["x-api-key"])
 *   return Effect.succeed(HttpClientResponse.fromWeb(request, Response.json({ content: [], stop_reason: "end_turn" })))
 * })
 *
 * const program = Allm.generate("Hi").pipe(
 *   Anthropic.withApiKey(Redacted.make("theirs")),
 *   Effect.provide(Anthropic.engine({ apiKey: Redacted.make("ours"), model: "claude-sonnet-5" })),
 *   Effect.provideService(HttpClient.HttpClient, client)
 * )
 *
 * await Effect.runPromise(program)
 *
 * assert.deepStrictEqual(seen, ["theirs"])
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const withApiKey: (
  apiKey: Redacted.Redacted
) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R> = (apiKey) =>
  HttpAdapter.withApiKey(provider, apiKey)
