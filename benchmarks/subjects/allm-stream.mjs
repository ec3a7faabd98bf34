// The batch as a stream of events, consumed to its end, and the streams read one event at a time. A stream has a
// fixed price that small batches feel.
import * as ToolCall from "@allm/core/ToolCall"
import * as ToolRunner from "@allm/core/ToolRunner"
import * as Effect from "effect/Effect"
import { streamHttp } from "./allm-http.mjs"
import { byChunk, byEvent } from "./allm-loop.mjs"
import { fibers, loopOf, makeEcho, options, streamsOf } from "./allm.mjs"

export const create = (work) => {
  const tool = makeEcho((input) => work.echo(input))

  const batch = async (calls) => {
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
    await Effect.runPromise(byChunk(events, take))
    return summary
  }

  return { batch, ...streamsOf(loopOf(work), byEvent), streamHttp: streamHttp(byEvent), fibers }
}
