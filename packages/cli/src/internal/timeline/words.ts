/**
 * What the picture of a timeline says beside its bars.
 */
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import { count } from "../terminal/style.ts"
import type { Answer, Call, Outcome, Totals, Turn } from "../timeline.ts"
import * as Marks from "./marks.ts"
import { took } from "./scale.ts"

const separator = " · "

/** What is not worth a word is left out. */
export const joined = (parts: ReadonlyArray<string | undefined>): string =>
  parts.filter((part) => part !== undefined && part !== "").join(separator)

/** `whole` cut into lines between its parts. */
export const wrapped = (whole: string, width: number): ReadonlyArray<string> => {
  const lines: Array<string> = []
  for (const part of whole.split(separator)) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + separator.length + part.length <= width) {
      lines[lines.length - 1] = `${last}${separator}${part}`
    } else {
      lines.push(part)
    }
  }
  return lines
}

const grouped = (number: number): string => String(number).replace(/\B(?=(\d{3})+$)/g, " ")

export const tokens = (
  { inputTokens, outputTokens, tokens }: Pick<Totals, "inputTokens" | "outputTokens" | "tokens">
): string | undefined => {
  if (tokens === undefined) return undefined
  return joined([
    `${grouped(tokens)} ${tokens === 1 ? "token" : "tokens"}`,
    inputTokens === undefined ? undefined : `${grouped(inputTokens)} in`,
    outputTokens === undefined ? undefined : `${grouped(outputTokens)} out`
  ])
}

export const times = (number: number, what: string): string | undefined =>
  number === 0 ? undefined : number === 1 ? what : `${what} ${number}×`

/** Beside an answer. */
export const ofAnswer = (answer: Answer): string => {
  const { finishReason, message, outcome, retries } = answer
  return joined([
    isQuiet(outcome) ? undefined : told(Marks.signs[outcome].word, message),
    outcome === "done" && finishReason !== undefined && !isUsual(finishReason) ? finishReason : undefined,
    times(retries.length, "asked again")
  ])
}

const isQuiet = (outcome: Outcome): boolean => outcome === "done" || outcome === "running"

/** How much there is in an answer. */
export const sizeOf = ({ calls, tokens }: Answer): string =>
  joined([
    tokens === undefined ? undefined : `${grouped(tokens)} ${tokens === 1 ? "token" : "tokens"}`,
    calls === 0 ? undefined : count(calls, "call")
  ])

const isUsual = (finishReason: string): boolean => finishReason === "stop" || finishReason === "tool_calls"

/** Beside a call: how it ended, or with what it was called. */
export const ofCall = (call: Call): string => {
  const { isReplayed, limitMillis, message, outcome, retries } = call
  const limit = limitMillis === undefined ? undefined : `over ${took(limitMillis)}`
  return joined([
    isQuiet(outcome) ? undefined : told(Marks.signs[outcome].word, limit ?? message),
    isReplayed ? "from the journal" : undefined,
    times(retries.length, "run again")
  ])
}

const told = (word: string, more: string | undefined): string => more === undefined ? word : `${word}: ${more}`

/** With what a call was called, when there is something in it. */
export const argumentsOf = (call: Call): string =>
  call.arguments === undefined || call.arguments === "{}" ? "" : call.arguments

const causes: ReadonlyMap<string, string> = new Map([
  ["max_turns", "ended: no model calls were left"],
  ["halt_when", "ended: the engine's haltWhen said so"],
  ["tool_error", "ended by a tool's failure"],
  ["max_tool_calls", "ended: no tool calls were left"],
  ["max_tokens", "ended: no tokens were left"],
  ["max_duration", "ended: no time was left"],
  ["repeated_call", "ended: the model repeated the same call"],
  ["cancelled", "ended: cancelled"]
])

const silent: ReadonlySet<string> = new Set(["completed", "ask_user", "approval", "manual_tool_calls"])

/** How a turn ended, when that is not told by anything else. */
export const endOf = ({ answers, calls, message, outcome, reason }: Turn): string | undefined => {
  switch (outcome) {
    case "interrupted":
      return [...answers, ...calls].some((one) => one.outcome === "interrupted") ? undefined : "interrupted"
    case "failed":
      return told("failed", message)
    case "open":
      return "no end was noted: the process died, or is still running"
    case "completed":
      if (reason === undefined || silent.has(reason)) return undefined
      if (reason === "error") return told("ended by an error", message)
      return causes.get(reason) ?? `ended: ${reason}`
  }
}

/** What a call waits for. */
export const waitOf = (call: Call, isOver: boolean): string => {
  const { message, outcome, toolName } = call
  const verb = isOver ? "waited" : "waits"
  if (outcome === "approval") return `${toolName} ${verb} for approval`
  if (outcome === "unknown") return `${toolName} ${verb} for somebody to find out what it did`
  if (outcome === "manual") return `${toolName} ${verb} for its result`
  return told(`${toolName} ${verb} for an answer`, message)
}

/** How many calls ended how. */
export const outcomes = ({ outcomes, replayed, retries }: Totals): ReadonlyArray<string | undefined> => [
  ...Marks.outcomes.map((outcome) => {
    const number = outcomes.get(outcome)
    return number === undefined ? undefined : `${number} ${Marks.signs[outcome].word}`
  }),
  replayed === 0 ? undefined : `${replayed} from the journal`,
  retries === 0 ? undefined : count(retries, "repetition")
]

const two = (number: number): string => String(number).padStart(2, "0")

/** The day and the time of a moment; only the time on the day of another. */
export const moment = (at: number, zone: DateTime.TimeZone, since?: number): string => {
  const parts = partsOf(at, zone)
  if (parts === undefined) return "?"
  const day = `${parts.year}-${two(parts.month)}-${two(parts.day)}`
  const time = `${two(parts.hours)}:${two(parts.minutes)}:${two(parts.seconds)}`
  const before = since === undefined ? undefined : partsOf(since, zone)
  const isSameDay = before !== undefined && before.year === parts.year && before.month === parts.month &&
    before.day === parts.day
  return isSameDay ? time : `${day} ${time}`
}

const partsOf = (at: number, zone: DateTime.TimeZone): DateTime.DateTime.PartsWithWeekday | undefined =>
  Option.getOrUndefined(
    Option.map(DateTime.make(at), (utc) => DateTime.toParts(DateTime.setZone(utc, zone)))
  )
