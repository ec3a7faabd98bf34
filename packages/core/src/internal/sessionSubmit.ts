/**
 * Answering what a session waits for. Nothing here asks a model.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Message from "../Message.ts"
import type { Session } from "../Session.ts"
import type { SessionError } from "../SessionError.ts"
import type { EncodingFailed } from "../ToolError.ts"
import { ToolResultEncoder } from "../ToolResultEncoder.ts"
import type { Issue, ValidationError } from "../ValidationError.ts"
import * as Issues from "./issues.ts"
import { describe, isPlainObject, show } from "./json.ts"
import { unknownOptions } from "./runOptions.ts"
import { type Caller, nameOf } from "./sessionCaller.ts"
import {
  approvalOf,
  consentRefusal,
  recoverRefusal,
  resolveRefusal,
  resting,
  type Submission,
  submissionRefusal,
  usedRefusal
} from "./sessionRules.ts"
import { readSession } from "./sessionShape.ts"
import { putAnswers, withoutQuestion } from "./sessionThread.ts"

type Submitted = Either.Either<Session, SessionError>

export type Refusal = SessionError | ValidationError

// --- what is handed in --------------------------------------------------------------------------------------------------

/** A value as the text of a tool message. */
const encoded = (value: unknown): Effect.Effect<string, EncodingFailed> =>
  Effect.flatMap(ToolResultEncoder, (encoder) => encoder.encode(value))

/** The one option that a function has. Anything else that is written in its place would be lost in silence. */
interface Option {
  readonly name: string
  readonly type: "string" | "boolean"
  readonly example: string
}

const isErrorOption: Option = { name: "isError", type: "boolean", example: "{ isError: true }" }
const digestOption: Option = { name: "digest", type: "string", example: "{ digest: \"…\" }" }
const reasonOption: Option = { name: "reason", type: "string", example: "{ reason: \"…\" }" }

const optionIssues = ({ example, name, type }: Option, options: unknown): ReadonlyArray<Issue> => {
  if (options === undefined) return []
  if (!isPlainObject(options)) {
    return [Issues.issue(["options"], "invalid_type", `write ${example}, not ${show(options)}`)]
  }
  const value = options[name]
  return [
    ...unknownOptions([name], options),
    ...(value === undefined || typeof value === type
      ? []
      : [Issues.issue([name], "invalid_type", `write ${example}, not ${show(value)}`)])
  ]
}

const given = (
  caller: Caller,
  session: unknown,
  option: Option,
  options: unknown
): Either.Either<Session, ValidationError> =>
  Either.flatMap(
    readSession(nameOf(caller), session),
    (session) => Issues.toEither("invalid_options", optionIssues(option, options), session)
  )

type Results = ReadonlyArray<readonly [toolCallId: string, result: unknown]>

const resultsIssue = (path: Issues.IssuePath, message: string): Issue =>
  Issues.issue(["results", ...path], "invalid_shape", message)

const resultIssue = (index: number, member: unknown): Issue => {
  const isMessage = isPlainObject(member) && member["role"] === "tool"
  const hint = isMessage
    ? "[message.toolCallId, message.content], not the message"
    : `[toolCallId, result], not ${show(member)}`
  return resultsIssue([index], `write ${hint}`)
}

const isPair = (member: unknown): boolean =>
  Array.isArray(member) && member.length === 2 && typeof member[0] === "string"

/** Read once: an iterator is empty afterwards, and what is made of it may have to be made again. */
export const readResults = (results: unknown): Either.Either<Results, ValidationError> => {
  if (typeof results !== "object" || results === null || !(Symbol.iterator in results)) {
    const entries = isPlainObject(results) ? ", or Object.entries(results)" : ""
    const message = `write [[toolCallId, result], …]${entries}, not ${describe(results)}`
    return Issues.toEither("invalid_options", [resultsIssue([], message)], [])
  }
  const members = Either.try(() => Array.from(results as Iterable<unknown>))
  const issues = Either.match(members, {
    onLeft: () => [resultsIssue([], "reading them threw; write [[toolCallId, result], …]")],
    onRight: (members) => members.flatMap((member, index) => isPair(member) ? [] : [resultIssue(index, member)])
  })
  return Issues.toEither("invalid_options", issues, Either.getOrElse(members, () => []) as unknown as Results)
}

// --- what it makes of the session ---------------------------------------------------------------------------------------

const answered = (session: Session, toolCallId: string, content: string, isError: boolean): Session["thread"] =>
  putAnswers(withoutQuestion(session.thread), [Message.tool(toolCallId, content, { isError })])

export const answer = (
  caller: Caller,
  session: Session,
  toolCallId: string,
  value: unknown
): Effect.Effect<Session, Refusal | EncodingFailed> =>
  Effect.gen(function*() {
    yield* readSession(nameOf(caller), session)
    const content = yield* encoded(value)
    const refusal = submissionRefusal(caller, session, "answer", toolCallId)
    return refusal !== undefined ? yield* refusal : resting({
      ...session,
      thread: answered(session, toolCallId, content, false),
      pendingQuestions: session.pendingQuestions.filter((question) => question.toolCallId !== toolCallId)
    })
  })

const submitted = (
  caller: Caller,
  session: Session,
  operation: Submission,
  toolCallId: string,
  content: string,
  isError: boolean
): Submitted => {
  const refusal = submissionRefusal(caller, session, operation, toolCallId)
  return refusal !== undefined ? Either.left(refusal) : Either.right(resting({
    ...session,
    thread: answered(session, toolCallId, content, isError),
    pendingToolCalls: session.pendingToolCalls.filter(({ id }) => id !== toolCallId)
  }))
}

export interface ResultOptions {
  readonly isError?: boolean | undefined
}

export const submit = (
  caller: Caller,
  session: Session,
  toolCallId: string,
  result: unknown,
  options: ResultOptions | undefined
): Effect.Effect<Session, Refusal | EncodingFailed> =>
  Effect.gen(function*() {
    yield* given(caller, session, isErrorOption, options)
    const content = yield* encoded(result)
    return yield* submitted(caller, session, "submitToolResult", toolCallId, content, options?.isError ?? false)
  })

/** All of them or none. */
export const submitAll = (
  caller: Caller,
  session: Session,
  results: Either.Either<Results, ValidationError>
): Effect.Effect<Session, Refusal | EncodingFailed> =>
  Effect.gen(function*() {
    let current = yield* readSession(nameOf(caller), session)
    for (const [toolCallId, result] of yield* results) {
      const content = yield* encoded(result)
      current = yield* submitted(caller, current, "submitToolResults", toolCallId, content, false)
    }
    return current
  })

export interface ApproveOptions {
  readonly digest?: string | undefined
}

export const approve = (
  caller: Caller,
  session: Session,
  toolCallId: string,
  options: ApproveOptions | undefined
): Effect.Effect<Session, Refusal> =>
  Effect.gen(function*() {
    yield* given(caller, session, digestOption, options)
    const refusal = submissionRefusal(caller, session, "approve", toolCallId)
    if (refusal !== undefined) return yield* refusal
    const approval = approvalOf(session, toolCallId)!
    const unfit = consentRefusal(caller, session, approval, options?.digest, yield* Clock.currentTimeMillis)
    if (unfit !== undefined) return yield* unfit
    if (approval.decision !== undefined) return yield* usedRefusal(caller, session, toolCallId, "is decided")
    return decided(session, toolCallId, { _tag: "Approved", digest: approval.digest })
  })

export interface DenyOptions {
  readonly reason?: string | undefined
}

export const deny = (
  caller: Caller,
  session: Session,
  toolCallId: string,
  options: DenyOptions | undefined
): Effect.Effect<Session, Refusal> =>
  Effect.gen(function*() {
    yield* given(caller, session, reasonOption, options)
    const refusal = submissionRefusal(caller, session, "deny", toolCallId)
    if (refusal !== undefined) return yield* refusal
    // Consent can be taken back until it is used.
    if (approvalOf(session, toolCallId)!.decision?._tag === "Denied") {
      return yield* usedRefusal(caller, session, toolCallId, "is decided")
    }
    const reason = options?.reason
    return decided(session, toolCallId, { _tag: "Denied", ...(reason === undefined ? {} : { reason }) })
  })

const decided = (
  session: Session,
  toolCallId: string,
  decision: NonNullable<Session["pendingApprovals"][number]["decision"]>
): Session =>
  resting({
    ...session,
    pendingApprovals: session.pendingApprovals.map((approval) =>
      approval.toolCall.id === toolCallId ? { ...approval, decision } : approval
    )
  })

export const resolve = (
  caller: Caller,
  session: Session,
  toolCallId: string,
  result: unknown,
  options: ResultOptions | undefined
): Effect.Effect<Session, Refusal | EncodingFailed> =>
  Effect.gen(function*() {
    yield* given(caller, session, isErrorOption, options)
    const content = yield* encoded(result)
    const refusal = resolveRefusal(caller, session, toolCallId)
    if (refusal !== undefined) return yield* refusal
    const unknownOutcomes = session.unknownOutcomes.filter(({ id }) => id !== toolCallId)
    const thread = answered(session, toolCallId, content, options?.isError ?? false)
    const next = { ...session, thread, unknownOutcomes }
    return unknownOutcomes.length > 0 ? next : recovered(next)
  })

/** Out of the error, with history as it is. */
export const recover = (caller: Caller, session: Session): Effect.Effect<Session, Refusal> =>
  Effect.flatMap(
    Effect.suspend(() => readSession(nameOf(caller), session)),
    (session): Effect.Effect<Session, SessionError> =>
      recoverRefusal(caller, session) ?? Effect.succeed(recovered(session))
  )

const recovered = (session: Session): Session => {
  const { error: _error, ...metadata } = session.metadata
  return resting({ ...session, metadata, unknownOutcomes: [] })
}
