/** A browser, a phone, another machine: one tool is theirs to run, and the session waits for what they come to. */
import { Fake, Session, Tool, type ToolCall } from "@allm/core"
import { Array, Console, Effect, Schema } from "effect"

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

// Stands in for the browser, whose page has no Send button.
const submit = (session: Session.Session, call: ToolCall.ToolCall) =>
  JSON.stringify(call.arguments) === `{"button":"Send"}`
    ? Session.submitToolResult(session, call.id, { reason: "no such button" }, { isError: true })
    : Session.submitToolResult(session, call.id, "clicked")

const program = Effect.gen(function*() {
  const { session } = yield* Session.start("Accept the terms and send the form")
  yield* waits(session)

  // The session does not guess: whoever goes on too early is told what is missing.
  const refused = yield* Effect.flip(Session.continue(session))
  yield* Console.log(refused.message)

  // Results come in whatever order the browser has them.
  const ready = yield* Effect.reduce(
    Array.reverse(session.pendingToolCalls),
    session,
    (session, call) => Effect.tap(submit(session, call), waits)
  )

  const { result } = yield* Session.continue(ready)
  // History has them in the order of the calls.
  yield* Effect.forEach(
    result.thread.messages.filter((message) => message.role === "tool"),
    (message) => Console.log(`  ${message.toolCallId}: ${message.content}`)
  )
  yield* Console.log(result.finalResponse.outputText)
})

Effect.runPromise(Effect.provide(program, Assistant))
