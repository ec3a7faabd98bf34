/**
 * What a session may be made of, started with and told.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Message from "../Message.ts"
import type { Session } from "../Session.ts"
import * as Thread from "../Thread.ts"
import type { Issue, ValidationError } from "../ValidationError.ts"
import { readInput } from "./input.ts"
import * as Issues from "./issues.ts"
import { describe, isPlainObject, show } from "./json.ts"
import { makeId } from "./sessionLoop.ts"

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

/** The thread of a conversation that begins. */
export const readThread = (input: unknown): Either.Either<Thread.Thread, ValidationError> =>
  Either.flatMap(
    readInput(input),
    ({ request, thread }) =>
      request === undefined ? Either.right(thread) : Issues.toEither("invalid_session", [
        Issues.issue([], "invalid_type", "a session starts with text, messages or a Thread; give the rest as options")
      ], thread)
  )

/** What a person says. */
export const readMessage = (input: unknown): Either.Either<Message.Message, ValidationError> => {
  const message = Message.validate(
    typeof input === "string" || Array.isArray(input) ? { role: "user", content: input } : input
  )
  return Either.flatMap(message, (message) =>
    Issues.toEither(
      "invalid_message",
      message.role === "user" ? [] : [
        Issues.issue(
          ["role"],
          "not_user",
          `a reply is the person's; write Message.user("…"), not ${show(message.role)}`
        )
      ],
      message
    ))
}

export const idOr = (given: string | undefined): Effect.Effect<string> =>
  given === undefined ? makeId : Effect.succeed(given)
