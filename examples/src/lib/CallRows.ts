/** Tool calls as rows of a table, and as plain lines. */
import { type Event, type ToolCall, ToolError, type ToolResult } from "@allm/core"
import * as Ansi from "./Ansi.ts"
import { seconds } from "./Screen.ts"

export interface Row {
  readonly id: string
  readonly tool: string
  readonly state: State
  readonly startedAt?: number
  readonly endedAt?: number
  readonly detail: string
  /** Whether the detail is what the model wrote; then it is not news. */
  readonly isQuoted: boolean
}

interface State {
  readonly word: string
  readonly symbol: string
  readonly style: Ansi.Style
}

const writing: State = { word: "writing", symbol: "", style: "cyan" }
const waiting: State = { word: "waiting", symbol: "·", style: "dim" }
const running: State = { word: "running", symbol: "", style: "cyan" }
const done: State = { word: "done", symbol: "✓", style: "green" }
const paused = (word: string): State => ({ word, symbol: "■", style: "yellow" })
const stopped = paused("stopped")
const failed = (word: string): State => ({ word, symbol: "✗", style: "red" })

/** A call that waits for its turn. */
export const fromCall = (call: ToolCall.ToolCall): Row => ({
  id: call.id,
  tool: call.name,
  state: waiting,
  detail: "",
  isQuoted: false
})

/** All rows after an event. Events that are not about calls change nothing. */
export const add = (rows: ReadonlyArray<Row>, event: Event.Event, now: number): ReadonlyArray<Row> => {
  switch (event._tag) {
    case "ToolCallStarted":
      return [...rows, { id: event.toolCallId, tool: event.toolName, state: writing, detail: "", isQuoted: true }]
    case "ToolCallDelta":
      return change(rows, event.toolCallId, (row) => ({ detail: row.detail + event.delta }))
    case "ToolCallCompleted":
      return change(rows, event.toolCall.id, () => ({ state: waiting, detail: argumentsOf(event.toolCall) }))
    case "ToolExecutionStarted":
      return change(rows, event.toolCallId, () => ({ state: running, startedAt: now }))
    case "ToolProgress":
      return change(rows, event.toolCallId, () => ({ detail: bar(event.value), isQuoted: false }))
    case "ToolExecutionCompleted":
      return change(
        rows,
        event.toolCallId,
        () => ({ state: stateOf(event.result), endedAt: now, detail: detailOf(event.result), isQuoted: false })
      )
    default:
      return rows
  }
}

const change = (rows: ReadonlyArray<Row>, id: string, fields: (row: Row) => Partial<Row>): ReadonlyArray<Row> =>
  rows.map((row) => row.id === id ? { ...row, ...fields(row) } : row)

/** What has not ended by now never will. */
export const stop = (rows: ReadonlyArray<Row>): ReadonlyArray<Row> =>
  rows.map((row) => row.endedAt === undefined ? { ...row, state: stopped } : row)

/** One line per call. */
export const lines = (
  rows: ReadonlyArray<Row>,
  now: number,
  options: { readonly width: number; readonly colour: boolean; readonly widest: number }
): ReadonlyArray<string> =>
  rows.map(({ detail, endedAt, isQuoted, startedAt, state, tool }) => {
    const time = startedAt === undefined ? "" : seconds((endedAt ?? now) - startedAt)
    const isPlain = state === running || state === done
    return Ansi.line([
      { text: ` ${state.symbol || spinner(now)} ${state.word.padEnd(9)}`, style: state.style },
      { text: `  ${tool.padEnd(options.widest)}` },
      { text: `  ${time.padStart(6)}  `, style: "dim" },
      { text: detail, style: isQuoted ? "dim" : isPlain ? undefined : state.style }
    ], options)
  })

/** An event in a line of its own, for a log. */
export const plain = (event: Event.Event): ReadonlyArray<string> => {
  switch (event._tag) {
    case "ToolExecutionStarted":
      return [`> ${event.toolName} started`]
    case "ToolProgress":
      return [`. ${event.toolName} ${JSON.stringify(event.value)}`]
    case "ToolExecutionCompleted":
      return [`${mark(event.result)} ${event.toolName} ${stateOf(event.result).word}`]
    default:
      return []
  }
}

/** The text of a call's arguments. */
export const argumentsOf = (call: ToolCall.ToolCall): string => call.rawArguments ?? JSON.stringify(call.arguments)

export const spinner = (now: number): string => frames[Math.floor(now / 80) % frames.length]!

const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]

const mark = (result: ToolResult.ToolOutcome | ToolError.ToolError): string =>
  result._tag === "Ok" ? "+" : ToolError.isToolError(result) ? "x" : "!"

const stateOf = (result: ToolResult.ToolOutcome | ToolError.ToolError): State => {
  switch (result._tag) {
    case "Ok":
      return done
    case "AskUser":
      return paused("asks")
    case "Halt":
      return paused("halts")
    case "HandlerRaised":
      return failed("crashed")
    case "InvalidArguments":
      return failed("refused")
    case "NotFound":
      return failed("unknown")
    case "Timeout":
      return failed(result.abandoned === true ? "abandoned" : "timed out")
    default:
      return failed("failed")
  }
}

/** What happened, in few words. What the model reads about it comes at the end. */
const detailOf = (result: ToolResult.ToolOutcome | ToolError.ToolError): string => {
  switch (result._tag) {
    case "Ok":
      return text(result.value)
    case "AskUser":
      return result.question
    case "Halt":
      return `${result.reason} ${text(result.result)}`
    case "HandlerFailed":
      return text(result.failure)
    case "HandlerRaised":
      return "the model is not told why"
    case "InvalidArguments":
      return result.issues.map(({ message, path }) => `${path.join(".")}: ${message}`).join("; ")
    case "NotFound":
      return result.detail
    case "Timeout":
      return `over ${seconds(result.limitMillis ?? 0)}${result.abandoned === true ? ", and did not stop" : ""}`
    default:
      return result.reason
  }
}

const text = (value: unknown): string => typeof value === "string" ? value : JSON.stringify(value)

/** `{ done, of }` as a bar, anything else as it is. */
const bar = (value: unknown): string => {
  const { done, of } = value as { readonly done: number; readonly of: number }
  return typeof done === "number" && typeof of === "number"
    ? `${"█".repeat(done)}${"░".repeat(of - done)} ${done} of ${of}`
    : text(value)
}
