/**
 * What a model is asked.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as Issues from "./internal/issues.ts"
import { describe, isPlainObject, JsonObject, show } from "./internal/json.ts"
import * as Message from "./Message.ts"
import * as Tool from "./Tool.ts"
import type { Issue, ValidationError } from "./ValidationError.ts"

/**
 * Whether the model may, must or must not call a tool, or which one it must call.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ToolChoice = Schema.Union(
  Schema.Literal("auto", "none", "required"),
  Schema.Struct({ tool: Schema.String })
)

/**
 * Whether the model may, must or must not call a tool, or which one it must call.
 *
 * @since 0.1.0
 * @category models
 */
export type ToolChoice = typeof ToolChoice.Type

/**
 * The form the answer must have: text, any JSON, or JSON of a schema.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ResponseFormat = Schema.Union(
  Schema.Struct({ type: Schema.Literal("text") }),
  Schema.Struct({ type: Schema.Literal("json_object") }),
  Schema.Struct({
    type: Schema.Literal("json_schema"),
    name: Schema.String,
    schema: JsonObject,
    strict: Schema.optionalWith(Schema.Boolean, { default: () => true })
  })
)

/**
 * The form an answer has to take: text, any JSON object, or one that fits a JSON Schema.
 *
 * @since 0.1.0
 * @category models
 */
export type ResponseFormat = typeof ResponseFormat.Type

/**
 * One request to a model. `options` go to the provider as they are.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Request = Schema.Struct({
  messages: Schema.Array(Message.Message),
  tools: Schema.optionalWith(Schema.Array(Tool.Declaration), { default: () => [] }),
  model: Schema.optionalWith(Schema.String, { exact: true }),
  temperature: Schema.optionalWith(Schema.Finite, { exact: true }),
  maxTokens: Schema.optionalWith(Schema.Finite, { exact: true }),
  toolChoice: Schema.optionalWith(ToolChoice, { exact: true }),
  responseFormat: Schema.optionalWith(ResponseFormat, { exact: true }),
  options: Schema.optionalWith(JsonObject, { default: () => ({}) }),
  metadata: Schema.optionalWith(JsonObject, { default: () => ({}) })
}).annotations({ identifier: "Request" })

/**
 * Everything an adapter is told for one call of a model.
 *
 * @since 0.1.0
 * @category models
 */
export interface Request extends Schema.Schema.Type<typeof Request> {}

/**
 * Makes a request. Throws a `ValidationError` with every problem found.
 *
 * @example
 * ```ts
 * import { Message, Request } from "@allm/core"
 *
 * const request = Request.make({ messages: [Message.user("Hi")], maxTokens: 100 })
 *
 * assert.deepStrictEqual(request.tools, [])
 * assert.throws(() => Request.make({ messages: [Message.user("Hi")], maxTokens: 0 }), /maxTokens/)
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (fields: Partial<Request> & Pick<Request, "messages">): Request =>
  Either.getOrThrowWith(validate(fields), (error) => error)

/**
 * Checks a request of unknown origin and reports every problem with it, its messages and its tools.
 *
 * @example
 * ```ts
 * import { Request } from "@allm/core"
 * import { Either } from "effect"
 *
 * const refused = Request.validate({ messages: [], temperature: 3 })
 *
 * assert.deepStrictEqual(
 *   Either.flip(refused).pipe(Either.map((error) => error.issues.map((issue) => issue.code)), Either.getOrThrow),
 *   ["empty", "out_of_range"]
 * )
 * ```
 *
 * @since 0.1.0
 * @category decoding
 */
export const validate = (input: unknown): Either.Either<Request, ValidationError> =>
  Issues.decode("invalid_request", Request, issues(input), input)

const issues = (input: unknown): ReadonlyArray<Issue> => {
  if (!isPlainObject(input)) {
    return [
      Issues.issue([], "invalid_type", `a request is an object, not ${describe(input)}; write Request.make({ … })`)
    ]
  }
  return [
    ...messageIssues(input["messages"]),
    ...toolIssues(input["tools"]),
    ...temperatureIssues(input["temperature"]),
    ...maxTokensIssues(input["maxTokens"]),
    ...Issues.matches(
      "toolChoice",
      ToolChoice,
      "\"auto\", \"none\", \"required\" or { tool: \"name\" }",
      input["toolChoice"]
    ),
    ...Issues.matches(
      "responseFormat",
      ResponseFormat,
      "{ type: \"json_schema\", name, schema }",
      input["responseFormat"]
    )
  ]
}

const messageIssues = (messages: unknown): ReadonlyArray<Issue> => {
  if (!Array.isArray(messages)) {
    return [Issues.issue(["messages"], "invalid_type", `write a list of messages, not ${describe(messages)}`)]
  }
  return messages.length === 0
    ? [Issues.issue(["messages"], "empty", "a request needs a message; write [Message.user(\"…\")]")]
    : Issues.each("messages", messages, Message.validate)
}

const toolIssues = (tools: unknown): ReadonlyArray<Issue> => {
  if (tools === undefined) return []
  if (!Array.isArray(tools)) {
    return [Issues.issue(["tools"], "invalid_type", `write a list of declarations, not ${describe(tools)}`)]
  }
  const twice = firstRepeated(tools.map((tool: unknown) => isPlainObject(tool) ? tool["name"] : undefined))
  return [
    ...Issues.each("tools", tools, Tool.validate),
    ...(twice === undefined
      ? []
      : [Issues.issue(["tools"], "duplicate_name", `two tools are named ${show(twice)}; rename one`)])
  ]
}

const firstRepeated = (names: ReadonlyArray<unknown>): unknown =>
  names.find((name, index) => name !== undefined && names.indexOf(name) !== index)

const temperatureIssues = (value: unknown): ReadonlyArray<Issue> =>
  value === undefined || (typeof value === "number" && value >= 0 && value <= 2)
    ? []
    : [Issues.issue(["temperature"], "out_of_range", `write a number from 0 to 2, not ${show(value)}`)]

const maxTokensIssues = (value: unknown): ReadonlyArray<Issue> =>
  value === undefined || (Number.isInteger(value) && (value as number) > 0)
    ? []
    : [Issues.issue(["maxTokens"], "must_be_positive", `write a positive whole number, not ${show(value)}`)]
