/**
 * What one turn of the loop came to.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { Halt, PendingApproval, Question } from "./Halt.ts"
import { JsonObject } from "./internal/json.ts"
import { ToolMessage } from "./Message.ts"
import { Response } from "./Response.ts"
import { Thread } from "./Thread.ts"
import { ToolCall } from "./ToolCall.ts"

/**
 * One model call and the tool calls it led to.
 *
 * @since 0.1.0
 * @category schemas
 */
export const StepResult = Schema.Struct({
  thread: Thread,
  response: Response,
  toolResults: Schema.Array(ToolMessage),
  done: Schema.Boolean,
  halt: Schema.optionalWith(Halt, { exact: true }),
  pendingQuestions: Schema.optionalWith(Schema.Array(Question), { default: () => [] }),
  pendingApprovals: Schema.optionalWith(Schema.Array(PendingApproval), { default: () => [] }),
  manualToolCalls: Schema.optionalWith(Schema.Array(ToolCall), { default: () => [] }),
  metadata: Schema.optionalWith(JsonObject, { default: () => ({}) })
}).annotations({ identifier: "StepResult" })

/**
 * One turn: what the model answered, what its tools came to, and the thread after both.
 *
 * @since 0.1.0
 * @category models
 */
export interface StepResult extends Schema.Schema.Type<typeof StepResult> {}
