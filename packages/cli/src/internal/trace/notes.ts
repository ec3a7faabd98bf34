/**
 * What a trace notes of the events of a turn: what a timeline needs, and never a whole thread.
 */
import type { ChatResult } from "@allm/core/ChatResult"
import type { Event, ToolEvent } from "@allm/core/Event"
import type { ToolCall } from "@allm/core/ToolCall"
import type { ToolError } from "@allm/core/ToolError"
import type { ToolOutcome } from "@allm/core/ToolResult"
import type { Usage } from "@allm/core/Usage"
import * as Cause from "effect/Cause"
import * as Inspectable from "effect/Inspectable"
import * as Option from "effect/Option"
import type { Entry, Tokens } from "./entry.ts"

// A trace is for looking at; the whole of it is in the session.
const room = 200

// Handlers may report as often as they like; a picture has no room for that.
const progressEvery = 100

/** At most `limit` characters of a text, with `…` when something is missing. */
export const short = (text: string, limit = room): string => {
  if (text.length <= limit) return text
  const cut = text.slice(0, limit - 1)
  // Half of a character is none.
  return `${/[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut}…`
}

export const textOf = (value: unknown): string =>
  short(typeof value === "string" ? value : Inspectable.toStringUnknown(value, 0))

interface Progress {
  told: number
  notedAt: number
}

/** Takes the events of one turn, in their order. */
export class Notes {
  private readonly turn: string
  private hasStarted = false
  private hasSpoken = false
  private textLength = 0
  private reasoningLength = 0
  private calls = 0
  private readonly progress = new Map<string, Progress>()

  constructor(turn: string) {
    this.turn = turn
  }

  /** What is to be noted of an event that happened now. */
  of(event: Event, at: number): ReadonlyArray<Entry> {
    const common = { at, turn: this.turn }
    switch (event._tag) {
      case "MessageStarted":
        return this.started(at, event.model)
      case "TextDelta":
        this.textLength += event.delta.length
        return this.spoke(at, "text")
      case "TextCompleted":
        this.textLength = Math.max(this.textLength, event.text.length)
        return this.spoke(at, "text")
      case "ReasoningDelta":
        this.reasoningLength += event.delta.length
        return this.spoke(at, "reasoning")
      case "ToolCallStarted":
      case "ToolCallDelta":
        return this.spoke(at, "call")
      case "ToolCallCompleted":
        this.calls++
        return [...this.spoke(at, "call"), { _tag: "ToolAsked", ...common, ...asked(event.toolCall) }]
      case "MessageCompleted":
        return [...this.started(at), this.answered(at, event.finishReason, event.usage)]
      case "RawChunk":
        return []
      case "ErrorOccurred":
        return [{ _tag: "ModelFailed", ...common, message: messageOf(event.error) }]
      case "ManualToolCalls":
        return event.toolCalls.map(({ id, name }) => ({
          _tag: "ManualCall",
          ...common,
          toolCallId: id,
          toolName: name
        }))
      case "StepCompleted":
        this.forget()
        return [{ _tag: "StepEnded", ...common, ...optional("halt", event.result.halt?.reason) }]
      case "ChatCompleted":
        return [{ _tag: "ChatEnded", ...common, ...ended(event.result) }]
      default:
        return this.ofTool(event, at)
    }
  }

  private ofTool(event: ToolEvent, at: number): ReadonlyArray<Entry> {
    if (event._tag === "ManualToolCalls") return []
    const common = { at, turn: this.turn, toolCallId: event.toolCallId, toolName: event.toolName }
    switch (event._tag) {
      case "ToolExecutionStarted":
        return [{ _tag: "ToolStarted", ...common }]
      case "ToolProgress":
        return this.progressed(event.toolCallId, at)
          ? [{ _tag: "ToolProgressed", ...common, value: textOf(event.value) }]
          : []
      case "ToolExecutionCompleted":
        return [{
          _tag: "ToolEnded",
          ...common,
          ...outcomeOf(event.result),
          ...optional("replaced", event.replaced?._tag),
          ...optional("progress", this.progress.get(event.toolCallId)?.told)
        }]
      case "ToolResultEncoded":
        return [{ _tag: "ToolAnswered", ...common, length: event.content.length, isError: event.isError }]
      case "AskUserRequested":
        return [{ _tag: "QuestionAsked", ...common, question: short(event.question) }]
      case "ToolHalt":
        return [{ _tag: "ToolHalted", ...common, reason: event.reason }]
    }
  }

  private started(at: number, model?: string): ReadonlyArray<Entry> {
    if (this.hasStarted) return []
    this.hasStarted = true
    return [{ _tag: "ModelStarted", at, turn: this.turn, ...optional("model", model) }]
  }

  private spoke(at: number, first: "text" | "reasoning" | "call"): ReadonlyArray<Entry> {
    if (this.hasSpoken) return []
    const started = this.started(at)
    this.hasSpoken = true
    return [...started, { _tag: "ModelSpoke", at, turn: this.turn, first }]
  }

  private answered(at: number, finishReason: string | undefined, usage: Usage | undefined): Entry {
    const { calls, reasoningLength, textLength, turn } = this
    this.forget()
    return {
      _tag: "ModelEnded",
      at,
      turn,
      textLength,
      reasoningLength,
      calls,
      ...optional("finishReason", finishReason),
      ...(usage === undefined ? {} : { usage: tokensOf(usage) })
    }
  }

  /** The next model call starts from nothing. */
  private forget(): void {
    this.hasStarted = false
    this.hasSpoken = false
    this.textLength = 0
    this.reasoningLength = 0
    this.calls = 0
  }

  private progressed(toolCallId: string, at: number): boolean {
    const known = this.progress.get(toolCallId)
    if (known === undefined) {
      this.progress.set(toolCallId, { told: 1, notedAt: at })
      return true
    }
    known.told++
    if (at - known.notedAt < progressEvery) return false
    known.notedAt = at
    return true
  }
}

const optional = <K extends string, A>(key: K, value: A | undefined): { readonly [P in K]?: A } =>
  value === undefined ? {} : { [key]: value } as { readonly [P in K]: A }

const asked = (call: ToolCall) => ({
  toolCallId: call.id,
  toolName: call.name,
  ...optional("arguments", call.rawArguments !== undefined ? short(call.rawArguments) : argumentsOf(call))
})

const argumentsOf = (call: ToolCall): string | undefined =>
  call.arguments === undefined ? undefined : textOf(call.arguments)

const kept = [
  "inputTokens",
  "outputTokens",
  "totalTokens",
  "cachedInputTokens",
  "reasoningTokens",
  "totalCost"
] as const

const tokensOf = (usage: Usage): Tokens =>
  Object.fromEntries(kept.flatMap((key) => Number.isFinite(usage[key]) ? [[key, usage[key]]] : []))

const ended = (result: ChatResult) => ({
  reason: result.haltedReason,
  ...optional("message", result.error === undefined ? undefined : short(result.error.message))
})

const outcomeOf = (result: ToolOutcome | ToolError) => {
  switch (result._tag) {
    case "Ok":
    case "AskUser":
      return { outcome: result._tag }
    case "Halt":
      return { outcome: result._tag, message: short(result.reason) }
    case "HandlerFailed":
      return { outcome: result._tag, message: messageOf(result.failure) }
    case "HandlerRaised":
    case "HandlerExit":
      return { outcome: result._tag, ...optional("message", Option.getOrUndefined(saidBy(result.cause))) }
    case "Timeout":
      return {
        outcome: result._tag,
        ...optional("limitMillis", result.limitMillis),
        ...optional("abandoned", result.abandoned)
      }
    default:
      return { outcome: result._tag, ...optional("message", detailOf(result)) }
  }
}

/** What an error says besides its reason; the picture has the name of the tool and a word for the outcome. */
const detailOf = (error: ToolError): string | undefined => {
  const [, detail] = /^tool error(?: \([^)]*\))?: [a-z_]+: (.+)$/s.exec(error.message) ?? []
  return detail === undefined ? undefined : short(detail)
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? short(error.message === "" ? error.name : error.message) : textOf(error)

/** What a crash says. The model is not told, the person at the terminal is. */
const saidBy = (cause: Cause.Cause<unknown> | undefined): Option.Option<string> =>
  cause === undefined || Cause.isInterruptedOnly(cause)
    ? Option.none()
    : Option.some(messageOf(Cause.squash(cause)))
