/** A budget ends a chat that would go on and on. With a soft landing the model may still say what it has found. */
import { Allm, Fake, Tool } from "@allm/core"
import { Console, Effect, Schema } from "effect"

const search = Tool.make("search", {
  description: "Searches the web",
  parameters: { query: Schema.String },
  handler: ({ query }) => `nothing about ${query}`
})

// Never stops searching, as long as it is offered the tool.
const Tireless = Fake.engine({
  tools: [search],
  usage: { inputTokens: 100, outputTokens: 20 },
  respond: ({ tools }, index) =>
    tools.length === 0
      ? [Fake.text("I searched, and found nothing."), Fake.finish("stop")]
      : [
        Fake.toolCall({ id: `call_${index}`, name: "search", arguments: { query: `trolls ${index % 2}` } }),
        Fake.finish("tool_calls")
      ]
})

const chat = (options: Allm.Options) =>
  Effect.gen(function*() {
    const { finalResponse, haltedReason, steps, usage } = yield* Allm.chat("Find me a troll", {
      maxTurns: 20,
      ...options
    })
    const tokens = (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)
    yield* Console.log(`${haltedReason} after ${steps.length} turns and ${tokens} tokens`)
    yield* Console.log(`  ${finalResponse.outputText || "(no answer)"}`)
  }).pipe(Effect.provide(Tireless))

const program = Effect.gen(function*() {
  yield* chat({})
  yield* chat({ budget: { maxTokens: 500 } })
  yield* chat({ budget: { maxRepeatedCalls: 2 } })
  yield* chat({ budget: { maxToolCalls: 4, maxDuration: "1 minute" }, softLanding: "Time is up. What have you got?" })
})

Effect.runPromise(program)
