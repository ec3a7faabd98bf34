/** A batch of parallel tools, told live: they start, finish, fail, time out and halt. */
import { Tool, ToolCall, ToolResult, ToolRunner } from "@allm/core"
import { Console, Effect, Schema, Stream } from "effect"

const slow = Tool.make("slow_search", {
  description: "Searches for a while",
  parameters: { query: Schema.String },
  handler: ({ query }) => Effect.as(Effect.sleep("300 millis"), `3 hits for ${query}`)
})
const flaky = Tool.make("flaky_api", { description: "Is offline", handler: () => Effect.fail("offline") })
const stuck = Tool.make("stuck", {
  description: "Never answers",
  timeout: "600 millis",
  handler: () => new Promise<string>(() => {})
})
const submit = Tool.make("submit_plan", {
  description: "Ends the loop",
  handler: () => Effect.as(Effect.sleep("150 millis"), ToolResult.halt("plan_submitted", { steps: 3 }))
})

const calls = [
  ToolCall.make({ id: "c0", name: "slow_search", arguments: { query: "effect" } }),
  ToolCall.make({ id: "c1", name: "flaky_api", arguments: {} }),
  ToolCall.make({ id: "c2", name: "stuck", arguments: {} }),
  ToolCall.make({ id: "c3", name: "submit_plan", arguments: {} })
]

const program = ToolRunner.stream(calls, [slow, flaky, stuck, submit]).pipe(
  Stream.runForEach((event) => {
    switch (event._tag) {
      case "ToolExecutionStarted":
        return Console.log(`> ${event.toolName} started`)
      case "ToolResultEncoded":
        return Console.log(`${event.isError ? "x" : "+"} ${event.toolName} ${event.content}`)
      case "ToolHalt":
        return Console.log(`! ${event.toolName} halts: ${event.reason} ${event.content}`)
      default:
        return Effect.void
    }
  })
)

Effect.runPromise(program)
