/** Tools first, form last: one pass with tools and free text, then one that must fit the schema and has no tools. */
import { Allm, Fake, Tool } from "@allm/core"
import { Console, Effect, Schema } from "effect"

const Forecast = Schema.Struct({ city: Schema.String, degrees: Schema.Number }).annotations({ identifier: "Forecast" })

const getWeather = Tool.make("get_weather", { description: "Weather in Oslo", handler: () => "clear, 21 degrees" })

const Assistant = Fake.engine({
  tools: [getWeather],
  scripts: [
    [Fake.toolCall({ id: "call_0", name: "get_weather" }), Fake.finish("tool_calls")],
    [Fake.text("It is 21 degrees in Oslo."), Fake.finish("stop")],
    [Fake.text(`{"city":"Oslo","degrees":21}`), Fake.finish("stop")]
  ]
})

const program = Effect.gen(function*() {
  const result = yield* Allm.chat("The weather in Oslo?", { responseFormat: Forecast, structuredFinalize: true })

  for (const { messages, responseFormat, tools } of yield* Fake.requests) {
    const form = responseFormat?.type === "json_schema" ? responseFormat.name : "free text"
    yield* Console.log(`asked for ${form} with ${tools.length} tools, after "${messages.at(-1)?.content}"`)
  }
  yield* Console.log(`${result.haltedReason}: ${result.finalResponse.outputText}`)
})

Effect.runPromise(Effect.provide(program, Assistant))
