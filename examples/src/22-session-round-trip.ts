/** A session is a plain value: text in between, and the conversation goes on as if nothing had happened. */
import { Fake, Session, Tool, ToolResult } from "@allm/core"
import { Console, Effect, Schema } from "effect"

const listCities = Tool.make("list_cities", {
  description: "Lists the cities with an office",
  handler: () => Effect.as(Console.log("  list_cities runs"), ["Oslo", "Rome"])
})

const chooseCity = Tool.make("choose_city", {
  description: "Lets the person choose a city",
  handler: () => ToolResult.askUser("Which city?", { choices: ["Oslo", "Rome"] })
})

const Assistant = Fake.engine({
  tools: [listCities, chooseCity],
  usage: { inputTokens: 10, outputTokens: 5 },
  scripts: [
    [
      Fake.toolCall({ id: "call_0", name: "list_cities" }),
      Fake.toolCall({ id: "call_1", name: "choose_city" }),
      Fake.finish("tool_calls")
    ],
    [Fake.text("Your desk is in Oslo."), Fake.finish("stop")]
  ]
})

const Stored = Schema.parseJson(Session.Session)

const program = Effect.gen(function*() {
  const first = yield* Session.start("Book me a desk", { sessionId: "desk" })
  const text = yield* Schema.encode(Stored)(first.session)
  yield* Console.log(`${first.session.status}, as ${typeof text}`)

  // Tomorrow, in another process. What waits, and for whom, is part of the value.
  const session = yield* Schema.decode(Stored)(text)
  const [question] = session.pendingQuestions
  yield* Console.log(`${question!.toolName} asks: ${question!.question}`)

  const answered = yield* Session.answer(session, question!.toolCallId, { city: "Oslo" })
  yield* Console.log(answered.status)

  const second = yield* Session.continue(answered)
  for (const { content, role } of second.session.thread.messages) {
    yield* Console.log(`  ${role}: ${String(content) || "(calls tools)"}`)
  }
  const { status, usage } = second.session
  yield* Console.log(`${status}, ${usage.inputTokens} tokens in, ${usage.outputTokens} out`)
})

Effect.runPromise(Effect.provide(program, Assistant))
