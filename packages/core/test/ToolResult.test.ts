import { Tool, ToolCall, ToolContext, ToolExecutor, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Schema } from "effect"

const execute = (handler: () => unknown) =>
  ToolExecutor.handlers.execute(
    Tool.make("x", { description: "Does something", handler }),
    {},
    ToolContext.make({ toolCall: ToolCall.make({ id: "c0", name: "x", arguments: {} }) })
  )

const roundTrip = (outcome: ToolResult.ToolOutcome) =>
  Effect.flatMap(
    Schema.encode(ToolResult.ToolOutcome)(outcome),
    (encoded) => Schema.decodeUnknown(ToolResult.ToolOutcome)(JSON.parse(JSON.stringify(encoded)))
  )

describe("ToolResult", () => {
  it("says what a value cannot", () => {
    assert.deepStrictEqual({ ...ToolResult.ok(1) }, { _tag: "Ok", value: 1 })
    assert.deepStrictEqual({ ...ToolResult.error("no") }, { _tag: "Failure", reason: "no" })
    assert.deepStrictEqual({ ...ToolResult.askUser("Which?") }, { _tag: "AskUser", question: "Which?", options: {} })
    assert.deepStrictEqual({ ...ToolResult.askUser("Which?", { choices: ["a"] }) }, {
      _tag: "AskUser",
      question: "Which?",
      options: { choices: ["a"] }
    })
    assert.deepStrictEqual({ ...ToolResult.halt("submitted", { id: 1 }) }, {
      _tag: "Halt",
      reason: "submitted",
      result: { id: 1 }
    })
  })

  it("is known by its brand, not by its looks", () => {
    assert.strictEqual(ToolResult.isToolResult(ToolResult.ok(1)), true)
    assert.strictEqual(ToolResult.isToolResult(ToolResult.error(1)), true)
    assert.strictEqual(ToolResult.isToolResult(ToolResult.askUser("?")), true)
    assert.strictEqual(ToolResult.isToolResult(ToolResult.halt("done", 1)), true)
    assert.strictEqual(ToolResult.isToolResult({ _tag: "Ok", value: 1 }), false)
    assert.strictEqual(ToolResult.isToolResult(undefined), false)
    assert.strictEqual(ToolResult.isToolResult("Ok"), false)
  })

  it.effect("leaves data that only looks like a result alone", () =>
    Effect.gen(function*() {
      const lookalike = { _tag: "Halt", reason: "submitted", result: 1 }

      const outcome = yield* execute(() => lookalike)

      assert.deepStrictEqual({ ...outcome }, { _tag: "Ok", value: lookalike })
    }))

  it.effect("carries a value that would be taken for something else", () =>
    Effect.gen(function*() {
      const inner = ToolResult.error("kept as data")

      const outcome = yield* execute(() => ToolResult.ok(inner))

      assert(outcome._tag === "Ok")
      assert.strictEqual(outcome.value, inner)
    }))

  it.effect("means the same returned, promised or from an Effect", () =>
    Effect.gen(function*() {
      const result = ToolResult.halt("submitted", 1)

      const outcomes = yield* Effect.forEach(
        [() => result, () => Promise.resolve(result), () => Effect.succeed(result)],
        execute
      )

      assert.deepStrictEqual(outcomes, [result, result, result])
    }))

  it.effect("makes returning an error and failing with it the same thing", () =>
    Effect.gen(function*() {
      const reason = { code: 404 }
      const ways = [
        () => ToolResult.error(reason),
        () => Promise.resolve(ToolResult.error(reason)),
        () => Effect.succeed(ToolResult.error(reason)),
        () => Effect.fail(reason)
      ]

      const errors = yield* Effect.forEach(ways, (handler) => Effect.flip(execute(handler)))

      for (const error of errors) {
        assert(error._tag === "HandlerFailed")
        assert.strictEqual(error.failure, reason)
        assert.deepStrictEqual(error.cause, Cause.fail(reason))
        assert.strictEqual(error.origin, "handler")
      }
      assert.strictEqual(errors.length, 4)
    }))

  describe("ToolOutcome", () => {
    it.effect("goes to JSON and back", () =>
      Effect.gen(function*() {
        const outcomes = [
          ToolResult.ok({ city: "Oslo" }),
          ToolResult.askUser("Which?", { choices: ["a", "b"] }),
          ToolResult.halt("submitted", [1, null])
        ]

        assert.deepStrictEqual(
          yield* Effect.forEach(outcomes, roundTrip),
          outcomes.map((outcome): ToolResult.ToolOutcome => ({ ...outcome }))
        )
      }))

    it.effect("keeps the form of the success schema", () =>
      Effect.gen(function*() {
        const outcome: ToolResult.ToolOutcome = { _tag: "Ok", value: "1970-01-01", encoded: "day one" }

        assert.deepStrictEqual(yield* roundTrip(outcome), outcome)
      }))

    it.effect("puts a readable stand-in where JSON has no form", () =>
      Effect.gen(function*() {
        const again = yield* roundTrip(ToolResult.ok({ total: 2n, at: new Map([["a", () => 1]]) }))

        assert.deepStrictEqual(JSON.parse(JSON.stringify(again)), {
          _tag: "Ok",
          value: { total: "[a bigint has no JSON form]", at: { a: "[a function has no JSON form]" } }
        })
      }))
  })
})
