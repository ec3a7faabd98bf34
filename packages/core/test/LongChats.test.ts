import { Adapter, AdapterError, Allm, Collector, Engine, type Event, Fake, Message, Thread, Tool } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Chunk, Effect, Either, Fiber, Layer, Schema, Stream, TestClock } from "effect"
import { IdleClock } from "./IdleClock.ts"

const turns = 1_000
const patience = { timeout: 30_000 }

const countHandlers = {
  plain: ({ n }: { readonly n: number }) => n + 1,
  async: async ({ n }: { readonly n: number }) => n + 1,
  effect: ({ n }: { readonly n: number }) => Effect.as(Effect.yieldNow(), n + 1)
}

const countTool = (kind: keyof typeof countHandlers) =>
  Tool.make("count", {
    description: "Counts on",
    parameters: { n: Schema.Number },
    handler: (params) => countHandlers[kind](params)
  })

/** Calls `count` once per turn, and says what it came to. */
const counting = (kind: keyof typeof countHandlers) =>
  Fake.engine({
    tools: [countTool(kind)],
    maxTurns: turns + 1,
    usage: { inputTokens: 2, outputTokens: 1 },
    respond: (request, index) =>
      index === turns
        ? [Fake.text(`it is ${request.messages.at(-1)?.content}`), Fake.finish("stop")]
        : [Fake.toolCall({ id: `c${index}`, name: "count", arguments: { n: index } }), Fake.finish("tool_calls")]
  })

describe("A thousand turns", () => {
  for (const kind of ["plain", "async", "effect"] as const) {
    it.effect(`with a tool that is ${kind} come to the right end`, () =>
      Effect.gen(function*() {
        const result = yield* Effect.provide(Allm.chat("count"), counting(kind))

        assert.strictEqual(result.haltedReason, "completed")
        assert.strictEqual(result.finalResponse.outputText, `it is ${turns}`)
        assert.strictEqual(result.steps.length, turns + 1)
        assert.deepStrictEqual(result.usage, { inputTokens: 2 * (turns + 1), outputTokens: turns + 1 })
        assert.deepStrictEqual(
          result.thread.messages.flatMap((message) => message.role === "tool" ? [message.content] : []),
          Array.from({ length: turns }, (_, i) => String(i + 1))
        )
      }), patience)
  }

  it.effect("are told one after the other, and fold to the same", () =>
    Effect.gen(function*() {
      const thread = Thread.make([Message.user("count")])
      const events = yield* Stream.runCollect(Allm.stream(thread, { requestId: "r0" })).pipe(
        Effect.provide(counting("plain"))
      )
      const whole = yield* Effect.provide(Allm.chat(thread, { requestId: "r0" }), counting("plain"))
      const collector = Collector.make({ thread })
      for (const event of events) Collector.add(collector, event)
      const order = Chunk.toReadonlyArray(events).flatMap((event) =>
        event._tag === "ToolExecutionStarted" ? [event.toolCallId] : []
      )

      assert.deepStrictEqual(order, Array.from({ length: turns }, (_, i) => `c${i}`))
      assert.deepStrictEqual(
        Either.map(Collector.toChatResult(collector), (chat) => chat.steps.length),
        Either.right(turns + 1)
      )
      deepStrictEqual(Either.getOrThrow(Collector.toChatResult(collector)).finalResponse, whole.finalResponse)
      deepStrictEqual(Either.getOrThrow(Collector.toChatResult(collector)).thread, whole.thread)
    }), patience)

  it.effect("can be gone on with", () =>
    Effect.gen(function*() {
      const { thread } = yield* Effect.provide(Allm.chat("count"), counting("plain"))
      const response = yield* Allm.generate(Thread.append(thread, Message.user("and now?"))).pipe(
        Effect.provide(Fake.engine({
          respond: (request) => [Fake.text(`${request.messages.length} messages`), Fake.finish("stop")]
        }))
      )

      assert.strictEqual(response.outputText, `${2 * turns + 3} messages`)
    }), patience)

  it.effect("share one limit each, not a sum of them", () =>
    Effect.gen(function*() {
      const napping = Tool.make("nap", { description: "Sleeps", handler: () => Effect.sleep("9 seconds") })
      const fiber = yield* Allm.chat("count", { tools: [napping], toolTimeout: "10 seconds", maxTurns: 20 }).pipe(
        Effect.provide(Fake.engine({
          respond: (_request, index) => [Fake.toolCall({ id: `c${index}`, name: "nap" }), Fake.finish("tool_calls")]
        })),
        Effect.fork
      )
      for (let i = 0; i < 20; i++) yield* TestClock.adjust("9 seconds")
      const result = yield* Fiber.join(fiber)

      assert.strictEqual(result.haltedReason, "max_turns")
      assert.strictEqual(result.steps.every((step) => step.toolResults[0]?.isError === false), true)
    }), patience)
})

describe("Ten thousand deltas", () => {
  const deltas = Array.from({ length: 10_000 }, (_, i) => `${i} `)
  const text = deltas.join("")
  const script = [...deltas.map(Fake.text), Fake.finish("stop")]

  it.effect("make one text", () =>
    Effect.gen(function*() {
      const result = yield* Effect.provide(Allm.chat("talk"), Fake.engine({ script }))

      assert.strictEqual(result.finalResponse.outputText, text)
    }), patience)

  it.effect("are all told, in order", () =>
    Effect.gen(function*() {
      const events = yield* Effect.provide(Stream.runCollect(Allm.stream("talk")), Fake.engine({ script }))
      const told = Chunk.toReadonlyArray(events).flatMap((event) => event._tag === "TextDelta" ? [event.delta] : [])

      assert.deepStrictEqual(told, deltas)
    }), patience)

  it.effect("wait for a slow reader, and none is lost", () =>
    Effect.gen(function*() {
      let emitted = 0
      let read = 0
      let ahead = 0
      const adapter = Adapter.make((_request, emit) =>
        Effect.forEach(deltas, (delta) => {
          emitted++
          return emit([{ _tag: "TextDelta", delta }])
        }, { discard: true }).pipe(
          Effect.zipRight(emit([{ _tag: "MessageCompleted", finishReason: "stop", metadata: {} }]))
        )
      )
      yield* Allm.streamGenerate("talk").pipe(
        Stream.runForEach(() =>
          Effect.sync(() => {
            ahead = Math.max(ahead, emitted - read++)
          })
        ),
        Effect.provide(Engine.layer().pipe(Layer.provide(Adapter.layer(adapter))))
      )

      assert.strictEqual(read, deltas.length + 1)
      // What was handed over and not yet read, and as much again that waits.
      assert.isAtMost(ahead, 2 * 64 + 1)
    }), patience)

  for (const size of [1, 64]) {
    it.effect(`come through in reads of ${size}`, () =>
      Effect.gen(function*() {
        const reads = async function*(): AsyncGenerator<ReadonlyArray<Event.AdapterEvent>> {
          for (let i = 0; i < deltas.length; i += size) {
            yield deltas.slice(i, i + size).map((delta) => ({ _tag: "TextDelta", delta }))
          }
          yield [{ _tag: "MessageCompleted", finishReason: "stop", metadata: {} }]
        }
        const adapter = Adapter.fromAsyncIterable(
          reads,
          (cause) => new AdapterError.AdapterError({ reason: "unknown", cause })
        )
        const told = yield* Stream.runFold(
          Allm.stream("talk"),
          "",
          (sum, event) => event._tag === "TextDelta" ? sum + event.delta : sum
        ).pipe(Effect.provide(Engine.layer().pipe(Layer.provide(Adapter.layer(adapter)))))

        assert.strictEqual(told, text)
      }), patience)
  }
})

describe("A long argument", () => {
  const value = "äß€😀".repeat(40_000)
  const raw = JSON.stringify({ value })
  const size = Math.ceil(raw.length / 5_000)
  const script = [
    ...Array.from(
      { length: 5_000 },
      (_, i) => Fake.toolCallDelta({ id: "c0", name: "measure", delta: raw.slice(i * size, (i + 1) * size) })
    ),
    Fake.finish("tool_calls")
  ]
  const measure = Tool.make("measure", {
    description: "Measures",
    parameters: { value: Schema.String },
    handler: (params) => ({ length: params.value.length, same: params.value === value })
  })

  it.effect("of 200 kB in five thousand deltas arrives whole", () =>
    Effect.gen(function*() {
      const step = yield* Effect.provide(Allm.step("measure", { tools: [measure] }), Fake.engine({ script }))

      assert.strictEqual(raw.length >= 200_000, true)
      assert.strictEqual(step.response.toolCalls[0]?.rawArguments, raw)
      assert.deepStrictEqual(step.toolResults.map((message) => message.content), [
        JSON.stringify({ length: value.length, same: true })
      ])
    }), patience)

  it.effect("is told piece by piece", () =>
    Effect.gen(function*() {
      const events = yield* Stream.runCollect(Allm.streamStep("measure", { tools: [measure] })).pipe(
        Effect.provide(Fake.engine({ script }))
      )
      const pieces = Chunk.toReadonlyArray(events).flatMap((event) =>
        event._tag === "ToolCallDelta" ? [event.delta] : []
      )

      assert.strictEqual(pieces.length, 5_000)
      assert.strictEqual(pieces.join(""), raw)
    }), patience)
})

describe("A thousand at once", () => {
  it.effect("chats on one engine keep to themselves", () =>
    Effect.gen(function*() {
      const nap = Tool.make("nap", {
        description: "Sleeps and tells who asked",
        parameters: { who: Schema.String },
        handler: ({ who }, { requestId, sessionId }) =>
          Effect.as(Effect.sleep("10 millis"), `${who} ${sessionId} ${typeof requestId}`)
      })
      const engine = Fake.engine({
        tools: [nap],
        respond: ({ messages }) => {
          const last = messages.at(-1)
          return last?.role === "tool"
            ? [Fake.text(`for ${last.content}`), Fake.finish("stop")]
            : [Fake.toolCall({ id: "c0", name: "nap", arguments: { who: last?.content } }), Fake.finish("tool_calls")]
        }
      })
      const clock = new IdleClock()
      const { requests, results } = yield* Effect.gen(function*() {
        const results = yield* Effect.forEach(
          Array.from({ length: 1_000 }, (_, i) => i),
          (i) => Allm.chat(`user ${i}`, { sessionId: `session ${i}` }),
          { concurrency: "unbounded" }
        )
        return { results, requests: yield* Fake.requests }
      }).pipe(Effect.provide(engine), Effect.withClock(clock))

      assert.deepStrictEqual(
        results.map((result) => result.finalResponse.outputText),
        Array.from({ length: 1_000 }, (_, i) => `for user ${i} session ${i} string`)
      )
      assert.strictEqual(new Set(results.map((result) => result.finalResponse.requestId)).size, 1_000)
      assert.strictEqual(requests.length, 2_000)
      // All at once: the thousand naps took the time of one.
      assert.strictEqual(clock.unsafeCurrentTimeMillis(), 10)
    }), patience)

  it.effect("calls of one turn are all answered, in order", () =>
    Effect.gen(function*() {
      const ids = Array.from({ length: 1_000 }, (_, i) => `c${i}`)
      const name = Tool.make("name", {
        description: "Names itself",
        handler: (_, { toolCall }) => Effect.as(Effect.yieldNow(), toolCall.id)
      })
      const step = yield* Allm.step("name", { tools: [name] }).pipe(
        Effect.provide(Fake.engine({
          script: [...ids.map((id) => Fake.toolCall({ id, name: "name" })), Fake.finish("tool_calls")]
        }))
      )

      assert.deepStrictEqual(step.toolResults.map((message) => message.content), ids)
    }), patience)
})
