import { Allm, Fake, Tool } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Effect, Fiber, Stream, TestClock } from "effect"

const says = (text: string): Fake.Script => [Fake.text(text), Fake.finish("stop")]
const echoTurn = (index: number): Fake.Script => [
  Fake.toolCall({ id: `c${index}`, name: "echo" }),
  Fake.finish("tool_calls")
]

const echo = Tool.make("echo", { description: "Says ok", handler: () => "ok" })
const never = Tool.make("never", { description: "Never ends", handler: () => Effect.never })
const tools = [echo, never]

const landing = "A limit is reached. Answer now with what you have, without calling tools."

describe("softLanding", () => {
  it.effect("is not made unless asked for", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { maxTurns: 1 })

      assert.deepStrictEqual(result.metadata, { maxTurns: 1 })
      assert.lengthOf(yield* Fake.requests, 1)
    }).pipe(Effect.provide(Fake.engine({ tools, scripts: [echoTurn(0), says("landed")] }))))

  it.effect("lets the model answer once more after a breach, which stays the reason", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { budget: { maxToolCalls: 1 }, softLanding: true })

      assert.strictEqual(result.haltedReason, "max_tool_calls")
      assert.deepStrictEqual(result.metadata, { limit: 1, softLanding: { landed: true } })
      assert.strictEqual(result.finalResponse.outputText, "landed")
      assert.lengthOf(result.steps, 2)
      assert.deepStrictEqual(result.thread.messages.map((message) => [message.role, message.content]), [
        ["user", "hi"],
        ["assistant", ""],
        ["tool", "ok"],
        ["user", landing],
        ["assistant", "landed"]
      ])
    }).pipe(Effect.provide(Fake.engine({ tools, scripts: [echoTurn(0), says("landed")] }))))

  it.effect("says so in the caller's words", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { maxTurns: 1, softLanding: "Time is up." })

      assert.strictEqual(result.haltedReason, "max_turns")
      assert.deepStrictEqual(result.metadata, { maxTurns: 1, softLanding: { landed: true } })
      assert.strictEqual(result.thread.messages.at(-2)?.content, "Time is up.")
    }).pipe(Effect.provide(Fake.engine({ tools, scripts: [echoTurn(0), says("landed")] }))))

  it.effect("offers no tools, and no choice of them", () =>
    Effect.gen(function*() {
      yield* Allm.chat("hi", { maxTurns: 1, softLanding: true, toolChoice: "required" })
      const requests = yield* Fake.requests

      assert.deepStrictEqual(requests.map((request) => request.tools.map((tool) => tool.name)), [["echo", "never"], []])
      assert.deepStrictEqual(requests.map((request) => request.toolChoice), ["required", undefined])
    }).pipe(Effect.provide(Fake.engine({ tools, scripts: [echoTurn(0), says("landed")] }))))

  it.effect("runs no call that the model makes all the same", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { maxTurns: 1, softLanding: true })

      assert.strictEqual(result.haltedReason, "max_turns")
      assert.deepStrictEqual(result.steps[1]?.toolResults, [])
      assert.deepStrictEqual(result.thread.messages.at(-1), {
        role: "assistant",
        content: "",
        toolCalls: [],
        metadata: { finishReason: "tool_calls" }
      })
      assert.lengthOf(yield* Fake.requests, 2)
    }).pipe(Effect.provide(Fake.engine({ tools, scripts: [echoTurn(0), echoTurn(1), says("never")] }))))

  it.effect("that fails is told, and the chat is kept", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { maxTurns: 1, softLanding: true })

      assert.strictEqual(result.haltedReason, "max_turns")
      assert.lengthOf(result.steps, 1)
      assert.deepStrictEqual(result.metadata, {
        maxTurns: 1,
        softLanding: {
          landed: false,
          error: {
            _tag: "AdapterError",
            reason: "invalid_request",
            message: "model call failed (fake): invalid_request: the provider does not accept the request"
          }
        }
      })
    }).pipe(Effect.provide(Fake.engine({ tools, scripts: [echoTurn(0), [Fake.preflightError("invalid_request")]] }))))

  it.effect("that breaks off has not landed", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { maxTurns: 1, softLanding: true })

      assert.strictEqual(result.haltedReason, "max_turns")
      assert.strictEqual(result.finalResponse.outputText, "la")
      assert.deepStrictEqual(result.metadata["softLanding"], {
        landed: false,
        error: {
          _tag: "AdapterError",
          reason: "network_error",
          message: "model call failed (fake): network_error: the provider could not be reached"
        }
      })
    }).pipe(
      Effect.provide(Fake.engine({ tools, scripts: [echoTurn(0), [Fake.text("la"), Fake.error("network_error")]] }))
    ))

  for (
    const [reason, options] of [
      ["max_tool_calls", { budget: { maxToolCalls: 1 } }],
      ["max_tokens", { budget: { maxTokens: 1 } }],
      ["repeated_call", { budget: { maxRepeatedCalls: 1 } }],
      ["max_turns", { maxTurns: 1 }]
    ] as const
  ) {
    it.effect(`is made after ${reason}`, () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { ...options, softLanding: true })

        assert.strictEqual(result.haltedReason, reason)
        assert.strictEqual(result.finalResponse.outputText, "landed")
      }).pipe(
        Effect.provide(Fake.engine({ tools, usage: { totalTokens: 1 }, scripts: [echoTurn(0), says("landed")] }))
      ))
  }

  it.effect("has time of its own after max_duration", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.fork(Allm.chat("hi", { budget: { maxDuration: "1 second" }, softLanding: true }))
      yield* TestClock.adjust("1 second")
      yield* TestClock.adjust("2 seconds")
      const result = yield* Fiber.join(fiber)

      assert.strictEqual(result.haltedReason, "max_duration")
      assert.deepStrictEqual(result.metadata, { limit: 1000, softLanding: { landed: true } })
      assert.strictEqual(result.finalResponse.outputText, "landed")
    }).pipe(Effect.provide(Fake.engine({
      tools,
      scripts: [
        [Fake.toolCall({ id: "c0", name: "never" }), Fake.finish("tool_calls")],
        [Fake.delay("2 seconds"), ...says("landed")]
      ]
    }))))

  it.effect("is made in the form of the answer when that has one", () =>
    Effect.gen(function*() {
      const responseFormat = { type: "json_object" } as const
      yield* Allm.chat("hi", { maxTurns: 1, softLanding: true, responseFormat })
      const requests = yield* Fake.requests

      assert.deepStrictEqual(requests.at(-1)?.responseFormat, responseFormat)
    }).pipe(Effect.provide(Fake.engine({ tools, scripts: [echoTurn(0), says("{}")] }))))

  it.effect("is the second pass when there are two", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", {
        budget: { maxToolCalls: 1 },
        softLanding: true,
        structuredFinalize: true,
        responseFormat: { type: "json_object" }
      })

      assert.strictEqual(result.finalResponse.outputText, "{}")
      assert.lengthOf(yield* Fake.requests, 2)
    }).pipe(Effect.provide(Fake.engine({ tools, scripts: [echoTurn(0), says("{}")] }))))

  it.effect("is one more step of the stream, before its end", () =>
    Effect.gen(function*() {
      const events = yield* Stream.runCollect(Allm.stream("hi", { maxTurns: 1, softLanding: true }))

      assert.deepStrictEqual(Chunk.toReadonlyArray(events).map((event) => event._tag).slice(7), [
        "StepCompleted",
        "MessageStarted",
        "TextDelta",
        "TextCompleted",
        "MessageCompleted",
        "StepCompleted",
        "ChatCompleted"
      ])
    }).pipe(Effect.provide(Fake.engine({ tools, scripts: [echoTurn(0), says("landed")] }))))

  it.effect("is not made when the chat ends by itself", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { maxTurns: 1, softLanding: true })

      assert.strictEqual(result.haltedReason, "completed")
      assert.lengthOf(yield* Fake.requests, 1)
    }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))
})
