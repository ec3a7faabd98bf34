import { Event, Message, ToolCall, ToolError, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, FastCheck, Schema } from "effect"

const Text = Schema.parseJson(Event.Event)

const ofCall = { toolCallId: "c0", toolName: "echo" }

const encoded = (event: Event.Event) => Effect.map(Schema.encode(Text)(event), (text): unknown => JSON.parse(text))

describe("Event", () => {
  it("has nineteen kinds", () => {
    const members = Event.Event.members as ReadonlyArray<Schema.Schema<Event.Event, unknown>>
    const tags = members.flatMap((member) => FastCheck.sample(Arbitrary.make(member), 1)).map((event) => event._tag)

    assert.deepStrictEqual(tags, [
      "MessageStarted",
      "TextDelta",
      "TextCompleted",
      "ReasoningDelta",
      "ToolCallStarted",
      "ToolCallDelta",
      "ToolCallCompleted",
      "MessageCompleted",
      "RawChunk",
      "ErrorOccurred",
      "ToolExecutionStarted",
      "ToolProgress",
      "ToolExecutionCompleted",
      "ToolResultEncoded",
      "AskUserRequested",
      "ToolHalt",
      "ManualToolCalls",
      "StepCompleted",
      "ChatCompleted"
    ])
  })

  describe("isEvent", () => {
    it("knows an event", () => {
      assert.isTrue(Event.isEvent({ _tag: "ToolCallStarted", ...ofCall }))
      assert.isTrue(Event.isEvent({ _tag: "MessageStarted" }))
    })

    it("takes nothing else for one", () => {
      const others = [
        undefined,
        "TextDelta",
        { delta: "Hi" },
        { _tag: "TextDelta" },
        { _tag: "TextDelta", delta: 42 },
        { _tag: "Text", delta: "Hi" }
      ]

      assert.deepStrictEqual(others.filter(Event.isEvent), [])
    })
  })

  describe("from JSON", () => {
    it.effect("SER-05 text without a tag is refused, typed", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Schema.decode(Text)("{\"delta\":\"Hi\"}"))

        assert.strictEqual(error._tag, "ParseError")
        assert.include(error.message, "[\"_tag\"]")
      }))

    it.effect("SER-06 a tag nobody knows is refused, typed, and named", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Schema.decode(Text)("{\"_tag\":\"Earthquake\"}"))

        assert.strictEqual(error._tag, "ParseError")
        assert.include(error.message, "Earthquake")
      }))

    it.effect("SER-08 an event without its data is refused, typed", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Schema.decode(Text)("{\"_tag\":\"TextDelta\"}"))

        assert.strictEqual(error._tag, "ParseError")
        assert.include(error.message, "[\"delta\"]")
      }))

    it.effect("fills in the metadata of a completed message", () =>
      Effect.gen(function*() {
        const event = yield* Schema.decode(Text)("{\"_tag\":\"MessageCompleted\",\"finishReason\":\"stop\"}")

        assert.deepStrictEqual(event, { _tag: "MessageCompleted", finishReason: "stop", metadata: {} })
      }))
  })

  describe("to JSON", () => {
    it.effect("a completed message keeps its calls", () =>
      Effect.gen(function*() {
        const toolCalls = [ToolCall.fromRaw({ id: "c0", name: "echo", rawArguments: "{\"a\":" })]
        const event = yield* encoded({
          _tag: "MessageCompleted",
          message: Message.assistant("", { toolCalls }),
          finishReason: "tool_calls",
          usage: { inputTokens: 1 },
          metadata: {}
        })

        assert.deepStrictEqual(event, {
          _tag: "MessageCompleted",
          message: {
            role: "assistant",
            content: "",
            toolCalls: [{ id: "c0", name: "echo", rawArguments: "{\"a\":", metadata: {} }],
            metadata: {}
          },
          finishReason: "tool_calls",
          usage: { inputTokens: 1 },
          metadata: {}
        })
      }))

    it.effect("the result of a handler is plain data", () =>
      Effect.gen(function*() {
        const event = (result: ToolResult.ToolOutcome) => encoded({ _tag: "ToolExecutionCompleted", ...ofCall, result })

        assert.deepStrictEqual(
          yield* Effect.all([
            event(ToolResult.ok(new Set([1, 2]))),
            event(ToolResult.askUser("Which?", { choices: ["a"] })),
            event(ToolResult.halt("plan_submitted", new Map([["a", 1]])))
          ]),
          [
            { _tag: "ToolExecutionCompleted", ...ofCall, result: { _tag: "Ok", value: [1, 2] } },
            {
              _tag: "ToolExecutionCompleted",
              ...ofCall,
              result: { _tag: "AskUser", question: "Which?", options: { choices: ["a"] } }
            },
            {
              _tag: "ToolExecutionCompleted",
              ...ofCall,
              result: { _tag: "Halt", reason: "plan_submitted", result: { a: 1 } }
            }
          ]
        )
      }))

    it.effect("a failure that was replaced comes back as an error beside the value in its place", () =>
      Effect.gen(function*() {
        const text = yield* Schema.encode(Text)({
          _tag: "ToolExecutionCompleted",
          ...ofCall,
          result: { _tag: "Ok", value: "instead" },
          replaced: new ToolError.Timeout({ ...ofCall, limitMillis: 50 })
        })
        const event = yield* Schema.decode(Schema.parseJson(Event.ToolExecutionCompleted))(text)

        assert.deepStrictEqual(event.result, { _tag: "Ok", value: "instead" })
        assert.instanceOf(event.replaced, ToolError.Timeout)
        assert.strictEqual(event.replaced?._tag === "Timeout" ? event.replaced.limitMillis : 0, 50)
      }))

    it.effect("an error of a provider tells its name and message", () =>
      Effect.gen(function*() {
        const event = yield* encoded({ _tag: "ErrorOccurred", error: new TypeError("cut off") })

        assert.deepStrictEqual(event, { _tag: "ErrorOccurred", error: { name: "TypeError", message: "cut off" } })
      }))

    for (
      const event of [
        { _tag: "ToolProgress", ...ofCall, value: undefined },
        { _tag: "ErrorOccurred", error: undefined },
        { _tag: "RawChunk", chunk: undefined }
      ] as const
    ) {
      it.effect(`${event._tag} of undefined goes to JSON`, () =>
        Effect.gen(function*() {
          const text = yield* Schema.encode(Text)(event)

          assert.include(text, ":null")
          assert.strictEqual((yield* Schema.decode(Text)(text))._tag, event._tag)
        }))
    }
  })
})
