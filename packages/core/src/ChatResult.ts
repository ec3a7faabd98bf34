/**
 * What a whole chat came to.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { AdapterError } from "./AdapterError.ts"
import { PendingApproval, Question } from "./Halt.ts"
import { JsonObject } from "./internal/json.ts"
import { Response } from "./Response.ts"
import { StepResult } from "./StepResult.ts"
import { Thread } from "./Thread.ts"
import { ToolCall } from "./ToolCall.ts"
import { UnknownTool } from "./UnknownTool.ts"
import { Usage } from "./Usage.ts"

/**
 * All steps of a chat, why it ended, and what is still pending.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ChatResult = Schema.Struct({
  thread: Thread,
  finalResponse: Response,
  steps: Schema.Array(StepResult),
  haltedReason: Schema.String,
  pendingQuestions: Schema.optionalWith(Schema.Array(Question), { default: () => [] }),
  pendingApprovals: Schema.optionalWith(Schema.Array(PendingApproval), { default: () => [] }),
  manualToolCalls: Schema.optionalWith(Schema.Array(ToolCall), { default: () => [] }),
  usage: Usage,
  /** What went wrong, when `haltedReason` is `"error"`. */
  error: Schema.optionalWith(Schema.Union(AdapterError, UnknownTool), { exact: true }),
  metadata: Schema.optionalWith(JsonObject, { default: () => ({}) })
}).annotations({ identifier: "ChatResult" })

/**
 * A whole chat: its steps, its last answer, why it ended, and what is still pending.
 *
 * @since 0.1.0
 * @category models
 */
export interface ChatResult extends Schema.Schema.Type<typeof ChatResult> {}
