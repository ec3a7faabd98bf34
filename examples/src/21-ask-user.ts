/** A tool asks the person, and the chat waits as plain data. The answer goes on with it; nothing runs a second time. */
import { Allm, Fake, Message, Thread, Tool, ToolResult } from "@allm/core"
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
  scripts: [
    [
      Fake.toolCall({ id: "call_0", name: "list_cities" }),
      Fake.toolCall({ id: "call_1", name: "choose_city" }),
      Fake.finish("tool_calls")
    ],
    [Fake.text("Your desk is in Oslo."), Fake.finish("stop")]
  ]
})

// A thread as text, for a file or a database.
const Stored = Schema.parseJson(Thread.Thread)

const program = Effect.gen(function*() {
  const first = yield* Allm.chat("Book me a desk")
  yield* Console.log(`${first.haltedReason}: ${first.pendingQuestions[0]?.question}`)
  const stored = yield* Schema.encode(Stored)(first.thread)

  // Tomorrow, in another process: the question stands in the thread, and the answer follows it.
  const thread = Thread.append(yield* Schema.decode(Stored)(stored), Message.user("Oslo, please"))
  const second = yield* Allm.chat(thread)
  for (const message of second.thread.messages) {
    yield* Console.log(`  ${message.role}: ${Message.toText(message) || "(calls tools)"}`)
  }
  yield* Console.log(second.haltedReason)
})

Effect.runPromise(Effect.provide(program, Assistant))
