import { type Adapter, type Engine, Tool } from "@allm/core"
import { OpenAi, OpenAiChat } from "@allm/openai"
import type { HttpClient } from "@effect/platform"
import { Config, type ConfigError, Context, Effect, type Layer, Redacted } from "effect"
import { describe, expect, test } from "tstyche"

class Weather extends Context.Tag("Weather")<Weather, { readonly now: Effect.Effect<string> }>() {}
class Log extends Context.Tag("Log")<Log, { readonly write: Effect.Effect<void> }>() {}

const weather = Tool.make("weather", {
  description: "Weather",
  handler: () => Effect.flatMap(Weather, (service) => service.now)
})
const write = Effect.flatMap(Log, (log) => log.write)
const apiKey = Redacted.make("k")

describe("layers", () => {
  test("need a client, and cannot fail without Config", () => {
    expect(OpenAi.layer({ apiKey })).type.toBe<Layer.Layer<Adapter.Adapter, never, HttpClient.HttpClient>>()
    expect(OpenAiChat.layer({ baseUrl: "http://localhost" })).type.toBe<
      Layer.Layer<Adapter.Adapter, never, HttpClient.HttpClient>
    >()
    expect(OpenAi.layerConfig()).type.toBe<
      Layer.Layer<Adapter.Adapter, ConfigError.ConfigError, HttpClient.HttpClient>
    >()
    expect(OpenAiChat.layerConfig()).type.toBe<
      Layer.Layer<Adapter.Adapter, ConfigError.ConfigError, HttpClient.HttpClient>
    >()
  })

  test("take settings as they are, or from Config", () => {
    expect(OpenAi.layerConfig).type.toBeCallableWith({
      apiKey: Config.redacted("KEY"),
      baseUrl: Config.string("URL"),
      stateless: true
    })
    expect(OpenAiChat.layerConfig).type.toBeCallableWith({ name: "groq", maxTokensField: "max_tokens" })
    expect(OpenAi.layer).type.not.toBeCallableWith({ apiKey: "k" })
    expect(OpenAi.layer).type.not.toBeCallableWith({ apiKey: Config.redacted("KEY") })
    expect(OpenAi.layerConfig).type.not.toBeCallableWith({ baseUrl: Config.number("URL") })
    expect(OpenAi.layer).type.not.toBeCallableWith({ baseURL: "http://localhost" })
  })
})

describe("engines", () => {
  test("need what their tools and functions need", () => {
    expect(OpenAi.engine({ apiKey, model: "m" })).type.toBe<
      Layer.Layer<Engine.Engine, never, HttpClient.HttpClient>
    >()
    expect(OpenAi.engine({ apiKey, model: "m", tools: [weather], onEvent: () => write })).type.toBe<
      Layer.Layer<Engine.Engine, never, HttpClient.HttpClient | Weather | Log>
    >()
    expect(OpenAiChat.engine({ apiKey, tools: [weather] })).type.toBe<
      Layer.Layer<Engine.Engine, never, HttpClient.HttpClient | Weather>
    >()
  })

  test("from Config may fail", () => {
    expect(OpenAi.engineConfig({ model: "m", tools: [weather] })).type.toBe<
      Layer.Layer<Engine.Engine, ConfigError.ConfigError, HttpClient.HttpClient | Weather>
    >()
    expect(OpenAiChat.engineConfig({ apiKey: Config.redacted("KEY"), model: "m" })).type.toBe<
      Layer.Layer<Engine.Engine, ConfigError.ConfigError, HttpClient.HttpClient>
    >()
  })

  test("take every option of an engine, and no other", () => {
    expect(OpenAi.engine).type.toBeCallableWith({ apiKey, model: "m", maxTurns: 3, params: { reasoning: {} } })
    expect(OpenAi.engine).type.not.toBeCallableWith({ apiKey, modle: "m" })
  })
})

test("withApiKey changes no type", () => {
  const effect = Effect.succeed(1) as Effect.Effect<number, "e", Log>
  expect(effect.pipe(OpenAi.withApiKey(apiKey))).type.toBe<Effect.Effect<number, "e", Log>>()
})
