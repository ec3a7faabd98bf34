/**
 * What a model answered.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { JsonObject } from "./internal/json.ts"
import { AssistantMessage, toText } from "./Message.ts"
import { ToolCall } from "./ToolCall.ts"
import { Usage } from "./Usage.ts"

/**
 * Why the model stopped.
 *
 * @since 0.1.0
 * @category schemas
 */
export const FinishReason = Schema.Literal("stop", "length", "tool_calls", "content_filter", "error", "other")

/**
 * Why the model stopped, in the words that all providers share here.
 *
 * @since 0.1.0
 * @category models
 */
export type FinishReason = typeof FinishReason.Type

const Text = Schema.optionalWith(Schema.String, { exact: true })

/**
 * One answer of a model. What a provider did not tell is absent.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Response = Schema.Struct({
  id: Text,
  requestId: Text,
  model: Text,
  message: Schema.optionalWith(AssistantMessage, { exact: true }),
  outputText: Text,
  toolCalls: Schema.optionalWith(Schema.Array(ToolCall), { default: () => [] }),
  finishReason: Schema.optionalWith(FinishReason, { exact: true }),
  rawFinishReason: Text,
  usage: Schema.optionalWith(Usage, { default: () => ({}) }),
  metadata: Schema.optionalWith(JsonObject, { default: () => ({}) })
}).annotations({ identifier: "Response" })

/**
 * One answer of a model, whichever provider gave it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Response extends Schema.Schema.Type<typeof Response> {}

/**
 * The text of the answer: `outputText`, or else what the message says.
 *
 * @example
 * ```ts
 * import { Message, Response } from "@allm/core"
 *
 * const response = Response.make({ message: Message.assistant("Hello"), finishReason: "stop" })
 *
 * assert.strictEqual(Response.text(response), "Hello")
 * assert.deepStrictEqual(response.toolCalls, [])
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const text = (self: Response): string | undefined =>
  self.outputText ?? (self.message === undefined ? undefined : toText(self.message))

/**
 * Makes a response; what is left out is absent or empty.
 *
 * @example
 * ```ts
 * import { Response } from "@allm/core"
 *
 * const response = Response.make({ outputText: "Hello", finishReason: "stop" })
 *
 * assert.deepStrictEqual(response.toolCalls, [])
 * assert.deepStrictEqual(response.usage, {})
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (fields: Partial<Response> = {}): Response => ({
  ...fields,
  toolCalls: fields.toolCalls ?? [],
  usage: fields.usage ?? {},
  metadata: fields.metadata ?? {}
})
