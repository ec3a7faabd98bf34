/**
 * What is known of turns of which there is no trace: what was said and called, without times.
 */
import { type Message, type ToolMessage, toText } from "@allm/core/Message"
import type { ToolCall } from "@allm/core/ToolCall"
import { cut, line, type LineOptions, type Piece, wrap } from "../terminal/style.ts"
import * as Marks from "./marks.ts"

/** The messages, line by line. */
export const view = (messages: ReadonlyArray<Message>, options: LineOptions): ReadonlyArray<string> => {
  const results = new Map<string, ToolMessage>()
  for (const message of messages) if (message.role === "tool") results.set(message.toolCallId, message)
  return messages.flatMap((message) => {
    switch (message.role) {
      case "user":
        return ["", line([{ text: "❯ ", style: "cyan" }, { text: toText(message), style: "bold" }], options)]
      case "assistant":
        return [
          ...said(toText(message), options),
          ...message.toolCalls.map((call) => called(call, results.get(call.id), options))
        ]
      default:
        return []
    }
  })
}

// The whole of it is for `allm sessions show`.
const mostLines = 3

const said = (text: string, options: LineOptions): ReadonlyArray<string> => {
  const lines = wrap(text.trim(), options.width - 2)
  const shown = lines.slice(0, mostLines)
  if (lines.length > mostLines) shown[mostLines - 1] = `${cut(shown[mostLines - 1]!, options.width - 3)}…`
  return shown.flatMap((text) => text === "" ? [] : [line([{ text: `  ${text}` }], options)])
}

const called = (call: ToolCall, result: ToolMessage | undefined, options: LineOptions): string => {
  const given = call.rawArguments ?? JSON.stringify(call.arguments)
  return line([
    { text: "    " },
    ...sign(result),
    { text: ` ${call.name}` },
    { text: given === undefined || given === "{}" ? "" : ` ${given}`, style: "dim" }
  ], options)
}

const sign = (result: ToolMessage | undefined): ReadonlyArray<Piece> => {
  const { glyph, style } = result === undefined
    ? Marks.queued
    : result.isError
    ? Marks.signs.failed
    : Marks.signs.done
  return [{ text: glyph, style }]
}
