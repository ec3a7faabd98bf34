/**
 * The result of a batch, folded from its events: the only way a `RunResult` comes about, streamed or not.
 */
import type { ToolEvent } from "../Event.ts"
import type { Halt, PendingApproval, Question } from "../Halt.ts"
import type { ToolMessage } from "../Message.ts"
import type { ToolCall } from "../ToolCall.ts"
import type { ToolError } from "../ToolError.ts"
import type { ToolOutcome } from "../ToolResult.ts"

/** What the message of a call says while the person has not answered. */
export const awaitingUser = "<awaiting user response>"

export class Fold {
  private readonly calls: ReadonlyArray<ToolCall>
  private readonly positions = new Map<string, number>()
  private readonly messages: Array<ToolMessage | undefined>
  private readonly outcomes: Array<
    { readonly toolCall: ToolCall; readonly result: ToolOutcome | ToolError } | undefined
  >
  private readonly questions: Array<Question> = []
  private readonly approvals: Array<PendingApproval> = []
  private manualToolCalls: ReadonlyArray<ToolCall> = []
  /** In the order they were observed. */
  readonly halts: Array<Halt> = []

  constructor(calls: ReadonlyArray<ToolCall>) {
    this.calls = calls
    this.messages = Array.from({ length: calls.length })
    this.outcomes = Array.from({ length: calls.length })
    for (let i = 0; i < calls.length; i++) this.positions.set(calls[i]!.id, i)
  }

  add(event: ToolEvent): void {
    switch (event._tag) {
      case "ToolExecutionCompleted": {
        const position = this.positions.get(event.toolCallId)
        if (position !== undefined) {
          this.outcomes[position] = { toolCall: this.calls[position]!, result: event.result }
        }
        return
      }
      case "ToolResultEncoded":
        return this.message(event.toolCallId, event.content, event.isError)
      case "AskUserRequested": {
        const { options, question, toolCallId, toolName } = event
        this.questions.push({ toolCallId, toolName, question, options })
        this.halts.push({ reason: "ask_user", toolCallId })
        return this.message(toolCallId, awaitingUser, false)
      }
      case "ToolHalt": {
        const position = this.positions.get(event.toolCallId)
        if (event.content !== undefined) this.message(event.toolCallId, event.content, event.isError)
        else if (position !== undefined) this.approvals.push({ toolCall: this.calls[position]! })
        this.halts.push({
          reason: event.reason,
          toolCallId: event.toolCallId,
          ...("result" in event ? { result: event.result } : {}),
          ...(event.error === undefined ? {} : { error: event.error })
        })
        return
      }
      case "ManualToolCalls":
        this.manualToolCalls = event.toolCalls
        return
      case "ToolExecutionStarted":
      case "ToolProgress":
        return
    }
  }

  private message(toolCallId: string, content: string, isError: boolean): void {
    const position = this.positions.get(toolCallId)
    if (position !== undefined) this.messages[position] = { role: "tool", toolCallId, content, isError, metadata: {} }
  }

  result() {
    return {
      messages: present(this.messages),
      halt: this.halts[0],
      questions: this.questions,
      approvals: this.approvals,
      manualToolCalls: this.manualToolCalls,
      outcomes: present(this.outcomes)
    }
  }
}

const present = <A>(slots: ReadonlyArray<A | undefined>): ReadonlyArray<A> => {
  const filled: Array<A> = []
  for (let i = 0; i < slots.length; i++) {
    const value = slots[i]
    if (value !== undefined) filled.push(value)
  }
  return filled
}
