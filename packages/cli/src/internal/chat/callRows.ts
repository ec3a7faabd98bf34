/**
 * The tool calls of a step as rows: what each is doing, for how long, and what came of it.
 */
import type { Event } from "@allm/core/Event"
import type { ToolCall } from "@allm/core/ToolCall"
import * as ToolError from "@allm/core/ToolError"
import type { ToolOutcome } from "@allm/core/ToolResult"
import * as Cause from "effect/Cause"
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import * as Style from "../terminal/style.ts"

export interface Row {
  readonly id: string
  readonly tool: string
  readonly state: State
  readonly startedAt?: number
  readonly endedAt?: number
  readonly detail: string
  /** Whether the detail is no news: what the model wrote, or what only an operator cares for. */
  readonly isAside: boolean
  /** How much of it is done, while that is known. */
  readonly share?: number | undefined
}

export interface State {
  readonly word: string
  readonly symbol: string
  readonly style: Style.Style
}

const writing: State = { word: "writing", symbol: "", style: "cyan" }
const ready: State = { word: "ready", symbol: "·", style: "dim" }
const running: State = { word: "running", symbol: "", style: "cyan" }
const done: State = { word: "done", symbol: "✓", style: "green" }
const paused = (word: string): State => ({ word, symbol: "■", style: "yellow" })
const crashed = "crashed"
const failed = (word: string): State => ({ word, symbol: "✗", style: "red" })

// Nobody reads more of it in a line.
const longest = 400

/** All rows after an event. Events that are not about calls change nothing. */
export const add = (rows: ReadonlyArray<Row>, event: Event, now: number): ReadonlyArray<Row> => {
  switch (event._tag) {
    case "ToolCallStarted":
      return upsert(rows, event.toolCallId, event.toolName, () => ({ state: writing, isAside: true }))
    case "ToolCallDelta":
      return change(
        rows,
        event.toolCallId,
        (row) => row.detail.length > longest ? {} : { detail: row.detail + event.delta }
      )
    case "ToolCallCompleted": {
      const { toolCall } = event
      return upsert(rows, toolCall.id, toolCall.name, () => ({
        state: ready,
        detail: short(argumentsOf(toolCall)),
        isAside: true
      }))
    }
    case "ToolExecutionStarted":
      return upsert(rows, event.toolCallId, event.toolName, (row) => ({
        state: running,
        startedAt: now,
        isAside: true,
        ...(row.detail === "" ? { detail: short(textOf(event.arguments)) } : {})
      }))
    case "ToolProgress":
      return change(rows, event.toolCallId, () => ({ ...progressOf(event.value), isAside: false }))
    case "ToolExecutionCompleted": {
      const { result } = event
      return upsert(rows, event.toolCallId, event.toolName, () => ({
        state: stateOf(result),
        endedAt: now,
        share: undefined,
        ...detailOf(result)
      }))
    }
    case "ToolResultEncoded":
      return change(
        rows,
        event.toolCallId,
        ({ detail, state }) =>
          state.word === crashed && detail !== "" && !event.content.includes(detail)
            // Whoever reads it here may believe that the model has read it, too.
            ? { detail: `for you only: ${detail}` }
            : {}
      )
    case "ToolHalt":
      return event.reason === "approval"
        ? change(rows, event.toolCallId, () => ({ state: paused("asks"), endedAt: now }))
        : rows
    case "ManualToolCalls":
      return event.toolCalls.reduce(
        (rows, { id }) => change(rows, id, () => ({ state: paused("yours"), endedAt: now })),
        rows
      )
    default:
      return rows
  }
}

const upsert = (
  rows: ReadonlyArray<Row>,
  id: string,
  tool: string,
  fields: (row: Row) => Partial<Row>
): ReadonlyArray<Row> => {
  const isKnown = rows.some((row) => row.id === id)
  return change(isKnown ? rows : [...rows, { id, tool, state: ready, detail: "", isAside: true }], id, fields)
}

const change = (rows: ReadonlyArray<Row>, id: string, fields: (row: Row) => Partial<Row>): ReadonlyArray<Row> =>
  rows.map((row) => row.id === id ? { ...row, ...fields(row) } : row)

/** What has not ended by now never will. */
export const stop = (rows: ReadonlyArray<Row>, now: number): ReadonlyArray<Row> =>
  rows.map((row) =>
    row.endedAt !== undefined
      ? row
      : { ...row, state: paused(row.startedAt === undefined ? "not run" : "stopped"), endedAt: now }
  )

export const isRunning = (row: Row): boolean => row.startedAt !== undefined && row.endedAt === undefined

// In a window that is narrower there is no room for words that the symbol says too.
const roomForWords = 56

/** One line per call. */
export const lines = (
  rows: ReadonlyArray<Row>,
  now: number,
  options: Style.LineOptions
): ReadonlyArray<string> => {
  const hasWords = options.width >= roomForWords
  const widest = Math.min(24, Math.max(...rows.map(({ tool }) => Style.widthOf(tool))))
  return rows.map(({ detail, endedAt, isAside, share, startedAt, state, tool }) => {
    const time = startedAt === undefined ? "" : Style.duration((endedAt ?? now) - startedAt)
    const symbol = state.symbol || spinner(now)
    const isPlain = state === running || state === done
    return Style.line([
      { text: hasWords ? ` ${symbol} ${Style.pad(state.word, 10)} ` : `${symbol} `, style: state.style },
      { text: hasWords ? Style.pad(Style.cut(tool, widest), widest) : tool },
      { text: hasWords ? ` ${Style.padStart(time, 7)}  ` : ` ${time}${time === "" ? "" : " "}`, style: "dim" },
      { text: bar(share, hasWords ? 12 : 6) },
      { text: isAside && detail === "{}" ? "" : detail, style: isAside ? "dim" : isPlain ? undefined : state.style }
    ], options)
  })
}

/** An event in a line of its own, for output that cannot be drawn again. */
export const plain = (event: Event, time: string | undefined): ReadonlyArray<string> => {
  switch (event._tag) {
    case "ToolExecutionStarted":
      return [`> ${event.toolName} started`]
    case "ToolExecutionCompleted": {
      const { word } = stateOf(event.result)
      const { detail } = detailOf(event.result)
      const head = `${mark(event.result)} ${event.toolName} ${word}${time === undefined ? "" : ` ${time}`}`
      return [detail === "" ? head : `${head}: ${Style.cut(detail, 120)}`]
    }
    default:
      return []
  }
}

const mark = (result: ToolOutcome | ToolError.ToolError): string =>
  result._tag === "Ok" ? "+" : ToolError.isToolError(result) ? "x" : "!"

/** The text of a call's arguments. */
export const argumentsOf = (call: ToolCall): string => call.rawArguments ?? textOf(call.arguments)

const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]

export const spinner = (now: number): string => frames[Math.floor(now / 80) % frames.length]!

const stateOf = (result: ToolOutcome | ToolError.ToolError): State => {
  switch (result._tag) {
    case "Ok":
      return done
    case "AskUser":
      return paused("asks")
    case "Halt":
      return paused("halts")
    case "HandlerRaised":
    case "HandlerExit":
      return failed(crashed)
    case "InvalidArguments":
      return failed("refused")
    case "NotFound":
      return failed("unknown")
    case "Denied":
      return failed("denied")
    case "Skipped":
      return paused("skipped")
    case "Interrupted":
      return paused("stopped")
    case "OutcomeUnknown":
      return failed("in doubt")
    case "Timeout":
      return failed(result.abandoned === true ? "abandoned" : "timed out")
    default:
      return failed("failed")
  }
}

type Detail = Pick<Row, "detail" | "isAside">

const news = (text: string): Detail => ({ detail: short(text), isAside: false })

const aside = (text: string): Detail => ({ detail: short(text), isAside: true })

/** What happened, in few words. What a crash says is for the operator, who sits here. */
const detailOf = (result: ToolOutcome | ToolError.ToolError): Detail => {
  switch (result._tag) {
    case "Ok":
      return news(textOf(result.encoded ?? result.value))
    case "AskUser":
      return news(result.question)
    case "Halt":
      return news(`${result.reason} ${textOf(result.result)}`)
    case "HandlerFailed":
      return news(textOf(result.failure))
    case "HandlerRaised":
    case "HandlerExit":
      return aside(result.cause === undefined ? "" : messageOf(Cause.squash(result.cause)))
    case "InvalidArguments":
      return news(
        result.issues.map(({ message, path }) => path.length === 0 ? message : `${path.join(".")}: ${message}`).join(
          "; "
        )
      )
    case "InvalidReturn":
    case "NotFound":
      return news(result.detail)
    case "EncodingFailed":
      return news(`${result.path.length === 0 ? "the result" : result.path.join(".")} ${result.detail}`)
    case "Denied":
    case "Skipped":
      return news(result.detail ?? "")
    case "Timeout": {
      const limit = result.limitMillis === undefined ? "" : `over ${Style.duration(result.limitMillis)}`
      return news(result.abandoned === true ? `${limit}, and did not stop` : limit)
    }
    default:
      return news("")
  }
}

const messageOf = (defect: unknown): string => defect instanceof Error ? defect.message : textOf(defect)

const short = (text: string): string => Style.inOneLine(text.slice(0, longest))

/** A value of any kind as text. */
export const textOf = (value: unknown): string => {
  if (typeof value === "string") return value
  if (value === undefined) return ""
  // Results may be anything, also what JSON has no form for.
  return Either.getOrElse(Either.try(() => JSON.stringify(value) ?? String(value)), () => String(value))
}

/** What a call tells of itself while it runs: a share of a whole, or anything else as it is. */
const progressOf = (value: unknown): Pick<Row, "detail" | "share"> => {
  const share = undefined
  if (!Predicate.isRecord(value)) return { share, detail: short(textOf(value)) }
  const { done, message, of, total } = value
  const whole = of ?? total
  if (typeof done !== "number" || typeof whole !== "number" || !(whole > 0)) {
    return { share, detail: short(typeof message === "string" ? message : textOf(value)) }
  }
  const said = typeof message === "string" ? ` ${short(message)}` : ""
  return { share: done / whole, detail: `${done} of ${whole}${said}` }
}

/** A share as a bar; where there is little room, as a short one. */
const bar = (share: number | undefined, cells: number): string => {
  if (share === undefined) return ""
  const full = Math.max(0, Math.min(cells, Math.round(share * cells)))
  return `${"█".repeat(full)}${"░".repeat(cells - full)} `
}
