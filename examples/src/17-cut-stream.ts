/** All turns of a chat as one Stream. Whoever stops reading stops the model; what was said is not lost. */
import { Allm, Collector, type Event, Fake, Message, Thread, Tool } from "@allm/core"
import { Console, Effect, Either, Stream } from "effect"

const getWeather = Tool.make("get_weather", { description: "The weather outside", handler: () => "rain" })

const Assistant = Fake.engine({
  tools: [getWeather],
  scripts: [
    [Fake.reasoning("Better look."), Fake.toolCall({ id: "call_0", name: "get_weather" }), Fake.finish("tool_calls")],
    [Fake.text("Take "), Fake.text("an "), Fake.text("umbrella."), Fake.finish("stop")]
  ]
})

const show = (event: Event.Event) => {
  switch (event._tag) {
    case "ReasoningDelta":
      return Console.log(`  thinks: "${event.delta}"`)
    case "TextDelta":
      return Console.log(`  says: "${event.delta}"`)
    case "ToolExecutionStarted":
      return Console.log(`  runs: ${event.toolName}`)
    case "ToolResultEncoded":
      return Console.log(`  reads: ${event.content}`)
    case "StepCompleted":
      return Console.log(`  turn over: ${event.result.response.finishReason}`)
    case "ChatCompleted":
      return Console.log(`  chat over: ${event.result.haltedReason}`)
    default:
      return Effect.void
  }
}

const thread = Thread.make([Message.user("Do I need an umbrella?")])
const events = Stream.tap(Allm.stream(thread), show)

const program = Effect.gen(function*() {
  yield* Console.log("to the end:")
  yield* Effect.provide(Stream.runDrain(events), Assistant)

  yield* Console.log("until the second word:")
  const read = events.pipe(Stream.takeUntil((event) => event._tag === "TextDelta" && event.delta === "an "))
  const collector = yield* Effect.provide(Collector.collect(read, { thread }), Assistant)
  const result = yield* Either.mapLeft(Collector.toChatResult(collector), (error) => error.message)
  yield* Console.log(`${result.haltedReason}: "${result.finalResponse.outputText}", ${result.steps.length} whole turn`)
})

Effect.runPromise(program)
