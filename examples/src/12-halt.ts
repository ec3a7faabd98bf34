/** A tool ends the chat, with a reason of its own. Its siblings finish, and the model is not asked again. */
import { Allm, Fake, Tool, ToolResult } from "@allm/core"
import { Console, Effect, Schema } from "effect"

const reserveRoom = Tool.make("reserve_room", {
  description: "Reserves a room",
  handler: () => Effect.delay(Console.log("  the room is reserved"), "200 millis").pipe(Effect.as("room 12"))
})

const submitPlan = Tool.make("submit_plan", {
  description: "Hands in the finished plan",
  parameters: { days: Schema.Int },
  handler: ({ days }) => Effect.as(Console.log("  the plan is in"), ToolResult.halt("plan_submitted", { days }))
})

const Planner = Fake.engine({
  tools: [reserveRoom, submitPlan],
  script: [
    Fake.toolCall({ id: "call_0", name: "reserve_room" }),
    Fake.toolCall({ id: "call_1", name: "submit_plan", arguments: { days: 3 } }),
    Fake.finish("tool_calls")
  ]
})

const program = Effect.gen(function*() {
  const { haltedReason, steps, thread } = yield* Allm.chat("Plan three days in Oslo")

  yield* Console.log(`${haltedReason} after ${steps.length} turn`)
  yield* Console.log(`the result: ${JSON.stringify(steps[0]?.halt?.result)}`)
  // Every call has its answer, so the thread can go on from here.
  for (const message of thread.messages) {
    if (message.role === "tool") yield* Console.log(`  ${message.toolCallId} ${message.content}`)
  }
})

Effect.runPromise(Effect.provide(program, Planner))
