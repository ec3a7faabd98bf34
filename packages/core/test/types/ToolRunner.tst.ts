import {
  type Event,
  OnToolError,
  Tool,
  type ToolCall,
  type ToolError,
  ToolRunner,
  type ValidationError
} from "@allm/core"
import { Context, Effect, Schema, type Stream } from "effect"
import { describe, expect, test } from "tstyche"

class Weather
  extends Context.Tag("Weather")<Weather, { readonly of: (city: string) => Effect.Effect<string, "offline"> }>()
{}
class Clocks extends Context.Tag("Clocks")<Clocks, { readonly now: Effect.Effect<number, "stopped"> }>() {}
class Audit extends Context.Tag("Audit")<Audit, { readonly note: (text: string) => Effect.Effect<void> }>() {}

const description = "Does something"
const getWeather = Tool.make("get_weather", {
  description,
  parameters: { city: Schema.String },
  handler: ({ city }) => Effect.flatMap(Weather, (weather) => weather.of(city))
})
const getTime = Tool.make("get_time", { description, handler: () => Effect.flatMap(Clocks, (clocks) => clocks.now) })
const ping = Tool.make("ping", { description, handler: () => true })

const calls: ReadonlyArray<ToolCall.ToolCall> = []

describe("run", () => {
  test("tells what its tools give, report and need", () => {
    expect(ToolRunner.run(calls, [getWeather, getTime, ping])).type.toBe<
      Effect.Effect<
        ToolRunner.RunResult<string | number | boolean, "offline" | "stopped">,
        ToolRunner.UnknownTool | ValidationError.ValidationError,
        Weather | Clocks
      >
    >()
  })

  test("needs nothing when its tools need nothing", () => {
    expect<Effect.Effect.Context<ReturnType<typeof ToolRunner.run<[typeof ping]>>>>().type.toBe<never>()
    expect(ToolRunner.run(calls, [])).type.toBe<
      Effect.Effect<
        ToolRunner.RunResult<never, never>,
        ToolRunner.UnknownTool | ValidationError.ValidationError
      >
    >()
  })

  test("knows tools that are made where they are used", () => {
    const inline = ToolRunner.run(calls, [
      Tool.make("ping", { description, handler: () => true }),
      Tool.make("get_time", { description, handler: () => Effect.flatMap(Clocks, (clocks) => clocks.now) })
    ])

    expect<Effect.Effect.Context<typeof inline>>().type.toBe<Clocks>()
  })

  test("carries the types into each outcome", () => {
    expect<Effect.Effect.Success<ReturnType<typeof ToolRunner.run<[typeof getWeather]>>>["outcomes"]>().type.toBe<
      ReadonlyArray<ToolRunner.CallResult<string, "offline">>
    >()
  })

  test("takes only tools", () => {
    expect(ToolRunner.run).type.not.toBeCallableWith(calls, [{ name: "ping" }])
    expect(ToolRunner.run).type.not.toBeCallableWith(calls, ["ping"])
  })
})

describe("stream", () => {
  test("tells what its tools need", () => {
    expect(ToolRunner.stream(calls, [getWeather, getTime])).type.toBe<
      Stream.Stream<
        Event.ToolEvent,
        ToolRunner.UnknownTool | ValidationError.ValidationError,
        Weather | Clocks
      >
    >()
  })

  test("adds what the error policy needs", () => {
    const stream = ToolRunner.stream(calls, [getWeather], {
      onToolError: () => Effect.flatMap(Audit, (audit) => Effect.as(audit.note("failed"), OnToolError.halt))
    })

    expect<Stream.Stream.Context<typeof stream>>().type.toBe<Weather | Audit>()
  })
})

describe("onToolError", () => {
  test("gets the call and the failures its tools report", () => {
    const run = ToolRunner.run(calls, [getWeather, getTime], {
      onToolError: (call, error) => {
        expect(call).type.toBe<ToolCall.ToolCall>()
        expect(error).type.toBe<ToolError.ToolError<"offline" | "stopped">>()
        if (error._tag === "HandlerFailed") expect(error.failure).type.toBe<"offline" | "stopped">()
        return "continue"
      }
    })

    expect<Effect.Effect.Context<typeof run>>().type.toBe<Weather | Clocks>()
  })

  test("adds what it needs to the run", () => {
    const run = ToolRunner.run(calls, [getWeather], {
      onToolError: (_call, error) =>
        Effect.flatMap(Audit, (audit) => Effect.as(audit.note(error.message), OnToolError.continue()))
    })

    expect<Effect.Effect.Context<typeof run>>().type.toBe<Weather | Audit>()
  })

  test("needs nothing when it is a word or a plain function", () => {
    const word = ToolRunner.run(calls, [ping], { onToolError: "halt" })
    const plain = ToolRunner.run(calls, [ping], { onToolError: () => OnToolError.continueWith(1) })

    expect<Effect.Effect.Context<typeof word>>().type.toBe<never>()
    expect<Effect.Effect.Context<typeof plain>>().type.toBe<never>()
  })

  test("decides nothing else", () => {
    expect(ToolRunner.run).type.not.toBeCallableWith(calls, [ping], { onToolError: "ignore" as const })
    expect(ToolRunner.run).type.not.toBeCallableWith(calls, [ping], { onToolError: () => "ignore" as const })
    expect(ToolRunner.run).type.not.toBeCallableWith(calls, [ping], { onToolError: () => Effect.succeed(5) })
    expect(ToolRunner.run).type.not.toBeCallableWith(calls, [ping], {
      onToolError: async () => OnToolError.continue()
    })
  })
})

describe("options", () => {
  test("are checked", () => {
    expect(ToolRunner.run).type.toBeCallableWith(calls, [ping], { siblings: { drainFor: "1 second" as const } })
    expect(ToolRunner.run).type.not.toBeCallableWith(calls, [ping], { siblings: "wait" as const })
    expect(ToolRunner.run).type.not.toBeCallableWith(calls, [ping], { unknownTool: "ignore" as const })
    expect(ToolRunner.run).type.not.toBeCallableWith(calls, [ping], { toolTimeout: true })
  })
})
