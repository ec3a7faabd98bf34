/**
 * A tool's compiled form: every schema is compiled once, when the tool is made.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import type * as Schema from "effect/Schema"
import type { Any } from "../Tool.ts"
import type { ArgumentIssue } from "../ToolError.ts"
import { describe, formatPath, isPlainObject } from "./json.ts"

/** A check that is synchronous unless a schema is not: the price of an Effect is only paid where one is needed. */
export type Check<Issue> = (
  value: unknown
) => Either.Either<unknown, Issue> | Effect.Effect<Either.Either<unknown, Issue>>

export interface Compiled {
  readonly decode: Check<ReadonlyArray<ArgumentIssue>>
  readonly encodeSuccess: Check<string> | undefined
  readonly encodeFailure: Check<string> | undefined
}

const compiled = new WeakMap<object, Compiled>()

export const register = <T extends object>(tool: T, parts: Compiled): T => {
  compiled.set(tool, parts)
  return tool
}

/** Only `Tool.make` and its kin make tools, so every tool is registered. */
export const compiledOf = (tool: Any): Compiled => compiled.get(tool)!

export const isRegistered = (value: unknown): value is Any =>
  typeof value === "object" && value !== null && compiled.has(value)

const check = <Issue>(
  run: (value: unknown) => Effect.Effect<unknown, ParseResult.ParseIssue>,
  format: (issue: ParseResult.ParseIssue) => Issue
): Check<Issue> =>
(value) => {
  const result = run(value)
  if (!Either.isEither(result)) return Effect.either(Effect.mapError(result, format))
  const checked = result as Either.Either<unknown, ParseResult.ParseIssue>
  return Either.isRight(checked) ? checked as Either.Either<unknown, never> : Either.left(format(checked.left))
}

// A union fails once per member, and an optional member also as undefined: one sentence per place is enough.
const formatArguments = (issue: ParseResult.ParseIssue): ReadonlyArray<ArgumentIssue> => {
  const places = new Map<string, { readonly path: ArgumentIssue["path"]; readonly messages: Set<string> }>()
  for (const { message, path: keys } of ParseResult.ArrayFormatter.formatIssueSync(issue)) {
    const path = keys.map((key) => typeof key === "symbol" ? String(key) : key)
    const place = formatPath(path)
    const known = places.get(place)
    if (known === undefined) places.set(place, { path, messages: new Set([message]) })
    else known.messages.add(message)
  }
  return Array.from(places.values(), ({ messages, path }) => {
    const said = [...messages].filter((message) => messages.size === 1 || !message.startsWith("Expected undefined,"))
    return { path, message: said.join("; or: ") }
  })
}

export const decoder = (schema: Schema.Schema.Any): Check<ReadonlyArray<ArgumentIssue>> =>
  onlyObjects(check(
    ParseResult.decodeUnknown(schema as Schema.Schema<unknown, unknown>, { errors: "all" }),
    formatArguments
  ))

export const validator = (
  validate: (value: unknown) => ReadonlyArray<ArgumentIssue>
): Check<ReadonlyArray<ArgumentIssue>> =>
  onlyObjects((value) => {
    const issues = validate(value)
    return issues.length === 0 ? Either.right(value) : Either.left(issues)
  })

const onlyObjects = (decode: Check<ReadonlyArray<ArgumentIssue>>): Check<ReadonlyArray<ArgumentIssue>> => (value) =>
  isPlainObject(value)
    ? decode(value)
    : Either.left([{ path: [], message: `arguments must be a JSON object, got ${describe(value)}` }])

// What a schema refused may be secret, and this text can reach the model: it names the place, never the value.
const formatPlaces = (issue: ParseResult.ParseIssue): string =>
  ParseResult.ArrayFormatter.formatIssueSync(issue)
    .map(({ path }) => path.length === 0 ? "the value" : path.map(String).join("."))
    .join(", ")

export const encoder = (schema: Schema.Schema.Any | undefined): Check<string> | undefined =>
  schema === undefined
    ? undefined
    : check(ParseResult.encodeUnknown(schema as Schema.Schema<unknown, unknown>), formatPlaces)
