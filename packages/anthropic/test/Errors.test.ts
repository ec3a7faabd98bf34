import { Anthropic } from "@allm/anthropic"
import { type AdapterError, Allm } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, TestClock } from "effect"
import { type Answer, answerOf, apiKey, ask, clientOf, type Json, ping, sse, sseOf, started, text } from "./wire.ts"

const refused = (status: number, error: Json, headers: Record<string, string> = {}) =>
  Effect.flip(
    Effect.asVoid(ask(() => Response.json({ type: "error", error, request_id: "req_body" }, { status, headers })))
  )

const told = (error: Json) =>
  Effect.flip(Effect.asVoid(ask(() =>
    sse(sseOf([{ type: "error", error }]), {
      headers: { "content-type": "text/event-stream", "request-id": "req_header" }
    })
  )))

describe("a refusal", () => {
  const statuses: ReadonlyArray<readonly [number, string, AdapterError.Reason, boolean]> = [
    [400, "invalid_request_error", "invalid_request", false],
    [401, "authentication_error", "authentication_failed", false],
    [402, "billing_error", "authentication_failed", false],
    [403, "permission_error", "authentication_failed", false],
    [404, "not_found_error", "invalid_request", false],
    [413, "request_too_large", "context_length_exceeded", false],
    [429, "rate_limit_error", "rate_limited", true],
    [500, "api_error", "provider_unavailable", true],
    [504, "timeout_error", "timeout", true],
    [529, "overloaded_error", "provider_unavailable", true],
    [418, "teapot_error", "invalid_request", false],
    [599, "a_new_error", "provider_unavailable", true]
  ]
  for (const [status, type, reason, isRetryable] of statuses) {
    it.effect(`${status} ${type} is ${reason}`, () =>
      Effect.gen(function*() {
        const error = yield* refused(status, { type, message: "No." })

        assert.deepInclude({ ...error }, {
          reason,
          status,
          detail: "No.",
          provider: "anthropic",
          requestId: "req_body"
        })
        assert.strictEqual(error.isRetryable, isRetryable)
      }))
  }

  it.effect("tells how long to wait, and the id of the request", () =>
    Effect.gen(function*() {
      const error = yield* refused(429, { type: "rate_limit_error", message: "Slow." }, { "retry-after": "7" })
      const anonymous = yield* Effect.flip(Effect.asVoid(ask(() =>
        new Response("<html>Bad gateway</html>", { status: 502, headers: { "request-id": "req_header" } })
      )))

      assert.deepStrictEqual(error.retryAfter, Duration.seconds(7))
      assert.deepInclude({ ...anonymous }, { reason: "provider_unavailable", requestId: "req_header" })
    }))

  it.effect("says what is wrong with the request, where it is its length or its content", () =>
    Effect.gen(function*() {
      const reasonOf = (message: string) =>
        Effect.map(refused(400, { type: "invalid_request_error", message }), ({ reason }) => reason)

      assert.strictEqual(
        yield* reasonOf("prompt is too long: 213462 tokens > 200000 maximum"),
        "context_length_exceeded"
      )
      assert.strictEqual(
        yield* reasonOf("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"),
        "context_length_exceeded"
      )
      assert.strictEqual(yield* reasonOf("Output blocked by content filtering policy"), "content_filter")
      assert.strictEqual(yield* reasonOf("max_tokens: Field required"), "invalid_request")
    }))
})

describe("an error in the stream", () => {
  const types: ReadonlyArray<readonly [string, AdapterError.Reason]> = [
    ["overloaded_error", "provider_unavailable"],
    ["api_error", "provider_unavailable"],
    ["rate_limit_error", "rate_limited"],
    ["timeout_error", "timeout"],
    ["invalid_request_error", "invalid_request"],
    ["a_new_error", "unknown"]
  ]
  for (const [type, reason] of types) {
    it.effect(`${type} is ${reason}`, () =>
      Effect.gen(function*() {
        const error = yield* told({ type, message: "No." })

        assert.deepInclude({ ...error }, { reason, detail: "No.", provider: "anthropic", requestId: "req_header" })
      }))
  }

  const overloaded = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }

  const generate = (answer: Answer) =>
    Allm.generate("Hi").pipe(
      Effect.provide(Anthropic.engine({ apiKey, model: "claude-sonnet-5" })),
      Effect.provide(clientOf(answer))
    )

  it.effect("before anything was said lets the call be repeated", () =>
    Effect.gen(function*() {
      let asked = 0
      const running = yield* Effect.fork(generate((_, index) => {
        asked = index + 1
        return sse(sseOf(index === 0 ? [started(), ping, overloaded] : answerOf(...text(0, "Hello"))))
      }))
      yield* TestClock.adjust("1 second")

      assert.strictEqual((yield* Fiber.join(running)).outputText, "Hello")
      assert.strictEqual(asked, 2)
    }))

  it.effect("later keeps what was said", () =>
    Effect.gen(function*() {
      const response = yield* generate(() => sse(sseOf([started(), ...text(0, "Hel"), overloaded])))

      assert.strictEqual(response.outputText, "Hel")
      assert.strictEqual(response.finishReason, "error")
      assert.deepInclude(response.metadata["error"], { reason: "provider_unavailable" })
    }))
})
