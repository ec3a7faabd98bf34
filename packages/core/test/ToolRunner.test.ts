import { Tool, ToolCall, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream, TestClock } from "effect"

const call = (id: string, name: string, args: unknown = {}) => ToolCall.make({ id, name, arguments: args })

const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })
const boom = Tool.make("boom", {
  description: "Throws",
  handler: (): string => {
    throw new Error("secret")
  }
})
const never = Tool.make("never", { description: "Never ends", handler: () => Effect.uninterruptible(Effect.never) })

describe("ToolRunner", () => {
  describe("run", () => {
    it.effect("RUN-01 gives the tool's answer as a message", () =>
      Effect.gen(function*() {
        const { messages } = yield* ToolRunner.run([call("c0", "hi")], [hi])

        assert.deepStrictEqual(messages, [
          { role: "tool", toolCallId: "c0", content: "hi", isError: false, metadata: {} }
        ])
      }))

    it.effect("RUN-13 keeps what a crash said from the model", () =>
      Effect.gen(function*() {
        const { messages } = yield* ToolRunner.run([call("c0", "boom"), call("c1", "hi")], [boom, hi])

        assert.deepStrictEqual(messages.map((message) => message.content), [
          "{\"error\":\"tool error (boom): handler_raised\"}",
          "hi"
        ])
      }))

    it.effect("RUN-38 times out a handler that cannot be interrupted", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.fork(
          ToolRunner.run([call("c0", "never"), call("c1", "hi")], [never, hi], { toolTimeout: "50 millis" })
        )
        yield* TestClock.adjust("50 millis")
        const { messages } = yield* Fiber.join(fiber)

        assert.deepStrictEqual(messages.map((message) => message.content), [
          "{\"error\":\"tool error (never): timeout\"}",
          "hi"
        ])
      }))

    it.effect("RUN-06 fails before anything runs when a tool is unknown", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(ToolRunner.run([call("c0", "missing")], [hi]))

        assert.strictEqual(error._tag, "UnknownTool")
      }))
  })

  describe("stream", () => {
    it.effect("RSTR-01 tells started, completed and encoded, in order", () =>
      Effect.gen(function*() {
        const events = yield* Stream.runCollect(ToolRunner.stream([call("c0", "hi")], [hi]))

        assert.deepStrictEqual(Array.from(events, (event) => event._tag), [
          "ToolExecutionStarted",
          "ToolExecutionCompleted",
          "ToolResultEncoded"
        ])
      }))
  })
})
