import { AdapterError } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { assertEquals } from "@effect/vitest/utils"
import { Arbitrary, Duration, Effect, FastCheck, Schema } from "effect"

const retryable: ReadonlyArray<AdapterError.Reason> = [
  "rate_limited",
  "provider_unavailable",
  "timeout",
  "network_error"
]

const Line = Schema.parseJson(AdapterError.AdapterError)

describe("AdapterError", () => {
  it("knows twelve reasons", () => {
    assert.deepStrictEqual([...AdapterError.Reason.literals], [
      "rate_limited",
      "authentication_failed",
      "invalid_request",
      "provider_unavailable",
      "context_length_exceeded",
      "content_filter",
      "timeout",
      "network_error",
      "malformed_response",
      "unsupported_feature",
      "no_scripted_response",
      "unknown"
    ])
  })

  it("ERR-02 refuses a reason it does not know", () => {
    assert.throws(() => new AdapterError.AdapterError({ reason: "bad_luck" as AdapterError.Reason }), "bad_luck")
  })

  it.each(AdapterError.Reason.literals.map((reason) => [reason, retryable.includes(reason)] as const))(
    "isRetryable of %s is %s",
    (reason, expected) => {
      assert.strictEqual(new AdapterError.AdapterError({ reason }).isRetryable, expected)
    }
  )

  describe("message", () => {
    it("says the reason, and what it means", () => {
      assert.strictEqual(
        new AdapterError.AdapterError({ reason: "timeout" }).message,
        "model call failed: timeout: the model did not answer in time"
      )
    })

    it("names provider, status and what the provider said", () => {
      const error = new AdapterError.AdapterError({
        reason: "rate_limited",
        provider: "openai",
        status: 429,
        detail: "20 requests per minute"
      })

      assert.strictEqual(
        error.message,
        "model call failed (openai): rate_limited with status 429: 20 requests per minute"
      )
    })

    it.each(AdapterError.Reason.literals)("of %s is a sentence of its own", (reason) => {
      const others = AdapterError.Reason.literals.filter((other) => other !== reason)
      const sentence = (of: AdapterError.Reason) =>
        new AdapterError.AdapterError({ reason: of }).message.slice(`model call failed: ${of}: `.length)

      assert.isAbove(sentence(reason).length, 10)
      assert.isFalse(others.map(sentence).includes(sentence(reason)))
    })
  })

  it("is an Error with its cause", () => {
    const cause = new Error("socket closed")
    const error = new AdapterError.AdapterError({ reason: "network_error", cause })

    assert.instanceOf(error, Error)
    assert.strictEqual(error._tag, "AdapterError")
    assert.strictEqual(error.cause, cause)
  })

  it.effect("fails an Effect by itself", () =>
    Effect.gen(function*() {
      const error = new AdapterError.AdapterError({ reason: "unknown" })

      assert.strictEqual(yield* Effect.flip(error), error)
    }))

  describe("JSON", () => {
    it.effect("keeps every field", () =>
      Effect.gen(function*() {
        const error = new AdapterError.AdapterError({
          reason: "rate_limited",
          provider: "openai",
          detail: "slow down",
          status: 429,
          retryAfter: Duration.seconds(7),
          requestId: "req_1"
        })
        const back = yield* Effect.flatMap(Schema.encode(Line)(error), Schema.decode(Line))

        assertEquals(back, error)
        assert.deepStrictEqual(back.retryAfter, Duration.seconds(7))
        assert.strictEqual(back.isRetryable, true)
      }))

    it.effect("keeps what a cause said", () =>
      Effect.gen(function*() {
        const error = new AdapterError.AdapterError({ reason: "network_error", cause: new TypeError("fetch failed") })
        const back = yield* Effect.flatMap(Schema.encode(Line)(error), Schema.decode(Line))

        assert.deepStrictEqual(back.cause, { name: "TypeError", message: "fetch failed" })
        assertEquals(yield* Effect.flatMap(Schema.encode(Line)(back), Schema.decode(Line)), back)
      }))

    it.effect("refuses a reason it does not know", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Schema.decode(Line)("{\"_tag\":\"AdapterError\",\"reason\":\"bad_luck\"}"))

        assert.strictEqual(error._tag, "ParseError")
      }))

    it.effect.prop(
      "survives, whatever it holds",
      [
        Arbitrary.make(AdapterError.Reason),
        FastCheck.record({
          provider: FastCheck.string(),
          detail: FastCheck.string(),
          status: FastCheck.integer({ min: 100, max: 599 }),
          retryAfter: FastCheck.nat().map((millis) => Duration.millis(millis)),
          requestId: FastCheck.string()
        }, { requiredKeys: [] })
      ],
      ([reason, fields]) =>
        Effect.gen(function*() {
          const error = new AdapterError.AdapterError({ reason, ...fields })
          const back = yield* Effect.flatMap(Schema.encode(Line)(error), Schema.decode(Line))

          assertEquals(back, error)
          assert.strictEqual(back.message, error.message)
        })
    )
  })
})
