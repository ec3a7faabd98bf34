/**
 * Reads the entries of one turn, in their order, and tells what they come to.
 */
import type { Answer, Call, Line, Outcome, Turn } from "../timeline.ts"
import type { Entry } from "../trace.ts"

type Mutable<A> = { -readonly [K in keyof A]: A[K] }

/** A call that is being read. */
type Row = Mutable<Omit<Call, "ended" | "outcome" | "retries" | "progress" | "isReplayed">> & {
  ended: number | undefined
  outcome: Outcome | undefined
  readonly retries: Array<number>
  readonly progress: Array<{ readonly at: number; readonly value: string }>
}

/** An answer that is being read. */
type Draft = Mutable<Omit<Answer, "ended" | "outcome">> & {
  ended: number | undefined
  outcome: "done" | "failed" | undefined
}

/** An answer of which nothing has come yet. */
const unheard = {
  spoke: undefined,
  finishReason: undefined,
  tokens: undefined,
  inputTokens: undefined,
  outputTokens: undefined,
  textLength: 0,
  calls: 0
} as const

type Of<Tag extends Entry["_tag"]> = Extract<Entry, { readonly _tag: Tag }>

export class TurnReader {
  private readonly began: number
  private lastAt: number
  private input: string | undefined
  private model = "unknown model"
  private reason: string | undefined
  private chatMessage: string | undefined
  private end: Of<"TurnEnded"> | undefined
  private readonly drafts: Array<Draft> = []
  private readonly rows: Array<Row> = []
  private readonly current = new Map<string, Row>()
  private readonly lines: Array<Line> = []
  /** Since when the model is being asked; nothing when it is not its turn. */
  private askedAt: number | undefined
  private open: Draft | undefined
  private repeats: Array<number> = []

  constructor(first: Entry) {
    this.began = first.at
    this.lastAt = first.at
    this.askedAt = first.at
  }

  add(entry: Entry): void {
    // Log lines are noted when they are written, events when they are read: a little later.
    this.lastAt = Math.max(this.lastAt, entry.at)
    switch (entry._tag) {
      case "TurnBegan":
        this.input = entry.input
        this.model = entry.model
        return
      case "TurnEnded":
        this.end = entry
        return
      case "Logged":
        return this.logged(entry)
      case "StepEnded":
        return this.stepEnded(entry.at)
      case "ChatEnded":
        this.reason = entry.reason
        this.chatMessage = entry.message
        this.askedAt = undefined
        return
      case "ModelStarted":
      case "ModelSpoke":
      case "ModelEnded":
      case "ModelFailed":
        return this.ofModel(entry)
      default:
        return this.ofTool(entry)
    }
  }

  private ofModel(entry: Of<"ModelStarted" | "ModelSpoke" | "ModelEnded" | "ModelFailed">): void {
    const draft = this.open ?? this.opened(entry.at)
    switch (entry._tag) {
      case "ModelStarted":
        return
      case "ModelSpoke":
        draft.spoke = entry.at
        return
      case "ModelEnded":
        draft.ended = entry.at
        draft.outcome ??= "done"
        draft.finishReason = entry.finishReason
        draft.textLength = entry.textLength
        draft.calls = entry.calls
        draft.inputTokens = entry.usage?.inputTokens
        draft.outputTokens = entry.usage?.outputTokens
        draft.tokens = tokensOf(entry.usage)
        if (entry.finishReason === "error") draft.outcome = "failed"
        return
      case "ModelFailed":
        draft.ended = entry.at
        draft.outcome = "failed"
        draft.message = entry.message
        return
    }
  }

  private opened(at: number): Draft {
    const draft: Draft = {
      began: Math.min(this.askedAt ?? at, at),
      ...unheard,
      ended: undefined,
      outcome: undefined,
      retries: this.repeats,
      message: undefined
    }
    this.askedAt = undefined
    this.repeats = []
    this.drafts.push(draft)
    this.open = draft
    return draft
  }

  private stepEnded(at: number): void {
    if (this.open !== undefined) {
      this.open.ended ??= at
      this.open.outcome ??= "done"
    }
    this.open = undefined
    this.askedAt = at
  }

  private logged(entry: Of<"Logged">): void {
    if (entry.message.startsWith("tool call repeated") && entry.toolCallId !== undefined) {
      this.rowOf({ ...entry, toolCallId: entry.toolCallId, toolName: entry.toolName ?? "" }).retries.push(entry.at)
    } else if (entry.message.startsWith("model call repeated")) {
      this.repeats.push(entry.at)
    } else if (isGrave(entry.level) && !isToldByBars(entry.message)) {
      this.lines.push({ at: entry.at, level: entry.level, message: entry.message, toolName: entry.toolName })
    }
  }

  private ofTool(entry: Exclude<Of<Entry["_tag"]>, Of<NotOfTools>>): void {
    // Calls that were left from before run first; the model is asked after them.
    if (this.open === undefined) this.askedAt = undefined
    const row = this.rowOf(entry)
    row.toolName = entry.toolName
    switch (entry._tag) {
      case "ToolAsked":
        row.asked = entry.at
        row.arguments = entry.arguments
        return
      case "ToolStarted":
        row.began = entry.at
        return
      case "ToolProgressed":
        row.progress.push({ at: entry.at, value: entry.value })
        return
      case "ToolEnded":
        row.ended = entry.at
        row.outcome = outcomeOf(entry)
        row.message = entry.message
        row.limitMillis = entry.limitMillis
        return
      case "ToolAnswered":
        return
      case "QuestionAsked":
        return settle(row, "asked", entry.at, entry.question)
      case "ToolHalted":
        row.isHalting = true
        if (entry.reason === "approval") settle(row, "approval", entry.at, undefined)
        else if (row.outcome === undefined) settle(row, "halted", entry.at, entry.reason)
        return
      case "ManualCall":
        return settle(row, "manual", entry.at, undefined)
    }
  }

  private rowOf(entry: { readonly _tag: Entry["_tag"]; readonly toolCallId: string; readonly toolName: string }): Row {
    const known = this.current.get(entry.toolCallId)
    // Some models count their calls anew in every answer.
    const isNew = (entry._tag === "ToolAsked" || entry._tag === "ToolStarted") && known?.outcome !== undefined
    if (known !== undefined && !isNew) return known
    const row: Row = {
      toolCallId: entry.toolCallId,
      toolName: entry.toolName,
      arguments: undefined,
      asked: undefined,
      began: undefined,
      ended: undefined,
      outcome: undefined,
      retries: [],
      progress: [],
      message: undefined,
      limitMillis: undefined,
      isHalting: false
    }
    this.rows.push(row)
    this.current.set(entry.toolCallId, row)
    return row
  }

  /** What the turn comes to. `settled` are the calls that had ended in turns before. */
  turn(settled: ReadonlySet<string>): Turn {
    const ended = Math.max(this.end?.at ?? this.lastAt, this.began)
    return {
      input: this.input,
      model: this.model,
      began: this.began,
      ended,
      outcome: this.end?.outcome ?? "open",
      reason: this.reason,
      message: this.end?.message ?? this.chatMessage,
      answers: this.answers(ended),
      calls: this.calls(ended, settled),
      lines: this.lines
    }
  }

  private answers(ended: number): ReadonlyArray<Answer> {
    const cutOff = this.cutOff
    const answers = this.drafts.map((draft): Answer => ({
      ...draft,
      ended: Math.max(draft.ended ?? ended, draft.began),
      outcome: draft.outcome ?? cutOff
    }))
    return this.isUnanswered ? [...answers, this.unanswered(ended)] : answers
  }

  /** Whether the turn ended while nothing had come from the model yet. */
  private get isUnanswered(): boolean {
    if (this.askedAt === undefined) return false
    switch (this.end?.outcome) {
      case "completed":
        return false
      case "failed":
        return this.end.error === "AdapterError"
      default:
        return true
    }
  }

  private unanswered(ended: number): Answer {
    const began = this.askedAt ?? this.began
    return {
      began,
      ...unheard,
      ended: Math.max(ended, began),
      outcome: this.cutOff,
      retries: this.repeats,
      message: this.end?.message
    }
  }

  private calls(ended: number, settled: ReadonlySet<string>): ReadonlyArray<Call> {
    return this.rows.map((row): Call => {
      const began = row.began
      return {
        ...row,
        ended: Math.max(row.ended ?? ended, began ?? row.asked ?? this.began),
        outcome: row.outcome ??
          (began === undefined ? this.unstarted : this.cutOff === "failed" ? "interrupted" : this.cutOff),
        // Nobody asked for it in this turn, and it had ended before.
        isReplayed: row.asked === undefined && began !== undefined && settled.has(row.toolCallId)
      }
    })
  }

  /** How whatever had not ended when the turn did ended. */
  private get cutOff(): "failed" | "interrupted" | "lost" {
    switch (this.end?.outcome) {
      case undefined:
        return "lost"
      case "interrupted":
        return "interrupted"
      default:
        return "failed"
    }
  }

  /** Calls of an answer that nobody runs. */
  private get unstarted(): Outcome {
    return this.end === undefined ? "lost" : "skipped"
  }
}

type NotOfTools =
  | "TurnBegan"
  | "TurnEnded"
  | "Logged"
  | "StepEnded"
  | "ChatEnded"
  | "ModelStarted"
  | "ModelSpoke"
  | "ModelEnded"
  | "ModelFailed"

const settle = (row: Row, outcome: Outcome, at: number, message: string | undefined): void => {
  row.ended ??= at
  row.outcome = outcome
  row.message = message
}

const tokensOf = (usage: Of<"ModelEnded">["usage"]): number | undefined =>
  usage?.totalTokens ??
    (usage?.inputTokens === undefined && usage?.outputTokens === undefined
      ? undefined
      : (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0))

const isGrave = (level: string): boolean => level === "WARN" || level === "ERROR" || level === "FATAL"

/** What the library logs of calls is on their bars. */
const isToldByBars = (message: string): boolean =>
  message.startsWith("tool error (") || message.endsWith("its fiber was left behind")

const outcomes: ReadonlyMap<string, Outcome> = new Map<string, Outcome>([
  ["Ok", "done"],
  ["AskUser", "asked"],
  ["Halt", "halted"],
  ["HandlerFailed", "failed"],
  ["HandlerRaised", "crashed"],
  ["HandlerExit", "crashed"],
  ["Timeout", "timedOut"],
  ["InvalidArguments", "invalid"],
  ["NotFound", "invalid"],
  ["InvalidReturn", "invalid"],
  ["EncodingFailed", "invalid"],
  ["Denied", "denied"],
  ["OutcomeUnknown", "unknown"],
  ["Interrupted", "stopped"],
  ["Skipped", "skipped"]
])

const outcomeOf = (entry: Of<"ToolEnded">): Outcome => {
  if (entry.abandoned === true) return "abandoned"
  if (entry.replaced !== undefined) return "replaced"
  return outcomes.get(entry.outcome) ?? "failed"
}
