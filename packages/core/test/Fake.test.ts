import { Adapter, AdapterError, Allm, Fake, Message, Request, Tool } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { assertEquals } from "@effect/vitest/utils"
import { Chunk, Effect, Fiber, Layer, Stream, TestClock } from "effect"

const hello: Fake.Script = [Fake.text("hi"), Fake.finish("stop")]
const request = Request.make({ messages: [Message.user("hi")] })

const say = (input: string) => Effect.map(Allm.generate(input), (response) => response.outputText)

const script = (...entries: ReadonlyArray<Fake.Entry>) => Fake.engine({ script: entries, retry: false })

const built = (...scripts: ReadonlyArray<Fake.Script>) =>
  Effect.map(Layer.build(Fake.engine({ scripts })), (context) => Effect.provide(say("hi"), context))

const eventsOf = (...entries: ReadonlyArray<Fake.Entry>) =>
  Stream.runCollect(Adapter.stream(request)).pipe(
    Effect.map(Chunk.toReadonlyArray),
    Effect.provide(Fake.layer({ script: entries }))
  )

const noScript = (call: number) =>
  new AdapterError.AdapterError({
    reason: "no_scripted_response",
    provider: "fake",
    detail: `no scripted response is left for model call ${call}; script one more call, or check why it was made`
  })

const echo = Tool.make("echo", { description: "Says it again", handler: (args) => args })

describe("Fake", () => {
  describe("scripts", () => {
    it.effect("FAKE-01 answers with its script", () =>
      Effect.gen(function*() {
        const response = yield* Allm.generate("hi")

        assert.strictEqual(response.outputText, "hi")
        assert.strictEqual(response.finishReason, "stop")
        assert.deepStrictEqual(response.message, Message.assistant("hi", { metadata: { finishReason: "stop" } }))
      }).pipe(Effect.provide(Fake.engine({ script: hello }))))

    it.effect("FAKE-02 answers the same from a list of one script", () =>
      Effect.gen(function*() {
        const response = yield* Allm.generate("hi")

        assert.strictEqual(response.outputText, "hi")
        assert.strictEqual(response.finishReason, "stop")
      }).pipe(Effect.provide(Fake.engine({ scripts: [hello] }))))

    it.effect("FAKE-04 has nothing left for a second call", () =>
      Effect.gen(function*() {
        yield* Allm.generate("hi")
        const error = yield* Effect.flip(Allm.generate("again"))

        assertEquals(error, noScript(2))
      }).pipe(Effect.provide(Fake.engine({ script: hello }))))

    it.effect("FAKE-05 goes one script further with every call", () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* say("a"), "one")
        assert.strictEqual(yield* say("b"), "two")
        assertEquals(yield* Effect.flip(say("c")), noScript(3))
      }).pipe(Effect.provide(Fake.engine({
        scripts: [[Fake.text("one"), Fake.finish("stop")], [Fake.text("two"), Fake.finish("stop")]]
      }))))

    it.effect("FAKE-08 an empty script is an empty answer, and says so", () =>
      Effect.gen(function*() {
        const response = yield* Allm.generate("hi")

        assert.strictEqual(response.outputText, "")
        assert.strictEqual(response.finishReason, "stop")
        assert.deepStrictEqual(response.metadata, { emptyScript: true })
      }).pipe(Effect.provide(script())))

    it.effect("FAKE-09 an empty list of scripts answers nothing", () =>
      Effect.gen(function*() {
        assertEquals(yield* Effect.flip(Allm.generate("hi")), noScript(1))
      }).pipe(Effect.provide(Fake.engine({ scripts: [] }))))

    it.effect("FAKE-13 does not care what it is asked", () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* say("one thing"), "hi")
        assert.strictEqual(yield* say("quite another"), "hi")
      }).pipe(Effect.provide(Fake.engine({ scripts: [hello, hello] }))))

    it.effect("answers by what was asked, as often as one asks", () =>
      Effect.gen(function*() {
        const said = yield* Effect.forEach(["a", "b", "c"], say)

        assert.deepStrictEqual(said, ["0: a", "1: b", "2: c"])
      }).pipe(Effect.provide(Fake.engine({
        respond: ({ messages }, index) => [
          Fake.text(`${index}: ${messages.map(Message.toText).join()}`),
          Fake.finish("stop")
        ]
      }))))

    it.effect("gives calls at once one script each", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.fork(Effect.forEach(["a", "b", "c"], say, { concurrency: "unbounded" }))
        yield* TestClock.adjust("20 millis")

        assert.deepStrictEqual(yield* Fiber.join(fiber), ["one", "two", "three"])
      }).pipe(Effect.provide(Fake.engine({
        delay: "10 millis",
        scripts: ["one", "two", "three"].map((text) => [Fake.text(text), Fake.finish("stop")])
      }))))
  })

  describe("cursors", () => {
    it.scoped("FAKE-14 keeps engines with different scripts apart", () =>
      Effect.gen(function*() {
        const a = yield* built([Fake.text("a0")], [Fake.text("a1")])
        const b = yield* built([Fake.text("b0")], [Fake.text("b1")])

        assert.deepStrictEqual([yield* a, yield* b, yield* a, yield* b], ["a0", "b0", "a1", "b1"])
      }))

    it.scoped("FAKE-16 keeps engines with equal scripts apart", () =>
      Effect.gen(function*() {
        const scripts = [[Fake.text("first")], [Fake.text("second")]]
        const a = yield* built(...scripts)
        const b = yield* built(...scripts)

        assert.deepStrictEqual([yield* a, yield* a, yield* b], ["first", "second", "first"])
      }))

    it.effect("FAKE-17 shares one cursor between fibers that share the layer", () =>
      Effect.gen(function*() {
        const first = yield* Effect.flatMap(Effect.fork(say("hi")), Fiber.join)
        const second = yield* Effect.flatMap(Effect.fork(say("hi")), Fiber.join)

        assert.deepStrictEqual([first, second], ["first", "second"])
      }).pipe(Effect.provide(Fake.engine({ scripts: [[Fake.text("first")], [Fake.text("second")]] }))))

    it.effect("FAKE-18 starts anew each time the same layer is built", () =>
      Effect.gen(function*() {
        const engine = Fake.engine({ script: hello })

        assert.strictEqual(yield* Effect.provide(say("hi"), engine), "hi")
        assert.strictEqual(yield* Effect.provide(say("hi"), engine), "hi")
      }))
  })

  describe("events", () => {
    it.effect("FAKE-20 tells text in deltas, then whole, then the end", () =>
      Effect.gen(function*() {
        const events = yield* eventsOf(Fake.text("a"), Fake.text("b"), Fake.finish("stop"))

        assert.deepStrictEqual(events, [
          { _tag: "MessageStarted" },
          { _tag: "TextDelta", delta: "a" },
          { _tag: "TextDelta", delta: "b" },
          { _tag: "TextCompleted", text: "ab" },
          { _tag: "MessageCompleted", finishReason: "stop", metadata: {} }
        ])
      }))

    it.effect("FAKE-21 tells a call, and no text when there is none", () =>
      Effect.gen(function*() {
        const events = yield* eventsOf(
          Fake.toolCall({ id: "c0", name: "echo", arguments: { a: 1 } }),
          Fake.finish("tool_calls")
        )

        assert.deepStrictEqual(events, [
          { _tag: "MessageStarted" },
          { _tag: "ToolCallStarted", toolCallId: "c0", toolName: "echo" },
          { _tag: "ToolCallCompleted", toolCall: { id: "c0", name: "echo", arguments: { a: 1 }, metadata: {} } },
          { _tag: "MessageCompleted", finishReason: "tool_calls", metadata: {} }
        ])
      }))

    it.effect("FAKE-22 without a finish the answer ends without a reason", () =>
      Effect.gen(function*() {
        const events = yield* eventsOf(Fake.text("a"))

        assert.deepStrictEqual(events.at(-1), { _tag: "MessageCompleted", metadata: {} })
      }))

    it.effect("tells reasoning and raw chunks where they stand", () =>
      Effect.gen(function*() {
        const events = yield* eventsOf(Fake.reasoning("hm"), Fake.raw({ n: 1 }), Fake.text("a"), Fake.finish("stop"))

        assert.deepStrictEqual(events.slice(1, 4), [
          { _tag: "ReasoningDelta", delta: "hm" },
          { _tag: "RawChunk", chunk: { n: 1 } },
          { _tag: "TextDelta", delta: "a" }
        ])
      }))

    it.effect("puts the deltas of calls together, each for itself", () =>
      Effect.gen(function*() {
        const response = yield* Allm.generate("hi")

        assert.deepStrictEqual(response.toolCalls, [
          { id: "c0", name: "echo", arguments: { a: 1 }, rawArguments: "{\"a\":1}", metadata: {} },
          { id: "c1", name: "echo", rawArguments: "{\"b\":", metadata: {} }
        ])
      }).pipe(Effect.provide(script(
        Fake.toolCallDelta({ id: "c0", name: "echo", delta: "{\"a\"" }),
        Fake.toolCallDelta({ id: "c1", name: "echo", delta: "{\"b\":" }),
        Fake.toolCallDelta({ id: "c0", delta: ":1}" }),
        Fake.finish("tool_calls")
      ))))

    it.effect("HLP-09 keeps broken arguments as text, and no handler sees them", () =>
      Effect.gen(function*() {
        const { thread } = yield* Allm.chat("hi", { tools: [echo] })

        assert.deepStrictEqual(thread.messages[1], {
          role: "assistant",
          content: "",
          toolCalls: [{ id: "c0", name: "echo", rawArguments: "{\"a\":", metadata: {} }],
          metadata: { finishReason: "tool_calls" }
        })
        assert.strictEqual(thread.messages[2]?.role === "tool" && thread.messages[2].isError, true)
      }).pipe(Effect.provide(Fake.engine({
        scripts: [
          [Fake.toolCall({ id: "c0", name: "echo", rawArguments: "{\"a\":" }), Fake.finish("tool_calls")],
          hello
        ]
      }))))

    it.effect("FAKE-32 a call without a finish is not run", () =>
      Effect.gen(function*() {
        const step = yield* Allm.step("hi", { tools: [echo] })

        assert.strictEqual(step.response.finishReason, undefined)
        assert.deepStrictEqual(step.response.toolCalls.map((call) => call.id), ["c0"])
        assert.deepStrictEqual(step.toolResults, [])
        assert.strictEqual(step.done, false)
      }).pipe(Effect.provide(script(Fake.toolCall({ id: "c0", name: "echo" })))))
  })

  describe("errors", () => {
    it.effect("FAKE-10 keeps what came before an error, and the error's cause", () =>
      Effect.gen(function*() {
        const error = new AdapterError.AdapterError({
          reason: "unknown",
          provider: "fake",
          detail: "scripted error",
          cause: "boom"
        })
        const events = yield* eventsOf(Fake.text("half"), Fake.error("boom"))
        const response = yield* Effect.provide(Allm.generate("hi"), script(Fake.text("half"), Fake.error("boom")))

        assertEquals(events.flatMap((event) => event._tag === "ErrorOccurred" ? [event.error] : [])[0], error)
        assert.strictEqual(response.outputText, "half")
        assert.strictEqual(response.finishReason, "error")
        assert.deepStrictEqual(response.metadata["error"], {
          _tag: "AdapterError",
          reason: "unknown",
          message: "model call failed (fake): unknown: scripted error"
        })
      }))

    it.effect("names a known reason as such", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Allm.generate("hi"))

        assertEquals(error, new AdapterError.AdapterError({ reason: "rate_limited", provider: "fake" }))
      }).pipe(Effect.provide(script(Fake.preflightError("rate_limited")))))

    it.effect("FAKE-24 fails before the first event with the error given", () =>
      Effect.gen(function*() {
        const error = new AdapterError.AdapterError({ reason: "authentication_failed", status: 401 })
        const layer = Fake.layer({ script: [Fake.preflightError(error), ...hello] })
        const events: Array<string> = []
        const failed = yield* Adapter.stream(request).pipe(
          Stream.runForEach((event) => Effect.sync(() => events.push(event._tag))),
          Effect.flip,
          Effect.provide(layer)
        )

        assert.strictEqual(failed, error)
        assert.deepStrictEqual(events, [])
      }))

    it.effect("ERR-07 goes on after an error in the middle", () =>
      Effect.gen(function*() {
        const events = yield* eventsOf(Fake.text("a"), Fake.error("timeout"), Fake.text("b"))

        assert.deepStrictEqual(events.map((event) => event._tag), [
          "MessageStarted",
          "TextDelta",
          "ErrorOccurred",
          "TextDelta",
          "TextCompleted",
          "MessageCompleted"
        ])
      }))
  })

  describe("time", () => {
    it.effect("FAKE-25 waits on the Clock, but not before the first event", () =>
      Effect.gen(function*() {
        const seen: Array<string> = []
        const fiber = yield* Adapter.stream(request).pipe(
          Stream.runForEach((event) => Effect.sync(() => seen.push(event._tag))),
          Effect.provide(Fake.layer({
            script: [Fake.delay("10 seconds"), Fake.text("a"), Fake.delay("5 seconds"), ...hello]
          })),
          Effect.fork
        )

        yield* TestClock.adjust("9999 millis")
        assert.deepStrictEqual(seen, ["MessageStarted"])
        yield* TestClock.adjust("1 millis")
        assert.deepStrictEqual(seen, ["MessageStarted", "TextDelta"])
        yield* TestClock.adjust("4999 millis")
        assert.strictEqual(seen.length, 2)
        yield* TestClock.adjust("1 millis")
        yield* Fiber.join(fiber)
        assert.strictEqual(seen.at(-1), "MessageCompleted")
      }))

    it.effect("takes its time before every entry", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.fork(say("hi"))

        yield* TestClock.adjust("1999 millis")
        assert.strictEqual(fiber.unsafePoll(), null)
        yield* TestClock.adjust("1 millis")
        assert.strictEqual(yield* Fiber.join(fiber), "hi")
      }).pipe(Effect.provide(Fake.engine({ script: hello, delay: "1 seconds" }))))
  })

  describe("usage", () => {
    it.effect("FAKE-28 the usage of a script is the response's", () =>
      Effect.gen(function*() {
        const response = yield* Allm.generate("hi")

        assert.deepStrictEqual(response.usage, { inputTokens: 3, outputTokens: 4 })
      }).pipe(Effect.provide(script(Fake.usage({ inputTokens: 3, outputTokens: 4 }), ...hello))))

    it.effect("FAKE-29 the usage of the model beats the script's", () =>
      Effect.gen(function*() {
        const response = yield* Allm.generate("hi")

        assert.deepStrictEqual(response.usage, { inputTokens: 1 })
      }).pipe(Effect.provide(Fake.engine({
        script: [Fake.usage({ inputTokens: 3, outputTokens: 4 }), ...hello],
        usage: { inputTokens: 1 }
      }))))
  })

  describe("what it has seen", () => {
    it.effect("FAKE-26 counts an answer as closed when read to the end and when left early", () =>
      Effect.gen(function*() {
        const fake = yield* Fake.Fake
        const counts = Effect.all([fake.open, fake.closed])
        yield* Stream.runDrain(Adapter.stream(request))
        assert.deepStrictEqual(yield* counts, [0, 1])

        const fiber = yield* Effect.fork(Stream.runDrain(Adapter.stream(request)))
        yield* TestClock.adjust("1 seconds")
        assert.deepStrictEqual(yield* counts, [1, 1])

        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(yield* counts, [0, 2])

        yield* Stream.runDrain(Stream.take(Adapter.stream(request), 1))
        assert.deepStrictEqual(yield* counts, [0, 3])
      }).pipe(Effect.provide(Fake.layer({
        scripts: [hello, [Fake.delay("1 minute"), ...hello], [Fake.delay("1 minute"), ...hello]]
      }))))

    it.effect("FAKE-30 tells of a request before it answers", () => {
      const order: Array<string> = []
      return Effect.gen(function*() {
        yield* Stream.runForEach(
          Adapter.stream(Request.make({ messages: [Message.user("hi")], model: "small", options: { seed: 7 } })),
          (event) => Effect.sync(() => order.push(event._tag))
        )

        assert.deepStrictEqual(order.slice(0, 2), ["small {\"seed\":7}", "MessageStarted"])
      }).pipe(Effect.provide(Fake.layer({
        script: hello,
        record: ({ model, options }) => Effect.sync(() => order.push(`${model} ${JSON.stringify(options)}`))
      })))
    })

    it.effect("keeps every request for its tests, the failed ones too", () =>
      Effect.gen(function*() {
        yield* Allm.generate("one")
        yield* Effect.flip(Allm.generate("two"))
        const requests = yield* Fake.requests

        assert.deepStrictEqual(requests.map(({ messages }) => messages.map(Message.toText)), [["one"], ["two"]])
      }).pipe(Effect.provide(Fake.engine({ script: hello }))))
  })

  describe("construction", () => {
    it("refuses what is no script, and says what is one", () => {
      assert.throws(
        () => Fake.layer({ script: "hi" as unknown as Fake.Script }),
        "- $.script: write a list of entries such as [Fake.text(\"hi\"), Fake.finish(\"stop\")], not a string"
      )
      assert.throws(
        () => Fake.layer({ scripts: [hello, ["hi"] as unknown as Fake.Script] }),
        "- $.scripts[1]: write a list of entries"
      )
    })

    it("refuses a script and scripts together", () => {
      assert.throws(
        () => Fake.layer({ script: hello, scripts: [hello] }),
        "- $.scripts: write either script or scripts, not both"
      )
    })

    it("refuses a delay that is none", () => {
      assert.throws(() => Fake.layer({ script: hello, delay: -1 }), "- $.delay: write a positive duration")
    })

    it("refuses an option it does not have", () => {
      assert.throws(() => Fake.layer({ scirpt: hello } as object), "$.scirpt: there is no such option")
    })

    it("refuses the wrong options of its engine at once", () => {
      assert.throws(
        () => Fake.engine({ script: hello, maxTurns: 0 }),
        "- $.maxTurns: write a positive whole number, not 0"
      )
    })
  })
})
