/**
 * Sessions as text: a table of them, and one of them from beginning to end.
 */
import { type AssistantMessage, type Message, type ToolMessage, toText } from "@allm/core/Message"
import { type Session, Status } from "@allm/core/Session"
import type { StoreError } from "@allm/core/StoreError"
import type { ToolCall } from "@allm/core/ToolCall"
import type { Usage } from "@allm/core/Usage"
import * as Schema from "effect/Schema"
import { argumentsOf } from "./chat/callRows.ts"
import { isUnfinished, titleOf, type Waiting, waiting } from "./conversation.ts"
import {
  clean,
  count,
  inOneLine,
  line,
  type LineOptions,
  pad,
  padStart,
  type Piece,
  widthOf,
  wrap
} from "./terminal/style.ts"
import { inWords } from "./unattended.ts"

/** One session of the list, as JSON. */
export const Listed = Schema.Struct({
  id: Schema.String,
  status: Status,
  title: Schema.String,
  messages: Schema.Int,
  /** Milliseconds since 1970. */
  updatedAt: Schema.Finite
})

export interface Listed extends Schema.Schema.Type<typeof Listed> {}

/** One that is stored but cannot be read. */
export const Unreadable = Schema.Struct({ id: Schema.optional(Schema.String), error: Schema.String })

export const listed = (session: Session, updatedAt: number): Listed => ({
  id: session.id,
  status: session.status,
  title: titleOf(session),
  messages: session.thread.messages.length,
  updatedAt
})

const units: ReadonlyArray<readonly [millis: number, name: string]> = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1000, "s"]
]

/** How long ago something was. */
export const age = (millis: number): string => {
  const [size, name] = units.find(([size]) => millis >= size) ?? [1000, "s"]
  return `${Math.max(0, Math.floor(millis / size))} ${name}`
}

const heads = ["ID", "STATUS", "MESSAGES", "AGE", "TITLE"] as const

/** A table, the newest first. Those that cannot be read come last, with the reason. */
export const table = (
  sessions: ReadonlyArray<Listed>,
  unreadable: ReadonlyArray<StoreError>,
  now: number,
  options: LineOptions
): ReadonlyArray<string> => {
  const rows = sessions.map(({ id, messages, status, title, updatedAt }) =>
    [inOneLine(id), status, String(messages), age(now - updatedAt), inOneLine(title)] as const
  )
  const broken = unreadable.map((error) => [inOneLine(error.id ?? "?"), inOneLine(error.message)] as const)
  const width = (column: number): number =>
    Math.max(
      ...[heads, ...rows].map((row) => widthOf(row[column]!)),
      ...(column === 0 ? broken.map(([id]) => widthOf(id)) : [])
    )
  const cells = (row: ReadonlyArray<string>): ReadonlyArray<Piece> =>
    row.map((text, column) => ({
      text: column === row.length - 1
        ? text
        : `${(column === 2 || column === 3 ? padStart : pad)(text, width(column))}  `,
      ...(column === 1 && row !== heads ? { style: styles[text] ?? "dim" } : {})
    }))
  return [
    ...(rows.length === 0 ? [] : [line(cells(heads).map(({ text }) => ({ text, style: "dim" })), options)]),
    ...rows.map((row) => line(cells(row), options)),
    ...broken.map(([id, reason]) =>
      line([{ text: `${pad(id, width(0))}  ` }, { text: "unreadable  ", style: "red" }, { text: reason }], options)
    )
  ]
}

const styles: { readonly [status: string]: Piece["style"] } = {
  completed: "green",
  error: "red",
  awaiting_user: "yellow",
  awaiting_approval: "yellow",
  awaiting_tools: "yellow"
}

// As much of a result as tells what it is; the whole of it is in the JSON.
const mostOfResult = 400

/** What became of the calls. */
interface Fates {
  readonly results: ReadonlyMap<string, ToolMessage>
  /** Those that wait for a person. What stands in the place of their results says no more. */
  readonly open: ReadonlySet<string>
}

/** A session from beginning to end. */
export const whole = (session: Session, options: LineOptions): ReadonlyArray<string> => {
  const results = new Map<string, ToolMessage>()
  for (const message of session.thread.messages) if (message.role === "tool") results.set(message.toolCallId, message)
  const fates = { results, open: new Set(waiting(session).map(callOf)) }
  return [
    ...head(session, options),
    ...session.thread.messages.flatMap((message) => said(message, fates, options)),
    ...foot(session, options)
  ]
}

const callOf = (one: Waiting): string => {
  switch (one._tag) {
    case "Question":
      return one.question.toolCallId
    case "Approval":
      return one.approval.toolCall.id
    default:
      return one.toolCall.id
  }
}

const head = (session: Session, options: LineOptions): ReadonlyArray<string> => {
  const { agent } = session.metadata
  const facts = [
    session.status,
    count(session.thread.messages.length, "message"),
    ...(typeof agent === "string" ? [`agent ${inOneLine(agent)}`] : [])
  ]
  return [
    line([{ text: `session ${session.id}`, style: "bold" }], options),
    line([{ text: facts.join(", "), style: "dim" }], options)
  ]
}

const said = (
  message: Message,
  fates: Fates,
  options: LineOptions
): ReadonlyArray<string> => {
  // Its call shows it.
  if (message.role === "tool") return []
  const text = toText(message).trim()
  const calls = message.role === "assistant" ? called(message, fates, options) : []
  if (text === "" && calls.length === 0) return []
  return [
    "",
    line([{ text: message.role, style: message.role === "user" ? "cyan" : "dim" }], options),
    ...indented(text, "  ", options),
    ...calls
  ]
}

const called = (
  { toolCalls }: AssistantMessage,
  fates: Fates,
  options: LineOptions
): ReadonlyArray<string> =>
  toolCalls.flatMap((call: ToolCall) => {
    const result = fates.open.has(call.id) ? undefined : fates.results.get(call.id)
    const given = inOneLine(argumentsOf(call))
    return [
      line([
        fates.open.has(call.id)
          ? { text: "  ■ ", style: "yellow" }
          : result === undefined
          ? { text: "  · ", style: "dim" }
          : result.isError
          ? { text: "  ✗ ", style: "red" }
          : { text: "  ✓ ", style: "green" },
        { text: call.name },
        { text: given === "" || given === "{}" ? "" : ` ${given}`, style: "dim" }
      ], options),
      ...(result === undefined ? [] : indented(shortened(result.content), "      ", options))
    ]
  })

const shortened = (text: string): string =>
  text.length <= mostOfResult ? text : `${text.slice(0, mostOfResult)}… (${text.length} characters)`

const indented = (text: string, margin: string, { width }: LineOptions): ReadonlyArray<string> =>
  text === "" ? [] : wrap(clean(text), width - margin.length).map((line) => line === "" ? "" : margin + line)

const foot = (session: Session, options: LineOptions): ReadonlyArray<string> => {
  const open = waiting(session).map(inWords)
  const rest = open.length === 0 && isUnfinished(session) ? ["the model has yet to answer"] : open
  const used = usage(session.usage)
  return [
    ...(rest.length === 0 ? [] : ["", ...rest.map((text) => line([{ text, style: "yellow" }], options))]),
    ...(used === "" ? [] : ["", line([{ text: used, style: "dim" }], options)])
  ]
}

const usage = ({ inputTokens, outputTokens, totalCost, totalTokens }: Usage): string =>
  [
    ...(inputTokens === undefined ? [] : [`${inputTokens} tokens in`]),
    ...(outputTokens === undefined ? [] : [`${outputTokens} out`]),
    ...(inputTokens === undefined && outputTokens === undefined && totalTokens !== undefined
      ? [`${totalTokens} tokens`]
      : []),
    ...(totalCost === undefined ? [] : [`cost ${totalCost}`])
  ].join(", ")
