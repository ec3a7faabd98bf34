import { type Adapter, type Engine, Tool } from "@allm/core"
import { Google } from "@allm/google"
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
const apiKey = Redacted.make("a key")

describe("layer", () => {
  test("needs a client", () => {
    expect(Google.layer({ apiKey })).type.toBe<Layer.Layer<Adapter.Adapter, never, HttpClient.HttpClient>>()
    expect(Google.layerConfig()).type.toBe<
      Layer.Layer<Adapter.Adapter, ConfigError.ConfigError, HttpClient.HttpClient>
    >()
  })

  test("takes a key that cannot be printed", () => {
    expect(Google.layer).type.not.toBeCallableWith({ apiKey: "a key" })
    expect(Google.layer).type.not.toBeCallableWith({ apiKey: Config.redacted("KEY") })
    expect(Google.layerConfig).type.toBeCallableWith({ apiKey: Config.redacted("KEY"), baseUrl: "http://localhost" })
    expect(Google.layerConfig).type.toBeCallableWith({ apiKey, baseUrl: Config.string("URL") })
    expect(Google.layerConfig).type.not.toBeCallableWith({ apiKey: Config.string("KEY") })
    expect(Google.layerConfig).type.not.toBeCallableWith({ key: apiKey })
  })
})

describe("engine", () => {
  test("brings its adapter, and asks for what its tools and functions need", () => {
    expect(Google.engine({ model: "gemini", tools: [weather], onEvent: () => write })).type.toBe<
      Layer.Layer<Engine.Engine, never, HttpClient.HttpClient | Weather | Log>
    >()
    expect(Google.engineConfig({ model: "gemini", apiKey: Config.redacted("KEY"), tools: [weather] })).type.toBe<
      Layer.Layer<Engine.Engine, ConfigError.ConfigError, HttpClient.HttpClient | Weather>
    >()
    expect(Google.engine({ model: "gemini" })).type.toBe<
      Layer.Layer<Engine.Engine, never, HttpClient.HttpClient>
    >()
  })

  test("refuses options that do not exist", () => {
    expect(Google.engine).type.not.toBeCallableWith({ modle: "gemini" })
    expect(Google.engine).type.not.toBeCallableWith({ model: "gemini", maxTurns: "3" })
  })
})

describe("withApiKey", () => {
  test("leaves the types as they are", () => {
    expect(Google.withApiKey(apiKey)(write)).type.toBe<Effect.Effect<void, never, Log>>()
  })
})
