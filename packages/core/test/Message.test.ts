import { Message, ToolCall } from "@allm/core"
import type { ValidationError } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Either, FastCheck, Schema } from "effect"

type Checked = Either.Either<unknown, ValidationError.ValidationError>

const attempt = (construct: () => unknown): Checked =>
  Either.try({ try: construct, catch: (error) => error as ValidationError.ValidationError })

const refused = (checked: Checked): unknown =>
  Either.match(checked, { onLeft: ({ issues, reason }) => ({ reason, issues }), onRight: () => "accepted" })

const thrown = (construct: () => unknown) => refused(attempt(construct))

const paths = (checked: Checked): unknown =>
  Either.match(checked, { onLeft: ({ issues }) => issues.map((issue) => issue.path), onRight: () => "accepted" })

const invalid = (...issues: ReadonlyArray<ValidationError.Issue>) => ({ reason: "invalid_message", issues })

describe("Message", () => {
  describe("constructors", () => {
    it("VAL-15 make a message of every role", () => {
      assert.deepStrictEqual([
        Message.system("Be brief."),
        Message.user("Hi"),
        Message.assistant("Hello"),
        Message.tool("c0", "done")
      ], [
        { role: "system", content: "Be brief.", metadata: {} },
        { role: "user", content: "Hi", metadata: {} },
        { role: "assistant", content: "Hello", toolCalls: [], metadata: {} },
        { role: "tool", toolCallId: "c0", content: "done", isError: false, metadata: {} }
      ])
    })

    it("keep the name and the metadata", () => {
      const options = { name: "Ada", metadata: { mood: "good" } }

      assert.deepStrictEqual([
        Message.system("a", options),
        Message.user("b", options),
        Message.assistant("c", options)
      ], [
        { role: "system", content: "a", ...options },
        { role: "user", content: "b", ...options },
        { role: "assistant", content: "c", toolCalls: [], ...options }
      ])
    })

    it("leave out a name that is undefined", () => {
      assert.notProperty(Message.user("Hi", { name: undefined, metadata: undefined }), "name")
    })

    it("keep an assistant's tool calls as a field", () => {
      const toolCalls = [ToolCall.make({ id: "c0", name: "echo", arguments: {} })]

      assert.deepStrictEqual(Message.assistant("", { toolCalls }).toolCalls, toolCalls)
    })

    it("keep whether a tool's answer is an error", () => {
      assert.isTrue(Message.tool("c0", "no", { isError: true }).isError)
    })

    it("take empty text", () => {
      assert.strictEqual(Message.user("").content, "")
      assert.deepStrictEqual(Message.user([]).content, [])
    })

    it("VAL-18 throw on content that is neither text nor parts", () => {
      const expected = invalid({
        path: ["content"],
        code: "invalid_type",
        message: "content is text or a list of parts; got a number"
      })

      assert.deepStrictEqual(thrown(() => Message.system(42 as never)), expected)
      assert.deepStrictEqual(thrown(() => Message.user(42 as never)), expected)
      assert.deepStrictEqual(thrown(() => Message.assistant(42 as never)), expected)
    })

    it("VAL-18 throw on a tool's answer that is not text, and say who makes it text", () => {
      assert.deepStrictEqual(
        thrown(() => Message.tool("c0", { sum: 3 } as never)),
        invalid({
          path: ["content"],
          code: "invalid_type",
          message: "content is text: encode the value first, or hand it to ToolResultEncoder; got an object"
        })
      )
    })

    it("VAL-16 throw on a tool's answer without the id of its call", () => {
      assert.deepStrictEqual(
        thrown(() => Message.tool(undefined as never, "done")),
        invalid({
          path: ["toolCallId"],
          code: "required",
          message: "a tool message names the id of the call it answers"
        })
      )
    })

    it("throw on metadata that JSON would lose", () => {
      assert.deepStrictEqual(
        thrown(() => Message.user("Hi", { metadata: { at: [1n] } })),
        invalid({
          path: ["metadata"],
          code: "not_json",
          message: "metadata is a JSON object, but at $.at[0] a bigint is not JSON"
        })
      )
    })

    it("throw on tool calls that are none", () => {
      assert.deepStrictEqual(
        thrown(() => Message.assistant("", { toolCalls: [{ id: "", name: "echo", metadata: {} }] })),
        invalid({
          path: ["toolCalls", 0, "id"],
          code: "required",
          message: "write the call's id, a non-empty string, as the model gave it"
        })
      )
    })
  })

  describe("text", () => {
    it("makes a text part", () => {
      assert.deepStrictEqual(Message.text("Hi"), { type: "text", text: "Hi" })
    })
  })

  describe("image", () => {
    it("takes an address as it is", () => {
      assert.deepStrictEqual(Message.image("https://example.org/a.png"), {
        type: "image",
        source: { type: "url", url: "https://example.org/a.png" }
      })
    })

    it("takes a data URI apart", () => {
      assert.deepStrictEqual(Message.image("data:image/png;base64,iVBO"), {
        type: "image",
        source: { type: "base64", mediaType: "image/png", data: "iVBO" }
      })
    })

    it("takes base64 with its media type, and a detail", () => {
      assert.deepStrictEqual(Message.image({ mediaType: "image/png", data: "iVBO" }, { detail: "low" }), {
        type: "image",
        source: { type: "base64", mediaType: "image/png", data: "iVBO" },
        detail: "low"
      })
    })

    it("throws on a source without data", () => {
      assert.deepStrictEqual(
        thrown(() => Message.image({ mediaType: "image/png" } as never)),
        invalid({
          path: [],
          code: "invalid_part_type",
          message:
            "expected a TextPart or an ImagePart, got an object; write Message.text(\"…\") or Message.image(\"…\")"
        })
      )
    })
  })

  describe("toText", () => {
    it("is the text", () => {
      assert.strictEqual(Message.toText(Message.tool("c0", "done")), "done")
    })

    it("puts the text parts together and leaves the images out", () => {
      const message = Message.user([
        Message.text("What "),
        Message.image("https://example.org/a.png"),
        Message.text("?")
      ])

      assert.strictEqual(Message.toText(message), "What ?")
    })
  })

  describe("validate", () => {
    it("VAL-15 accepts every legal role and fills in what was left out", () => {
      assert.deepStrictEqual(
        [
          { role: "system", content: "a" },
          { role: "user", content: [{ type: "text", text: "b" }] },
          { role: "assistant", content: "c" },
          { role: "tool", content: "d", toolCallId: "c0" }
        ].map((input) => Either.getOrThrow(Message.validate(input))),
        [
          { role: "system", content: "a", metadata: {} },
          { role: "user", content: [{ type: "text", text: "b" }], metadata: {} },
          { role: "assistant", content: "c", toolCalls: [], metadata: {} },
          { role: "tool", toolCallId: "c0", content: "d", isError: false, metadata: {} }
        ]
      )
    })

    it("VAL-11 refuses an unknown role and lists the known ones", () => {
      assert.deepStrictEqual(
        refused(Message.validate({ role: "robot", content: "Hi" })),
        invalid({
          path: ["role"],
          code: "unknown",
          message: "\"robot\" is no role; write \"system\", \"user\", \"assistant\" or \"tool\""
        })
      )
    })

    it("VAL-16 refuses a tool message without the id of its call", () => {
      assert.deepStrictEqual(
        refused(Message.validate({ role: "tool", content: "done" })),
        invalid({
          path: ["toolCallId"],
          code: "required",
          message: "a tool message names the id of the call it answers"
        })
      )
    })

    it("VAL-18 refuses content that is a number", () => {
      assert.deepStrictEqual(
        refused(Message.validate({ role: "user", content: 42 })),
        invalid({
          path: ["content"],
          code: "invalid_type",
          message: "content is text or a list of parts; got a number"
        })
      )
    })

    it("VAL-18 refuses a message without content", () => {
      assert.deepStrictEqual(
        refused(Message.validate({ role: "user" })),
        invalid({
          path: ["content"],
          code: "invalid_type",
          message: "content is text or a list of parts; got undefined"
        })
      )
    })

    it("VAL-19 names the part that is none, what was expected and what came", () => {
      const message = (got: string) =>
        `expected a TextPart or an ImagePart, got ${got}; write Message.text("…") or Message.image("…")`

      assert.deepStrictEqual(
        refused(Message.validate({ role: "user", content: [Message.text("a"), "b", { text: "c" }, null] })),
        invalid(
          { path: ["content", 1], code: "invalid_part_type", message: message("a string") },
          { path: ["content", 2], code: "invalid_part_type", message: message("an object") },
          { path: ["content", 3], code: "invalid_part_type", message: message("null") }
        )
      )
    })

    it("VAL-26 reports every fault, not the first alone", () => {
      assert.deepStrictEqual(
        refused(Message.validate({ role: "robot", content: 42, metadata: [] })),
        invalid(
          {
            path: ["role"],
            code: "unknown",
            message: "\"robot\" is no role; write \"system\", \"user\", \"assistant\" or \"tool\""
          },
          { path: ["content"], code: "invalid_type", message: "content is text or a list of parts; got a number" },
          { path: ["metadata"], code: "not_json", message: "metadata is a JSON object, but it is not an object" }
        )
      )
    })

    it("refuses what is no object", () => {
      assert.deepStrictEqual(
        refused(Message.validate("Hi")),
        invalid({
          path: [],
          code: "invalid_type",
          message: "a message is an object, not a string; write Message.user(\"…\")"
        })
      )
    })

    it("refuses a name that is no text", () => {
      assert.deepStrictEqual(paths(Message.validate({ role: "user", content: "Hi", name: 42 })), [["name"]])
    })

    it("refuses an isError that is neither true nor false", () => {
      const input = { role: "tool", toolCallId: "c0", content: "done", isError: "no" }

      assert.deepStrictEqual(paths(Message.validate(input)), [["isError"]])
    })

    it("refuses tool calls that are no list", () => {
      const input = { role: "assistant", content: "", toolCalls: "echo" }

      assert.deepStrictEqual(paths(Message.validate(input)), [["toolCalls"]])
    })

    it("reports the faults of a tool call under its place", () => {
      const call = { id: "c0", name: "echo", arguments: {}, metadata: {} }
      const input = { role: "assistant", content: "", toolCalls: [call, { ...call, id: "" }] }

      assert.deepStrictEqual(paths(Message.validate(input)), [["toolCalls", 1, "id"]])
    })

    it.prop(
      "accepts every message there is",
      [Message.Message],
      ([message]) => {
        const named = message.role === "assistant"
          ? { ...message, toolCalls: message.toolCalls.filter((call) => call.name !== "") }
          : message

        assert.deepStrictEqual(Either.getOrThrow(Message.validate(named)), named)
      }
    )

    it.prop(
      "answers junk in any field with a message or a refusal, and never throws",
      [
        Arbitrary.make(Message.Message),
        FastCheck.constantFrom("role", "content", "toolCalls", "toolCallId", "isError", "name", "metadata"),
        FastCheck.anything()
      ],
      ([message, field, junk]) => {
        const checked = Message.validate({ ...message, [field]: junk })

        assert.isTrue(Either.isLeft(checked) || Schema.is(Message.Message)(checked.right))
      },
      { fastCheck: { numRuns: 500 } }
    )
  })
})
