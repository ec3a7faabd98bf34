import { Allm, Tool } from "@allm/core"
import { OpenAi, OpenAiChat } from "@allm/openai"
import { FetchHttpClient } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import {
  Cause,
  Config,
  ConfigError,
  ConfigProvider,
  Duration,
  Effect,
  Exit,
  Layer,
  Logger,
  Option,
  Redacted,
  Tracer
} from "effect"
import { ask, clientOf, hello, responseStream, type Sent, sse, written } from "./wire.ts"

const secret = "sk-very-secret-0123456789"

const text = () => sse(responseStream([{ id: "m", type: "message", content: [{ type: "output_text", text: "ok" }] }]))
const chunk = () => sse([{ id: "c", choices: [{ index: 0, delta: { content: "ok" }, finish_reason: "stop" }] }])

const modules = [
  { name: "OpenAi", module: OpenAi, answer: text },
  { name: "OpenAiChat", module: OpenAiChat, answer: chunk }
]

const environment = (variables: Record<string, string>) =>
  Layer.setConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(variables))))

for (const { answer, module, name } of modules) {
  describe(name, () => {
    const authorization = (layer: ReturnType<typeof module.layerConfig>, variables: Record<string, string>) =>
      Effect.map(
        written(Layer.provide(layer, environment(variables)), hello, answer),
        ({ headers }) => headers["authorization"]
      )

    it.effect("reads its key from OPENAI_API_KEY", () =>
      Effect.gen(function*() {
        assert.strictEqual(
          yield* authorization(module.layerConfig(), { OPENAI_API_KEY: ` ${secret}\n` }),
          `Bearer ${secret}`
        )
      }))

    it.effect("reads any setting from Config, or takes it as it is", () =>
      Effect.gen(function*() {
        const layer = module.layerConfig({
          apiKey: Config.redacted("MY_KEY"),
          baseUrl: Config.string("MY_URL"),
          headers: { "x-team": "blue" }
        })
        const variables = environment({ MY_KEY: secret, MY_URL: "http://my.test", OPENAI_API_KEY: "other" })
        const sent = yield* written(Layer.provide(layer, variables), hello, answer)
        assert.match(sent.url, /^http:\/\/my.test\//)
        assert.deepInclude(sent.headers, { authorization: `Bearer ${secret}`, "x-team": "blue" })
        assert.strictEqual(yield* authorization(module.layerConfig({ apiKey: Redacted.make("own") }), {}), "Bearer own")
      }))

    it.effect("fails with a ConfigError that names the variable when there is none, or an empty one", () =>
      Effect.gen(function*() {
        const layers: ReadonlyArray<Layer.Layer<never, ConfigError.ConfigError, never>> = [
          Layer.discard(Layer.provide(module.layerConfig(), clientOf(answer))),
          Layer.discard(Layer.provide(module.engineConfig({ model: "m" }), clientOf(answer)))
        ]
        for (const layer of layers) {
          for (const variables of [{}, { OPENAI_API_KEY: "" }, { OPENAI_API_KEY: "  " }]) {
            const exit = yield* Effect.exit(Effect.scoped(Layer.build(Layer.provide(layer, environment(variables)))))
            const error = Exit.isFailure(exit) ? Option.getOrThrow(Cause.failureOption(exit.cause)) : undefined
            assert.isTrue(ConfigError.isConfigError(error))
            assert.match(String(error), /OPENAI_API_KEY/)
          }
        }
      }))

    it.effect("fails with a sentence when there is no key at all", () =>
      Effect.gen(function*() {
        for (const config of [{}, { apiKey: Redacted.make("") }]) {
          const error = yield* Effect.flip(ask(module.layer(config), answer))
          assert.strictEqual(error.reason, "authentication_failed")
          assert.match(error.message, /there is no key; .*OPENAI_API_KEY/)
        }
      }))

    it.effect("asks a server of one's own without a key", () =>
      Effect.gen(function*() {
        const sent = yield* written(module.layer({ baseUrl: "http://localhost:1/v1" }), hello, answer)
        assert.notProperty(sent.headers, "authorization")
        assert.isUndefined(yield* authorization(module.layerConfig({ baseUrl: "http://localhost:1/v1" }), {}))
      }))

    it.effect("takes another key for a while", () =>
      Effect.gen(function*() {
        const sent: Array<Sent> = []
        const layer = module.engine({ apiKey: Redacted.make("mine"), model: "m" })
        yield* Effect.all([
          Allm.generate("Hi"),
          Allm.generate("Hi").pipe(module.withApiKey(Redacted.make("theirs"))),
          Allm.generate("Hi").pipe(module.withApiKey(Redacted.make("another's"), "another"))
        ]).pipe(Effect.provide(layer), Effect.provide(clientOf(answer, sent)))
        assert.deepStrictEqual(sent.map(({ headers }) => headers["authorization"]), [
          "Bearer mine",
          "Bearer theirs",
          "Bearer mine"
        ])
      }))

    it.effect("shows no key in errors, logs and spans", () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const tracer = Tracer.make({
          span: (name, parent, context, links, startTime, kind) => {
            const attributes = new Map<string, unknown>()
            seen.push(name, attributes)
            return {
              _tag: "Span",
              spanId: "s",
              traceId: "t",
              name,
              sampled: true,
              parent,
              context,
              links,
              attributes,
              kind,
              status: { _tag: "Started", startTime },
              attribute: (key, value) => void attributes.set(key, value),
              event: (...event) => void seen.push(event),
              addLinks: () => {},
              end: (_, exit) => void seen.push(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : exit._tag)
            }
          },
          context: (run) => run()
        })
        const logger = Logger.make(({ annotations, cause, message }) => seen.push([message, annotations, cause]))
        const tool = Tool.make("ask", { description: "Asks", handler: () => Allm.generate("Hi") })

        for (const keyHeader of ["authorization", "api-key"] as const) {
          for (const apiKey of [secret, `${secret}\ninvalid`]) {
            const config = { baseUrl: "http://127.0.0.1:9/v1", keyHeader, apiKey: Redacted.make(apiKey), model: "m" }
            const echoes: ReadonlyArray<Parameters<typeof clientOf>[0]> = [
              ({ headers }) =>
                Response.json({ error: { message: `bad key: ${JSON.stringify(headers)}` } }, { status: 401 }),
              ({ headers }) => new Response(JSON.stringify(headers), { status: 500 }),
              ({ headers }) => sse([{ type: "error", error: { message: `key ${JSON.stringify(headers)}` } }])
            ]
            const clients = [...echoes.map((answer) => clientOf(answer)), FetchHttpClient.layer]
            for (const client of clients) {
              const exit = yield* Allm.chat("Hi", { tools: [tool], retry: false }).pipe(
                Effect.provide(module.engine(config)),
                Effect.provide(client),
                Effect.withTracer(tracer),
                Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
                Effect.exit
              )
              assert.isTrue(Exit.isFailure(exit))
              if (Exit.isFailure(exit)) {
                seen.push(exit.cause, Cause.pretty(exit.cause), JSON.stringify(exit))
              }
            }
          }
        }
        const told = shown(seen)
        assert.include(told, "http.request.method")
        assert.include(told, "<redacted>")
        assert.notInclude(told, secret)
      }))

    const statuses = [
      [400, "invalid_request"],
      [401, "authentication_failed"],
      [403, "authentication_failed"],
      [404, "invalid_request"],
      [408, "timeout"],
      [413, "context_length_exceeded"],
      [422, "invalid_request"],
      [429, "rate_limited"],
      [500, "provider_unavailable"],
      [502, "provider_unavailable"],
      [503, "provider_unavailable"]
    ] as const
    it.effect("tells by its status why it was refused", () =>
      Effect.gen(function*() {
        for (const [status, reason] of statuses) {
          const answer = () =>
            Response.json({ error: { message: "No." } }, { status, headers: { "x-request-id": "req_1" } })
          const error = yield* Effect.flip(ask(module.layer({ apiKey: Redacted.make("k") }), answer))
          assert.deepInclude({ ...error }, { reason, status, detail: "No.", requestId: "req_1" })
        }
      }))

    it.effect("tells by its body why it was refused, and how long to wait", () =>
      Effect.gen(function*() {
        const refused = (error: object, status: number, headers = {}) =>
          Effect.flip(
            ask(module.layer({ apiKey: Redacted.make("k") }), () => Response.json({ error }, { status, headers }))
          )
        assert.strictEqual(
          (yield* refused({ code: "context_length_exceeded", message: "Too long" }, 400)).reason,
          "context_length_exceeded"
        )
        // As Azure tells it.
        const filtered = {
          code: "content_filter",
          message: "Filtered",
          innererror: { code: "ResponsibleAIPolicyViolation" }
        }
        assert.strictEqual((yield* refused(filtered, 400)).reason, "content_filter")
        const told = yield* refused({ message: "Please try again in 6ms." }, 429)
        assert.deepStrictEqual(told.retryAfter, Duration.millis(6))
        const header = yield* refused({ message: "Please try again in 6ms." }, 429, { "retry-after": "7" })
        assert.deepStrictEqual(header.retryAfter, Duration.seconds(7))
      }))
  })
}

describe("OpenAiChat", () => {
  it.effect("shows OpenAI's key to nobody else", () =>
    Effect.gen(function*() {
      const layer = OpenAiChat.layerConfig({ baseUrl: "https://other.test/v1" })
      const sent = yield* written(Layer.provide(layer, environment({ OPENAI_API_KEY: secret })), hello, chunk)
      assert.notInclude(JSON.stringify(sent), secret)
    }))
})

/** Everything that can be reached from a value, as text. */
const shown = (value: unknown): string => {
  const visited = new Set<object>()
  const parts: Array<string> = []
  const visit = (node: unknown): void => {
    if (typeof node === "string") parts.push(node)
    if (typeof node !== "object" || node === null || visited.has(node)) return
    visited.add(node)
    if (node instanceof Map || node instanceof Set) { for (const item of node) visit(item) }
    // What is redacted keeps its value where only its own module finds it.
    for (const key of Reflect.ownKeys(node)) {
      parts.push(String(key))
      visit(Reflect.getOwnPropertyDescriptor(node, key)?.value)
    }
  }
  visit(value)
  return parts.join("\n")
}
