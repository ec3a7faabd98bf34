import { AdapterError, Allm, Fake, Telemetry, Tool, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Schema, TestClock } from "effect"
import { type Exported, exporter, named } from "./SpanExporter.ts"

const call = (id: string, name: string, args: unknown = {}) => Fake.toolCall({ id, name, arguments: args })

const slow = Tool.make("slow", {
  description: "Takes its time",
  parameters: { millis: Schema.Number },
  handler: ({ millis }) => Effect.as(Effect.sleep(millis), "slow")
})

/** Runs on a test clock until it is over. */
const overTime = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.fork(effect)
    yield* TestClock.adjust("1 minute")
    return yield* Fiber.join(fiber)
  })

describe("Status", () => {
  /** The spans of a chat, each with whether it failed and with what type of error. */
  const statusOf = (spans: ReadonlyArray<Exported>) =>
    spans.map(({ attributes, exit, name }) => [name, Exit.isFailure(exit), attributes["error.type"]])

  it.effect("of a model call that failed before it began is an error, with its reason", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      yield* Effect.flip(Allm.chat("hi")).pipe(
        Effect.provide(Fake.engine({ script: [Fake.preflightError("authentication_failed")] })),
        Effect.withTracer(tracer)
      )

      assert.deepStrictEqual(statusOf(ended), [
        ["allm.generate", true, "authentication_failed"],
        ["allm.step", true, "authentication_failed"],
        ["allm.chat", true, "authentication_failed"]
      ])
    }))

  it.effect("of a model call that broke off is an error, with its reason", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      yield* Allm.generate("hi").pipe(
        Effect.provide(Fake.engine({ script: [Fake.text("Hel"), Fake.error("network_error")] })),
        Effect.withTracer(tracer)
      )

      assert.deepStrictEqual(statusOf(ended), [["allm.generate", true, "network_error"]])
    }))

  it.effect("TEL-03 of a tool that throws is an error; its chat is fine", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      const boom = Tool.make("boom", { description: "Throws", handler: () => Effect.dieMessage("boom") })
      yield* Allm.chat("hi", { tools: [boom] }).pipe(
        Effect.provide(Fake.engine({ scripts: [[call("c0", "boom"), Fake.finish("tool_calls")], []] })),
        Effect.withTracer(tracer)
      )

      assert.deepStrictEqual(statusOf(ended), [
        ["allm.generate", false, undefined],
        ["allm.tool", true, "handler_raised"],
        ["allm.step", false, undefined],
        ["allm.generate", false, undefined],
        ["allm.step", false, undefined],
        ["allm.chat", false, undefined]
      ])
    }))

  it.effect("TEL-05 of a tool over its limit is an error, on time", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      yield* Allm.step("hi", { tools: [slow], toolTimeout: "1 second" }).pipe(
        Effect.provide(Fake.engine({ script: [call("c0", "slow", { millis: 5000 }), Fake.finish("tool_calls")] })),
        Effect.withTracer(tracer),
        overTime
      )
      const [tool] = named(ended, "allm.tool")

      assert.deepStrictEqual([tool?.attributes["error.type"], tool?.millis], ["timeout", 1000])
    }))

  it.effect("TEL-06 of a question is fine", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      const ask = Tool.make("ask", { description: "Asks", handler: () => ToolResult.askUser("Which?") })
      yield* Allm.chat("hi", { tools: [ask] }).pipe(
        Effect.provide(Fake.engine({ script: [call("c0", "ask"), Fake.finish("tool_calls")] })),
        Effect.withTracer(tracer)
      )

      assert.strictEqual(ended.every((span) => Exit.isSuccess(span.exit)), true)
      assert.strictEqual(named(ended, "allm.chat")[0]?.attributes["allm.halted_reason"], "ask_user")
    }))

  it.effect("of a call that was repeated is one span, from the first attempt to the last", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      yield* Allm.generate("hi", { retry: AdapterError.retrySchedule({ baseDelay: "1 second", jitter: 0 }) }).pipe(
        Effect.provide(Fake.engine({
          scripts: [[Fake.preflightError("rate_limited")], [Fake.text("hi"), Fake.finish("stop")]]
        })),
        Effect.withTracer(tracer),
        overTime
      )

      assert.deepStrictEqual(ended.map(({ millis, name }) => [name, millis]), [["allm.generate", 1000]])
      assert.strictEqual(Exit.isSuccess(ended[0]!.exit), true)
    }))
})

describe("Content", () => {
  const secrets = ["prompt-secret", "argument-secret", "result-secret", "answer-secret", "system-secret"]

  const echo = Tool.make("echo", {
    description: "Echoes",
    parameters: { text: Schema.String },
    handler: () => ({ text: "result-secret" })
  })

  const chat = Allm.chat("prompt-secret", { tools: [echo], params: { key: "system-secret" } }).pipe(
    Effect.provide(Fake.engine({
      scripts: [
        [
          call("c0", "echo", { text: "argument-secret" }),
          call("c1", "echo", { text: ["argument-secret"] }),
          Fake.toolCall({ id: "c2", name: "echo", rawArguments: "{\"text\":\"argument-secret" }),
          Fake.finish("tool_calls")
        ],
        [Fake.text("answer-secret"), Fake.error("network_error")]
      ]
    }))
  )

  /** What an exporter writes. */
  const written = ({ attributes, events, exit, name }: Exported): string =>
    JSON.stringify([name, attributes, events, Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""])

  it.effect("stays out of the spans", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      yield* Effect.withTracer(chat, tracer)
      const all = ended.map(written).join("\n")

      assert.strictEqual(ended.length, 8)
      for (const secret of secrets) assert.notInclude(all, secret)
    }))

  it.effect("of tool calls goes into their spans when asked for, and only there", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      yield* chat.pipe(Effect.provideService(Telemetry.CaptureContent, true), Effect.withTracer(tracer))
      const [tool] = named(ended, "allm.tool")
      const elsewhere = ended.filter((span) => span.name !== "allm.tool").map(written).join("\n")

      assert.strictEqual(tool?.attributes["gen_ai.tool.call.arguments"], "{\"text\":\"argument-secret\"}")
      assert.strictEqual(tool?.attributes["gen_ai.tool.call.result"], "{\"text\":\"result-secret\"}")
      for (const secret of ["argument-secret", "result-secret"]) assert.notInclude(elsewhere, secret)
    }))

  it.effect("a model's key stays out of the span of a call that failed", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      const error = new AdapterError.AdapterError({
        reason: "authentication_failed",
        provider: "acme",
        status: 401,
        cause: { headers: { authorization: "Bearer key-secret" } }
      })
      yield* Effect.flip(Allm.chat("hi")).pipe(
        Effect.provide(Fake.engine({ script: [Fake.preflightError(error)] })),
        Effect.withTracer(tracer)
      )

      assert.strictEqual(ended.length, 3)
      assert.notInclude(ended.map(written).join("\n"), "key-secret")
    }))
})
