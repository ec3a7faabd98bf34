/**
 * What is said in a conversation, and by whom.
 *
 * @since 0.1.0
 */
import type * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as Issues from "./internal/issues.ts"
import { describe, findNonJson, formatPath, isPlainObject, JsonObject, show } from "./internal/json.ts"
import { ToolCall, validate as validateCall } from "./ToolCall.ts"
import type { Issue, ValidationError } from "./ValidationError.ts"

const Metadata = Schema.optionalWith(JsonObject, { default: () => ({}) })
const Name = Schema.optionalWith(Schema.String, { exact: true })

/**
 * A piece of text inside a message.
 *
 * @since 0.1.0
 * @category schemas
 */
export const TextPart = Schema.Struct({
  type: Schema.Literal("text"),
  text: Schema.String
}).annotations({ identifier: "TextPart" })

/**
 * Text, as one of several parts of a message.
 *
 * @since 0.1.0
 * @category models
 */
export interface TextPart extends Schema.Schema.Type<typeof TextPart> {}

/**
 * Where an image comes from: an address the provider fetches, or the bytes themselves in base64.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ImageSource = Schema.Union(
  Schema.Struct({ type: Schema.Literal("url"), url: Schema.String }),
  Schema.Struct({ type: Schema.Literal("base64"), mediaType: Schema.String, data: Schema.String })
)

/**
 * An address the provider fetches, or bytes in base64.
 *
 * @since 0.1.0
 * @category models
 */
export type ImageSource = typeof ImageSource.Type

/**
 * An image inside a message. `detail` is a hint for providers that offer several resolutions.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ImagePart = Schema.Struct({
  type: Schema.Literal("image"),
  source: ImageSource,
  detail: Schema.optionalWith(Schema.String, { exact: true })
}).annotations({ identifier: "ImagePart" })

/**
 * An image, as one of several parts of a message.
 *
 * @since 0.1.0
 * @category models
 */
export interface ImagePart extends Schema.Schema.Type<typeof ImagePart> {}

/**
 * A part of a message: text or an image.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Part = Schema.Union(TextPart, ImagePart)

/**
 * Text or an image.
 *
 * @since 0.1.0
 * @category models
 */
export type Part = typeof Part.Type

/**
 * Plain text, or a list of parts.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Content = Schema.Union(Schema.String, Schema.Array(Part))

/**
 * What a message says: text, or parts of text and images.
 *
 * @since 0.1.0
 * @category models
 */
export type Content = typeof Content.Type

/**
 * What the application tells the model about its task.
 *
 * @since 0.1.0
 * @category schemas
 */
export const SystemMessage = Schema.Struct({
  role: Schema.Literal("system"),
  content: Content,
  name: Name,
  metadata: Metadata
}).annotations({ identifier: "SystemMessage" })

/**
 * A message of the application, which the model reads before the conversation.
 *
 * @since 0.1.0
 * @category models
 */
export interface SystemMessage extends Schema.Schema.Type<typeof SystemMessage> {}

/**
 * What the person says.
 *
 * @since 0.1.0
 * @category schemas
 */
export const UserMessage = Schema.Struct({
  role: Schema.Literal("user"),
  content: Content,
  name: Name,
  metadata: Metadata
}).annotations({ identifier: "UserMessage" })

/**
 * A message of the person.
 *
 * @since 0.1.0
 * @category models
 */
export interface UserMessage extends Schema.Schema.Type<typeof UserMessage> {}

/**
 * What the model said, and the tool calls it made. The calls are a field of their own, so they survive every round trip.
 *
 * @since 0.1.0
 * @category schemas
 */
export const AssistantMessage = Schema.Struct({
  role: Schema.Literal("assistant"),
  content: Content,
  toolCalls: Schema.optionalWith(Schema.Array(ToolCall), { default: () => [] }),
  name: Name,
  metadata: Metadata
}).annotations({ identifier: "AssistantMessage" })

/**
 * A message of the model, with the calls it makes.
 *
 * @since 0.1.0
 * @category models
 */
export interface AssistantMessage extends Schema.Schema.Type<typeof AssistantMessage> {}

/**
 * The answer to one tool call.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ToolMessage = Schema.Struct({
  role: Schema.Literal("tool"),
  toolCallId: Schema.String,
  content: Schema.String,
  isError: Schema.optionalWith(Schema.Boolean, { default: () => false }),
  metadata: Metadata
}).annotations({ identifier: "ToolMessage" })

/**
 * The answer to one tool call, as the model reads it.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolMessage extends Schema.Schema.Type<typeof ToolMessage> {}

/**
 * Any message, told apart by `role`.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Message = Schema.Union(SystemMessage, UserMessage, AssistantMessage, ToolMessage)

/**
 * A message of any role, told apart by `role`.
 *
 * @since 0.1.0
 * @category models
 */
export type Message = typeof Message.Type

/**
 * What every constructor takes besides the content.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly name?: string | undefined
  readonly metadata?: { readonly [key: string]: unknown } | undefined
}

/**
 * Makes the message that sets the stage.
 *
 * @example
 * ```ts
 * import { Message } from "@allm/core"
 *
 * assert.strictEqual(Message.system("Be brief.").role, "system")
 * assert.throws(() => Message.system(7 as never), /content/)
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const system = (content: Content, options?: Options): SystemMessage =>
  checked({ role: "system", content, ...common(options) })

/**
 * Makes a message of the person. Throws a `ValidationError` when the content is neither text nor parts.
 *
 * @example
 * ```ts
 * import { Message } from "@allm/core"
 *
 * const message = Message.user([Message.text("What is this?"), Message.image("data:image/png;base64,iVBO")])
 *
 * assert.strictEqual(message.role, "user")
 * assert.throws(() => Message.user(42 as never), /content/)
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const user = (content: Content, options?: Options): UserMessage =>
  checked({ role: "user", content, ...common(options) })

/**
 * Makes a message of the model.
 *
 * @example
 * ```ts
 * import { Message, ToolCall } from "@allm/core"
 *
 * const toolCall = ToolCall.make({ id: "c0", name: "ping", arguments: {} })
 *
 * assert.deepStrictEqual(Message.assistant("", { toolCalls: [toolCall] }).toolCalls, [toolCall])
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const assistant = (
  content: Content,
  options?: Options & { readonly toolCalls?: ReadonlyArray<ToolCall> | undefined }
): AssistantMessage => checked({ role: "assistant", content, toolCalls: options?.toolCalls ?? [], ...common(options) })

/**
 * Makes the answer to a tool call.
 *
 * @example
 * ```ts
 * import { Message } from "@allm/core"
 *
 * const failed = Message.tool("c0", "{\"error\":\"no such city\"}", { isError: true })
 *
 * assert.strictEqual(failed.toolCallId, "c0")
 * assert.strictEqual(failed.isError, true)
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const tool = (
  toolCallId: string,
  content: string,
  options?: {
    readonly isError?: boolean | undefined
    readonly metadata?: { readonly [key: string]: unknown } | undefined
  }
): ToolMessage =>
  checked({
    role: "tool",
    toolCallId,
    content,
    isError: options?.isError ?? false,
    metadata: options?.metadata ?? {}
  })

/**
 * Makes a part of text, to stand beside images.
 *
 * @example
 * ```ts
 * import { Message } from "@allm/core"
 *
 * const message = Message.user([Message.text("What is this?"), Message.image("https://example.com/cat.png")])
 *
 * assert.strictEqual(message.content.length, 2)
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const text = (text: string): TextPart => ({ type: "text", text })

const dataUri = /^data:([^;,]+);base64,(.*)$/s

/**
 * Makes an image part from an address, a data URI, or base64 data with its media type.
 *
 * @example
 * ```ts
 * import { Message } from "@allm/core"
 *
 * assert.deepStrictEqual(Message.image("data:image/png;base64,iVBO").source, {
 *   type: "base64",
 *   mediaType: "image/png",
 *   data: "iVBO"
 * })
 * assert.deepStrictEqual(Message.image("https://example.org/a.png").source, {
 *   type: "url",
 *   url: "https://example.org/a.png"
 * })
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const image = (
  source: string | { readonly mediaType: string; readonly data: string },
  options?: { readonly detail?: string | undefined }
): ImagePart => {
  const part: ImagePart = {
    type: "image",
    source: typeof source === "string" ? fromUri(source) : { type: "base64", ...source },
    ...(options?.detail === undefined ? {} : { detail: options.detail })
  }
  return Issues.orThrow("invalid_message", partIssues(part, []), part)
}

const fromUri = (uri: string): ImageSource => {
  const [, mediaType, data] = dataUri.exec(uri) ?? []
  return mediaType !== undefined && data !== undefined ? { type: "base64", mediaType, data } : { type: "url", url: uri }
}

/**
 * Checks a value of unknown origin and reports every problem with it.
 *
 * @example
 * ```ts
 * import { Message } from "@allm/core"
 * import { Either } from "effect"
 *
 * const refused = Message.validate({ role: "robot", content: 42 })
 *
 * assert.deepStrictEqual(
 *   Either.match(refused, { onLeft: (error) => error.issues.map((issue) => issue.code), onRight: () => [] }),
 *   ["unknown", "invalid_type"]
 * )
 * ```
 *
 * @since 0.1.0
 * @category decoding
 */
export const validate = (input: unknown): Either.Either<Message, ValidationError> =>
  Issues.decode("invalid_message", memberOf(input), issues(input), input)

/**
 * The text of a message: its string content, or its text parts put together.
 *
 * @example
 * ```ts
 * import { Message } from "@allm/core"
 *
 * const message = Message.user([Message.text("What is "), Message.text("this?")])
 *
 * assert.strictEqual(Message.toText(message), "What is this?")
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const toText = (message: Message): string =>
  typeof message.content === "string"
    ? message.content
    : message.content.map((part) => part.type === "text" ? part.text : "").join("")

const common = (options: Options | undefined) => ({
  ...(options?.name === undefined ? {} : { name: options.name }),
  metadata: options?.metadata ?? {}
})

const checked = <M extends Message>(message: M): M => Issues.orThrow("invalid_message", issues(message), message)

const members = new Map<unknown, Schema.Schema.AnyNoContext>([
  ["system", SystemMessage],
  ["user", UserMessage],
  ["assistant", AssistantMessage],
  ["tool", ToolMessage]
])

// The member rather than the union, so that a fault has a path of its own.
const memberOf = (input: unknown): Schema.Schema<Message, unknown> =>
  (isPlainObject(input) ? members.get(input["role"]) : undefined) ?? Message as Schema.Schema<Message, unknown>

const issues = (input: unknown): ReadonlyArray<Issue> => {
  if (!isPlainObject(input)) {
    return [Issues.issue([], "invalid_type", `a message is an object, not ${describe(input)}; write Message.user("…")`)]
  }
  const found: Array<Issue> = []
  if (!["system", "user", "assistant", "tool"].includes(input["role"] as string)) {
    found.push(Issues.issue(
      ["role"],
      "unknown",
      `${show(input["role"])} is no role; write "system", "user", "assistant" or "tool"`
    ))
  }
  found.push(...contentIssues(input["content"], ["content"], input["role"] === "tool"))
  if (input["role"] === "tool" && typeof input["toolCallId"] !== "string") {
    found.push(Issues.issue(["toolCallId"], "required", "a tool message names the id of the call it answers"))
  }
  if (input["role"] === "assistant" && Array.isArray(input["toolCalls"])) {
    found.push(...Issues.each("toolCalls", input["toolCalls"], validateCall))
  }
  const notJson = input["metadata"] === undefined ? undefined : findNonJson(input["metadata"])
  if (notJson !== undefined || (input["metadata"] !== undefined && !isPlainObject(input["metadata"]))) {
    const problem = notJson === undefined ? "it is not an object" : `at ${formatPath(notJson.path)} ${notJson.problem}`
    found.push(Issues.issue(["metadata"], "not_json", `metadata is a JSON object, but ${problem}`))
  }
  return found
}

const contentIssues = (content: unknown, path: Issues.IssuePath, textOnly: boolean): ReadonlyArray<Issue> => {
  if (typeof content === "string") return []
  if (Array.isArray(content) && !textOnly) {
    return content.flatMap((part: unknown, index) => partIssues(part, [...path, index]))
  }
  const wanted = textOnly ? "text: encode the value first, or hand it to ToolResultEncoder" : "text or a list of parts"
  return [Issues.issue(path, "invalid_type", `content is ${wanted}; got ${describe(content)}`)]
}

const isPart = Schema.is(Part)

const partIssues = (part: unknown, path: Issues.IssuePath): ReadonlyArray<Issue> =>
  isPart(part)
    ? []
    : [
      Issues.issue(
        path,
        "invalid_part_type",
        `expected a TextPart or an ImagePart, got ${describe(part)}; write Message.text("…") or Message.image("…")`
      )
    ]
