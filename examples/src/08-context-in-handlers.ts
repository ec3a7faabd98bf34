/** What a caller knows reaches every handler: as its second argument, and as a service deep inside it. */
import { Allm, Fake, Tool, ToolContext } from "@allm/core"
import { Console, Effect, Schema } from "effect"

// Knows nothing of tools or arguments, and still says who asked for what.
const audit = (action: string) =>
  Effect.flatMap(
    ToolContext.ToolContext,
    ({ context, requestId, toolCall }) =>
      Console.log(`audit: ${context["user"]}@${context["tenant"]} ${action} (${requestId}, ${toolCall.id})`)
  )

const pay = Tool.make("pay", {
  description: "Pays a bill",
  parameters: { euros: Schema.Number },
  handler: ({ euros }, { context, idempotencyKey }) =>
    Effect.as(audit(`pays ${euros} EUR`), { paidBy: context["user"], key: idempotencyKey })
})

const Assistant = Fake.engine({
  tools: [pay],
  // The same for all chats of this engine.
  context: { tenant: "acme", user: "nobody" },
  scripts: [
    [Fake.toolCall({ id: "call_0", name: "pay", arguments: { euros: 12 } }), Fake.finish("tool_calls")],
    [Fake.text("Paid."), Fake.finish("stop")]
  ]
})

const program = Effect.gen(function*() {
  // The context of one chat is laid over the engine's.
  const { steps } = yield* Allm.chat("Pay the bill", { context: { user: "Ada" }, requestId: "r7" })

  yield* Console.log(`the model reads: ${steps[0]?.toolResults[0]?.content}`)
})

Effect.runPromise(Effect.provide(program, Assistant))
