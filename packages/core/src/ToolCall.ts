/**
 * A call a model made: which tool, with which arguments.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as Issues from "./internal/issues.ts"
import { describe, findNonJson, formatPath, isPlainObject, Json, JsonObject } from "./internal/json.ts"
import type { Issue, ValidationError } from "./ValidationError.ts"

/**
 * A tool call. `arguments` is the parsed JSON; when the model's JSON was broken it is absent and `rawArguments` holds the
 * text, so nothing is ever executed on a guess.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ToolCall = Schema.Struct({
  id: Schema.NonEmptyString,
  name: Schema.String,
  arguments: Schema.optionalWith(Json, { exact: true }),
  rawArguments: Schema.optionalWith(Schema.String, { exact: true }),
  metadata: Schema.optionalWith(JsonObject, { default: () => ({}) })
}).annotations({ identifier: "ToolCall" })

/**
 * A call a model made. Without `arguments`, what it wrote was not JSON.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolCall extends Schema.Schema.Type<typeof ToolCall> {}

/**
 * Makes a call from parsed arguments. Throws a `ValidationError` when the id, the name or the arguments are missing.
 *
 * @example
 * ```ts
 * import { ToolCall } from "@allm/core"
 *
 * const call = ToolCall.make({ id: "call_1", name: "get_weather", arguments: { city: "Oslo" } })
 *
 * assert.deepStrictEqual(call.metadata, {})
 * assert.throws(() => ToolCall.make({ id: "", name: "get_weather", arguments: {} }), /\$\.id/)
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (input: {
  readonly id: string
  readonly name: string
  readonly arguments: unknown
  readonly rawArguments?: string | undefined
  readonly metadata?: { readonly [key: string]: unknown } | undefined
}): ToolCall =>
  Issues.orThrow("invalid_tool_call", [...issues(input), ...missingArguments(input)], {
    id: input.id,
    name: input.name,
    arguments: input.arguments,
    ...(input.rawArguments === undefined ? {} : { rawArguments: input.rawArguments }),
    metadata: input.metadata ?? {}
  })

/**
 * Makes a call from the argument text a model produced. Text that is not JSON is kept as it is, in `rawArguments` alone;
 * no text at all means no arguments.
 *
 * @example
 * ```ts
 * import { ToolCall } from "@allm/core"
 *
 * const good = ToolCall.fromRaw({ id: "call_1", name: "add", rawArguments: "{\"a\":1}" })
 * const broken = ToolCall.fromRaw({ id: "call_2", name: "add", rawArguments: "{\"a\":" })
 *
 * assert.deepStrictEqual(good.arguments, { a: 1 })
 * assert.strictEqual("arguments" in broken, false)
 * assert.strictEqual(broken.rawArguments, "{\"a\":")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromRaw = (input: {
  readonly id: string
  readonly name: string
  readonly rawArguments: string
  readonly metadata?: { readonly [key: string]: unknown } | undefined
}): ToolCall => {
  const call = Issues.orThrow("invalid_tool_call", [...issues(input), ...missingText(input)], {
    id: input.id,
    name: input.name,
    rawArguments: input.rawArguments,
    metadata: input.metadata ?? {}
  })
  if (call.rawArguments.trim() === "") return { ...call, arguments: {} }
  const parsed = Either.try((): unknown => JSON.parse(call.rawArguments))
  // What JSON.parse reads but JSON cannot hold, such as 1e999, is as good as broken.
  return Either.isRight(parsed) && findNonJson(parsed.right) === undefined ? { ...call, arguments: parsed.right } : call
}

/**
 * Checks a value of unknown origin and reports every problem with it.
 *
 * @example
 * ```ts
 * import { ToolCall } from "@allm/core"
 * import { Either } from "effect"
 *
 * assert.strictEqual(Either.isRight(ToolCall.validate({ id: "c0", name: "add", arguments: { a: 1 } })), true)
 *
 * const refused = ToolCall.validate({ id: "", name: "add" })
 *
 * assert.match(Either.isLeft(refused) ? refused.left.message : "", /id/)
 * ```
 *
 * @since 0.1.0
 * @category decoding
 */
export const validate = (input: unknown): Either.Either<ToolCall, ValidationError> =>
  Issues.decode("invalid_tool_call", ToolCall, issues(input), input)

const issues = (input: unknown): ReadonlyArray<Issue> => {
  if (!isPlainObject(input)) {
    return [
      Issues.issue([], "invalid_type", `a tool call is an object { id, name, arguments }, not ${describe(input)}`)
    ]
  }
  const found: Array<Issue> = []
  if (typeof input["id"] !== "string" || input["id"] === "") {
    found.push(Issues.issue(["id"], "required", "write the call's id, a non-empty string, as the model gave it"))
  }
  if (typeof input["name"] !== "string" || input["name"] === "") {
    found.push(Issues.issue(["name"], "required", "write the name of the tool to call, a non-empty string"))
  }
  const raw = input["rawArguments"]
  if (raw !== undefined && typeof raw !== "string") {
    found.push(Issues.issue(["rawArguments"], "invalid_type", `write the text of the arguments, not ${describe(raw)}`))
  }
  for (const field of ["arguments", "metadata"]) {
    const notJson = input[field] === undefined ? undefined : findNonJson(input[field])
    if (notJson !== undefined) {
      found.push(Issues.issue([field], "not_json", `at ${formatPath(notJson.path)} ${notJson.problem}`))
    }
  }
  const metadata = input["metadata"]
  if (metadata !== undefined && findNonJson(metadata) === undefined && !isPlainObject(metadata)) {
    found.push(Issues.issue(["metadata"], "invalid_type", `write an object, not ${describe(metadata)}`))
  }
  return found
}

const missingText = (input: { readonly rawArguments: unknown }): ReadonlyArray<Issue> =>
  input.rawArguments === undefined
    ? [Issues.issue(["rawArguments"], "required", "write the text of the arguments, \"\" for none")]
    : []

const missingArguments = (input: { readonly arguments: unknown }): ReadonlyArray<Issue> =>
  input.arguments === undefined
    ? [
      Issues.issue(["arguments"], "required", "write the parsed arguments, {} for none; text goes to ToolCall.fromRaw")
    ]
    : []
