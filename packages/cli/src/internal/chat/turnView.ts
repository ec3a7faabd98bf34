/**
 * A turn as a terminal shows it while it happens: text that is finished goes up and stays, what still changes is drawn
 * again and again below it.
 */
import type { Event } from "@allm/core/Event"
import type { Size } from "../terminal/picture.ts"
import * as Style from "../terminal/style.ts"
import { dim, type Paragraph, paragraphLines } from "../terminal/terminal.ts"
import * as CallRows from "./callRows.ts"

export interface Frame {
  readonly settled: ReadonlyArray<string>
  readonly live: ReadonlyArray<string>
}

type Block = (options: Style.LineOptions) => ReadonlyArray<string>

type Section = "said" | "reasoning" | "text" | "rows" | "notes"

// A model that says nothing for so long is waited for.
const silence = 1500

export class TurnView {
  /** Whether the turn was told to stop. */
  isStopping = false
  private finished: Array<Block> = []
  private section: Section
  /** What is being said and does not fill a line yet. */
  private text = ""
  private isSpeaking = false
  private hasText = false
  private rows: ReadonlyArray<CallRows.Row> = []
  private waitsSince: number

  constructor(now: number, section: Section = "said") {
    this.waitsSince = now
    this.section = section
  }

  add(event: Event, now: number): void {
    switch (event._tag) {
      case "MessageStarted":
        this.hasText = false
        break
      case "TextDelta":
        this.hasText = true
        this.speak("text", event.delta)
        break
      case "TextCompleted":
        if (!this.hasText) this.speak("text", event.text)
        break
      case "ReasoningDelta":
        this.speak("reasoning", event.delta)
        break
      case "MessageCompleted":
        this.endText()
        break
      case "StepCompleted":
        // Such as the calls of an answer that was cut off.
        this.rows = CallRows.stop(this.rows, now)
        this.endStep()
        break
      default:
        this.rows = CallRows.add(this.rows, event, now)
    }
    this.waitsSince = now
  }

  /** Something that is told in between. */
  note(paragraph: Paragraph): void {
    this.endText()
    this.begin("notes")
    this.finished.push((options) => paragraphLines(paragraph, options))
  }

  /** The turn is over; what has not ended was stopped. */
  end(now: number): void {
    this.rows = CallRows.stop(this.rows, now)
    this.endStep()
  }

  /** What is settled since the last frame, and the picture below it. */
  frame(now: number, size: Size, colour: boolean, typed: string): Frame {
    const options = { width: Math.max(1, size.columns - 1), colour }
    const settled = this.finished.flatMap((block) => block(options))
    this.finished = []
    const live: Array<string> = []
    if (this.text !== "") {
      const { lines, rest } = Style.takeLines(this.text, options.width)
      settled.push(...lines.map((line) => this.painted(line, colour)))
      this.text = rest
      if (rest.trim() !== "") live.push(this.painted(rest.trimEnd(), colour))
    }
    const below = [...this.status(now, options), ...typedLine(typed, options)]
    if (this.rows.length > 0) {
      const gap = this.section === "rows" ? [] : [""]
      const room = Math.max(1, size.rows - 1 - live.length - below.length - gap.length)
      live.push(...gap, ...fitting(this.rows, room, now, options))
    }
    live.push(...below)
    return { settled, live: live.slice(-Math.max(1, size.rows - 1)) }
  }

  private painted(line: string, colour: boolean): string {
    return this.section === "reasoning" ? Style.paint(line, "dim", colour) : marked(line, colour)
  }

  private speak(section: "text" | "reasoning", delta: string): void {
    if (this.section !== section || !this.isSpeaking) {
      this.endText()
      const text = Style.clean(delta).trimStart()
      if (text === "") return
      this.begin(section)
      this.isSpeaking = true
      this.text = text
    } else {
      this.text += Style.clean(delta)
    }
  }

  private endText(): void {
    const { section, text } = this
    const rest = text.trimEnd()
    if (rest !== "") {
      this.finished.push((options) =>
        section === "reasoning"
          ? paragraphLines(dim(rest), options)
          : paragraphLines({ text: rest }, options).map((line) => marked(line, options.colour))
      )
    }
    this.text = ""
    this.isSpeaking = false
  }

  private endStep(): void {
    this.endText()
    const { rows } = this
    if (rows.length === 0) return
    this.begin("rows")
    this.finished.push((options) => CallRows.lines(rows, 0, options))
    this.rows = []
  }

  /** Sections are set apart by an empty line. */
  private begin(section: Section): void {
    if (this.section !== section) this.finished.push(() => [""])
    this.section = section
  }

  private status(now: number, options: Style.LineOptions): ReadonlyArray<string> {
    const spinner = ` ${CallRows.spinner(now)} `
    if (this.isStopping) {
      return [Style.line([{ text: `${spinner}stopping; Ctrl-C again leaves at once`, style: "yellow" }], options)]
    }
    const isBusy = this.rows.some(({ endedAt }) => endedAt === undefined)
    const isSilent = now - this.waitsSince > silence
    if (isBusy || this.isSpeaking && !isSilent) return []
    const gap = this.isSpeaking || this.rows.length > 0 ? [] : [""]
    const time = isSilent ? `  ${Style.duration(now - this.waitsSince)}   Ctrl-C stops it` : ""
    return [...gap, Style.line([{ text: `${spinner}waiting for the model${time}`, style: "dim" }], options)]
  }
}

/** Headings, strong words and code stand out; their marks stay, so that what is copied is what was said. */
const marked = (line: string, colour: boolean): string => {
  if (!colour) return line
  if (/^#{1,6} /.test(line)) return Style.paint(line, "bold", colour)
  return line
    .replace(/`[^`]+`/g, (code) => Style.paint(code, "cyan", colour))
    .replace(/\*\*[^*\s](?:[^*]*[^*\s])?\*\*/g, (words) => Style.paint(words, "bold", colour))
}

const typedLine = (typed: string, options: Style.LineOptions): ReadonlyArray<string> =>
  typed === "" ? [] : ["", Style.line([{ text: `› ${tail(typed, options.width - 2)}`, style: "dim" }], options)]

/** The end of what is typed: that is where things happen. */
const tail = (text: string, width: number): string => {
  let shown = Style.inOneLine(text)
  while (Style.widthOf(shown) > Math.max(1, width)) shown = [...shown].slice(1).join("")
  return shown
}

/** Rows for a window that may have no room for all of them: those that still change come first. */
const fitting = (
  rows: ReadonlyArray<CallRows.Row>,
  room: number,
  now: number,
  options: Style.LineOptions
): ReadonlyArray<string> => {
  if (rows.length <= room) return CallRows.lines(rows, now, options)
  const urgent = [...rows].sort((a, b) => urgency(a) - urgency(b)).slice(0, Math.max(0, room - 1))
  const hidden = rows.length - urgent.length
  const over = rows.filter(({ endedAt }) => endedAt !== undefined).length
  return [
    Style.line([dim(` … ${Style.count(hidden, "more call")}, ${over} of ${rows.length} ended`)], options),
    ...CallRows.lines(rows.filter((row) => urgent.includes(row)), now, options)
  ]
}

const urgency = (row: CallRows.Row): number =>
  CallRows.isRunning(row) ? 0 : row.endedAt === undefined ? 1 : -row.endedAt / Number.MAX_SAFE_INTEGER + 2
