import { ValidationError } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"

const fault = (path: ValidationError.Issue["path"], message = "write it better") => ({ path, code: "bad", message })

describe("ValidationError", () => {
  it("ERR-04 counts the faults and lists each with its path", () => {
    const error = new ValidationError.ValidationError({
      reason: "invalid_request",
      issues: [
        { path: ["messages"], code: "empty", message: "a request needs a message" },
        { path: ["tools", 1, "name"], code: "empty", message: "write a name" }
      ]
    })

    assert.strictEqual(
      error.message,
      [
        "validation failed: invalid_request (2 errors)",
        "- $.messages: a request needs a message",
        "- $.tools[1].name: write a name"
      ].join("\n")
    )
  })

  it("ERR-04 counts one fault as one", () => {
    const error = new ValidationError.ValidationError({ reason: "invalid_tool", issues: [fault(["name"])] })

    assert.strictEqual(error.message, "validation failed: invalid_tool (1 error)\n- $.name: write it better")
  })

  it("writes a path the way JavaScript reads it", () => {
    const message = (path: ValidationError.Issue["path"]) =>
      new ValidationError.ValidationError({ reason: "invalid_options", issues: [fault(path, "x")] }).message.split(
        "\n"
      )[1]

    assert.deepStrictEqual(
      [[], [0], ["a", "b"], ["a b"], ["it's \"so\""], ["0"]].map(message),
      ["- $: x", "- $[0]: x", "- $.a.b: x", "- $[\"a b\"]: x", "- $[\"it's \\\"so\\\"\"]: x", "- $[\"0\"]: x"]
    )
  })

  it("ERR-02 knows no other reasons than its own", () => {
    assert.deepStrictEqual(ValidationError.Reason.literals, [
      "invalid_request",
      "invalid_message",
      "invalid_tool",
      "invalid_tool_call",
      "invalid_thread",
      "invalid_session",
      "invalid_options",
      "unsupported_capability"
    ])
    assert.throws(
      () => new ValidationError.ValidationError({ reason: "bad_luck" as never, issues: [fault([])] }),
      /bad_luck/
    )
  })

  it("ERR-02 names at least one fault", () => {
    assert.throws(
      () => new ValidationError.ValidationError({ reason: "invalid_tool", issues: [] as never }),
      /issues/
    )
  })

  it("is an Error, told apart by its tag", () => {
    const error = new ValidationError.ValidationError({ reason: "invalid_tool", issues: [fault([])] })

    assert.instanceOf(error, Error)
    assert.strictEqual(error._tag, "ValidationError")
    assert.strictEqual(error.name, "ValidationError")
  })

  it.effect("is a typed failure of an effect", () =>
    Effect.gen(function*() {
      const issues = [fault(["name"])] as const
      const caught = yield* Effect.catchTag(
        new ValidationError.ValidationError({ reason: "invalid_tool", issues }),
        "ValidationError",
        (error) => Effect.succeed(error.issues)
      )

      assert.deepStrictEqual(caught, issues)
    }))

  it.effect("goes to JSON as tag, reason and faults", () =>
    Effect.gen(function*() {
      const error = new ValidationError.ValidationError({ reason: "invalid_tool", issues: [fault(["tools", 0])] })

      assert.deepStrictEqual(yield* Schema.encode(ValidationError.ValidationError)(error), {
        _tag: "ValidationError",
        reason: "invalid_tool",
        issues: [{ path: ["tools", 0], code: "bad", message: "write it better" }]
      })
    }))
})
