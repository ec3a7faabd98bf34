import { Anthropic } from "@allm/anthropic"
import { type Adapter, type Engine, Tool } from "@allm/core"
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
const apiKey = Redacted.make("key")

type Client = HttpClient.HttpClient

describe("layers", () => {
  test("need a client, and say whether they read a Config", () => {
    expect(Anthropic.layer()).type.toBe<Layer.Layer<Adapter.Adapter, never, Client>>()
    expect(Anthropic.layer({ apiKey, cacheControl: "1h" })).type.toBe<Layer.Layer<Adapter.Adapter, never, Client>>()
    expect(Anthropic.layerConfig()).type.toBe<Layer.Layer<Adapter.Adapter, ConfigError.ConfigError, Client>>()
    expect(Anthropic.layerConfig({ apiKey: Config.redacted("KEY"), baseUrl: "http://a.test" })).type.toBe<
      Layer.Layer<Adapter.Adapter, ConfigError.ConfigError, Client>
    >()
  })

  test("take keys that cannot be shown, and nothing unknown", () => {
    expect(Anthropic.layer).type.not.toBeCallableWith({ apiKey: "key" })
    expect(Anthropic.layer).type.not.toBeCallableWith({ apiKey: Config.redacted("KEY") })
    expect(Anthropic.layerConfig).type.not.toBeCallableWith({ apiKey: Config.string("KEY") })
    expect(Anthropic.layer).type.not.toBeCallableWith({ cacheControl: "2h" })
    expect(Anthropic.layer).type.not.toBeCallableWith({ baseURL: "http://a.test" })
  })
})

describe("engines", () => {
  test("need what their tools and functions need, besides a client", () => {
    expect(Anthropic.engine({ apiKey, model: "claude-sonnet-5" })).type.toBe<
      Layer.Layer<Engine.Engine, never, Client>
    >()
    expect(Anthropic.engine({ apiKey, tools: [weather], onEvent: () => write })).type.toBe<
      Layer.Layer<Engine.Engine, never, Client | Weather | Log>
    >()
    expect(Anthropic.engineConfig({ model: "claude-sonnet-5", tools: [weather] })).type.toBe<
      Layer.Layer<Engine.Engine, ConfigError.ConfigError, Client | Weather>
    >()
    expect(Anthropic.engineConfig({ apiKey: Config.redacted("KEY"), betas: ["a"] })).type.toBe<
      Layer.Layer<Engine.Engine, ConfigError.ConfigError, Client>
    >()
  })

  test("take nothing unknown", () => {
    expect(Anthropic.engine).type.not.toBeCallableWith({ modle: "claude" })
    expect(Anthropic.engine).type.not.toBeCallableWith({ model: Config.string("MODEL") })
  })
})

test("withApiKey leaves an effect as it was", () => {
  expect(Anthropic.withApiKey(apiKey)(write)).type.toBe<Effect.Effect<void, never, Log>>()
})
