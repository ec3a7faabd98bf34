/** The tool calls of one turn run at once; what the model reads keeps the order it asked in. */
import { Allm, Fake, Tool } from "@allm/core"
import { Console, Effect, Schema } from "effect"

const delays = new Map([["Oslo", 300], ["Rome", 200], ["Lima", 100]])

const getWeather = Tool.make("get_weather", {
  description: "Current weather of a city",
  parameters: { city: Schema.String },
  handler: ({ city }) =>
    Console.log(`  asks for ${city}`).pipe(
      Effect.zipRight(Effect.sleep(delays.get(city) ?? 400)),
      Effect.zipRight(Console.log(`  knows of ${city}`)),
      Effect.as(`${city}: clear`)
    )
})

const call = (city: string) => Fake.toolCall({ id: city, name: "get_weather", arguments: { city } })

const scripts = [
  [call("Oslo"), call("Rome"), call("Lima"), Fake.finish("tool_calls")],
  [Fake.text("Clear everywhere."), Fake.finish("stop")]
]

const chat = (concurrency: number) =>
  Effect.gen(function*() {
    yield* Console.log(`${concurrency} at a time:`)
    const { finalResponse, steps } = yield* Allm.chat("How is the weather in Oslo, in Rome and in Lima?", {
      concurrency
    })
    yield* Console.log(`  the model reads ${steps[0]?.toolResults.map(({ content }) => content).join(", ")}`)
    yield* Console.log(`  ${finalResponse.outputText}`)
  }).pipe(Effect.provide(Fake.engine({ tools: [getWeather], scripts })))

Effect.runPromise(Effect.zipRight(chat(3), chat(1)))
