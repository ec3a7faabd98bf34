/**
 * Bad input, with every problem found and what to write instead.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { formatPath } from "./internal/json.ts"

/**
 * One problem: where it is, a stable code, and a sentence that says what to write instead.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Issue = Schema.Struct({
  path: Schema.Array(Schema.Union(Schema.String, Schema.Finite)),
  code: Schema.String,
  message: Schema.String
})

/**
 * One problem: where it is, its kind, and what to write instead.
 *
 * @since 0.1.0
 * @category models
 */
export interface Issue extends Schema.Schema.Type<typeof Issue> {}

/**
 * What kind of input was refused.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Reason = Schema.Literal(
  "invalid_request",
  "invalid_message",
  "invalid_tool",
  "invalid_tool_call",
  "invalid_thread",
  "invalid_session",
  "invalid_options",
  "unsupported_capability"
)

/**
 * Which kind of input was refused.
 *
 * @since 0.1.0
 * @category models
 */
export type Reason = typeof Reason.Type

/**
 * Input that cannot be used. Constructors throw it, effects fail with it; it lists every problem, not just the first.
 *
 * @since 0.1.0
 * @category errors
 */
export class ValidationError
  extends Schema.TaggedError<ValidationError>("@allm/core/ValidationError")("ValidationError", {
    reason: Reason,
    issues: Schema.NonEmptyArray(Issue)
  })
{
  override get message(): string {
    const count = this.issues.length
    const head = `validation failed: ${this.reason} (${count} error${count === 1 ? "" : "s"})`
    return [head, ...this.issues.map((issue) => `- ${formatPath(issue.path)}: ${issue.message}`)].join("\n")
  }
}
