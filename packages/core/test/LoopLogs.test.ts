import { Adapter, AdapterError, Allm, Engine, Fake, Telemetry, Tool } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, HashMap, Layer, Logger, LogLevel, Metric, Schedule, Schema, TestClock } from "effect"

interface Line {
  readonly text: string
  readonly annotations: Record<string, unknown>
}

/** Collects every line, from the finest level on. */
const withLog = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const lines: Array<Line> = []
    const logger = Logger.make((options) => {
      lines.push({
        text: Logger.logfmtLogger.log(options),
        annotations: Object.fromEntries(HashMap.toEntries(options.annotations))
      })
    })
    return effect.pipe(
      Effect.as(lines),
      Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
      Logger.withMinimumLogLevel(LogLevel.All)
    )
  })

const overTime = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.fork(effect)
    yield* TestClock.adjust("1 minute")
    return yield* Fiber.join(fiber)
  })

const call = (id: string, name: string, args: unknown = {}) => Fake.toolCall({ id, name, arguments: args })

const told = (lines: ReadonlyArray<Line>, text: string) => lines.find((line) => line.text.includes(text))

describe("Log lines", () => {
  it.effect("of a tool carry the ids of request, session and call", () =>
    Effect.gen(function*() {
      const logging = Tool.make("logging", { description: "Logs", handler: () => Effect.logInfo("working") })
      const lines = yield* Allm.step("hi", { tools: [logging], requestId: "r1", sessionId: "s1" }).pipe(
        Effect.provide(Fake.engine({ script: [call("c0", "logging"), Fake.finish("tool_calls")] })),
        withLog
      )

      assert.deepStrictEqual(told(lines, "working")?.annotations, {
        requestId: "r1",
        sessionId: "s1",
        toolName: "logging",
        toolCallId: "c0"
      })
    }))

  it.effect("tell of each time a handler is run again, and why", () =>
    Effect.gen(function*() {
      let attempts = 0
      const flaky = Tool.make("flaky", {
        description: "Succeeds at last",
        retry: Schedule.spaced("1 second"),
        handler: () => Effect.suspend(() => ++attempts < 3 ? Effect.fail(`no ${attempts}`) : Effect.succeed("yes"))
      })
      const lines = yield* Allm.step("hi", { tools: [flaky], requestId: "r1" }).pipe(
        Effect.provide(Fake.engine({ script: [call("c0", "flaky"), Fake.finish("tool_calls")] })),
        withLog,
        overTime
      )

      const repeated = lines.filter((line) => line.text.includes("tool call repeated"))
      assert.deepStrictEqual(repeated.map(({ annotations }) => annotations), [
        { requestId: "r1", toolName: "flaky", toolCallId: "c0" },
        { requestId: "r1", toolName: "flaky", toolCallId: "c0" }
      ])
      assert.include(repeated[0]?.text, "handler_failed")
      assert.include(repeated[0]?.text, "DEBUG")
    }))

  it.effect("about a tool that crashed carry them too", () =>
    Effect.gen(function*() {
      const boom = Tool.make("boom", { description: "Dies", handler: () => Effect.dieMessage("boom") })
      const lines = yield* Allm.step("hi", { tools: [boom], requestId: "r1", sessionId: "s1" }).pipe(
        Effect.provide(Fake.engine({ script: [call("c0", "boom"), Fake.finish("tool_calls")] })),
        withLog
      )

      assert.deepStrictEqual(told(lines, "handler_raised")?.annotations, {
        requestId: "r1",
        sessionId: "s1",
        toolName: "boom",
        toolCallId: "c0"
      })
    }))

  it.effect("of an adapter carry the ids of request and session", () =>
    Effect.gen(function*() {
      const adapter = Adapter.make((_request, emit) =>
        Effect.zipRight(
          Effect.logInfo("asking"),
          emit([{ _tag: "MessageCompleted", finishReason: "stop", metadata: {} }])
        )
      )
      const lines = yield* Allm.chat("hi", { requestId: "r1", sessionId: "s1" }).pipe(
        Effect.provide(Engine.layer().pipe(Layer.provide(Adapter.layer(adapter)))),
        withLog
      )

      assert.deepStrictEqual(told(lines, "asking")?.annotations, { requestId: "r1", sessionId: "s1" })
    }))

  it.effect("about a call that is repeated carry the ids of request and session", () =>
    Effect.gen(function*() {
      const lines = yield* Allm.generate("hi", { requestId: "r1", sessionId: "s1" }).pipe(
        Effect.provide(Fake.engine({
          scripts: [[Fake.preflightError("rate_limited")], [Fake.text("hi"), Fake.finish("stop")]]
        })),
        withLog,
        overTime
      )

      assert.deepStrictEqual(told(lines, "model call repeated")?.annotations, { requestId: "r1", sessionId: "s1" })
    }))

  it.effect("do not stick to the caller", () =>
    Effect.gen(function*() {
      const logging = Tool.make("logging", { description: "Logs", handler: () => Effect.logInfo("working") })
      const lines = yield* Allm.chat("hi", { tools: [logging], requestId: "r1", sessionId: "s1" }).pipe(
        Effect.zipRight(Effect.logInfo("after")),
        Effect.provide(Fake.engine({ scripts: [[call("c0", "logging"), Fake.finish("tool_calls")], []] })),
        Effect.annotateLogs("own", "yes"),
        withLog
      )

      assert.deepStrictEqual(told(lines, "after")?.annotations, { own: "yes" })
    }))

  it.effect("hold no prompt, no argument, no result and no answer", () =>
    Effect.gen(function*() {
      const echo = Tool.make("echo", {
        description: "Echoes",
        parameters: { text: Schema.Literal("a", "b") },
        handler: () => ({ text: "result-secret" })
      })
      const lines = yield* Allm.chat("prompt-secret", { tools: [echo] }).pipe(
        Effect.provide(Fake.engine({
          scripts: [
            [Fake.preflightError("rate_limited")],
            [
              call("c0", "echo", { text: "a" }),
              call("c1", "echo", { text: "argument-secret" }),
              Fake.toolCall({ id: "c2", name: "echo", rawArguments: "{\"argument-secret\":" }),
              Fake.finish("tool_calls")
            ],
            [Fake.text("answer-secret"), Fake.error("network_error")]
          ]
        })),
        withLog,
        overTime
      )
      const all = lines.map((line) => line.text + JSON.stringify(line.annotations)).join("\n")

      assert.isAtLeast(lines.length, 3)
      for (const secret of ["prompt", "argument", "result", "answer"]) assert.notInclude(all, `${secret}-secret`)
    }))

  it.effect("do not come up in a chat where all is well", () =>
    Effect.gen(function*() {
      const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })
      const lines = yield* Allm.chat("hi", { tools: [hi] }).pipe(
        Effect.provide(Fake.engine({ scripts: [[call("c0", "hi"), Fake.finish("tool_calls")], []] })),
        withLog
      )

      assert.deepStrictEqual(lines, [])
    }))
})

describe("Metrics", () => {
  const counted = (provider: string) =>
    Effect.all({
      calls: Metric.value(Metric.tagged(Telemetry.modelCalls, "provider", provider)),
      duration: Metric.value(Metric.tagged(Telemetry.modelDuration, "provider", provider)),
      input: Metric.value(Telemetry.tokens.pipe(Metric.tagged("provider", provider), Metric.tagged("kind", "input"))),
      output: Metric.value(Telemetry.tokens.pipe(Metric.tagged("provider", provider), Metric.tagged("kind", "output")))
    })

  const errorsOf = (provider: string, reason: AdapterError.Reason) =>
    Effect.map(
      Metric.value(Telemetry.modelErrors.pipe(Metric.tagged("provider", provider), Metric.tagged("reason", reason))),
      ({ count }) => count
    )

  it.effect("count model calls, their time and their tokens, by provider", () =>
    Effect.gen(function*() {
      const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })
      yield* Allm.chat("hi", { tools: [hi] }).pipe(
        Effect.provide(Fake.engine({
          name: "counted",
          scripts: [
            [Fake.delay("1 second"), call("c0", "hi"), Fake.finish("tool_calls")],
            [Fake.delay("3 seconds"), Fake.text("done"), Fake.finish("stop")]
          ],
          usage: { inputTokens: 10, outputTokens: 4 }
        })),
        overTime
      )
      const { calls, duration, input, output } = yield* counted("counted")

      assert.deepStrictEqual([calls.count, input.count, output.count], [2, 20, 8])
      assert.deepStrictEqual([duration.count, duration.min, duration.max, duration.sum], [2, 1000, 3000, 4000])
    }))

  it.effect("count errors by reason, before the first event and after", () =>
    Effect.gen(function*() {
      yield* Effect.flip(Allm.generate("hi")).pipe(
        Effect.zipRight(Allm.generate("hi")),
        Effect.provide(Fake.engine({
          name: "erring",
          scripts: [[Fake.preflightError("authentication_failed")], [Fake.text("Hel"), Fake.error("network_error")]]
        }))
      )
      const { calls } = yield* counted("erring")

      assert.strictEqual(calls.count, 2)
      assert.strictEqual(yield* errorsOf("erring", "authentication_failed"), 1)
      assert.strictEqual(yield* errorsOf("erring", "network_error"), 1)
      assert.strictEqual(yield* errorsOf("erring", "rate_limited"), 0)
    }))

  it.effect("count a call that was repeated once", () =>
    Effect.gen(function*() {
      yield* Allm.generate("hi", { retry: AdapterError.retrySchedule({ baseDelay: "2 seconds", jitter: 0 }) }).pipe(
        Effect.provide(Fake.engine({
          name: "repeated",
          scripts: [[Fake.preflightError("rate_limited")], [Fake.text("hi"), Fake.finish("stop")]]
        })),
        overTime
      )
      const { calls, duration } = yield* counted("repeated")

      assert.deepStrictEqual([calls.count, duration.sum], [1, 2000])
      assert.strictEqual(yield* errorsOf("repeated", "rate_limited"), 0)
    }))

  it.effect("count tool calls by tool and outcome", () =>
    Effect.gen(function*() {
      const counting = Tool.make("counted_by_outcome", {
        description: "Fails at will",
        parameters: { fail: Schema.Boolean },
        handler: ({ fail }) => fail ? Effect.fail("no") : Effect.succeed("yes")
      })
      yield* Allm.step("hi", { tools: [counting] }).pipe(
        Effect.provide(Fake.engine({
          script: [
            call("c0", "counted_by_outcome", { fail: false }),
            call("c1", "counted_by_outcome", { fail: true }),
            call("c2", "counted_by_outcome", { fail: false }),
            Fake.finish("tool_calls")
          ]
        }))
      )
      const count = (outcome: string) =>
        Effect.map(
          Metric.value(
            Telemetry.toolCalls.pipe(Metric.tagged("tool", "counted_by_outcome"), Metric.tagged("outcome", outcome))
          ),
          (state) => state.count
        )

      assert.deepStrictEqual([yield* count("Ok"), yield* count("HandlerFailed")], [2, 1])
    }))
})
