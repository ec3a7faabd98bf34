/**
 * What is legal in a tool's options and declaration, with a sentence for everything that is not.
 */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type { Issue } from "../ValidationError.ts"
import { issue } from "./issues.ts"
import { describe, findNonJson, formatPath, isPlainObject, show } from "./json.ts"

/** A limit that can be kept: positive, `Infinity` for none. */
export const positiveDuration = (input: unknown): Duration.Duration | undefined => {
  // Duration itself reads a negative number as zero, which would hide the mistake.
  if (typeof input === "number" && !(input > 0)) return undefined
  const duration = Option.getOrUndefined(Duration.decodeUnknown(input as Duration.DurationInput))
  return duration !== undefined && Duration.greaterThan(duration, Duration.zero) ? duration : undefined
}

export const timeoutIssue = (field: string, input: unknown): ReadonlyArray<Issue> =>
  input === undefined || positiveDuration(input) !== undefined
    ? []
    : [issue([field], "must_be_positive", `write a positive duration such as "5 seconds", not ${show(input)}`)]

const reservedNames = new Set(["auto", "none", "required"])
const namePattern = /^[A-Za-z0-9_-]{1,64}$/

const nameIssues = (name: unknown): ReadonlyArray<Issue> => {
  if (name === "") return [issue(["name"], "empty", "write a name, such as \"get_weather\"")]
  if (typeof name === "string" && reservedNames.has(name)) {
    return [issue(["name"], "reserved_tool_name", `${show(name)} means something as a tool choice; write another name`)]
  }
  if (typeof name === "string" && namePattern.test(name)) return []
  const hint = typeof name === "string" ? name.trim().replaceAll(/[^A-Za-z0-9_-]+/g, "_").slice(0, 64) : ""
  return [
    issue(
      ["name"],
      "invalid_format",
      `${show(name)} is not 1 to 64 letters, digits, "_" or "-"; write ${
        show(/[A-Za-z0-9]/.test(hint) ? hint : "get_weather")
      }`
    )
  ]
}

const descriptionIssues = (description: unknown): ReadonlyArray<Issue> =>
  typeof description === "string"
    ? []
    : [
      issue(
        ["description"],
        "not_a_string",
        `write a sentence that tells the model what the tool does, not ${describe(description)}`
      )
    ]

const booleanIssues = (field: string, value: unknown): ReadonlyArray<Issue> =>
  value === undefined || typeof value === "boolean"
    ? []
    : [issue([field], "not_a_boolean", `write true or false, not ${show(value)}`)]

const replayIssues = (value: unknown): ReadonlyArray<Issue> =>
  value === undefined || value === "never" || value === "idempotent" || value === "readonly"
    ? []
    : [issue(["replay"], "unknown", `write "never", "idempotent" or "readonly", not ${show(value)}`)]

const metadataIssues = (value: unknown): ReadonlyArray<Issue> => {
  if (value === undefined) return []
  if (!isPlainObject(value)) return [issue(["metadata"], "not_a_map", `write an object, not ${describe(value)}`)]
  const notJson = findNonJson(value)
  return notJson === undefined
    ? []
    : [issue(["metadata"], "not_json", `at ${formatPath(notJson.path)} ${notJson.problem}`)]
}

const handlerIssues = (handler: unknown): ReadonlyArray<Issue> => {
  if (handler === undefined) return []
  if (typeof handler !== "function") {
    return [issue(["handler"], "not_a_function", `write (params, context) => …, not ${describe(handler)}`)]
  }
  return handler.length <= 2
    ? []
    : [
      issue(
        ["handler"],
        "too_many_parameters",
        `a handler takes (params, context), at most two parameters, not ${handler.length}; what else it needs it gets from Effect's context`
      )
    ]
}

const functionOr = (field: string, accepts: (value: unknown) => boolean, what: string, value: unknown) =>
  value === undefined || typeof value === "function" || accepts(value)
    ? []
    : [issue([field], "invalid_type", `write ${what}, not ${show(value)}`)]

const schemaIssues = (field: string, value: unknown): ReadonlyArray<Issue> =>
  value === undefined || Schema.isSchema(value)
    ? []
    : [issue([field], "not_a_schema", `write an Effect Schema, not ${describe(value)}`)]

const commonKeys = [
  "description",
  "handler",
  "manual",
  "needsApproval",
  "timeout",
  "retry",
  "replay",
  "exclusive",
  "metadata"
]

export const optionIssues = (
  name: unknown,
  options: { readonly [key: string]: unknown },
  known: ReadonlyArray<string>
): ReadonlyArray<Issue> => {
  const keys = [...known, ...commonKeys]
  const unknownKeys = Object.keys(options).filter((key) => !keys.includes(key))
  return [
    ...nameIssues(name),
    ...unknownKeys.map((key) =>
      issue([key], "unknown_option", `there is no such option; write one of ${keys.join(", ")}`)
    ),
    ...descriptionIssues(options["description"]),
    ...handlerIssues(options["handler"]),
    ...booleanIssues("manual", options["manual"]),
    ...functionOr(
      "needsApproval",
      (value) => typeof value === "boolean",
      "true, false or a predicate",
      options["needsApproval"]
    ),
    ...timeoutIssue("timeout", options["timeout"]),
    ...(options["retry"] === undefined || Schedule.isSchedule(options["retry"])
      ? []
      : [
        issue(["retry"], "not_a_schedule", `write a Schedule such as Schedule.recurs(2), not ${show(options["retry"])}`)
      ]),
    ...replayIssues(options["replay"]),
    ...functionOr(
      "exclusive",
      (value) => typeof value === "boolean" || (typeof value === "string" && value !== ""),
      "true, false, a parameter's name or a function of the parameters",
      options["exclusive"]
    ),
    ...metadataIssues(options["metadata"]),
    ...schemaIssues("success", options["success"]),
    ...schemaIssues("failure", options["failure"])
  ]
}

export const declarationIssues = (input: unknown): ReadonlyArray<Issue> =>
  isPlainObject(input)
    ? [
      ...nameIssues(input["name"]),
      ...descriptionIssues(input["description"]),
      ...(isPlainObject(input["inputSchema"])
        ? []
        : [issue(["inputSchema"], "not_a_map", `write a JSON Schema object, not ${describe(input["inputSchema"])}`)]),
      ...booleanIssues("manual", input["manual"]),
      ...booleanIssues("needsApproval", input["needsApproval"]),
      ...booleanIssues("exclusive", input["exclusive"]),
      ...timeoutIssue("timeoutMillis", input["timeoutMillis"]),
      ...replayIssues(input["replay"]),
      ...metadataIssues(input["metadata"])
    ]
    : [issue([], "invalid_type", `a declaration is an object, not ${describe(input)}; write Tool.declaration(tool)`)]
