import { Tool, ToolCall, ToolContext, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema, TestClock } from "effect"

const call = (id: string, name: string, args: unknown = {}) => ToolCall.make({ id, name, arguments: args })

const contents = (result: ToolRunner.RunResult) => result.messages.map((message) => message.content)

const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })
const fails = Tool.make("fails", { description: "Reports a failure", handler: () => Effect.fail("bad_arg") })
const boom = Tool.make("boom", {
  description: "Throws",
  handler: (): string => {
    throw new Error("secret")
  }
})
const never = Tool.make("never", { description: "Never ends", handler: () => Effect.uninterruptible(Effect.never) })
const sleep = Tool.make("sleep", {
  description: "Answers after a while",
  parameters: { millis: Schema.Number },
  handler: ({ millis }) => Effect.as(Effect.sleep(millis), `slept ${millis}`)
})

describe("ToolRunner", () => {
  describe("run", () => {
    it.effect("RUN-01 gives the tool's answer as a message", () =>
      Effect.gen(function*() {
        const result = yield* ToolRunner.run([call("c0", "hi")], [hi])

        assert.deepStrictEqual(result, {
          messages: [{ role: "tool", toolCallId: "c0", content: "hi", isError: false, metadata: {} }],
          halt: undefined,
          questions: [],
          approvals: [],
          manualToolCalls: [],
          outcomes: [{ toolCall: call("c0", "hi"), result: result.outcomes[0]!.result }]
        })
        assert.deepInclude(result.outcomes[0]!.result, { _tag: "Ok", value: "hi" })
      }))

    it.effect("RUN-02 gives messages in the order of the calls, whoever ends first", () =>
      Effect.gen(function*() {
        const calls = [call("c0", "sleep", { millis: 30 }), call("c1", "sleep", { millis: 10 }), call("c2", "hi")]
        const fiber = yield* Effect.fork(ToolRunner.run(calls, [sleep, hi], { concurrency: 3 }))
        yield* TestClock.adjust("30 millis")
        const result = yield* Fiber.join(fiber)

        assert.deepStrictEqual(contents(result), ["slept 30", "slept 10", "hi"])
        assert.deepStrictEqual(result.outcomes.map((outcome) => outcome.toolCall.id), ["c0", "c1", "c2"])
      }))

    it.effect("RUN-03 hands the decoded arguments to a handler with one parameter", () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const when = Tool.make("when", {
          description: "Reads a date",
          parameters: { day: Schema.Date, note: Schema.String },
          handler: (params) => {
            seen.push(params)
            return params.day.getTime()
          }
        })
        const result = yield* ToolRunner.run([call("c0", "when", { day: "1970-01-01", note: "epoch" })], [when])

        assert.deepStrictEqual(seen, [{ day: new Date(0), note: "epoch" }])
        assert.deepStrictEqual(contents(result), ["0"])
      }))

    it.effect("RUN-05 hands the call and the ids to a handler with two parameters", () =>
      Effect.gen(function*() {
        const seen: Array<ToolContext.Service> = []
        const look = Tool.make("look", {
          description: "Keeps its context",
          handler: (_params, context) => {
            seen.push(context)
            return "ok"
          }
        })
        const toolCall = call("c0", "look")
        yield* ToolRunner.run([toolCall], [look], { requestId: "req-7" })
        const context = seen[0]!

        assert.strictEqual(seen.length, 1)
        assert.strictEqual(context.toolCall, toolCall)
        assert.strictEqual(context.requestId, "req-7")
        assert.strictEqual(context.sessionId, undefined)
        assert.strictEqual(context.engine, undefined)
        assert.strictEqual(context.idempotencyKey, "req-7/c0")
        assert.strictEqual(context.signal.aborted, false)
      }))

    it.effect("RUN-05 gives the same context as a service", () =>
      Effect.gen(function*() {
        const look = Tool.make("look", {
          description: "Asks for its context",
          handler: (_params, context) =>
            Effect.map(ToolContext.ToolContext, (service) => [service === context, service.sessionId])
        })
        const result = yield* ToolRunner.run([call("c0", "look")], [look], { sessionId: "s1" })

        assert.deepStrictEqual(contents(result), ["[true,\"s1\"]"])
      }))

    it.effect("RUN-09 tells the model what a handler reported", () =>
      Effect.gen(function*() {
        const result = yield* ToolRunner.run([call("c0", "fails")], [fails], { onToolError: "continue" })

        assert.deepStrictEqual(result.messages, [
          { role: "tool", toolCallId: "c0", content: "{\"error\":\"bad_arg\"}", isError: true, metadata: {} }
        ])
        assert.strictEqual(result.halt, undefined)
        assert.deepInclude(result.outcomes[0]!.result, {
          _tag: "HandlerFailed",
          origin: "handler",
          reason: "handler_failed",
          toolName: "fails",
          toolCallId: "c0",
          failure: "bad_arg"
        })
      }))

    it.effect("RUN-11 goes on after a failure when no policy is given", () =>
      Effect.gen(function*() {
        const calls = [call("c0", "fails"), call("c1", "hi")]
        const without = yield* ToolRunner.run(calls, [fails, hi])
        const explicit = yield* ToolRunner.run(calls, [fails, hi], { onToolError: "continue" })

        assert.deepStrictEqual(contents(without), ["{\"error\":\"bad_arg\"}", "hi"])
        assert.strictEqual(without.halt, undefined)
        assert.deepStrictEqual(without.messages, explicit.messages)
      }))

    it.effect("RUN-13 keeps what a crash said from the model", () =>
      Effect.gen(function*() {
        const { messages } = yield* ToolRunner.run([call("c0", "boom"), call("c1", "hi")], [boom, hi])

        assert.deepStrictEqual(messages.map((message) => message.content), [
          "{\"error\":\"tool error (boom): handler_raised\"}",
          "hi"
        ])
      }))

    it.effect("RUN-13 reads a throw, a rejection and a defect as the same crash", () =>
      Effect.gen(function*() {
        const rejects = Tool.make("rejects", {
          description: "Rejects",
          handler: async (): Promise<string> => Promise.reject(new Error("secret"))
        })
        const dies = Tool.make("dies", { description: "Dies", handler: () => Effect.die(new Error("secret")) })
        const calls = [call("c0", "boom"), call("c1", "rejects"), call("c2", "dies")]
        const result = yield* ToolRunner.run(calls, [boom, rejects, dies])

        assert.deepStrictEqual(contents(result), [
          "{\"error\":\"tool error (boom): handler_raised\"}",
          "{\"error\":\"tool error (rejects): handler_raised\"}",
          "{\"error\":\"tool error (dies): handler_raised\"}"
        ])
        assert.deepStrictEqual(result.outcomes.map((outcome) => outcome.result._tag), [
          "HandlerRaised",
          "HandlerRaised",
          "HandlerRaised"
        ])
      }))

    it.effect("RUN-14 survives a handler that interrupts itself", () =>
      Effect.gen(function*() {
        const exits = Tool.make("exits", { description: "Interrupts itself", handler: () => Effect.interrupt })
        const result = yield* ToolRunner.run([call("c0", "exits"), call("c1", "hi")], [exits, hi])

        assert.deepStrictEqual(contents(result), ["{\"error\":\"tool error (exits): handler_exit\"}", "hi"])
        assert.deepInclude(result.outcomes[0]!.result, { _tag: "HandlerExit", origin: "executor" })
      }))

    it.effect("RUN-42 tells where a result has no text form", () =>
      Effect.gen(function*() {
        const totals = Tool.make("totals", {
          description: "Gives a bigint",
          handler: () => ({ rows: [{ total: 1 }, { total: 2n }] })
        })
        const result = yield* ToolRunner.run([call("c0", "totals"), call("c1", "hi")], [totals, hi])

        assert.deepStrictEqual(contents(result), [
          "{\"error\":\"tool error (totals): encoding_failed at $.rows[1].total: a bigint has no JSON form\"}",
          "hi"
        ])
        assert.deepInclude(result.outcomes[0]!.result, {
          _tag: "EncodingFailed",
          toolName: "totals",
          toolCallId: "c0",
          path: ["rows", 1, "total"]
        })
      }))

    it.effect("RUN-46 runs no more calls at once than it was told", () =>
      Effect.gen(function*() {
        let running = 0
        let peak = 0
        const track = Tool.make("track", {
          description: "Counts who runs",
          handler: () =>
            Effect.acquireUseRelease(
              Effect.sync(() => peak = Math.max(peak, ++running)),
              () => Effect.sleep("10 millis"),
              () => Effect.sync(() => running--)
            )
        })
        const calls = Array.from({ length: 20 }, (_, i) => call(`c${i}`, "track"))
        const fiber = yield* Effect.fork(ToolRunner.run(calls, [track], { concurrency: 2 }))
        yield* TestClock.adjust("99 millis")
        assert.strictEqual(fiber.unsafePoll(), null)
        yield* TestClock.adjust("1 millis")
        const result = yield* Fiber.join(fiber)

        assert.strictEqual(peak, 2)
        assert.strictEqual(running, 0)
        assert.deepStrictEqual(contents(result), calls.map(() => "null"))
      }))

    it.effect("RUN-52 has nothing to say about an empty batch", () =>
      Effect.gen(function*() {
        const result = yield* ToolRunner.run([], [])

        assert.deepStrictEqual(result, {
          messages: [],
          halt: undefined,
          questions: [],
          approvals: [],
          manualToolCalls: [],
          outcomes: []
        })
      }))

    it.effect("RUN-79 runs the same tool twice in one batch", () =>
      Effect.gen(function*() {
        const echo = Tool.make("echo", {
          description: "Repeats",
          parameters: { n: Schema.Number },
          handler: ({ n }) => n
        })
        const result = yield* ToolRunner.run([call("c0", "echo", { n: 1 }), call("c1", "echo", { n: 2 })], [echo])

        assert.deepStrictEqual(result.messages.map(({ content, toolCallId }) => [toolCallId, content]), [
          ["c0", "1"],
          ["c1", "2"]
        ])
      }))
  })

  describe("run, over the limit", () => {
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

    it.effect("RUN-38 never uses what a handler gives after its limit", () =>
      Effect.gen(function*() {
        let finished = false
        const slow = Tool.make("slow", {
          description: "Gives its answer too late",
          handler: () =>
            Effect.uninterruptible(Effect.delay(
              Effect.sync(() => {
                finished = true
                return "late"
              }),
              "200 millis"
            ))
        })
        const fiber = yield* Effect.fork(ToolRunner.run([call("c0", "slow")], [slow], { toolTimeout: 50 }))
        yield* TestClock.adjust("49 millis")
        assert.strictEqual(fiber.unsafePoll(), null)
        yield* TestClock.adjust("1 millis")
        const result = yield* Fiber.join(fiber)
        yield* TestClock.adjust("150 millis")

        assert.strictEqual(finished, true)
        assert.deepStrictEqual(contents(result), ["{\"error\":\"tool error (slow): timeout\"}"])
        assert.deepInclude(result.outcomes[0]!.result, { _tag: "Timeout", limitMillis: 50, abandoned: true })
      }))

    it.effect("RUN-40 leaves the siblings of a call over its limit alone, running or queued", () =>
      Effect.gen(function*() {
        const calls = [
          call("c0", "never"),
          call("c1", "sleep", { millis: 45 }),
          call("c2", "sleep", { millis: 45 })
        ]
        const fiber = yield* Effect.fork(
          ToolRunner.run(calls, [never, sleep], { concurrency: 2, toolTimeout: "50 millis" })
        )
        yield* TestClock.adjust("90 millis")
        const result = yield* Fiber.join(fiber)

        assert.deepStrictEqual(contents(result), [
          "{\"error\":\"tool error (never): timeout\"}",
          "slept 45",
          "slept 45"
        ])
      }))
  })
})
