import { Adapter, Allm, Engine, type Event, Fake, Message, Tool, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Deferred, Effect, Exit, Fiber, Layer, Stream, TestClock } from "effect"

const call = (id: string, name: string, args: unknown = {}) => Fake.toolCall({ id, name, arguments: args })
const asks = (...calls: ReadonlyArray<Fake.Entry>): Fake.Script => [...calls, Fake.finish("tool_calls")]

const fast = Tool.make("fast", { description: "Takes no time", handler: () => "fast" })
const ask = Tool.make("ask", { description: "Asks the person", handler: () => ToolResult.askUser("Which city?") })
const submit = Tool.make("submit", {
  description: "Ends the loop",
  handler: (_, { toolCall }) => ToolResult.halt("plan_submitted", { by: toolCall.id })
})
const deploy = Tool.make("deploy", { description: "The caller's to run", manual: true })

const tags = (events: Iterable<Event.Event>) => Array.from(events, (event) => event._tag)

const isAboutTools = (event: Event.Event) => event._tag.startsWith("ToolExecution")

/** The one result in the events, which is their last. */
const resultOf = (events: Iterable<Event.Event>) => {
  const all = [...events]
  const last = all.at(-1)
  assert.strictEqual(all.filter((event) => event._tag === "StepCompleted").length, 1)
  assert(last?._tag === "StepCompleted")
  return last.result
}

/** Reads a stream into a list that survives its failure. */
const record = <E, R>(stream: Stream.Stream<Event.Event, E, R>) =>
  Effect.gen(function*() {
    const events: Array<Event.Event> = []
    const exit = yield* Effect.exit(Stream.runForEach(stream, (event) => Effect.sync(() => events.push(event))))
    return { events, exit }
  })

describe("Allm.streamStep", () => {
  it.effect("SSTEP-01 tells the model's events, then one StepCompleted, last", () =>
    Effect.gen(function*() {
      const events = yield* Stream.runCollect(Allm.streamStep("hi"))

      assert.deepStrictEqual(tags(events), [
        "MessageStarted",
        "TextDelta",
        "TextDelta",
        "TextCompleted",
        "MessageCompleted",
        "StepCompleted"
      ])
      const result = resultOf(events)
      assert.strictEqual(result.done, true)
      assert.strictEqual(result.response.outputText, "hello")
    }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("hel"), Fake.text("lo"), Fake.finish("stop")] }))))

  it.effect("tells a turn with a tool in order", () =>
    Effect.gen(function*() {
      const events = yield* Stream.runCollect(Allm.streamStep("hi", { tools: [fast] }))

      assert.deepStrictEqual(tags(events), [
        "MessageStarted",
        "ToolCallStarted",
        "ToolCallCompleted",
        "MessageCompleted",
        "ToolExecutionStarted",
        "ToolExecutionCompleted",
        "ToolResultEncoded",
        "StepCompleted"
      ])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "fast")) }))))

  it.effect("SSTEP-03 runs nothing in manual mode", () =>
    Effect.gen(function*() {
      const events = yield* Stream.runCollect(Allm.streamStep("hi", { tools: [fast], mode: "manual" }))
      const result = resultOf(events)

      assert.isFalse([...events].some(isAboutTools))
      assert.deepStrictEqual(result.metadata, { mode: "manual" })
      assert.deepStrictEqual(result.manualToolCalls.map(({ id }) => id), ["c0"])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "fast")) }))))

  it.effect("SSTEP-04 tells what the model said, then fails when a tool is unknown", () =>
    Effect.gen(function*() {
      const { events, exit } = yield* record(Allm.streamStep("hi", { tools: [fast] }))
      const error = yield* Effect.flip(exit)

      assert.strictEqual(error._tag, "UnknownTool")
      assert.deepStrictEqual(tags(events), [
        "MessageStarted",
        "ToolCallStarted",
        "ToolCallCompleted",
        "ToolCallStarted",
        "ToolCallCompleted",
        "MessageCompleted"
      ])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "fast"), call("c1", "missing")) }))))

  it.effect("SSTEP-04 completes the step when the model is told of the unknown tool", () =>
    Effect.gen(function*() {
      const events = yield* Stream.runCollect(Allm.streamStep("hi", { tools: [fast], unknownTool: "feedback" }))
      const { thread } = resultOf(events)

      assert.deepStrictEqual(thread.messages.map(({ role }) => role), ["user", "assistant", "tool", "tool"])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "fast"), call("c1", "missing")) }))))

  it.effect("SSTEP-05 tells a question right before the end of the step", () =>
    Effect.gen(function*() {
      const events = yield* Stream.runCollect(Allm.streamStep("hi", { tools: [ask] }))

      assert.deepStrictEqual(tags(events).slice(-4), [
        "ToolExecutionStarted",
        "ToolExecutionCompleted",
        "AskUserRequested",
        "StepCompleted"
      ])
      assert.deepStrictEqual(
        resultOf(events).thread.messages.at(-1),
        Message.tool("c0", "<awaiting user response>")
      )
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "ask")) }))))

  it.effect("SSTEP-07 closes the model's answer when the reader stops", () =>
    Effect.gen(function*() {
      const fake = yield* Fake.Fake
      const events = yield* Stream.runCollect(Stream.take(Allm.streamStep("hi"), 1))

      assert.deepStrictEqual(tags(events), ["MessageStarted"])
      assert.deepStrictEqual([yield* fake.open, yield* fake.closed], [0, 1])
    }).pipe(Effect.provide(Fake.engine({
      script: [Fake.text("hel"), Fake.delay("1 hour"), Fake.text("lo"), Fake.finish("stop")]
    }))))

  it.effect("SSTEP-07 tells nothing more after the reader stopped", () =>
    Effect.gen(function*() {
      const events: Array<Event.Event> = []
      const adapter = Adapter.make((_, emit) =>
        emit([{ _tag: "TextDelta", delta: "hel" }]).pipe(
          Effect.zipRight(Effect.never),
          Effect.ensuring(emit([{ _tag: "TextDelta", delta: "too late" }]))
        )
      )
      yield* Allm.streamStep("hi").pipe(
        Stream.tap((event) => Effect.sync(() => events.push(event))),
        Stream.take(1),
        Stream.runDrain,
        Effect.provide(Engine.layer().pipe(Layer.provide(Adapter.layer(adapter))))
      )

      assert.deepStrictEqual(events, [{ _tag: "TextDelta", delta: "hel" }])
    }))

  it.effect("SSTEP-08 stops the tool that runs when the reader stops, and waits for it", () =>
    Effect.gen(function*() {
      const cleaned: Array<string> = []
      const endless = Tool.make("endless", {
        description: "Never ends",
        handler: () =>
          Effect.onInterrupt(Effect.never, () =>
            Effect.zipRight(Effect.yieldNow(), Effect.sync(() => cleaned.push("endless"))))
      })
      const events = yield* Allm.streamStep("hi", { tools: [endless] }).pipe(
        Stream.takeUntil((event) =>
          event._tag === "ToolExecutionStarted"
        ),
        Stream.runCollect
      )

      assert.strictEqual(tags(events).at(-1), "ToolExecutionStarted")
      assert.deepStrictEqual(cleaned, ["endless"])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "endless")) }))))

  it.effect("SSTEP-08 stops the tool when the reader is interrupted", () =>
    Effect.gen(function*() {
      const running = yield* Deferred.make<void>()
      const cleaned: Array<string> = []
      const endless = Tool.make("endless", {
        description: "Never ends",
        handler: () =>
          Effect.zipRight(Deferred.succeed(running, undefined), Effect.never).pipe(
            Effect.onInterrupt(() => Effect.sync(() => cleaned.push("endless")))
          )
      })
      const fiber = yield* Effect.fork(Stream.runDrain(Allm.streamStep("hi", { tools: [endless] })))
      yield* Deferred.await(running)
      const exit = yield* Fiber.interrupt(fiber)

      assert.isTrue(Exit.isInterrupted(exit))
      assert.deepStrictEqual(cleaned, ["endless"])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "endless")) }))))

  it.effect("SSTEP-09 fails without an event when the model cannot be asked", () =>
    Effect.gen(function*() {
      const { events, exit } = yield* record(Allm.streamStep("hi"))
      const error = yield* Effect.flip(exit)

      assert.deepStrictEqual(events, [])
      assert(error._tag === "AdapterError")
      assert.strictEqual(error.reason, "authentication_failed")
    }).pipe(Effect.provide(Fake.engine({ script: [Fake.preflightError("authentication_failed")] }))))

  it.effect("SSTEP-09 fails without an event when its options are wrong", () =>
    Effect.gen(function*() {
      const { events, exit } = yield* record(Allm.streamStep("hi", { maxTurns: 0 }))
      const error = yield* Effect.flip(exit)

      assert.deepStrictEqual(events, [])
      assert.strictEqual(error._tag, "ValidationError")
      assert.deepStrictEqual(yield* Fake.requests, [])
    }).pipe(Effect.provide(Fake.engine({ script: [] }))))

  it.effect("SSTEP-09 tells an error inside the answer as an event, and completes the step", () =>
    Effect.gen(function*() {
      const events = yield* Stream.runCollect(Allm.streamStep("hi"))

      assert.deepStrictEqual(tags(events), [
        "MessageStarted",
        "TextDelta",
        "ErrorOccurred",
        "TextCompleted",
        "MessageCompleted",
        "StepCompleted"
      ])
      assert.strictEqual(resultOf(events).response.finishReason, "error")
    }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("hel"), Fake.error("network_error")] }))))

  it.effect("SSTEP-11 tells the whole result of the step", () =>
    Effect.gen(function*() {
      const events = yield* Stream.runCollect(Allm.streamStep("hi", { tools: [fast, deploy], requestId: "r0" }))

      const toolCalls = [
        { id: "c0", name: "fast", arguments: {}, metadata: {} },
        { id: "c1", name: "deploy", arguments: {}, metadata: {} }
      ]
      const message = Message.assistant("", { toolCalls, metadata: { finishReason: "tool_calls" } })
      assert.deepStrictEqual(resultOf(events), {
        thread: { messages: [Message.user("hi"), message, Message.tool("c0", "fast")], metadata: {} },
        response: {
          requestId: "r0",
          message,
          outputText: "",
          toolCalls,
          finishReason: "tool_calls",
          usage: {},
          metadata: {}
        },
        toolResults: [Message.tool("c0", "fast")],
        done: false,
        pendingQuestions: [],
        pendingApprovals: [],
        manualToolCalls: [toolCalls[1]!],
        metadata: {}
      })
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "fast"), call("c1", "deploy")) }))))

  it.effect("SSTEP-11 has no manual calls when there are none", () =>
    Effect.gen(function*() {
      const events = yield* Stream.runCollect(Allm.streamStep("hi", { tools: [fast] }))

      assert.deepStrictEqual(resultOf(events).manualToolCalls, [])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "fast")) }))))

  it.effect("SSTEP-12 tells every halt and keeps every result", () =>
    Effect.gen(function*() {
      const events = yield* Stream.runCollect(Allm.streamStep("hi", { tools: [submit] }))
      const result = resultOf(events)

      assert.deepStrictEqual(
        Array.from(events).flatMap((event) => event._tag === "ToolHalt" ? [event.toolCallId] : []),
        ["c0", "c1"]
      )
      assert.deepStrictEqual(result.halt, { reason: "plan_submitted", toolCallId: "c0", result: { by: "c0" } })
      assert.deepStrictEqual(result.toolResults.map(({ content }) => content), ["{\"by\":\"c0\"}", "{\"by\":\"c1\"}"])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "submit"), call("c1", "submit")) }))))

  it.effect("SSTEP-13 has the halt's result in the thread", () =>
    Effect.gen(function*() {
      const events = yield* Stream.runCollect(Allm.streamStep("hi", { tools: [submit] }))

      assert.deepStrictEqual(resultOf(events).thread.messages.at(-1), Message.tool("c0", "{\"by\":\"c0\"}"))
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "submit")) }))))

  it.effect("tells events as they come, not when the answer is over", () =>
    Effect.gen(function*() {
      const events: Array<Event.Event> = []
      const fiber = yield* Effect.fork(
        Stream.runForEach(Allm.streamStep("hi"), (event) => Effect.sync(() => events.push(event)))
      )
      yield* TestClock.adjust("1 second")
      const early = tags(events)
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)

      assert.deepStrictEqual(early, ["MessageStarted", "TextDelta"])
      assert.deepStrictEqual(tags(events).slice(2), ["TextDelta", "TextCompleted", "MessageCompleted", "StepCompleted"])
    }).pipe(Effect.provide(Fake.engine({
      script: [Fake.text("hel"), Fake.delay("2 seconds"), Fake.text("lo"), Fake.finish("stop")]
    }))))

  it.effect("comes to what step comes to", () =>
    Effect.gen(function*() {
      const options = { tools: [fast, submit], requestId: "r0" }
      const step = yield* Allm.step("hi", options)
      const events = yield* Stream.runCollect(Allm.streamStep("hi", options))

      assert.deepStrictEqual(resultOf(events), step)
    }).pipe(Effect.provide(Fake.engine({
      respond: () => [Fake.text("well"), ...asks(call("c0", "submit"), call("c1", "fast"))]
    }))))

  it.effect("leaves out what the reader does not want to hear, without losing it", () =>
    Effect.gen(function*() {
      const options = { emitTextDeltas: false, emitToolDeltas: false, mode: "manual" } as const
      const events = yield* Stream.runCollect(Allm.streamStep("hi", options))
      const { response } = resultOf(events)

      assert.isFalse(Chunk.some(events, ({ _tag }) => _tag === "TextDelta" || _tag === "ToolCallDelta"))
      assert.strictEqual(response.outputText, "well")
      assert.deepStrictEqual(response.toolCalls.map(({ arguments: args }) => args), [{ city: "Oslo" }])
    }).pipe(Effect.provide(Fake.engine({
      script: [
        Fake.text("well"),
        Fake.toolCallDelta({ id: "c0", name: "fast", delta: "{\"city\":" }),
        Fake.toolCallDelta({ id: "c0", delta: "\"Oslo\"}" }),
        Fake.finish("tool_calls")
      ]
    }))))
})
