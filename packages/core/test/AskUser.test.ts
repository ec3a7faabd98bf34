import { Allm, Fake, Message, Tool, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema, Stream, TestClock } from "effect"

const call = (id: string, name: string, args: unknown = {}) => Fake.toolCall({ id, name, arguments: args })
const asks = (...calls: ReadonlyArray<Fake.Entry>): Fake.Script => [...calls, Fake.finish("tool_calls")]
const says = (text: string): Fake.Script => [Fake.text(text), Fake.finish("stop")]

const ask = Tool.make("ask", {
  description: "Asks the person",
  parameters: { question: Schema.String },
  handler: ({ question }) => ToolResult.askUser(question)
})
const choose = Tool.make("choose", {
  description: "Lets the person choose",
  handler: () => ToolResult.askUser("Which city?", { choices: ["Oslo", "Rome"] })
})
const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })
const slow = Tool.make("slow", {
  description: "Takes a second",
  handler: () => Effect.as(Effect.sleep("1 second"), "slow")
})
const submit = Tool.make("submit", {
  description: "Ends the loop",
  handler: () => ToolResult.halt("plan_submitted", "done")
})
const broken = Tool.make("broken", { description: "Reports a failure", handler: () => Effect.fail("offline") })
const release = Tool.make("release", { description: "The caller's to run", manual: true })

const awaiting = (id: string) => Message.tool(id, "<awaiting user response>")

const said = (messages: ReadonlyArray<Message.Message>) => messages.map(({ content, role }) => [role, content])

describe("a tool that asks the person", () => {
  it.effect("ASK-01 suspends the chat, with the question as the assistant's own words", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { tools: [choose] })

      assert.strictEqual(result.haltedReason, "ask_user")
      assert.deepStrictEqual(result.pendingQuestions, [
        { toolCallId: "c0", toolName: "choose", question: "Which city?", options: { choices: ["Oslo", "Rome"] } }
      ])
      assert.deepStrictEqual(result.metadata, {
        pendingQuestion: "Which city?",
        pendingToolCallId: "c0",
        askUserOptions: { choices: ["Oslo", "Rome"] }
      })
      assert.deepStrictEqual(result.thread.messages.slice(2), [
        awaiting("c0"),
        Message.assistant("Which city?", { metadata: { askUser: true, toolCallId: "c0" } })
      ])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "choose")) }))))

  it.effect("ASK-01 leaves the question out of its step", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { tools: [choose] })

      assert.strictEqual(result.steps.length, 1)
      assert.deepStrictEqual(result.steps[0]?.thread.messages, result.thread.messages.slice(0, -1))
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "choose")) }))))

  it.effect("ASK-01 tells no message of a model for the question", () =>
    Effect.gen(function*() {
      const events = Array.from(yield* Stream.runCollect(Allm.stream("hi", { tools: [choose] })))

      assert.deepStrictEqual(events.map(({ _tag }) => _tag), [
        "MessageStarted",
        "ToolCallStarted",
        "ToolCallCompleted",
        "MessageCompleted",
        "ToolExecutionStarted",
        "ToolExecutionCompleted",
        "AskUserRequested",
        "StepCompleted",
        "ChatCompleted"
      ])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "choose")) }))))

  it.effect("ASK-03 may leave its options out", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { tools: [ask] })

      assert.deepStrictEqual(result.pendingQuestions[0]?.options, {})
      assert.deepStrictEqual(result.metadata["askUserOptions"], {})
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "ask", { question: "Where?" })) }))))

  it.effect("ASK-04 keeps what its siblings came to, before the question", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.fork(Allm.chat("hi", { tools: [choose, slow, hi] }))
      yield* TestClock.adjust("1 second")
      const result = yield* Fiber.join(fiber)

      assert.strictEqual(result.haltedReason, "ask_user")
      assert.deepStrictEqual(said(result.thread.messages.slice(2)), [
        ["tool", "<awaiting user response>"],
        ["tool", "slow"],
        ["tool", "hi"],
        ["assistant", "Which city?"]
      ])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "choose"), call("c1", "slow"), call("c2", "hi")) }))))

  it.effect("ASK-05 is answered by a user message, and does not ask again", () =>
    Effect.gen(function*() {
      let asked = 0
      const counting = Tool.make("choose", {
        description: "Counts how often it runs",
        handler: () => {
          asked++
          return ToolResult.askUser("Which city?")
        }
      })
      const first = yield* Allm.chat("hi", { tools: [counting] })
      const second = yield* Allm.chat([...first.thread.messages, Message.user("Oslo")], { tools: [counting] })
      const [, request] = yield* Fake.requests

      assert.strictEqual(second.haltedReason, "completed")
      assert.strictEqual(asked, 1)
      assert.deepStrictEqual(said(request?.messages ?? []), [
        ["user", "hi"],
        ["assistant", ""],
        ["tool", "<awaiting user response>"],
        ["assistant", "Which city?"],
        ["user", "Oslo"]
      ])
    }).pipe(Effect.provide(Fake.engine({ scripts: [asks(call("c0", "choose")), says("Sunny in Oslo")] }))))

  it.effect("ASK-07 leaves nothing pending once the chat went on", () =>
    Effect.gen(function*() {
      const first = yield* Allm.chat("hi", { tools: [choose] })
      const second = yield* Allm.chat([...first.thread.messages, Message.user("Oslo")], { tools: [choose] })

      assert.strictEqual(second.haltedReason, "completed")
      assert.deepStrictEqual(second.pendingQuestions, [])
      assert.deepStrictEqual(second.metadata, {})
    }).pipe(Effect.provide(Fake.engine({ scripts: [asks(call("c0", "choose")), says("Sunny in Oslo")] }))))

  it.effect("ASK-08 may ask again after the answer", () =>
    Effect.gen(function*() {
      const first = yield* Allm.chat("hi", { tools: [ask] })
      const second = yield* Allm.chat([...first.thread.messages, Message.user("Oslo")], { tools: [ask] })

      assert.strictEqual(second.haltedReason, "ask_user")
      assert.deepStrictEqual(second.metadata, {
        pendingQuestion: "When?",
        pendingToolCallId: "c1",
        askUserOptions: {}
      })
      assert.deepStrictEqual(second.thread.messages.slice(-2), [
        awaiting("c1"),
        Message.assistant("When?", { metadata: { askUser: true, toolCallId: "c1" } })
      ])
    }).pipe(Effect.provide(Fake.engine({
      scripts: [asks(call("c0", "ask", { question: "Where?" })), asks(call("c1", "ask", { question: "When?" }))]
    }))))

  it.effect("ASK-09 keeps every question of a turn, in one message", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { tools: [ask] })

      assert.deepStrictEqual(result.pendingQuestions.map(({ question, toolCallId }) => [toolCallId, question]), [
        ["c0", "Where?"],
        ["c1", "When?"]
      ])
      assert.deepStrictEqual(result.metadata, {
        pendingQuestion: "Where?",
        pendingToolCallId: "c0",
        askUserOptions: {}
      })
      assert.deepStrictEqual(result.thread.messages.slice(2), [
        awaiting("c0"),
        awaiting("c1"),
        Message.assistant("Where?\n\nWhen?", { metadata: { askUser: true, toolCallId: "c0" } })
      ])
    }).pipe(Effect.provide(Fake.engine({
      script: asks(call("c0", "ask", { question: "Where?" }), call("c1", "ask", { question: "When?" }))
    }))))

  it.effect("ASK-09 keeps the questions as they were asked, the first of which is the pending one", () =>
    Effect.gen(function*() {
      const late = Tool.make("late", {
        description: "Thinks before it asks",
        handler: () => Effect.as(Effect.sleep("1 second"), ToolResult.askUser("Where?"))
      })
      const fiber = yield* Effect.fork(Allm.chat("hi", { tools: [late, ask] }))
      yield* TestClock.adjust("1 second")
      const result = yield* Fiber.join(fiber)

      assert.deepStrictEqual(result.pendingQuestions.map(({ question, toolCallId }) => [toolCallId, question]), [
        ["c1", "When?"],
        ["c0", "Where?"]
      ])
      assert.strictEqual(result.metadata["pendingToolCallId"], "c1")
      assert.deepStrictEqual(result.thread.messages.slice(2), [
        awaiting("c0"),
        awaiting("c1"),
        Message.assistant("When?\n\nWhere?", { metadata: { askUser: true, toolCallId: "c1" } })
      ])
    }).pipe(
      Effect.provide(Fake.engine({ script: asks(call("c0", "late"), call("c1", "ask", { question: "When?" })) }))
    ))

  it.effect.each([["submit", "choose"], ["choose", "submit"], ["broken", "choose"], ["choose", "broken"]] as const)(
    "ASK-01 comes before another halt, whichever was called first (%s, %s)",
    (names) =>
      Effect.gen(function*() {
        const calls = names.map((name) => call(`id of ${name}`, name))
        const result = yield* Allm.chat("hi", { tools: [choose, submit, broken], onToolError: "halt" }).pipe(
          Effect.provide(Fake.engine({ script: asks(...calls) }))
        )

        assert.strictEqual(result.haltedReason, "ask_user")
        assert.strictEqual(result.metadata["pendingToolCallId"], "id of choose")
        assert.deepStrictEqual(result.thread.messages.map(({ role }) => role), [
          "user",
          "assistant",
          "tool",
          "tool",
          "assistant"
        ])
      })
  )

  it.effect("ASK-01 is not put before haltWhen", () =>
    Effect.gen(function*() {
      let consulted = 0
      const result = yield* Allm.chat("hi", {
        tools: [choose],
        haltWhen: () => {
          consulted++
          return true
        }
      })

      assert.strictEqual(result.haltedReason, "ask_user")
      assert.strictEqual(consulted, 0)
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "choose")) }))))

  it.effect("ASK-04 can be answered together with a manual sibling", () =>
    Effect.gen(function*() {
      const options = { tools: [choose, release] }
      const first = yield* Allm.chat("hi", options)
      const answers = [...first.manualToolCalls.map(({ id }) => Message.tool(id, "live")), Message.user("Oslo")]
      const second = yield* Allm.chat([...first.thread.messages, ...answers], options)

      assert.strictEqual(first.haltedReason, "ask_user")
      assert.deepStrictEqual(first.manualToolCalls.map(({ id }) => id), ["c1"])
      assert.strictEqual(second.haltedReason, "completed")
    }).pipe(Effect.provide(Fake.engine({
      scripts: [asks(call("c0", "choose"), call("c1", "release")), says("Sunny in Oslo")]
    }))))
})
