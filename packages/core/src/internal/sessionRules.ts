/**
 * What a session can take where it stands, and what to call instead when it cannot.
 */
import type { PendingApproval, Session, Status } from "../Session.ts"
import { type Reason, SessionError } from "../SessionError.ts"
import type { ToolCall } from "../ToolCall.ts"
import { digestOf } from "./journalDigest.ts"
import { show } from "./json.ts"
import * as Caller from "./sessionCaller.ts"
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
  { module, operation }: Caller.Caller,
  session: Session,
  reason: Reason,
  advice: string,
  toolCallId?: string
): SessionError =>
  new SessionError({
    reason,
    module,
    operation,
    status: session.status,
    sessionId: session.id,
    // Not every caller has a compiler.
    ...(typeof toolCallId === "string" ? { toolCallId } : {}),
    advice
  })

const waiting = (caller: Caller.Caller, kind: Kind, id: string): string => {
  const call = show(id)
  switch (kind) {
    case "awaiting_user":
      return `the question of call ${call} waits for the person; use ${
        Caller.instead(caller, "answer", call, "answer")
      }`
    case "awaiting_approval":
      return `call ${call} waits for consent; use ${Caller.instead(caller, "approve", call)} or ${
        Caller.instead(caller, "deny", call)
      }`
    case "awaiting_tools":
      return `call ${call} is yours to run; use ${Caller.instead(caller, "submitToolResult", call, "result")}`
  }
}

/** What to do about a session: what it waits for, or else what can be done to it. */
const next = (caller: Caller.Caller, session: Session, otherwise: string): string => {
  const kind = waitsFor(session)
  return kind === undefined ? otherwise : waiting(caller, kind, pending[kind](session)[0]!)
}

const free = (caller: Caller.Caller): string => `use ${Caller.reply(caller)} or ${Caller.goOn(caller)}`

const inErrorState = (caller: Caller.Caller, session: Session): SessionError => {
  const [unknown] = session.unknownOutcomes
  const recover = Caller.instead(caller, "recover")
  return refuse(
    caller,
    session,
    "in_error_state",
    unknown === undefined
      ? `use ${recover} and go on from there`
      : `nobody knows whether call ${show(unknown.id)} took effect; use ${
        Caller.instead(caller, "resolve", show(unknown.id), "result")
      }, or ${recover} to tell the model so`
  )
}

/** Why the model cannot be asked now. */
export const driveRefusal = (
  caller: Caller.Caller,
  session: Session,
  operation: Drive,
  now: number
): SessionError | undefined => {
  if (session.status === "error") return inErrorState(caller, session)
  const kind = operation === "reply"
    ? kinds.slice(1).find((kind) => pending[kind](session).length > 0)
    : waitsFor(session)
  if (kind !== undefined) {
    const id = pending[kind](session)[0]!
    const isAlone = kind === "awaiting_user" && kinds.slice(1).every((other) => pending[other](session).length === 0)
    const advice = isAlone ? `${waiting(caller, kind, id)} or ${Caller.reply(caller)}` : waiting(caller, kind, id)
    return refuse(caller, session, kind, advice, id)
  }
  const open = openCalls(session)
  const [first] = open
  if (operation === "reply" && first !== undefined) {
    const advice = `call ${show(first.id)} has no result yet; use ${Caller.goOn(caller)}`
    return refuse(caller, session, "unfinished_turn", advice, first.id)
  }
  for (const { id } of open) {
    const approval = approvalOf(session, id)
    const refusal = approval?.decision?._tag === "Approved"
      ? consentRefusal(caller, session, approval, approval.decision.digest, now)
      : undefined
    if (refusal !== undefined) return refusal
  }
}

/** What is known of the consent to a call. */
export const approvalOf = ({ pendingApprovals }: Session, id: string): PendingApproval | undefined =>
  pendingApprovals.find(({ toolCall }) => toolCall.id === id)

/** What was decided about a call, if it is the one that was shown. */
export const decisionOf = (session: Session, call: ToolCall): PendingApproval["decision"] => {
  const decision = approvalOf(session, call.id)?.decision
  return decision?._tag === "Approved" && decision.digest !== digest(call) ? undefined : decision
}

/** What consent is bound to. */
export const digest = (call: ToolCall): string =>
  "arguments" in call
    ? digestOf(call.name, call.arguments)
    // No tool has a space in its name, so this is no digest of arguments.
    : digestOf(`${call.name} raw`, call.rawArguments ?? "")

/** Consent counts for one call as it was shown, and for a time. */
export const consentRefusal = (
  caller: Caller.Caller,
  session: Session,
  approval: PendingApproval,
  shown: string | undefined,
  now: number
): SessionError | undefined => {
  const { id } = approval.toolCall
  const deny = Caller.instead(caller, "deny", show(id))
  const made = findCall(session.thread, id)
  const isSame = made !== undefined && digest(made) === approval.digest && digest(approval.toolCall) === approval.digest
  if (!isSame || (shown !== undefined && shown !== approval.digest)) {
    const advice = `call ${show(id)} is not the one that was shown; use ${deny}`
    return refuse(caller, session, "approval_mismatch", advice, id)
  }
  if (approval.expiresAt !== undefined && now >= approval.expiresAt) {
    const advice = `the time to consent to call ${show(id)} is over; use ${deny}, the model may ask again`
    return refuse(caller, session, "approval_expired", advice, id)
  }
}

/** A decision counts once. */
export const usedRefusal = (
  caller: Caller.Caller,
  session: Session,
  toolCallId: string,
  state: "is decided" | "has its result"
): SessionError => {
  const rest = next(caller, session, `use ${Caller.goOn(caller)}`)
  const advice = `call ${show(toolCallId)} ${state}, and a decision counts once; ${rest}`
  return refuse(caller, session, "approval_used", advice, toolCallId)
}

/** Why this call cannot be answered this way. */
export const submissionRefusal = (
  caller: Caller.Caller,
  session: Session,
  operation: Submission,
  toolCallId: string
): SessionError | undefined => {
  if (session.status === "error") return inErrorState(caller, session)
  const kind = kindOf[operation]
  const isApproval = kind === "awaiting_approval"
  const known = isApproval ? session.pendingApprovals.map(({ toolCall }) => toolCall.id) : pending[kind](session)
  if (known.includes(toolCallId)) return undefined
  const other = kinds.find((other) => other !== kind && pending[other](session).includes(toolCallId))
  if (other !== undefined) return refuse(caller, session, other, waiting(caller, other, toolCallId), toolCallId)
  const waits = pending[kind](session)
  if (isApproval && findAnswer(session.thread, toolCallId) !== undefined) {
    return usedRefusal(caller, session, toolCallId, "has its result")
  }
  if (waits.length > 0) {
    const advice = `no call ${show(toolCallId)} waits for it; ${waiting(caller, kind, waits[0]!)}`
    return refuse(caller, session, "unknown_tool_call_id", advice, toolCallId)
  }
  const first = waitsFor(session)
  const what = first === undefined ? "nothing waits for it" : `call ${show(toolCallId)} does not wait for it`
  return refuse(
    caller,
    session,
    first ?? "nothing_pending",
    `${what}; ${next(caller, session, free(caller))}`,
    toolCallId
  )
}

/** Why nobody can say what became of this call. */
export const resolveRefusal = (
  caller: Caller.Caller,
  session: Session,
  toolCallId: string
): SessionError | undefined => {
  const { unknownOutcomes } = session
  if (unknownOutcomes.some(({ id }) => id === toolCallId)) return undefined
  const [first] = unknownOutcomes
  if (first !== undefined) {
    const resolve = Caller.instead(caller, "resolve", show(first.id), "result")
    const advice = `what became of call ${show(toolCallId)} is known; use ${resolve}`
    return refuse(caller, session, "unknown_tool_call_id", advice, toolCallId)
  }
  if (session.status === "error") return inErrorState(caller, session)
  const advice = `no outcome is in doubt; ${next(caller, session, free(caller))}`
  return refuse(caller, session, waitsFor(session) ?? "nothing_pending", advice, toolCallId)
}

export const recoverRefusal = (caller: Caller.Caller, session: Session): SessionError | undefined =>
  session.status === "error"
    ? undefined
    : refuse(
      caller,
      session,
      "not_in_error_state",
      `nothing went wrong; ${next(caller, session, free(caller))}`
    )
