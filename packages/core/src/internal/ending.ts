/**
 * Why a chat ends, and what its last words are.
 */
import type { AdapterError } from "../AdapterError.ts"
import type { Halt } from "../Halt.ts"
import type { HaltReason } from "../HaltReason.ts"
import * as Message from "../Message.ts"
import type { StepResult } from "../StepResult.ts"
import type { Thread } from "../Thread.ts"
import { isPlainObject, toJsonOrStandIn } from "./json.ts"
import { asksForTools } from "./stepResult.ts"

export interface Turn {
  readonly step: StepResult
  readonly halts: ReadonlyArray<Halt>
  readonly error: AdapterError | undefined
}

export interface Ending {
  readonly reason: HaltReason
  readonly metadata: { readonly [key: string]: unknown }
}

/** What the turn itself says, in the order of precedence. */
export const naturalEnding = ({ halts, step }: Turn, mode: "auto" | "manual", index: number): Ending | undefined => {
  const [question] = step.pendingQuestions
  if (question !== undefined) {
    return {
      reason: "ask_user",
      metadata: {
        pendingQuestion: question.question,
        pendingToolCallId: question.toolCallId,
        askUserOptions: question.options
      }
    }
  }
  if (step.pendingApprovals.length > 0) {
    return {
      reason: "approval",
      metadata: { pendingToolCallIds: step.pendingApprovals.map(({ toolCall }) => toolCall.id) }
    }
  }
  const halt = halts.find(({ reason }) => reason === "tool_error") ?? halts[0]
  if (halt !== undefined) {
    return {
      reason: halt.reason,
      metadata: {
        haltToolCallId: halt.toolCallId,
        ...("result" in halt ? { haltResult: toJsonOrStandIn(halt.result) ?? null } : {})
      }
    }
  }
  if (step.manualToolCalls.length > 0 || (mode === "manual" && asksForTools(step.response))) {
    return { reason: "manual_tool_calls", metadata: { manualTurnIndex: index } }
  }
  switch (step.response.finishReason) {
    case "stop":
    case "length":
    case "content_filter":
      return { reason: "completed", metadata: {} }
    case "error":
      return { reason: "error", metadata: { error: step.response.metadata["error"] ?? null } }
    default:
      return undefined
  }
}

/** The ending of a chat that has used up what it was allowed. */
export const breach = (reason: HaltReason, limit: number): Ending => ({ reason, metadata: { limit } })

const breaches: ReadonlySet<string> = new Set([
  "max_turns",
  "max_tool_calls",
  "max_tokens",
  "max_duration",
  "repeated_call"
])

export const isBreach = (reason: string): boolean => breaches.has(reason)

export const withMetadata = (ending: Ending, more: Ending["metadata"]): Ending => ({
  ...ending,
  metadata: { ...ending.metadata, ...more }
})

/**
 * The question as the assistant's own words, so that the person's answer follows it in history. While other calls of the
 * turn still want an answer, nobody may speak.
 */
export const withQuestion = (thread: Thread, step: StepResult): Thread => {
  if (step.manualToolCalls.length > 0 || step.pendingApprovals.length > 0) return thread
  const [first] = step.pendingQuestions
  const message = Message.assistant(step.pendingQuestions.map(({ question }) => question).join("\n\n"), {
    metadata: { askUser: true, toolCallId: first!.toolCallId }
  })
  return { ...thread, messages: thread.messages.concat(message) }
}

/** JSON with sorted keys: equal arguments give equal text. */
export const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, member: unknown) =>
    isPlainObject(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => a < b ? -1 : 1))
      : member)
