/**
 * The failure of an operation that does not fit where a session stands.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * Why an operation was refused. `awaiting_…` names what has to be answered first; `unfinished_turn` means that calls of the
 * last turn are decided or interrupted and want to run first.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Reason = Schema.Literal(
  "awaiting_user",
  "awaiting_approval",
  "awaiting_tools",
  "unfinished_turn",
  "in_error_state",
  "not_in_error_state",
  "nothing_pending",
  "unknown_tool_call_id",
  "approval_expired",
  "approval_mismatch",
  "approval_used"
)

/**
 * Why a session cannot take an operation now.
 *
 * @since 0.1.0
 * @category models
 */
export type Reason = typeof Reason.Type

/**
 * An operation that the session cannot take now. The session is untouched; the message names the call to use instead.
 *
 * @since 0.1.0
 * @category errors
 */
export class SessionError extends Schema.TaggedError<SessionError>("@allm/core/SessionError")("SessionError", {
  reason: Reason,
  /** Whose function was called. */
  module: Schema.optionalWith(Schema.Literal("Session", "SessionRunner"), { default: () => "Session" as const }),
  /** The name of the function, such as `reply` or `streamReply`. */
  operation: Schema.String,
  status: Schema.String,
  sessionId: Schema.String,
  toolCallId: Schema.optionalWith(Schema.String, { exact: true }),
  /** What to do instead. */
  advice: Schema.String
}) {
  override get message(): string {
    return `${this.module}.${this.operation} does not fit a session that is ${this.status}: ${this.advice}`
  }
}
