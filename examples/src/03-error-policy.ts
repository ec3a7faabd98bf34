/** A policy decides about every failed call: tell the model, put a value in its place, or stop. */
import { OnToolError, Tool, ToolCall, ToolRunner } from "@allm/core"
import { Console, Effect, Logger, LogLevel, Schema } from "effect"

class RateLimited extends Schema.TaggedError<RateLimited>()("RateLimited", { retryAfter: Schema.Number }) {}

class CityNotFound extends Schema.TaggedError<CityNotFound>()("CityNotFound", { city: Schema.String }) {}

const getWeather = Tool.make("get_weather", {
  description: "Weather of a city",
  parameters: { city: Schema.String },
  failure: Schema.Union(RateLimited, CityNotFound),
  handler: ({ city }) => {
    switch (city) {
      case "Oslo":
        return Effect.fail(new RateLimited({ retryAfter: 60 }))
      case "Atlantis":
        return Effect.fail(new CityNotFound({ city }))
      case "Rome":
        return Effect.die("the parser has a bug")
      default:
        return Effect.succeed({ degrees: 21 })
    }
  }
})

const run = (cities: ReadonlyArray<string>) =>
  ToolRunner.run(
    cities.map((city) => ToolCall.make({ id: city, name: "get_weather", arguments: { city } })),
    [getWeather],
    {
      onToolError: (_call, error) => {
        // A crash is a bug of ours: the model cannot help.
        if (error._tag !== "HandlerFailed") return OnToolError.halt
        // What was reported keeps its type. Nothing is cast here.
        return error.failure._tag === "RateLimited"
          ? OnToolError.continueWith({ degrees: 19, cached: true })
          : OnToolError.continue()
      }
    }
  ).pipe(
    Effect.tap(({ messages }) => Effect.forEach(messages, (m) => Console.log(`${m.toolCallId}: ${m.content}`))),
    Effect.tap(({ halt }) => Console.log(`halt: ${halt?.reason ?? "none"}`))
  )

// The crash is also a warning in the log, with its cause. It would only blur the picture here.
const program = Effect.zipRight(run(["Lima", "Oslo", "Atlantis"]), run(["Lima", "Rome"])).pipe(
  Logger.withMinimumLogLevel(LogLevel.Error)
)

Effect.runPromise(program)
