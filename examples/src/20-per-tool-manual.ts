/** One tool is yours to run. The others of the same turn run as usual, and keep their results. */
import { Allm, Fake, Message, Thread, Tool } from "@allm/core"
import { Console, Effect, Schema } from "effect"

const readPage = Tool.make("read_page", {
  description: "Reads the page the person looks at",
  handler: () => "A form with a Send button"
})

const click = Tool.make("click", {
  description: "Clicks a button in the browser of the person",
  parameters: { button: Schema.String },
  manual: true
})

const Assistant = Fake.engine({
  tools: [readPage, click],
  scripts: [
    [
      Fake.toolCall({ id: "call_0", name: "read_page" }),
      Fake.toolCall({ id: "call_1", name: "click", arguments: { button: "Send" } }),
      Fake.finish("tool_calls")
    ],
    [Fake.text("The form is sent."), Fake.finish("stop")]
  ]
})

const program = Effect.gen(function*() {
  const first = yield* Allm.chat("Send the form")
  yield* Console.log(first.haltedReason)
  yield* Effect.forEach(
    first.steps[0]?.toolResults ?? [],
    (m) => Console.log(`  has run: ${m.toolCallId} ${m.content}`)
  )
  yield* Effect.forEach(first.manualToolCalls, (call) => Console.log(`  is yours: ${call.id} ${call.name}`))

  // Stands in for the browser, which tells later what came of the click.
  const answers = first.manualToolCalls.map((call) => Message.tool(call.id, "clicked"))

  const second = yield* Allm.chat(Thread.append(first.thread, answers))
  yield* Console.log(`${second.haltedReason}: ${second.finalResponse.outputText}`)
})

Effect.runPromise(Effect.provide(program, Assistant))
