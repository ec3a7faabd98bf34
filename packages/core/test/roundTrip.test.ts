import {
  ChatResult,
  Event,
  Halt,
  Message,
  Request,
  Response,
  StepResult,
  Thread,
  Tool,
  ToolCall,
  ToolError,
  ToolResult,
  Usage,
  ValidationError
} from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
// The assert of vitest compares errors by name and message alone.
import { deepStrictEqual } from "@effect/vitest/utils"
import { Arbitrary, Effect, Either, FastCheck, Schema } from "effect"

const toText = <A, I>(schema: Schema.Schema<A, I>, value: NoInfer<A>): string =>
  JSON.stringify(Schema.encodeSync(schema)(value))

const fromText = <A, I>(schema: Schema.Schema<A, I>, text: string): A =>
  Schema.decodeUnknownSync(schema)(JSON.parse(text))

// Two things no JSON keeps as they were: a minus before zero, and the exceptions inside a cause. Causes have their own
// tests below.
const settled = <A>(value: A): A => {
  if (typeof value !== "object" || value === null) return value
  if (ToolError.isToolError(value)) Reflect.deleteProperty(value, "cause")
  for (const [key, member] of Object.entries(value)) {
    if (Object.is(member, -0)) Reflect.set(value, key, 0)
    else settled(member)
  }
  return value
}

const goesThereAndBack = <A, I>(name: string, schema: Schema.Schema<A, I>, numRuns = 200) =>
  it.prop(`SER-01 ${name} goes to JSON and back`, [Arbitrary.make(schema).map(settled)], ([value]) => {
    deepStrictEqual(fromText(schema, toText(schema, value)), value)
  }, { fastCheck: { numRuns } })

describe("round trip", () => {
  describe("messages", () => {
    goesThereAndBack("a text part", Message.TextPart)
    goesThereAndBack("an image part", Message.ImagePart)
    goesThereAndBack("content", Message.Content)
    goesThereAndBack("a system message", Message.SystemMessage)
    goesThereAndBack("a user message", Message.UserMessage)
    goesThereAndBack("an assistant message", Message.AssistantMessage)
    goesThereAndBack("a tool message", Message.ToolMessage)
    goesThereAndBack("a message", Message.Message)
    goesThereAndBack("a thread", Thread.Thread)
  })

  describe("calls", () => {
    goesThereAndBack("a tool call", ToolCall.ToolCall)
    goesThereAndBack("a declaration", Tool.Declaration)
    goesThereAndBack("a request", Request.Request)
    goesThereAndBack("a usage", Usage.Usage)
    goesThereAndBack("a response", Response.Response)

    it.prop(
      "SER-01 a call made from any text goes to JSON and back",
      [FastCheck.oneof(FastCheck.string(), FastCheck.json())],
      ([rawArguments]) => {
        const call = settled(ToolCall.fromRaw({ id: "c0", name: "echo", rawArguments }))

        deepStrictEqual(fromText(ToolCall.ToolCall, toText(ToolCall.ToolCall, call)), call)
      }
    )
  })

  describe("outcomes", () => {
    goesThereAndBack("an outcome", ToolResult.ToolOutcome)
    goesThereAndBack("a tool error", ToolError.ToolError)
    goesThereAndBack("a validation error", ValidationError.ValidationError)
    goesThereAndBack("a halt", Halt.Halt)
    goesThereAndBack("a question", Halt.Question)
    goesThereAndBack("a pending approval", Halt.PendingApproval)
    goesThereAndBack("a step result", StepResult.StepResult, 50)
    goesThereAndBack("a chat result", ChatResult.ChatResult, 25)
  })

  describe("events", () => {
    goesThereAndBack("MessageStarted", Event.MessageStarted, 50)
    goesThereAndBack("TextDelta", Event.TextDelta, 50)
    goesThereAndBack("TextCompleted", Event.TextCompleted, 50)
    goesThereAndBack("ReasoningDelta", Event.ReasoningDelta, 50)
    goesThereAndBack("ToolCallStarted", Event.ToolCallStarted, 50)
    goesThereAndBack("ToolCallDelta", Event.ToolCallDelta, 50)
    goesThereAndBack("ToolCallCompleted", Event.ToolCallCompleted, 50)
    goesThereAndBack("MessageCompleted", Event.MessageCompleted, 50)
    goesThereAndBack("RawChunk", Event.RawChunk, 50)
    goesThereAndBack("ErrorOccurred", Event.ErrorOccurred, 50)
    goesThereAndBack("ToolExecutionStarted", Event.ToolExecutionStarted, 50)
    goesThereAndBack("ToolProgress", Event.ToolProgress, 50)
    goesThereAndBack("ToolExecutionCompleted", Event.ToolExecutionCompleted, 50)
    goesThereAndBack("ToolResultEncoded", Event.ToolResultEncoded, 50)
    goesThereAndBack("AskUserRequested", Event.AskUserRequested, 50)
    goesThereAndBack("ToolHalt", Event.ToolHalt, 50)
    goesThereAndBack("ManualToolCalls", Event.ManualToolCalls, 50)
    goesThereAndBack("StepCompleted", Event.StepCompleted, 25)
    goesThereAndBack("ChatCompleted", Event.ChatCompleted, 10)
    goesThereAndBack("any event", Event.Event)
  })

  describe("what has no place in JSON", () => {
    it.prop(
      "a tool error with any cause reads the same every time",
      [ToolError.ToolError],
      ([error]) => {
        const once = toText(ToolError.ToolError, error)

        assert.strictEqual(toText(ToolError.ToolError, fromText(ToolError.ToolError, once)), once)
      }
    )

    it.prop(
      "a chunk of any kind has a readable form, which then stays",
      [FastCheck.anything({
        withBigInt: true,
        withBoxedValues: true,
        withDate: true,
        withMap: true,
        withNullPrototype: true,
        withSet: true,
        withSparseArray: true,
        withTypedArray: true
      })],
      ([chunk]) => {
        const once = toText(Event.RawChunk, { _tag: "RawChunk", chunk })

        assert.strictEqual(toText(Event.RawChunk, fromText(Event.RawChunk, once)), once)
      },
      { fastCheck: { numRuns: 500 } }
    )

    it("a boxed number that JSON does not know becomes null, as a bare one does", () => {
      const text = toText(Event.RawChunk, { _tag: "RawChunk", chunk: [Object(NaN), NaN, Object(1)] })

      assert.strictEqual(text, "{\"_tag\":\"RawChunk\",\"chunk\":[null,null,1]}")
    })

    it("a tool that gives nothing has an event that goes to JSON", () => {
      const text = toText(Event.ToolExecutionCompleted, {
        _tag: "ToolExecutionCompleted",
        toolCallId: "c0",
        toolName: "log",
        result: { _tag: "Ok", value: undefined }
      })

      assert.deepStrictEqual(JSON.parse(text), {
        _tag: "ToolExecutionCompleted",
        toolCallId: "c0",
        toolName: "log",
        result: { _tag: "Ok", value: null }
      })
    })

    for (const number of [NaN, Infinity, -Infinity]) {
      it(`${number} is refused wherever a number stands, not turned into null`, () => {
        const request = Request.make({ messages: [Message.user("Hi")] })
        const declaration = Tool.declaration(Tool.make("ping", { description: "Answers" }))

        assert.deepStrictEqual({
          inputTokens: Either.isLeft(Schema.encodeEither(Usage.Usage)({ inputTokens: number })),
          totalCost: Either.isLeft(Schema.encodeEither(Usage.Usage)({ totalCost: number })),
          temperature: Either.isLeft(Schema.encodeEither(Request.Request)({ ...request, temperature: number })),
          maxTokens: Either.isLeft(Schema.encodeEither(Request.Request)({ ...request, maxTokens: number })),
          timeoutMillis: Either.isLeft(Schema.encodeEither(Tool.Declaration)({ ...declaration, timeoutMillis: number }))
        }, { inputTokens: true, totalCost: true, temperature: true, maxTokens: true, timeoutMillis: true })
      })
    }

    it("a function in metadata is refused, not dropped", () => {
      const message = { role: "user", content: "Hi", metadata: { later: () => 1 } } as const

      assert.isTrue(Either.isLeft(Schema.encodeEither(Message.Message)(message)))
    })
  })

  describe("fromText", () => {
    const Text = Schema.parseJson(Message.Message)

    it.effect("SER-02 a message is plain JSON with every field", () =>
      Effect.gen(function*() {
        const text = yield* Schema.encode(Text)(Message.user("Hi", { name: "Ada" }))

        assert.deepStrictEqual(JSON.parse(text), { role: "user", content: "Hi", name: "Ada", metadata: {} })
      }))

    it.effect("SER-04 text that is not JSON fails, typed", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Schema.decode(Text)("{\"role\":"))

        assert.strictEqual(error._tag, "ParseError")
      }))

    it.effect("SER-09 a role nobody knows fails, typed, and is named", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Schema.decode(Text)("{\"role\":\"robot\",\"content\":\"Hi\"}"))

        assert.strictEqual(error._tag, "ParseError")
        assert.include(error.message, "robot")
      }))

    it.effect("SER-08 a message without content fails, typed, and says so", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Schema.decode(Text)("{\"role\":\"user\"}"))

        assert.strictEqual(error._tag, "ParseError")
        assert.include(error.message, "[\"content\"]")
      }))

    it.effect("what was left out comes back as its default", () =>
      Effect.gen(function*() {
        const message = yield* Schema.decode(Text)("{\"role\":\"assistant\",\"content\":\"Hi\"}")

        assert.deepStrictEqual(message, { role: "assistant", content: "Hi", toolCalls: [], metadata: {} })
      }))

    it.effect("a field of a later version does no harm", () =>
      Effect.gen(function*() {
        const message = yield* Schema.decode(Text)("{\"role\":\"user\",\"content\":\"Hi\",\"mood\":\"good\"}")

        assert.deepStrictEqual(message, Message.user("Hi"))
      }))
  })

  it.effect("SER-13 an assistant's tool calls are still tool calls after JSON", () =>
    Effect.gen(function*() {
      const call = ToolCall.make({ id: "c0", name: "echo", arguments: { a: [1, null] }, metadata: { index: 0 } })
      const broken = ToolCall.fromRaw({ id: "c1", name: "echo", rawArguments: "{\"a\":" })
      const thread = Thread.make([Message.assistant("", { toolCalls: [call, broken] }), Message.tool("c0", "done")])
      const Text = Schema.parseJson(Thread.Thread)

      const back = yield* Schema.decode(Text)(yield* Schema.encode(Text)(thread))

      assert.deepStrictEqual(back, thread)
      assert.deepStrictEqual(back.messages[0]?.role === "assistant" ? back.messages[0].toolCalls : [], [call, broken])
    }))

  it.effect("SER-15 tool choice and response format come back", () =>
    Effect.gen(function*() {
      const request = Request.make({
        messages: [Message.user("Hi")],
        toolChoice: { tool: "echo" },
        responseFormat: { type: "json_schema", name: "answer", schema: { type: "object" }, strict: false }
      })
      const Text = Schema.parseJson(Request.Request)

      const back = yield* Schema.decode(Text)(yield* Schema.encode(Text)(request))

      assert.deepStrictEqual(back.toolChoice, { tool: "echo" })
      assert.deepStrictEqual(back.responseFormat, {
        type: "json_schema",
        name: "answer",
        schema: { type: "object" },
        strict: false
      })
    }))

  it("SER-10 a handler stays behind: a tool goes to JSON as its declaration", () => {
    const tool = Tool.make("ping", { description: "Answers", timeout: "5 seconds", handler: () => "pong" })

    assert.deepStrictEqual(JSON.parse(toText(Tool.Declaration, Tool.declaration(tool))), {
      name: "ping",
      description: "Answers",
      inputSchema: { type: "object", properties: {}, required: [], additionalProperties: false },
      manual: false,
      needsApproval: false,
      timeoutMillis: 5000,
      replay: "never",
      exclusive: false,
      metadata: {}
    })
  })
})
