/**
 * Adapters that speak HTTP: a request is written, and the answer read as server-sent events or as one body of JSON.
 *
 * A provider is a `Protocol`: how to write a request, and what its frames mean. The rest is here: reading any cut of bytes,
 * keys that never show, refusals as typed errors, connections that close when nobody listens any more.
 *
 * @since 0.1.0
 */
import * as Headers from "@effect/platform/Headers"
import * as HttpClient from "@effect/platform/HttpClient"
import type * as HttpClientError from "@effect/platform/HttpClientError"
import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import type * as Chunk from "effect/Chunk"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Either from "effect/Either"
import * as FiberRef from "effect/FiberRef"
import * as GlobalValue from "effect/GlobalValue"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Adapter from "./Adapter.ts"
import { AdapterError, type Reason } from "./AdapterError.ts"
import type { AdapterEvent } from "./Event.ts"
import { wantsRaw } from "./internal/emit.ts"
import { HttpReading } from "./internal/httpReading.ts"
import * as Refusal from "./internal/httpRefusal.ts"
import type { Request } from "./Request.ts"
import * as Telemetry from "./Telemetry.ts"

/**
 * What a frame came to: the events it means, none if it means nothing, or the error it tells.
 *
 * @since 0.1.0
 * @category models
 */
export type Decoded = ReadonlyArray<AdapterEvent> | AdapterError

/**
 * Reads one answer. It may keep state between frames: there is one decoder per answer.
 *
 * What it does not know it leaves out; should it throw, the frame counts as one that cannot be read.
 *
 * @since 0.1.0
 * @category models
 */
export interface Decoder {
  /** A server-sent event, its data parsed. */
  readonly frame: (data: unknown, event: string | undefined) => Decoded
  /** No frame follows. `isDone` is true when the provider said so with `[DONE]`. An answer that broke off gives nothing. */
  readonly end: (isDone: boolean) => Decoded
  /** An answer in one piece. */
  readonly body: (body: unknown) => Decoded
}

/**
 * What a body that tells of an error says beyond the usual.
 *
 * @since 0.1.0
 * @category models
 */
export interface Told {
  readonly reason?: Reason | undefined
  readonly detail?: string | undefined
  readonly retryAfter?: Duration.Duration | undefined
  readonly requestId?: string | undefined
}

/**
 * How a provider is spoken to.
 *
 * @since 0.1.0
 * @category models
 */
export interface Protocol {
  /** The provider's name, for errors, spans and `withApiKey`. */
  readonly name: string
  readonly capabilities?: Adapter.Capabilities | undefined
  /** Writes a request, without its key. */
  readonly encode: (request: Request) => Either.Either<HttpClientRequest.HttpClientRequest, AdapterError>
  readonly decoder: (request: Request) => Decoder
  readonly apiKey?: Redacted.Redacted | undefined
  /** Puts the key where the provider looks for it. */
  readonly authorize: (
    request: HttpClientRequest.HttpClientRequest,
    apiKey: Redacted.Redacted
  ) => HttpClientRequest.HttpClientRequest
  /** What to write when there is no key. Without it, requests go out without one. */
  readonly keyHint?: string | undefined
  /** What an error's body says, where it is not what its status says. */
  readonly told?: ((body: unknown, status: number | undefined) => Told) | undefined
  /** The longest frame, in characters. Default 16 Mi. */
  readonly maxFrameLength?: number | undefined
}

const defaultMaxFrameLength = 16 * 1024 * 1024

/** After its last frame a provider may take this long to close; then the connection cannot be used again. */
const patience: Duration.DurationInput = "500 millis"

/** Headers that hold keys, besides those the platform knows. */
const keyHeaders = ["x-goog-api-key", "api-key"]

const unsendable = /[^\x20-\x7e]/

const currentKeys: FiberRef.FiberRef<ReadonlyMap<string, Redacted.Redacted>> = GlobalValue.globalValue(
  "@allm/core/HttpAdapter/currentKeys",
  () => FiberRef.unsafeMake<ReadonlyMap<string, Redacted.Redacted>>(new Map())
)

/**
 * Runs an effect with another key for a provider: for servers that act for many people.
 *
 * @example
 * ```ts
 * import { Allm, HttpAdapter } from "@allm/core"
 * import { Redacted } from "effect"
 *
 * const chatFor = (key: Redacted.Redacted) => HttpAdapter.withApiKey("openai", key)(Allm.chat("Hello"))
 *
 * assert.ok(chatFor(Redacted.make("theirs")))
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const withApiKey =
  (provider: string, apiKey: Redacted.Redacted) => <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.locallyWith(effect, currentKeys, (keys) => new Map([...keys, [provider, apiKey]]))

/**
 * Makes the error that a body tells of.
 *
 * @example
 * ```ts
 * import { HttpAdapter } from "@allm/core"
 *
 * const error = HttpAdapter.errorOf("acme", { error: { message: "maximum context length is 8192" } }, 400)
 *
 * assert.strictEqual(error.reason, "context_length_exceeded")
 * assert.strictEqual(error.detail, "maximum context length is 8192")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const errorOf = (provider: string, body: unknown, status?: number, told: Told = {}): AdapterError => {
  const detail = told.detail ?? Refusal.detailOf(body)
  const byStatus = status === undefined ? "unknown" : Refusal.reasonOfStatus(status)
  const byText = byStatus === "invalid_request" || byStatus === "unknown"
    ? Refusal.reasonOfText([...Refusal.codesOf(body), detail ?? ""].join(" "))
    : undefined
  return new AdapterError({
    reason: told.reason ?? byText ?? byStatus,
    provider,
    ...(detail === undefined ? {} : { detail }),
    ...(status === undefined ? {} : { status }),
    ...(told.retryAfter === undefined ? {} : { retryAfter: told.retryAfter }),
    ...(told.requestId === undefined ? {} : { requestId: told.requestId })
  })
}

/**
 * Makes an adapter that speaks a protocol over the HTTP client in use.
 *
 * @example
 * ```ts
 * import { HttpAdapter } from "@allm/core"
 * import { FetchHttpClient, HttpClientRequest } from "@effect/platform"
 * import { Effect, Either } from "effect"
 *
 * const acme: HttpAdapter.Protocol = {
 *   name: "acme",
 *   encode: () => Either.right(HttpClientRequest.post("https://acme.example/chat")),
 *   authorize: (request, apiKey) => HttpClientRequest.bearerToken(request, apiKey),
 *   decoder: () => ({ frame: () => [], body: () => [], end: () => [] })
 * }
 *
 * const made = Effect.provide(HttpAdapter.make(acme), FetchHttpClient.layer)
 *
 * assert.strictEqual(Effect.runSync(made).name, "acme")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (protocol: Protocol): Effect.Effect<Adapter.Service, never, HttpClient.HttpClient> =>
  Effect.map(
    HttpClient.HttpClient,
    (client) =>
      Adapter.make((request, emit) => new Call(protocol, client, request, emit).run, {
        name: protocol.name,
        capabilities: protocol.capabilities
      })
  )

/**
 * Provides an adapter that speaks a protocol.
 *
 * @example
 * ```ts
 * import { Allm, Engine, HttpAdapter } from "@allm/core"
 * import { HttpClient, HttpClientRequest, HttpClientResponse } from "@effect/platform"
 * import { Effect, Either, Layer } from "effect"
 *
 * // A provider whose frames are `{ "text": "…" }`, and who says [DONE].
 * const acme: HttpAdapter.Protocol = {
 *   name: "acme",
 *   encode: ({ messages }) =>
 *     Either.right(HttpClientRequest.bodyUnsafeJson(HttpClientRequest.post("https://acme.example/chat"), { messages })),
 *   authorize: (request, apiKey) => HttpClientRequest.bearerToken(request, apiKey),
 *   decoder: () => {
 *     const frame = (data: unknown): HttpAdapter.Decoded => [{ _tag: "TextDelta", delta: (data as { text: string }).text }]
 *     return {
 *       frame,
 *       body: frame,
 *       end: (isDone) => isDone ? [{ _tag: "MessageCompleted", finishReason: "stop", metadata: {} }] : []
 *     }
 *   }
 * }
 *
 * // In a program: FetchHttpClient.layer
 * const client = HttpClient.make((request) =>
 *   Effect.succeed(HttpClientResponse.fromWeb(request, new Response("data: {\"text\":\"Hi\"}\n\ndata: [DONE]\n\n")))
 * )
 *
 * const program = Effect.map(Allm.generate("Hello"), (response) => response.outputText).pipe(
 *   Effect.provide(
 *     Engine.layer().pipe(
 *       Layer.provide(HttpAdapter.layer(acme)),
 *       Layer.provide(Layer.succeed(HttpClient.HttpClient, client))
 *     )
 *   )
 * )
 *
 * assert.strictEqual(await Effect.runPromise(program), "Hi")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (protocol: Protocol): Layer.Layer<Adapter.Adapter, never, HttpClient.HttpClient> =>
  Layer.effect(Adapter.Adapter, make(protocol))

type Pull = Effect.Effect<Chunk.Chunk<Uint8Array>, Option.Option<HttpClientError.HttpClientError>>

class Call {
  private readonly protocol: Protocol
  private readonly client: HttpClient.HttpClient
  private readonly request: Request
  private readonly emit: Adapter.Emit
  /** The key this call was made with; it must not come back in what a provider says. */
  private apiKey: Redacted.Redacted | undefined
  private requestId: string | undefined

  constructor(protocol: Protocol, client: HttpClient.HttpClient, request: Request, emit: Adapter.Emit) {
    this.protocol = protocol
    this.client = client
    this.request = request
    this.emit = emit
  }

  get run(): Effect.Effect<void, AdapterError> {
    return this.authorized().pipe(
      Effect.flatMap((request) => this.client.execute(request)),
      Effect.catchTags({
        RequestError: (error) => Effect.fail(this.unreachable(error)),
        ResponseError: (error) => Effect.fail(this.unreachable(error))
      }),
      Effect.flatMap((response) => this.answered(response)),
      Effect.locallyWith(Headers.currentRedactedNames, (names) => [...names, ...keyHeaders])
    )
  }

  private authorized(): Effect.Effect<HttpClientRequest.HttpClientRequest, AdapterError> {
    const { authorize, encode, keyHint, name } = this.protocol
    return Effect.flatMap(FiberRef.get(currentKeys), (keys) => {
      const apiKey = keys.get(name) ?? this.protocol.apiKey
      if (apiKey === undefined || Redacted.value(apiKey) === "") {
        return keyHint === undefined
          ? encode(this.request)
          : new AdapterError({ reason: "authentication_failed", provider: name, detail: `there is no key; ${keyHint}` })
      }
      this.apiKey = apiKey
      // The client would show it in its complaint.
      if (unsendable.test(Redacted.value(apiKey))) {
        const detail = "the key holds a character that no header can hold, such as the end of a line; leave it out"
        return new AdapterError({ reason: "authentication_failed", provider: name, detail })
      }
      return Effect.map(encode(this.request), (request) => authorize(request, apiKey))
    })
  }

  private answered(response: HttpClientResponse.HttpClientResponse): Effect.Effect<void, AdapterError> {
    this.requestId = Refusal.requestIdOf(response.headers)
    if (response.status < 200 || response.status >= 300) return this.refused(response)
    const reading = new HttpReading(
      this.protocol.decoder(this.request),
      this.protocol.maxFrameLength ?? defaultMaxFrameLength,
      wantsRaw(this.emit)
    )
    const read = isJson(response) ? this.readBody(response, reading) : this.readFrames(response, reading)
    return Effect.zipRight(read, Effect.suspend(() => this.ended(reading)))
  }

  private readBody(
    response: HttpClientResponse.HttpClientResponse,
    reading: HttpReading
  ): Effect.Effect<void, AdapterError> {
    return response.text.pipe(
      Effect.mapError((error) => this.unreachable(error)),
      Effect.flatMap((text) => {
        reading.body(text)
        return this.emit(reading.taken())
      })
    )
  }

  private readFrames(
    response: HttpClientResponse.HttpClientResponse,
    reading: HttpReading
  ): Effect.Effect<void, AdapterError> {
    return Effect.scoped(Effect.flatMap(Stream.toPull(response.stream), (pull) => this.pullAll(pull, reading)))
  }

  private pullAll(pull: Pull, reading: HttpReading): Effect.Effect<void, AdapterError, Scope.Scope> {
    const next: Effect.Effect<void, AdapterError> = Effect.matchEffect(pull, {
      onFailure: Option.match({
        onNone: () => {
          reading.end()
          return this.emit(reading.taken())
        },
        // What came before it broke off counts.
        onSome: (error) => Effect.zipRight(this.emit(reading.taken()), Effect.fail(this.unreachable(error)))
      }),
      onSuccess: (chunk) => {
        for (const bytes of chunk) reading.feed(bytes)
        // Also when there are none: a provider that pings is not silent.
        return Effect.zipRight(this.emit(reading.taken()), reading.isOver ? close : next)
      }
    })
    // The last bytes are read, so that the connection can be used again.
    const close = Effect.suspend(() =>
      reading.error === undefined ? Effect.asVoid(Effect.timeoutOption(drained, patience)) : Effect.void
    )
    const drained: Effect.Effect<void> = Effect.matchEffect(pull, {
      onFailure: () => Effect.void,
      onSuccess: () => drained
    })
    return next
  }

  private ended(reading: HttpReading): Effect.Effect<void, AdapterError> {
    const problem = reading.error ?? reading.problem
    const outcome = problem === undefined
      ? Effect.void
      : Effect.fail(this.own(problem instanceof AdapterError ? problem : new AdapterError(problem)))
    const { unreadable } = reading
    if (unreadable === 0) return outcome
    const { name } = this.protocol
    const count = Metric.incrementBy(Metric.tagged(Telemetry.unreadableFrames, "provider", name), unreadable)
    return Effect.logWarning(`${unreadable} frames of ${name} could not be read; left out`).pipe(
      Effect.zipRight(count),
      Effect.zipRight(outcome)
    )
  }

  private refused(response: HttpClientResponse.HttpClientResponse): Effect.Effect<never, AdapterError> {
    const text = Effect.orElseSucceed(response.text, () => "")
    return Effect.flatMap(Effect.zip(text, Clock.currentTimeMillis), ([text, now]) => {
      const { name, told } = this.protocol
      const body = parsed(text)
      const retryAfter = Refusal.retryAfterOf(response.headers, now)
      const own = told?.(body, response.status) ?? {}
      const error = errorOf(name, body, response.status, { ...own, retryAfter: retryAfter ?? own.retryAfter })
      return Effect.fail(this.own(error))
    })
  }

  /** An error of this call: with its request's id, and without its key. */
  private own(error: AdapterError): AdapterError {
    const key = this.apiKey === undefined ? "" : Redacted.value(this.apiKey)
    const detail = key === "" ? error.detail : error.detail?.replaceAll(key, "<redacted>")
    const requestId = error.requestId ?? this.requestId
    return new AdapterError({
      ...error,
      provider: this.protocol.name,
      ...(detail === undefined ? {} : { detail }),
      ...(requestId === undefined ? {} : { requestId })
    })
  }

  // The client's error holds the request with its key: only its words go on.
  private unreachable(error: HttpClientError.HttpClientError): AdapterError {
    const isOurs = error._tag === "RequestError" && error.reason !== "Transport"
    return this.own(
      new AdapterError({ reason: isOurs ? "invalid_request" : "network_error", detail: wordsOf(error) })
    )
  }
}

const isJson = ({ headers }: HttpClientResponse.HttpClientResponse): boolean =>
  /^application\/([\w.-]+\+)?json/i.test(headers["content-type"] ?? "")

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const wordsOf = (error: HttpClientError.HttpClientError): string => {
  const texts: Array<string> = error.description === undefined ? [] : [error.description]
  for (let cause = error.cause; cause instanceof Error && texts.length < 4; cause = cause.cause) {
    texts.push(cause.message)
  }
  return texts.length === 0 ? `the request to the provider failed (${error.reason})` : texts.join(": ")
}
