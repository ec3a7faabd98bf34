/**
 * What a chat, a turn or a batch makes of a session.
 */
import type { ChatResult } from "../ChatResult.ts"
import type { PendingApproval, Session } from "../Session.ts"
import type { StepResult } from "../StepResult.ts"
import type { ToolCall } from "../ToolCall.ts"
import * as Usage from "../Usage.ts"
import { summarize } from "./errorSummary.ts"
import type { Progress } from "./modelCall.ts"
import { digest, waitsFor } from "./sessionRules.ts"
import { lastAsked } from "./sessionThread.ts"

/** When approvals are asked for, and how long they count, in milliseconds. */
export interface Terms {
  readonly now: number
  readonly approvalTimeout: number
}

const requested = ({ toolCall }: { readonly toolCall: ToolCall }, terms: Terms): PendingApproval => ({
  toolCall,
  digest: digest(toolCall),
  requestedAt: terms.now,
  ...(terms.approvalTimeout === Infinity ? {} : { expiresAt: terms.now + terms.approvalTimeout })
})

interface Pendings {
  readonly thread: Session["thread"]
  readonly pendingQuestions: Session["pendingQuestions"]
  readonly pendingApprovals: ReadonlyArray<{ readonly toolCall: ToolCall }>
  readonly manualToolCalls: ReadonlyArray<ToolCall>
}

const withPendings = (session: Session, result: Pendings, terms: Terms): Session => ({
  ...session,
  thread: result.thread,
  pendingToolCalls: result.manualToolCalls,
  pendingQuestions: result.pendingQuestions,
  pendingApprovals: result.pendingApprovals.map((approval) => requested(approval, terms)),
  unknownOutcomes: []
})

const nothingPending = { pendingQuestions: [], pendingApprovals: [], manualToolCalls: [] }

/** A session in the middle of a chat: what is open of its last turn runs when it goes on. */
export const applyProgress = (session: Session, { thread, usage }: Progress): Session => ({
  ...withPendings(session, { thread, ...nothingPending }, noTerms),
  usage: Usage.add(session.usage, usage),
  metadata: lasting(session.metadata),
  status: "idle"
})

const noTerms: Terms = { now: 0, approvalTimeout: 0 }

/** What the loop says about the end of a chat says nothing about the next one. */
const passing: ReadonlySet<string> = new Set([
  "maxTurns",
  "haltWhenStepIndex",
  "manualTurnIndex",
  "haltToolCallId",
  "haltResult",
  "pendingQuestion",
  "pendingToolCallId",
  "pendingToolCallIds",
  "askUserOptions",
  "error",
  "structuredFinalize",
  "softLanding"
])

const lasting = (metadata: Session["metadata"]): Session["metadata"] =>
  Object.fromEntries(Object.entries(metadata).filter(([key]) => !passing.has(key)))

const withError = (session: Session, error: unknown): Session => ({
  ...session,
  status: "error",
  metadata: { ...session.metadata, error }
})

const withHalt = (session: Session, step: StepResult | undefined, otherwise: unknown): Session => {
  const error = step?.halt?.error
  const failed = withError(session, error === undefined ? otherwise : summarize(error))
  const unknown = new Set(error?._tag === "OutcomeUnknown" ? [step?.halt?.toolCallId] : [])
  const others = step?.metadata["outcomesUnknown"]
  if (Array.isArray(others)) { for (const id of others) unknown.add(id as string) }
  return {
    ...failed,
    unknownOutcomes: lastAsked(session.thread)?.toolCalls.filter(({ id }) => unknown.has(id)) ?? []
  }
}

export const applyChat = (session: Session, result: ChatResult, terms: Terms): Session => {
  const next: Session = {
    ...withPendings(session, result, terms),
    usage: Usage.add(session.usage, result.usage),
    metadata: { ...lasting(session.metadata), ...result.metadata }
  }
  switch (result.haltedReason) {
    case "tool_error":
      return withHalt(next, result.steps.at(-1), result.metadata)
    case "error":
      return withError(next, result.metadata["error"] ?? result.metadata)
    case "cancelled":
      return { ...next, status: waitsFor(next) ?? "idle" }
    default:
      return { ...next, status: waitsFor(next) ?? "completed" }
  }
}

export const applyStep = (session: Session, step: StepResult, terms: Terms): Session => {
  const next: Session = {
    ...withPendings(session, step, terms),
    usage: Usage.add(session.usage, step.response.usage),
    metadata: lasting(session.metadata)
  }
  if (step.pendingQuestions.length === 0 && step.pendingApprovals.length === 0 && step.halt?.reason === "tool_error") {
    return withHalt(next, step, step.metadata["error"] ?? step.metadata)
  }
  const kind = waitsFor(next)
  if (kind !== undefined) return { ...next, status: kind }
  if (step.response.finishReason === "error") {
    return withError(next, step.response.metadata["error"] ?? step.metadata)
  }
  return { ...next, status: step.done ? "completed" : "idle" }
}
