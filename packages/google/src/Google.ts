/**
 * Gemini models, through the `streamGenerateContent` method of the Gemini API.
 *
 * @since 0.1.0
 */
import { type Adapter, Engine, HttpAdapter, ProviderSettings, type Tool } from "@allm/core"
import type * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type { ConfigError } from "effect/ConfigError"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Decoder } from "./internal/decode.ts"
import { encode, refuse } from "./internal/encode.ts"
import { name } from "./internal/pieces.ts"
import { told } from "./internal/refusal.ts"

/**
 * How Gemini is reached.
 *
 * @since 0.1.0
 * @category models
 */
export interface Config {
  readonly apiKey?: Redacted.Redacted | undefined
  /** Where the API is, version included. Default `https://generativelanguage.googleapis.com/v1beta`. */
  readonly baseUrl?: string | undefined
  /** Sent with every request. With an `authorization` among them no key is needed. */
  readonly headers?: { readonly [name: string]: string } | undefined
}

/**
 * The same settings, each as it is or as a `Config` to be read. The key is read from `GOOGLE_API_KEY`, or else from
 * `GEMINI_API_KEY`, unless it is given.
 *
 * @since 0.1.0
 * @category models
 */
export type Configurable = ProviderSettings.Configurable<Config>

const defaultKey = ProviderSettings.keyNamed("GOOGLE_API_KEY", "GEMINI_API_KEY")

const keys: ReadonlyArray<keyof Config> = ["apiKey", "baseUrl", "headers"]

const defaultBaseUrl = "https://generativelanguage.googleapis.com/v1beta"

const keyHint = "set GOOGLE_API_KEY and use Google.layerConfig, or write Google.layer({ apiKey: Redacted.make(\"…\") })"

/**
 * The protocol, for adapters of your own on top of it.
 *
 * @example
 * ```ts
 * import { Message, Request } from "@allm/core"
 * import { Google } from "@allm/google"
 * import { Either } from "effect"
 *
 * const request = Request.make({ model: "gemini-3-flash", messages: [Message.user("Hi")] })
 * const written = Either.getOrThrow(Google.protocol().encode(request))
 *
 * assert.strictEqual(
 *   written.url,
 *   "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-flash:streamGenerateContent"
 * )
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const protocol = (config: Config = {}): HttpAdapter.Protocol => {
  const baseUrl = (config.baseUrl ?? defaultBaseUrl).replace(/\/+$/, "")
  const headers = config.headers ?? {}
  const isAuthorized = Object.keys(headers).some((header) => header.toLowerCase() === "authorization")
  return {
    name,
    encode: (request) =>
      Either.flatMap(encode(request), ({ body, model }) =>
        Either.orElse(
          Either.try(() =>
            HttpClientRequest.post(`${baseUrl}/${model}:streamGenerateContent`).pipe(
              HttpClientRequest.setUrlParam("alt", "sse"),
              HttpClientRequest.setHeaders(headers),
              HttpClientRequest.bodyUnsafeJson(body)
            )
          ),
          () => refuse("invalid_request", "the request cannot be written as JSON; write only JSON into its params")
        )),
    decoder: (request) => new Decoder(request),
    apiKey: config.apiKey,
    // In a header, never in the address: addresses are logged.
    authorize: (request, apiKey) => HttpClientRequest.setHeader(request, "x-goog-api-key", Redacted.value(apiKey)),
    keyHint: isAuthorized ? undefined : keyHint,
    told
  }
}

/**
 * Provides an adapter for Gemini.
 *
 * @example
 * ```ts
 * import { Engine } from "@allm/core"
 * import { Google } from "@allm/google"
 * import { FetchHttpClient } from "@effect/platform"
 * import { Effect, Layer, Redacted } from "effect"
 *
 * const Assistant = Engine.layer({ maxTurns: 3 }).pipe(
 *   Layer.provide(Google.layer({ apiKey: Redacted.make("a key") })),
 *   Layer.provide(FetchHttpClient.layer)
 * )
 * const named = Effect.map(Engine.Engine, ({ adapter }) => adapter.name)
 *
 * assert.strictEqual(Effect.runSync(Effect.provide(named, Assistant)), "google")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (config: Config = {}): Layer.Layer<Adapter.Adapter, never, HttpClient.HttpClient> =>
  HttpAdapter.layer(protocol(config))

/**
 * Provides an adapter for Gemini, with its key read from `Config`. No key, or an empty one, is a `ConfigError`.
 *
 * @example
 * ```ts
 * import { Adapter } from "@allm/core"
 * import { Google } from "@allm/google"
 * import { FetchHttpClient } from "@effect/platform"
 * import { ConfigProvider, Effect, Layer } from "effect"
 *
 * const named = Effect.map(Adapter.Adapter, (adapter) => adapter.name).pipe(
 *   Effect.provide(Google.layerConfig().pipe(Layer.provide(FetchHttpClient.layer))),
 *   Effect.withConfigProvider(ConfigProvider.fromMap(new Map([["GEMINI_API_KEY", "a key"]])))
 * )
 *
 * assert.strictEqual(Effect.runSync(named), "google")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = (
  config: Configurable = {}
): Layer.Layer<Adapter.Adapter, ConfigError, HttpClient.HttpClient> =>
  Layer.unwrapEffect(Effect.map(ProviderSettings.resolved<Config>(config, defaultKey), layer))

/**
 * Provides an engine on Gemini: settings of the provider and of the engine in one.
 *
 * @example
 * ```ts
 * import { Allm } from "@allm/core"
 * import { Google } from "@allm/google"
 * import { HttpClient, HttpClientResponse } from "@effect/platform"
 * import { Effect, Redacted } from "effect"
 *
 * // A client that answers at once; elsewhere it is FetchHttpClient.layer.
 * const client = HttpClient.make((request) =>
 *   Effect.succeed(HttpClientResponse.fromWeb(request, Response.json({
 *     candidates: [{ content: { parts: [{ text: "Hello" }] }, finishReason: "STOP" }]
 *   })))
 * )
 *
 * const program = Effect.map(Allm.generate("Hi"), (response) => response.outputText).pipe(
 *   Effect.provide(Google.engine({ apiKey: Redacted.make("a key"), model: "gemini-3-flash" })),
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
 * Provides an engine on Gemini, with its key read from `Config`.
 *
 * @example
 * ```ts
 * import { Engine } from "@allm/core"
 * import { Google } from "@allm/google"
 * import { FetchHttpClient } from "@effect/platform"
 * import { ConfigProvider, Effect, Layer } from "effect"
 *
 * const Assistant = Layer.provide(
 *   Google.engineConfig({ model: "gemini-3-flash", maxTurns: 3 }),
 *   FetchHttpClient.layer
 * )
 *
 * const model = Effect.map(Engine.Engine, ({ settings }) => settings.model).pipe(
 *   Effect.provide(Assistant),
 *   Effect.withConfigProvider(ConfigProvider.fromMap(new Map([["GEMINI_API_KEY", "a key"]])))
 * )
 *
 * assert.strictEqual(Effect.runSync(model), "gemini-3-flash")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const engineConfig = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  options: Configurable & Engine.Options<T, RE, RH, RP, RO>
): Layer.Layer<
  Engine.Engine,
  ConfigError,
  HttpClient.HttpClient | Exclude<Tool.Requirements<NoInfer<T>> | NoInfer<RE | RH | RP | RO>, Adapter.Adapter>
> => {
  const [config, rest] = ProviderSettings.split<Configurable, Engine.Options<T, RE, RH, RP, RO>>(keys, options)
  return Layer.provide(Engine.layer(rest), layerConfig(config))
}

/**
 * Runs an effect with another key, for servers that act for many people.
 *
 * @example
 * ```ts
 * import { Allm } from "@allm/core"
 * import { Google } from "@allm/google"
 * import { HttpClient, HttpClientResponse } from "@effect/platform"
 * import { Effect, Redacted } from "effect"
 *
 * const seen: Array<string | undefined> = []
 * const client = HttpClient.make((request) => {
 *   seen.push(request.headers["x-goog-api-key"])
 *   const answer = Response.json({ candidates: [{ finishReason: "STOP" }] })
 *   return Effect.succeed(HttpClientResponse.fromWeb(request, answer))
 * })
 *
 * const program = Allm.generate("Hi").pipe(
 *   Google.withApiKey(Redacted.make("theirs")),
 *   Effect.provide(Google.engine({ apiKey: Redacted.make("ours"), model: "gemini-3-flash" })),
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
  HttpAdapter.withApiKey(name, apiKey)
