/**
 * What stopped a batch, and what waits for a person because of it.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { JsonObject, Opaque } from "./internal/json.ts"
import { ToolCall } from "./ToolCall.ts"
import { ToolError } from "./ToolError.ts"

/**
 * The first halt that was seen: why, by which call, and with which result or error.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Halt = Schema.Struct({
  reason: Schema.String,
  toolCallId: Schema.String,
  result: Schema.optionalWith(Opaque, { exact: true }),
  error: Schema.optionalWith(ToolError, { exact: true })
}).annotations({ identifier: "Halt" })

/**
 * What stopped a batch: a reason, the call it came from, and what that call came to.
 *
 * @since 0.1.0
 * @category models
 */
export interface Halt extends Schema.Schema.Type<typeof Halt> {}

/**
 * A question that waits for an answer.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Question = Schema.Struct({
  toolCallId: Schema.String,
  toolName: Schema.String,
  question: Schema.String,
  options: JsonObject
}).annotations({ identifier: "Question" })

/**
 * What a call asked the person, with the options it gave them.
 *
 * @since 0.1.0
 * @category models
 */
export interface Question extends Schema.Schema.Type<typeof Question> {}

/**
 * A call that waits for a person's consent.
 *
 * @since 0.1.0
 * @category schemas
 */
export const PendingApproval = Schema.Struct({ toolCall: ToolCall }).annotations({ identifier: "PendingApproval" })

/**
 * A call that has not run, because nobody consented to it yet.
 *
 * @since 0.1.0
 * @category models
 */
export interface PendingApproval extends Schema.Schema.Type<typeof PendingApproval> {}
