import { Anthropic } from "@allm/anthropic"
import * as EventLaws from "@allm/conformance/EventLaws"
import type { Event, Request } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "effect/FastCheck"
import {
  ask,
  begun,
  call,
  ended,
  type Frame,
  grown,
  hello,
  over,
  ping,
  sse,
  sseOf,
  started,
  stopped,
  text,
  thinking
} from "./wire.ts"

const frames: ReadonlyArray<Frame> = [
  started(),
  ping,
  ...thinking(0, "sig==", "Erst überlegen: ", "世界 🌍…"),
  begun(1, { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }),
  grown(1, { type: "input_json_delta", partial_json: "{\"query\":\"Zürich" }),
  grown(1, { type: "input_json_delta", partial_json: " ☂\"}" }),
  over(1),
  ...text(2, "Grüße", "\n\n", "data: {\"type\":\"message_stop\"}\n\n", "👋"),
  ...call(3, { id: "toolu_1", name: "look" }, "{\"at\":\"", "münchen\"", "}"),
  stopped("tool_use"),
  ended
]

describe("a body", () => {
  it.effect.prop(
    "means the same in any cut of its bytes, with either end of line",
    [fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 50 }), fc.boolean()],
    ([cuts, hasReturns]) =>
      Effect.gen(function*() {
        const body = sseOf(frames)
        const bytes = new TextEncoder().encode(hasReturns ? body.replaceAll("\n", "\r\n") : body)
        const parts: Array<Uint8Array> = []
        for (let at = 0; at < bytes.length;) {
          const length = cuts[parts.length % cuts.length]!
          parts.push(bytes.slice(at, at + length))
          at += length
        }

        assert.deepStrictEqual(yield* ask(() => sse(parts)), yield* ask(() => sse(body)))
      })
  )

  it.effect.prop(
    "that is cut short never passes for a whole one",
    [fc.double({ min: 0, max: 1, noNaN: true })],
    ([share]) =>
      Effect.gen(function*() {
        const bytes = new TextEncoder().encode(sseOf(frames))
        // Up to the frame with the reason why it stopped, nothing tells that it did.
        const last = new TextEncoder().encode(sseOf(frames.slice(0, -2))).length
        const error = yield* Effect.flip(Effect.asVoid(ask(() => sse([bytes.slice(0, Math.floor(last * share))]))))

        assert.include(["network_error", "malformed_response"], error.reason)
      })
  )
})

describe("frames in any order", () => {
  const index = fc.integer({ min: 0, max: 3 })
  const word = fc.constantFrom("", "a", "{\"b\":", "1}", "ß☂")
  const type = fc.constantFrom("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "news", 7)
  const frame = fc.oneof(
    fc.tuple(index, type, word).map(([at, type, word]) => begun(at, { type, text: word, name: "look", input: {} })),
    fc.tuple(index, word).map(([at, text]) => grown(at, { type: "text_delta", text })),
    fc.tuple(index, word).map(([at, thinking]) => grown(at, { type: "thinking_delta", thinking })),
    fc.tuple(index, word).map(([at, partial_json]) => grown(at, { type: "input_json_delta", partial_json })),
    fc.tuple(index, word).map(([at, signature]) => grown(at, { type: "signature_delta", signature })),
    fc.tuple(index, fc.jsonValue()).map(([at, citation]) => grown(at, { type: "citations_delta", citation })),
    fc.tuple(index, fc.jsonValue()).map(([at, delta]) => ({ type: "content_block_delta", index: at, delta })),
    index.map(over),
    fc.constantFrom(started(), ping, stopped("tool_use")),
    fc.jsonValue().map((usage) => ({ type: "message_delta", delta: usage, usage })),
    fc.jsonValue().map((message) => ({ type: "message_start", message })),
    fc.jsonValue()
  )

  it.prop("never break the decoder, nor the laws of an answer", [fc.array(frame, { maxLength: 30 }), fc.boolean()], ([
    frames,
    hasForm
  ]) => {
    const { responseFormat: _none, ...plain } = hello
    const request: Request.Request = hasForm ? { ...hello, responseFormat: { type: "json_object" } } : plain
    const decoder = Anthropic.protocol({}).decoder(request)
    const events: Array<Event.AdapterEvent> = []
    for (const data of [...frames, ended]) {
      const decoded = decoder.frame(data, undefined)
      // What tells an error ends the answer.
      if (!Array.isArray(decoded)) return
      events.push(...decoded)
    }

    assert.deepStrictEqual(EventLaws.problems(events), [])
  }, { fastCheck: { numRuns: 1_000 } })
})
