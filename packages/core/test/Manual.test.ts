import { Allm, type ChatResult, type Event, Fake, Message, type Thread, Tool, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, Stream } from "effect"

const call = (id: string, name: string, args: unknown = {}) => Fake.toolCall({ id, name, arguments: args })
const asks = (...calls: ReadonlyArray<Fake.Entry>): Fake.Script => [...calls, Fake.finish("tool_calls")]
const says = (text: string): Fake.Script => [Fake.text(text), Fake.finish("stop")]

const made = (id: string, name: string) => ({ id, name, arguments: {}, metadata: {} })

/** Tools that note the id of every call they serve. */
const noting = () => {
  const ran: Array<string> = []
  const note = Tool.make("note", {
    description: "Notes that it ran",
    handler: (_, { toolCall }) => {
      ran.push(toolCall.id)
      return "noted"
    }
  })
  const deploy = Tool.make("deploy", {
    description: "The caller's to run",
    manual: true,
    handler: (_, { toolCall }) => {
      ran.push(toolCall.id)
      return "deployed"
    }
  })
  return { ran, note, deploy }
}

const release = Tool.make("release", { description: "The caller's to run, without a handler", manual: true })
const broken = Tool.make("broken", { description: "Reports a failure", handler: () => Effect.fail("offline") })
const submit = Tool.make("submit", {
  description: "Ends the loop",
  handler: () => ToolResult.halt("plan_submitted", "done")
})
const ask = Tool.make("ask", { description: "Asks the person", handler: () => ToolResult.askUser("Which city?") })

const roles = (thread: Thread.Thread) => thread.messages.map(({ role }) => role)

/** Calls of the thread that no tool message answers. */
const unanswered = ({ messages }: Thread.Thread) => {
  const answered = messages.flatMap((message) => message.role === "tool" ? [message.toolCallId] : [])
  return messages.flatMap((message) =>
    message.role === "assistant" ? message.toolCalls.filter(({ id }) => !answered.includes(id)) : []
  )
}

const toolEvents = (events: Iterable<Event.Event>) =>
  Array.from(events).flatMap((event) =>
    event._tag.startsWith("ToolExecution") || event._tag === "ToolResultEncoded"
      ? [[event._tag, "toolCallId" in event ? event.toolCallId : undefined]]
      : []
  )

const stepsOf = (events: Iterable<Event.Event>) =>
  Array.from(events).flatMap((event) => event._tag === "StepCompleted" ? [event.result] : [])

/** The result in the last event. */
const resultOf = (events: Iterable<Event.Event>): ChatResult.ChatResult => {
  const last = [...events].at(-1)
  assert(last?._tag === "ChatCompleted")
  return last.result
}

describe("mode: \"manual\"", () => {
  it.effect("MAN-01 stops at the first calls and runs none of them", () =>
    Effect.gen(function*() {
      const { note, ran } = noting()
      const result = yield* Allm.chat("hi", { tools: [note], mode: "manual" })

      assert.strictEqual(result.haltedReason, "manual_tool_calls")
      assert.strictEqual(result.steps.length, 1)
      assert.deepStrictEqual(result.steps[0]?.toolResults, [])
      assert.deepStrictEqual(result.metadata, { manualTurnIndex: 0 })
      assert.deepStrictEqual(result.finalResponse.toolCalls, [made("c0", "note"), made("c1", "note")])
      assert.deepStrictEqual(result.manualToolCalls, result.finalResponse.toolCalls)
      assert.deepStrictEqual(roles(result.thread), ["user", "assistant"])
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "note"), call("c1", "note")) }))))

  it.effect("MAN-02 completes when the model only says something", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { mode: "manual" })

      assert.strictEqual(result.haltedReason, "completed")
      assert.deepStrictEqual(result.metadata, {})
      assert.deepStrictEqual(result.manualToolCalls, [])
      assert.deepStrictEqual(result.steps[0]?.metadata, {})
    }).pipe(Effect.provide(Fake.engine({ script: says("hello") }))))

  it.effect("MAN-02 can be the engine's mode, and a call's is another", () =>
    Effect.gen(function*() {
      const { note, ran } = noting()
      const manual = yield* Allm.chat("hi", { tools: [note] })
      const auto = yield* Allm.chat("hi", { tools: [note], mode: "auto" })

      assert.strictEqual(manual.haltedReason, "manual_tool_calls")
      assert.strictEqual(auto.haltedReason, "completed")
      assert.deepStrictEqual(ran, ["c1"])
    }).pipe(Effect.provide(Fake.engine({
      scripts: [asks(call("c0", "note")), asks(call("c1", "note")), says("done")],
      mode: "manual"
    }))))

  it.effect("MAN-03 leaves all calls to the caller, of manual tools and of others", () =>
    Effect.gen(function*() {
      const { deploy, note, ran } = noting()
      const result = yield* Allm.chat("hi", { tools: [note, deploy], mode: "manual" })

      assert.deepStrictEqual(result.manualToolCalls, [made("c0", "deploy"), made("c1", "note")])
      assert.deepStrictEqual(result.metadata, { manualTurnIndex: 0 })
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "deploy"), call("c1", "note")) }))))

  it.effect("MAN-03 leaves calls of unknown tools to the caller too", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { mode: "manual" })

      assert.deepStrictEqual(result.manualToolCalls, [made("c0", "missing")])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "missing")) }))))

  it.effect("MAN-05 asks no question, as the handler does not run", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { tools: [ask], mode: "manual" })

      assert.strictEqual(result.haltedReason, "manual_tool_calls")
      assert.deepStrictEqual(result.pendingQuestions, [])
      assert.deepStrictEqual(roles(result.thread), ["user", "assistant"])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "ask")) }))))

  it.effect("MAN-06 goes on once every call has its answer", () =>
    Effect.gen(function*() {
      const { note } = noting()
      const options = { tools: [note], mode: "manual" } as const
      const first = yield* Allm.chat("hi", options)
      const answers = first.manualToolCalls.map(({ id }) => Message.tool(id, `answer of ${id}`))
      const second = yield* Allm.chat([...first.thread.messages, ...answers], options)
      const [, request] = yield* Fake.requests

      assert.strictEqual(second.haltedReason, "completed")
      assert.strictEqual(second.finalResponse.outputText, "done")
      assert.deepStrictEqual(request?.messages.slice(2), answers)
      assert.deepStrictEqual(roles(second.thread), ["user", "assistant", "tool", "tool", "assistant"])
    }).pipe(Effect.provide(Fake.engine({
      scripts: [asks(call("c0", "note"), call("c1", "note")), says("done")]
    }))))

  it.effect("MAN-06 does not go on while an answer is missing, and the model is not asked", () =>
    Effect.gen(function*() {
      const first = yield* Allm.chat("hi", { mode: "manual" })
      const error = yield* Effect.flip(Allm.chat([...first.thread.messages, Message.tool("c0", "answer")]))

      assert.strictEqual(
        error.message,
        "validation failed: invalid_thread (1 error)\n" +
          "- $.messages[1].toolCalls: the call \"c1\" has no answer; " +
          "append Message.tool(\"c1\", \"…\") before anything else is said"
      )
      assert.strictEqual((yield* Fake.requests).length, 1)
    }).pipe(Effect.provide(Fake.engine({
      scripts: [asks(call("c0", "note"), call("c1", "note")), says("done")]
    }))))

  it.effect("MAN-06 counts turns from where it went on", () =>
    Effect.gen(function*() {
      const first = yield* Allm.chat("hi", { mode: "manual" })
      const second = yield* Allm.chat([...first.thread.messages, Message.tool("c0", "answer")], { mode: "manual" })

      assert.deepStrictEqual(second.metadata, { manualTurnIndex: 0 })
      assert.deepStrictEqual(second.manualToolCalls, [made("c1", "note")])
    }).pipe(Effect.provide(Fake.engine({ scripts: [asks(call("c0", "note")), asks(call("c1", "note"))] }))))

  it.effect("MAN-08 streams no events of tools, and the calls in the results", () =>
    Effect.gen(function*() {
      const { deploy, note } = noting()
      const events = yield* Stream.runCollect(Allm.stream("hi", { tools: [note, deploy], mode: "manual" }))
      const [step] = stepsOf(events)
      const result = resultOf(events)

      assert.deepStrictEqual(toolEvents(events), [])
      assert.deepStrictEqual(step?.metadata, { mode: "manual" })
      assert.deepStrictEqual(step?.manualToolCalls, [made("c0", "deploy"), made("c1", "note")])
      assert.deepStrictEqual(result.manualToolCalls, step?.manualToolCalls)
      assert.strictEqual(result.haltedReason, "manual_tool_calls")
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "deploy"), call("c1", "note")) }))))

  it.effect("leaves nothing to the caller of an answer that was cut off", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { mode: "manual" })

      assert.strictEqual(result.haltedReason, "completed")
      assert.deepStrictEqual(result.manualToolCalls, [])
      assert.deepStrictEqual(unanswered(result.thread), [])
    }).pipe(Effect.provide(Fake.engine({ script: [call("c0", "note"), Fake.finish("length")] }))))
})

describe("manual tools", () => {
  it.effect("PTM-01 change nothing when the model does not call them", () =>
    Effect.gen(function*() {
      const { deploy, note, ran } = noting()
      const result = yield* Allm.chat("hi", { tools: [note, deploy] })

      assert.strictEqual(result.haltedReason, "completed")
      assert.deepStrictEqual(ran, ["c0"])
      assert.deepStrictEqual(result.metadata, {})
      assert.deepStrictEqual(result.manualToolCalls, [])
    }).pipe(Effect.provide(Fake.engine({ scripts: [asks(call("c0", "note")), says("done")] }))))

  it.effect("PTM-02 PTM-05 stop the loop without running", () =>
    Effect.gen(function*() {
      const { deploy, ran } = noting()
      const result = yield* Allm.chat("hi", { tools: [deploy] })

      assert.strictEqual(result.haltedReason, "manual_tool_calls")
      assert.deepStrictEqual(result.metadata, { manualTurnIndex: 0 })
      assert.deepStrictEqual(result.manualToolCalls, [made("c0", "deploy")])
      assert.deepStrictEqual(roles(result.thread), ["user", "assistant"])
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "deploy")) }))))

  it.effect("PTM-02 tell in which turn they were called", () =>
    Effect.gen(function*() {
      const { deploy, note } = noting()
      const result = yield* Allm.chat("hi", { tools: [note, deploy] })

      assert.deepStrictEqual(result.metadata, { manualTurnIndex: 1 })
      assert.strictEqual(result.steps.length, 2)
    }).pipe(Effect.provide(Fake.engine({ scripts: [asks(call("c0", "note")), asks(call("c1", "deploy"))] }))))

  it.effect("PTM-03 PTM-18 let the other calls of their turn run", () =>
    Effect.gen(function*() {
      const { deploy, note, ran } = noting()
      const result = yield* Allm.chat("hi", { tools: [note, deploy] })

      assert.strictEqual(result.haltedReason, "manual_tool_calls")
      assert.deepStrictEqual(ran, ["c1"])
      assert.deepStrictEqual(result.thread.messages.slice(2), [Message.tool("c1", "noted")])
      assert.deepStrictEqual(result.manualToolCalls, [made("c0", "deploy"), made("c2", "deploy")])
      assert.deepStrictEqual(unanswered(result.thread), [...result.manualToolCalls])
    }).pipe(Effect.provide(Fake.engine({
      script: asks(call("c0", "deploy"), call("c1", "note"), call("c2", "deploy"))
    }))))

  it.effect("PTM-03 go on once the caller answered them", () =>
    Effect.gen(function*() {
      const { deploy, note, ran } = noting()
      const first = yield* Allm.chat("hi", { tools: [note, deploy] })
      const second = yield* Allm.chat([...first.thread.messages, Message.tool("c0", "live")], { tools: [note, deploy] })

      assert.strictEqual(second.haltedReason, "completed")
      assert.deepStrictEqual(ran, ["c1"])
      assert.deepStrictEqual(unanswered(second.thread), [])
    }).pipe(Effect.provide(Fake.engine({
      scripts: [asks(call("c0", "deploy"), call("c1", "note")), says("done")]
    }))))

  it.effect("PTM-06 need no handler", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { tools: [release] })

      assert.strictEqual(result.haltedReason, "manual_tool_calls")
      assert.deepStrictEqual(result.manualToolCalls, [made("c0", "release")])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "release")) }))))

  it.effect("PTM-07 are left to the caller although a sibling failed", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { tools: [broken, release] })

      assert.strictEqual(result.haltedReason, "manual_tool_calls")
      assert.deepStrictEqual(result.manualToolCalls, [made("c1", "release")])
      assert.deepStrictEqual(result.thread.messages.slice(2), [
        Message.tool("c0", "{\"error\":\"offline\"}", { isError: true })
      ])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "broken"), call("c1", "release")) }))))

  it.effect("PTM-09 are listed when a sibling halted, whose reason counts", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { tools: [submit, release] })

      assert.strictEqual(result.haltedReason, "plan_submitted")
      assert.deepStrictEqual(result.metadata, { haltToolCallId: "c0", haltResult: "done" })
      assert.deepStrictEqual(result.manualToolCalls, [made("c1", "release")])
      assert.deepStrictEqual(unanswered(result.thread), [...result.manualToolCalls])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "submit"), call("c1", "release")) }))))

  it.effect("PTM-10 are listed when a sibling's failure halted the loop", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { tools: [broken, release], onToolError: "halt" })

      assert.strictEqual(result.haltedReason, "tool_error")
      assert.deepStrictEqual(result.metadata, { haltToolCallId: "c0" })
      assert.deepStrictEqual(result.manualToolCalls, [made("c1", "release")])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "broken"), call("c1", "release")) }))))

  it.effect("PTM-11 do not hide an unknown tool, before which nothing runs", () =>
    Effect.gen(function*() {
      const { deploy, note, ran } = noting()
      const error = yield* Effect.flip(Allm.chat("hi", { tools: [note, deploy] }))

      assert(error._tag === "UnknownTool")
      assert.deepStrictEqual([error.toolName, error.toolCallId], ["missing", "c2"])
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(Fake.engine({
      script: asks(call("c0", "note"), call("c1", "deploy"), call("c2", "missing"))
    }))))

  it.effect("PTM-13 leave a step undone, in mode auto", () =>
    Effect.gen(function*() {
      const step = yield* Allm.step("hi", { tools: [release] })

      assert.strictEqual(step.done, false)
      assert.deepStrictEqual(step.metadata, {})
      assert.deepStrictEqual(step.manualToolCalls, [made("c0", "release")])
      assert.deepStrictEqual(step.toolResults, [])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "release")) }))))

  it.effect("PTM-14 stream no events of running, and the calls in the results", () =>
    Effect.gen(function*() {
      const events = yield* Stream.runCollect(Allm.stream("hi", { tools: [release] }))
      const [step] = stepsOf(events)
      const result = resultOf(events)

      assert.deepStrictEqual(toolEvents(events), [])
      assert.deepStrictEqual(step?.metadata, {})
      assert.deepStrictEqual(step?.manualToolCalls, [made("c0", "release")])
      assert.strictEqual(result.haltedReason, "manual_tool_calls")
      assert.deepStrictEqual(result.manualToolCalls, [made("c0", "release")])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "release")) }))))

  it.effect("PTM-15 stream the events of the other calls only", () =>
    Effect.gen(function*() {
      const { deploy, note } = noting()
      const events = yield* Stream.runCollect(Allm.stream("hi", { tools: [note, deploy] }))

      assert.deepStrictEqual(toolEvents(events), [
        ["ToolExecutionStarted", "c1"],
        ["ToolExecutionCompleted", "c1"],
        ["ToolResultEncoded", "c1"]
      ])
      assert.deepStrictEqual(
        Array.from(events).filter((event) => event._tag === "ManualToolCalls"),
        [{ _tag: "ManualToolCalls", toolCalls: [made("c0", "deploy")] }]
      )
      assert.deepStrictEqual(stepsOf(events)[0]?.manualToolCalls, [made("c0", "deploy")])
      assert.deepStrictEqual(resultOf(events).manualToolCalls, [made("c0", "deploy")])
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "deploy"), call("c1", "note")) }))))

  it.effect("PTM-17 leave no second pass to a structured answer", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", {
        tools: [release],
        responseFormat: Schema.Struct({ city: Schema.String }),
        structuredFinalize: true
      })

      assert.strictEqual(result.haltedReason, "manual_tool_calls")
      assert.deepStrictEqual(result.metadata, {
        manualTurnIndex: 0,
        structuredFinalize: { pass1Halted: "manual_tool_calls", pass1Response: result.finalResponse }
      })
      assert.strictEqual((yield* Fake.requests).length, 1)
    }).pipe(Effect.provide(Fake.engine({ script: asks(call("c0", "release")) }))))

  it.effect("are not stopped for when the answer was cut off", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { tools: [release] })

      assert.strictEqual(result.haltedReason, "completed")
      assert.deepStrictEqual(result.manualToolCalls, [])
      assert.deepStrictEqual(unanswered(result.thread), [])
    }).pipe(Effect.provide(Fake.engine({ script: [call("c0", "release"), Fake.finish("length")] }))))
})
