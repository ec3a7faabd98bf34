/** Events arrive while the tools run. Whoever stops reading stops the tools, and their finalizers run. */
import { Tool, ToolCall, ToolRunner } from "@allm/core"
import { Console, Effect, Stream } from "effect"

const download = Tool.make("download", {
  description: "Downloads a file and tells how far it is",
  handler: (_, context) =>
    Effect.forEach([25, 50, 75, 100], (percent) => Effect.delay(context.progress({ percent }), "300 millis")).pipe(
      Effect.as("saved"),
      Effect.onInterrupt(() => Console.log("  the half file is removed"))
    )
})

const upload = Tool.make("upload", {
  description: "The same, as an async function",
  handler: async (_, { signal, unsafeProgress }) => {
    for (const sent of [1, 2, 3]) {
      if (signal.aborted) return "stopped"
      await Effect.runPromise(Effect.sleep("375 millis"))
      unsafeProgress({ sent })
    }
    return "sent"
  }
})

const events = ToolRunner.stream(
  [
    ToolCall.make({ id: "call_0", name: "download", arguments: {} }),
    ToolCall.make({ id: "call_1", name: "upload", arguments: {} })
  ],
  [download, upload],
  { concurrency: "unbounded" }
)

const print = Stream.tap(events, (event) => {
  switch (event._tag) {
    case "ToolProgress":
      return Console.log(`  ${event.toolName} ${JSON.stringify(event.value)}`)
    case "ToolResultEncoded":
      return Console.log(`  ${event.toolName} ${event.content}`)
    default:
      return Effect.void
  }
})

const program = Effect.gen(function*() {
  yield* Console.log("to the end:")
  yield* Stream.runDrain(print)
  yield* Console.log("until the first word of the upload:")
  yield* print.pipe(
    Stream.takeUntil((event) => event._tag === "ToolProgress" && event.toolName === "upload"),
    Stream.runDrain
  )
  yield* Console.log("over")
})

Effect.runPromise(program)
