/** An executor of your own stands around every tool call: here it asks for a role, and writes down who did what. */
import { Allm, Fake, Tool, ToolError, ToolExecutor } from "@allm/core"
import { Console, Effect, Schema } from "effect"

const readInvoice = Tool.make("read_invoice", {
  description: "Reads an invoice",
  parameters: { id: Schema.Int },
  handler: ({ id }) => `invoice ${id}: 120 EUR`
})

const deleteInvoice = Tool.make("delete_invoice", {
  description: "Deletes an invoice",
  parameters: { id: Schema.Int },
  metadata: { role: "admin" },
  handler: ({ id }) => Effect.dieMessage(`invoice ${id} is gone`)
})

const Guarded = ToolExecutor.layer({
  execute: (tool, args, context) => {
    const { toolCall } = context
    const { role, user } = context.context
    const needed = tool.metadata["role"] ?? role
    const run = needed === role
      ? ToolExecutor.handlers.execute(tool, args, context)
      : Effect.fail(
        new ToolError.Denied({ toolName: tool.name, toolCallId: toolCall.id, detail: `only for ${needed}` })
      )
    return run.pipe(
      Effect.tap(() => Console.log(`  ${user}: ${tool.name} ${JSON.stringify(args)}`)),
      Effect.tapError((error) => Console.log(`  ${user}: ${tool.name} ${error.reason}`))
    )
  }
})

const Assistant = Fake.engine({
  tools: [readInvoice, deleteInvoice],
  scripts: [
    [
      Fake.toolCall({ id: "call_0", name: "read_invoice", arguments: { id: 7 } }),
      Fake.toolCall({ id: "call_1", name: "delete_invoice", arguments: { id: 7 } }),
      Fake.finish("tool_calls")
    ],
    [Fake.text("It is of 120 EUR, and not mine to delete."), Fake.finish("stop")]
  ]
})

const program = Effect.gen(function*() {
  const context = { user: "Ada", role: "clerk" }
  const { finalResponse, steps } = yield* Allm.chat("Read invoice 7, then delete it", { context })

  for (const { content } of steps.flatMap((step) => step.toolResults)) yield* Console.log(content)
  yield* Console.log(finalResponse.outputText)
})

Effect.runPromise(program.pipe(Effect.provide(Assistant), Effect.provide(Guarded)))
