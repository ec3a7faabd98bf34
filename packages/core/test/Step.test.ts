import { Allm, Fake, Message, Request, Thread, Tool, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Option, Schema, TestClock, Tracer } from "effect"

const call = (id: string, name: string, args: unknown = {}) => Fake.toolCall({ id, name, arguments: args })
const asks = (...calls: ReadonlyArray<Fake.Entry>): Fake.Script => [...calls, Fake.finish("tool_calls")]

const echo = Tool.make("echo", {
  description: "Gives back what it gets",
  parameters: { text: Schema.String },
  handler: ({ text }) => ({ text })
})
const broken = Tool.make("broken", { description: "Reports a failure", handler: () => Effect.fail("offline") })
const crash = Tool.make("crash", {
  description: "Throws",
  handler: (): string => {
    throw new Error("secret")
  }
})
const ask = Tool.make("ask", {
  description: "Asks the person",
  handler: () => ToolResult.askUser("Which city?", { choices: ["Oslo", "Rome"] })
})
const submit = Tool.make("submit", {
  description: "Ends the loop",
  handler: () => ToolResult.halt("plan_submitted", { plan: 1 })
})
const slow = Tool.make("slow", {
  description: "Takes a second",
  handler: () => Effect.as(Effect.sleep("1 second"), "slow")
})
const fast = Tool.make("fast", { description: "Takes no time", handler: () => "fast" })

/** A tool that notes the id of every call it serves. */
const noting = (name: string) => {
  const ran: Array<string> = []
  const tool = Tool.make(name, {
    description: "Notes that it ran",
    handler: (_, { toolCall }) => {
      ran.push(toolCall.id)
      return "ran"
    }
  })
  return { ran, tool }
}

const hi = Message.user("hi")

describe("Allm.step", () => {
  describe("with an answer in text", () => {
    it.effect("STEP-01 is done, with the answer in the thread", () =>
      Effect.gen(function*() {
        const step = yield* Allm.step("hi", { requestId: "r0" })

        const message = Message.assistant("hello", { metadata: { finishReason: "stop" } })
        assert.deepStrictEqual(step, {
          thread: { messages: [hi, message], metadata: {} },
          response: {
            requestId: "r0",
            message,
            outputText: "hello",
            toolCalls: [],
            finishReason: "stop",
            usage: {},
            metadata: {}
          },
          toolResults: [],
          done: true,
          pendingQuestions: [],
          pendingApprovals: [],
          manualToolCalls: [],
          metadata: {}
        })
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("hello"), Fake.finish("stop")] }))))

    it.effect("STEP-04 tells why the model stopped, and names no calls", () =>
      Effect.gen(function*() {
        const { thread } = yield* Allm.step("hi")

        assert.deepStrictEqual(thread.messages[1], {
          role: "assistant",
          content: "hello",
          toolCalls: [],
          metadata: { finishReason: "stop" }
        })
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("hello"), Fake.finish("stop")] }))))

    it.effect("keeps the usage the model told", () =>
      Effect.gen(function*() {
        const { response } = yield* Allm.step("hi")

        assert.deepStrictEqual(response.usage, { inputTokens: 3, outputTokens: 5 })
      }).pipe(Effect.provide(Fake.engine({
        script: [Fake.text("hello"), Fake.usage({ inputTokens: 3, outputTokens: 5 }), Fake.finish("stop")]
      }))))
  })

  describe("with tool calls", () => {
    it.effect("STEP-03 keeps the calls in the assistant message and appends their answers", () =>
      Effect.gen(function*() {
        const step = yield* Allm.step("hi", { tools: [echo] })

        const toolCall = { id: "c0", name: "echo", arguments: { text: "a" }, metadata: {} }
        const answer = Message.tool("c0", "{\"text\":\"a\"}")
        assert.deepStrictEqual(step.thread.messages, [
          hi,
          { role: "assistant", content: "", toolCalls: [toolCall], metadata: { finishReason: "tool_calls" } },
          answer
        ])
        assert.deepStrictEqual(step.toolResults, [answer])
        assert.deepStrictEqual(step.response.toolCalls, [toolCall])
        assert.strictEqual(step.done, false)
        assert.deepStrictEqual(step.metadata, {})
      }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "echo", { text: "a" })) }))))

    it.effect("STEP-03 keeps what the model said beside its calls", () =>
      Effect.gen(function*() {
        const { thread } = yield* Allm.step("hi", { tools: [fast] })

        assert.deepStrictEqual(thread.messages.map(({ content, role }) => [role, content]), [
          ["user", "hi"],
          ["assistant", "Let me see."],
          ["tool", "fast"]
        ])
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("Let me see."), ...asks(call("c0", "fast"))] }))))

    it.effect("STEP-05 runs nothing in manual mode", () =>
      Effect.gen(function*() {
        const { ran, tool } = noting("note")
        const step = yield* Allm.step("hi", { tools: [tool], mode: "manual" })

        assert.deepStrictEqual(ran, [])
        assert.strictEqual(step.done, false)
        assert.deepStrictEqual(step.metadata, { mode: "manual" })
        assert.deepStrictEqual(step.toolResults, [])
        assert.deepStrictEqual(step.manualToolCalls, step.response.toolCalls)
        assert.deepStrictEqual(step.thread.messages.map(({ role }) => role), ["user", "assistant"])
      }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "note")) }))))

    it.effect("STEP-07 fails before anything runs when a tool is unknown", () =>
      Effect.gen(function*() {
        const { ran, tool } = noting("note")
        const error = yield* Effect.flip(Allm.step("hi", { tools: [tool, echo] }))

        assert.strictEqual(error._tag, "UnknownTool")
        assert.strictEqual(
          error.message,
          "no tool is named \"missing\"; there are note, echo. " +
            "Add it to the tools, or let the model correct itself with unknownTool: \"feedback\""
        )
        assert.deepStrictEqual(ran, [])
      }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "note"), call("c1", "missing")) }))))

    it.effect("STEP-07 tells the model of the unknown tool, if so configured", () =>
      Effect.gen(function*() {
        const { ran, tool } = noting("note")
        const step = yield* Allm.step("hi", { tools: [tool], unknownTool: "feedback" })

        assert.deepStrictEqual(ran, ["c0"])
        assert.deepStrictEqual(step.toolResults.map(({ isError, toolCallId }) => [toolCallId, isError]), [
          ["c0", false],
          ["c1", true]
        ])
        assert.strictEqual(step.done, false)
      }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "note"), call("c1", "missing")) }))))

    it.effect("STEP-08 suspends on a question, without saying it in the thread", () =>
      Effect.gen(function*() {
        const step = yield* Allm.step("hi", { tools: [ask] })

        assert.strictEqual(step.done, true)
        assert.deepStrictEqual(step.halt, { reason: "ask_user", toolCallId: "c0" })
        assert.deepStrictEqual(step.pendingQuestions, [
          { toolCallId: "c0", toolName: "ask", question: "Which city?", options: { choices: ["Oslo", "Rome"] } }
        ])
        assert.deepStrictEqual(step.thread.messages.at(-1), Message.tool("c0", "<awaiting user response>"))
      }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "ask")) }))))

    it.effect("STEP-09 is done after a halt, with its reason, its call and its result", () =>
      Effect.gen(function*() {
        const step = yield* Allm.step("hi", { tools: [submit] })

        assert.strictEqual(step.done, true)
        assert.deepStrictEqual(step.halt, { reason: "plan_submitted", toolCallId: "c0", result: { plan: 1 } })
        assert.deepStrictEqual(step.toolResults, [Message.tool("c0", "{\"plan\":1}")])
      }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "submit")) }))))

    it.effect("STEP-11 tells the model of a failure and goes on", () =>
      Effect.gen(function*() {
        const step = yield* Allm.step("hi", { tools: [broken] })

        assert.strictEqual(step.done, false)
        assert.strictEqual(step.halt, undefined)
        assert.deepStrictEqual(step.toolResults, [
          Message.tool("c0", "{\"error\":\"offline\"}", { isError: true })
        ])
      }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "broken")) }))))

    it.effect("STEP-11 halts on a failure, if so configured, and keeps the sibling's answer", () =>
      Effect.gen(function*() {
        const step = yield* Allm.step("hi", { tools: [broken, fast], onToolError: "halt" })

        assert.strictEqual(step.done, true)
        assert.strictEqual(step.halt?.reason, "tool_error")
        assert.strictEqual(step.halt?.error?._tag, "HandlerFailed")
        assert.deepStrictEqual(step.toolResults.map(({ content }) => content), ["{\"error\":\"offline\"}", "fast"])
      }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "broken"), call("c1", "fast")) }))))

    it.effect("STEP-11 keeps what a crash said from the model", () =>
      Effect.gen(function*() {
        const step = yield* Allm.step("hi", { tools: [crash] })

        assert.deepStrictEqual(step.toolResults, [
          Message.tool("c0", "{\"error\":\"tool error (crash): handler_raised\"}", { isError: true })
        ])
      }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "crash")) }))))

    it.effect("STEP-17 gives the results in the order of the calls, whichever was faster", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.fork(Allm.step("hi", { tools: [slow, fast] }))
        yield* TestClock.adjust("1 second")
        const { thread, toolResults } = yield* Fiber.join(fiber)

        assert.deepStrictEqual(toolResults.map(({ toolCallId }) => toolCallId), ["c0", "c1"])
        assert.deepStrictEqual(thread.messages.slice(2), [...toolResults])
      }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "slow"), call("c1", "fast")) }))))

    it.effect("STEP-19 goes on when the model asks for tools but calls none", () =>
      Effect.gen(function*() {
        const step = yield* Allm.step("hi", { tools: [echo] })

        assert.strictEqual(step.done, false)
        assert.deepStrictEqual(step.toolResults, [])
        assert.deepStrictEqual(step.metadata, {})
      }).pipe(Effect.provide(Fake.engine({ script: asks() }))))

    it.effect("never runs arguments that are not JSON", () =>
      Effect.gen(function*() {
        const { toolResults } = yield* Allm.step("hi", { tools: [echo] })

        assert.deepStrictEqual(toolResults.map(({ isError, toolCallId }) => [toolCallId, isError]), [["c0", true]])
        assert.match(toolResults[0]!.content, /invalid_arguments/)
      }).pipe(Effect.provide(Fake.engine({
        script: asks(Fake.toolCall({ id: "c0", name: "echo", rawArguments: "{\"text\":" }))
      }))))
  })

  describe("with an answer that is not a whole one", () => {
    it.effect("STEP-12 is done after an error inside the answer, and keeps what came before it", () =>
      Effect.gen(function*() {
        const step = yield* Allm.step("hi")

        assert.strictEqual(step.done, true)
        assert.strictEqual(step.response.finishReason, "error")
        assert.strictEqual(step.response.outputText, "hel")
        assert.deepStrictEqual(step.response.metadata, {
          error: {
            _tag: "AdapterError",
            reason: "network_error",
            message: "model call failed (fake): network_error: the provider could not be reached"
          }
        })
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("hel"), Fake.error("network_error")] }))))

    it.effect("STEP-12 fails with the error when nothing came before it", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Allm.step("hi"))

        assert.strictEqual(error._tag, "AdapterError")
        assert.strictEqual(
          error.message,
          "model call failed (fake): authentication_failed: the provider does not accept the key"
        )
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.preflightError("authentication_failed")] }))))

    it.effect.each(["length", "content_filter", "stop", "error"] as const)(
      "STEP-20 is done and runs no calls when the model stopped for %s",
      (reason) =>
        Effect.gen(function*() {
          const { ran, tool } = noting("note")
          const step = yield* Allm.step("hi", { tools: [tool] }).pipe(
            Effect.provide(Fake.engine({ script: [Fake.text("hel"), call("c0", "note"), Fake.finish(reason)] }))
          )

          assert.strictEqual(step.done, true)
          assert.deepStrictEqual(ran, [])
          assert.deepStrictEqual(step.response.toolCalls.map(({ id }) => id), ["c0"])
          assert.deepStrictEqual(step.thread.messages, [
            hi,
            Message.assistant("hel", { metadata: { finishReason: reason } })
          ])
        })
    )

    it.effect("STEP-20 is not done when the model stopped for another reason", () =>
      Effect.gen(function*() {
        const step = yield* Allm.step("hi")

        assert.strictEqual(step.done, false)
        assert.strictEqual(step.response.finishReason, "other")
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("hel"), Fake.finish("other")] }))))

    it.effect("is not done when the model did not say why it stopped", () =>
      Effect.gen(function*() {
        const step = yield* Allm.step("hi")

        assert.strictEqual(step.done, false)
        assert.isFalse("finishReason" in step.response)
        assert.deepStrictEqual(step.thread.messages, [hi, Message.assistant("hel")])
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("hel")] }))))
  })

  describe("of what it is given", () => {
    it.effect("STEP-15 refuses what is no thread", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Allm.step(42 as never))

        assert.strictEqual(
          error.message,
          "validation failed: invalid_thread (1 error)\n" +
            "- $.thread: write text, a list of messages, a Thread or a Request, not a number"
        )
        assert.deepStrictEqual(yield* Fake.requests, [])
      }).pipe(Effect.provide(Fake.engine({ script: [] }))))

    it.effect("STEP-16 takes text, messages, a thread or a request alike", () =>
      Effect.gen(function*() {
        const options = { requestId: "r0" }
        const ofText = yield* Allm.step("hi", options)

        assert.deepStrictEqual(yield* Allm.step([hi], options), ofText)
        assert.deepStrictEqual(yield* Allm.step(Thread.make([hi]), options), ofText)
        assert.deepStrictEqual(yield* Allm.step(Request.make({ messages: [hi] }), options), ofText)
      }).pipe(Effect.provide(Fake.engine({ respond: () => [Fake.text("hello"), Fake.finish("stop")] }))))

    it.effect("STEP-16 keeps the thread's metadata", () =>
      Effect.gen(function*() {
        const { thread } = yield* Allm.step(Thread.make([hi], { topic: "greetings" }))

        assert.deepStrictEqual(thread.metadata, { topic: "greetings" })
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("hello"), Fake.finish("stop")] }))))

    it.effect("STEP-16 leaves the thread it was given as it is", () =>
      Effect.gen(function*() {
        const thread = Thread.make([hi])
        const step = yield* Allm.step(thread)

        assert.deepStrictEqual(thread, { messages: [hi], metadata: {} })
        assert.strictEqual(step.thread.messages.length, 2)
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("hello"), Fake.finish("stop")] }))))

    it.effect("STEP-29 refuses a tool message without the id of its call", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Allm.step([hi, { role: "tool", content: "ran" } as never]))

        assert.strictEqual(
          error.message,
          "validation failed: invalid_thread (1 error)\n" +
            "- $.messages[1].toolCallId: a tool message names the id of the call it answers"
        )
        assert.deepStrictEqual(yield* Fake.requests, [])
      }).pipe(Effect.provide(Fake.engine({ script: [] }))))

    it.effect("STEP-24 refuses a mode it does not know", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Allm.step("hi", { mode: "semi" as never }))

        assert.strictEqual(
          error.message,
          "validation failed: invalid_options (1 error)\n- $.mode: write \"auto\" or \"manual\", not \"semi\""
        )
      }).pipe(Effect.provide(Fake.engine({ script: [] }))))
  })

  describe("asks the model", () => {
    const answer: Fake.Options = { respond: () => [Fake.text("hello"), Fake.finish("stop")] }

    it.effect("STEP-21 with the engine's tools and the call's, one of the same name replaced in its place", () =>
      Effect.gen(function*() {
        const { ran, tool } = noting("echo")
        const step = yield* Allm.step("hi", { tools: [tool, slow] })
        const [request] = yield* Fake.requests

        assert.deepStrictEqual(request?.tools, [tool, fast, slow].map(Tool.declaration))
        assert.deepStrictEqual(ran, ["c0"])
        assert.deepStrictEqual(step.toolResults.map(({ content }) => content), ["ran", "fast"])
      }).pipe(Effect.provide(Fake.engine({
        script: asks(call("c0", "echo", { text: "a" }), call("c1", "fast")),
        tools: [echo, fast]
      }))))

    it.effect("STEP-25 with the engine's temperature and limit of tokens", () =>
      Effect.gen(function*() {
        yield* Allm.step("hi")
        const [request] = yield* Fake.requests

        assert.deepStrictEqual(request, {
          messages: [hi],
          tools: [],
          temperature: 0.5,
          maxTokens: 100,
          options: {},
          metadata: {}
        })
      }).pipe(Effect.provide(Fake.engine({ ...answer, params: { temperature: 0.5, maxTokens: 100 } }))))

    it.effect("STEP-25 with the call's settings rather than the engine's", () =>
      Effect.gen(function*() {
        yield* Allm.step("hi", { temperature: 0, maxTokens: 7, model: "small" })
        const [request] = yield* Fake.requests

        assert.deepStrictEqual([request?.temperature, request?.maxTokens, request?.model], [0, 7, "small"])
      }).pipe(Effect.provide(Fake.engine({ ...answer, temperature: 1, maxTokens: 100, model: "large" }))))

    it.effect("STEP-27 with what only the provider knows in its options", () =>
      Effect.gen(function*() {
        yield* Allm.step("hi", { params: { seed: 2, topP: 0.9 } })
        const [request] = yield* Fake.requests

        assert.deepStrictEqual(request?.options, { seed: 2, topP: 0.9, user: "u1" })
      }).pipe(Effect.provide(Fake.engine({ ...answer, params: { seed: 1, user: "u1" } }))))

    it.effect("STEP-28 with nothing of what steers the loop", () =>
      Effect.gen(function*() {
        yield* Allm.step("hi", {
          mode: "manual",
          maxTurns: 3,
          haltWhen: () => true,
          onToolError: "halt",
          toolTimeout: "1 second",
          context: { user: "u1" },
          sessionId: "s0",
          requestId: "r0"
        })
        const [request] = yield* Fake.requests

        assert.deepStrictEqual(request, { messages: [hi], tools: [], options: {}, metadata: {} })
      }).pipe(Effect.provide(Fake.engine(answer))))

    it.effect("once, whatever its tools came to", () =>
      Effect.gen(function*() {
        yield* Allm.step("hi", { tools: [echo, fast] })

        assert.strictEqual((yield* Fake.requests).length, 1)
      }).pipe(Effect.provide(Fake.engine({
        respond: () => asks(call("c0", "echo", { text: "a" }), call("c1", "fast"))
      }))))
  })

  describe("gives everything the same request id", () => {
    const span = (name: string, attributes: Map<string, unknown>): Tracer.Span => ({
      _tag: "Span",
      name,
      spanId: name,
      traceId: "t0",
      parent: Option.none(),
      context: Context.empty(),
      status: { _tag: "Started", startTime: 0n },
      attributes,
      links: [],
      sampled: true,
      kind: "internal",
      end: () => {},
      attribute: (key, value) => void attributes.set(key, value),
      event: () => {},
      addLinks: () => {}
    })

    /** A tracer that keeps the request id of every span. */
    const listening = () => {
      const spans = new Map<string, Map<string, unknown>>()
      const tracer = Tracer.make({
        span: (name) => {
          const attributes = new Map<string, unknown>()
          spans.set(name, attributes)
          return span(name, attributes)
        },
        context: (run) => run()
      })
      const requestIds = () => Array.from(spans, ([name, attributes]) => [name, attributes.get("allm.request.id")])
      return { tracer, requestIds }
    }

    const whoAsks = (seen: Array<unknown>) =>
      Tool.make("who_asks", {
        description: "Notes the request",
        handler: (_, { requestId }) => {
          seen.push(requestId)
          return "noted"
        }
      })

    it.effect("STEP-23 the one of the options", () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const { requestIds, tracer } = listening()
        const step = yield* Effect.withTracer(Allm.step("hi", { tools: [whoAsks(seen)], requestId: "r0" }), tracer)

        assert.deepStrictEqual(requestIds(), [["allm.step", "r0"], ["allm.generate", "r0"], ["allm.tool", "r0"]])
        assert.deepStrictEqual(seen, ["r0"])
        assert.strictEqual(step.response.requestId, "r0")
      }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "who_asks")) }))))

    it.effect("STEP-23 or one made up, new for each call", () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const first = yield* Allm.step("hi", { tools: [whoAsks(seen)] })
        const second = yield* Allm.step("hi", { tools: [whoAsks(seen)] })

        assert.deepStrictEqual(seen, [first.response.requestId, second.response.requestId])
        assert.match(String(seen[0]), /^[A-Za-z0-9_-]{22}$/)
        assert.notStrictEqual(seen[0], seen[1])
      }).pipe(Effect.provide(Fake.engine({ respond: () => asks(call("c0", "who_asks")) }))))
  })

  it.effect("stops the model and its tools when interrupted", () =>
    Effect.gen(function*() {
      let stopped = 0
      const stubborn = Tool.make("stubborn", {
        description: "Never ends",
        handler: () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => stopped++))
      })
      const fiber = yield* Effect.fork(Allm.step("hi", { tools: [stubborn] }))
      yield* TestClock.adjust("1 second")
      const exit = yield* Fiber.interrupt(fiber)

      assert.isTrue(Exit.isInterrupted(exit))
      assert.strictEqual(stopped, 1)
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "stubborn")) }))))
})
