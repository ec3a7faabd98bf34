/**
 * Everything that happens, as it happens: one closed union, told apart by `_tag`.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { ChatResult } from "./ChatResult.ts"
import { Json, JsonObject, Opaque } from "./internal/json.ts"
import { AssistantMessage } from "./Message.ts"
import { FinishReason } from "./Response.ts"
import { StepResult } from "./StepResult.ts"
import { ToolCall } from "./ToolCall.ts"
import { ToolError } from "./ToolError.ts"
import { ToolOutcome } from "./ToolResult.ts"
import { Usage } from "./Usage.ts"

const Text = Schema.optionalWith(Schema.String, { exact: true })
const ofCall = { toolCallId: Schema.String, toolName: Schema.String }

/**
 * The model began to answer.
 *
 * @since 0.1.0
 * @category schemas
 */
export const MessageStarted = Schema.TaggedStruct("MessageStarted", { id: Text, model: Text })

/**
 * A piece of the answer's text.
 *
 * @since 0.1.0
 * @category schemas
 */
export const TextDelta = Schema.TaggedStruct("TextDelta", { id: Text, delta: Schema.String })

/**
 * The whole of a text; it stands above its deltas.
 *
 * @since 0.1.0
 * @category schemas
 */
export const TextCompleted = Schema.TaggedStruct("TextCompleted", { id: Text, text: Schema.String })

/**
 * A piece of the model's reasoning.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ReasoningDelta = Schema.TaggedStruct("ReasoningDelta", { id: Text, delta: Schema.String })

/**
 * The model began a tool call.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ToolCallStarted = Schema.TaggedStruct("ToolCallStarted", ofCall)

/**
 * A piece of a call's argument text.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ToolCallDelta = Schema.TaggedStruct("ToolCallDelta", { toolCallId: Schema.String, delta: Schema.String })

/**
 * A tool call is complete.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ToolCallCompleted = Schema.TaggedStruct("ToolCallCompleted", { toolCall: ToolCall })

/**
 * The model's answer is complete.
 *
 * @since 0.1.0
 * @category schemas
 */
export const MessageCompleted = Schema.TaggedStruct("MessageCompleted", {
  message: Schema.optionalWith(AssistantMessage, { exact: true }),
  finishReason: Schema.optionalWith(FinishReason, { exact: true }),
  rawFinishReason: Text,
  usage: Schema.optionalWith(Usage, { exact: true }),
  metadata: Schema.optionalWith(JsonObject, { default: () => ({}) })
})

/**
 * What a provider sent, untouched.
 *
 * @since 0.1.0
 * @category schemas
 */
export const RawChunk = Schema.TaggedStruct("RawChunk", { chunk: Opaque })

/**
 * Something went wrong after the answer had begun. The stream goes on.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ErrorOccurred = Schema.TaggedStruct("ErrorOccurred", { error: Opaque })

/**
 * A call starts to run, now.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ToolExecutionStarted = Schema.TaggedStruct("ToolExecutionStarted", {
  ...ofCall,
  arguments: Schema.optionalWith(Json, { exact: true })
})

/**
 * A running handler reported how far it is.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ToolProgress = Schema.TaggedStruct("ToolProgress", { ...ofCall, value: Opaque })

/**
 * A call ended. `result` is what counts; when the error policy put a value in place of a failure, `replaced` is that
 * failure.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ToolExecutionCompleted = Schema.TaggedStruct("ToolExecutionCompleted", {
  ...ofCall,
  result: Schema.Union(ToolOutcome, ToolError),
  replaced: Schema.optionalWith(ToolError, { exact: true })
})

/**
 * A call's message for the model is ready.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ToolResultEncoded = Schema.TaggedStruct("ToolResultEncoded", {
  ...ofCall,
  content: Schema.String,
  isError: Schema.Boolean
})

/**
 * A call asks the person.
 *
 * @since 0.1.0
 * @category schemas
 */
export const AskUserRequested = Schema.TaggedStruct("AskUserRequested", {
  ...ofCall,
  question: Schema.String,
  options: JsonObject
})

/**
 * A call halts the loop. `content` is its message; a call that waits for approval has none yet.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ToolHalt = Schema.TaggedStruct("ToolHalt", {
  ...ofCall,
  reason: Schema.String,
  result: Schema.optionalWith(Opaque, { exact: true }),
  error: Schema.optionalWith(ToolError, { exact: true }),
  content: Text,
  isError: Schema.Boolean
})

/**
 * Calls that are the caller's to run.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ManualToolCalls = Schema.TaggedStruct("ManualToolCalls", { toolCalls: Schema.Array(ToolCall) })

/**
 * A turn of the loop is over.
 *
 * @since 0.1.0
 * @category schemas
 */
export const StepCompleted = Schema.TaggedStruct("StepCompleted", { result: StepResult })

/**
 * The chat is over. Always the last event.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ChatCompleted = Schema.TaggedStruct("ChatCompleted", { result: ChatResult })

/**
 * Any event.
 *
 * @example
 * ```ts
 * import { Event } from "@allm/core"
 * import { Schema } from "effect"
 *
 * const line = Schema.encodeSync(Schema.parseJson(Event.Event))({ _tag: "TextDelta", delta: "Hel" })
 *
 * assert.strictEqual(line, "{\"_tag\":\"TextDelta\",\"delta\":\"Hel\"}")
 * assert.strictEqual(Event.isEvent({ _tag: "TextDelta", delta: "lo" }), true)
 * ```
 *
 * @since 0.1.0
 * @category schemas
 */
export const Event = Schema.Union(
  MessageStarted,
  TextDelta,
  TextCompleted,
  ReasoningDelta,
  ToolCallStarted,
  ToolCallDelta,
  ToolCallCompleted,
  MessageCompleted,
  RawChunk,
  ErrorOccurred,
  ToolExecutionStarted,
  ToolProgress,
  ToolExecutionCompleted,
  ToolResultEncoded,
  AskUserRequested,
  ToolHalt,
  ManualToolCalls,
  StepCompleted,
  ChatCompleted
)

/**
 * Any event: of the model, of the tools or of the loop.
 *
 * @since 0.1.0
 * @category models
 */
export type Event = typeof Event.Type

/**
 * The events a model makes.
 *
 * @since 0.1.0
 * @category models
 */
export type AdapterEvent =
  | typeof MessageStarted.Type
  | typeof TextDelta.Type
  | typeof TextCompleted.Type
  | typeof ReasoningDelta.Type
  | typeof ToolCallStarted.Type
  | typeof ToolCallDelta.Type
  | typeof ToolCallCompleted.Type
  | typeof MessageCompleted.Type
  | typeof RawChunk.Type
  | typeof ErrorOccurred.Type

/**
 * The events of a batch of tool calls.
 *
 * @since 0.1.0
 * @category models
 */
export type ToolEvent =
  | typeof ToolExecutionStarted.Type
  | typeof ToolProgress.Type
  | typeof ToolExecutionCompleted.Type
  | typeof ToolResultEncoded.Type
  | typeof AskUserRequested.Type
  | typeof ToolHalt.Type
  | typeof ManualToolCalls.Type

/**
 * Tells whether a value is an event.
 *
 * @example
 * ```ts
 * import { Event } from "@allm/core"
 *
 * assert.strictEqual(Event.isEvent({ _tag: "TextDelta", delta: "Hel" }), true)
 * assert.strictEqual(Event.isEvent({ _tag: "TextDelta", delta: 7 }), false)
 * ```
 *
 * @since 0.1.0
 * @category guards
 */
export const isEvent: (value: unknown) => value is Event = Schema.is(Event)
