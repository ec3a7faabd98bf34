/**
 * What a session is made of. Every operation looks at the shape of what it is given: enough that nothing goes wrong later,
 * and cheap however long the conversation is.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Session } from "../Session.ts"
import * as Thread from "../Thread.ts"
import type { Issue, ValidationError } from "../ValidationError.ts"
import * as Issues from "./issues.ts"
import { describe, isPlainObject, show } from "./json.ts"

const statuses = ["idle", "awaiting_user", "awaiting_approval", "awaiting_tools", "completed", "error"]

const pendingOf: { readonly [status: string]: string } = {
  awaiting_user: "pendingQuestions",
  awaiting_approval: "pendingApprovals",
  awaiting_tools: "pendingToolCalls"
}

/** What the schema alone would not find, or would say in words that do not help. */
export const sessionIssues = (input: unknown): ReadonlyArray<Issue> => {
  if (!isPlainObject(input)) {
    const instead = typeof input === "string"
      ? "parse the text first, with Schema.parseJson(Session.Session)"
      : `write Session.make({ id: "…" }), not ${describe(input)}`
    return [Issues.issue([], "invalid_type", instead)]
  }
  const { id, metadata, status, thread } = input
  const found: Array<Issue> = []
  if (typeof id !== "string" || id === "") {
    found.push(Issues.issue(["id"], "required", `a session has an id, a text that is not empty, not ${show(id)}`))
  }
  if (!statuses.includes(status as string)) {
    found.push(Issues.issue(["status"], "unknown", `write ${statuses.map(show).join(" or ")}, not ${show(status)}`))
  }
  const pending = pendingOf[status as string]
  const list = pending === undefined ? undefined : input[pending]
  if (pending !== undefined && (list === undefined || (Array.isArray(list) && list.length === 0))) {
    found.push(Issues.issue([pending], "required_for_status", `a session that is ${show(status)} says for what`))
  }
  if (status === "error" && (!isPlainObject(metadata) || metadata["error"] === undefined)) {
    found.push(
      Issues.issue(
        ["metadata"],
        "error_required_for_status",
        "a session in error says what went wrong in metadata.error"
      )
    )
  }
  const checked = Thread.validate(thread)
  if (Either.isLeft(checked)) {
    for (const issue of checked.left.issues) found.push({ ...issue, path: ["thread", ...issue.path] })
  }
  return found
}

/** Whether something is a session rather than a thread or a request. */
export const isSession = (input: unknown): input is Session =>
  isPlainObject(input) && "thread" in input && "status" in input

/** Whether something is what an operation gave back, as a whole. */
export const isOutcome = (input: unknown): boolean => isPlainObject(input) && isSession(input["session"])

// --- at a glance --------------------------------------------------------------------------------------------------------

type Fields = { readonly [field: string]: unknown }

/** The first part that is not as it has to be. */
interface Misfit {
  readonly path: Issues.IssuePath
  readonly wanted: string
  readonly actual: unknown
}

type Fits = (value: unknown) => boolean

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isText: Fits = (value) => typeof value === "string" && value !== ""

const isCall: Fits = (value) =>
  isObject(value) && isText(value["id"]) && typeof value["name"] === "string" && isObject(value["metadata"])

const isDecision: Fits = (value) =>
  value === undefined ||
  (isObject(value) &&
    (value["_tag"] === "Denied" || (value["_tag"] === "Approved" && typeof value["digest"] === "string")))

const isApproval: Fits = (value) =>
  isObject(value) && isCall(value["toolCall"]) && typeof value["digest"] === "string" && isDecision(value["decision"])

const isQuestion: Fits = (value) =>
  isObject(value) && isText(value["toolCallId"]) && typeof value["question"] === "string"

const isMessage: Fits = (value) => {
  if (!isObject(value) || !isObject(value["metadata"])) return false
  if (typeof value["content"] !== "string" && !Array.isArray(value["content"])) return false
  switch (value["role"]) {
    case "system":
    case "user":
      return true
    case "assistant":
      return Array.isArray(value["toolCalls"]) && value["toolCalls"].every(isCall)
    case "tool":
      return typeof value["toolCallId"] === "string"
    default:
      return false
  }
}

const field = (of: Fields, name: string, fits: Fits, wanted: string): Misfit | undefined =>
  fits(of[name]) ? undefined : { path: [name], wanted, actual: of[name] }

const list = (of: Fields, name: string, fits: Fits, member: string): Misfit | undefined => {
  const members = of[name]
  if (!Array.isArray(members)) return { path: [name], wanted: "a list", actual: members }
  const index = members.findIndex((value) => !fits(value))
  return index < 0 ? undefined : { path: [name, index], wanted: member, actual: members[index] }
}

const inThread = (thread: unknown): Misfit | undefined => {
  if (!isObject(thread)) return { path: ["thread"], wanted: "a Thread", actual: thread }
  const found = list(thread, "messages", isMessage, "a whole Message") ??
    field(thread, "metadata", isObject, "an object")
  return found === undefined ? undefined : { ...found, path: ["thread", ...found.path] }
}

const misfitOf = (session: Fields): Misfit | undefined =>
  field(session, "id", isText, "a text that is not empty") ??
    field(session, "status", (status) => statuses.includes(status as string), "a status") ??
    inThread(session["thread"]) ??
    list(session, "pendingToolCalls", isCall, "a whole ToolCall") ??
    list(session, "pendingQuestions", isQuestion, "a whole question") ??
    list(session, "pendingApprovals", isApproval, "a whole PendingApproval") ??
    list(session, "unknownOutcomes", isCall, "a whole ToolCall") ??
    field(session, "usage", isObject, "an object") ??
    field(session, "context", isObject, "an object") ??
    field(session, "metadata", isObject, "an object") ??
    field(session, "version", Number.isInteger, "a whole number")

/** What kind of thing was taken for a session, and where the session is to be found. */
const strangerIssue = (name: string, value: unknown): Issue => {
  const told = (instead: string): Issue => Issues.issue([], "not_a_session", `${name} takes a session; ${instead}`)
  if (isOutcome(value)) return told("pass outcome.session, not the whole { session, result }")
  if (typeof value === "string") {
    return value.trimStart().startsWith("{")
      ? told("parse the text first, with Schema.decode(Schema.parseJson(Session.Session))")
      : told(`${show(value)} is a text; load the session of an id with SessionStore.load, or use SessionRunner`)
  }
  if (Effect.isEffect(value)) return told("this is an Effect; write yield* before it, and pass its session")
  return told(`write Session.make({ id: "…" }), not ${describe(value)}`)
}

const shapeIssues = (name: string, value: unknown): ReadonlyArray<Issue> => {
  if (!isObject(value) || isOutcome(value) || Effect.isEffect(value)) return [strangerIssue(name, value)]
  const misfit = misfitOf(value)
  if (misfit === undefined) return []
  const known = sessionIssues(value)
  return known.length > 0 ? known : [
    Issues.issue(
      misfit.path,
      "not_decoded",
      `a session has ${misfit.wanted} here, not ${show(misfit.actual)}; ` +
        "JSON becomes a session with Schema.decodeUnknown(Session.Session)"
    )
  ]
}

/** The session, if it has the shape of one. `name` is who asks. */
export const readSession = (name: string, value: unknown): Either.Either<Session, ValidationError> =>
  Issues.toEither("invalid_session", shapeIssues(name, value), value as Session)

const resultMisfit = (result: Fields): Misfit | undefined =>
  inThread(result["thread"]) ??
    list(result, "pendingQuestions", isQuestion, "a whole question") ??
    list(result, "pendingApprovals", (value) => isObject(value) && isCall(value["toolCall"]), "a call that waits") ??
    list(result, "manualToolCalls", isCall, "a whole ToolCall") ??
    field(result, "metadata", isObject, "an object") ??
    ("steps" in result
      ? list(result, "steps", isObject, "a StepResult") ?? field(result, "usage", isObject, "an object")
      : field(result, "response", isObject, "a Response"))

/** What a chat or a turn came to, if it has the shape of that. `name` is who asks. */
export const readResult = <A extends object>(name: string, value: A): Either.Either<A, ValidationError> => {
  const issue = (path: Issues.IssuePath, message: string) =>
    Issues.toEither("invalid_session", [Issues.issue(["result", ...path], "not_a_result", message)], value)
  if (isOutcome(value)) {
    return issue([], `${name} takes a result; pass outcome.result, not the whole { session, result }`)
  }
  if (!isObject(value)) return issue([], `${name} takes a ChatResult or a StepResult, not ${show(value)}`)
  const misfit = resultMisfit(value)
  return misfit === undefined
    ? Either.right(value)
    : issue(misfit.path, `a ChatResult or a StepResult has ${misfit.wanted} here, not ${show(misfit.actual)}`)
}
