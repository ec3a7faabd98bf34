// The loop of ALLM over a scripted model: what `allm` measures here, and what the adapter for another harness measures there.
import * as Adapter from "@allm/core/Adapter"
import { AdapterError } from "@allm/core/AdapterError"
import * as Allm from "@allm/core/Allm"
import * as Engine from "@allm/core/Engine"
import * as ToolCall from "@allm/core/ToolCall"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Stream from "effect/Stream"

const completed = (finishReason) => ({
  _tag: "MessageCompleted",
  finishReason,
  usage: { inputTokens: 1, outputTokens: 1 },
  metadata: {}
})

const called = (call) => ({ _tag: "ToolCallCompleted", toolCall: ToolCall.fromRaw(call) })

const answer = ({ calls, text }) =>
  calls === undefined
    ? [{ _tag: "TextDelta", delta: text }, completed("stop")]
    : [...calls.map(called), completed("tool_calls")]

async function* events({ id, kind, name, reads }) {
  if (kind === "text") {
    for await (const read of reads) yield read.map((delta) => ({ _tag: "TextDelta", delta }))
    yield [completed("stop")]
    return
  }
  yield [{ _tag: "ToolCallStarted", toolCallId: id, toolName: name }]
  for await (const read of reads) yield read.map((delta) => ({ _tag: "ToolCallDelta", toolCallId: id, delta }))
  yield [completed("tool_calls")]
}

const keyOf = ({ messages }) => {
  const last = messages[messages.length - 1]
  return last.role === "tool" ? last.toolCallId : last.content
}

const brokenOff = (cause) => new AdapterError({ reason: "network_error", provider: "scripted", cause })

/** Reads a stream as most code should: as many events at a time as there are. */
export const byChunk = (stream, take) =>
  Stream.runForEachChunk(stream, (chunk) =>
    Effect.sync(() => {
      for (const event of chunk) take(event)
    }))

/** Reads a stream one event at a time. */
export const byEvent = (stream, take) => Stream.runForEach(stream, (event) => Effect.sync(() => take(event)))

/**
 * Makes chats and streams. `reply` gives an answer in one piece, `{ text }` or `{ calls }`; `plan` gives one in pieces,
 * `{ kind, id, name, reads }`.
 */
export const makeLoop = ({ plan, reply, tools }) => {
  const engineOver = (adapter) =>
    ManagedRuntime.make(
      Layer.provide(Engine.layer({ tools, maxTurns: 10_000, concurrency: 64 }), Adapter.layer(adapter))
    )

  const asking = engineOver(
    Adapter.fromPromise(async (request) => answer(await reply(keyOf(request))), brokenOff)
  )
  const streaming = engineOver(Adapter.fromAsyncIterable((request) => events(plan(keyOf(request))), brokenOff))

  return {
    chat: async (opening) => (await asking.runPromise(Allm.chat(opening))).finalResponse.outputText,
    stream: async (opening, consume = byChunk) => {
      const seen = { text: "", textDeltas: 0, argumentDeltas: 0 }
      const take = (event) => {
        if (event._tag === "ToolCallDelta") seen.argumentDeltas++
        else if (event._tag === "TextDelta") {
          seen.textDeltas++
          seen.text += event.delta
        }
      }
      await streaming.runPromise(consume(Allm.stream(opening), take))
      return seen
    }
  }
}
