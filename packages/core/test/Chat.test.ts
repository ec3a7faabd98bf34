import { Allm, Engine, Fake, HaltReason, OnToolError, Tool, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"

const call = (id: string, name: string, args: unknown = {}) => Fake.toolCall({ id, name, arguments: args })
const calls = (...entries: ReadonlyArray<Fake.Entry>): Fake.Script => [...entries, Fake.finish("tool_calls")]
const says = (text: string): Fake.Script => [Fake.text(text), Fake.finish("stop")]
const times = (count: number, script: (index: number) => Fake.Script) =>
  Array.from({ length: count }, (_, index) => script(index))

const echo = Tool.make("echo", {
  description: "Says it again",
  parameters: { text: Schema.optional(Schema.String) },
  handler: ({ text = "again" }) => text
})
const boom = Tool.make("boom", {
  description: "Throws",
  handler: (): string => {
    throw new Error("secret")
  }
})
const stop = Tool.make("stop", {
  description: "Halts",
  parameters: { reason: Schema.String },
  handler: ({ reason }) => ToolResult.halt(reason, { ok: 1 })
})

const tools = [echo, boom, stop]
const echoTurn = (index: number) => calls(call(`c${index}`, "echo"))

describe("Allm.chat", () => {
  describe("turns", () => {
    it.effect("CHAT-02 runs the tool and asks again until the model is done", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi")

        assert.strictEqual(result.haltedReason, "completed")
        assert.deepStrictEqual(result.metadata, {})
        assert.lengthOf(result.steps, 2)
        assert.deepStrictEqual(result.thread.messages, [
          { role: "user", content: "hi", metadata: {} },
          {
            role: "assistant",
            content: "",
            toolCalls: [{ id: "c0", name: "echo", arguments: { text: "yo" }, metadata: {} }],
            metadata: { finishReason: "tool_calls" }
          },
          { role: "tool", toolCallId: "c0", content: "yo", isError: false, metadata: {} },
          { role: "assistant", content: "done", toolCalls: [], metadata: { finishReason: "stop" } }
        ])
      }).pipe(
        Effect.provide(Fake.engine({ tools, scripts: [calls(call("c0", "echo", { text: "yo" })), says("done")] }))
      ))

    it.effect("shows the model every turn before", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi")
        const requests = yield* Fake.requests

        assert.deepStrictEqual(requests.map((request) => request.messages), [
          result.thread.messages.slice(0, 1),
          result.thread.messages.slice(0, 3)
        ])
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [echoTurn(0), says("done")] }))))

    it.effect("CHAT-43 gives the last step's response as the final one", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi")

        assert.strictEqual(result.finalResponse, result.steps[1]?.response)
        assert.strictEqual(result.finalResponse.outputText, "done")
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [echoTurn(0), says("done")] }))))

    it.effect("CHAT-44 keeps why each step ended", () =>
      Effect.gen(function*() {
        const { steps } = yield* Allm.chat("hi")

        assert.deepStrictEqual(steps.map((step) => step.response.finishReason), ["tool_calls", "tool_calls", "stop"])
        assert.deepStrictEqual(steps.map((step) => step.done), [false, false, true])
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [echoTurn(0), echoTurn(1), says("done")] }))))

    it.effect("CHAT-47 takes a filtered answer for a complete one", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi")

        assert.strictEqual(result.haltedReason, "completed")
        assert.strictEqual(result.finalResponse.finishReason, "content_filter")
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("I"), Fake.finish("content_filter")] }))))

    for (const end of [[Fake.finish("other")], []]) {
      it.effect(`CHAT-48 asks again after an answer that ends ${end.length === 0 ? "without a reason" : "otherwise"}`, () =>
        Effect.gen(function*() {
          const result = yield* Allm.chat("hi")

          assert.strictEqual(result.haltedReason, "completed")
          assert.deepStrictEqual(result.thread.messages.map((message) => message.content), ["hi", "well", "done"])
        }).pipe(Effect.provide(Fake.engine({ scripts: [[Fake.text("well"), ...end], says("done")] }))))
    }

    it.effect("goes on when the model wants tools and names none", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi")

        assert.strictEqual(result.haltedReason, "completed")
        assert.lengthOf(result.steps, 2)
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [calls(), says("done")] }))))

    it.effect("never runs the calls of an answer that was cut off", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi")

        assert.strictEqual(result.haltedReason, "completed")
        assert.strictEqual(result.finalResponse.toolCalls[0]?.id, "c0")
        assert.deepStrictEqual(result.thread.messages.slice(1), [
          { role: "assistant", content: "", toolCalls: [], metadata: { finishReason: "length" } }
        ])
      }).pipe(Effect.provide(Fake.engine({ tools, script: [call("c0", "boom"), Fake.finish("length")] }))))

    it.effect("CHAT-51 sums the usage of all steps, which keep their own", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi")

        assert.deepStrictEqual(result.usage, { inputTokens: 11, outputTokens: 7, totalTokens: 18 })
        assert.deepStrictEqual(result.steps.map((step) => step.response.usage), [
          { inputTokens: 10, outputTokens: 5 },
          { inputTokens: 1, outputTokens: 2, totalTokens: 3 }
        ])
      }).pipe(Effect.provide(Fake.engine({
        tools,
        scripts: [
          [Fake.usage({ inputTokens: 10, outputTokens: 5 }), ...echoTurn(0)],
          [Fake.usage({ inputTokens: 1, outputTokens: 2, totalTokens: 3 }), ...says("done")]
        ]
      }))))
  })

  describe("maxTurns", () => {
    it.effect("CHAT-03 ends the chat after so many model calls", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { maxTurns: 2 })

        assert.strictEqual(result.haltedReason, "max_turns")
        assert.lengthOf(result.steps, 2)
        assert.deepStrictEqual(result.metadata, { maxTurns: 2 })
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: times(3, echoTurn) }))))

    it.effect("CHAT-04 still runs the tools of the last turn", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { maxTurns: 1 })

        assert.strictEqual(result.haltedReason, "max_turns")
        assert.lengthOf(result.steps, 1)
        assert.deepStrictEqual(result.thread.messages.at(-1), {
          role: "tool",
          toolCallId: "c0",
          content: "again",
          isError: false,
          metadata: {}
        })
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [echoTurn(0)] }))))

    it.effect("CHAT-06 is eight unless set", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi")

        assert.strictEqual(result.haltedReason, "max_turns")
        assert.lengthOf(result.steps, 8)
        assert.deepStrictEqual(result.metadata, { maxTurns: 8 })
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: times(9, echoTurn) }))))

    for (const maxTurns of [0, -1, 1.5, Number.NaN]) {
      it.effect(`CHAT-07 CHAT-08 refuses ${maxTurns} before the model is asked`, () =>
        Effect.gen(function*() {
          const error = yield* Effect.flip(Allm.chat("hi", { maxTurns }))

          assert.strictEqual(error._tag, "ValidationError")
          assert.strictEqual(
            error.message,
            "validation failed: invalid_options (1 error)\n" +
              `- $.maxTurns: write a positive whole number, not ${Number.isNaN(maxTurns) ? "NaN" : maxTurns}`
          )
          assert.deepStrictEqual(yield* Fake.requests, [])
        }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))
    }

    it.effect("CHAT-08 refuses a text that looks like a number", () =>
      Effect.gen(function*() {
        // @ts-expect-error - a number is wanted
        const error = yield* Effect.flip(Allm.chat("hi", { maxTurns: "8" }))

        assert.match(error.message, /maxTurns: write a positive whole number, not "8"/)
      }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))

    it("CHAT-07 is refused by an engine when it is made", () => {
      assert.throws(() => Engine.layer({ maxTurns: 0 }), /maxTurns: write a positive whole number, not 0/)
    })

    it.effect("CHAT-10 of the call beats the engine's", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { maxTurns: 1 })

        assert.deepStrictEqual(result.metadata, { maxTurns: 1 })
      }).pipe(Effect.provide(Fake.engine({ tools, maxTurns: 4, scripts: times(9, echoTurn) }))))

    it.effect("CHAT-11 of the engine counts when the call has none", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { maxTurns: undefined })

        assert.deepStrictEqual(result.metadata, { maxTurns: 1 })
      }).pipe(Effect.provide(Fake.engine({ tools, maxTurns: 1, scripts: times(9, echoTurn) }))))

    it.effect("one turn and plain text is complete, not out of turns", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { maxTurns: 1 })

        assert.strictEqual(result.haltedReason, "completed")
      }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))

    it.effect("CHAT-52 counts two calls of one answer as one turn", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { maxTurns: 2 })

        assert.strictEqual(result.haltedReason, "completed")
        assert.deepStrictEqual(result.steps.map((step) => step.toolResults.length), [2, 0])
      }).pipe(
        Effect.provide(Fake.engine({ tools, scripts: [calls(call("c0", "echo"), call("c1", "echo")), says("done")] }))
      ))
  })

  describe("haltWhen", () => {
    it.effect("ends the chat after the step that it wants to be the last", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { haltWhen: (step) => step.toolResults[0]?.toolCallId === "c1" })

        assert.strictEqual(result.haltedReason, "halt_when")
        assert.lengthOf(result.steps, 2)
        assert.deepStrictEqual(result.metadata, { haltWhenStepIndex: 1 })
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: times(3, echoTurn) }))))

    it.effect("may be an Effect", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { haltWhen: () => Effect.succeed(true) })

        assert.deepStrictEqual(result.metadata, { haltWhenStepIndex: 0 })
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: times(3, echoTurn) }))))

    it.effect("CHAT-14 lets the chat complete when it always says no", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { haltWhen: () => false })

        assert.strictEqual(result.haltedReason, "completed")
        assert.lengthOf(result.steps, 2)
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [echoTurn(0), says("done")] }))))

    it.effect("CHAT-15 that throws fails the chat, and nothing so far is lost", () =>
      Effect.gen(function*() {
        const haltWhen = (): boolean => {
          throw new Error("no idea")
        }
        const error = yield* Effect.flip(Allm.chat("hi", { haltWhen }))

        assert.strictEqual(error._tag, "CallbackFailed")
        if (error._tag !== "CallbackFailed") return
        assert.strictEqual(error.callback, "haltWhen")
        assert.strictEqual(error.message, "haltWhen failed; the chat so far is in `result`")
        assert.lengthOf(error.result.steps, 1)
        assert.strictEqual(error.result.haltedReason, "error")
        assert.deepStrictEqual(error.result.thread.messages.map((message) => message.content), ["hi", "", "again"])
        assert.match(String(error.cause), /no idea/)
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [echoTurn(0), says("done")] }))))

    it.effect("CHAT-16 is not consulted about an answer", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { haltWhen: () => true })

        assert.strictEqual(result.haltedReason, "completed")
      }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))

    it.effect("CHAT-17 with two parameters is refused before the model is asked", () =>
      Effect.gen(function*() {
        // @ts-expect-error - one parameter
        const error = yield* Effect.flip(Allm.chat("hi", { haltWhen: (step, _more: number) => step.done }))

        assert.match(error.message, /haltWhen: write a function \(step\) => boolean of one parameter/)
        assert.deepStrictEqual(yield* Fake.requests, [])
      }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))
  })

  describe("tool errors and halts", () => {
    it.effect("CHAT-19 ends with tool_error when a handler throws and the policy is to halt", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { onToolError: "halt" })

        assert.strictEqual(result.haltedReason, "tool_error")
        assert.deepStrictEqual(result.metadata, { haltToolCallId: "c0" })
        assert.strictEqual(result.steps[0]?.halt?.error?._tag, "HandlerRaised")
        assert.strictEqual(result.thread.messages.at(-1)?.content, "{\"error\":\"tool error (boom): handler_raised\"}")
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [calls(call("c0", "boom")), says("done")] }))))

    it.effect("CHAT-20 goes on with what the policy puts in place of a failure", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { onToolError: () => OnToolError.continueWith({ replaced: true }) })

        assert.strictEqual(result.haltedReason, "completed")
        assert.deepStrictEqual(result.steps[0]?.toolResults, [
          { role: "tool", toolCallId: "c0", content: "{\"replaced\":true}", isError: false, metadata: {} }
        ])
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [calls(call("c0", "boom")), says("done")] }))))

    it.effect("CHAT-21 ends with tool_error when the policy function says so", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { onToolError: () => OnToolError.halt })

        assert.strictEqual(result.haltedReason, "tool_error")
        assert.deepStrictEqual(result.metadata, { haltToolCallId: "c0" })
        assert.lengthOf(result.steps, 1)
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [calls(call("c0", "boom")), says("done")] }))))

    it.effect("CHAT-23 ends with a handler's own reason and result", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi")

        assert.strictEqual(result.haltedReason, "plan_submitted")
        assert.deepStrictEqual(result.metadata, { haltToolCallId: "c0", haltResult: { ok: 1 } })
        assert.lengthOf(result.steps, 1)
        assert.strictEqual(result.thread.messages.at(-1)?.content, "{\"ok\":1}")
      }).pipe(
        Effect.provide(
          Fake.engine({ tools, scripts: [calls(call("c0", "stop", { reason: "plan_submitted" })), says("done")] })
        )
      ))

    for (const reason of HaltReason.reserved) {
      const engine = Fake.engine({ tools, scripts: [calls(call("c0", "stop", { reason })), says("done")] })

      it.effect(`CHAT-24…29 tells the model that ${reason} is not a reason to halt with`, () =>
        Effect.gen(function*() {
          const result = yield* Allm.chat("hi")

          assert.strictEqual(result.haltedReason, "completed")
          assert.deepStrictEqual(result.steps[0]?.toolResults.map((message) => [message.isError, message.content]), [[
            true,
            JSON.stringify({
              error: `tool error (stop): invalid_return: the halt reason "${reason}" is reserved; choose another`
            })
          ]])
        }).pipe(Effect.provide(engine)))

      it.effect(`CHAT-30…35 ends with tool_error, not with ${reason}, when the policy is to halt`, () =>
        Effect.gen(function*() {
          const result = yield* Allm.chat("hi", { onToolError: "halt" })

          assert.strictEqual(result.haltedReason, "tool_error")
          assert.deepStrictEqual(result.metadata, { haltToolCallId: "c0" })
        }).pipe(Effect.provide(engine)))
    }
  })
})
