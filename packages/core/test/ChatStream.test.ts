import { Adapter, Allm, Collector, Engine, Event, Fake, Message, Thread, Tool, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Deferred, Effect, Either, Exit, Fiber, Layer, Ref, Schema, Stream, TestClock, Tracer } from "effect"

const call = (id: string, name: string) => Fake.toolCall({ id, name })
const calls = (...entries: ReadonlyArray<Fake.Entry>): Fake.Script => [...entries, Fake.finish("tool_calls")]
const says = (text: string): Fake.Script => [Fake.text(text), Fake.finish("stop")]

const echo = Tool.make("echo", { description: "Says ok", handler: () => "ok" })
const ask = Tool.make("ask", {
  description: "Asks",
  handler: () => ToolResult.askUser("Which?", { choices: ["a", "b"] })
})
const tools = [echo, ask]
const twoTurns = [calls(call("c0", "echo")), says("done")]

const collect = <E, R>(stream: Stream.Stream<Event.Event, E, R>) =>
  Effect.map(Stream.runCollect(stream), Chunk.toReadonlyArray)
const tagsOf = (events: ReadonlyArray<Event.Event>) => events.map((event) => event._tag)
const resultOf = (events: ReadonlyArray<Event.Event>) => {
  const last = events.at(-1)
  return last?._tag === "ChatCompleted" ? last.result : assert.fail(`the last event is ${last?._tag}`)
}

describe("Allm.stream", () => {
  describe("order", () => {
    it.effect("STR-01 tells all of one step before the next, and the chat last", () =>
      Effect.gen(function*() {
        const events = yield* collect(Allm.stream("hi"))

        assert.deepStrictEqual(tagsOf(events), [
          "MessageStarted",
          "ToolCallStarted",
          "ToolCallCompleted",
          "MessageCompleted",
          "ToolExecutionStarted",
          "ToolExecutionCompleted",
          "ToolResultEncoded",
          "StepCompleted",
          "MessageStarted",
          "TextDelta",
          "TextCompleted",
          "MessageCompleted",
          "StepCompleted",
          "ChatCompleted"
        ])
        assert.strictEqual(resultOf(events).haltedReason, "completed")
        assert.lengthOf(resultOf(events).steps, 2)
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: twoTurns }))))

    it.effect("STR-02 tells one step and one chat for one text", () =>
      Effect.gen(function*() {
        const events = yield* collect(Allm.stream("hi"))

        assert.deepStrictEqual(tagsOf(events), [
          "MessageStarted",
          "TextDelta",
          "TextCompleted",
          "MessageCompleted",
          "StepCompleted",
          "ChatCompleted"
        ])
      }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))

    it.effect("STR-11 ends right after the step that haltWhen wants to be the last", () =>
      Effect.gen(function*() {
        const events = yield* collect(Allm.stream("hi", { haltWhen: () => true }))

        assert.deepStrictEqual(tagsOf(events).slice(-3), ["ToolResultEncoded", "StepCompleted", "ChatCompleted"])
        assert.strictEqual(resultOf(events).haltedReason, "halt_when")
        assert.deepStrictEqual(resultOf(events).metadata, { haltWhenStepIndex: 0 })
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: twoTurns }))))

    it.effect("tells text while the model is still speaking", () =>
      Effect.gen(function*() {
        const heard = yield* Deferred.make<void>()
        const fiber = yield* Allm.stream("hi").pipe(
          Stream.runForEach((event) =>
            event._tag === "TextDelta" && event.delta === "a" ? Deferred.succeed(heard, undefined) : Effect.void
          ),
          Effect.fork
        )
        yield* Deferred.await(heard)

        assert.strictEqual(yield* Effect.flatMap(Fake.Fake, (fake) => fake.open), 1)
        yield* Fiber.interrupt(fiber)
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("a"), Fake.delay("1 hour"), ...says("b")] }))))
  })

  describe("stopping early", () => {
    it.effect("STR-03 stops the model when nobody reads any more", () =>
      Effect.gen(function*() {
        const events = yield* collect(Stream.take(Allm.stream("hi"), 1))
        const fake = yield* Fake.Fake

        assert.deepStrictEqual(tagsOf(events), ["MessageStarted"])
        assert.strictEqual(yield* fake.open, 0)
        assert.strictEqual(yield* fake.closed, 1)
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("a"), Fake.delay("1 hour"), ...says("b")] }))))

    it.effect("STR-05 ends quietly right before the chat is told", () =>
      Effect.gen(function*() {
        const events = yield* collect(Stream.takeWhile(Allm.stream("hi"), (event) => event._tag !== "ChatCompleted"))

        assert.strictEqual(events.at(-1)?._tag, "StepCompleted")
      }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))

    it.effect("STR-06 interrupts the tools that run, and asks the model no more", () =>
      Effect.gen(function*() {
        const stopped = yield* Deferred.make<string>()
        const wait = Tool.make("wait", {
          description: "Waits",
          handler: (_, { signal }) =>
            Effect.onInterrupt(Effect.never, () => Deferred.succeed(stopped, signal.aborted ? "aborted" : "not told"))
        })
        const events = yield* Allm.stream("hi", { tools: [wait] }).pipe(
          Stream.takeUntil((event) => event._tag === "ToolExecutionStarted"),
          collect
        )

        assert.strictEqual(events.at(-1)?._tag, "ToolExecutionStarted")
        assert.strictEqual(yield* Deferred.await(stopped), "aborted")
        assert.lengthOf(yield* Fake.requests, 1)
      }).pipe(Effect.provide(Fake.engine({ scripts: [calls(call("c0", "wait")), says("done")] }))))
  })

  describe("questions and manual calls", () => {
    it.effect("STR-07 tells the question, and ends with it in the thread", () =>
      Effect.gen(function*() {
        const events = yield* collect(Allm.stream("hi"))
        const result = resultOf(events)

        assert.deepStrictEqual(tagsOf(events).slice(-5), [
          "ToolExecutionStarted",
          "ToolExecutionCompleted",
          "AskUserRequested",
          "StepCompleted",
          "ChatCompleted"
        ])
        assert.strictEqual(result.haltedReason, "ask_user")
        assert.deepStrictEqual(result.pendingQuestions, [
          { toolCallId: "c0", toolName: "ask", question: "Which?", options: { choices: ["a", "b"] } }
        ])
        assert.deepStrictEqual(result.metadata, {
          pendingQuestion: "Which?",
          pendingToolCallId: "c0",
          askUserOptions: { choices: ["a", "b"] }
        })
        assert.deepStrictEqual(
          result.thread.messages.at(-1),
          Message.assistant("Which?", { metadata: { askUser: true, toolCallId: "c0" } })
        )
      }).pipe(Effect.provide(Fake.engine({ tools, script: calls(call("c0", "ask")) }))))

    it.effect("STR-09 invents no message of the model for the question", () =>
      Effect.gen(function*() {
        const tags = tagsOf(yield* collect(Allm.stream("hi")))

        assert.lengthOf(tags.filter((tag) => tag === "MessageStarted"), 1)
        assert.lengthOf(tags.filter((tag) => tag === "MessageCompleted"), 1)
      }).pipe(Effect.provide(Fake.engine({ tools, script: calls(call("c0", "ask")) }))))

    it.effect("STR-17 keeps the question in the step that asked, without the chat's message", () =>
      Effect.gen(function*() {
        const [step] = resultOf(yield* collect(Allm.stream("hi"))).steps

        assert.deepStrictEqual(step?.halt, { reason: "ask_user", toolCallId: "c0" })
        assert.deepStrictEqual(step?.pendingQuestions.map(({ question }) => question), ["Which?"])
        assert.strictEqual(step?.done, true)
        assert.strictEqual(step?.thread.messages.at(-1)?.content, "<awaiting user response>")
      }).pipe(Effect.provide(Fake.engine({ tools, script: calls(call("c0", "ask")) }))))

    it.effect("STR-10 tells nothing of tools in manual mode", () =>
      Effect.gen(function*() {
        const events = yield* collect(Allm.stream("hi", { mode: "manual" }))
        const result = resultOf(events)

        assert.deepStrictEqual(tagsOf(events), [
          "MessageStarted",
          "ToolCallStarted",
          "ToolCallCompleted",
          "MessageCompleted",
          "StepCompleted",
          "ChatCompleted"
        ])
        assert.strictEqual(result.haltedReason, "manual_tool_calls")
        assert.deepStrictEqual(result.metadata, { manualTurnIndex: 0 })
        assert.deepStrictEqual(result.manualToolCalls, result.finalResponse.toolCalls)
        assert.deepStrictEqual(result.finalResponse.toolCalls.map(({ id }) => id), ["c0"])
      }).pipe(Effect.provide(Fake.engine({ tools, script: calls(call("c0", "echo")) }))))

    it.effect("STR-31 reports the halt that was seen first", () =>
      Effect.gen(function*() {
        const slow = Tool.make("slow", {
          description: "Halts late",
          handler: () => Effect.delay(Effect.succeed(ToolResult.halt("late", 1)), "1 second")
        })
        const fast = Tool.make("fast", { description: "Halts at once", handler: () => ToolResult.halt("early", 2) })
        const fiber = yield* Effect.fork(collect(Allm.stream("hi", { tools: [slow, fast] })))
        yield* TestClock.adjust("1 second")
        const result = resultOf(yield* Fiber.join(fiber))

        assert.strictEqual(result.haltedReason, "early")
        assert.deepStrictEqual(result.metadata, { haltToolCallId: "c1", haltResult: 2 })
        assert.deepStrictEqual(result.steps[0]?.toolResults.map(({ content, toolCallId }) => [toolCallId, content]), [
          ["c0", "1"],
          ["c1", "2"]
        ])
      }).pipe(Effect.provide(Fake.engine({ script: calls(call("c0", "slow"), call("c1", "fast")) }))))
  })

  describe("failures", () => {
    for (const maxTurns of [0, 1.5]) {
      it.effect(`STR-13 refuses ${maxTurns} turns before any event`, () =>
        Effect.gen(function*() {
          const error = yield* Effect.flip(collect(Allm.stream("hi", { maxTurns })))

          assert.strictEqual(
            error.message,
            `validation failed: invalid_options (1 error)\n- $.maxTurns: write a positive whole number, not ${maxTurns}`
          )
          assert.deepStrictEqual(yield* Fake.requests, [])
        }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))
    }

    it.effect("STR-14 refuses an empty thread before any event", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(collect(Allm.stream([])))

        assert.strictEqual(error._tag, "ValidationError")
        assert.deepStrictEqual(yield* Fake.requests, [])
      }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))

    it.effect("STR-15 tells an error inside an answer and goes to its end", () =>
      Effect.gen(function*() {
        const events = yield* collect(Allm.stream("hi"))
        const result = resultOf(events)

        assert.deepStrictEqual(tagsOf(events).slice(8), [
          "MessageStarted",
          "ErrorOccurred",
          "MessageCompleted",
          "StepCompleted",
          "ChatCompleted"
        ])
        assert.strictEqual(result.haltedReason, "error")
        assert.lengthOf(result.steps, 2)
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [twoTurns[0]!, [Fake.error("rate_limited")]] }))))

    it.effect("fails when the first model call does", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(collect(Allm.stream("hi")))

        assert.strictEqual(error._tag, "AdapterError")
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.preflightError("invalid_request")] }))))

    it.effect("STR-29 ends with error, like chat, when a later model call fails", () =>
      Effect.gen(function*() {
        const events = yield* collect(Allm.stream("hi"))
        const result = resultOf(events)

        assert.deepStrictEqual(tagsOf(events).slice(-2), ["StepCompleted", "ChatCompleted"])
        assert.strictEqual(result.haltedReason, "error")
        assert.lengthOf(result.steps, 1)
        assert.strictEqual(result.error?._tag === "AdapterError" && result.error.reason, "no_scripted_response")
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: twoTurns.slice(0, 1) }))))

    it.effect("STR-30 fails, like chat, when the first answer calls an unknown tool", () =>
      Effect.gen(function*() {
        const seen = yield* Ref.make<ReadonlyArray<string>>([])
        const error = yield* Allm.stream("hi").pipe(
          Stream.runForEach((event) => Ref.update(seen, (tags) => [...tags, event._tag])),
          Effect.flip
        )

        assert.strictEqual(error._tag, "UnknownTool")
        assert.deepStrictEqual(yield* Ref.get(seen), [
          "MessageStarted",
          "ToolCallStarted",
          "ToolCallCompleted",
          "MessageCompleted"
        ])
      }).pipe(Effect.provide(Fake.engine({ tools, script: calls(call("c0", "nope")) }))))

    it.effect("STR-30 ends with error, like chat, when a later answer calls an unknown tool", () =>
      Effect.gen(function*() {
        const result = resultOf(yield* collect(Allm.stream("hi")))

        assert.strictEqual(result.haltedReason, "error")
        assert.lengthOf(result.steps, 1)
        assert.strictEqual(result.error?._tag, "UnknownTool")
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [twoTurns[0]!, calls(call("c1", "nope"))] }))))
  })

  describe("is chat, told as it happens", () => {
    const thread = Thread.make([Message.user("hi")])
    const same = (name: string, scripts: ReadonlyArray<Fake.Script>, options: Allm.Options<never> = {}) =>
      it.effect(name, () =>
        Effect.gen(function*() {
          const engine = Fake.engine({ tools, scripts })
          const given = { ...options, requestId: "r0" }
          const told = yield* Effect.provide(Collector.collect(Allm.stream(thread, given)), engine)
          const result = yield* Effect.provide(Allm.chat(thread, given), engine)

          assert.deepStrictEqual(Either.getOrThrow(Collector.toChatResult(told)), result)
        }))

    same("STR-18 over two turns", twoTurns)
    same("STR-19 in manual mode", twoTurns, { mode: "manual" })
    same("with a question", [calls(call("c0", "ask"), call("c1", "echo"))])
    same("out of turns", twoTurns, { maxTurns: 1 })
    same("with an error inside an answer", [twoTurns[0]!, [Fake.text("do"), Fake.error("network_error")]])
    same("with a model call that fails", [twoTurns[0]!, [Fake.preflightError("invalid_request")]])
    same("without deltas", twoTurns, { emitTextDeltas: false, emitToolDeltas: false })
  })

  it.effect("STR-21 is one span, with the request id of everything in it", () =>
    Effect.gen(function*() {
      const spans: Array<Tracer.Span> = []
      const native = yield* Effect.tracer
      const tracer = Tracer.make({
        span: (...args) => {
          const span = native.span(...args)
          spans.push(span)
          return span
        },
        context: (f, fiber) => native.context(f, fiber)
      })
      yield* Effect.withTracer(collect(Allm.stream("hi", { requestId: "r0" })), tracer)

      assert.deepStrictEqual(spans.map((span) => span.name), [
        "allm.chat",
        "allm.step",
        "allm.generate",
        "allm.tool",
        "allm.step",
        "allm.generate"
      ])
      assert.deepStrictEqual(spans.map((span) => span.attributes.get("allm.request.id")), Array.from(spans, () => "r0"))
      assert.deepStrictEqual(
        spans.map((span) => span.status._tag === "Ended" && Exit.isSuccess(span.status.exit)),
        Array.from(spans, () => true)
      )
    }).pipe(Effect.provide(Fake.engine({ tools, scripts: twoTurns }))))

  describe("what is told", () => {
    const deltas = [
      Fake.toolCallDelta({ id: "c0", name: "echo", delta: "{" }),
      Fake.toolCallDelta({ id: "c0", delta: "}" })
    ]

    it.effect("STR-22 leaves out text deltas, not the text", () =>
      Effect.gen(function*() {
        const events = yield* collect(Allm.stream("hi", { emitTextDeltas: false }))

        assert.deepStrictEqual(tagsOf(events).slice(0, 3), ["MessageStarted", "TextCompleted", "MessageCompleted"])
        assert.strictEqual(resultOf(events).finalResponse.outputText, "done")
      }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))

    it.effect("STR-22 keeps the text of a model that only sends deltas", () =>
      Effect.gen(function*() {
        const events = yield* collect(Allm.stream("hi", { emitTextDeltas: false }))

        assert.deepStrictEqual(tagsOf(events), ["MessageCompleted", "StepCompleted", "ChatCompleted"])
        assert.strictEqual(resultOf(events).finalResponse.outputText, "done")
      }).pipe(Effect.provide(
        Engine.layer().pipe(Layer.provide(Adapter.layer(Adapter.make((_request, emit) =>
          emit([
            { _tag: "TextDelta", delta: "do" },
            { _tag: "TextDelta", delta: "ne" },
            { _tag: "MessageCompleted", finishReason: "stop", metadata: {} }
          ])
        ))))
      )))

    it.effect("STR-23 leaves out argument deltas, not the call", () =>
      Effect.gen(function*() {
        const events = yield* collect(Allm.stream("hi", { emitToolDeltas: false, maxTurns: 1 }))

        assert.deepStrictEqual(tagsOf(events).slice(0, 4), [
          "MessageStarted",
          "ToolCallStarted",
          "ToolCallCompleted",
          "MessageCompleted"
        ])
        assert.deepStrictEqual(resultOf(events).finalResponse.toolCalls[0]?.arguments, {})
      }).pipe(Effect.provide(Fake.engine({ tools, script: calls(...deltas) }))))

    it.effect("STR-25 tells raw chunks when asked to", () =>
      Effect.gen(function*() {
        const events = yield* collect(Allm.stream("hi", { includeRawChunks: true }))

        assert.deepStrictEqual(events.flatMap((event) => event._tag === "RawChunk" ? [event.chunk] : []), [1, { b: 2 }])
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.raw(1), Fake.raw({ b: 2 }), ...says("done")] }))))

    it.effect("STR-25 keeps raw chunks to itself by default", () =>
      Effect.gen(function*() {
        const tags = tagsOf(yield* collect(Allm.stream("hi")))

        assert.notInclude(tags, "RawChunk")
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.raw(1), ...says("done")] }))))

    it.effect("STR-26 tells onEvent what the model does, before anything is left out", () =>
      Effect.gen(function*() {
        const seen: Array<string> = []
        yield* Stream.runDrain(Allm.stream("hi", {
          emitTextDeltas: false,
          emitToolDeltas: false,
          onEvent: (event) => {
            seen.push(event._tag)
          }
        }))

        assert.deepStrictEqual(seen, [
          "MessageStarted",
          "ToolCallStarted",
          "ToolCallDelta",
          "ToolCallDelta",
          "ToolCallCompleted",
          "MessageCompleted",
          "MessageStarted",
          "RawChunk",
          "TextDelta",
          "TextCompleted",
          "MessageCompleted"
        ])
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [calls(...deltas), [Fake.raw(1), ...says("done")]] }))))

    it.effect("STR-27 fails with everything up to there when onEvent throws", () =>
      Effect.gen(function*() {
        const error = yield* Allm.stream("hi", {
          onEvent: (event) => {
            if (event._tag === "TextDelta") throw new Error("deaf")
          }
        }).pipe(Stream.runDrain, Effect.flip)

        assert.strictEqual(error._tag, "CallbackFailed")
        if (error._tag !== "CallbackFailed") return
        assert.strictEqual(error.callback, "onEvent")
        assert.lengthOf(error.result.steps, 1)
        assert.match(String(error.cause), /deaf/)
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: twoTurns }))))

    it.effect("every event goes to JSON and back", () =>
      Effect.gen(function*() {
        const events = yield* collect(Allm.stream("hi", { includeRawChunks: true }))
        const Line = Schema.parseJson(Event.Event)

        for (const event of events) {
          const back = yield* Effect.flatMap(Schema.encode(Line)(event), Schema.decode(Line))
          assert.deepStrictEqual(back, event)
        }
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [twoTurns[0]!, calls(call("c1", "ask"), ...deltas)] }))))
  })
})
