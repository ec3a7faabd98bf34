/**
 * A session as far as the events of its turn have come, also when they were cut off.
 */
import * as Either from "effect/Either"
import type { ChatResult } from "../ChatResult.ts"
import * as Collector from "../Collector.ts"
import type { Event, ToolEvent } from "../Event.ts"
import type * as Message from "../Message.ts"
import type { Outcome, PendingApproval, Session } from "../Session.ts"
import type { StepResult } from "../StepResult.ts"
import type { Thread } from "../Thread.ts"
import type { ToolCall } from "../ToolCall.ts"
import * as ToolError from "../ToolError.ts"
import { Fold } from "./fold.ts"
import { printOrStandIn } from "./json.ts"
import { forModel, undeclared } from "./projection.ts"
import { applyChat, applyStep, type Terms } from "./sessionProjection.ts"
import { resting } from "./sessionRules.ts"
import { openCalls, putAnswers } from "./sessionThread.ts"
import { makeStep } from "./stepResult.ts"

const whole: ReadonlySet<unknown> = new Set(["stop", "length", "content_filter"])

const toolTags: ReadonlySet<string> = new Set<ToolEvent["_tag"]>([
  "ToolExecutionStarted",
  "ToolProgress",
  "ToolExecutionCompleted",
  "ToolResultEncoded",
  "AskUserRequested",
  "ToolHalt",
  "ManualToolCalls"
])

const isToolEvent = (event: Event): event is ToolEvent => toolTags.has(event._tag)

export class TurnFold {
  readonly session: Session
  private readonly collector: Collector.Collector
  /** The calls the last turn left open: the first tools to run are theirs. */
  private readonly open: ReadonlyArray<ToolCall>
  private thread: Thread
  private tools: Array<ToolEvent> = []
  private chat: ChatResult | undefined
  private step: StepResult | undefined
  private hasAsked: boolean
  private isAnswered = false

  constructor(session: Session) {
    this.session = session
    this.thread = session.thread
    this.open = openCalls(session)
    this.hasAsked = this.open.length === 0
    this.collector = Collector.make({ thread: session.thread })
  }

  add(event: Event): void {
    if (typeof event !== "object" || event === null) return
    Collector.add(this.collector, event)
    switch (event._tag) {
      case "StepCompleted":
        this.step = event.result
        this.thread = event.result.thread
        this.tools = []
        this.hasAsked = true
        this.isAnswered = false
        return
      case "ChatCompleted":
        this.chat = event.result
        return
      default:
        if (isToolEvent(event)) {
          this.tools.push(event)
          return
        }
        this.hasAsked = true
        this.isAnswered = this.isAnswered || event._tag === "MessageCompleted"
    }
  }

  /** The turn ended with a failure of its own. */
  fail(error: unknown): void {
    Collector.add(this.collector, { _tag: "ErrorOccurred", error })
  }

  /** A chat that a function of the caller's ended. */
  end(result: ChatResult): void {
    this.chat = result
  }

  toChat(terms: Terms): Outcome<ChatResult> {
    return this.chat === undefined
      ? this.cut(terms)
      : { session: applyChat(this.session, this.chat, terms), result: this.chat }
  }

  toStep(terms: Terms): Outcome<StepResult> {
    if (this.step !== undefined) return { session: applyStep(this.session, this.step, terms), result: this.step }
    const { result, session } = this.cut(terms)
    const { manualToolCalls, pendingApprovals, pendingQuestions, thread } = result
    const step = Either.getOrThrow(Collector.toStepResult(this.collector))
    return { session, result: { ...step, thread, manualToolCalls, pendingApprovals, pendingQuestions, done: false } }
  }

  private cut(terms: Terms): Outcome<ChatResult> {
    const result: ChatResult = { ...Either.getOrThrow(Collector.toChatResult(this.collector)), ...this.partial() }
    const session = applyChat(this.session, result, terms)
    // A decision counts until its call has started.
    const kept = this.step === undefined
      ? this.session.pendingApprovals.filter((approval) => !this.isTold(approval))
      : []
    const next = { ...session, pendingApprovals: [...kept, ...session.pendingApprovals] }
    return { session: next.status === "error" ? next : resting(next), result }
  }

  private isTold({ toolCall }: PendingApproval): boolean {
    return this.tools.some((event) => "toolCallId" in event && event.toolCallId === toolCall.id)
  }

  /** History holds whole turns; of one that was cut off it holds what really happened, told call by call. */
  private partial(): Pick<ChatResult, "thread" | "pendingQuestions" | "pendingApprovals" | "manualToolCalls"> {
    const { thread, tools } = this
    const response = Collector.toResponse(this.collector)
    if (tools.length === 0) {
      const isWhole = this.isAnswered && whole.has(response.finishReason)
      return {
        thread: isWhole ? makeStep(thread, response, undefined, "auto").thread : thread,
        pendingQuestions: [],
        pendingApprovals: [],
        manualToolCalls: []
      }
    }
    const calls = this.hasAsked ? response.toolCalls : this.open
    const { fold, started } = folded(calls, tools)
    const run = fold.result()
    const waits = new Set([...run.approvals.map(({ toolCall }) => toolCall.id), ...run.manualToolCalls.map(idOf)])
    const messages = calls.flatMap((call): ReadonlyArray<Message.ToolMessage> => {
      const message = run.messages.find(({ toolCallId }) => toolCallId === call.id)
      if (message !== undefined) return [message]
      if (waits.has(call.id)) return []
      // Calls that were decided about before wait for the session to go on again.
      return this.hasAsked || started.has(call.id) ? [cutOff(call, started.has(call.id))] : []
    })
    return {
      thread: this.hasAsked
        ? makeStep(thread, { ...response, finishReason: "tool_calls" }, { ...run, messages }, "auto").thread
        : putAnswers(thread, messages),
      pendingQuestions: run.questions,
      pendingApprovals: run.approvals,
      manualToolCalls: run.manualToolCalls
    }
  }
}

const idOf = ({ id }: ToolCall): string => id

const folded = (calls: ReadonlyArray<ToolCall>, events: ReadonlyArray<ToolEvent>) => {
  const fold = new Fold(calls)
  const started = new Set<string>()
  for (const event of events) {
    fold.add(event)
    if (event._tag === "ToolExecutionStarted") started.add(event.toolCallId)
  }
  return { fold, started }
}

const cutOff = ({ id, name }: ToolCall, isStarted: boolean): Message.ToolMessage => {
  const ids = { toolName: name, toolCallId: id }
  const error = isStarted
    ? new ToolError.Interrupted(ids)
    : new ToolError.Skipped({ ...ids, detail: "not started because the turn was cut off" })
  return {
    role: "tool",
    toolCallId: id,
    content: printOrStandIn(forModel(error, undeclared, false)),
    isError: true,
    metadata: {}
  }
}
