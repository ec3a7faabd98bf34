/** An agent with a tool that hears nobody. */
import { Fake, Tool } from "@allm/core"
import { Effect } from "effect"

const deaf = Tool.make("deaf", {
  description: "Neither ends nor stops",
  timeout: "10 minutes",
  // Before it says so it does not run yet, and would stop.
  handler: (_, { progress }) => Effect.uninterruptible(Effect.zipRight(progress("hears nobody"), Effect.never))
})

export default Fake.engine({
  tools: [deaf],
  script: [Fake.toolCall({ id: "call-1", name: "deaf", arguments: {} }), Fake.finish("tool_calls")]
})
