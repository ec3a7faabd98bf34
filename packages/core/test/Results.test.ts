import { ChatResult, Halt, Message, Response, StepResult, Thread, ToolCall, ToolError } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"

const thread = Thread.make([Message.user("Hi")])
const response = Response.make({ outputText: "Hello", finishReason: "stop" })
const call = ToolCall.make({ id: "c0", name: "echo", arguments: {} })
const question = { toolCallId: "c0", toolName: "echo", question: "Which?", options: { choices: ["a", "b"] } }

const step: StepResult.StepResult = {
  thread,
  response,
  toolResults: [],
  done: true,
  pendingQuestions: [],
  pendingApprovals: [],
  manualToolCalls: [],
  metadata: {}
}

describe("StepResult", () => {
  it.effect("needs a thread, a response, results and whether it is done", () =>
    Effect.gen(function*() {
      const decoded = yield* Schema.decode(StepResult.StepResult)({
        thread: { messages: [{ role: "user", content: "Hi" }] },
        response: { outputText: "Hello", finishReason: "stop" },
        toolResults: [],
        done: true
      })

      assert.deepStrictEqual(decoded, step)
      assert.notProperty(decoded, "halt")
    }))

  it.effect("goes to JSON as it is written", () =>
    Effect.gen(function*() {
      const encoded = yield* Schema.encode(StepResult.StepResult)({
        ...step,
        toolResults: [Message.tool("c0", "no", { isError: true })],
        done: false,
        halt: {
          reason: "tool_error",
          toolCallId: "c0",
          error: new ToolError.Timeout({ toolName: "echo", toolCallId: "c0", limitMillis: 50 })
        },
        pendingQuestions: [question],
        pendingApprovals: [{ toolCall: call }],
        manualToolCalls: [call]
      })

      assert.deepStrictEqual(JSON.parse(JSON.stringify(encoded)), {
        thread: { messages: [{ role: "user", content: "Hi", metadata: {} }], metadata: {} },
        response: { outputText: "Hello", finishReason: "stop", toolCalls: [], usage: {}, metadata: {} },
        toolResults: [{ role: "tool", toolCallId: "c0", content: "no", isError: true, metadata: {} }],
        done: false,
        halt: {
          reason: "tool_error",
          toolCallId: "c0",
          error: {
            _tag: "Timeout",
            toolName: "echo",
            toolCallId: "c0",
            reason: "timeout",
            origin: "executor",
            limitMillis: 50
          }
        },
        pendingQuestions: [question],
        pendingApprovals: [{ toolCall: { id: "c0", name: "echo", arguments: {}, metadata: {} } }],
        manualToolCalls: [{ id: "c0", name: "echo", arguments: {}, metadata: {} }],
        metadata: {}
      })
    }))

  it.effect("a halt keeps its error as an error, after JSON too", () =>
    Effect.gen(function*() {
      const Text = Schema.parseJson(Halt.Halt)
      const error = new ToolError.HandlerFailed({ toolName: "echo", toolCallId: "c0", failure: { code: 7 } })

      const halt = yield* Schema.decode(Text)(
        yield* Schema.encode(Text)({ reason: "tool_error", toolCallId: "c0", error })
      )

      assert.instanceOf(halt.error, ToolError.HandlerFailed)
      assert.deepStrictEqual(halt.error?._tag === "HandlerFailed" ? halt.error.failure : undefined, { code: 7 })
    }))

  it.effect("a halt keeps a result JSON cannot hold as a sentence about it", () =>
    Effect.gen(function*() {
      const halt = yield* Schema.encode(Halt.Halt)({
        reason: "plan_submitted",
        toolCallId: "c0",
        result: { total: 1n, when: new Date(0) }
      })

      assert.strictEqual(
        JSON.stringify(halt.result),
        "{\"total\":\"[a bigint has no JSON form]\",\"when\":\"1970-01-01T00:00:00.000Z\"}"
      )
    }))
})

describe("ChatResult", () => {
  it.effect("fills in what is not pending", () =>
    Effect.gen(function*() {
      const decoded = yield* Schema.decode(ChatResult.ChatResult)({
        thread: { messages: [{ role: "user", content: "Hi" }] },
        finalResponse: { outputText: "Hello", finishReason: "stop" },
        steps: [],
        haltedReason: "completed",
        usage: {}
      })

      assert.deepStrictEqual(decoded, {
        thread,
        finalResponse: response,
        steps: [],
        haltedReason: "completed",
        pendingQuestions: [],
        pendingApprovals: [],
        manualToolCalls: [],
        usage: {},
        metadata: {}
      })
    }))

  it.effect("keeps a tool's own reason, and what is pending, through JSON", () =>
    Effect.gen(function*() {
      const Text = Schema.parseJson(ChatResult.ChatResult)
      const result: ChatResult.ChatResult = {
        thread,
        finalResponse: response,
        steps: [step, step],
        haltedReason: "plan_submitted",
        pendingQuestions: [question],
        pendingApprovals: [{ toolCall: call }],
        manualToolCalls: [call],
        usage: { inputTokens: 3, totalTokens: 5 },
        metadata: { structuredFinalize: { pass1Halted: "completed" } }
      }

      assert.deepStrictEqual(yield* Schema.decode(Text)(yield* Schema.encode(Text)(result)), result)
    }))

  it.effect("is refused without a reason, typed", () =>
    Effect.gen(function*() {
      const { haltedReason: _, ...incomplete } = {
        thread,
        finalResponse: response,
        steps: [],
        haltedReason: "completed",
        usage: {}
      }
      const error = yield* Effect.flip(Schema.decodeUnknown(ChatResult.ChatResult)(incomplete))

      assert.strictEqual(error._tag, "ParseError")
      assert.include(error.message, "[\"haltedReason\"]")
    }))
})
