import {
  AdapterError,
  Allm,
  Collector,
  Event,
  Fake,
  Message,
  type Response,
  Thread,
  Tool,
  ToolCall,
  ToolResult
} from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { assertEquals } from "@effect/vitest/utils"
import { Arbitrary, Chunk, Effect, Either, FastCheck, Stream } from "effect"

const thread = Thread.make([Message.user("hi")])

const collected = (...events: ReadonlyArray<Event.Event>) => events.reduce(Collector.add, Collector.make({ thread }))

const responseOf = (...events: ReadonlyArray<Event.Event>) => Collector.toResponse(collected(...events))
const stepOf = (...events: ReadonlyArray<Event.Event>) =>
  Either.getOrThrow(Collector.toStepResult(collected(...events)))
const chatOf = (...events: ReadonlyArray<Event.Event>) =>
  Either.getOrThrow(Collector.toChatResult(collected(...events)))

const problemOf = <A>(result: Either.Either<A, Error>) => Either.getOrThrow(Either.flip(result)).message

const delta = (text: string): Event.Event => ({ _tag: "TextDelta", delta: text })
const started = (toolCallId: string): Event.Event => ({ _tag: "ToolCallStarted", toolCallId, toolName: "echo" })
const piece = (toolCallId: string, text: string): Event.Event => ({ _tag: "ToolCallDelta", toolCallId, delta: text })
const completed = (id: string, args: unknown = {}): Event.Event => ({
  _tag: "ToolCallCompleted",
  toolCall: ToolCall.make({ id, name: "echo", arguments: args })
})
const finished = (finishReason: "stop" | "tool_calls" | "length" | "content_filter" | "other"): Event.Event => ({
  _tag: "MessageCompleted",
  finishReason,
  metadata: {}
})
const encoded = (toolCallId: string, content: string): Event.Event => ({
  _tag: "ToolResultEncoded",
  toolCallId,
  toolName: "echo",
  content,
  isError: false
})
const halted = (toolCallId: string, reason: string): Event.Event => ({
  _tag: "ToolHalt",
  toolCallId,
  toolName: "echo",
  reason,
  result: reason,
  content: reason,
  isError: false
})
const unavailable = new AdapterError.AdapterError({ reason: "provider_unavailable" })
const failed: Event.Event = { _tag: "ErrorOccurred", error: unavailable }
const summary = { _tag: "AdapterError", reason: "provider_unavailable", message: unavailable.message }

const nothing: Response.Response = {
  message: { role: "assistant", content: "", toolCalls: [], metadata: {} },
  outputText: "",
  toolCalls: [],
  usage: {},
  metadata: {}
}

const echo = Tool.make("echo", { description: "Says it again", handler: (args) => args })
const ask = Tool.make("ask", { description: "Asks", handler: () => ToolResult.askUser("Sure?") })

const twoTurns = (tool: string) => [
  [
    Fake.text("let me see"),
    Fake.toolCall({ id: "c0", name: tool, arguments: { a: 1 } }),
    Fake.usage({ inputTokens: 1, outputTokens: 2 }),
    Fake.finish("tool_calls")
  ],
  [Fake.text("done"), Fake.usage({ inputTokens: 10, outputTokens: 20 }), Fake.finish("stop")]
]

const eventsOf = (scripts: ReadonlyArray<Fake.Script>, tool: typeof echo | typeof ask = echo) =>
  Stream.runCollect(Allm.stream(thread, { tools: [tool] })).pipe(
    Effect.map(Chunk.toReadonlyArray),
    Effect.provide(Fake.engine({ scripts }))
  )

describe("Collector", () => {
  describe("toResponse", () => {
    it("COL-16 is empty before the first event", () => {
      assert.deepStrictEqual(Collector.toResponse(Collector.make()), nothing)
    })

    it("COL-01 is still empty after the start", () => {
      assert.deepStrictEqual(responseOf({ _tag: "MessageStarted" }), nothing)
    })

    it("takes id and model from the start", () => {
      const { id, model } = responseOf({ _tag: "MessageStarted", id: "msg_1", model: "small" })

      assert.deepStrictEqual([id, model], ["msg_1", "small"])
    })

    it("COL-02 joins deltas", () => {
      assert.strictEqual(responseOf(delta("hel"), delta("lo")).outputText, "hello")
    })

    it("the whole of a text stands above its deltas", () => {
      assert.strictEqual(responseOf(delta("hel"), { _tag: "TextCompleted", text: "hello" }).outputText, "hello")
    })

    it("joins blocks in the order they began", () => {
      const block = (id: string, text: string): Event.Event => ({ _tag: "TextDelta", id, delta: text })
      const { outputText } = responseOf(block("a", "1"), block("b", "3"), block("a", "2"), {
        _tag: "TextCompleted",
        id: "b",
        text: "4"
      })

      assert.strictEqual(outputText, "124")
    })

    it("keeps reasoning apart from the text", () => {
      const response = responseOf({ _tag: "ReasoningDelta", delta: "h" }, { _tag: "ReasoningDelta", delta: "m" })

      assert.deepStrictEqual([response.outputText, response.metadata], ["", { reasoning: "hm" }])
    })

    it("COL-04 a call that began has no arguments yet", () => {
      assert.deepStrictEqual(responseOf(started("c0")).toolCalls, [
        { id: "c0", name: "echo", rawArguments: "", metadata: {} }
      ])
    })

    it("COL-05 keeps the order of calls", () => {
      const { toolCalls } = responseOf(started("c2"), started("c0"), started("c1"))

      assert.deepStrictEqual(toolCalls.map(({ id }) => id), ["c2", "c0", "c1"])
    })

    it("COL-06 joins the pieces of a call", () => {
      const { toolCalls } = responseOf(started("c0"), piece("c0", "{\"a\""), piece("c0", ":1}"))

      assert.deepStrictEqual(toolCalls, [{ id: "c0", name: "echo", rawArguments: "{\"a\":1}", metadata: {} }])
    })

    it("reads the pieces of a call once the message is complete", () => {
      const { toolCalls } = responseOf(started("c0"), piece("c0", "{\"a\":1}"), finished("tool_calls"))

      assert.deepStrictEqual(toolCalls, [
        { id: "c0", name: "echo", arguments: { a: 1 }, rawArguments: "{\"a\":1}", metadata: {} }
      ])
    })

    it("a piece of a call that never began is kept without a name", () => {
      assert.deepStrictEqual(responseOf(piece("c0", "{")).toolCalls, [
        { id: "c0", name: "", rawArguments: "{", metadata: {} }
      ])
    })

    it("COL-08 a completed call stands above its pieces", () => {
      const { toolCalls } = responseOf(started("c0"), piece("c0", "garbage"), completed("c0", { a: 1 }))

      assert.deepStrictEqual(toolCalls, [{ id: "c0", name: "echo", arguments: { a: 1 }, metadata: {} }])
    })

    it("a call told twice is one call", () => {
      const { toolCalls } = responseOf(started("c0"), started("c0"), completed("c0"), completed("c0"))

      assert.deepStrictEqual(toolCalls.map(({ id }) => id), ["c0"])
    })

    it("COL-09 knows why the message ended, and what it was", () => {
      const message = Message.assistant("hi", { metadata: { signature: "s" } })
      const response = responseOf({ _tag: "MessageCompleted", finishReason: "stop", message, metadata: {} })

      assert.strictEqual(response.finishReason, "stop")
      assert.strictEqual(response.outputText, "hi")
      assert.deepStrictEqual(
        response.message,
        Message.assistant("hi", {
          metadata: { signature: "s", finishReason: "stop" }
        })
      )
    })

    it("COL-10 stays an error when the end tells no reason", () => {
      const response = responseOf(failed, { _tag: "MessageCompleted", metadata: {} })

      assert.strictEqual(response.finishReason, "error")
    })

    it("COL-13 leaves raw chunks alone, also those that look like usage", () => {
      const chunk = { usage: { input_tokens: 3, unheard_of: 4 } }

      assert.deepStrictEqual(responseOf({ _tag: "RawChunk", chunk }), nothing)
    })

    it("COL-17 an error is its reason to finish, and in the metadata", () => {
      const response = responseOf(delta("half"), failed)

      assert.deepStrictEqual([response.outputText, response.finishReason], ["half", "error"])
      assert.deepStrictEqual(response.metadata, { error: summary })
    })

    it("COL-14 keeps an error of any kind", () => {
      const response = responseOf({ _tag: "ErrorOccurred", error: { code: 7 } })

      assert.strictEqual(response.finishReason, "error")
      assert.deepStrictEqual(response.metadata, { error: { code: 7 } })
    })

    it("COL-28 takes the usage of the end", () => {
      const response = responseOf({ _tag: "MessageCompleted", usage: { inputTokens: 3 }, metadata: { a: 1 } })

      assert.deepStrictEqual([response.usage, response.metadata], [{ inputTokens: 3 }, { a: 1 }])
    })

    it("carries the request's id", () => {
      assert.strictEqual(Collector.toResponse(Collector.make({ requestId: "r1" })).requestId, "r1")
    })

    it("is the last step's between two steps", () => {
      const step = stepOf(delta("one"), finished("tool_calls"))
      const between = collected(delta("one"), finished("tool_calls"), { _tag: "StepCompleted", result: step })

      assert.strictEqual(Collector.toResponse(between).outputText, "one")
      assert.strictEqual(Collector.toResponse(Collector.add(between, delta("two"))).outputText, "two")
    })
  })

  describe("toStepResult", () => {
    it("COL-18 goes on after tool calls", () => {
      assert.strictEqual(stepOf(completed("c0"), finished("tool_calls")).done, false)
    })

    it.each(["stop", "length", "content_filter"] as const)("is done after %s", (reason) => {
      assert.strictEqual(stepOf(finished(reason)).done, true)
    })

    it("is done after an error", () => {
      assert.strictEqual(stepOf(failed).done, true)
    })

    it("COL-20 goes on when there is no reason, or another one", () => {
      assert.strictEqual(stepOf(delta("a")).done, false)
      assert.strictEqual(stepOf(finished("other")).done, false)
    })

    it("COL-24 appends what the model and its tools said", () => {
      const step = stepOf(
        completed("c0"),
        completed("c1"),
        finished("tool_calls"),
        encoded("c1", "b"),
        encoded("c0", "a")
      )

      assert.deepStrictEqual(step.toolResults, [Message.tool("c0", "a"), Message.tool("c1", "b")])
      assert.deepStrictEqual(step.thread.messages.map(({ role }) => role), ["user", "assistant", "tool", "tool"])
    })

    it("COL-25 of two halts the first one counts, and both have their messages", () => {
      const step = stepOf(
        completed("c0"),
        completed("c1"),
        finished("tool_calls"),
        halted("c1", "first"),
        halted("c0", "second")
      )

      assert.deepStrictEqual(step.halt, { reason: "first", toolCallId: "c1", result: "first" })
      assert.deepStrictEqual(step.toolResults, [Message.tool("c0", "second"), Message.tool("c1", "first")])
      assert.strictEqual(step.done, true)
    })

    it("COL-26 a halt without content waits for approval", () => {
      const waiting: Event.Event = {
        _tag: "ToolHalt",
        toolCallId: "c0",
        toolName: "echo",
        reason: "approval",
        isError: false
      }
      const step = stepOf(completed("c0"), finished("tool_calls"), waiting)

      assert.deepStrictEqual(step.toolResults, [])
      assert.deepStrictEqual(step.pendingApprovals.map(({ toolCall }) => toolCall.id), ["c0"])
    })

    it("keeps every question", () => {
      const question = (toolCallId: string): Event.Event => ({
        _tag: "AskUserRequested",
        toolCallId,
        toolName: "ask",
        question: `${toolCallId}?`,
        options: {}
      })
      const step = stepOf(completed("c0"), completed("c1"), finished("tool_calls"), question("c1"), question("c0"))

      assert.deepStrictEqual(step.pendingQuestions.map((pending) => pending.question), ["c1?", "c0?"])
      assert.deepStrictEqual(step.toolResults.map(({ content }) => content), [
        "<awaiting user response>",
        "<awaiting user response>"
      ])
    })

    it("lists all calls in manual mode", () => {
      const events = [completed("c0"), finished("tool_calls")]
      const collector = events.reduce(Collector.add, Collector.make({ thread, mode: "manual" }))
      const step = Either.getOrThrow(Collector.toStepResult(collector))

      assert.deepStrictEqual(step.manualToolCalls.map(({ id }) => id), ["c0"])
      assert.deepStrictEqual(step.metadata, { mode: "manual" })
    })

    it("COL-21 needs a thread, and says so", () => {
      const without = Collector.add(Collector.make(), delta("a"))

      const sentence = "validation failed: invalid_thread (1 error)\n" +
        "- $.thread: the events do not tell what was said before them; " +
        "write Collector.make({ thread }), or use toResponse"

      assert.strictEqual(problemOf(Collector.toStepResult(without)), sentence)
      assert.strictEqual(problemOf(Collector.toChatResult(without)), sentence)
    })

    it.effect("needs no thread once a step was told", () =>
      Effect.gen(function*() {
        const events = yield* eventsOf(twoTurns("echo"))
        const collector = events.reduce(Collector.add, Collector.make())

        assert.isTrue(Either.isRight(Collector.toStepResult(collector)))
        assert.isTrue(Either.isRight(Collector.toChatResult(collector)))
      }))
  })

  describe("toChatResult", () => {
    it("COL-22 a cut stream is cancelled, never completed", () => {
      const result = chatOf(delta("half"), finished("stop"))

      assert.strictEqual(result.haltedReason, "cancelled")
      assert.strictEqual(result.finalResponse.outputText, "half")
      assert.deepStrictEqual(result.thread, thread)
      assert.deepStrictEqual(result.steps, [])
      assert.deepStrictEqual(result.metadata, {})
    })

    it("COL-22 a stream cut after an error is an error", () => {
      const result = chatOf(delta("half"), failed)

      assert.strictEqual(result.haltedReason, "error")
      assert.strictEqual(result.error, unavailable)
      assert.deepStrictEqual(result.metadata, { error: summary })
    })

    it.effect("keeps whole steps, and the usage of all", () =>
      Effect.gen(function*() {
        const events = yield* eventsOf(twoTurns("echo"))
        const cut = events.slice(0, events.map(({ _tag }) => _tag).lastIndexOf("StepCompleted"))
        const result = chatOf(...cut)

        assert.strictEqual(result.haltedReason, "cancelled")
        assert.strictEqual(result.steps.length, 1)
        assert.deepStrictEqual(result.thread.messages.map(({ role }) => role), ["user", "assistant", "tool"])
        assert.strictEqual(result.finalResponse.outputText, "done")
        assert.deepStrictEqual(result.usage, { inputTokens: 11, outputTokens: 22 })
      }))

    it.effect("is the loop's own when the stream came to its end", () =>
      Effect.gen(function*() {
        const [events, result] = yield* Effect.all([
          eventsOf(twoTurns("echo")),
          Effect.provide(
            Allm.chat(thread, { tools: [echo], requestId: "r1" }),
            Fake.engine({ scripts: twoTurns("echo") })
          )
        ])
        const own = chatOf(...events)

        assert.strictEqual(own.haltedReason, "completed")
        assert.deepStrictEqual(own.thread, result.thread)
        assert.deepStrictEqual(own.usage, result.usage)
      }))

    it.effect("of a cut stream of questions holds them in the step", () =>
      Effect.gen(function*() {
        const events = yield* eventsOf(twoTurns("ask"), ask)
        const result = chatOf(...events.filter(({ _tag }) => _tag !== "ChatCompleted"))

        assert.strictEqual(result.haltedReason, "cancelled")
        assert.deepStrictEqual(result.steps.map(({ pendingQuestions }) => pendingQuestions.length), [1])
      }))
  })

  describe("add", () => {
    it("leaves out what it does not know", () => {
      const strange = [{ _tag: "Unheard" }, { type: "text" }, {}, null, undefined, 7, "text", []]
      const collector = strange.reduce<Collector.Collector>(
        (all, event) => Collector.add(all, event as unknown as Event.Event),
        Collector.make({ thread })
      )

      assert.deepStrictEqual(Collector.toResponse(collector), nothing)
      assert.strictEqual(Either.getOrThrow(Collector.toChatResult(collector)).haltedReason, "cancelled")
    })

    it("leaves out tool events of calls nobody made", () => {
      const step = stepOf(completed("c0"), finished("tool_calls"), encoded("c7", "x"), encoded("c0", "a"))

      assert.deepStrictEqual(step.toolResults, [Message.tool("c0", "a")])
    })

    it.effect("gives each step back as the loop told it", () =>
      Effect.gen(function*() {
        const events = yield* eventsOf(twoTurns("echo"))
        const steps = events.flatMap((event) => event._tag === "StepCompleted" ? [event.result] : [])
        let collector = Collector.make({ thread, ...idOf(steps[0]!) })
        const own: Array<unknown> = []
        for (const event of events) {
          if (event._tag === "StepCompleted") own.push(Either.getOrThrow(Collector.toStepResult(collector)))
          collector = Collector.add(collector, event)
        }

        assert.deepStrictEqual(own, steps)
      }))

    it.effect.prop(
      "is total: any events in any order give a response, a step and a chat",
      [FastCheck.array(
        Arbitrary.make(Event.TextDelta).chain((text) =>
          FastCheck.constantFrom<Event.Event>(
            text,
            started("c0"),
            started("c1"),
            piece("c0", "{"),
            piece("c2", "}"),
            completed("c1"),
            finished("tool_calls"),
            finished("stop"),
            encoded("c0", "a"),
            encoded("c9", "a"),
            halted("c1", "enough"),
            failed,
            { _tag: "ManualToolCalls", toolCalls: [] },
            { _tag: "MessageStarted" }
          )
        )
      )],
      ([events]) =>
        Effect.sync(() => {
          const result = chatOf(...events)
          const isError = events.includes(failed)

          assert.strictEqual(result.haltedReason, isError ? "error" : "cancelled")
          assert.strictEqual(stepOf(...events).thread.messages[0], thread.messages[0])
          assert.deepStrictEqual(result.finalResponse, responseOf(...events))
        })
    )
  })

  describe("collect", () => {
    it.effect("folds a stream to its end", () =>
      Effect.gen(function*() {
        const collector = yield* Collector.collect(Allm.stream(thread), { thread })

        assert.strictEqual(Either.getOrThrow(Collector.toChatResult(collector)).haltedReason, "completed")
        assert.strictEqual(Collector.toResponse(collector).outputText, "hi")
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("hi"), Fake.finish("stop")] }))))

    it.effect("fails as the stream does", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Collector.collect(Stream.fail(unavailable)))

        assertEquals(error, unavailable)
      }))

    it.effect("starts anew each time it is run", () =>
      Effect.gen(function*() {
        const collect = Collector.collect(Stream.make(delta("a")))
        yield* collect

        assert.strictEqual(Collector.toResponse(yield* collect).outputText, "a")
      }))
  })
})

const idOf = ({ response }: { readonly response: { readonly requestId?: string } }) =>
  response.requestId === undefined ? {} : { requestId: response.requestId }
