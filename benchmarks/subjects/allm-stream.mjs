// The same batch as a stream of events, consumed to its end. A stream has a fixed price that small batches feel.
import * as ToolCall from "@allm/core/ToolCall"
import * as ToolRunner from "@allm/core/ToolRunner"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { makeEcho, options } from "./allm.mjs"

export const create = ({ echo }) => {
  const tool = makeEcho((input) => echo(input))

  const run = async (calls) => {
    const lastId = calls[calls.length - 1].id
    const summary = { count: 0, errors: 0, last: undefined }
    const take = (event) => {
      if (event._tag !== "ToolResultEncoded") return
      summary.count++
      if (event.isError) summary.errors++
      // Calls end in any order, so the last call is known by its id.
      if (event.toolCallId === lastId) summary.last = event.content
    }
    const events = ToolRunner.stream(calls.map((call) => ToolCall.fromRaw(call)), [tool], options)
    await Effect.runPromise(Stream.runDrain(Stream.mapChunks(events, (chunk) => {
      for (const event of chunk) take(event)
      return chunk
    })))
    return summary
  }

  return { run, fibers: () => Fiber.unsafeRoots().length }
}
