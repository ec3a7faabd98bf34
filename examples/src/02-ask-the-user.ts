/** A tool asks the person. Its sibling's result is kept, and the answer becomes the call's own message. */
import { Message, Tool, ToolCall, ToolResult, ToolRunner } from "@allm/core"
import { Console, Effect, Schema } from "effect"

const listCities = Tool.make("list_cities", {
  description: "Lists the cities with an office",
  handler: () => ["Oslo", "Rome"]
})

const chooseCity = Tool.make("choose_city", {
  description: "Lets the person choose one of some cities",
  parameters: { choices: Schema.Array(Schema.String) },
  handler: ({ choices }) => ToolResult.askUser("Which city?", { choices })
})

// Stands in for a real person: a form, a chat window, a phone call tomorrow.
const askPerson = (question: string) => Effect.as(Console.log(`person is asked: ${question}`), "Oslo")

const program = Effect.gen(function*() {
  const { halt, messages, questions } = yield* ToolRunner.run(
    [
      ToolCall.make({ id: "call_0", name: "list_cities", arguments: {} }),
      ToolCall.make({ id: "call_1", name: "choose_city", arguments: { choices: ["Oslo", "Rome"] } })
    ],
    [listCities, chooseCity]
  )
  yield* Console.log(`halted: ${halt?.reason}`)
  yield* Effect.forEach(messages, ({ content, toolCallId }) => Console.log(`  ${toolCallId} ${content}`))

  // What the batch came to is plain data. It may wait as long as the person needs.
  const answers = yield* Effect.forEach(
    questions,
    ({ question, toolCallId }) => Effect.map(askPerson(question), (answer) => Message.tool(toolCallId, answer))
  )

  const history = messages.map((message) =>
    answers.find(({ toolCallId }) => toolCallId === message.toolCallId) ?? message
  )
  yield* Console.log("the model goes on with")
  yield* Effect.forEach(history, ({ content, toolCallId }) => Console.log(`  ${toolCallId} ${content}`))
})

Effect.runPromise(program)
