import { Tool, type ToolRunner } from "@allm/core"
import { Context, type Effect, Schema } from "effect"
import { expect, test } from "tstyche"

class Weather
  extends Context.Tag("Weather")<Weather, { readonly of: (city: string) => Effect.Effect<string, "offline"> }>()
{}

test("parameters are inferred into the handler, requirements and failures surface", () => {
  const tool = Tool.make("get_weather", {
    description: "Weather",
    parameters: { city: Schema.String },
    handler: ({ city }) => {
      expect(city).type.toBe<string>()
      return Weather.pipe((weather) => weather as unknown as Effect.Effect<string, "offline", Weather>)
    }
  })

  expect<Tool.Requirements<typeof tool>>().type.toBe<Weather>()
  expect<Tool.Failure<typeof tool>>().type.toBe<"offline">()
  expect<Effect.Effect.Context<ReturnType<typeof ToolRunner.run<[typeof tool]>>>>().type.toBe<Weather>()
})
