import { OnToolError, Telemetry, Tool, ToolCall, ToolContext, ToolResult, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import {
  Cause,
  type Context,
  Effect,
  Exit,
  Fiber,
  HashMap,
  Logger,
  LogLevel,
  Metric,
  Option,
  Queue,
  Schedule,
  Schema,
  Stream,
  TestClock,
  Tracer
} from "effect"

const call = (id: string, name: string, args: unknown = {}) => ToolCall.make({ id, name, arguments: args })

class RecordedSpan implements Tracer.Span {
  readonly _tag = "Span"
  readonly traceId = "trace"
  readonly sampled = true
  readonly attributes = new Map<string, unknown>()
  readonly links: ReadonlyArray<Tracer.SpanLink> = []
  status: Tracer.SpanStatus

  constructor(
    readonly spanId: string,
    readonly name: string,
    readonly parent: Option.Option<Tracer.AnySpan>,
    readonly context: Context.Context<never>,
    startTime: bigint,
    readonly kind: Tracer.SpanKind
  ) {
    this.status = { _tag: "Started", startTime }
  }

  end(endTime: bigint, exit: Exit.Exit<unknown, unknown>): void {
    this.status = { _tag: "Ended", startTime: this.status.startTime, endTime, exit }
  }

  attribute(key: string, value: unknown): void {
    this.attributes.set(key, value)
  }

  event(): void {}

  addLinks(): void {}

  get parentId(): string | undefined {
    return Option.getOrUndefined(Option.map(this.parent, (parent) => parent.spanId))
  }

  get exit(): Exit.Exit<unknown, unknown> | undefined {
    return this.status._tag === "Ended" ? this.status.exit : undefined
  }

  get cause(): Cause.Cause<unknown> {
    return this.exit === undefined || Exit.isSuccess(this.exit) ? Cause.empty : this.exit.cause
  }

  /** In milliseconds: when it began and when it ended. */
  get times(): ReadonlyArray<number> {
    const { status } = this
    return [status.startTime, ...(status._tag === "Ended" ? [status.endTime] : [])].map((time) => Number(time) / 1e6)
  }
}

/** A tracer that keeps its spans. */
const recorder = () => {
  const spans: Array<RecordedSpan> = []
  const tracer = Tracer.make({
    span: (name, parent, context, _links, startTime, kind) => {
      const span = new RecordedSpan(`span-${spans.length}`, name, parent, context, startTime, kind)
      spans.push(span)
      return span
    },
    context: (f) => f()
  })
  return { tracer, tools: () => spans.filter(({ name }) => name === "allm.tool"), spans }
}

const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })

describe("Telemetry", () => {
  describe("spans", () => {
    it.effect("TEL-01 one call is one span with the names OpenTelemetry gives", () =>
      Effect.gen(function*() {
        const { tools, tracer } = recorder()
        yield* ToolRunner.run([call("c0", "hi")], [hi], { sessionId: "s1", requestId: "r1" }).pipe(
          Effect.withTracer(tracer)
        )

        assert.strictEqual(tools().length, 1)
        assert.strictEqual(tools()[0]?.kind, "internal")
        assert.deepStrictEqual(Object.fromEntries(tools()[0]!.attributes), {
          "gen_ai.operation.name": "execute_tool",
          "gen_ai.tool.type": "function",
          "gen_ai.tool.name": "hi",
          "gen_ai.tool.call.id": "c0",
          "gen_ai.conversation.id": "s1",
          "allm.request.id": "r1"
        })
        assert.strictEqual(tools()[0]?.exit !== undefined && Exit.isSuccess(tools()[0]!.exit!), true)
      }))

    it.effect("leaves out ids that are not there", () =>
      Effect.gen(function*() {
        const { tools, tracer } = recorder()
        yield* Effect.withTracer(ToolRunner.run([call("c0", "hi")], [hi]), tracer)

        assert.deepStrictEqual([...tools()[0]!.attributes.keys()], [
          "gen_ai.operation.name",
          "gen_ai.tool.type",
          "gen_ai.tool.name",
          "gen_ai.tool.call.id"
        ])
      }))

    it.effect("TEL-02 calls side by side have a span each, below the caller's", () =>
      Effect.gen(function*() {
        const { spans, tools, tracer } = recorder()
        const slow = Tool.make("slow", { description: "Slow", handler: () => Effect.yieldNow() })
        yield* ToolRunner.run([call("c0", "slow"), call("c1", "slow"), call("c2", "slow")], [slow]).pipe(
          Effect.withSpan("caller"),
          Effect.withTracer(tracer)
        )
        const caller = spans.find(({ name }) => name === "caller")

        assert.deepStrictEqual(tools().map(({ attributes }) => attributes.get("gen_ai.tool.call.id")), [
          "c0",
          "c1",
          "c2"
        ])
        assert.deepStrictEqual(tools().map(({ parentId }) => parentId), [
          caller?.spanId,
          caller?.spanId,
          caller?.spanId
        ])
      }))

    it.effect("are the parents of what their own handler traces", () =>
      Effect.gen(function*() {
        const { spans, tools, tracer } = recorder()
        const nested = Tool.make("nested", {
          description: "Traces something of its own",
          handler: () =>
            Effect.gen(function*() {
              const { toolCall } = yield* ToolContext.ToolContext
              yield* Effect.yieldNow()
              yield* Effect.withSpan(Effect.yieldNow(), `inner ${toolCall.id}`)
            })
        })
        yield* Effect.withTracer(
          ToolRunner.run([call("c0", "nested"), call("c1", "nested"), call("c2", "nested")], [nested]),
          tracer
        )

        for (const tool of tools()) {
          const inner = spans.filter(({ parentId }) => parentId === tool.spanId)
          assert.deepStrictEqual(inner.map(({ name }) => name), [`inner ${tool.attributes.get("gen_ai.tool.call.id")}`])
        }
      }))

    it.effect("of a stream lie below the consumer's", () =>
      Effect.gen(function*() {
        const { spans, tools, tracer } = recorder()
        yield* Stream.runDrain(ToolRunner.stream([call("c0", "hi")], [hi])).pipe(
          Effect.withSpan("consumer"),
          Effect.withTracer(tracer)
        )

        assert.strictEqual(tools()[0]?.parentId, spans.find(({ name }) => name === "consumer")?.spanId)
      }))

    it.effect("last as long as the call runs, without its time in the queue", () =>
      Effect.gen(function*() {
        const { tools, tracer } = recorder()
        const slow = Tool.make("slow", { description: "Slow", handler: () => Effect.sleep(40) })
        const fiber = yield* ToolRunner.run([call("c0", "slow"), call("c1", "slow")], [slow], { concurrency: 1 }).pipe(
          Effect.withTracer(tracer),
          Effect.fork
        )
        yield* TestClock.adjust("80 millis")
        yield* Fiber.join(fiber)

        assert.deepStrictEqual(tools().map(({ times }) => times), [[0, 40], [40, 80]])
      }))

    it.effect("are one per call, however many attempts it took", () =>
      Effect.gen(function*() {
        const { tools, tracer } = recorder()
        const flaky = Tool.make("flaky", {
          description: "Fails",
          retry: Schedule.recurs(2),
          handler: () => Effect.fail("no")
        })
        yield* Effect.withTracer(ToolRunner.run([call("c0", "flaky")], [flaky]), tracer)

        assert.strictEqual(tools().length, 1)
      }))

    it.effect("are not made for calls that never ran", () =>
      Effect.gen(function*() {
        const { spans, tracer } = recorder()
        const manual = Tool.make("manual", { description: "For the caller", manual: true })
        const consent = Tool.make("consent", { description: "Needs consent", needsApproval: true, handler: () => 1 })
        const { outcomes } = yield* ToolRunner.run(
          [call("c0", "manual"), call("c1", "consent"), call("c2", "hi")],
          [manual, consent, hi],
          { siblings: "interrupt", concurrency: 1 }
        ).pipe(Effect.withTracer(tracer))

        assert.deepStrictEqual(outcomes.map(({ result }) => result._tag), ["Skipped"])
        assert.strictEqual(spans.length, 0)
      }))
  })

  describe("the status of a span", () => {
    const spanOf = <T extends Tool.Tool<string, never, unknown, unknown, never>>(tool: T, args: unknown = {}) =>
      Effect.gen(function*() {
        const { tools, tracer } = recorder()
        const fiber = yield* ToolRunner.run([call("c0", tool.name, args)], [tool], { toolTimeout: 50 }).pipe(
          Effect.withTracer(tracer),
          Effect.fork
        )
        yield* TestClock.adjust("50 millis")
        yield* Fiber.join(fiber)
        return tools()[0]!
      })

    it.effect("TEL-03 is an error with the whole cause when the handler throws", () =>
      Effect.gen(function*() {
        const boom = new Error("the disk is full")
        const span = yield* spanOf(
          Tool.make("throws", {
            description: "Throws",
            handler: () => {
              throw boom
            }
          })
        )

        assert.strictEqual(span.attributes.get("error.type"), "handler_raised")
        assert.deepStrictEqual(Array.from(Cause.defects(span.cause)), [boom])
      }))

    it.effect("is an error when the handler reports one", () =>
      Effect.gen(function*() {
        const span = yield* spanOf(Tool.make("fails", { description: "Fails", handler: () => Effect.fail("offline") }))

        assert.strictEqual(span.attributes.get("error.type"), "handler_failed")
        assert.strictEqual(Cause.isEmpty(span.cause), false)
      }))

    it.effect("TEL-05 is an error at the limit when the call ran out of time, once", () =>
      Effect.gen(function*() {
        const span = yield* spanOf(
          Tool.make("stuck", { description: "Waits", handler: () => Effect.uninterruptible(Effect.never) })
        )

        assert.strictEqual(span.attributes.get("error.type"), "timeout")
        assert.strictEqual(Cause.isFailure(span.cause), true)
        assert.deepStrictEqual(span.times, [0, 50])
      }))

    it.effect("TEL-06 is fine when the tool asks or halts", () =>
      Effect.gen(function*() {
        const asked = yield* spanOf(
          Tool.make("asks", { description: "Asks", handler: () => ToolResult.askUser("Which?") })
        )
        const halted = yield* spanOf(
          Tool.make("halts", { description: "Halts", handler: () => ToolResult.halt("enough", 1) })
        )

        assert.deepStrictEqual([asked, halted].map(({ attributes }) => attributes.get("error.type")), [
          undefined,
          undefined
        ])
        assert.deepStrictEqual([asked, halted].map(({ exit }) => exit?._tag), ["Success", "Success"])
      }))

    it.effect("is interrupted when the caller is", () =>
      Effect.gen(function*() {
        const { tools, tracer } = recorder()
        const begun = yield* Queue.unbounded<void>()
        const waits = Tool.make("waits", {
          description: "Waits",
          handler: () => Effect.zipRight(Queue.offer(begun, undefined), Effect.never)
        })
        const fiber = yield* ToolRunner.run([call("c0", "waits")], [waits]).pipe(Effect.withTracer(tracer), Effect.fork)
        yield* Queue.take(begun)
        yield* Fiber.interrupt(fiber)

        assert.strictEqual(tools()[0]?.status._tag, "Ended")
        assert.strictEqual(Cause.isInterrupted(tools()[0]!.cause), true)
      }))

    it.effect("is an error when a sibling stopped the call", () =>
      Effect.gen(function*() {
        const { tools, tracer } = recorder()
        const waits = Tool.make("waits", { description: "Waits", handler: () => Effect.never })
        const halts = Tool.make("halts", { description: "Halts", handler: () => ToolResult.halt("enough", 1) })
        yield* ToolRunner.run([call("c0", "waits"), call("c1", "halts")], [waits, halts], { siblings: "interrupt" })
          .pipe(Effect.withTracer(tracer))

        assert.deepStrictEqual(tools().map(({ attributes }) => attributes.get("error.type")), [
          "interrupted",
          undefined
        ])
      }))

    it.effect("says nothing about refused arguments but that they were refused", () =>
      Effect.gen(function*() {
        const span = yield* spanOf(
          Tool.make("typed", {
            description: "Takes a number",
            parameters: { pin: Schema.Number },
            handler: ({ pin }) => pin
          }),
          { pin: "hunter2" }
        )

        assert.strictEqual(span.attributes.get("error.type"), "invalid_arguments")
        assert.notInclude(Cause.pretty(span.cause), "hunter2")
      }))
  })

  describe("content", () => {
    const echo = Tool.make("echo", {
      description: "Echoes",
      parameters: { word: Schema.String },
      handler: ({ word }) => ({ echoed: word })
    })

    it.effect("is not in a span by itself", () =>
      Effect.gen(function*() {
        const { tools, tracer } = recorder()
        yield* Effect.withTracer(ToolRunner.run([call("c0", "echo", { word: "hunter2" })], [echo]), tracer)

        assert.notInclude(JSON.stringify([...tools()[0]!.attributes]), "hunter2")
      }))

    it.effect("is in a span when switched on", () =>
      Effect.gen(function*() {
        const { tools, tracer } = recorder()
        yield* ToolRunner.run([call("c0", "echo", { word: "hello" })], [echo]).pipe(
          Effect.provideService(Telemetry.CaptureContent, true),
          Effect.withTracer(tracer)
        )

        assert.strictEqual(tools()[0]?.attributes.get("gen_ai.tool.call.arguments"), "{\"word\":\"hello\"}")
        assert.include(String(tools()[0]?.attributes.get("gen_ai.tool.call.result")), "{\"echoed\":\"hello\"}")
      }))

    it.effect("that has no JSON form harms nothing when switched on", () =>
      Effect.gen(function*() {
        const { tools, tracer } = recorder()
        const cyclic: { self?: unknown } = {}
        cyclic.self = cyclic
        const odd = Tool.make("odd", { description: "Returns a cycle", handler: () => cyclic })
        const { outcomes } = yield* ToolRunner.run([call("c0", "odd")], [odd]).pipe(
          Effect.provideService(Telemetry.CaptureContent, true),
          Effect.withTracer(tracer)
        )

        assert.deepStrictEqual(outcomes.map(({ result }) => result._tag), ["EncodingFailed"])
        assert.strictEqual(tools()[0]?.status._tag, "Ended")
      }))
  })

  describe("when nobody listens", () => {
    const seesSpan = Tool.make("sees_span", {
      description: "Tells whether it runs in a span",
      handler: () => Effect.map(Effect.option(Effect.currentSpan), Option.isSome)
    })

    it.effect("there is no span", () =>
      Effect.gen(function*() {
        const { messages } = yield* ToolRunner.run([call("c0", "sees_span")], [seesSpan])

        assert.strictEqual(messages[0]?.content, "false")
      }))

    it.effect("because tracing is switched off, there is no span either", () =>
      Effect.gen(function*() {
        const { spans, tracer } = recorder()
        yield* ToolRunner.run([call("c0", "hi")], [hi]).pipe(
          Effect.withTracerEnabled(false),
          Effect.withTracer(tracer)
        )

        assert.strictEqual(spans.length, 0)
      }))
  })

  describe("metrics", () => {
    const ended = (tool: string, outcome: string) =>
      Telemetry.toolCalls.pipe(
        Metric.tagged("tool", tool),
        Metric.tagged("outcome", outcome),
        Metric.value,
        Effect.map(({ count }) => count)
      )

    const failed = (tag: string) =>
      Telemetry.toolErrors.pipe(Metric.tagged("tag", tag), Metric.value, Effect.map(({ count }) => count))

    it.effect("count calls by tool and outcome", () =>
      Effect.gen(function*() {
        const mixed = Tool.make("metrics_mixed", {
          description: "Ends in different ways",
          parameters: { how: Schema.Literal("ok", "fail", "ask") },
          handler: ({ how }) =>
            how === "ok"
              ? Effect.succeed(1)
              : how === "ask"
              ? Effect.succeed(ToolResult.askUser("?"))
              : Effect.fail("no")
        })
        const hows = ["ok", "fail", "ok", "ask", "ok"]
        yield* ToolRunner.run(hows.map((how, i) => call(`c${i}`, "metrics_mixed", { how })), [mixed])

        const counts = yield* Effect.forEach(["Ok", "HandlerFailed", "AskUser"], (tag) => ended("metrics_mixed", tag))
        assert.deepStrictEqual(counts, [3, 1, 1])
      }))

    it.effect("count failures by tag, also those the policy put right", () =>
      Effect.gen(function*() {
        const before = yield* failed("HandlerRaised")
        const dies = Tool.make("metrics_dies", { description: "Dies", handler: () => Effect.die("boom") })
        yield* ToolRunner.run([call("c0", "metrics_dies"), call("c1", "metrics_dies")], [dies], {
          onToolError: (toolCall) => toolCall.id === "c0" ? OnToolError.continueWith(0) : OnToolError.continue()
        })

        assert.strictEqual((yield* failed("HandlerRaised")) - before, 2)
      }))

    it.effect("keep the labels of a tool that is named error", () =>
      Effect.gen(function*() {
        const error = Tool.make("error", { description: "Fails", handler: () => Effect.fail("no") })
        yield* ToolRunner.run([call("c0", "error")], [error])

        assert.strictEqual(yield* ended("error", "HandlerFailed"), 1)
      }))

    it.effect("measure how long calls take, by tool", () =>
      Effect.gen(function*() {
        const slow = Tool.make("metrics_slow", { description: "Slow", handler: () => Effect.sleep(40) })
        const fiber = yield* Effect.fork(
          ToolRunner.run([call("c0", "metrics_slow"), call("c1", "metrics_slow")], [slow], { concurrency: 1 })
        )
        yield* TestClock.adjust("80 millis")
        yield* Fiber.join(fiber)
        const { count, max, min, sum } = yield* Metric.value(
          Metric.tagged(Telemetry.toolDuration, "tool", "metrics_slow")
        )

        assert.deepStrictEqual({ count, max, min, sum }, { count: 2, max: 40, min: 40, sum: 80 })
      }))
  })

  describe("log lines", () => {
    const logged = <A, E, R>(level: LogLevel.LogLevel, effect: Effect.Effect<A, E, R>) =>
      Effect.gen(function*() {
        const lines: Array<{ readonly level: string; readonly text: string; readonly ids: Record<string, unknown> }> =
          []
        const logger = Logger.make(({ annotations, cause, logLevel, message }) => {
          lines.push({
            level: logLevel.label,
            text: `${String(message)} ${Cause.pretty(cause)}`,
            ids: Object.fromEntries(HashMap.toEntries(annotations))
          })
        })
        yield* effect.pipe(Logger.withMinimumLogLevel(level), Effect.provide(Logger.add(logger)))
        return lines
      })

    const dies = Tool.make("dies", { description: "Dies", handler: () => Effect.die(new Error("the disk is full")) })
    const fails = Tool.make("fails", { description: "Fails", handler: () => Effect.fail("no") })

    it.effect("warn of a crash, with its cause and the ids", () =>
      Effect.gen(function*() {
        const lines = yield* logged(
          LogLevel.Info,
          ToolRunner.run([call("c0", "dies")], [dies], { sessionId: "s1", requestId: "r1" })
        )

        assert.deepStrictEqual(lines.map(({ ids, level }) => ({ level, ids })), [
          { level: "WARN", ids: { toolName: "dies", toolCallId: "c0", sessionId: "s1", requestId: "r1" } }
        ])
        assert.include(lines[0]?.text, "tool error (dies): handler_raised")
        assert.include(lines[0]?.text, "the disk is full")
      }))

    it.effect("tell a reported failure only to who debugs", () =>
      Effect.gen(function*() {
        const run = ToolRunner.run([call("c0", "fails")], [fails])
        const usual = yield* logged(LogLevel.Info, run)
        const debugging = yield* logged(LogLevel.Debug, run)

        assert.deepStrictEqual(usual, [])
        assert.deepStrictEqual(
          debugging.filter(({ text }) => text.startsWith("tool error (fails): handler_failed"))
            .map(({ ids, level }) => [level, ids["toolCallId"]]),
          [["DEBUG", "c0"]]
        )
      }))

    it.effect("are none when all goes well", () =>
      Effect.gen(function*() {
        const lines = yield* logged(LogLevel.All, ToolRunner.run([call("c0", "hi")], [hi]))

        assert.deepStrictEqual(lines, [])
      }))
  })
})
