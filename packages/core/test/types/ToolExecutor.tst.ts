import { Tool, ToolContext, type ToolError, ToolExecutor, ToolResult } from "@allm/core"
import { Context, Effect, type Layer, Schema } from "effect"
import { describe, expect, test } from "tstyche"

class Weather
  extends Context.Tag("Weather")<Weather, { readonly of: (city: string) => Effect.Effect<string, "offline"> }>()
{}
class Clocks extends Context.Tag("Clocks")<Clocks, { readonly now: Effect.Effect<number> }>() {}

declare const context: ToolContext.Service

describe("execute", () => {
  test("needs what the tool needs, and fails with a ToolError alone", () => {
    const tool = Tool.make("x", {
      description: "Does something",
      parameters: { city: Schema.String },
      handler: ({ city }) => Effect.flatMap(Weather, (weather) => weather.of(city))
    })

    expect(ToolExecutor.handlers.execute(tool, {}, context)).type.toBe<
      Effect.Effect<ToolResult.ToolOutcome, ToolError.ToolError, Weather>
    >()
  })
})

describe("layerHandlers", () => {
  test("needs what its handlers need", () => {
    const layer = ToolExecutor.layerHandlers({
      get_weather: ({ city }: { readonly city: string }) => Effect.flatMap(Weather, (weather) => weather.of(city)),
      get_time: () => Effect.flatMap(Clocks, (clocks) => clocks.now),
      ping: () => "pong"
    })

    expect(layer).type.toBe<Layer.Layer<ToolExecutor.ToolExecutor, never, Weather | Clocks>>()
  })

  test("needs nothing for plain and async handlers", () => {
    expect(ToolExecutor.layerHandlers({ ping: () => "pong", later: async () => 1 })).type.toBe<
      Layer.Layer<ToolExecutor.ToolExecutor>
    >()
  })

  test("does not need ToolContext", () => {
    expect(ToolExecutor.layerHandlers({ who: () => ToolContext.ToolContext })).type.toBe<
      Layer.Layer<ToolExecutor.ToolExecutor>
    >()
  })

  test("infers the context into the handlers", () => {
    ToolExecutor.layerHandlers({
      who: (_params, given) => {
        expect(given).type.toBe<ToolContext.Service>()
        return given.toolCall.id
      }
    })
  })

  test("takes no handler with three parameters, and none that is no function", () => {
    expect(ToolExecutor.layerHandlers).type.not.toBeCallableWith({ ping: (_a: {}, _b: unknown, _c: unknown) => 1 })
    expect(ToolExecutor.layerHandlers).type.not.toBeCallableWith({ ping: "pong" })
  })
})

describe("layer", () => {
  test("takes an executor that gives outcomes and fails with ToolErrors", () => {
    expect(ToolExecutor.layer).type.toBeCallableWith({ execute: () => Effect.succeed(ToolResult.ok(1)) })
    expect(ToolExecutor.layer).type.not.toBeCallableWith({ execute: () => Effect.succeed("text") })
    expect(ToolExecutor.layer).type.not.toBeCallableWith({ execute: () => Effect.fail("text") })
    expect(ToolExecutor.layer).type.not.toBeCallableWith({ execute: async () => ToolResult.ok(1) })
    expect(ToolExecutor.layer).type.not.toBeCallableWith({
      execute: () => Effect.as(Weather, ToolResult.ok(1))
    })
  })

  test("needs nothing", () => {
    expect<ReturnType<typeof ToolExecutor.layer>>().type.toBe<Layer.Layer<ToolExecutor.ToolExecutor>>()
  })
})

describe("the reference", () => {
  test("has a default, so nobody has to provide it", () => {
    expect(Effect.map(ToolExecutor.ToolExecutor, (executor) => executor.execute)).type.toBe<
      Effect.Effect<ToolExecutor.Service["execute"]>
    >()
  })
})
