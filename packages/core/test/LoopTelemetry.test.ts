import { Adapter, Allm, Engine, Fake, Tool, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Layer, Option, Schema, Stream, TestClock, type Tracer } from "effect"
import { exporter, named, treeOf } from "./SpanExporter.ts"

const call = (id: string, name: string, args: unknown = {}) => Fake.toolCall({ id, name, arguments: args })

const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })
const slow = Tool.make("slow", {
  description: "Takes its time",
  parameters: { millis: Schema.Number },
  handler: ({ millis }) => Effect.as(Effect.sleep(millis), "slow")
})

const twoTurns = [
  [call("c0", "hi"), call("c1", "slow", { millis: 20 }), Fake.finish("tool_calls")],
  [Fake.text("done"), Fake.finish("stop")]
]

/** Runs on a test clock until it is over. */
const overTime = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.fork(effect)
    yield* TestClock.adjust("1 minute")
    return yield* Fiber.join(fiber)
  })

describe("The span tree", () => {
  it.effect("has one span per chat, step, model call and tool call", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      yield* Allm.chat("hi", { tools: [hi, slow] }).pipe(
        Effect.provide(Fake.engine({ scripts: twoTurns })),
        Effect.withTracer(tracer),
        overTime
      )

      assert.deepStrictEqual(treeOf(ended), [
        "allm.chat",
        "  allm.step",
        "    allm.generate",
        "    allm.tool c0",
        "    allm.tool c1",
        "  allm.step",
        "    allm.generate"
      ])
    }))

  it.effect("is the same for a stream", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      yield* Stream.runDrain(Allm.stream("hi", { tools: [hi, slow] })).pipe(
        Effect.provide(Fake.engine({ scripts: twoTurns })),
        Effect.withTracer(tracer),
        overTime
      )

      assert.deepStrictEqual(treeOf(ended), [
        "allm.chat",
        "  allm.step",
        "    allm.generate",
        "    allm.tool c0",
        "    allm.tool c1",
        "  allm.step",
        "    allm.generate"
      ])
    }))

  it.effect("of a step and of one model call begins there", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      yield* Allm.step("hi", { tools: [hi] }).pipe(
        Effect.zipRight(Allm.generate("hi")),
        Effect.provide(Fake.engine({ scripts: [[call("c0", "hi"), Fake.finish("tool_calls")], []] })),
        Effect.withTracer(tracer)
      )

      assert.deepStrictEqual(treeOf(ended), ["allm.step", "  allm.generate", "  allm.tool c0", "allm.generate"])
    }))

  it.effect("hangs below the caller's own span, and holds the tool's own spans", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      const nested = Tool.make("nested", {
        description: "Has a span of its own",
        handler: () => Effect.withSpan(Effect.succeed("ok"), "database")
      })
      yield* Allm.chat("hi", { tools: [nested], maxTurns: 1 }).pipe(
        Effect.withSpan("request"),
        Effect.provide(Fake.engine({ script: [call("c0", "nested"), Fake.finish("tool_calls")] })),
        Effect.withTracer(tracer)
      )

      assert.deepStrictEqual(treeOf(ended), [
        "request",
        "  allm.chat",
        "    allm.step",
        "      allm.generate",
        "      allm.tool c0",
        "        database"
      ])
    }))

  it.effect("holds the adapter's own spans below the model call", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      const adapter = Adapter.make((_request, emit) =>
        Effect.withSpan(emit([{ _tag: "MessageCompleted", finishReason: "stop", metadata: {} }]), "http")
      )
      yield* Allm.generate("hi").pipe(
        Effect.provide(Engine.layer().pipe(Layer.provide(Adapter.layer(adapter)))),
        Effect.withTracer(tracer)
      )

      assert.deepStrictEqual(treeOf(ended), ["allm.generate", "  http"])
    }))

  it.effect("has the right parents when many tools run at once", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      const calls = Array.from({ length: 20 }, (_, i) => call(`c${i}`, "slow", { millis: 40 - i }))
      yield* Allm.chat("hi", { tools: [slow], concurrency: "unbounded" }).pipe(
        Effect.provide(Fake.engine({ scripts: [[...calls, Fake.finish("tool_calls")], []] })),
        Effect.withTracer(tracer),
        overTime
      )
      const [step] = named(ended, "allm.step")
      const tools = named(ended, "allm.tool")

      assert.deepStrictEqual(new Set(tools.map((span) => span.parent)), new Set([step?.id]))
      assert.deepStrictEqual(
        tools.map((span) => [span.attributes["gen_ai.tool.call.id"], span.millis]),
        Array.from({ length: 20 }, (_, i) => [`c${19 - i}`, 21 + i])
      )
    }))

  it.effect("keeps several chats apart", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      const tree = (id: string) => [
        "allm.chat",
        "  allm.step",
        "    allm.generate",
        `    allm.tool ${id}a`,
        `    allm.tool ${id}b`,
        "  allm.step",
        "    allm.generate"
      ]
      const chat = (id: string, millis: number) =>
        Allm.chat("hi", { tools: [slow], sessionId: id, requestId: `request of ${id}` }).pipe(
          Effect.provide(Fake.engine({
            scripts: [
              [call(`${id}a`, "slow", { millis }), call(`${id}b`, "slow", { millis: 30 }), Fake.finish("tool_calls")],
              [Fake.delay(millis), Fake.finish("stop")]
            ]
          }))
        )
      yield* Effect.all([chat("x", 30), chat("y", 20), chat("z", 10)], { concurrency: "unbounded" }).pipe(
        Effect.withTracer(tracer),
        overTime
      )

      for (const id of ["x", "y", "z"]) {
        const own = ended.filter((span) => span.attributes["allm.request.id"] === `request of ${id}`)
        assert.deepStrictEqual(treeOf(own), tree(id))
      }
      assert.strictEqual(ended.length, 21)
    }))

  it.effect("ends also when the chat is interrupted", () =>
    Effect.gen(function*() {
      const { ended, started, tracer } = exporter()
      const never = Tool.make("never", { description: "Never ends", handler: () => Effect.never })
      const fiber = yield* Allm.chat("hi", { tools: [never] }).pipe(
        Effect.provide(Fake.engine({ script: [call("c0", "never"), Fake.finish("tool_calls")] })),
        Effect.withTracer(tracer),
        Effect.fork
      )
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)

      assert.deepStrictEqual(treeOf(ended), ["allm.chat", "  allm.step", "    allm.generate", "    allm.tool c0"])
      assert.strictEqual(started(), 4)
      assert.deepStrictEqual(
        ended.filter(({ exit }) => Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause)).map(({ name }) => name),
        ["allm.tool", "allm.step", "allm.chat"]
      )
    }))

  it.effect("is not there when no tracer listens", () =>
    Effect.gen(function*() {
      const { started, tracer } = exporter()
      const spans: Array<Option.Option<Tracer.AnySpan>> = []
      const looking = Tool.make("looking", {
        description: "Looks for its span",
        handler: () =>
          Effect.map(Effect.option(Effect.currentParentSpan), (span) => {
            spans.push(span)
            return "ok"
          })
      })
      const chat = Allm.chat("hi", { tools: [looking], maxTurns: 1 }).pipe(
        Effect.provide(Fake.engine({ script: [call("c0", "looking"), Fake.finish("tool_calls")] }))
      )
      yield* chat
      yield* chat.pipe(Effect.withTracerEnabled(false), Effect.withTracer(tracer))

      assert.deepStrictEqual(spans, [Option.none(), Option.none()])
      assert.strictEqual(started(), 0)
    }))
})

describe("Attributes", () => {
  const answer = Adapter.make((_request, emit) =>
    emit([
      { _tag: "MessageStarted", id: "resp_1", model: "big-2026" },
      { _tag: "TextDelta", delta: "hi" },
      {
        _tag: "MessageCompleted",
        finishReason: "stop",
        usage: { inputTokens: 12, outputTokens: 5 },
        metadata: {}
      }
    ]), { name: "acme" })

  it.effect("of a model call are those of the GenAI conventions", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      yield* Allm.generate("hi", { sessionId: "s1", requestId: "r1" }).pipe(
        Effect.provide(
          Engine.layer({ model: "big", temperature: 0.5, maxTokens: 99 }).pipe(Layer.provide(Adapter.layer(answer)))
        ),
        Effect.withTracer(tracer)
      )

      assert.deepStrictEqual(ended[0]?.attributes, {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "acme",
        "gen_ai.request.model": "big",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 99,
        "gen_ai.conversation.id": "s1",
        "allm.request.id": "r1",
        "gen_ai.response.id": "resp_1",
        "gen_ai.response.model": "big-2026",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 5
      })
    }))

  it.effect("that nobody knows are left out", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      yield* Allm.generate("hi", { requestId: "r1" }).pipe(
        Effect.provide(Fake.engine({ script: [Fake.text("hi")] })),
        Effect.withTracer(tracer)
      )

      assert.deepStrictEqual(ended[0]?.attributes, {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "fake",
        "allm.request.id": "r1"
      })
    }))

  it.effect("TEL-07 of a chat tell its end and its tokens, with the request id of all its spans", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      const result = yield* Allm.chat("hi", { tools: [hi], model: "big", sessionId: "s1" }).pipe(
        Effect.provide(Fake.engine({
          scripts: [[call("c0", "hi"), Fake.finish("tool_calls")], [Fake.text("done"), Fake.finish("stop")]],
          usage: { inputTokens: 10, outputTokens: 1 }
        })),
        Effect.withTracer(tracer)
      )
      const [chat] = named(ended, "allm.chat")

      assert.deepStrictEqual(chat?.attributes, {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "fake",
        "gen_ai.request.model": "big",
        "gen_ai.conversation.id": "s1",
        "allm.request.id": result.finalResponse.requestId,
        "allm.halted_reason": "completed",
        "allm.steps": 2,
        "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 2
      })
      assert.deepStrictEqual(
        new Set(ended.map((span) => span.attributes["allm.request.id"])),
        new Set([result.finalResponse.requestId])
      )
      assert.strictEqual(ended.every((span) => span.attributes["gen_ai.conversation.id"] === "s1"), true)
    }))

  it.effect("of a step tell its place, its calls and its halt", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      const stop = Tool.make("stop", { description: "Halts", handler: () => ToolResult.halt("enough", 1) })
      yield* Allm.chat("hi", { tools: [hi, stop], requestId: "r1" }).pipe(
        Effect.provide(Fake.engine({
          scripts: [
            [call("c0", "hi"), Fake.finish("tool_calls")],
            [call("c1", "hi"), call("c2", "stop"), Fake.finish("tool_calls")]
          ]
        })),
        Effect.withTracer(tracer)
      )

      assert.deepStrictEqual(named(ended, "allm.step").map((span) => span.attributes), [
        { "allm.step.index": 0, "allm.request.id": "r1", "allm.step.tool_calls": 1 },
        { "allm.step.index": 1, "allm.request.id": "r1", "allm.step.tool_calls": 2, "allm.halt.reason": "enough" }
      ])
    }))

  it.effect("TEL-01 of a tool call are those of the GenAI conventions", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      yield* Allm.step("hi", { tools: [hi], sessionId: "s1", requestId: "r1" }).pipe(
        Effect.provide(Fake.engine({ script: [call("c0", "hi"), Fake.finish("tool_calls")] })),
        Effect.withTracer(tracer)
      )

      assert.deepStrictEqual(named(ended, "allm.tool")[0]?.attributes, {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.name": "hi",
        "gen_ai.tool.call.id": "c0",
        "gen_ai.conversation.id": "s1",
        "allm.request.id": "r1"
      })
    }))

  it.effect("TEL-02 tell calls that run at once apart", () =>
    Effect.gen(function*() {
      const { ended, tracer } = exporter()
      yield* Allm.step("hi", { tools: [hi] }).pipe(
        Effect.provide(Fake.engine({
          script: [call("c0", "hi"), call("c1", "hi"), call("c2", "hi"), Fake.finish("tool_calls")]
        })),
        Effect.withTracer(tracer)
      )

      assert.deepStrictEqual(
        named(ended, "allm.tool").map((span) => span.attributes["gen_ai.tool.call.id"]),
        ["c0", "c1", "c2"]
      )
    }))
})
