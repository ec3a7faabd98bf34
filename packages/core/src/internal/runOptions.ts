/**
 * What is legal in a run's calls, tools and options.
 */
import type { ToolCall } from "../ToolCall.ts"
import type { Issue } from "../ValidationError.ts"
import { issue } from "./issues.ts"
import { describe, show } from "./json.ts"
import { isRegistered } from "./tool.ts"
import { positiveDuration, timeoutIssue } from "./toolOptions.ts"

export const runIssues = (
  calls: ReadonlyArray<ToolCall>,
  tools: ReadonlyArray<unknown>,
  given: object
): ReadonlyArray<Issue> => {
  const options = given as { readonly [option: string]: unknown }
  return [
    ...toolIssues(tools),
    ...callIssues(calls),
    ...policyIssues(options["onToolError"]),
    ...timeoutIssue("toolTimeout", options["toolTimeout"]),
    ...concurrencyIssues(options["concurrency"]),
    ...siblingIssues(options["siblings"]),
    ...oneOf("unknownTool", ["fail", "feedback"], options["unknownTool"]),
    ...contextIssues(options["context"]),
    ...wholeNumber("maxArgumentsLength", options["maxArgumentsLength"])
  ]
}

const toolIssues = (tools: ReadonlyArray<unknown>): ReadonlyArray<Issue> => {
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

const callIssues = (calls: ReadonlyArray<ToolCall>): ReadonlyArray<Issue> => {
  const seen = new Set<string>()
  const found: Array<Issue> = []
  for (let i = 0; i < calls.length; i++) {
    const id: unknown = calls[i]?.id
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

const wholeNumber = (field: string, value: unknown, or = ""): ReadonlyArray<Issue> =>
  value === undefined || (Number.isInteger(value) && (value as number) > 0)
    ? []
    : [issue([field], "must_be_positive", `write a positive whole number${or}, not ${show(value)}`)]

const siblingIssues = (value: unknown): ReadonlyArray<Issue> => {
  const valid = value === undefined || value === "drain" || value === "interrupt" ||
    (typeof value === "object" && value !== null && "drainFor" in value &&
      positiveDuration(value.drainFor) !== undefined)
  return valid
    ? []
    : [
      issue(
        ["siblings"],
        "invalid_shape",
        `write "drain", "interrupt" or { drainFor: "2 seconds" }, not ${show(value)}`
      )
    ]
}

const oneOf = (field: string, words: ReadonlyArray<string>, value: unknown): ReadonlyArray<Issue> =>
  value === undefined || words.includes(value as string)
    ? []
    : [issue([field], "unknown", `write ${words.map((word) => show(word)).join(" or ")}, not ${show(value)}`)]

const contextIssues = (value: unknown): ReadonlyArray<Issue> =>
  value === undefined || (typeof value === "object" && value !== null && !Array.isArray(value))
    ? []
    : [issue(["context"], "not_a_map", `write an object, not ${describe(value)}`)]
