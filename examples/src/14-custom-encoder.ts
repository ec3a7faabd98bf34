/** An encoder of your own decides how results read: here as a table, which costs a model fewer tokens than JSON. */
import { Allm, Fake, Tool, ToolResultEncoder } from "@allm/core"
import { Console, Effect, Schema } from "effect"

const Row = Schema.Record({ key: Schema.String, value: Schema.Union(Schema.String, Schema.Number) })
const isTable = Schema.is(Schema.NonEmptyArray(Row))

const listUsers = Tool.make("list_users", {
  description: "Lists the users",
  handler: () => [{ id: 1, name: "Ada" }, { id: 2, name: "Bob" }, { id: 3, name: "Eve" }, { id: 4, name: "Kim" }]
})

const countRows = Tool.make("count_rows", {
  description: "Counts what is stored",
  handler: () => ({ rows: 9_007_199_254_740_993n })
})

const maxRows = 3

const Tables = ToolResultEncoder.layer({
  encode: (value) => {
    if (!isTable(value)) return ToolResultEncoder.json.encode(value)
    const columns = Object.keys(value[0])
    const lines = value.slice(0, maxRows).map((row) => columns.map((column) => row[column]).join("|"))
    const more = value.length > maxRows ? [`(${value.length - maxRows} more)`] : []
    return Effect.succeed([columns.join("|"), ...lines, ...more].join("\n"))
  }
})

const Assistant = Fake.engine({
  tools: [listUsers, countRows],
  scripts: [
    [
      Fake.toolCall({ id: "call_0", name: "list_users" }),
      Fake.toolCall({ id: "call_1", name: "count_rows" }),
      Fake.finish("tool_calls")
    ],
    [Fake.text("Four users, and a number too big to say."), Fake.finish("stop")]
  ]
})

const program = Effect.gen(function*() {
  const { finalResponse, steps } = yield* Allm.chat("Who is there, and how much is stored?")

  for (const { content } of steps.flatMap((step) => step.toolResults)) yield* Console.log(`${content}\n`)
  yield* Console.log(finalResponse.outputText)
})

Effect.runPromise(program.pipe(Effect.provide(Assistant), Effect.provide(Tables)))
