/**
 * What is legal in a run's calls, tools and options.
 */
import type { Issue } from "../ValidationError.ts"
import { issue } from "./issues.ts"
import { describe, isPlainObject, show } from "./json.ts"
import { isRegistered } from "./tool.ts"
import { positiveDuration, timeoutIssue } from "./toolOptions.ts"

const known = [
  "onToolError",
  "toolTimeout",
  "concurrency",
  "siblings",
  "unknownTool",
  "context",
  "sessionId",
  "requestId",
  "engine",
  "approvals",
  "journal",
  "maxArgumentsLength"
]

export const runIssues = (calls: unknown, tools: unknown, given: unknown): ReadonlyArray<Issue> => [
  ...listOr("tools", "tools made by Tool.make", tools, toolIssues),
  ...listOr("calls", "calls made by ToolCall.make", calls, callIssues),
  ...(isPlainObject(given)
    ? [...unknownOptions(known, given), ...optionIssues(given), ...journalIssues(given)]
    : [issue(["options"], "invalid_type", `write an object such as { concurrency: 4 }, not ${describe(given)}`)])
]

export const optionIssues = (options: { readonly [option: string]: unknown }): ReadonlyArray<Issue> => [
  ...policyIssues(options["onToolError"]),
  ...timeoutIssue("toolTimeout", options["toolTimeout"]),
  ...concurrencyIssues(options["concurrency"]),
  ...siblingIssues(options["siblings"]),
  ...oneOf("unknownTool", ["fail", "feedback"], options["unknownTool"]),
  ...contextIssues(options["context"]),
  ...approvalIssues(options["approvals"]),
  ...wholeNumber("maxArgumentsLength", options["maxArgumentsLength"])
]

/** A mistyped option would be ignored in silence. */
export const unknownOptions = (names: ReadonlyArray<string>, given: object): ReadonlyArray<Issue> =>
  Object.keys(given).filter((name) => !names.includes(name)).map((name) =>
    issue([name], "unknown_option", `there is no such option; the options are ${names.join(", ")}`)
  )

const listOr = (
  field: string,
  wanted: string,
  value: unknown,
  check: (list: ReadonlyArray<unknown>) => ReadonlyArray<Issue>
): ReadonlyArray<Issue> =>
  Array.isArray(value)
    ? check(value)
    : [issue([field], "invalid_type", `write a list of ${wanted}, not ${show(value)}`)]

export const toolIssues = (tools: ReadonlyArray<unknown>): ReadonlyArray<Issue> => {
  const seen = new Set<string>()
  return tools.flatMap((tool, index) => {
    if (!isRegistered(tool)) {
      return [issue(["tools", index], "not_a_tool", `write a tool made by Tool.make, not ${describe(tool)}`)]
    }
    if (!seen.has(tool.name)) {
      seen.add(tool.name)
      return []
    }
    return [issue(["tools", index], "duplicate_name", `two tools are named ${show(tool.name)}; rename one`)]
  })
}

const callIssues = (calls: ReadonlyArray<unknown>): ReadonlyArray<Issue> => {
  const seen = new Set<string>()
  const found: Array<Issue> = []
  for (let i = 0; i < calls.length; i++) {
    const call = calls[i] as { readonly id?: unknown; readonly name?: unknown } | null | undefined
    const id = call?.id
    const name = call?.name
    if (typeof name !== "string") {
      found.push(
        issue(["calls", i, "name"], "required", "a call names its tool; write ToolCall.make({ id, name, arguments })")
      )
    }
    if (typeof id !== "string" || id === "") {
      found.push(
        issue(["calls", i, "id"], "required", "a call needs an id; write ToolCall.make({ id, name, arguments })")
      )
    } else if (seen.has(id)) {
      found.push(
        issue(["calls", i, "id"], "duplicate_id", `two calls have the id ${show(id)}; each answer needs its own`)
      )
    }
    if (typeof id === "string") seen.add(id)
  }
  return found
}

const policyIssues = (policy: unknown): ReadonlyArray<Issue> => {
  if (policy === undefined || policy === "continue" || policy === "halt") return []
  if (typeof policy === "function" && policy.length <= 2) return []
  return [
    issue(
      ["onToolError"],
      "invalid_policy",
      `write "continue", "halt" or a function (call, error) => decision of at most 2 parameters, not ${show(policy)}`
    )
  ]
}

const concurrencyIssues = (value: unknown): ReadonlyArray<Issue> =>
  value === "unbounded" ? [] : wholeNumber("concurrency", value, " or \"unbounded\"")

export const wholeNumber = (field: string, value: unknown, or = ""): ReadonlyArray<Issue> =>
  value === undefined || (Number.isInteger(value) && (value as number) > 0)
    ? []
    : [issue([field], "must_be_positive", `write a positive whole number${or}, not ${show(value)}`)]

const siblingIssues = (value: unknown): ReadonlyArray<Issue> => {
  const valid = value === undefined || value === "drain" || value === "interrupt" ||
    (typeof value === "object" && value !== null && "drainFor" in value &&
      positiveDuration(value.drainFor) !== undefined)
  if (valid) return []
  return isPlainObject(value) && "drainFor" in value
    ? [
      issue(
        ["siblings", "drainFor"],
        "must_be_positive",
        `write a positive duration such as "2 seconds", not ${show(value["drainFor"])}`
      )
    ]
    : [
      issue(
        ["siblings"],
        "invalid_shape",
        `write "drain", "interrupt" or { drainFor: "2 seconds" }, not ${show(value)}`
      )
    ]
}

const approvalIssues = (value: unknown): ReadonlyArray<Issue> => {
  if (value === undefined) return []
  if (!isPlainObject(value)) {
    return [issue(["approvals"], "not_a_map", `write decisions by call id, { c0: { … } }, not ${describe(value)}`)]
  }
  return Object.entries(value).filter(([, decision]) => !isApproval(decision)).map(([id, decision]) =>
    issue(
      ["approvals", id],
      "invalid_shape",
      `write { _tag: "Approved" } or { _tag: "Denied", reason }, not ${show(decision)}`
    )
  )
}

const journalIssues = ({ journal, sessionId }: { readonly [option: string]: unknown }): ReadonlyArray<Issue> => {
  if (journal === undefined) return []
  if (!hasMethods(journal, ["prepare", "settle"])) {
    return [issue(["journal"], "invalid_type", `write a journal such as yield* ToolJournal, not ${describe(journal)}`)]
  }
  return typeof sessionId === "string" && sessionId !== ""
    ? []
    : [issue(["sessionId"], "required", "a journal keeps calls by session; write sessionId beside it")]
}

const hasMethods = (value: unknown, names: ReadonlyArray<string>): boolean =>
  typeof value === "object" && value !== null &&
  names.every((name) => typeof (value as { readonly [key: string]: unknown })[name] === "function")

const isApproval = (decision: unknown): boolean =>
  isPlainObject(decision) && (decision["_tag"] === "Approved" ||
    (decision["_tag"] === "Denied" &&
      (decision["reason"] === undefined || typeof decision["reason"] === "string")))

export const oneOf = (field: string, words: ReadonlyArray<string>, value: unknown): ReadonlyArray<Issue> =>
  value === undefined || words.includes(value as string)
    ? []
    : [issue([field], "unknown", `write ${words.map((word) => show(word)).join(" or ")}, not ${show(value)}`)]

const contextIssues = (value: unknown): ReadonlyArray<Issue> =>
  value === undefined || (typeof value === "object" && value !== null && !Array.isArray(value))
    ? []
    : [issue(["context"], "not_a_map", `write an object, not ${describe(value)}`)]
