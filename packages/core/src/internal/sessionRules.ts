/**
 * What a session can take where it stands, and what to call instead when it cannot.
 */
import type { PendingApproval, Session, Status } from "../Session.ts"
import { type Reason, SessionError } from "../SessionError.ts"
import type { ToolCall } from "../ToolCall.ts"
import { digestOf } from "./journalDigest.ts"
import { show } from "./json.ts"
import { findAnswer, findCall, openCalls } from "./sessionThread.ts"

/** Drives the model on. */
export type Drive = "start" | "reply" | "continue" | "step"
/** Answers something that is pending. */
export type Submission = "answer" | "approve" | "deny" | "submitToolResult" | "submitToolResults"

type Kind = "awaiting_user" | "awaiting_approval" | "awaiting_tools"

const kinds = ["awaiting_user", "awaiting_approval", "awaiting_tools"] as const

/** The ids of what is pending, by kind. */
const pending: { readonly [K in Kind]: (session: Session) => ReadonlyArray<string> } = {
  awaiting_user: ({ pendingQuestions }) => pendingQuestions.map(({ toolCallId }) => toolCallId),
  awaiting_approval: ({ pendingApprovals }) =>
    pendingApprovals.filter(({ decision }) => decision === undefined).map(({ toolCall }) => toolCall.id),
  awaiting_tools: ({ pendingToolCalls }) => pendingToolCalls.map(({ id }) => id)
}

const kindOf: { readonly [S in Submission]: Kind } = {
  answer: "awaiting_user",
  approve: "awaiting_approval",
  deny: "awaiting_approval",
  submitToolResult: "awaiting_tools",
  submitToolResults: "awaiting_tools"
}

/** What a session waits for, most pressing first; `undefined` when it waits for nothing. */
export const waitsFor = (session: Session): Kind | undefined => kinds.find((kind) => pending[kind](session).length > 0)

/** Where a session stands that nothing has gone wrong with and that is not done. */
export const resting = (session: Session): Session => {
  const status: Status = waitsFor(session) ?? "idle"
  return session.status === status ? session : { ...session, status }
}

export const refuse = (
  session: Session,
  operation: string,
  reason: Reason,
  advice: string,
  toolCallId?: string
): SessionError =>
  new SessionError({
    reason,
    operation,
    status: session.status,
    sessionId: session.id,
    // Not every caller has a compiler.
    ...(typeof toolCallId === "string" ? { toolCallId } : {}),
    advice
  })

const waiting = (kind: Kind, id: string): string => {
  const call = show(id)
  switch (kind) {
    case "awaiting_user":
      return `the question of call ${call} waits for the person; use Session.answer(session, ${call}, answer)`
    case "awaiting_approval":
      return `call ${call} waits for consent; use Session.approve(session, ${call}) or Session.deny(session, ${call})`
    case "awaiting_tools":
      return `call ${call} is yours to run; use Session.submitToolResult(session, ${call}, result)`
  }
}

const inErrorState = (session: Session, operation: string): SessionError => {
  const [unknown] = session.unknownOutcomes
  return refuse(
    session,
    operation,
    "in_error_state",
    unknown === undefined
      ? "use Session.recover(session) and go on from there"
      : `nobody knows whether call ${show(unknown.id)} took effect; use Session.resolve(session, ${
        show(unknown.id)
      }, result), or Session.recover(session) to tell the model so`
  )
}

/** Why the model cannot be asked now. */
export const driveRefusal = (session: Session, operation: Drive, now: number): SessionError | undefined => {
  if (session.status === "error") return inErrorState(session, operation)
  const kind = operation === "reply"
    ? kinds.slice(1).find((kind) => pending[kind](session).length > 0)
    : waitsFor(session)
  if (kind !== undefined) {
    const id = pending[kind](session)[0]!
    const isAlone = kind === "awaiting_user" && kinds.slice(1).every((other) => pending[other](session).length === 0)
    const advice = isAlone ? `${waiting(kind, id)} or Session.reply(session, text)` : waiting(kind, id)
    return refuse(session, operation, kind, advice, id)
  }
  const open = openCalls(session)
  const [first] = open
  if (operation === "reply" && first !== undefined) {
    const advice = `call ${show(first.id)} has no result yet; use Session.continue(session)`
    return refuse(session, operation, "unfinished_turn", advice, first.id)
  }
  for (const { id } of open) {
    const approval = session.pendingApprovals.find(({ toolCall }) => toolCall.id === id)
    const refusal = approval?.decision?._tag === "Approved"
      ? consentRefusal(session, operation, approval, approval.decision.digest, now)
      : undefined
    if (refusal !== undefined) return refusal
  }
}

/** What consent is bound to. */
export const digest = (call: ToolCall): string =>
  "arguments" in call
    ? digestOf(call.name, call.arguments)
    // No tool has a space in its name, so this is no digest of arguments.
    : digestOf(`${call.name} raw`, call.rawArguments ?? "")

/** Consent counts for one call as it was shown, and for a time. */
export const consentRefusal = (
  session: Session,
  operation: string,
  approval: PendingApproval,
  shown: string | undefined,
  now: number
): SessionError | undefined => {
  const { id } = approval.toolCall
  const made = findCall(session.thread, id)
  const isSame = made !== undefined && digest(made) === approval.digest && digest(approval.toolCall) === approval.digest
  if (!isSame || (shown !== undefined && shown !== approval.digest)) {
    const advice = `call ${show(id)} is not the one that was shown; use Session.deny(session, ${show(id)})`
    return refuse(session, operation, "approval_mismatch", advice, id)
  }
  if (approval.expiresAt !== undefined && now >= approval.expiresAt) {
    const advice = `the time to consent to call ${show(id)} is over; use Session.deny(session, ${
      show(id)
    }), the model may ask again`
    return refuse(session, operation, "approval_expired", advice, id)
  }
}

/** Why this call cannot be answered this way. */
export const submissionRefusal = (
  session: Session,
  operation: Submission,
  toolCallId: string
): SessionError | undefined => {
  if (session.status === "error") return inErrorState(session, operation)
  const kind = kindOf[operation]
  const isApproval = kind === "awaiting_approval"
  const known = isApproval ? session.pendingApprovals.map(({ toolCall }) => toolCall.id) : pending[kind](session)
  if (known.includes(toolCallId)) return undefined
  const other = kinds.find((other) => other !== kind && pending[other](session).includes(toolCallId))
  if (other !== undefined) return refuse(session, operation, other, waiting(other, toolCallId), toolCallId)
  const waits = pending[kind](session)
  if (isApproval && findAnswer(session.thread, toolCallId) !== undefined) {
    const advice = `call ${show(toolCallId)} has its result, and a decision counts once; use Session.continue(session)`
    return refuse(session, operation, "approval_used", advice, toolCallId)
  }
  if (waits.length > 0) {
    const advice = `no call ${show(toolCallId)} waits for it; ${waiting(kind, waits[0]!)}`
    return refuse(session, operation, "unknown_tool_call_id", advice, toolCallId)
  }
  const first = waitsFor(session)
  if (first !== undefined) {
    const advice = `call ${show(toolCallId)} does not wait for it; ${waiting(first, pending[first](session)[0]!)}`
    return refuse(session, operation, first, advice, toolCallId)
  }
  const advice = "nothing waits for it; use Session.reply(session, text) or Session.continue(session)"
  return refuse(session, operation, "nothing_pending", advice, toolCallId)
}

/** Why nobody can say what became of this call. */
export const resolveRefusal = (session: Session, toolCallId: string): SessionError | undefined => {
  const { unknownOutcomes } = session
  if (unknownOutcomes.some(({ id }) => id === toolCallId)) return undefined
  const [first] = unknownOutcomes
  if (first !== undefined) {
    const advice = `what became of call ${show(toolCallId)} is known; use Session.resolve(session, ${
      show(first.id)
    }, result)`
    return refuse(session, "resolve", "unknown_tool_call_id", advice, toolCallId)
  }
  if (session.status === "error") return inErrorState(session, "resolve")
  const kind = waitsFor(session)
  return kind === undefined
    ? refuse(
      session,
      "resolve",
      "nothing_pending",
      "no outcome is in doubt; use Session.reply(session, text) or Session.continue(session)",
      toolCallId
    )
    : refuse(
      session,
      "resolve",
      kind,
      `no outcome is in doubt; ${waiting(kind, pending[kind](session)[0]!)}`,
      toolCallId
    )
}

export const recoverRefusal = (session: Session): SessionError | undefined => {
  if (session.status === "error") return undefined
  const kind = waitsFor(session)
  const advice = kind === undefined
    ? "nothing went wrong; use Session.reply(session, text) or Session.continue(session)"
    : `nothing went wrong; ${waiting(kind, pending[kind](session)[0]!)}`
  return refuse(session, "recover", "not_in_error_state", advice)
}
