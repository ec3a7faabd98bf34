/**
 * What is legal in the settings of an engine or a call.
 */
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Message from "../Message.ts"
import { ResponseFormat, ToolChoice } from "../Request.ts"
import type { Issue } from "../ValidationError.ts"
import { each, issue, matches } from "./issues.ts"
import { describe, findNonJson, formatPath, isPlainObject, show } from "./json.ts"
import { oneOf, optionIssues, toolIssues, unknownOptions, wholeNumber } from "./runOptions.ts"
import { type Caller, instead } from "./sessionCaller.ts"
import { timeoutIssue } from "./toolOptions.ts"

type Untyped = { readonly [option: string]: unknown }

const settings = [
  "model",
  "temperature",
  "maxTokens",
  "toolChoice",
  "responseFormat",
  "params",
  "context",
  "mode",
  "maxTurns",
  "haltWhen",
  "prepareStep",
  "onToolError",
  "toolTimeout",
  "concurrency",
  "siblings",
  "unknownTool",
  "maxArgumentsLength",
  "retry",
  "requestTimeout",
  "idleTimeout",
  "structuredFinalize",
  "structuredFinalizeNudge",
  "budget",
  "softLanding",
  "onEvent",
  "emitTextDeltas",
  "emitToolDeltas",
  "includeRawChunks"
]

const ofEngine = [...settings, "tools"]
const ofCall = [...settings, "tools", "sessionId", "requestId", "approvals"]
const ofRunner = [...settings, "tools", "requestId", "approvalTimeout"]
const ofSession = [...ofRunner, "sessionId"]

/** Problems of the options of `Engine.layer`. */
export const engineIssues = (given: unknown): ReadonlyArray<Issue> =>
  isPlainObject(given)
    ? [...unknownOptions(ofEngine, given), ...settingIssues(given), ...givenTools(given["tools"])]
    : [issue([], "invalid_type", `write options such as { tools: […] }, not ${describe(given)}`)]

/** Problems of settings without tools. */
export const settingsIssues = (given: unknown): ReadonlyArray<Issue> =>
  isPlainObject(given)
    ? [...unknownOptions(settings, given), ...settingIssues(given)]
    : [issue([], "invalid_type", `write settings such as { model: "…" }, not ${describe(given)}`)]

/** Problems of the options of one call. */
export const callIssues = (given: unknown): ReadonlyArray<Issue> => optionsOf(ofCall, given)

/** Problems of the options of a call in the course of a session, whose decisions about calls are its own. */
export const sessionCallIssues = (caller: Caller, given: unknown): ReadonlyArray<Issue> =>
  optionsOf(caller.module === "Session" ? ofSession : ofRunner, given).map((found) =>
    found.path[0] === "approvals"
      ? issue(
        ["approvals"],
        "unknown_option",
        `consent is given to the session; use ${instead(caller, "approve", "toolCallId")} or ${
          instead(caller, "deny", "toolCallId")
        }`
      )
      : found
  )

const optionsOf = (known: ReadonlyArray<string>, given: unknown): ReadonlyArray<Issue> =>
  isPlainObject(given)
    ? Object.keys(given).length === 0 ? [] : [
      ...unknownOptions(known, given),
      ...settingIssues(given),
      ...givenTools(given["tools"]),
      ...text("sessionId", given["sessionId"]),
      ...text("requestId", given["requestId"]),
      ...timeoutIssue("approvalTimeout", given["approvalTimeout"])
    ]
    : [issue([], "invalid_type", `write options such as { maxTurns: 4 }, not ${describe(given)}`)]

const settingIssues = (given: Untyped): ReadonlyArray<Issue> => [
  ...text("model", given["model"]),
  ...temperature(given["temperature"]),
  ...wholeNumber("maxTokens", given["maxTokens"]),
  ...matches("toolChoice", ToolChoice, "\"auto\", \"none\", \"required\" or { tool: \"name\" }", given["toolChoice"]),
  ...responseFormat(given["responseFormat"]),
  ...json("params", given["params"]),
  ...params(given["params"]),
  ...oneOf("mode", ["auto", "manual"], given["mode"]),
  ...wholeNumber("maxTurns", given["maxTurns"]),
  ...callback("haltWhen", "(step) => boolean", given["haltWhen"]),
  ...callback("prepareStep", "(info) => changes", given["prepareStep"]),
  ...callback("onEvent", "(event) => Effect.void", given["onEvent"]),
  ...optionIssues(given),
  ...retry(given["retry"]),
  ...timeoutIssue("requestTimeout", given["requestTimeout"]),
  ...timeoutIssue("idleTimeout", given["idleTimeout"]),
  ...flag("structuredFinalize", given["structuredFinalize"]),
  ...text("structuredFinalizeNudge", given["structuredFinalizeNudge"], true),
  ...budget(given["budget"]),
  ...(typeof given["softLanding"] === "string" ? [] : flag("softLanding", given["softLanding"])),
  ...flag("emitTextDeltas", given["emitTextDeltas"]),
  ...flag("emitToolDeltas", given["emitToolDeltas"]),
  ...flag("includeRawChunks", given["includeRawChunks"])
]

const givenTools = (tools: unknown): ReadonlyArray<Issue> =>
  tools === undefined || Array.isArray(tools)
    ? toolIssues(tools ?? [])
    : [issue(["tools"], "invalid_type", `write a list of tools made by Tool.make, not ${describe(tools)}`)]

const text = (field: string, value: unknown, mayBeEmpty = false): ReadonlyArray<Issue> =>
  value === undefined || (typeof value === "string" && (mayBeEmpty || value !== ""))
    ? []
    : [issue([field], "invalid_type", `write ${mayBeEmpty ? "a" : "a non-empty"} string, not ${show(value)}`)]

const flag = (field: string, value: unknown): ReadonlyArray<Issue> =>
  value === undefined || typeof value === "boolean"
    ? []
    : [issue([field], "invalid_type", `write true or false, not ${show(value)}`)]

const temperature = (value: unknown, path: ReadonlyArray<string> = ["temperature"]): ReadonlyArray<Issue> =>
  value === undefined || (typeof value === "number" && value >= 0 && value <= 2)
    ? []
    : [issue(path, "out_of_range", `write a number from 0 to 2, not ${show(value)}`)]

const params = (value: unknown): ReadonlyArray<Issue> =>
  isPlainObject(value)
    ? [
      ...temperature(value["temperature"], ["params", "temperature"]),
      ...wholeNumber("maxTokens", value["maxTokens"]).map((found) => ({ ...found, path: ["params", ...found.path] }))
    ]
    : []

const json = (field: string, value: unknown): ReadonlyArray<Issue> => {
  if (value === undefined) return []
  if (!isPlainObject(value)) return [issue([field], "not_a_map", `write an object, not ${describe(value)}`)]
  const found = findNonJson(value)
  return found === undefined
    ? []
    : [issue([field], "not_json", `at ${formatPath(found.path)} ${found.problem}`)]
}

const responseFormat = (value: unknown): ReadonlyArray<Issue> =>
  Schema.isSchema(value)
    ? []
    : matches("responseFormat", ResponseFormat, "a Schema or { type: \"json_schema\", name, schema }", value)

const callback = (field: string, example: string, value: unknown): ReadonlyArray<Issue> =>
  value === undefined || (typeof value === "function" && value.length <= 1)
    ? []
    : [issue([field], "invalid_type", `write a function ${example} of one parameter, not ${show(value)}`)]

const retry = (value: unknown): ReadonlyArray<Issue> =>
  value === undefined || value === false || Schedule.isSchedule(value)
    ? []
    : [
      issue(
        ["retry"],
        "invalid_type",
        `write a Schedule, AdapterError.retrySchedule({ … }) or false, not ${show(value)}`
      )
    ]

const budget = (value: unknown): ReadonlyArray<Issue> => {
  if (value === undefined) return []
  if (!isPlainObject(value)) return [issue(["budget"], "not_a_map", `write { maxToolCalls: 20 }, not ${show(value)}`)]
  return [
    ...unknownOptions(["maxToolCalls", "maxTokens", "maxDuration", "maxRepeatedCalls"], value),
    ...wholeNumber("maxToolCalls", value["maxToolCalls"]),
    ...wholeNumber("maxTokens", value["maxTokens"]),
    ...timeoutIssue("maxDuration", value["maxDuration"]),
    ...wholeNumber("maxRepeatedCalls", value["maxRepeatedCalls"])
  ].map((found) => ({ ...found, path: ["budget", ...found.path] }))
}

/** Problems of what `prepareStep` wants to change. */
export const changeIssues = (given: Untyped, tools: ReadonlyMap<string, unknown>): ReadonlyArray<Issue> => {
  const { activeTools, maxTokens, messages, model, temperature: warmth, toolChoice } = given
  return [
    ...unknownOptions(["model", "messages", "activeTools", "toolChoice", "temperature", "maxTokens"], given),
    ...text("model", model),
    ...temperature(warmth),
    ...wholeNumber("maxTokens", maxTokens),
    ...matches("toolChoice", ToolChoice, "\"auto\", \"none\", \"required\" or { tool: \"name\" }", toolChoice),
    ...(isPlainObject(toolChoice) ? knownTools("toolChoice", [toolChoice["tool"]], tools) : []),
    ...changedMessages(messages),
    ...(activeTools === undefined
      ? []
      : Array.isArray(activeTools)
      ? knownTools("activeTools", activeTools, tools)
      : [issue(["activeTools"], "invalid_type", `write a list of names of tools, not ${show(activeTools)}`)])
  ]
}

const changedMessages = (messages: unknown): ReadonlyArray<Issue> => {
  if (messages === undefined) return []
  return Array.isArray(messages) && messages.length > 0
    ? each("messages", messages, Message.validate)
    : [issue(["messages"], "invalid_type", `write a list of messages, not ${show(messages)}`)]
}

const knownTools = (
  field: string,
  names: ReadonlyArray<unknown>,
  tools: ReadonlyMap<string, unknown>
): ReadonlyArray<Issue> =>
  names.filter((name) => typeof name !== "string" || !tools.has(name)).map((name) =>
    issue(
      [field],
      "unknown_tool",
      `no tool is named ${show(name)}; there are ${[...tools.keys()].join(", ") || "none"}`
    )
  )
