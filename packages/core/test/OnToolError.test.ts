import { OnToolError, Tool, ToolCall, ToolError, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Effect, Fiber, Layer, TestClock } from "effect"

const call = (id: string, name: string, args: unknown = {}) => ToolCall.make({ id, name, arguments: args })

const contents = (result: ToolRunner.RunResult) => result.messages.map((message) => message.content)

const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })
const fails = Tool.make("fails", { description: "Reports a failure", handler: () => Effect.fail({ code: 7 }) })
const boom = Tool.make("boom", {
  description: "Throws",
  handler: (): string => {
    throw new Error("secret")
  }
})
const never = Tool.make("never", { description: "Never ends", handler: () => Effect.never })

/** A policy that keeps what it was asked, and answers with whatever it is given. */
const asking = (answer: (call: ToolCall.ToolCall, error: ToolError.ToolError) => unknown) => {
  const asked: Array<{ readonly id: string; readonly error: ToolError.ToolError }> = []
  return {
    asked,
    policy: ((toolCall: ToolCall.ToolCall, error: ToolError.ToolError) => {
      asked.push({ id: toolCall.id, error })
      return answer(toolCall, error)
    }) as (call: ToolCall.ToolCall, error: ToolError.ToolError) => OnToolError.Decision
  }
}

const failing = [call("c0", "fails"), call("c1", "hi")]

describe("OnToolError", () => {
  describe("a function", () => {
    it.effect("RUN-70 puts a value in the place of a failure", () =>
      Effect.gen(function*() {
        const result: ToolRunner.RunResult = yield* ToolRunner.run(failing, [fails, hi], {
          onToolError: () => OnToolError.continueWith({ fallback: "ok" })
        })

        assert.deepStrictEqual(result.messages[0], {
          role: "tool",
          toolCallId: "c0",
          content: "{\"fallback\":\"ok\"}",
          isError: false,
          metadata: {}
        })
        assert.strictEqual(contents(result)[1], "hi")
        assert.strictEqual(result.halt, undefined)
        assert.deepInclude(result.outcomes[0]!.result, { _tag: "Ok", value: { fallback: "ok" } })
      }))

    it.effect("RUN-71 is given the call and the typed error", () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const toolCall = call("c0", "fails")
        yield* ToolRunner.run([toolCall], [fails], {
          onToolError: (...given) => {
            seen.push(...given)
            return "continue"
          }
        })

        assert.strictEqual(seen.length, 2)
        assert.strictEqual(seen[0], toolCall)
        assert.instanceOf(seen[1], ToolError.HandlerFailed)
        assert.deepInclude(seen[1], { toolName: "fails", toolCallId: "c0", failure: { code: 7 } })
      }))

    it.effect("RUN-71 tells a crash from a reported failure, and sees what the model does not", () =>
      Effect.gen(function*() {
        const { asked, policy } = asking(() => "continue")
        yield* ToolRunner.run([call("c0", "boom"), call("c1", "fails")], [boom, fails], { onToolError: policy })
        const [crash, report] = asked.map(({ error }) => error)

        assert.deepInclude(crash, { _tag: "HandlerRaised", origin: "executor" })
        assert.match(Cause.pretty(crash!.cause!), /secret/)
        assert.deepInclude(report, { _tag: "HandlerFailed", origin: "handler" })
      }))

    it.effect("RUN-72 halts, and the call still has its message", () =>
      Effect.gen(function*() {
        const result = yield* ToolRunner.run(failing, [fails, hi], { onToolError: () => OnToolError.halt })

        assert.deepStrictEqual(contents(result), ["{\"error\":{\"code\":7}}", "hi"])
        assert.deepStrictEqual(result.halt, {
          reason: "tool_error",
          toolCallId: "c0",
          error: result.outcomes[0]!.result as ToolError.ToolError
        })
      }))

    it.effect("RUN-75 goes on with the failure as the model's answer", () =>
      Effect.gen(function*() {
        for (const decision of [OnToolError.continue(), "continue"] as const) {
          const result = yield* ToolRunner.run(failing, [fails, hi], { onToolError: () => decision })

          assert.deepStrictEqual(contents(result), ["{\"error\":{\"code\":7}}", "hi"])
          assert.strictEqual(result.messages[0]!.isError, true)
          assert.strictEqual(result.halt, undefined)
        }
      }))

    it.effect("RUN-77 is asked once for every call that failed, and for no other", () =>
      Effect.gen(function*() {
        const { asked, policy } = asking(() => "continue")
        const calls = [call("c0", "fails"), call("c1", "hi"), call("c2", "boom"), call("c3", "fails")]
        yield* ToolRunner.run(calls, [fails, hi, boom], { onToolError: policy })

        assert.deepStrictEqual(asked.map(({ id }) => id), ["c0", "c2", "c3"])
      }))

    it.effect("RUN-41 is asked once about a call over its limit", () =>
      Effect.gen(function*() {
        const { asked, policy } = asking(() => OnToolError.continueWith("gave up"))
        const fiber = yield* Effect.fork(
          ToolRunner.run([call("c0", "never"), call("c1", "hi")], [never, hi], {
            onToolError: policy,
            toolTimeout: "50 millis"
          })
        )
        yield* TestClock.adjust("1 hour")
        const result = yield* Fiber.join(fiber)

        assert.deepStrictEqual(contents(result), ["gave up", "hi"])
        assert.strictEqual(asked.length, 1)
        assert.deepInclude(asked[0]!.error, { _tag: "Timeout", toolName: "never", limitMillis: 50 })
      }))

    it.effect("is asked about wrong arguments, an unencodable result and a missing handler too", () =>
      Effect.gen(function*() {
        const big = Tool.make("big", { description: "Gives a bigint", handler: () => 1n })
        const bare = Tool.make("bare", { description: "Declared only" })
        const { asked, policy } = asking(() => "continue")
        yield* ToolRunner.run([call("c0", "hi", []), call("c1", "big"), call("c2", "bare")], [hi, big, bare], {
          onToolError: policy
        })

        assert.deepStrictEqual(asked.map(({ error }) => error._tag), ["InvalidArguments", "EncodingFailed", "NotFound"])
      }))
  })

  describe("an Effect", () => {
    it.effect("RUN-70 decides like a plain function", () =>
      Effect.gen(function*() {
        const result = yield* ToolRunner.run([call("c0", "fails"), call("c1", "boom")], [fails, boom], {
          onToolError: (_call, error) =>
            Effect.succeed(error._tag === "HandlerFailed" ? OnToolError.continueWith("cached") : OnToolError.halt)
        })

        assert.strictEqual(contents(result)[0], "cached")
        assert.deepInclude(result.halt, { reason: "tool_error", toolCallId: "c1" })
      }))

    it.effect("takes its time while siblings go on", () =>
      Effect.gen(function*() {
        const { asked, policy } = asking(() => Effect.delay(Effect.succeed(OnToolError.continue()), "1 minute"))
        const fiber = yield* Effect.fork(
          ToolRunner.run(failing, [fails, hi], { onToolError: policy, toolTimeout: "1 second" })
        )
        yield* TestClock.adjust("59 seconds")
        assert.strictEqual(fiber.unsafePoll(), null)
        yield* TestClock.adjust("1 second")
        const result = yield* Fiber.join(fiber)

        assert.strictEqual(asked.length, 1)
        assert.deepStrictEqual(contents(result), ["{\"error\":{\"code\":7}}", "hi"])
        assert.strictEqual(result.halt, undefined)
      }))

    it.effect("may need services of its own", () =>
      Effect.gen(function*() {
        class Fallback extends Context.Tag("test/Fallback")<Fallback, string>() {}
        const result = yield* ToolRunner.run([call("c0", "fails")], [fails], {
          onToolError: () => Effect.map(Fallback, (value) => OnToolError.continueWith(value))
        }).pipe(Effect.provide(Layer.succeed(Fallback, "from the layer")))

        assert.deepStrictEqual(contents(result), ["from the layer"])
      }))
  })

  describe("a function that misbehaves", () => {
    it.effect.each(
      [
        [undefined, "undefined"],
        [null, "null"],
        [true, "a boolean"],
        ["stop", "a string"],
        [{ _tag: "Continue" }, "an object"],
        [{ ...(OnToolError.halt as object), _tag: "Perhaps" }, "an object"],
        [OnToolError.continue, "a function"],
        [["continue", "value"], "an array"]
      ] as const
    )("RUN-74 halts the batch when it returns %s", ([returned, described]) =>
      Effect.gen(function*() {
        const { asked, policy } = asking(() => returned)
        const result = yield* ToolRunner.run(failing, [fails, hi], { onToolError: policy })
        const detail = `the onToolError function returned ${described}; ` +
          "write OnToolError.continue(), .continueWith(value) or .halt"

        assert.strictEqual(asked.length, 1)
        assert.deepInclude(result.halt, { reason: "tool_error", toolCallId: "c0" })
        assert.deepInclude(result.halt!.error, { _tag: "InvalidReturn", toolName: "fails", toolCallId: "c0", detail })
        assert.deepStrictEqual(contents(result), [
          JSON.stringify({ error: `tool error (fails): invalid_return: ${detail}` }),
          "hi"
        ])
      }))

    it.effect("RUN-74 halts the batch when its Effect gives something else", () =>
      Effect.gen(function*() {
        const { asked, policy } = asking(() => Effect.succeed("perhaps"))
        const result = yield* ToolRunner.run(failing, [fails, hi], { onToolError: policy })

        assert.strictEqual(asked.length, 1)
        assert.deepInclude(result.halt!.error, {
          _tag: "InvalidReturn",
          detail:
            "the onToolError function returned a string; write OnToolError.continue(), .continueWith(value) or .halt"
        })
      }))

    it.effect("RUN-74 halts the batch when it is async, whatever it promises", () =>
      Effect.gen(function*() {
        const { asked, policy } = asking(async () => OnToolError.continue())
        const result = yield* ToolRunner.run(failing, [fails, hi], { onToolError: policy })

        assert.strictEqual(asked.length, 1)
        assert.deepInclude(result.halt!.error, {
          _tag: "InvalidReturn",
          detail:
            "the onToolError function returned a Promise; write OnToolError.continue(), .continueWith(value) or .halt"
        })
      }))

    it.effect.each(
      [
        ["throws", () => {
          throw new Error("oops")
        }],
        ["fails", () => Effect.fail(new Error("oops"))],
        ["dies", () => Effect.die(new Error("oops"))]
      ] as const
    )("RUN-76 halts the batch when it %s, and keeps why from the model", ([_how, misbehave]) =>
      Effect.gen(function*() {
        const { asked, policy } = asking(misbehave)
        const result = yield* ToolRunner.run(failing, [fails, hi], { onToolError: policy })

        assert.strictEqual(asked.length, 1)
        assert.deepInclude(result.halt, { reason: "tool_error", toolCallId: "c0" })
        assert.deepInclude(result.halt!.error, { _tag: "InvalidReturn", detail: "the onToolError function failed" })
        assert.match(Cause.pretty(result.halt!.error!.cause!), /oops/)
        assert.deepStrictEqual(contents(result), [
          "{\"error\":\"tool error (fails): invalid_return: the onToolError function failed\"}",
          "hi"
        ])
      }))

    it.effect("RUN-76 halts the batch when it interrupts itself", () =>
      Effect.gen(function*() {
        const { asked, policy } = asking(() => Effect.interrupt)
        const result = yield* ToolRunner.run(failing, [fails, hi], { onToolError: policy })

        assert.strictEqual(asked.length, 1)
        assert.strictEqual(result.halt?.error?._tag, "InvalidReturn")
        assert.strictEqual(contents(result)[1], "hi")
      }))

    it.effect("RUN-76 is asked about the next failure nevertheless, once each", () =>
      Effect.gen(function*() {
        const { asked, policy } = asking(({ id }) => {
          if (id === "c0") throw new Error("oops")
          return OnToolError.continueWith("fine")
        })
        const result = yield* ToolRunner.run([call("c0", "fails"), call("c1", "fails")], [fails], {
          onToolError: policy
        })

        assert.deepStrictEqual(asked.map(({ id }) => id), ["c0", "c1"])
        assert.strictEqual(contents(result)[1], "fine")
        assert.strictEqual(result.halt?.toolCallId, "c0")
      }))

    it.effect("is not asked about a replacement of its own that has no text form", () =>
      Effect.gen(function*() {
        const { asked, policy } = asking(() => OnToolError.continueWith({ total: 1n }))
        const result = yield* ToolRunner.run(failing, [fails, hi], { onToolError: policy })

        assert.strictEqual(asked.length, 1)
        assert.deepInclude(result.halt, { reason: "tool_error", toolCallId: "c0" })
        assert.deepInclude(result.halt!.error, { _tag: "EncodingFailed", path: ["total"] })
        assert.deepStrictEqual(contents(result), [
          "{\"error\":\"tool error (fails): encoding_failed at $.total: a bigint has no JSON form\"}",
          "hi"
        ])
      }))
  })

  describe("isDecision", () => {
    it("knows a decision made here from one that only looks like it", () => {
      const decisions = [OnToolError.continue(), OnToolError.continueWith(1), OnToolError.halt, "continue", "halt"]

      assert.deepStrictEqual(decisions.map(OnToolError.isDecision), [true, true, true, true, true])
      assert.deepStrictEqual([{ _tag: "Halt" }, "stop", undefined].map(OnToolError.isDecision), [false, false, false])
    })
  })
})
