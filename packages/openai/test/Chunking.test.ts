import { OpenAi, OpenAiChat } from "@allm/openai"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "effect/FastCheck"
import { ask, bytes, responseStream, textOf } from "./wire.ts"

const text = "Grüße, 世界 👋\u2028{\"a\":\r\n1}"
const args = "{\"city\":\"Zürich ☂\"}"

const chat = [
  { id: "c1", choices: [{ index: 0, delta: { role: "assistant", reasoning_content: "Hm… 🤔" } }] },
  { id: "c1", choices: [{ index: 0, delta: { content: text } }] },
  {
    id: "c1",
    choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id: "a", function: { name: "look", arguments: args } }] } }]
  },
  { id: "c1", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }
]

const responses = responseStream([
  { id: "rs_1", type: "reasoning", summary: [{ type: "summary_text", text: "Hm… 🤔" }] },
  { id: "m1", type: "message", content: [{ type: "output_text", text }] },
  { id: "f1", type: "function_call", call_id: "a", name: "look", arguments: args }
])

const bodyOf = (frames: ReadonlyArray<unknown>, lineEnd: string): Uint8Array =>
  new TextEncoder().encode(
    [": ping", "", ...frames.flatMap((frame) => [`data: ${JSON.stringify(frame)}`, ""]), ""].join(lineEnd)
  )

const protocols = [
  { name: "OpenAi", layer: OpenAi.layer({ baseUrl: "http://cut.test" }), frames: responses },
  { name: "OpenAiChat", layer: OpenAiChat.layer({ baseUrl: "http://cut.test" }), frames: chat }
]

describe("any cut of the bytes", () => {
  for (const { frames, layer, name } of protocols) {
    it.effect.prop(
      `means the same to ${name}`,
      [
        fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 20 }),
        fc.constantFrom("\n", "\r\n", "\r")
      ],
      ([cuts, lineEnd]) =>
        Effect.gen(function*() {
          const body = bodyOf(frames, lineEnd)
          const parts: Array<Uint8Array> = []
          for (let at = 0, i = 0; at < body.length; i++) parts.push(body.slice(at, at += cuts[i % cuts.length]!))
          const whole = yield* ask(layer, () => bytes([bodyOf(frames, "\n")]))

          assert.strictEqual(textOf(whole), text)
          assert.deepStrictEqual(yield* ask(layer, () => bytes(parts)), whole)
        }),
      { fastCheck: { numRuns: 30 } }
    )
  }
})
