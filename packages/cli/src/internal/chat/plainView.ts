/**
 * A turn as text for a file or a pipe: what is said as it comes, and a line for each thing a tool does.
 */
import type { Event } from "@allm/core/Event"
import * as Style from "../terminal/style.ts"
import * as CallRows from "./callRows.ts"

export class PlainView {
  private isInLine = false
  private hasBegun = false
  private blanks = ""
  private hasText = false
  private readonly startedAt = new Map<string, number>()

  /** What is to be written of an event. */
  add(event: Event, now: number): string {
    switch (event._tag) {
      case "MessageStarted":
        this.hasText = false
        return ""
      case "TextDelta":
        this.hasText = true
        return this.text(event.delta)
      case "TextCompleted":
        return this.hasText ? "" : this.text(event.text)
      case "MessageCompleted":
        return this.newLine()
      case "ToolExecutionStarted":
        this.startedAt.set(event.toolCallId, now)
        return this.lines(CallRows.plain(event, undefined))
      case "ToolExecutionCompleted": {
        const startedAt = this.startedAt.get(event.toolCallId)
        return this.lines(CallRows.plain(event, startedAt === undefined ? undefined : Style.duration(now - startedAt)))
      }
      default:
        return ""
    }
  }

  /** Lines of their own. */
  lines(lines: ReadonlyArray<string>): string {
    return lines.length === 0 ? "" : this.newLine() + lines.map((line) => `${Style.inOneLine(line)}\n`).join("")
  }

  /** The end of the line, if one has begun. */
  newLine(): string {
    const end = this.isInLine ? "\n" : ""
    this.isInLine = false
    this.hasBegun = false
    this.blanks = ""
    return end
  }

  private text(delta: string): string {
    const clean = this.blanks + Style.clean(delta)
    const begun = this.hasBegun ? clean : clean.trimStart()
    // Blanks are only written when something follows them in their line.
    const text = begun.replace(/[ \t]+$/, "").replace(/[ \t]+\n/g, "\n")
    this.blanks = /[ \t]*$/.exec(begun)?.[0] ?? ""
    if (text !== "") {
      this.hasBegun = true
      this.isInLine = !text.endsWith("\n")
    }
    return text
  }
}
