import { AdapterError, Allm, Engine, Fake, Tool } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"

const call = (id: string, name: string) => Fake.toolCall({ id, name })
const calls = (...entries: ReadonlyArray<Fake.Entry>): Fake.Script => [...entries, Fake.finish("tool_calls")]
const says = (text: string): Fake.Script => [Fake.text(text), Fake.finish("stop")]

const echo = Tool.make("echo", { description: "Says ok", handler: () => "ok" })
const echoTurn = calls(call("c0", "echo"))

describe("Allm.chat that fails", () => {
  it.effect("fails when the first model call does", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Allm.chat("hi"))

      assert.strictEqual(error._tag, "AdapterError")
      assert.strictEqual(
        error.message,
        "model call failed (fake): authentication_failed: the provider does not accept the key"
      )
    }).pipe(Effect.provide(Fake.engine({ script: [Fake.preflightError("authentication_failed")] }))))

  it.effect("CHAT-37 ends with error when a later answer breaks off", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi")

      assert.strictEqual(result.haltedReason, "error")
      assert.deepStrictEqual(result.steps.map((step) => step.response.finishReason), ["tool_calls", "error"])
      assert.deepStrictEqual(result.error, new AdapterError.AdapterError({ reason: "rate_limited", provider: "fake" }))
      assert.deepStrictEqual(result.metadata, {
        error: {
          _tag: "AdapterError",
          reason: "rate_limited",
          message: "model call failed (fake): rate_limited: the provider asks to slow down"
        }
      })
    }).pipe(Effect.provide(Fake.engine({ tools: [echo], scripts: [echoTurn, [Fake.error("rate_limited")]] }))))

  it.effect("CHAT-41 keeps what the first answer said before it broke off", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi")

      assert.strictEqual(result.haltedReason, "error")
      assert.lengthOf(result.steps, 1)
      assert.strictEqual(result.steps[0]?.done, true)
      assert.strictEqual(result.finalResponse.outputText, "partial")
      assert.strictEqual(result.error?._tag, "AdapterError")
      assert.deepStrictEqual(result.thread.messages.at(-1), {
        role: "assistant",
        content: "partial",
        toolCalls: [],
        metadata: { finishReason: "error" }
      })
    }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("partial"), Fake.error("network_error")] }))))

  it.effect("does not run the calls of an answer that broke off", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi")

      assert.strictEqual(result.haltedReason, "error")
      assert.deepStrictEqual(result.steps[0]?.toolResults, [])
      assert.deepStrictEqual(result.thread.messages.map((message) => message.role), ["user", "assistant"])
      assert.deepStrictEqual(result.thread.messages[1]?.role === "assistant" && result.thread.messages[1].toolCalls, [])
    }).pipe(Effect.provide(Fake.engine({ tools: [echo], script: [call("c0", "echo"), Fake.error("network_error")] }))))

  it.effect("ends with everything up to there when a later model call fails", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi")

      assert.strictEqual(result.haltedReason, "error")
      assert.lengthOf(result.steps, 1)
      assert.strictEqual(result.finalResponse, result.steps[0]?.response)
      assert.deepStrictEqual(result.thread, result.steps[0]?.thread)
      assert.deepStrictEqual(
        result.error,
        new AdapterError.AdapterError({ reason: "invalid_request", provider: "fake" })
      )
      assert.deepStrictEqual(result.metadata, {
        error: {
          _tag: "AdapterError",
          reason: "invalid_request",
          message: "model call failed (fake): invalid_request: the provider does not accept the request"
        }
      })
    }).pipe(
      Effect.provide(Fake.engine({ tools: [echo], scripts: [echoTurn, [Fake.preflightError("invalid_request")]] }))
    ))

  it.effect("CHAT-39 fails before anything runs when the first answer calls an unknown tool", () =>
    Effect.gen(function*() {
      let ran = 0
      const count = Tool.make("count", { description: "Counts", handler: () => ++ran })
      const error = yield* Effect.flip(Allm.chat("hi", { tools: [count] }))

      assert.strictEqual(error._tag, "UnknownTool")
      assert.strictEqual(
        error.message,
        "no tool is named \"nope\"; there are count. " +
          "Add it to the tools, or let the model correct itself with unknownTool: \"feedback\""
      )
      assert.strictEqual(ran, 0)
    }).pipe(Effect.provide(Fake.engine({ script: calls(call("c0", "count"), call("c1", "nope")) }))))

  it.effect("CHAT-40 ends with error when a later answer calls an unknown tool", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi")

      assert.strictEqual(result.haltedReason, "error")
      assert.lengthOf(result.steps, 1)
      assert.deepStrictEqual(result.thread, result.steps[0]?.thread)
      assert.strictEqual(result.error?._tag, "UnknownTool")
      assert.deepStrictEqual(result.metadata, {
        error: {
          _tag: "UnknownTool",
          message: "no tool is named \"nope\"; there are echo. " +
            "Add it to the tools, or let the model correct itself with unknownTool: \"feedback\""
        }
      })
      assert.deepStrictEqual(result.usage, { inputTokens: 2 })
    }).pipe(
      Effect.provide(
        Fake.engine({ tools: [echo], usage: { inputTokens: 1 }, scripts: [echoTurn, calls(call("c1", "nope"))] })
      )
    ))

  it.effect("lets the model correct the name of a tool when asked to", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { unknownTool: "feedback" })

      assert.strictEqual(result.haltedReason, "completed")
      assert.deepStrictEqual(result.steps[0]?.toolResults.map((message) => message.content), [
        JSON.stringify({
          error: "tool error (nope): not_found: there is no such tool; the tools are \"echo\""
        })
      ])
    }).pipe(Effect.provide(Fake.engine({ tools: [echo], scripts: [calls(call("c0", "nope")), says("done")] }))))

  it("CHAT-49 refuses an engine with two tools of one name", () => {
    assert.throws(() => Engine.layer({ tools: [echo, echo] }), /tools\[1\]: two tools are named "echo"; rename one/)
  })

  it.effect("CHAT-49 refuses a call with two tools of one name", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Allm.chat("hi", { tools: [echo, echo] }))

      assert.strictEqual(error._tag, "ValidationError")
      if (error._tag !== "ValidationError") return
      assert.deepStrictEqual(error.issues, [
        { path: ["tools", 1], code: "duplicate_name", message: "two tools are named \"echo\"; rename one" }
      ])
    }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))

  it.effect("a prepareStep that fails keeps everything up to there", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(
        Allm.chat("hi", { prepareStep: ({ stepIndex }) => stepIndex === 0 ? undefined : Effect.fail("too late") })
      )

      assert.strictEqual(error._tag, "CallbackFailed")
      if (error._tag !== "CallbackFailed") return
      assert.strictEqual(error.callback, "prepareStep")
      assert.lengthOf(error.result.steps, 1)
      assert.deepStrictEqual(error.result.thread.messages.map((message) => message.content), ["hi", "", "ok"])
      assert.deepStrictEqual(error.result.usage, { inputTokens: 1 })
    }).pipe(
      Effect.provide(Fake.engine({ tools: [echo], usage: { inputTokens: 1 }, scripts: [echoTurn, says("done")] }))
    ))

  it.effect("a prepareStep that gives something else than changes is named", () =>
    Effect.gen(function*() {
      // @ts-expect-error - changes are wanted
      const error = yield* Effect.flip(Allm.chat("hi", { prepareStep: () => "faster" }))

      assert.strictEqual(error._tag, "CallbackFailed")
      assert.match(error.message, /^prepareStep gave .* instead of changes; the chat so far is in `result`$/)
    }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))
})
