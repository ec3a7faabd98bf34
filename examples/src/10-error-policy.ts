/** A policy decides about every failed call: tell the model, put a value in its place, or end the chat. */
import { Allm, Fake, OnToolError, Tool } from "@allm/core"
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

const chat = (...cities: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const { finalResponse, haltedReason, steps } = yield* Allm.chat(`The weather in ${cities.join(" and ")}?`, {
      tools: [getWeather],
      onToolError: (_call, error) => {
        // A crash is a bug of ours: the model cannot help.
        if (error._tag !== "HandlerFailed") return OnToolError.halt
        // What was reported keeps its type. Nothing is cast here.
        return error.failure._tag === "RateLimited"
          ? OnToolError.continueWith({ degrees: 19, cached: true })
          : OnToolError.continue()
      }
    })
    for (const { content, toolCallId } of steps.flatMap((step) => step.toolResults)) {
      yield* Console.log(`  ${toolCallId}: ${content}`)
    }
    yield* Console.log(`${haltedReason}: ${finalResponse.outputText || "(no answer)"}`)
  }).pipe(
    Effect.provide(Fake.engine({
      scripts: [
        [
          ...cities.map((city) => Fake.toolCall({ id: city, name: "get_weather", arguments: { city } })),
          Fake.finish("tool_calls")
        ],
        [Fake.text("About 20 degrees. There is no Atlantis."), Fake.finish("stop")]
      ]
    }))
  )

const program = Effect.zipRight(chat("Lima", "Oslo", "Atlantis"), chat("Lima", "Rome"))

// The crash is also a warning in the log, with its cause. It would only blur the picture here.
Effect.runPromise(Logger.withMinimumLogLevel(program, LogLevel.Error))
