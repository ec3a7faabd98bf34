import { Allm, Fake, Message, Response } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Either } from "effect"

describe("Allm", () => {
  describe("unwrap", () => {
    it("gives the text of an answer that came to its end", () => {
      const response = Response.make({ finishReason: "stop", outputText: "hi" })

      assert.deepStrictEqual(Allm.unwrap(response), Either.right("hi"))
    })

    it("HLP-11 gives what the message says when there is no output text", () => {
      const response = Response.make({ finishReason: "stop", message: Message.assistant("hi") })

      assert.deepStrictEqual(Allm.unwrap(response), Either.right("hi"))
    })

    it.each([undefined, ""])("HLP-02 has nothing to give when nothing was said: %j", (outputText) => {
      const without = Response.make({ finishReason: "stop", ...(outputText === undefined ? {} : { outputText }) })
      const empty = { ...without, message: Message.assistant("") }

      assert.deepStrictEqual(Allm.unwrap(without), Either.left({ _tag: "EmptyResponse" }))
      assert.deepStrictEqual(Allm.unwrap(empty), Either.left({ _tag: "EmptyResponse" }))
    })

    it.each(["length", "tool_calls", "content_filter", "error", "other", undefined] as const)(
      "HLP-03 tells that an answer ended by %s",
      (finishReason) => {
        const response = Response.make({ outputText: "hi", ...(finishReason === undefined ? {} : { finishReason }) })

        assert.deepStrictEqual(Allm.unwrap(response), Either.left({ _tag: "NonStopFinish", finishReason }))
      }
    )

    it("HLP-05 does not flatten an answer of parts", () => {
      const response = Response.make({ finishReason: "stop", message: Message.assistant([Message.text("hi")]) })

      assert.deepStrictEqual(Allm.unwrap(response), Either.left({ _tag: "StructuredContent" }))
    })

    it.effect("HLP-06 leaves a failed call failed", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Effect.map(Allm.generate("hi"), Allm.unwrap))

        assert.strictEqual(error._tag === "AdapterError" && error.reason, "authentication_failed")
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.preflightError("authentication_failed")] }))))
  })
})
