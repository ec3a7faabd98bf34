import { ToolError } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
// The assert of vitest compares errors by name and message alone.
import { deepStrictEqual } from "@effect/vitest/utils"
import { Cause, Chunk, Effect, FiberId, Redacted, Schema } from "effect"

const Text = Schema.parseJson(ToolError.ToolError)

const ids = { toolName: "echo", toolCallId: "c0" }

const everyError: ReadonlyArray<ToolError.ToolError> = [
  new ToolError.HandlerFailed({ ...ids, failure: "no" }),
  new ToolError.HandlerRaised(ids),
  new ToolError.HandlerExit(ids),
  new ToolError.Timeout(ids),
  new ToolError.InvalidArguments({ ...ids, issues: [] }),
  new ToolError.InvalidReturn({ ...ids, detail: "not a result" }),
  new ToolError.EncodingFailed({ ...ids, path: [], detail: "has no JSON form" }),
  new ToolError.NotFound({ ...ids, detail: "the tool has no handler" }),
  new ToolError.Denied(ids),
  new ToolError.OutcomeUnknown(ids),
  new ToolError.Interrupted(ids),
  new ToolError.Skipped(ids)
]

describe("ToolError", () => {
  it("has one tag, one reason and one origin for every way to go wrong", () => {
    assert.deepStrictEqual(everyError.map((error) => [error._tag, error.reason, error.origin]), [
      ["HandlerFailed", "handler_failed", "handler"],
      ["HandlerRaised", "handler_raised", "executor"],
      ["HandlerExit", "handler_exit", "executor"],
      ["Timeout", "timeout", "executor"],
      ["InvalidArguments", "invalid_arguments", "executor"],
      ["InvalidReturn", "invalid_return", "executor"],
      ["EncodingFailed", "encoding_failed", "executor"],
      ["NotFound", "not_found", "executor"],
      ["Denied", "denied", "executor"],
      ["OutcomeUnknown", "outcome_unknown", "executor"],
      ["Interrupted", "interrupted", "executor"],
      ["Skipped", "skipped", "executor"]
    ])
  })

  it("the union has no more members than these", () => {
    assert.deepStrictEqual(
      ToolError.ToolError.members.map((member) => member._tag),
      everyError.map((error) => error._tag)
    )
  })

  it("ERR-02 refuses a reason that is not the tag's", () => {
    assert.throws(() => new ToolError.Timeout({ reason: "bad_luck" as never }), /bad_luck/)
    assert.throws(() => new ToolError.Timeout({ reason: "denied" as never }), /denied/)
  })

  it("ERR-02 refuses an origin that is not the tag's", () => {
    assert.throws(() => new ToolError.HandlerRaised({ origin: "handler" as never }), /handler/)
    assert.throws(() => new ToolError.HandlerFailed({ failure: 1, origin: "executor" as never }), /executor/)
  })

  describe("message", () => {
    it("ERR-03 says the reason", () => {
      assert.strictEqual(new ToolError.Timeout({}).message, "tool error: timeout")
    })

    it("ERR-03 says the tool's name when it is known", () => {
      assert.strictEqual(new ToolError.Timeout({ toolName: "echo" }).message, "tool error (echo): timeout")
    })

    it("lists what is wrong with the arguments", () => {
      const error = new ToolError.InvalidArguments({
        ...ids,
        issues: [
          { path: ["city"], message: "is missing" },
          { path: ["days", 0], message: "Expected number, actual \"x\"" }
        ]
      })

      assert.strictEqual(
        error.message,
        "tool error (echo): invalid_arguments: $.city: is missing; $.days[0]: Expected number, actual \"x\""
      )
    })

    it("leads to the part that has no text form", () => {
      const error = new ToolError.EncodingFailed({
        ...ids,
        path: ["items", 2, "grand total"],
        detail: "a bigint has no JSON form"
      })

      assert.strictEqual(
        error.message,
        "tool error (echo): encoding_failed: at $.items[2][\"grand total\"] a bigint has no JSON form"
      )
    })

    it("adds the detail where there is one", () => {
      assert.deepStrictEqual([
        new ToolError.InvalidReturn({ ...ids, detail: "not a result" }).message,
        new ToolError.NotFound({ ...ids, detail: "no handler" }).message,
        new ToolError.Denied({ ...ids, detail: "too dear" }).message,
        new ToolError.Denied(ids).message
      ], [
        "tool error (echo): invalid_return: not a result",
        "tool error (echo): not_found: no handler",
        "tool error (echo): denied: too dear",
        "tool error (echo): denied"
      ])
    })

    it("never says what a failure or a cause says", () => {
      const cause = Cause.die(new Error("password 123"))

      assert.strictEqual(
        new ToolError.HandlerRaised({ ...ids, cause }).message,
        "tool error (echo): handler_raised"
      )
      assert.strictEqual(
        new ToolError.HandlerFailed({ ...ids, failure: "password 123", cause }).message,
        "tool error (echo): handler_failed"
      )
    })
  })

  describe("in memory", () => {
    it("keeps a failure untouched", () => {
      const failure = new Map([["code", 7n]])

      assert.strictEqual(new ToolError.HandlerFailed({ failure }).failure, failure)
    })

    it("keeps what was thrown untouched", () => {
      const boom = new Error("boom")
      const error = new ToolError.HandlerRaised({ cause: Cause.die(boom) })

      assert.deepStrictEqual(error.cause, Cause.die(boom))
      assert.strictEqual(Cause.squash(error.cause ?? Cause.empty), boom)
    })

    it.effect("is a typed failure of an effect", () =>
      Effect.gen(function*() {
        const caught = yield* Effect.catchTag(
          new ToolError.Timeout({ ...ids, limitMillis: 50 }),
          "Timeout",
          (error) => Effect.succeed(error.limitMillis)
        )

        assert.strictEqual(caught, 50)
      }))
  })

  describe("isToolError", () => {
    it("knows every member", () => {
      assert.deepStrictEqual(everyError.filter((error) => !ToolError.isToolError(error)), [])
    })

    it("takes nothing else for one", () => {
      const others = [
        undefined,
        null,
        "Timeout",
        new Error("Timeout"),
        { _tag: "Timeout", reason: "timeout", origin: "executor" },
        Object.assign(new Error("Timeout"), { _tag: "Timeout" }),
        Object.assign(new Error("Timeout"), { _tag: "RateLimited", origin: "executor" })
      ]

      assert.deepStrictEqual(others.filter(ToolError.isToolError), [])
    })
  })

  describe("as JSON", () => {
    it.effect("every member comes back as what it was", () =>
      Effect.gen(function*() {
        for (const error of everyError) {
          const back = yield* Schema.decode(Text)(yield* Schema.encode(Text)(error))

          deepStrictEqual(back, error)
        }
      }))

    it.effect("says tag, ids, reason and origin", () =>
      Effect.gen(function*() {
        const text = yield* Schema.encode(Text)(new ToolError.Timeout({ ...ids, limitMillis: 50, abandoned: true }))

        assert.deepStrictEqual(JSON.parse(text), {
          _tag: "Timeout",
          toolName: "echo",
          toolCallId: "c0",
          reason: "timeout",
          origin: "executor",
          limitMillis: 50,
          abandoned: true
        })
      }))

    it.effect("fills in reason and origin from the tag", () =>
      Effect.gen(function*() {
        const error = yield* Schema.decode(Schema.parseJson(ToolError.Timeout))("{\"_tag\":\"Timeout\"}")

        deepStrictEqual(error, new ToolError.Timeout({}))
      }))

    it.effect("refuses a tag nobody knows, typed", () =>
      Effect.gen(function*() {
        const json = "{\"_tag\":\"BadLuck\",\"reason\":\"bad_luck\",\"origin\":\"executor\"}"
        const error = yield* Effect.flip(Schema.decode(Text)(json))

        assert.strictEqual(error._tag, "ParseError")
      }))

    it.effect("a reported failure that JSON cannot hold becomes a readable stand-in", () =>
      Effect.gen(function*() {
        const cycle: Record<string, unknown> = { id: 1n, key: Redacted.make("password 123"), gone: undefined }
        cycle["self"] = cycle
        const text = yield* Schema.encode(Text)(new ToolError.HandlerFailed({ failure: cycle }))

        assert.deepStrictEqual(JSON.parse(text).failure, {
          id: "[a bigint has no JSON form]",
          key: "<redacted>",
          self: "[it contains itself]"
        })
      }))

    it.effect("a failure that is an exception tells its name and message, never its stack", () =>
      Effect.gen(function*() {
        const text = yield* Schema.encode(Text)(new ToolError.HandlerFailed({ failure: new RangeError("too far") }))

        assert.deepStrictEqual(JSON.parse(text).failure, { name: "RangeError", message: "too far" })
      }))

    it.effect("a failure of undefined is null", () =>
      Effect.gen(function*() {
        const text = yield* Schema.encode(Text)(new ToolError.HandlerFailed({ failure: undefined }))

        assert.isNull(JSON.parse(text).failure)
      }))

    it.effect("a cause tells operators what was thrown, never the stack", () =>
      Effect.gen(function*() {
        const text = yield* Schema.encode(Text)(
          new ToolError.HandlerRaised({ ...ids, cause: Cause.die(new TypeError("boom")) })
        )

        assert.deepStrictEqual(JSON.parse(text).cause, {
          _tag: "Die",
          defect: { name: "TypeError", message: "boom" }
        })
      }))

    it.effect("a cause comes back as a cause", () =>
      Effect.gen(function*() {
        const cause = Cause.parallel(
          Cause.sequential(Cause.fail({ code: 7 }), Cause.die("boom")),
          Cause.interrupt(FiberId.runtime(1, 2))
        )
        const back = yield* Schema.decode(Text)(yield* Schema.encode(Text)(new ToolError.HandlerExit({ cause })))

        assert.deepStrictEqual(Chunk.toReadonlyArray(Cause.failures(back.cause ?? Cause.empty)), [{ code: 7 }])
        assert.deepStrictEqual(Chunk.toReadonlyArray(Cause.defects(back.cause ?? Cause.empty)), ["boom"])
        assert.isTrue(Cause.isInterrupted(back.cause ?? Cause.empty))
      }))

    it.effect("what was thrown comes back as an exception with its name", () =>
      Effect.gen(function*() {
        const error = new ToolError.HandlerRaised({ cause: Cause.die(new TypeError("boom")) })
        const back = yield* Schema.decode(Text)(yield* Schema.encode(Text)(error))
        const thrown = Cause.squash(back.cause ?? Cause.empty)

        assert.instanceOf(thrown, Error)
        assert.deepStrictEqual(
          thrown instanceof Error ? [thrown.name, thrown.message] : [],
          ["TypeError", "boom"]
        )
      }))

    for (
      const [what, thrown] of [
        ["undefined", undefined],
        ["an object with a bigint", { n: 1n }],
        ["a symbol", Symbol("s")],
        ["an object without a prototype", Object.create(null)],
        ["an object whose toString throws", {
          toString: () => {
            throw new Error("no")
          }
        }]
      ] as const
    ) {
      it.effect(`${what} that was thrown does not stop the error from going to JSON`, () =>
        Effect.gen(function*() {
          const text = yield* Schema.encode(Text)(new ToolError.HandlerRaised({ ...ids, cause: Cause.die(thrown) }))

          assert.strictEqual(JSON.parse(text).cause._tag, "Die")
        }))

      it.effect(`${what} that was reported does not stop the error from going to JSON`, () =>
        Effect.gen(function*() {
          const text = yield* Schema.encode(Text)(
            new ToolError.HandlerFailed({ ...ids, failure: thrown, cause: Cause.fail(thrown) })
          )

          assert.strictEqual(JSON.parse(text).cause._tag, "Fail")
        }))
    }

    it("refuses a limit that is no number JSON knows", () => {
      assert.throws(() => new ToolError.Timeout({ limitMillis: Infinity }), /limitMillis/)
      assert.throws(() => new ToolError.Timeout({ limitMillis: NaN }), /limitMillis/)
    })
  })
})
