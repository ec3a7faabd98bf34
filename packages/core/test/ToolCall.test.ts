import { ToolCall } from "@allm/core"
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

const invalid = (...issues: ReadonlyArray<ValidationError.Issue>) => ({ reason: "invalid_tool_call", issues })

const noId = {
  path: ["id"],
  code: "required",
  message: "write the call's id, a non-empty string, as the model gave it"
}
const noName = {
  path: ["name"],
  code: "required",
  message: "write the name of the tool to call, a non-empty string"
}
const noArguments = {
  path: ["arguments"],
  code: "required",
  message: "write the parsed arguments, {} for none; text goes to ToolCall.fromRaw"
}

const raw = (rawArguments: string) => ToolCall.fromRaw({ id: "c0", name: "echo", rawArguments })

describe("ToolCall", () => {
  describe("make", () => {
    it("TOOL-12 needs an id, a name and arguments, and no more", () => {
      assert.deepStrictEqual(ToolCall.make({ id: "c0", name: "echo", arguments: { a: 1 } }), {
        id: "c0",
        name: "echo",
        arguments: { a: 1 },
        metadata: {}
      })
    })

    it("keeps the text of the arguments and the metadata", () => {
      const call = { id: "c0", name: "echo", arguments: {}, rawArguments: "{ }", metadata: { index: 0 } }

      assert.deepStrictEqual(ToolCall.make(call), call)
    })

    it("TOOL-11 throws without an id", () => {
      assert.deepStrictEqual(thrown(() => ToolCall.make({ name: "echo", arguments: {} } as never)), invalid(noId))
      assert.deepStrictEqual(thrown(() => ToolCall.make({ id: "", name: "echo", arguments: {} })), invalid(noId))
    })

    it("TOOL-11 throws without a name", () => {
      assert.deepStrictEqual(thrown(() => ToolCall.make({ id: "c0", arguments: {} } as never)), invalid(noName))
      assert.deepStrictEqual(thrown(() => ToolCall.make({ id: "c0", name: "", arguments: {} })), invalid(noName))
    })

    it("TOOL-11 throws without arguments and says where text goes", () => {
      assert.deepStrictEqual(thrown(() => ToolCall.make({ id: "c0", name: "echo" } as never)), invalid(noArguments))
    })

    it("TOOL-11 reports all that is missing at once", () => {
      assert.deepStrictEqual(thrown(() => ToolCall.make({} as never)), invalid(noId, noName, noArguments))
    })

    it("throws on arguments that are not JSON, and says where", () => {
      assert.deepStrictEqual(
        thrown(() => ToolCall.make({ id: "c0", name: "echo", arguments: { list: [{ when: new Date(0) }] } })),
        invalid({ path: ["arguments"], code: "not_json", message: "at $.list[0].when a Date is not JSON" })
      )
    })

    it("throws on metadata that is not JSON", () => {
      assert.deepStrictEqual(
        thrown(() => ToolCall.make({ id: "c0", name: "echo", arguments: {}, metadata: { n: NaN } })),
        invalid({ path: ["metadata"], code: "not_json", message: "at $.n NaN is not a JSON number" })
      )
    })

    it("throws on metadata that is no object", () => {
      const checked = attempt(() => ToolCall.make({ id: "c0", name: "echo", arguments: {}, metadata: [1] as never }))

      assert.deepStrictEqual(paths(checked), [["metadata"]])
    })

    it("throws on argument text that is no text", () => {
      assert.deepStrictEqual(
        thrown(() => ToolCall.make({ id: "c0", name: "echo", arguments: {}, rawArguments: 42 as never })),
        invalid({
          path: ["rawArguments"],
          code: "invalid_type",
          message: "write the text of the arguments, not a number"
        })
      )
    })
  })

  describe("fromRaw", () => {
    it("parses the arguments and keeps their text", () => {
      assert.deepStrictEqual(raw("{\"a\": 1}"), {
        id: "c0",
        name: "echo",
        arguments: { a: 1 },
        rawArguments: "{\"a\": 1}",
        metadata: {}
      })
    })

    for (const broken of ["{\"a\":", "{a: 1}", "undefined", "{} {}", "{\"a\": NaN}"]) {
      it(`keeps ${broken} as text and invents no arguments`, () => {
        assert.deepStrictEqual(raw(broken), { id: "c0", name: "echo", rawArguments: broken, metadata: {} })
        assert.notProperty(raw(broken), "arguments")
      })
    }

    for (const nothing of ["", " \n\t"]) {
      it(`takes ${JSON.stringify(nothing)} for no arguments`, () => {
        assert.deepStrictEqual(raw(nothing).arguments, {})
        assert.strictEqual(raw(nothing).rawArguments, nothing)
      })
    }

    it("parses JSON that is no object, for the tool's schema to refuse", () => {
      assert.deepStrictEqual(["null", "[1]", "\"a\""].map((text) => raw(text).arguments), [null, [1], "a"])
    })

    it("keeps a key named __proto__", () => {
      assert.deepStrictEqual(Object.keys(Object(raw("{\"__proto__\":1}").arguments)), ["__proto__"])
    })

    it("takes a number too large for JavaScript for broken, so that the call can be stored", () => {
      assert.deepStrictEqual(raw("{\"a\":1e999}"), {
        id: "c0",
        name: "echo",
        rawArguments: "{\"a\":1e999}",
        metadata: {}
      })
    })

    it("takes JSON nested beyond reason for broken, so that the call can be stored", () => {
      const text = `${"[".repeat(2000)}${"]".repeat(2000)}`

      assert.notProperty(raw(text), "arguments")
      assert.strictEqual(raw(text).rawArguments, text)
    })

    it("TOOL-11 throws without an id or a name", () => {
      assert.deepStrictEqual(
        thrown(() => ToolCall.fromRaw({ id: "", name: "", rawArguments: "{}" })),
        invalid(noId, noName)
      )
    })

    it("TOOL-11 throws without text", () => {
      const checked = attempt(() => ToolCall.fromRaw({ id: "c0", name: "echo" } as never))

      assert.deepStrictEqual(paths(checked), [["rawArguments"]])
    })

    it.prop("reads back any JSON as it was", [FastCheck.json()], ([text]) => {
      assert.deepStrictEqual(raw(text).arguments, JSON.parse(text))
    })
  })

  describe("validate", () => {
    it("TOOL-12 fills in the metadata", () => {
      assert.deepStrictEqual(Either.getOrThrow(ToolCall.validate({ id: "c0", name: "echo", arguments: {} })), {
        id: "c0",
        name: "echo",
        arguments: {},
        metadata: {}
      })
    })

    it("accepts a call whose arguments did not parse", () => {
      const broken = raw("{\"a\":")

      assert.deepStrictEqual(Either.getOrThrow(ToolCall.validate(broken)), broken)
    })

    it("TOOL-11 refuses a call without id and name", () => {
      assert.deepStrictEqual(refused(ToolCall.validate({ arguments: {} })), invalid(noId, noName))
    })

    it("refuses what is no object", () => {
      assert.deepStrictEqual(
        refused(ToolCall.validate(null)),
        invalid({
          path: [],
          code: "invalid_type",
          message: "a tool call is an object { id, name, arguments }, not null"
        })
      )
    })

    it.prop(
      "answers junk in any field with a call or a refusal, and never throws",
      [
        Arbitrary.make(ToolCall.ToolCall),
        FastCheck.constantFrom("id", "name", "arguments", "rawArguments", "metadata"),
        FastCheck.anything()
      ],
      ([call, field, junk]) => {
        const checked = ToolCall.validate({ ...call, [field]: junk })

        assert.isTrue(Either.isLeft(checked) || Schema.is(ToolCall.ToolCall)(checked.right))
      },
      { fastCheck: { numRuns: 500 } }
    )
  })
})
