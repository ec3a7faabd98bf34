/** A browser, a phone, another machine: one tool is theirs to run, and the session waits for what they come to. */
import { Fake, Session, Tool } from "@allm/core"
import { Console, Effect, Schema } from "effect"

const readPage = Tool.make("read_page", {
  description: "Reads the page the person looks at",
  handler: () => "A form with two buttons"
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
      Fake.toolCall({ id: "call_1", name: "click", arguments: { button: "Accept" } }),
      Fake.toolCall({ id: "call_2", name: "click", arguments: { button: "Send" } }),
      Fake.finish("tool_calls")
    ],
    [Fake.text("Accepted, but there is no Send button."), Fake.finish("stop")]
  ]
})

const waits = ({ pendingToolCalls, status }: Session.Session) =>
  Console.log(`${status}: ${pendingToolCalls.map(({ id, name }) => `${id} ${name}`).join(", ") || "nothing waits"}`)

const program = Effect.gen(function*() {
  const { session } = yield* Session.start("Accept the terms and send the form")
  yield* waits(session)

  // The session does not guess: whoever goes on too early is told what is missing.
  const refused = yield* Effect.flip(Session.continue(session))
  yield* Console.log(refused.message)

  // Results come in whatever order the browser has them.
  const one = yield* Session.submitToolResult(session, "call_2", { reason: "no such button" }, { isError: true })
  yield* waits(one)
  const both = yield* Session.submitToolResult(one, "call_1", "clicked")
  yield* waits(both)

  const { result } = yield* Session.continue(both)
  // History has them in the order of the calls.
  yield* Effect.forEach(
    result.thread.messages.filter((message) => message.role === "tool"),
    (message) => Console.log(`  ${message.toolCallId}: ${message.content}`)
  )
  yield* Console.log(result.finalResponse.outputText)
})

Effect.runPromise(Effect.provide(program, Assistant))
