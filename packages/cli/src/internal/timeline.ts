/**
 * What a trace comes to: turns, the model's answers and the tools' calls in them, each with a beginning and an end.
 */
import { TurnReader } from "./timeline/turnReader.ts"
import type { Entry } from "./trace.ts"

/** How a call ended, or did not. */
export type Outcome =
  | "done"
  | "replaced"
  | "failed"
  | "crashed"
  | "invalid"
  | "timedOut"
  | "abandoned"
  | "halted"
  | "asked"
  | "approval"
  | "manual"
  | "denied"
  | "skipped"
  | "stopped"
  | "interrupted"
  | "unknown"
  | "lost"
  | "running"

/** What the model did when it was asked once. */
export interface Answer {
  readonly began: number
  /** The first piece of its answer. */
  readonly spoke: number | undefined
  readonly ended: number
  readonly outcome: "done" | "failed" | "interrupted" | "lost" | "running"
  /** When it was asked again because nothing had come. */
  readonly retries: ReadonlyArray<number>
  readonly finishReason: string | undefined
  readonly tokens: number | undefined
  readonly inputTokens: number | undefined
  readonly outputTokens: number | undefined
  readonly textLength: number
  readonly calls: number
  readonly message: string | undefined
}

/** A call of a tool in one turn. */
export interface Call {
  readonly toolCallId: string
  readonly toolName: string
  readonly arguments: string | undefined
  /** When the model had made it. */
  readonly asked: number | undefined
  /** When it started to run; a call that waits for consent does not. */
  readonly began: number | undefined
  readonly ended: number
  readonly outcome: Outcome
  /** Its result was in the journal, so it did not run again. */
  readonly isReplayed: boolean
  /** The run ended because of it. */
  readonly isHalting: boolean
  readonly retries: ReadonlyArray<number>
  readonly progress: ReadonlyArray<{ readonly at: number; readonly value: string }>
  readonly message: string | undefined
  readonly limitMillis: number | undefined
}

/** A line of the log that somebody should read. */
export interface Line {
  readonly at: number
  readonly level: string
  readonly message: string
  readonly toolName: string | undefined
}

export interface Turn {
  readonly input: string | undefined
  readonly model: string
  readonly began: number
  /** When it ended, or the last sign of it. */
  readonly ended: number
  /** `open`: it still runs, or the process died. */
  readonly outcome: "completed" | "interrupted" | "failed" | "open"
  /** Why the loop ended, when it did. */
  readonly reason: string | undefined
  readonly message: string | undefined
  readonly answers: ReadonlyArray<Answer>
  readonly calls: ReadonlyArray<Call>
  readonly lines: ReadonlyArray<Line>
}

/** The time between two turns, or since the last one. */
export interface Wait {
  readonly from: number
  readonly until: number | undefined
  /** Those that waited for a person. */
  readonly calls: ReadonlyArray<Call>
}

export interface Timeline {
  readonly turns: ReadonlyArray<Turn>
  /** One after each turn. */
  readonly waits: ReadonlyArray<Wait>
  readonly totals: Totals
}

export interface Totals {
  readonly answers: number
  readonly tokens: number | undefined
  readonly inputTokens: number | undefined
  readonly outputTokens: number | undefined
  readonly calls: number
  readonly outcomes: ReadonlyMap<Outcome, number>
  readonly retries: number
  readonly replayed: number
  readonly modelMillis: number
  /** While at least one tool ran. */
  readonly toolMillis: number
  /** While a call waited for a person. */
  readonly waitingMillis: number
}

/** Reads a trace. Whatever it is a trace of, there is a timeline. */
export const fromEntries = (entries: ReadonlyArray<Entry>): Timeline => {
  const readers = new Map<string, TurnReader>()
  for (const entry of entries) {
    const reader = readers.get(entry.turn) ?? new TurnReader(entry)
    readers.set(entry.turn, reader)
    reader.add(entry)
  }
  const ended = new Set<string>()
  const turns = [...readers.values()].map((reader) => {
    const turn = reader.turn(ended)
    for (const call of turn.calls) if (isOver(call)) ended.add(call.toolCallId)
    return turn
  }).sort((one, other) => one.began - other.began)
  let calls: ReadonlyArray<Call> = []
  let since = 0
  const waits = turns.map((turn, index): Wait => {
    // What was refused changed nothing.
    if (!isRefused(turn)) {
      // Of a turn that was cut off nothing waits: it will be taken up where it was.
      calls = turn.outcome === "completed" ? turn.calls.filter(isWaiting) : []
      since = turn.ended
    }
    const next = turns[index + 1]
    return next === undefined
      ? { from: since, until: undefined, calls }
      : { from: turn.ended, until: Math.max(next.began, turn.ended), calls }
  })
  return { turns, waits, totals: totalsOf(turns, waits) }
}

const waiting: ReadonlySet<Outcome> = new Set(["asked", "approval", "manual"])

/** Whether a person has to do something about the call. */
export const isWaiting = (call: Call): boolean =>
  waiting.has(call.outcome) || (call.outcome === "unknown" && call.isHalting)

const isOver = (call: Call): boolean => !isWaiting(call) && call.outcome !== "lost" && call.outcome !== "interrupted"

const isRefused = (turn: Turn): boolean =>
  turn.outcome === "failed" && turn.answers.length === 0 && turn.calls.length === 0

const totalsOf = (turns: ReadonlyArray<Turn>, waits: ReadonlyArray<Wait>): Totals => {
  const answers = turns.flatMap((turn) => turn.answers)
  const bars = turns.flatMap((turn) => turn.calls)
  const calls = lastBars(bars)
  const outcomes = new Map<Outcome, number>()
  for (const { outcome } of calls) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
  return {
    answers: answers.length,
    tokens: sumOf(answers, (answer) => answer.tokens),
    inputTokens: sumOf(answers, (answer) => answer.inputTokens),
    outputTokens: sumOf(answers, (answer) => answer.outputTokens),
    calls: calls.length,
    outcomes,
    retries: [...answers, ...bars].reduce((sum, { retries }) => sum + retries.length, 0),
    replayed: calls.filter((call) => call.isReplayed).length,
    modelMillis: answers.reduce((sum, { began, ended }) => sum + ended - began, 0),
    toolMillis: covered(bars.flatMap(({ began, ended }) => began === undefined ? [] : [[began, ended]])),
    waitingMillis: waits.reduce(
      (sum, { calls, from, until }) => sum + (calls.length === 0 || until === undefined ? 0 : until - from),
      0
    )
  }
}

/** Of a call with a bar in each of several turns, the last: a person had to consent to it, or a process died. */
const lastBars = (bars: ReadonlyArray<Call>): ReadonlyArray<Call> => {
  const takenUp = new Set<string>()
  return [...bars].reverse().filter(({ asked, toolCallId }) => {
    const isLast = !takenUp.has(toolCallId)
    if (asked === undefined) takenUp.add(toolCallId)
    else takenUp.delete(toolCallId)
    return isLast
  })
}

const sumOf = <A>(all: ReadonlyArray<A>, count: (one: A) => number | undefined): number | undefined =>
  all.reduce<number | undefined>((sum, one) => {
    const more = count(one)
    return more === undefined ? sum : (sum ?? 0) + more
  }, undefined)

/** How much of the time is in at least one of the spans. */
const covered = (spans: ReadonlyArray<ReadonlyArray<number>>): number => {
  let sum = 0
  let reached = -Infinity
  for (const [from, until] of [...spans].sort(([one], [other]) => one! - other!)) {
    sum += Math.max(0, until! - Math.max(from!, reached))
    reached = Math.max(reached, until!)
  }
  return sum
}
