/**
 * What can go wrong between the library and a place where it keeps things.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { Opaque } from "./internal/json.ts"

/**
 * Why a store could not do what it was asked for:
 *
 * - `unavailable`: it could not be reached, or refused
 * - `full`: there is no room left
 * - `corrupt`: what is stored there is torn or cannot be read; it is left as it is
 * - `newer_format`: it was stored by a newer version of this library; it is left as it is
 * - `not_encodable`: the value has a part that JSON cannot hold
 * - `invalid_id`: no such id can be stored
 * - `invalid_cursor`: the cursor is none that `list` gave
 *
 * @since 0.1.0
 * @category schemas
 */
export const Reason = Schema.Literal(
  "unavailable",
  "full",
  "corrupt",
  "newer_format",
  "not_encodable",
  "invalid_id",
  "invalid_cursor"
)

/**
 * What kept a store from reading or writing.
 *
 * @since 0.1.0
 * @category models
 */
export type Reason = typeof Reason.Type

const sentences: { readonly [R in Reason]: string } = {
  unavailable: "the store does not answer",
  full: "the store has no room left",
  corrupt: "what is stored cannot be read; it was left as it is",
  newer_format: "it was stored by a newer version; it was left as it is",
  not_encodable: "the value cannot be written as JSON",
  invalid_id: "no such id can be stored",
  invalid_cursor: "no page has this cursor"
}

/**
 * The one error of every store. Nothing that was stored before is lost by it.
 *
 * @since 0.1.0
 * @category errors
 */
export class StoreError extends Schema.TaggedError<StoreError>("@allm/core/StoreError")("StoreError", {
  reason: Reason,
  /** What was asked for, such as `SessionStore.save`. */
  operation: Schema.String,
  /** The id of what it was asked for. */
  id: Schema.optionalWith(Schema.String, { exact: true }),
  /** The file, the key or the row. */
  location: Schema.optionalWith(Schema.String, { exact: true }),
  detail: Schema.optionalWith(Schema.String, { exact: true }),
  cause: Schema.optionalWith(Opaque, { exact: true })
}) {
  override get message(): string {
    const subject = this.id === undefined ? "" : ` of ${JSON.stringify(this.id)}`
    const place = this.location === undefined ? "" : ` at ${this.location}`
    return `${this.operation}${subject} failed${place}: ${this.reason}: ${this.detail ?? sentences[this.reason]}`
  }

  /** Whether the same call may succeed a moment later. */
  get isRetryable(): boolean {
    return this.reason === "unavailable"
  }
}
