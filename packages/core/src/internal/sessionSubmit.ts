/**
 * Answering what a session waits for. Nothing here asks a model.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Message from "../Message.ts"
import type { Session } from "../Session.ts"
import type { SessionError } from "../SessionError.ts"
import type { EncodingFailed } from "../ToolError.ts"
import { ToolResultEncoder } from "../ToolResultEncoder.ts"
import { show } from "./json.ts"
import { consentRefusal, refuse, resolveRefusal, resting, type Submission, submissionRefusal } from "./sessionRules.ts"
import { putAnswers, withoutQuestion } from "./sessionThread.ts"

/** A value as the text of a tool message. */
export const encoded = (value: unknown): Effect.Effect<string, EncodingFailed> =>
  Effect.flatMap(ToolResultEncoder, (encoder) => encoder.encode(value))

type Submitted = Either.Either<Session, SessionError>

const answered = (session: Session, toolCallId: string, content: string, isError: boolean): Session["thread"] =>
  putAnswers(withoutQuestion(session.thread), [Message.tool(toolCallId, content, { isError })])

export const answer = (session: Session, toolCallId: string, content: string): Submitted => {
  const refusal = submissionRefusal(session, "answer", toolCallId)
  return refusal !== undefined ? Either.left(refusal) : Either.right(resting({
    ...session,
    thread: answered(session, toolCallId, content, false),
    pendingQuestions: session.pendingQuestions.filter((question) => question.toolCallId !== toolCallId)
  }))
}

export const submit = (
  session: Session,
  operation: Submission,
  toolCallId: string,
  content: string,
  isError: boolean
): Submitted => {
  const refusal = submissionRefusal(session, operation, toolCallId)
  return refusal !== undefined ? Either.left(refusal) : Either.right(resting({
    ...session,
    thread: answered(session, toolCallId, content, isError),
    pendingToolCalls: session.pendingToolCalls.filter(({ id }) => id !== toolCallId)
  }))
}

/** All of them or none. */
export const submitAll = (
  session: Session,
  results: Iterable<readonly [toolCallId: string, result: unknown]>
): Effect.Effect<Session, SessionError | EncodingFailed> =>
  Effect.reduce(
    results,
    session,
    (current, [toolCallId, result]) =>
      Effect.flatMap(encoded(result), (content) => submit(current, "submitToolResults", toolCallId, content, false))
  )

export const approve = (session: Session, toolCallId: string, shown: string | undefined, now: number): Submitted => {
  const refusal = submissionRefusal(session, "approve", toolCallId)
  if (refusal !== undefined) return Either.left(refusal)
  const approval = session.pendingApprovals.find(({ toolCall }) => toolCall.id === toolCallId)!
  const unfit = consentRefusal(session, "approve", approval, shown, now)
  if (unfit !== undefined) return Either.left(unfit)
  if (approval.decision !== undefined) return Either.left(used(session, "approve", toolCallId))
  return Either.right(decided(session, toolCallId, { _tag: "Approved", digest: approval.digest }))
}

export const deny = (session: Session, toolCallId: string, reason: string | undefined): Submitted => {
  const refusal = submissionRefusal(session, "deny", toolCallId)
  if (refusal !== undefined) return Either.left(refusal)
  const approval = session.pendingApprovals.find(({ toolCall }) => toolCall.id === toolCallId)!
  // Consent can be taken back until it is used.
  if (approval.decision?._tag === "Denied") return Either.left(used(session, "deny", toolCallId))
  return Either.right(decided(session, toolCallId, { _tag: "Denied", ...(reason === undefined ? {} : { reason }) }))
}

const used = (session: Session, operation: string, toolCallId: string): SessionError =>
  refuse(
    session,
    operation,
    "approval_used",
    `call ${show(toolCallId)} is decided, and a decision counts once; use Session.continue(session)`,
    toolCallId
  )

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

export const resolve = (session: Session, toolCallId: string, content: string, isError: boolean): Submitted => {
  const refusal = resolveRefusal(session, toolCallId)
  if (refusal !== undefined) return Either.left(refusal)
  const unknownOutcomes = session.unknownOutcomes.filter(({ id }) => id !== toolCallId)
  const next = { ...session, thread: answered(session, toolCallId, content, isError), unknownOutcomes }
  return Either.right(unknownOutcomes.length > 0 ? next : recovered(next))
}

/** Out of the error, with history as it is. */
export const recovered = (session: Session): Session => {
  const { error: _error, ...metadata } = session.metadata
  return resting({ ...session, metadata, unknownOutcomes: [] })
}
