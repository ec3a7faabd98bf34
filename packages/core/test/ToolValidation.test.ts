import { Tool } from "@allm/core"
import type { ValidationError } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Either, FastCheck, Schema } from "effect"

type Checked = Either.Either<unknown, ValidationError.ValidationError>

const refused = (checked: Checked): unknown =>
  Either.match(checked, { onLeft: ({ issues, reason }) => ({ reason, issues }), onRight: () => "accepted" })

const paths = (checked: Checked): unknown =>
  Either.match(checked, { onLeft: ({ issues }) => issues.map((issue) => issue.path), onRight: () => "accepted" })

const invalid = (...issues: ReadonlyArray<ValidationError.Issue>) => ({ reason: "invalid_tool", issues })

const echo = { name: "echo", description: "Says it again", inputSchema: { type: "object" } }

describe("Tool.validate", () => {
  it("accepts a declaration and fills in what was left out", () => {
    assert.deepStrictEqual(Either.getOrThrow(Tool.validate(echo)), {
      ...echo,
      manual: false,
      needsApproval: false,
      replay: "never",
      exclusive: false,
      metadata: {}
    })
  })

  it("VAL-20 refuses an empty name", () => {
    assert.deepStrictEqual(
      refused(Tool.validate({ ...echo, name: "" })),
      invalid({ path: ["name"], code: "empty", message: "write a name, such as \"get_weather\"" })
    )
  })

  for (
    const [name, shown, better] of [
      ["get weather", "\"get weather\"", "get_weather"],
      ["echo\n", "\"echo\\n\"", "echo"],
      ["météo", "\"météo\"", "m_t_o"],
      ["!!", "\"!!\"", "get_weather"],
      [42, "42", "get_weather"],
      [undefined, "undefined", "get_weather"]
    ] as const
  ) {
    it(`VAL-12 refuses the name ${shown} and offers ${better}`, () => {
      assert.deepStrictEqual(
        refused(Tool.validate({ ...echo, name })),
        invalid({
          path: ["name"],
          code: "invalid_format",
          message: `${shown} is not 1 to 64 letters, digits, "_" or "-"; write "${better}"`
        })
      )
    })
  }

  it("VAL-12 accepts 64 characters and refuses 65", () => {
    assert.strictEqual(refused(Tool.validate({ ...echo, name: "a".repeat(64) })), "accepted")
    assert.deepStrictEqual(paths(Tool.validate({ ...echo, name: "a".repeat(65) })), [["name"]])
  })

  for (const name of ["auto", "none", "required"]) {
    it(`VAL-22 refuses ${name}, which is a tool choice`, () => {
      assert.deepStrictEqual(
        refused(Tool.validate({ ...echo, name })),
        invalid({
          path: ["name"],
          code: "reserved_tool_name",
          message: `"${name}" means something as a tool choice; write another name`
        })
      )
    })
  }

  it("VAL-23 refuses a description that is no text", () => {
    assert.deepStrictEqual(
      refused(Tool.validate({ ...echo, description: 42 })),
      invalid({
        path: ["description"],
        code: "not_a_string",
        message: "write a sentence that tells the model what the tool does, not a number"
      })
    )
  })

  it("VAL-24 refuses a schema that is no object", () => {
    assert.deepStrictEqual(
      refused(Tool.validate({ ...echo, inputSchema: "object" })),
      invalid({
        path: ["inputSchema"],
        code: "not_a_map",
        message: "write a JSON Schema object, not a string"
      })
    )
  })

  it("VAL-26 reports every fault at once", () => {
    assert.deepStrictEqual(
      refused(Tool.validate({ name: "", description: null, inputSchema: [], manual: "true", replay: "always" })),
      invalid(
        { path: ["name"], code: "empty", message: "write a name, such as \"get_weather\"" },
        {
          path: ["description"],
          code: "not_a_string",
          message: "write a sentence that tells the model what the tool does, not null"
        },
        { path: ["inputSchema"], code: "not_a_map", message: "write a JSON Schema object, not an array" },
        { path: ["manual"], code: "not_a_boolean", message: "write true or false, not \"true\"" },
        {
          path: ["replay"],
          code: "unknown",
          message: "write \"never\", \"idempotent\" or \"readonly\", not \"always\""
        }
      )
    )
  })

  it("refuses what is no object", () => {
    assert.deepStrictEqual(
      refused(Tool.validate(null)),
      invalid({
        path: [],
        code: "invalid_type",
        message: "a declaration is an object, not null; write Tool.declaration(tool)"
      })
    )
  })

  for (const timeoutMillis of [0, -1, NaN, Infinity, "5 seconds"]) {
    it(`refuses a limit of ${timeoutMillis}: it is a positive number of milliseconds`, () => {
      assert.deepStrictEqual(paths(Tool.validate({ ...echo, timeoutMillis })), [["timeoutMillis"]])
    })
  }

  it("refuses a schema that JSON would lose", () => {
    assert.deepStrictEqual(paths(Tool.validate({ ...echo, inputSchema: { default: () => 1 } })), [["inputSchema"]])
  })

  it.prop(
    "answers junk in any field with a declaration or a refusal, and never throws",
    [
      Arbitrary.make(Tool.Declaration),
      FastCheck.constantFrom(...Object.keys(Tool.Declaration.fields)),
      FastCheck.anything()
    ],
    ([declaration, field, junk]) => {
      const checked = Tool.validate({ ...declaration, name: "echo", [field]: junk })

      assert.isTrue(Either.isLeft(checked) || Schema.is(Tool.Declaration)(checked.right))
    },
    { fastCheck: { numRuns: 500 } }
  )
})
