import { Message, Response, ToolCall } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"

describe("Response", () => {
  describe("make", () => {
    it("leaves absent what was not told", () => {
      assert.deepStrictEqual(Response.make(), { toolCalls: [], usage: {}, metadata: {} })
    })

    it("keeps all it is given", () => {
      const toolCalls = [ToolCall.make({ id: "c0", name: "echo", arguments: {} })]
      const response: Response.Response = {
        id: "r0",
        requestId: "q0",
        model: "small",
        message: Message.assistant("Hello", { toolCalls }),
        outputText: "Hello",
        toolCalls,
        finishReason: "tool_calls",
        rawFinishReason: "tool_use",
        usage: { inputTokens: 1 },
        metadata: { region: "north" }
      }

      assert.deepStrictEqual(Response.make(response), response)
    })
  })

  describe("text", () => {
    it("is the output text, before what the message says", () => {
      const response = Response.make({ outputText: "Hello", message: Message.assistant("Bye") })

      assert.strictEqual(Response.text(response), "Hello")
    })

    it("is an empty output text too", () => {
      assert.strictEqual(Response.text(Response.make({ outputText: "", message: Message.assistant("Bye") })), "")
    })

    it("is the text of the message otherwise, parts put together", () => {
      const message = Message.assistant([Message.text("Hel"), Message.text("lo")])

      assert.strictEqual(Response.text(Response.make({ message })), "Hello")
    })

    it("is undefined when nothing was said", () => {
      assert.strictEqual(Response.text(Response.make()), undefined)
    })
  })

  describe("schema", () => {
    it.effect("fills in what was left out", () =>
      Effect.gen(function*() {
        const response = yield* Schema.decode(Response.Response)({ finishReason: "stop" })

        assert.deepStrictEqual(response, { finishReason: "stop", toolCalls: [], usage: {}, metadata: {} })
      }))

    it("knows six finish reasons", () => {
      assert.deepStrictEqual(Response.FinishReason.literals, [
        "stop",
        "length",
        "tool_calls",
        "content_filter",
        "error",
        "other"
      ])
    })

    it.effect("SER-09 refuses a finish reason nobody knows, typed", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Schema.decodeUnknown(Response.Response)({ finishReason: "bored" }))

        assert.strictEqual(error._tag, "ParseError")
        assert.include(error.message, "bored")
      }))
  })
})
