import { type Adapter, Allm, type ChatResult, Engine, Fake, OnToolError, Tool } from "@allm/core"
import { Context, Effect, Layer } from "effect"
import { describe, expect, test } from "tstyche"

class Weather extends Context.Tag("Weather")<Weather, { readonly now: Effect.Effect<string> }>() {}
class Log extends Context.Tag("Log")<Log, { readonly write: Effect.Effect<void> }>() {}

const weather = Tool.make("weather", {
  description: "Weather",
  handler: () => Effect.flatMap(Weather, (service) => service.now)
})
const plain = Tool.make("plain", { description: "Plain", handler: () => "a" })
const write = Effect.flatMap(Log, (log) => log.write)

declare const engine: Engine.Service

describe("layer", () => {
  test("in a list of layers lists them too", () => {
    expect(Effect.provide(Allm.chat("hi"), [Fake.engine({ script: [] }), Layer.empty])).type.toBe<
      Effect.Effect<ChatResult.ChatResult, Allm.ChatError>
    >()
    expect(Effect.provide(Allm.chat("hi"), [Engine.layer(), Layer.empty])).type.toBe<
      Effect.Effect<ChatResult.ChatResult, Allm.ChatError, Adapter.Adapter>
    >()
  })

  test("needs an adapter", () => {
    expect(Engine.layer()).type.toBe<Layer.Layer<Engine.Engine, never, Adapter.Adapter>>()
    expect(Engine.layer({ tools: [plain], maxTurns: 3 })).type.toBe<
      Layer.Layer<Engine.Engine, never, Adapter.Adapter>
    >()
  })

  test("needs what its tools need", () => {
    expect(Engine.layer({ tools: [weather, plain] })).type.toBe<
      Layer.Layer<Engine.Engine, never, Adapter.Adapter | Weather>
    >()
    expect(Engine.make({ tools: [weather, plain] })).type.toBe<
      Effect.Effect<Engine.Service, never, Adapter.Adapter | Weather>
    >()
  })

  test("needs what its functions need", () => {
    expect(Engine.layer({ haltWhen: () => Effect.as(write, true) })).type.toBe<
      Layer.Layer<Engine.Engine, never, Adapter.Adapter | Log>
    >()
    expect(Engine.layer({ prepareStep: () => Effect.as(write, { model: "small" }) })).type.toBe<
      Layer.Layer<Engine.Engine, never, Adapter.Adapter | Log>
    >()
    expect(Engine.layer({ onEvent: () => write })).type.toBe<
      Layer.Layer<Engine.Engine, never, Adapter.Adapter | Log>
    >()
    expect(Engine.layer({ onToolError: () => Effect.as(write, OnToolError.halt) })).type.toBe<
      Layer.Layer<Engine.Engine, never, Adapter.Adapter | Log>
    >()
  })

  test("takes those needs away from its calls", () => {
    const layer = Engine.layer({ tools: [weather], onEvent: () => write }).pipe(
      Layer.provide(Fake.layer({ script: [] }))
    )

    expect(Effect.provide(Allm.chat("hi"), layer)).type.toBe<
      Effect.Effect<Effect.Effect.Success<ReturnType<typeof Allm.chat>>, Allm.ChatError, Weather | Log>
    >()
  })

  test("refuses options that do not exist", () => {
    expect(Engine.layer).type.not.toBeCallableWith({ modle: "small" })
    expect(Engine.layer).type.not.toBeCallableWith({ requestId: "r1" })
    expect(Engine.layer).type.not.toBeCallableWith({ maxTurns: "3" })
  })
})

describe("Fake.engine", () => {
  test("brings its adapter, and asks for the rest", () => {
    expect(Fake.engine({ script: [] })).type.toBe<Layer.Layer<Engine.Engine | Fake.Fake>>()
    expect(Fake.engine({ script: [], tools: [weather], onEvent: () => write })).type.toBe<
      Layer.Layer<Engine.Engine | Fake.Fake, never, Weather | Log>
    >()
  })
})

describe("derived engines", () => {
  test("read both ways round", () => {
    expect(Engine.withModel(engine, "small")).type.toBe<Engine.Service>()
    expect(Engine.withModel("small")).type.toBe<(self: Engine.Service) => Engine.Service>()
    expect(Engine.withTools(engine, [plain])).type.toBe<Engine.Service>()
    expect(Engine.withTools([plain])).type.toBe<(self: Engine.Service) => Engine.Service>()
    expect(Engine.withContext({ user: "ada" })).type.toBe<(self: Engine.Service) => Engine.Service>()
    expect(Engine.withParams(engine, { seed: 1 })).type.toBe<Engine.Service>()
    expect(Engine.withSettings(engine, { maxTurns: 3 })).type.toBe<Engine.Service>()
  })

  test("refuse tools and functions that need services", () => {
    expect(Engine.withTools).type.not.toBeCallableWith(engine, [weather])
    expect(Engine.withTools).type.not.toBeCallableWith([plain, weather])
    expect(Engine.withSettings).type.not.toBeCallableWith(engine, { onEvent: () => write })
    expect(Engine.withSettings).type.not.toBeCallableWith(engine, { haltWhen: () => Effect.as(write, true) })
    expect(Engine.withSettings).type.not.toBeCallableWith(engine, { prepareStep: () => write })
    expect(Engine.withSettings).type.not.toBeCallableWith(engine, {
      onToolError: () => Effect.as(write, OnToolError.halt)
    })
    expect(Engine.withSettings).type.toBeCallableWith(engine, { onEvent: () => Effect.void, haltWhen: () => true })
  })

  test("withSettings refuses tools", () => {
    expect(Engine.withSettings).type.not.toBeCallableWith(engine, { tools: [plain] })
  })
})
