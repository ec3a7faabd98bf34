import { Adapter, type AdapterError, Allm, Engine, Message, Tool } from "@allm/core"
import { Google } from "@allm/google"
import { FetchHttpClient, type HttpClientRequest } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import {
  Cause,
  Config,
  ConfigProvider,
  Duration,
  Effect,
  Exit,
  Fiber,
  Layer,
  Logger,
  Redacted,
  Stream,
  TestClock,
  Tracer
} from "effect"
import { adapterOf, ask, bodyOf, chunk, clientOf, frames, hi, sse, stop } from "./support.ts"

const refusal = (error: object, status: number) =>
  Effect.flip(Effect.asVoid(ask(() => Response.json({ error }, { status }))))

const details = (type: string, fields: object) => [{ "@type": `type.googleapis.com/google.rpc.${type}`, ...fields }]

describe("refusals", () => {
  const statuses: ReadonlyArray<readonly [number, string, AdapterError.Reason]> = [
    [400, "INVALID_ARGUMENT", "invalid_request"],
    [400, "FAILED_PRECONDITION", "invalid_request"],
    [401, "UNAUTHENTICATED", "authentication_failed"],
    [403, "PERMISSION_DENIED", "authentication_failed"],
    [404, "NOT_FOUND", "invalid_request"],
    [409, "ABORTED", "provider_unavailable"],
    [413, "SOMETHING_NEW", "context_length_exceeded"],
    [429, "RESOURCE_EXHAUSTED", "rate_limited"],
    [500, "INTERNAL", "provider_unavailable"],
    [501, "UNIMPLEMENTED", "unsupported_feature"],
    [503, "UNAVAILABLE", "provider_unavailable"],
    [504, "DEADLINE_EXCEEDED", "timeout"]
  ]
  for (const [status, name, reason] of statuses) {
    it.effect(`${status} ${name} is ${reason}`, () =>
      Effect.gen(function*() {
        const error = yield* refusal({ code: status, message: "No.", status: name }, status)
        assert.deepInclude({ ...error }, { reason, status, detail: "No.", provider: "google" })
      }))
  }

  it.effect("of a conversation that is too long say so", () =>
    Effect.gen(function*() {
      const message = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
      const error = yield* refusal({ code: 400, message, status: "INVALID_ARGUMENT" }, 400)
      assert.strictEqual(error.reason, "context_length_exceeded")
    }))

  it.effect("of a wrong key come as a bad request, and are told apart", () =>
    Effect.gen(function*() {
      const message = "API key not valid. Please pass a valid API key."
      const named = details("ErrorInfo", { reason: "API_KEY_INVALID", domain: "googleapis.com" })
      for (const error of [{ message: "?", details: named }, { message }]) {
        const refused = yield* refusal({ code: 400, status: "INVALID_ARGUMENT", ...error }, 400)
        assert.strictEqual(refused.reason, "authentication_failed")
      }
    }))

  it.effect("say how long to wait in their body; a header beats it", () =>
    Effect.gen(function*() {
      const waits: ReadonlyArray<readonly [unknown, Duration.Duration | undefined]> = [
        ["34.4s", Duration.millis(34_400)],
        ["7s", Duration.seconds(7)],
        [{ seconds: "2", nanos: 500_000_000 }, Duration.millis(2_500)],
        ["soon", undefined],
        ["-1s", undefined],
        [null, undefined]
      ]
      for (const [retryDelay, expected] of waits) {
        const error = { code: 429, status: "RESOURCE_EXHAUSTED", details: details("RetryInfo", { retryDelay }) }
        assert.deepStrictEqual((yield* refusal(error, 429)).retryAfter, expected)
      }
      const body = { error: { details: details("RetryInfo", { retryDelay: "9s" }) } }
      const headers = { "retry-after": "3" }
      const error = yield* Effect.flip(Effect.asVoid(ask(() => Response.json(body, { status: 429, headers }))))
      assert.deepStrictEqual(error.retryAfter, Duration.seconds(3))
    }))

  it.effect("are waited out as long as they ask", () =>
    Effect.gen(function*() {
      let asked = 0
      const slow = {
        error: { code: 429, status: "RESOURCE_EXHAUSTED", details: details("RetryInfo", { retryDelay: "40s" }) }
      }
      const adapter = adapterOf(() =>
        ++asked === 1 ? Response.json(slow, { status: 429 }) : sse(frames(chunk([{ text: "Hi" }], stop)))
      )
      const running = yield* Effect.fork(
        Effect.provide(Allm.generate("Hi"), Engine.layer({ model: "gemini" }).pipe(Layer.provide(adapter)))
      )
      yield* TestClock.adjust("39 seconds")
      assert.strictEqual(asked, 1)
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual((yield* Fiber.join(running)).outputText, "Hi")
    }))

  it.effect("of a form beside tools tell what to do instead", () =>
    Effect.gen(function*() {
      const message = "Function calling with a response mime type: 'application/json' is unsupported"
      const error = yield* refusal({ code: 400, message, status: "INVALID_ARGUMENT" }, 400)
      assert.strictEqual(error.reason, "unsupported_feature")
      assert.include(error.detail, "structuredFinalize: true")
    }))

  it.effect("that are no JSON, or another's, are typed too", () =>
    Effect.gen(function*() {
      for (const body of ["<html>down</html>", "", "[]", "null", "{\"error\":\"down\"}"]) {
        const error = yield* Effect.flip(Effect.asVoid(ask(() => new Response(body, { status: 502 }))))
        assert.strictEqual(error.reason, "provider_unavailable", body)
      }
    }))
})

describe("keys", () => {
  const secret = "AIza-very-secret"
  const answer =
    (seen: Array<HttpClientRequest.HttpClientRequest>) => (request: HttpClientRequest.HttpClientRequest) => {
      seen.push(request)
      return sse(frames(chunk([{ text: "Hi" }], stop)))
    }
  const asking = Stream.runDrain(Adapter.stream(hi))

  it.effect("go into a header, never into the address, and may be another's for one call", () =>
    Effect.gen(function*() {
      const seen: Array<HttpClientRequest.HttpClientRequest> = []
      yield* Effect.zipRight(asking, Google.withApiKey(Redacted.make("theirs"))(asking)).pipe(
        Effect.provide(adapterOf(answer(seen), { apiKey: Redacted.make("ours") }))
      )
      assert.deepStrictEqual(seen.map(({ headers }) => headers["x-goog-api-key"]), ["ours", "theirs"])
      for (const { url, urlParams } of seen) assert.notInclude(`${url} ${JSON.stringify(urlParams)}`, "ours")
    }))

  it.effect("that are missing are a typed error that says what to write", () =>
    Effect.gen(function*() {
      const seen: Array<HttpClientRequest.HttpClientRequest> = []
      for (const apiKey of [undefined, Redacted.make("")]) {
        const error = yield* Effect.flip(Effect.provide(asking, adapterOf(answer(seen), { apiKey })))
        assert.strictEqual(error.reason, "authentication_failed")
        assert.include(error.detail, "GOOGLE_API_KEY")
        assert.include(error.detail, "Google.layer({ apiKey")
      }
      assert.deepStrictEqual(seen, [])
    }))

  it.effect("are not needed by whoever brings a token", () =>
    Effect.gen(function*() {
      const seen: Array<HttpClientRequest.HttpClientRequest> = []
      yield* Effect.provide(
        asking,
        adapterOf(answer(seen), { apiKey: undefined, headers: { Authorization: "Bearer token" } })
      )
      assert.strictEqual(seen[0]?.headers["authorization"], "Bearer token")
      assert.notProperty(seen[0]?.headers, "x-goog-api-key")
    }))

  describe("of the surroundings", () => {
    const keyWith = (environment: ReadonlyArray<readonly [string, string]>, config?: Google.Configurable) => {
      const seen: Array<HttpClientRequest.HttpClientRequest> = []
      return asking.pipe(
        Effect.provide(Google.layerConfig(config).pipe(Layer.provide(clientOf(answer(seen))))),
        Effect.map(() => seen[0]),
        Effect.withConfigProvider(ConfigProvider.fromMap(new Map(environment)))
      )
    }
    const keyOf = (...args: Parameters<typeof keyWith>) =>
      Effect.map(keyWith(...args), (request) => request?.headers["x-goog-api-key"])

    it.effect("are GOOGLE_API_KEY, or else GEMINI_API_KEY", () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* keyOf([["GOOGLE_API_KEY", "a"], ["GEMINI_API_KEY", "b"]]), "a")
        assert.strictEqual(yield* keyOf([["GEMINI_API_KEY", "b"]]), "b")
        assert.strictEqual(yield* keyOf([["GOOGLE_API_KEY", " "], ["GEMINI_API_KEY", "b\n"]]), "b")
      }))

    it.effect("may be given, or read from elsewhere, like every setting", () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* keyOf([], { apiKey: Redacted.make("given") }), "given")
        const request = yield* keyWith([["MINE", "m"], ["URL", "http://localhost:1/v9"]], {
          apiKey: Config.redacted("MINE"),
          baseUrl: Config.string("URL"),
          headers: { "x-team": "a" }
        })
        assert.strictEqual(request?.headers["x-goog-api-key"], "m")
        assert.strictEqual(request?.headers["x-team"], "a")
        assert.isTrue(request?.url.startsWith("http://localhost:1/v9/models/"))
      }))

    it.effect("that are missing or empty are a ConfigError that names them", () =>
      Effect.gen(function*() {
        const empty: ReadonlyArray<readonly [string, string]> = [["GOOGLE_API_KEY", ""]]
        for (const environment of [[], empty]) {
          const error = yield* Effect.flip(keyOf(environment))
          assert.include(String(error), "GOOGLE_API_KEY")
          assert.include(String(error), "GEMINI_API_KEY")
        }
        const error = yield* Effect.flip(keyOf([["MINE", ""]], { apiKey: Config.redacted("MINE") }))
        assert.include(String(error), "apiKey")
        assert.include(String(yield* Effect.flip(keyOf([], { apiKey: Redacted.make("") }))), "empty")
      }))
  })

  it.effect("show in no error, log or span", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const logger = Logger.make((line) => seen.push(line.message, line.cause, line.annotations))
      const tracer = Tracer.make({
        context: (run) => run(),
        span: (name, parent, context, links, startTime, kind) => ({
          _tag: "Span",
          name,
          spanId: name,
          traceId: "t",
          parent,
          context,
          links,
          sampled: true,
          kind,
          attributes: new Map(),
          status: { _tag: "Started", startTime },
          attribute: (key, value) => seen.push(key, value),
          event: (...args) => seen.push(args),
          addLinks: () => {},
          end: (_, exit) => seen.push(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : exit._tag)
        })
      })
      const told = { error: { code: 401, status: "UNAUTHENTICATED", message: `API key ${secret} is not valid` } }
      const engine = Google.engine({ model: "gemini-3-pro", apiKey: Redacted.make(secret) }).pipe(
        Layer.provide(clientOf(() => Response.json(told, { status: 401, headers: { "x-echo": "yes" } })))
      )
      const error = yield* Effect.flip(Effect.asVoid(Allm.generate("Hi"))).pipe(
        Effect.tap(Effect.logError),
        Effect.provide(engine),
        Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
        Effect.withTracer(tracer)
      )

      assert.strictEqual(error._tag === "AdapterError" ? error.detail : error, "API key <redacted> is not valid")
      const bigints = (_: string, value: unknown) => typeof value === "bigint" ? String(value) : value
      const all = [...seen, error].map((one) => `${String(one)} ${JSON.stringify(one, bigints)}`)
      assert.isAbove(seen.length, 10)
      assert.isTrue(all.some((text) => text.includes("x-goog-api-key")))
      assert.deepStrictEqual(all.filter((text) => text.includes(secret)), [])
    }))
})

describe("engines", () => {
  const look = Tool.make("look", { description: "Looks", handler: () => "a door" })

  it.effect("take settings of both, and run the loop", () =>
    Effect.gen(function*() {
      const seen: Array<HttpClientRequest.HttpClientRequest> = []
      const client = clientOf((request) => {
        seen.push(request)
        return seen.length === 1
          ? sse(frames(chunk([{ functionCall: { name: "look", args: {} }, thoughtSignature: "s" }], stop)))
          : sse(frames(chunk([{ text: "A door." }], stop)))
      })
      const engine = Google.engineConfig({
        model: "gemini-3-pro",
        tools: [look],
        temperature: 0,
        params: { safetySettings: [] },
        apiKey: Redacted.make("k"),
        baseUrl: "http://localhost:1"
      })
      const result = yield* Allm.chat([Message.system("Be brief."), Message.user("Where am I?")]).pipe(
        Effect.provide(Layer.provide(engine, client))
      )

      assert.strictEqual(result.finalResponse.outputText, "A door.")
      assert.deepInclude(bodyOf(seen[1]!), {
        contents: [
          { role: "user", parts: [{ text: "Where am I?" }] },
          { role: "model", parts: [{ functionCall: { name: "look", args: {} }, thoughtSignature: "s" }] },
          { role: "user", parts: [{ functionResponse: { name: "look", response: { output: "a door" } } }] }
        ],
        generationConfig: { temperature: 0 },
        safetySettings: []
      })
    }))

  it.effect("refuse options that do not exist", () =>
    Effect.gen(function*() {
      assert.throws(() => Google.engine({ model: "gemini", maxTurns: 0 }), /maxTurns/)
      assert.throws(() => Google.engine({ modle: "gemini" } as never), /modle/)
      const missing = yield* Effect.flip(
        Effect.asVoid(Allm.chat("Hi")).pipe(
          Effect.provide(Google.engineConfig({ model: "gemini" }).pipe(Layer.provide(FetchHttpClient.layer))),
          Effect.withConfigProvider(ConfigProvider.fromMap(new Map()))
        )
      )
      assert.include(String(missing), "GOOGLE_API_KEY")
    }))
})
