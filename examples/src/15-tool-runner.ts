/** Tools without a model: calls from anywhere go in, and one message for each comes out, in their order. */
import { Tool, ToolCall, ToolRunner } from "@allm/core"
import { Console, Effect, Schema } from "effect"

const divide = Tool.make("divide", {
  description: "Divides two numbers",
  parameters: { a: Schema.Number, b: Schema.Number },
  handler: ({ a, b }) => b === 0 ? Effect.fail("there is no such number") : Effect.succeed(a / b)
})

// As another library, a queue or a file may have them.
const calls = [
  ToolCall.make({ id: "call_0", name: "divide", arguments: { a: 42, b: 2 } }),
  ToolCall.make({ id: "call_1", name: "divide", arguments: { a: 42, b: 0 } }),
  ToolCall.make({ id: "call_2", name: "divide", arguments: { a: 42, b: "two" } })
]

const program = Effect.gen(function*() {
  const { messages } = yield* ToolRunner.run(calls, [divide])
  for (const { content, toolCallId } of messages) yield* Console.log(`${toolCallId} ${content}`)

  // A name that nobody knows is a mistake of the caller: nothing of the batch is run.
  const other = ToolCall.make({ id: "call_3", name: "multiply", arguments: {} })
  const error = yield* Effect.flip(ToolRunner.run([...calls, other], [divide]))
  yield* Console.log(`${error._tag}: ${error.message}`)
})

Effect.runPromise(program)
