/**
 * What a call may be given to say, and whether a provider would take it.
 */
import * as Either from "effect/Either"
import * as Message from "../Message.ts"
import * as Request from "../Request.ts"
import * as Thread from "../Thread.ts"
import type { Issue, ValidationError } from "../ValidationError.ts"
import * as Issues from "./issues.ts"
import { describe, isJsonAtAGlance, isPlainObject, show } from "./json.ts"

export type Input = string | ReadonlyArray<Message.Message> | Thread.Thread | Request.Request

export interface Start {
  readonly thread: Thread.Thread
  /** What else a request said; it beats every option. */
  readonly request: Request.Request | undefined
}

export const readInput = (input: unknown): Either.Either<Start, ValidationError> => {
  if (typeof input === "string") {
    return Either.right({ thread: { messages: [Message.user(input)], metadata: {} }, request: undefined })
  }
  if (Array.isArray(input)) return fromThread({ messages: input, metadata: {} })
  if (!isPlainObject(input)) {
    const message = `write text, a list of messages, a Thread or a Request, not ${describe(input)}`
    return Issues.toEither("invalid_thread", [Issues.issue(["thread"], "invalid_type", message)], nothing)
  }
  return isRequest(input) ? fromRequest(input) : fromThread(input)
}

const nothing: Start = { thread: Thread.empty, request: undefined }

// A thread has messages and metadata only; whatever says more is a request.
const isRequest = (input: { readonly [key: string]: unknown }): boolean =>
  Object.keys(input).some((key) => key !== "messages" && key !== "metadata")

const fromThread = (input: { readonly [key: string]: unknown }): Either.Either<Start, ValidationError> => {
  const thread = isPlainlyAThread(input) ? Either.right(input) : Thread.validate(input)
  return Either.flatMap(
    thread,
    (valid) => Issues.toEither("invalid_thread", historyIssues(valid.messages), { thread: valid, request: undefined })
  )
}

const fromRequest = (input: unknown): Either.Either<Start, ValidationError> =>
  Either.flatMap(Request.validate(input), (request) => {
    const thread: Thread.Thread = { messages: request.messages, metadata: {} }
    return Issues.toEither("invalid_request", historyIssues(request.messages), { thread, request })
  })

// A long conversation comes back with every turn of it: what is valid at first sight is not decoded again.
const isPlainlyAThread = (input: object): input is Thread.Thread => {
  const { messages, metadata } = input as { readonly messages?: unknown; readonly metadata?: unknown }
  return Array.isArray(messages) && isPlainObject(metadata) && isJsonAtAGlance(metadata) &&
    messages.every(isPlainlyAMessage)
}

const isPlainlyAMessage = (message: unknown): boolean => {
  if (!isPlainObject(message) || typeof message["content"] !== "string") return false
  const { metadata, name } = message
  if (!isPlainObject(metadata) || !isJsonAtAGlance(metadata)) return false
  if (name !== undefined && typeof name !== "string") return false
  switch (message["role"]) {
    case "system":
    case "user":
      return true
    case "assistant":
      return Array.isArray(message["toolCalls"]) && message["toolCalls"].every(isPlainlyACall)
    case "tool":
      return typeof message["toolCallId"] === "string" && typeof message["isError"] === "boolean"
    default:
      return false
  }
}

const isPlainlyACall = (call: unknown): boolean => {
  if (!isPlainObject(call) || typeof call["id"] !== "string" || typeof call["name"] !== "string") return false
  const { metadata, rawArguments } = call
  return call["id"] !== "" && call["name"] !== "" && isPlainObject(metadata) && isJsonAtAGlance(metadata) &&
    (rawArguments === undefined || typeof rawArguments === "string") &&
    (!("arguments" in call) || isJsonAtAGlance(call["arguments"]))
}

/** Every tool message answers a call, and every call is answered before anyone speaks again. */
const historyIssues = (messages: ReadonlyArray<Message.Message>): ReadonlyArray<Issue> => {
  if (messages.length === 0) {
    return [Issues.issue(["messages"], "empty", "there is nothing to answer; write [Message.user(\"…\")]")]
  }
  const found: Array<Issue> = []
  let open = new Set<string>()
  let asked = 0
  const close = (): void => {
    for (const id of open) found.push(unanswered(asked, id))
    open = new Set()
  }
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i]!
    if (message.role === "tool") {
      if (!open.delete(message.toolCallId)) found.push(orphan(i, message.toolCallId))
      continue
    }
    close()
    if (message.role === "assistant" && message.toolCalls.length > 0) {
      asked = i
      open = new Set(message.toolCalls.map((call) => call.id))
      if (open.size < message.toolCalls.length) found.push(repeated(i))
    }
  }
  close()
  return found
}

const unanswered = (index: number, id: string): Issue =>
  Issues.issue(
    ["messages", index, "toolCalls"],
    "unanswered_call",
    `the call ${show(id)} has no answer; append Message.tool(${show(id)}, "…") before anything else is said`
  )

const repeated = (index: number): Issue =>
  Issues.issue(
    ["messages", index, "toolCalls"],
    "duplicate_id",
    "two calls of one message have the same id; each answer needs its own"
  )

const orphan = (index: number, id: string): Issue =>
  Issues.issue(
    ["messages", index, "toolCallId"],
    "unknown_call",
    `no open call has the id ${show(id)}; a tool message follows the assistant message that made the call, once`
  )
