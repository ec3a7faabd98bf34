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
