import { Message, Request, Tool } from "@allm/core"
import type { ValidationError } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Either, FastCheck, Schema } from "effect"

type Checked = Either.Either<unknown, ValidationError.ValidationError>

const attempt = (construct: () => unknown): Checked =>
  Either.try({ try: construct, catch: (error) => error as ValidationError.ValidationError })

const refused = (checked: Checked): unknown =>
  Either.match(checked, { onLeft: ({ issues, reason }) => ({ reason, issues }), onRight: () => "accepted" })

const paths = (checked: Checked): unknown =>
  Either.match(checked, { onLeft: ({ issues }) => issues.map((issue) => issue.path), onRight: () => "accepted" })

const invalid = (...issues: ReadonlyArray<ValidationError.Issue>) => ({ reason: "invalid_request", issues })

const messages = [Message.user("Hi")]
const declare = (name: string) => Tool.declaration(Tool.make(name, { description: "Does it" }))

describe("Request", () => {
  describe("make", () => {
    it("needs messages and no more", () => {
      assert.deepStrictEqual(Request.make({ messages }), { messages, tools: [], options: {}, metadata: {} })
    })

    it("keeps all it is given", () => {
      const request: Request.Request = {
        messages,
        tools: [declare("echo")],
        model: "small",
        temperature: 0.5,
        maxTokens: 100,
        toolChoice: "required",
        responseFormat: { type: "json_object" },
        options: { seed: 1 },
        metadata: { run: "r0" }
      }

      assert.deepStrictEqual(Request.make(request), request)
    })

    it("VAL-06 throws, and says what to write instead", () => {
      assert.deepStrictEqual(
        refused(attempt(() => Request.make({ messages, maxTokens: 0 }))),
        invalid({
          path: ["maxTokens"],
          code: "must_be_positive",
          message: "write a positive whole number, not 0"
        })
      )
    })

    it("takes an undefined field for one that was left out", () => {
      const fields = { messages, model: undefined, temperature: undefined, toolChoice: undefined } as never

      assert.deepStrictEqual(refused(attempt(() => Request.make(fields))), "accepted")
    })
  })

  describe("validate", () => {
    it("VAL-02 refuses a request without messages", () => {
      assert.deepStrictEqual(
        refused(Request.validate({ messages: [] })),
        invalid({
          path: ["messages"],
          code: "empty",
          message: "a request needs a message; write [Message.user(\"…\")]"
        })
      )
    })

    it("VAL-02 refuses messages that are no list", () => {
      assert.deepStrictEqual(
        refused(Request.validate({ messages: "Hi" })),
        invalid({ path: ["messages"], code: "invalid_type", message: "write a list of messages, not a string" })
      )
    })

    it("VAL-03 refuses two tools of one name, once however many there are", () => {
      assert.deepStrictEqual(
        refused(Request.validate({ messages, tools: [declare("a"), declare("b"), declare("a"), declare("a")] })),
        invalid({ path: ["tools"], code: "duplicate_name", message: "two tools are named \"a\"; rename one" })
      )
    })

    for (
      const [temperature, shown] of [[3, "3"], [-0.1, "-0.1"], [NaN, "NaN"], ["hot", "\"hot\""], [
        null,
        "null"
      ]] as const
    ) {
      it(`VAL-04 refuses a temperature of ${shown}`, () => {
        assert.deepStrictEqual(
          refused(Request.validate({ messages, temperature })),
          invalid({
            path: ["temperature"],
            code: "out_of_range",
            message: `write a number from 0 to 2, not ${shown}`
          })
        )
      })
    }

    it("VAL-04 accepts both ends of the range", () => {
      assert.deepStrictEqual(
        [0, 2].map((temperature) => Either.getOrThrow(Request.validate({ messages, temperature })).temperature),
        [0, 2]
      )
    })

    for (
      const [maxTokens, shown] of [[0, "0"], [-1, "-1"], [1.5, "1.5"], [Infinity, "Infinity"], ["9", "\"9\""]] as const
    ) {
      it(`VAL-06 refuses ${shown} as maxTokens`, () => {
        assert.deepStrictEqual(
          refused(Request.validate({ messages, maxTokens })),
          invalid({
            path: ["maxTokens"],
            code: "must_be_positive",
            message: `write a positive whole number, not ${shown}`
          })
        )
      })
    }

    it("VAL-06 accepts one token", () => {
      assert.strictEqual(Either.getOrThrow(Request.validate({ messages, maxTokens: 1 })).maxTokens, 1)
    })

    for (
      const [responseFormat, shown] of [["json", "\"json\""], [{ type: "xml" }, "an object"], [[], "an array"]] as const
    ) {
      it(`VAL-10 refuses ${JSON.stringify(responseFormat)} as response format`, () => {
        assert.deepStrictEqual(
          refused(Request.validate({ messages, responseFormat })),
          invalid({
            path: ["responseFormat"],
            code: "invalid_shape",
            message: `write { type: "json_schema", name, schema }, not ${shown}`
          })
        )
      })
    }

    it("VAL-10 accepts every form, and is strict about a schema unless told", () => {
      assert.deepStrictEqual(
        [{ type: "text" }, { type: "json_object" }, { type: "json_schema", name: "answer", schema: {} }].map(
          (responseFormat) => Either.getOrThrow(Request.validate({ messages, responseFormat })).responseFormat
        ),
        [
          { type: "text" },
          { type: "json_object" },
          { type: "json_schema", name: "answer", schema: {}, strict: true }
        ]
      )
    })

    it("refuses a tool choice nobody knows", () => {
      assert.deepStrictEqual(
        refused(Request.validate({ messages, toolChoice: "echo" })),
        invalid({
          path: ["toolChoice"],
          code: "invalid_shape",
          message: "write \"auto\", \"none\", \"required\" or { tool: \"name\" }, not \"echo\""
        })
      )
    })

    it("accepts every tool choice", () => {
      const choices: Array<Request.ToolChoice> = ["auto", "none", "required", { tool: "echo" }]

      assert.deepStrictEqual(
        choices.map((toolChoice) => Either.getOrThrow(Request.validate({ messages, toolChoice })).toolChoice),
        choices
      )
    })

    it("VAL-11 reports a bad role under its message", () => {
      assert.deepStrictEqual(
        refused(Request.validate({ messages: [...messages, { role: "robot", content: "Hi" }] })),
        invalid({
          path: ["messages", 1, "role"],
          code: "unknown",
          message: "\"robot\" is no role; write \"system\", \"user\", \"assistant\" or \"tool\""
        })
      )
    })

    it("VAL-12 reports a bad name under its tool, and offers a good one", () => {
      assert.deepStrictEqual(
        refused(Request.validate({ messages, tools: [declare("a"), { ...declare("b"), name: "get weather" }] })),
        invalid({
          path: ["tools", 1, "name"],
          code: "invalid_format",
          message: "\"get weather\" is not 1 to 64 letters, digits, \"_\" or \"-\"; write \"get_weather\""
        })
      )
    })

    it("VAL-14 reports a part that is none under its place in the content", () => {
      assert.deepStrictEqual(
        refused(Request.validate({ messages: [{ role: "user", content: [{ text: "Hi" }] }] })),
        invalid({
          path: ["messages", 0, "content", 0],
          code: "invalid_part_type",
          message:
            "expected a TextPart or an ImagePart, got an object; write Message.text(\"…\") or Message.image(\"…\")"
        })
      )
    })

    it("VAL-26 reports every fault at once", () => {
      const checked = Request.validate({
        messages: [{ role: "tool", content: "done" }],
        tools: [{ ...declare("a"), name: "" }],
        temperature: "hot",
        maxTokens: 0,
        toolChoice: 1,
        responseFormat: "json"
      })

      assert.deepStrictEqual(
        Either.match(checked, {
          onLeft: ({ issues }) => issues.map(({ code, path }) => [path, code]),
          onRight: () => []
        }),
        [
          [["messages", 0, "toolCallId"], "required"],
          [["tools", 0, "name"], "empty"],
          [["temperature"], "out_of_range"],
          [["maxTokens"], "must_be_positive"],
          [["toolChoice"], "invalid_shape"],
          [["responseFormat"], "invalid_shape"]
        ]
      )
    })

    it("refuses tools that are no list", () => {
      assert.deepStrictEqual(
        refused(Request.validate({ messages, tools: declare("a") })),
        invalid({ path: ["tools"], code: "invalid_type", message: "write a list of declarations, not an object" })
      )
    })

    it("refuses what is no object", () => {
      assert.deepStrictEqual(
        refused(Request.validate("Hi")),
        invalid({
          path: [],
          code: "invalid_type",
          message: "a request is an object, not a string; write Request.make({ … })"
        })
      )
    })

    it("refuses a model that is no text", () => {
      assert.deepStrictEqual(paths(Request.validate({ messages, model: 42 })), [["model"]])
    })

    it("refuses options and metadata that JSON would lose", () => {
      assert.deepStrictEqual(paths(Request.validate({ messages, options: { f: () => 1 } })), [["options"]])
      assert.deepStrictEqual(paths(Request.validate({ messages, metadata: { n: 1n } })), [["metadata"]])
    })

    it.prop(
      "answers junk in any field with a request or a refusal, and never throws",
      [
        Arbitrary.make(Request.Request),
        FastCheck.constantFrom(...Object.keys(Request.Request.fields)),
        FastCheck.anything()
      ],
      ([request, field, junk]) => {
        const checked = Request.validate({ ...request, messages, tools: [], [field]: junk })

        assert.isTrue(Either.isLeft(checked) || Schema.is(Request.Request)(checked.right))
      },
      { fastCheck: { numRuns: 500 } }
    )
  })
})
