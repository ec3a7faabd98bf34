/** Declare a tool, configure an engine, chat. */
import { Allm, Engine, Fake, Message, Tool } from "@allm/core"
import { Console, Effect, Layer, Schema } from "effect"

const getWeather = Tool.make("get_weather", {
  description: "Current weather of a city",
  parameters: { city: Schema.String },
  handler: ({ city }) => Effect.succeed({ city, sky: "clear", degrees: 21 })
})

// Stands in for a provider: it says what it is told to say, offline.
const Model = Fake.layer({
  scripts: [
    [Fake.toolCall({ id: "call_0", name: "get_weather", arguments: { city: "Oslo" } }), Fake.finish("tool_calls")],
    [Fake.text("Clear sky, 21 degrees."), Fake.finish("stop")]
  ]
})

const Assistant = Engine.layer({ model: "fake-1", tools: [getWeather], maxTurns: 5 }).pipe(Layer.provide(Model))

const program = Effect.gen(function*() {
  const result = yield* Allm.chat("How is the weather in Oslo?")

  for (const message of result.thread.messages) {
    yield* Console.log(`${message.role}: ${Message.toText(message) || "(calls a tool)"}`)
  }
  yield* Console.log(`${result.haltedReason} after ${result.steps.length} turns`)
})

Effect.runPromise(Effect.provide(program, Assistant))
