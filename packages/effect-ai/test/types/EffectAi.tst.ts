import {
  type Adapter,
  type AdapterError,
  Allm,
  type ChatResult,
  type Engine,
  Tool,
  type ToolError,
  ToolResult,
  ToolRunner
} from "@allm/core"
import { EffectAi } from "@allm/effect-ai"
import { type AiError, LanguageModel, type Prompt, Tool as AiTool, Toolkit } from "@effect/ai"
import { OpenAiLanguageModel, OpenAiTool } from "@effect/ai-openai"
import { Context, Effect, Layer, Schema, type Stream } from "effect"
import { describe, expect, test } from "tstyche"

class Stations extends Context.Tag("Stations")<Stations, { readonly has: (city: string) => boolean }>() {}
class Unit extends Context.Tag("Unit")<Unit, "C" | "F">() {}
class NoStation extends Schema.TaggedError<NoStation>()("NoStation", { city: Schema.String }) {}

const GetWeather = AiTool.make("GetWeather", {
  parameters: { city: Schema.String, since: Schema.DateFromString },
  success: Schema.Struct({ sky: Schema.String }),
  failure: NoStation,
  dependencies: [Unit]
})
const Now = AiTool.make("Now", { success: Schema.String })
const toolkit = Toolkit.make(GetWeather, Now)

describe("fromLanguageModel", () => {
  test("makes an adapter", () => {
    expect(EffectAi.fromLanguageModel).type.toBeCallableWith({} as LanguageModel.Service)
    expect(EffectAi.fromLanguageModel({} as LanguageModel.Service)).type.toBe<Adapter.Service>()
  })

  test("takes the overrides of a provider as they are", () => {
    expect(EffectAi.layer).type.toBeCallableWith({
      configure: (
        { maxTokens, model, options, temperature }: {
          model?: string
          temperature?: number
          maxTokens?: number
          options: {}
        }
      ) => OpenAiLanguageModel.withConfigOverride({ model, temperature, max_output_tokens: maxTokens, ...options })
    })
  })

  test("as a layer asks for the model", () => {
    expect(EffectAi.layer()).type.toBe<Layer.Layer<Adapter.Adapter, never, LanguageModel.LanguageModel>>()
  })

  test("as an engine asks for the model and for what the tools need", () => {
    const tool = Tool.make("x", { description: "x", handler: () => Effect.as(Stations, 1) })

    expect(EffectAi.engine()).type.toBe<Layer.Layer<Engine.Engine, never, LanguageModel.LanguageModel>>()
    expect(EffectAi.engine({ tools: [tool], temperature: 0 })).type.toBe<
      Layer.Layer<Engine.Engine, never, LanguageModel.LanguageModel | Stations>
    >()
    // Also where the place it stands in says nothing of its type.
    expect(Effect.provide(Allm.chat("Hi"), [EffectAi.engine({ tools: [tool] }), Layer.empty])).type.toBe<
      Effect.Effect<ChatResult.ChatResult, Allm.ChatError, LanguageModel.LanguageModel | Stations>
    >()
  })
})

describe("toLanguageModel", () => {
  test("asks for an adapter", () => {
    expect(EffectAi.toLanguageModel({ model: "small" })).type.toBe<
      Layer.Layer<LanguageModel.LanguageModel, never, Adapter.Adapter>
    >()
    expect(EffectAi.makeLanguageModel({} as Adapter.Service)).type.toBe<Effect.Effect<LanguageModel.Service>>()
  })
})

describe("fromToolkit", () => {
  test("gives tools that need their handlers and services", () => {
    const tools = EffectAi.fromToolkit(toolkit)
    type Weather = Extract<(typeof tools)[number], { readonly name: "GetWeather" }>
    type Clock = Extract<(typeof tools)[number], { readonly name: "Now" }>

    expect<(typeof tools)[number]["name"]>().type.toBe<"GetWeather" | "Now">()
    expect<Tool.Parameters<Weather>>().type.toBe<{ readonly city: string; readonly since: Date }>()
    expect<Tool.Success<Weather>>().type.toBe<{ readonly sky: string }>()
    expect<Tool.Failure<Weather>>().type.toBe<NoStation>()
    expect<Tool.Requirements<Weather>>().type.toBe<Unit | AiTool.Handler<"GetWeather">>()
    expect<Tool.Failure<Clock>>().type.toBe<never>()
    expect<Tool.Requirements<Clock>>().type.toBe<AiTool.Handler<"Now">>()
  })

  test("of a toolkit that is provided gives tools that need their services only", () => {
    const tools = EffectAi.fromToolkit({} as Toolkit.WithHandler<Toolkit.Tools<typeof toolkit>>)

    expect<Tool.Requirements<(typeof tools)[number]>>().type.toBe<Unit>()
  })

  test("puts handlers and services into the type of a run, and of a chat", () => {
    const tools = EffectAi.fromToolkit(toolkit)

    expect(ToolRunner.run([], tools)).type.toBeAssignableTo<
      Effect.Effect<unknown, unknown, Unit | AiTool.Handler<"GetWeather"> | AiTool.Handler<"Now">>
    >()
    expect(ToolRunner.run([], tools)).type.not.toBeAssignableTo<Effect.Effect<unknown, unknown, Unit>>()
    expect(Allm.chat("Hi", { tools })).type.not.toBeAssignableTo<Effect.Effect<unknown, unknown, Engine.Engine>>()
    const provided = Effect.provide(
      Allm.chat("Hi", { tools }),
      toolkit.toLayer({
        GetWeather: () => Effect.as(Unit, { sky: "clear" }),
        Now: () => Effect.succeed("noon")
      })
    )
    expect(provided).type.toBeAssignableTo<Effect.Effect<unknown, unknown, Engine.Engine | Unit>>()
  })

  test("takes options for its tools only", () => {
    expect(EffectAi.fromToolkit).type.toBeCallableWith(toolkit, { Now: { timeout: "1 second" } })
    expect(EffectAi.fromToolkit).type.toBeCallableWith(toolkit, {
      GetWeather: { needsApproval: ({ since }: { readonly since: Date }) => since.getTime() > 0, exclusive: "city" }
    })
    expect(EffectAi.fromToolkit).type.not.toBeCallableWith(toolkit, { Nobody: { timeout: "1 second" } })
    expect(EffectAi.fromToolkit).type.not.toBeCallableWith(toolkit, { GetWeather: { exclusive: "country" } })
  })

  test("leaves out what a provider runs", () => {
    const tools = EffectAi.fromToolkit(Toolkit.make(Now, OpenAiTool.WebSearch({})))

    expect<(typeof tools)[number]["name"]>().type.toBe<"Now">()
  })
})

describe("toToolkit", () => {
  const weather = Tool.make("get_weather", {
    description: "Weather",
    parameters: { city: Schema.String },
    handler: ({ city }) =>
      Effect.flatMap(
        Stations,
        (stations) => stations.has(city) ? Effect.succeed(21) : Effect.fail(new NoStation({ city }))
      )
  })
  const ask = Tool.make("ask", { description: "Asks", handler: () => ToolResult.askUser("?") })

  test("names its tools, their results and what they need", () => {
    const kit = EffectAi.toToolkit([weather, ask])
    type Weather = (typeof kit)["tools"]["get_weather"]

    expect<keyof (typeof kit)["tools"]>().type.toBe<"get_weather" | "ask">()
    expect<AiTool.Success<Weather>>().type.toBe<number>()
    expect<AiTool.Failure<Weather>>().type.toBe<EffectAi.Unfinished<NoStation>>()
    expect<AiTool.Requirements<Weather>>().type.toBe<Stations>()
    expect<AiTool.HandlerError<Weather>>().type.toBe<never>()
  })

  test("shows what tools need in the type of a call of theirs, and no failure of a tool", () => {
    const kit = EffectAi.toToolkit([weather, ask])

    expect(LanguageModel.generateText({ prompt: "Hi", toolkit: kit })).type.toBeAssignableTo<
      Effect.Effect<unknown, AiError.AiError, LanguageModel.LanguageModel | Stations>
    >()
    expect(LanguageModel.generateText({ prompt: "Hi", toolkit: kit })).type.not.toBeAssignableTo<
      Effect.Effect<unknown, AiError.AiError, LanguageModel.LanguageModel>
    >()
    expect(LanguageModel.streamText({ prompt: "Hi", toolkit: kit })).type.toBeAssignableTo<
      Stream.Stream<unknown, AiError.AiError, LanguageModel.LanguageModel | Stations>
    >()
  })

  test("shows failures of tools in the type where calls fail with them", () => {
    const kit = EffectAi.toToolkit([weather], { failureMode: "error" })
    const generated = LanguageModel.generateText({ prompt: "Hi", toolkit: kit })

    expect<Effect.Effect.Error<typeof generated>>().type.toBe<AiError.AiError | EffectAi.Unfinished<NoStation>>()
    expect<ToolError.Timeout>().type.toBeAssignableTo<Effect.Effect.Error<typeof generated>>()
    expect<AdapterError.AdapterError>().type.not.toBeAssignableTo<Effect.Effect.Error<typeof generated>>()
  })
})

describe("fromPrompt", () => {
  test("takes what theirs takes for a prompt", () => {
    expect(EffectAi.fromPrompt).type.toBeCallableWith("Hi")
    expect(EffectAi.fromPrompt).type.toBeCallableWith({} as Prompt.Prompt)
    expect(EffectAi.fromPrompt).type.toBeCallableWith([{ role: "user", content: "Hi" }])
  })
})
