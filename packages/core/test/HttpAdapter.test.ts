import { Adapter, type AdapterError, Allm, Engine, type Event, HttpAdapter, Telemetry } from "@allm/core"
import { HttpClient, HttpClientError, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import {
  Cause,
  Chunk,
  Clock,
  Duration,
  Effect,
  Either,
  Exit,
  Fiber,
  Layer,
  Logger,
  Metric,
  Redacted,
  Stream,
  TestClock,
  Tracer
} from "effect"
import * as fc from "effect/FastCheck"

/** A provider whose frames are `{ say }`, `{ end }` and `{ fail }`. */
const acme = (options?: Partial<HttpAdapter.Protocol>): HttpAdapter.Protocol => ({
  name: "acme",
  encode: (request) =>
    Either.right(HttpClientRequest.bodyUnsafeJson(HttpClientRequest.post("http://acme.test/chat"), {
      turns: request.messages.length
    })),
  decoder: () => {
    let said = false
    const frame = (data: unknown): HttpAdapter.Decoded => {
      const { broken, end, fail, say } = data as { say?: string; end?: string; fail?: string; broken?: () => void }
      if (fail !== undefined) return HttpAdapter.errorOf("acme", { error: { message: fail } }, 529)
      if (broken !== undefined) broken()
      said ||= say !== undefined
      const text: ReadonlyArray<Event.AdapterEvent> = say === undefined ? [] : [{ _tag: "TextDelta", delta: say }]
      return end === undefined ? text : [...text, completed]
    }
    return { frame, body: frame, end: (isDone) => isDone && said ? [completed] : [] }
  },
  authorize: (request, apiKey) => HttpClientRequest.bearerToken(request, apiKey),
  ...options
})

const completed: Event.AdapterEvent = { _tag: "MessageCompleted", finishReason: "stop", metadata: {} }

type Answer = (request: HttpClientRequest.HttpClientRequest) => Response

const clientOf = (answer: Answer): Layer.Layer<HttpClient.HttpClient> =>
  Layer.succeed(
    HttpClient.HttpClient,
    HttpClient.make((request) => Effect.sync(() => HttpClientResponse.fromWeb(request, answer(request))))
  )

const sse = (body: string | ReadonlyArray<Uint8Array>, init?: ResponseInit): Response => {
  const parts = typeof body === "string" ? [new TextEncoder().encode(body)] : body
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const part of parts) controller.enqueue(part)
      controller.close()
    }
  })
  return new Response(stream, { headers: { "content-type": "text/event-stream" }, ...init })
}

const frames = (...data: ReadonlyArray<unknown>): string =>
  data.map((one) => `data: ${typeof one === "string" ? one : JSON.stringify(one)}\n\n`).join("")

const request = {
  messages: [{ role: "user" as const, content: "Hi", metadata: {} }],
  tools: [],
  options: {},
  metadata: {}
}

const ask = (answer: Answer, options?: Partial<HttpAdapter.Protocol>) =>
  Stream.runCollect(Adapter.stream(request)).pipe(
    Effect.map(Chunk.toReadonlyArray),
    Effect.provide(HttpAdapter.layer(acme(options))),
    Effect.provide(clientOf(answer))
  )

const refusal = (answer: Answer, options?: Partial<HttpAdapter.Protocol>) => Effect.flip(ask(answer, options))

const engine = (answer: Answer, options?: Partial<HttpAdapter.Protocol>) =>
  Engine.layer().pipe(Layer.provide(HttpAdapter.layer(acme(options))), Layer.provide(clientOf(answer)))

describe("frames", () => {
  it.effect("are read as they come, to the one that completes the message", () =>
    Effect.gen(function*() {
      const events = yield* ask(() => sse(frames({ say: "Hel" }, { say: "lo" }, { end: "stop" }, { say: "late" })))
      assert.deepStrictEqual(events, [
        { _tag: "TextDelta", delta: "Hel" },
        { _tag: "TextDelta", delta: "lo" },
        completed
      ])
    }))

  it.effect("end with [DONE] where the provider says nothing else", () =>
    Effect.gen(function*() {
      const events = yield* ask(() => sse(frames({ say: "Hi" }, "[DONE]")))
      assert.deepStrictEqual(events, [{ _tag: "TextDelta", delta: "Hi" }, completed])
    }))

  it.effect("may lack the empty line after the last", () =>
    Effect.gen(function*() {
      const events = yield* ask(() => sse("data: {\"say\":\"Hi\"}\n\ndata: {\"end\":\"stop\"}"))
      assert.strictEqual(events.length, 2)
    }))

  it.effect.prop(
    "mean the same in any cut of their bytes",
    [fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 60 }), fc.boolean()],
    ([cuts, crlf]) =>
      Effect.gen(function*() {
        const text = `: ping\n\nevent: a\n${frames({ say: "Grüße 🌍" }, { say: "\u2028ö" }, { end: "stop" })}`
        const bytes = new TextEncoder().encode(crlf ? text.replaceAll("\n", "\r\n") : text)
        const parts: Array<Uint8Array> = []
        for (let at = 0, i = 0; at < bytes.length; at += cuts[i++ % cuts.length]!) {
          parts.push(bytes.slice(at, at + cuts[i % cuts.length]!))
        }
        assert.deepStrictEqual(yield* ask(() => sse(parts)), [
          { _tag: "TextDelta", delta: "Grüße 🌍" },
          { _tag: "TextDelta", delta: "\u2028ö" },
          completed
        ])
      })
  )

  it.effect("that cannot be read are left out, counted and logged", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const logger = Logger.make(({ message }) => lines.push(String(message)))
      const counter = Metric.tagged(Telemetry.unreadableFrames, "provider", "acme")
      const before = (yield* Metric.value(counter)).count
      const body = frames("{oops", { say: "Hi" }, { broken: "not a function" }, { end: "stop" })
      const events = yield* Effect.provide(ask(() => sse(body)), Logger.replace(Logger.defaultLogger, logger))
      assert.strictEqual(events.length, 2)
      assert.deepStrictEqual(lines, ["2 frames of acme could not be read; left out"])
      assert.strictEqual((yield* Metric.value(counter)).count - before, 2)
    }))

  it.effect("without any meaning are a malformed response, never an empty success", () =>
    Effect.gen(function*() {
      for (const body of ["", "data: nonsense\n\n", "<html>down</html>", frames({ other: 1 })]) {
        const error = yield* refusal(() => sse(body))
        assert.strictEqual(error.reason, "malformed_response", body)
      }
    }))

  it.effect("that break off keep what came, and fail", () =>
    Effect.gen(function*() {
      const result = yield* Allm.generate("Hi").pipe(Effect.provide(engine(() => sse(frames({ say: "Hal" })))))
      assert.strictEqual(result.outputText, "Hal")
      assert.strictEqual(result.finishReason, "error")
      assert.deepInclude(result.metadata["error"], { reason: "network_error" })
    }))

  it.effect("are bounded in length", () =>
    Effect.gen(function*() {
      const error = yield* refusal(
        () => sse(Array<Uint8Array>(40).fill(new TextEncoder().encode("data: ".padEnd(100, "x")))),
        {
          maxFrameLength: 1_000
        }
      )
      assert.strictEqual(error.reason, "malformed_response")
      assert.include(error.detail, "longer than 1000 characters")
    }))

  it.effect("tell errors, before the first event so that the call is repeated", () =>
    Effect.gen(function*() {
      let asked = 0
      const answer = () =>
        ++asked === 1 ? sse(frames({ fail: "overloaded" })) : sse(frames({ say: "Hi" }, { end: "stop" }))
      const running = yield* Effect.fork(Effect.provide(Allm.generate("Hi"), engine(answer)))
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(running)).outputText, "Hi")
      assert.strictEqual(asked, 2)
    }))

  it.effect("are shown untouched to whoever asks", () =>
    Effect.gen(function*() {
      const raw = Allm.streamGenerate("Hi", { includeRawChunks: true }).pipe(
        Stream.filterMap((event) =>
          event._tag === "RawChunk" ? Chunk.head(Chunk.of(event.chunk)) : Chunk.head(Chunk.empty())
        ),
        Stream.runCollect,
        Effect.provide(engine(() => sse(frames({ say: "Hi" }, { end: "stop" }))))
      )
      assert.deepStrictEqual(Chunk.toReadonlyArray(yield* raw), [{ say: "Hi" }, { end: "stop" }])
    }))

  it.effect("need not be frames: a body of JSON is an answer too", () =>
    Effect.gen(function*() {
      const events = yield* ask(() => Response.json({ say: "Hi", end: "stop" }))
      assert.deepStrictEqual(events, [{ _tag: "TextDelta", delta: "Hi" }, completed])
    }))

  it.effect("that say nothing are signs of life all the same", () =>
    Effect.gen(function*() {
      let send: (text: string) => void = () => {}
      const stream = new ReadableStream<Uint8Array>({
        start: (controller) => {
          send = (text) => {
            controller.enqueue(new TextEncoder().encode(text))
            if (text.includes("end")) controller.close()
          }
        }
      })
      const running = yield* Effect.fork(
        Allm.generate("Hi", { idleTimeout: "10 seconds" }).pipe(Effect.provide(engine(() => new Response(stream))))
      )
      const wait = Effect.zipRight(TestClock.adjust("8 seconds"), Effect.promise(() => new Promise(setImmediate)))
      yield* wait
      send(": ping\n\n")
      yield* wait
      send(": ping\n\n")
      yield* wait
      send(frames({ say: "Hi" }, { end: "stop" }))
      assert.strictEqual((yield* Fiber.join(running)).outputText, "Hi")
    }))

  it.live("leave a provider that does not close its connection", () =>
    Effect.gen(function*() {
      let isCancelled = false
      const stream = new ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(new TextEncoder().encode(frames({ say: "Hi" }, { end: "stop" }))),
        cancel: () => {
          isCancelled = true
        }
      })
      const [duration, events] = yield* Effect.timed(ask(() => new Response(stream)))
      assert.strictEqual(events.length, 2)
      assert.isTrue(isCancelled)
      assert.isBelow(Duration.toMillis(duration), 5_000)
    }))
})

describe("refusals", () => {
  const statuses: ReadonlyArray<readonly [number, AdapterError.Reason]> = [
    [400, "invalid_request"],
    [401, "authentication_failed"],
    [403, "authentication_failed"],
    [404, "invalid_request"],
    [408, "timeout"],
    [409, "provider_unavailable"],
    [413, "context_length_exceeded"],
    [422, "invalid_request"],
    [429, "rate_limited"],
    [500, "provider_unavailable"],
    [503, "provider_unavailable"],
    [529, "provider_unavailable"]
  ]
  for (const [status, reason] of statuses) {
    it.effect(`${status} is ${reason}`, () =>
      Effect.gen(function*() {
        const error = yield* refusal(() =>
          new Response(JSON.stringify({ error: { message: "No." } }), { status, headers: { "x-request-id": "r1" } })
        )
        assert.deepInclude({ ...error }, { reason, status, detail: "No.", provider: "acme", requestId: "r1" })
      }))
  }

  it.effect("tell a conversation that is too long, and refused content, from other bad requests", () =>
    Effect.gen(function*() {
      const reasonOf = (error: unknown) =>
        Effect.map(refusal(() => Response.json({ error }, { status: 400 })), ({ reason }) => reason)
      assert.strictEqual(yield* reasonOf({ code: "context_length_exceeded", message: "?" }), "context_length_exceeded")
      assert.strictEqual(yield* reasonOf({ message: "prompt is too long: 9 > 8" }), "context_length_exceeded")
      assert.strictEqual(yield* reasonOf({ code: "content_filter", message: "?" }), "content_filter")
    }))

  it.effect("say how long to wait: in seconds, milliseconds, or by a date", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(Date.parse("2026-01-01T00:00:00Z"))
      const wait = (headers: Record<string, string>) =>
        Effect.map(refusal(() => new Response("", { status: 429, headers })), ({ retryAfter }) => retryAfter)
      assert.deepStrictEqual(yield* wait({ "retry-after": "7" }), Duration.seconds(7))
      assert.deepStrictEqual(yield* wait({ "retry-after-ms": "250", "retry-after": "7" }), Duration.millis(250))
      assert.deepStrictEqual(yield* wait({ "retry-after": "Thu, 01 Jan 2026 00:00:03 GMT" }), Duration.seconds(3))
      assert.deepStrictEqual(yield* wait({ "retry-after": "soon" }), undefined)
      assert.strictEqual(yield* Clock.currentTimeMillis, Date.parse("2026-01-01T00:00:00Z"))
    }))

  it.effect("keep a page of HTML short", () =>
    Effect.gen(function*() {
      const error = yield* refusal(() => new Response(`<html>${"x".repeat(9_000)}`, { status: 502 }))
      assert.strictEqual(error.detail?.length, 1_000)
    }))

  it.effect("take the word of a protocol that knows better", () =>
    Effect.gen(function*() {
      const error = yield* refusal(() => Response.json({}, { status: 400 }), {
        told: () => ({ reason: "unsupported_feature", detail: "no images", retryAfter: Duration.seconds(1) })
      })
      assert.deepInclude({ ...error }, {
        reason: "unsupported_feature",
        detail: "no images",
        retryAfter: Duration.seconds(1)
      })
    }))

  it.effect("of the network are typed too", () =>
    Effect.gen(function*() {
      const client = HttpClient.make((request) =>
        Effect.fail(
          new HttpClientError.RequestError({
            request,
            reason: "Transport",
            cause: new TypeError("fetch failed", { cause: new Error("ECONNREFUSED") })
          })
        )
      )
      const error = yield* Stream.runDrain(Adapter.stream(request)).pipe(
        Effect.provide(HttpAdapter.layer(acme())),
        Effect.provideService(HttpClient.HttpClient, client),
        Effect.flip
      )
      assert.deepInclude({ ...error }, { reason: "network_error", detail: "fetch failed: ECONNREFUSED" })
      assert.isTrue(error.isRetryable)
    }))
})

describe("keys", () => {
  const secret = "sk-very-secret"
  const authorizationOf = ({ headers }: HttpClientRequest.HttpClientRequest) => headers["authorization"]

  it.effect("go where the protocol puts them, and can be another's for one call", () =>
    Effect.gen(function*() {
      const seen: Array<string | undefined> = []
      const answer: Answer = (request) => {
        seen.push(authorizationOf(request))
        return sse(frames({ say: "Hi" }, { end: "stop" }))
      }
      const chat = Allm.chat("Hi")
      yield* Effect.zipRight(
        chat,
        HttpAdapter.withApiKey("acme", Redacted.make("theirs"))(chat)
      ).pipe(Effect.provide(engine(answer, { apiKey: Redacted.make("ours") })))
      assert.deepStrictEqual(seen, ["Bearer ours", "Bearer theirs"])
    }))

  it.effect("that are missing are a typed error that says what to write", () =>
    Effect.gen(function*() {
      let asked = 0
      const answer = () => (asked++, sse(""))
      for (const apiKey of [undefined, Redacted.make("")]) {
        const error = yield* refusal(answer, { apiKey, keyHint: "set ACME_API_KEY" })
        assert.deepInclude({ ...error }, {
          reason: "authentication_failed",
          detail: "there is no key; set ACME_API_KEY"
        })
      }
      assert.strictEqual(asked, 0)
    }))

  it.effect("that no header can hold are refused before a client complains about them in full", () =>
    Effect.gen(function*() {
      let asked = 0
      const error = yield* refusal(() => (asked++, sse("")), { apiKey: Redacted.make(`${secret}\n`) })
      assert.strictEqual(error.reason, "authentication_failed")
      assert.include(error.detail, "no header can hold")
      assert.notInclude(error.message, secret)
      assert.strictEqual(asked, 0)
    }))

  it.effect("show in no error, log or span", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const logger = Logger.make((line) => seen.push(line.message, line.cause, line.annotations))
      const tracer = Tracer.make({
        context: (run) => run(),
        span: (name, parent, context, links, startTime, kind) => {
          const attributes = new Map<string, unknown>()
          return {
            _tag: "Span",
            name,
            spanId: name,
            traceId: "t",
            parent,
            context,
            links,
            sampled: true,
            kind,
            attributes,
            status: { _tag: "Started", startTime },
            attribute: (key, value) => {
              attributes.set(key, value)
              seen.push(key, value)
            },
            event: (...args) => seen.push(args),
            addLinks: () => {},
            end: (_, exit) => seen.push(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : exit._tag)
          }
        }
      })
      const answer: Answer = () => Response.json({ error: { message: `bad key ${secret}` } }, { status: 401 })
      const header = (request: HttpClientRequest.HttpClientRequest, key: Redacted.Redacted) =>
        HttpClientRequest.setHeader(request, "x-goog-api-key", Redacted.value(key))
      const error = yield* Effect.flip(Effect.asVoid(Allm.generate("Hi"))).pipe(
        Effect.provide(engine(answer, { apiKey: Redacted.make(secret), authorize: header })),
        Effect.tapErrorCause(Effect.logError),
        Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
        Effect.withTracer(tracer)
      )
      assert.strictEqual(error._tag === "AdapterError" ? error.detail : error, "bad key <redacted>")
      const all = [...seen, error].map((one) =>
        `${String(one)} ${
          JSON.stringify(one, (_, value: unknown) => typeof value === "bigint" ? String(value) : value)
        }`
      )
      assert.isAbove(seen.length, 10)
      assert.deepStrictEqual(all.filter((text) => text.includes(secret)), [])
    }))
})
