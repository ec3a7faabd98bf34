import { Adapter, AdapterError, Allm, type ChatResult, Engine, Fake, Tool } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"

import { Chunk, Clock, Duration, Effect, Fiber, Layer, Schema, Stream, TestClock } from "effect"

const call = (id: string, name: string, args: unknown = {}) => Fake.toolCall({ id, name, arguments: args })
const calls = (...entries: ReadonlyArray<Fake.Entry>): Fake.Script => [...entries, Fake.finish("tool_calls")]
const says = (text: string): Fake.Script => [Fake.text(text), Fake.finish("stop")]

const echo = Tool.make("echo", {
  description: "Says it again",
  parameters: Schema.Struct({}, { key: Schema.String, value: Schema.Unknown }),
  handler: () => "ok"
})
const rest = Tool.make("rest", {
  description: "Takes its time",
  handler: () => Effect.delay(Effect.succeed("rested"), "600 millis")
})
const never = Tool.make("never", { description: "Never ends", handler: () => Effect.never })
const stubborn = Tool.make("stubborn", {
  description: "Never ends, and does not listen",
  handler: () => Effect.uninterruptible(Effect.never)
})
const tools = [echo, rest, never, stubborn]

const echoTurn = (index: number) => calls(call(`c${index}`, "echo", { index }))
const echoTurns = (count: number) => Array.from({ length: count }, (_, index) => echoTurn(index))

const resultsOf = (result: ChatResult.ChatResult) =>
  result.steps.flatMap((step) => step.toolResults.map(({ content, toolCallId }) => [toolCallId, content]))

/** What an effect gives when so much time passes, and much more after it, and when it was over. */
const during = <A, E, R>(duration: Duration.DurationInput, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.fork(Effect.zip(effect, Clock.currentTimeMillis))
    yield* TestClock.adjust(duration)
    yield* TestClock.adjust("1 hour")
    return yield* Fiber.join(fiber)
  })

const engineOn = (adapter: Adapter.Service) => Engine.layer({ tools }).pipe(Layer.provide(Adapter.layer(adapter)))

describe("budget", () => {
  it.effect("is unlimited by default", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.fork(Allm.chat("hi", { maxTurns: 100 }))
      yield* TestClock.adjust("1 day")
      const result = yield* Fiber.join(fiber)

      assert.strictEqual(result.haltedReason, "completed")
      assert.lengthOf(result.steps, 41)
      assert.deepStrictEqual(result.metadata, {})
    }).pipe(Effect.provide(Fake.engine({
      tools,
      usage: { totalTokens: 1_000_000 },
      respond: (_request, index) =>
        index < 40 ? [Fake.delay("9 minutes"), ...calls(call(`c${index}`, "echo"))] : says("done")
    }))))

  it.effect("of the call replaces the engine's", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { budget: { maxToolCalls: 2 } })

      assert.strictEqual(result.haltedReason, "max_tool_calls")
      assert.deepStrictEqual(result.metadata, { limit: 2 })
    }).pipe(Effect.provide(Fake.engine({ tools, budget: { maxToolCalls: 1 }, scripts: echoTurns(4) }))))

  for (
    const [budget, issue] of [
      [{ maxToolCalls: 0 }, "$.budget.maxToolCalls: write a positive whole number, not 0"],
      [{ maxTokens: 1.5 }, "$.budget.maxTokens: write a positive whole number, not 1.5"],
      [{ maxRepeatedCalls: -1 }, "$.budget.maxRepeatedCalls: write a positive whole number, not -1"],
      [
        { maxCalls: 1 },
        "$.budget.maxCalls: there is no such option; " +
        "the options are maxToolCalls, maxTokens, maxDuration, maxRepeatedCalls"
      ]
    ] as const
  ) {
    it.effect(`refuses ${JSON.stringify(budget)}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Allm.chat("hi", { budget: budget as Engine.Budget }))

        assert.strictEqual(error.message, `validation failed: invalid_options (1 error)\n- ${issue}`)
      }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))
  }

  it.effect("refuses a duration that is none", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Allm.chat("hi", { budget: { maxDuration: 0 } }))

      assert.strictEqual(error._tag, "ValidationError")
      if (error._tag !== "ValidationError") return
      assert.deepStrictEqual(error.issues.map(({ path }) => path), [["budget", "maxDuration"]])
    }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))

  describe("maxToolCalls", () => {
    it.effect("ends the chat once so many calls ran", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { budget: { maxToolCalls: 2 } })

        assert.strictEqual(result.haltedReason, "max_tool_calls")
        assert.deepStrictEqual(result.metadata, { limit: 2 })
        assert.deepStrictEqual(resultsOf(result), [["c0", "ok"], ["c1", "ok"]])
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: echoTurns(4) }))))

    it.effect("answers the calls beyond it without running them", () =>
      Effect.gen(function*() {
        let ran = 0
        const count = Tool.make("count", { description: "Counts", handler: () => ++ran })
        const skipped = JSON.stringify({ error: "tool error (count): skipped: the budget of 2 tool calls is used up" })
        const result = yield* Allm.chat("hi", { tools: [count], budget: { maxToolCalls: 2 } })

        assert.strictEqual(result.haltedReason, "max_tool_calls")
        assert.strictEqual(ran, 2)
        assert.deepStrictEqual(resultsOf(result), [["c0", "1"], ["c1", "2"], ["c2", skipped], ["c3", skipped]])
        assert.deepStrictEqual(result.thread.messages.at(-1), {
          role: "tool",
          toolCallId: "c3",
          content: skipped,
          isError: true,
          metadata: {}
        })
      }).pipe(Effect.provide(Fake.engine({
        scripts: [
          calls(call("c0", "count")),
          calls(call("c1", "count"), call("c2", "count"), call("c3", "count")),
          says("never")
        ]
      }))))

    it.effect("tells a skipped call like any other, but not as started", () =>
      Effect.gen(function*() {
        const events = yield* Stream.runCollect(Allm.stream("hi", { budget: { maxToolCalls: 1 } }))
        const told = Chunk.toReadonlyArray(events).flatMap((event) =>
          "toolCallId" in event && event.toolCallId === "c1" ? [event] : []
        )

        assert.deepStrictEqual(told.map((event) => event._tag), [
          "ToolCallStarted",
          "ToolExecutionCompleted",
          "ToolResultEncoded"
        ])
        assert.strictEqual(told[1]?._tag === "ToolExecutionCompleted" && told[1].result._tag, "Skipped")
      }).pipe(Effect.provide(Fake.engine({ tools, script: calls(call("c0", "echo"), call("c1", "echo")) }))))

    it.effect("does not spoil an answer within it", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { budget: { maxToolCalls: 2 } })

        assert.strictEqual(result.haltedReason, "completed")
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [echoTurn(0), says("done")] }))))
  })

  describe("maxTokens", () => {
    it.effect("ends the chat once all its model calls together used so many", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { budget: { maxTokens: 100 } })

        assert.strictEqual(result.haltedReason, "max_tokens")
        assert.deepStrictEqual(result.metadata, { limit: 100 })
        assert.lengthOf(result.steps, 2)
        assert.deepStrictEqual(resultsOf(result), [["c0", "ok"], ["c1", "ok"]])
      }).pipe(
        Effect.provide(Fake.engine({ tools, usage: { inputTokens: 40, outputTokens: 20 }, scripts: echoTurns(4) }))
      ))

    it.effect("does not spoil an answer that is there", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { budget: { maxTokens: 100 } })

        assert.strictEqual(result.haltedReason, "completed")
        assert.deepStrictEqual(result.usage, { totalTokens: 500 })
      }).pipe(Effect.provide(Fake.engine({ usage: { totalTokens: 500 }, script: says("done") }))))
  })

  describe("maxDuration", () => {
    const budget = { maxDuration: "1 second" } as const

    it.effect("ends the chat once its turns took so long", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.fork(Allm.chat("hi", { budget }))
        yield* TestClock.adjust("600 millis")
        yield* TestClock.adjust("400 millis")
        const result = yield* Fiber.join(fiber)

        assert.strictEqual(result.haltedReason, "max_duration")
        assert.deepStrictEqual(result.metadata, { limit: 1000 })
        assert.deepStrictEqual(resultsOf(result), [["c0", "rested"], [
          "c1",
          "{\"error\":\"tool error (rest): interrupted: stopped because the turn was ended; " +
          "it may have taken effect\"}"
        ]])
      }).pipe(
        Effect.provide(Fake.engine({ tools, scripts: [calls(call("c0", "rest")), calls(call("c1", "rest"))] }))
      ))

    it.effect("cuts a model that takes too long, and keeps what it said", () =>
      Effect.gen(function*() {
        const [result, endedAt] = yield* during("1 second", Allm.chat("hi", { budget }))

        assert.strictEqual(result.haltedReason, "max_duration")
        assert.deepStrictEqual(result.metadata, { limit: 1000 })
        assert.strictEqual(result.finalResponse.outputText, "well")
        assert.strictEqual(result.error, undefined)
        assert.strictEqual(endedAt, 1000)
        assert.strictEqual(yield* Effect.flatMap(Fake.Fake, (fake) => fake.open), 0)
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("well"), Fake.delay("1 hour"), ...says("done")] }))))

    it.effect("cuts a model that says nothing at all", () =>
      Effect.gen(function*() {
        const [result, endedAt] = yield* during("1 second", Allm.chat("hi", { budget }))

        assert.strictEqual(result.haltedReason, "max_duration")
        assert.deepStrictEqual(result.steps, [])
        assert.deepStrictEqual(result.thread.messages.map((message) => message.content), ["hi"])
        assert.strictEqual(endedAt, 1000)
      }).pipe(Effect.provide(engineOn(Adapter.make(() => Effect.never)))))

    it.effect("cuts the wait before a model call is repeated", () =>
      Effect.gen(function*() {
        const [result, endedAt] = yield* during("1 second", Allm.chat("hi", { budget }))

        assert.strictEqual(result.haltedReason, "max_duration")
        assert.strictEqual(endedAt, 1000)
      }).pipe(Effect.provide(engineOn(Adapter.make(() =>
        new AdapterError.AdapterError({ reason: "rate_limited", retryAfter: Duration.minutes(1) })
      )))))

    it.effect("stops a tool that takes too long", () =>
      Effect.gen(function*() {
        const [result, endedAt] = yield* during("1 second", Allm.chat("hi", { budget }))

        assert.strictEqual(result.haltedReason, "max_duration")
        assert.deepStrictEqual(result.metadata, { limit: 1000 })
        assert.deepStrictEqual(result.steps[0]?.toolResults.map(({ isError, toolCallId }) => [toolCallId, isError]), [
          ["c0", true],
          ["c1", false]
        ])
        assert.strictEqual(endedAt, 1000)
      }).pipe(Effect.provide(Fake.engine({ tools, script: calls(call("c0", "never"), call("c1", "echo")) }))))

    it.effect("leaves a tool behind that cannot be stopped", () =>
      Effect.gen(function*() {
        const [result, endedAt] = yield* during("1 second", Allm.chat("hi", { budget }))

        assert.strictEqual(result.haltedReason, "max_duration")
        assert.deepStrictEqual(result.steps[0]?.toolResults.map(({ isError, toolCallId }) => [toolCallId, isError]), [
          ["c0", true]
        ])
        assert.strictEqual(endedAt, 1000)
      }).pipe(Effect.provide(Fake.engine({ tools, script: calls(call("c0", "stubborn")) }))))

    it.effect("does not start the calls that still wait for their turn", () =>
      Effect.gen(function*() {
        const [result] = yield* during("1 second", Allm.chat("hi", { budget, concurrency: 1 }))

        assert.deepStrictEqual(resultsOf(result).map(([, content]) => content), [
          "{\"error\":\"tool error (never): interrupted: stopped because the turn was ended; " +
          "it may have taken effect\"}",
          "{\"error\":\"tool error (echo): skipped: not started because the turn was ended\"}"
        ])
      }).pipe(Effect.provide(Fake.engine({ tools, script: calls(call("c0", "never"), call("c1", "echo")) }))))

    it.effect("tells the stream the same", () =>
      Effect.gen(function*() {
        const [events] = yield* during("1 second", Stream.runCollect(Allm.stream("hi", { budget })))
        const last = Chunk.toReadonlyArray(events).at(-1)

        assert.strictEqual(last?._tag === "ChatCompleted" && last.result.haltedReason, "max_duration")
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("well"), Fake.delay("1 hour"), ...says("done")] }))))
  })

  describe("maxRepeatedCalls", () => {
    it.effect("ends the chat when a call is made so often with equal arguments, in whatever order", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { budget: { maxRepeatedCalls: 3 } })

        assert.strictEqual(result.haltedReason, "repeated_call")
        assert.deepStrictEqual(result.metadata, { limit: 3 })
        assert.deepStrictEqual(resultsOf(result), [["c0", "ok"], ["c1", "ok"], ["c2", "ok"], ["c3", "ok"]])
      }).pipe(Effect.provide(Fake.engine({
        tools,
        scripts: [
          calls(call("c0", "echo", { a: 1, b: { c: 2, d: [3] } })),
          calls(call("c1", "echo", { b: { d: [3], c: 2 }, a: 1 })),
          calls(call("c2", "echo", { a: 2 })),
          calls(Fake.toolCall({ id: "c3", name: "echo", rawArguments: "{ \"b\": {\"d\":[3],\"c\":2}, \"a\": 1 }" })),
          says("never")
        ]
      }))))

    it.effect("counts calls of one answer too", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { budget: { maxRepeatedCalls: 2 } })

        assert.strictEqual(result.haltedReason, "repeated_call")
        assert.lengthOf(result.steps, 1)
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [calls(call("c0", "echo"), call("c1", "echo"))] }))))

    it.effect("takes other arguments and other tools for other calls", () =>
      Effect.gen(function*() {
        const twin = Tool.make("twin", { description: "Like echo", handler: () => "ok" })
        const result = yield* Allm.chat("hi", { tools: [twin], budget: { maxRepeatedCalls: 2 } })

        assert.strictEqual(result.haltedReason, "completed")
      }).pipe(Effect.provide(Fake.engine({
        tools,
        scripts: [
          calls(call("c0", "echo", { a: [1, 2] }), call("c1", "echo", { a: [2, 1] })),
          calls(call("c2", "echo"), call("c3", "twin")),
          says("done")
        ]
      }))))

    it.effect("counts calls whose arguments cannot be read by their text", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { budget: { maxRepeatedCalls: 2 } })

        assert.strictEqual(result.haltedReason, "repeated_call")
        assert.lengthOf(result.steps, 3)
      }).pipe(Effect.provide(Fake.engine({
        tools,
        scripts: ["{", "[", "{", "{"].map((rawArguments, index) =>
          calls(Fake.toolCall({ id: `c${index}`, name: "echo", rawArguments }))
        )
      }))))
  })
})
