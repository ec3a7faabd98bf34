import { AdapterChecks, Check, EventLaws, ToolResultEncoderChecks } from "@allm/conformance"
import { Adapter, AdapterError, type Event, ToolResultEncoder } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"

describe("Check", () => {
  it.effect("says which promise is broken, and how", () =>
    Effect.gen(function*() {
      const encoder = ToolResultEncoder.layer({ encode: () => Effect.succeed("") })
      const [, nothing] = ToolResultEncoderChecks.make(encoder)

      const violation = yield* Effect.flip(nothing!.effect)

      assert.strictEqual(violation.message, "writes null for undefined: the text is \"\", not \"null\"")
    }))

  it.effect("takes what never ends for broken, also when it cannot be interrupted", () =>
    Effect.gen(function*() {
      const encoder = ToolResultEncoder.layer({ encode: () => Effect.uninterruptible(Effect.never) })
      const [first] = ToolResultEncoderChecks.make(encoder, { limit: "20 millis" })

      const violation = yield* Effect.flip(first!.effect)

      assert.strictEqual(violation.problem, "it does not come to an end")
    }))

  it.effect("never dies", () =>
    Effect.gen(function*() {
      const encoder = ToolResultEncoder.layer({
        encode: () => {
          throw new Error("no")
        }
      })
      const exits = yield* Effect.forEach(ToolResultEncoderChecks.make(encoder), (check) =>
        Effect.exit(Effect.either(check.effect)))

      assert.deepStrictEqual(exits.filter(Exit.isFailure), [])
    }))

  it.effect("is skipped when its scenario is not given", () =>
    Effect.gen(function*() {
      const text = () => Adapter.make(() => Effect.fail(new AdapterError.AdapterError({ reason: "unknown" })))
      const skipped = AdapterChecks.make({ scenarios: { text } }).filter((check) => check.skipped !== undefined)

      assert.deepStrictEqual(
        [...new Set(skipped.map((check) => check.skipped))],
        ["toolCalls", "brokenArguments", "echo", "failure", "cut", "slow"].map((name) => `the scenario \`${name}\``)
      )
      assert.deepStrictEqual(yield* Check.violations(skipped), [])
    }))
})

describe("EventLaws", () => {
  const completed: Event.Event = { _tag: "MessageCompleted", finishReason: "stop", metadata: {} }

  it("finds nothing in a good answer", () => {
    assert.deepStrictEqual(
      EventLaws.problems([{ _tag: "TextDelta", delta: "a" }, { _tag: "TextCompleted", text: "a" }, completed]),
      []
    )
  })

  it("keeps the blocks of a text apart", () => {
    const events: ReadonlyArray<Event.Event> = [
      { _tag: "TextDelta", id: "1", delta: "a" },
      { _tag: "TextDelta", id: "2", delta: "b" },
      { _tag: "TextCompleted", id: "1", text: "a" },
      { _tag: "TextCompleted", id: "2", text: "b" },
      completed
    ]

    assert.deepStrictEqual(EventLaws.problems(events), [])
    assert.strictEqual(EventLaws.said(events).text, "ab")
  })

  it("tells every law that is broken", () => {
    assert.deepStrictEqual(
      EventLaws.problems([
        { _tag: "TextCompleted", text: "a" },
        { _tag: "TextDelta", delta: "b" },
        { _tag: "ToolCallStarted", toolCallId: "", toolName: "t" }
      ]),
      [
        "ends with exactly one MessageCompleted: there are 0",
        "completes a text with what its deltas said: TextDelta comes after the text was complete",
        "starts each tool call once, under an id and a name of its own: a call has no id",
        "completes each tool call once, after its start and its deltas: the call  is never completed"
      ]
    )
  })
})
