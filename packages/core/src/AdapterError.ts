/**
 * What can go wrong between the library and a model.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { Opaque } from "./internal/json.ts"

/**
 * Why a model could not be asked or did not answer.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Reason = Schema.Literal(
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
)

/**
 * Why a model could not be asked: one word per thing that a caller may do about it.
 *
 * @since 0.1.0
 * @category models
 */
export type Reason = typeof Reason.Type

const retryable: ReadonlySet<Reason> = new Set<Reason>([
  "rate_limited",
  "provider_unavailable",
  "timeout",
  "network_error"
])

const sentences: { readonly [R in Reason]: string } = {
  rate_limited: "the provider asks to slow down",
  authentication_failed: "the provider does not accept the key",
  invalid_request: "the provider does not accept the request",
  provider_unavailable: "the provider is not available",
  context_length_exceeded: "the conversation is longer than the model can read",
  content_filter: "the provider refused the content",
  timeout: "the model did not answer in time",
  network_error: "the provider could not be reached",
  malformed_response: "the answer cannot be read",
  unsupported_feature: "the model cannot do what was asked of it",
  no_scripted_response: "no scripted response is left; script one more call",
  unknown: "the model call failed"
}

/**
 * The one error of every adapter. `reason` tells what to do about it, `detail` what the provider said.
 *
 * @since 0.1.0
 * @category errors
 */
export class AdapterError extends Schema.TaggedError<AdapterError>("@allm/core/AdapterError")("AdapterError", {
  reason: Reason,
  provider: Schema.optionalWith(Schema.String, { exact: true }),
  detail: Schema.optionalWith(Schema.String, { exact: true }),
  status: Schema.optionalWith(Schema.Finite, { exact: true }),
  /** How long the provider asks to wait. */
  retryAfter: Schema.optionalWith(Schema.Duration, { exact: true }),
  requestId: Schema.optionalWith(Schema.String, { exact: true }),
  cause: Schema.optionalWith(Opaque, { exact: true })
}) {
  override get message(): string {
    const head = this.provider === undefined ? "model call failed" : `model call failed (${this.provider})`
    const status = this.status === undefined ? "" : ` with status ${this.status}`
    return `${head}: ${this.reason}${status}: ${this.detail ?? sentences[this.reason]}`
  }

  /** Whether the same request may succeed a moment later. */
  get isRetryable(): boolean {
    return retryable.has(this.reason)
  }
}

/**
 * How often and after which waits a model call is repeated.
 *
 * @since 0.1.0
 * @category models
 */
export interface RetryOptions {
  /** All attempts, the first included. Default 3. */
  readonly maxAttempts?: number | undefined
  /** The wait before the second attempt; each further one doubles it. Default 500 milliseconds. */
  readonly baseDelay?: Duration.DurationInput | undefined
  /** Default 30 seconds. */
  readonly maxDelay?: Duration.DurationInput | undefined
  /** At most this much is added at random, so that many clients do not come back at once. Default 250 milliseconds. */
  readonly jitter?: Duration.DurationInput | undefined
}

/**
 * The schedule by which model calls are repeated: exponential with jitter, or as long as the provider asks to wait.
 *
 * @example
 * ```ts
 * import { AdapterError } from "@allm/core"
 * import { Duration, Effect, Schedule } from "effect"
 *
 * const error = new AdapterError.AdapterError({ reason: "rate_limited", retryAfter: Duration.seconds(7) })
 * const delays = Effect.runSync(
 *   Schedule.run(Schedule.delays(AdapterError.retrySchedule({ jitter: 0 })), 0, [error, error, error])
 * )
 *
 * assert.deepStrictEqual(Array.from(delays, Duration.toSeconds), [7, 7, 0])
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const retrySchedule = (options: RetryOptions = {}): Schedule.Schedule<unknown, AdapterError> => {
  const longest = Duration.decode(options.maxDelay ?? "30 seconds")
  const jitter = Duration.toMillis(Duration.decode(options.jitter ?? "250 millis"))
  return Schedule.identity<AdapterError>().pipe(
    Schedule.intersect(Schedule.exponential(options.baseDelay ?? "500 millis")),
    Schedule.intersect(Schedule.recurs((options.maxAttempts ?? 3) - 1)),
    Schedule.modifyDelayEffect(([[error]], delay) =>
      Effect.map(
        Random.next,
        (random) => Duration.sum(error.retryAfter ?? Duration.min(delay, longest), Duration.millis(random * jitter))
      )
    )
  )
}
