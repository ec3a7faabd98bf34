/**
 * What a turn came to, from its response and its batch: the only way a `StepResult` comes about, streamed or not.
 */
import type { AssistantMessage } from "../Message.ts"
import type { FinishReason, Response } from "../Response.ts"
import type { StepResult } from "../StepResult.ts"
import type { Thread } from "../Thread.ts"
import type { RunResult } from "../ToolRunner.ts"

const final: ReadonlySet<FinishReason | undefined> = new Set<FinishReason | undefined>([
  "stop",
  "length",
  "content_filter",
  "error"
])

/** Whether the model asked for tools. Calls of an answer that was cut off are never run. */
export const asksForTools = (response: Response): boolean => response.finishReason === "tool_calls"

export const makeStep = (
  before: Thread,
  response: Response,
  run: RunResult | undefined,
  mode: "auto" | "manual"
): StepResult => {
  const isManual = mode === "manual" && asksForTools(response) && response.toolCalls.length > 0
  const toolResults = run?.messages ?? []
  const step: { -readonly [K in keyof StepResult]: StepResult[K] } = {
    thread: { messages: before.messages.concat(said(response), toolResults), metadata: before.metadata },
    response,
    toolResults,
    done: run?.halt !== undefined || final.has(response.finishReason),
    pendingQuestions: run?.questions ?? [],
    pendingApprovals: run?.approvals ?? [],
    manualToolCalls: isManual ? response.toolCalls : run?.manualToolCalls ?? [],
    metadata: isManual ? { mode } : {}
  }
  if (run?.halt !== undefined) step.halt = run.halt
  return step
}

/** The message that enters history: without calls that nobody is going to answer. */
const said = (response: Response): AssistantMessage => {
  const message = response.message ??
    { role: "assistant", content: response.outputText ?? "", toolCalls: response.toolCalls, metadata: {} }
  return asksForTools(response) || message.toolCalls.length === 0 ? message : { ...message, toolCalls: [] }
}
