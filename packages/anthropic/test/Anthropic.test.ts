import { Anthropic } from "@allm/anthropic"
import { Allm, type Engine, Tool } from "@allm/core"
import type { HttpClient } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { Config, type ConfigError, ConfigProvider, Context, Effect, Layer, Redacted } from "effect"
import {
  type Answer,
  answerOf,
  apiKey,
  bodyOf,
  call,
  clientOf,
  ended,
  type Json,
  sse,
  sseOf,
  started,
  stopped,
  text
} from "./wire.ts"

const hi: Answer = () => sse(sseOf(answerOf(...text(0, "Hello"))))

/** Notes what is sent. */
const watching = (seen: Array<Json>, answer: Answer = hi): Layer.Layer<HttpClient.HttpClient> =>
  clientOf((request, index) => {
    seen.push({ url: request.url, ...request.headers, ...bodyOf(request) })
    return answer(request, index)
  })

const environment = (variables: Record<string, string>) =>
  Layer.setConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(variables))))

describe("engine", () => {
  it.effect("is all that a chat needs besides a client", () =>
    Effect.gen(function*() {
      const seen: Array<Json> = []
      const result = yield* Allm.chat("Hi").pipe(
        Effect.provide(Anthropic.engine({ apiKey, model: "claude-sonnet-5", maxTokens: 7, params: { top_p: 0.5 } })),
        Effect.provide(watching(seen))
      )

      assert.strictEqual(result.finalResponse.outputText, "Hello")
      assert.deepInclude(seen[0], {
        url: "https://api.anthropic.com/v1/messages",
        "x-api-key": "sk-ant-test",
        "anthropic-version": "2023-06-01",
        model: "claude-sonnet-5",
        max_tokens: 7,
        top_p: 0.5
      })
    }))

  it.effect("runs tools with what they need", () =>
    Effect.gen(function*() {
      class Weather extends Context.Tag("Weather")<Weather, string>() {}
      const getWeather = Tool.make("get_weather", { description: "Weather", handler: () => Weather })
      const seen: Array<Json> = []
      const result = yield* Allm.chat("Weather?").pipe(
        Effect.provide(Anthropic.engine({ apiKey, model: "claude-sonnet-5", tools: [getWeather] })),
        Effect.provideService(Weather, "sunny"),
        Effect.provide(watching(seen, (_, index) =>
          sse(sseOf(
            index === 0
              ? [started(), ...call(0, { id: "toolu_1", name: "get_weather" }), stopped("tool_use"), ended]
              : answerOf(...text(0, "Sunny."))
          ))))
      )

      assert.strictEqual(result.finalResponse.outputText, "Sunny.")
      assert.deepStrictEqual((seen[1]!.messages as ReadonlyArray<unknown>).slice(1), [
        { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "get_weather", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "sunny" }] }
      ])
      assert.deepStrictEqual(result.usage, { inputTokens: 20, outputTokens: 10, totalTokens: 30 })
    }))

  it("refuses options that neither side knows", () => {
    assert.throws(() => Anthropic.engine({ modle: "claude" } as never), /modle/)
  })
})

describe("layerConfig", () => {
  const headersOf = (
    Model: Layer.Layer<Engine.Engine, ConfigError.ConfigError, HttpClient.HttpClient>,
    variables: Record<string, string>
  ) =>
    Effect.gen(function*() {
      const seen: Array<Json> = []
      yield* Allm.chat("Hi").pipe(
        Effect.provide(Layer.provide(Model, environment(variables))),
        Effect.provide(watching(seen))
      )
      return seen[0] ?? {}
    })

  it.effect("reads the key from ANTHROPIC_API_KEY", () =>
    Effect.gen(function*() {
      const sent = yield* headersOf(Anthropic.engineConfig({ model: "claude-sonnet-5" }), { ANTHROPIC_API_KEY: "k1" })

      assert.strictEqual(sent["x-api-key"], "k1")
    }))

  it.effect("takes values and configs, side by side", () =>
    Effect.gen(function*() {
      const sent = yield* headersOf(
        Anthropic.engineConfig({
          model: "claude-sonnet-5",
          apiKey: Config.redacted("OTHER_KEY"),
          baseUrl: Config.string("BASE_URL").pipe(Config.withDefault("http://default.test")),
          betas: ["a"],
          cacheControl: Config.boolean("CACHE")
        }),
        { OTHER_KEY: "k2", CACHE: "true" }
      )

      assert.deepInclude(sent, {
        url: "http://default.test/v1/messages",
        "x-api-key": "k2",
        "anthropic-beta": "a",
        cache_control: { type: "ephemeral" }
      })
    }))

  it.effect("fails with an error that names the variable when the key is missing or empty", () =>
    Effect.gen(function*() {
      const failure = (variables: Record<string, string>, config?: Parameters<typeof Anthropic.layerConfig>[0]) =>
        Layer.build(Anthropic.layerConfig(config)).pipe(
          Effect.provide(Layer.merge(clientOf(hi), environment(variables))),
          Effect.asVoid,
          Effect.flip,
          Effect.scoped
        )

      for (const variables of [{}, { ANTHROPIC_API_KEY: "" }, { ANTHROPIC_API_KEY: "  " }]) {
        const error = yield* failure(variables)
        assert.strictEqual(error._op, "MissingData")
        assert.include(String(error), "ANTHROPIC_API_KEY")
      }
      assert.include(String(yield* failure({}, { apiKey: Config.redacted("OTHER") })), "OTHER")
      for (const apiKey of [Config.redacted("OTHER"), Redacted.make("")]) {
        const error = yield* failure({ OTHER: "" }, { apiKey })
        assert.strictEqual(error._op, "MissingData")
        assert.include(String(error), "Missing data at apiKey: \"the key is empty\"")
      }
    }))
})

describe("withApiKey", () => {
  it.effect("asks with the key of another, for as long as it is around", () =>
    Effect.gen(function*() {
      const seen: Array<Json> = []
      yield* Effect.zipRight(
        Allm.chat("Hi").pipe(Anthropic.withApiKey(Redacted.make("theirs"))),
        Allm.chat("Hi")
      ).pipe(
        Effect.provide(Anthropic.engine({ apiKey, model: "claude-sonnet-5" })),
        Effect.provide(watching(seen))
      )

      assert.deepStrictEqual(seen.map((sent) => sent["x-api-key"]), ["theirs", "sk-ant-test"])
    }))
})

describe("layer", () => {
  it.effect("without a key says what to write", () =>
    Effect.gen(function*() {
      const seen: Array<Json> = []
      const error = yield* Effect.flip(Effect.asVoid(Allm.chat("Hi"))).pipe(
        Effect.provide(Anthropic.engine({ model: "claude-sonnet-5" })),
        Effect.provide(watching(seen))
      )

      assert.include(error.message, "authentication_failed")
      assert.include(error.message, "set ANTHROPIC_API_KEY and use Anthropic.layerConfig()")
      assert.deepStrictEqual(seen, [])
    }))
})
