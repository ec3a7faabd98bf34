// ALLM as most people use it: a schema for the arguments, an async handler, everything else by default.
import * as Tool from "@allm/core/Tool"
import * as ToolCall from "@allm/core/ToolCall"
import * as ToolRunner from "@allm/core/ToolRunner"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import { summarize, toolName } from "../lib/work.mjs"

export const makeEcho = (handler) =>
  Tool.make(toolName, {
    description: "Gives back its input",
    parameters: { text: Schema.String, n: Schema.Number },
    handler
  })

export const options = { concurrency: 64 }

export const subjectOf = (tool) => ({
  run: async (calls) => {
    const { messages } = await Effect.runPromise(
      ToolRunner.run(calls.map((call) => ToolCall.fromRaw(call)), [tool], options)
    )
    return summarize(messages)
  },
  fibers: () => Fiber.unsafeRoots().length
})

export const create = ({ echo }) => subjectOf(makeEcho((input) => echo(input)))
