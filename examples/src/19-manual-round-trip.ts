/** In manual mode the chat stops at the first tool calls. You run them, or not, and go on with the answers. */
import { Allm, Fake, Message, Thread, Tool } from "@allm/core"
import { Console, Effect, Schema } from "effect"

const runQuery = Tool.make("run_query", {
  description: "Runs a query",
  parameters: { sql: Schema.String }
})

const query = (id: string, sql: string) => Fake.toolCall({ id, name: "run_query", arguments: { sql } })

const Assistant = Fake.engine({
  tools: [runQuery],
  mode: "manual",
  scripts: [
    [query("call_0", "SELECT count(*) FROM users"), query("call_1", "DROP TABLE users"), Fake.finish("tool_calls")],
    [Fake.text("There are 42 users."), Fake.finish("stop")]
  ]
})

const program = Effect.gen(function*() {
  const first = yield* Allm.chat("How many users are there?")
  yield* Console.log(`${first.haltedReason}: ${first.manualToolCalls.length} calls`)

  const answers = first.manualToolCalls.map((call) => {
    const { sql } = call.arguments as { readonly sql: string }
    return sql.startsWith("SELECT")
      ? Message.tool(call.id, "42")
      : Message.tool(call.id, `refused: ${sql}`, { isError: true })
  })
  yield* Effect.forEach(answers, ({ content, toolCallId }) => Console.log(`  ${toolCallId} ${content}`))

  const second = yield* Allm.chat(Thread.append(first.thread, answers))
  yield* Console.log(`${second.haltedReason}: ${second.finalResponse.outputText}`)
})

Effect.runPromise(Effect.provide(program, Assistant))
