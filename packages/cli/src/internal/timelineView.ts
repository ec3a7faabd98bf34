/**
 * A timeline as a picture: a bar for every answer and every call, as wide as the window.
 */
import type * as DateTime from "effect/DateTime"
import { count, cut, line, pad, padStart, type Piece, type Style, widthOf, wrap } from "./terminal/style.ts"
import type { Answer, Call, Timeline, Totals, Turn, Wait } from "./timeline.ts"
import * as Bars from "./timeline/bars.ts"
import * as Marks from "./timeline/marks.ts"
import * as Scale from "./timeline/scale.ts"
import * as Words from "./timeline/words.ts"

export interface Options {
  readonly width: number
  readonly colour: boolean
  readonly zone: DateTime.TimeZone
}

/** A bar, and what is said beside it. */
interface Row {
  readonly at: number
  readonly label: string
  readonly sign: Marks.Sign
  readonly millis: number | undefined
  readonly note: string
  /** Said where there is room for it. */
  readonly aside: string
  readonly cells: (scale: Scale.Scale) => Bars.Cells
}

/** The columns of the picture, the same for all turns. */
interface Layout extends Options {
  readonly label: number
  readonly bar: number
  readonly time: number
  /** Nothing when notes go below their bars. */
  readonly note: number
}

/** The picture, line by line. */
export const view = (timeline: Timeline, options: Options): ReadonlyArray<string> => {
  const layout = layoutOf(timeline, options)
  const glyphs = new Set<string>()
  const turns = timeline.turns.flatMap((_, index) => turnView(timeline, timeline, index, layout, glyphs))
  return [...turns, ...totalLines(timeline.totals, layout), ...legendLines(glyphs, layout)]
}

/** Each turn of a timeline that is a part of another, and placed as in that one. */
export const turnViews = (part: Timeline, whole: Timeline, options: Options): ReadonlyArray<ReadonlyArray<string>> => {
  const layout = layoutOf(whole, options)
  return part.turns.map((_, index) => turnView(part, whole, index, layout, new Set()))
}

const turnView = (
  part: Timeline,
  whole: Timeline,
  index: number,
  layout: Layout,
  glyphs: Set<string>
): ReadonlyArray<string> => {
  const turn = part.turns[index]!
  const scale = Scale.make(turn.began, whole.turns[index]!.ended, layout.bar)
  return [
    ...turnLines(turn, scale, layout, glyphs, part.turns[index - 1]),
    ...waitLines(part.waits[index]!, layout, turn.began),
    ""
  ]
}

const rowsOf = (turn: Turn): ReadonlyArray<Row> =>
  [...turn.answers.map(rowOfAnswer), ...turn.calls.map(rowOfCall)].sort((one, other) => one.at - other.at)

const rowOfAnswer = (answer: Answer): Row => ({
  at: answer.began,
  label: "model",
  sign: Marks.signOfAnswer(answer),
  millis: answer.ended - answer.began,
  note: Words.ofAnswer(answer),
  aside: Words.sizeOf(answer),
  cells: (scale) => Bars.ofAnswer(answer, scale)
})

const rowOfCall = (call: Call): Row => ({
  at: call.asked ?? call.began ?? call.ended,
  label: `  ${call.toolName}`,
  sign: Marks.signOf(call),
  millis: call.began === undefined ? undefined : call.ended - call.began,
  note: Words.ofCall(call),
  aside: Words.argumentsOf(call),
  cells: (scale) => Bars.ofCall(call, scale)
})

const widest = (texts: ReadonlyArray<string>): number => texts.reduce((most, text) => Math.max(most, widthOf(text)), 0)

// Below this, there is no room for words beside the bars.
const roomy = 72
const leastBar = 8

const layoutOf = ({ turns }: Timeline, options: Options): Layout => {
  const { width } = options
  const rows = turns.flatMap(rowsOf)
  const label = Math.max(5, Math.min(widest(rows.map((row) => row.label)), Math.floor(width * 0.3)))
  // Whatever runs has taken milliseconds at first.
  const time = Math.max(
    "999 ms".length,
    widest(rows.map(({ millis }) => millis === undefined ? "" : Scale.took(millis)))
  )
  const said = widest(rows.map(beside))
  const note = width < roomy ? 0 : Math.min(said, Math.floor(width / 3))
  // A space at the left, one on each side of the bar, and one after the sign; two before the note.
  const rest = 1 + label + 1 + 1 + 1 + 1 + time + (note === 0 ? 0 : 2 + note)
  return { ...options, label, time, note, bar: Math.max(leastBar, width - rest) }
}

const beside = ({ aside, note }: Row): string => Words.joined([note, aside])

const turnLines = (
  turn: Turn,
  scale: Scale.Scale,
  layout: Layout,
  glyphs: Set<string>,
  before: Turn | undefined
): ReadonlyArray<string> => {
  const rows = rowsOf(turn)
  const end = Words.endOf(turn)
  return [
    line([
      { text: "❯ ", style: "cyan" },
      turn.input === undefined ? { text: "(goes on)", style: "dim" } : { text: turn.input, style: "bold" }
    ], layout),
    ...paragraph("  ", summaryOf(turn, layout, before), "dim", layout),
    ...(rows.length === 0
      ? []
      : [line([{ text: " ".repeat(layout.label + 2) }, { text: Bars.axis(scale), style: "dim" }], layout)]),
    ...rows.flatMap((row) => rowLines(row, row.cells(scale), layout, glyphs)),
    ...turn.lines.flatMap(({ at, level, message, toolName }) =>
      hanging(
        `  ${level === "WARN" ? "warning" : level.toLowerCase()} `,
        `${Scale.took(at - turn.began)}: ${toolName === undefined ? "" : `${toolName}: `}${message}`,
        level === "WARN" ? "yellow" : "red",
        layout
      )
    ),
    ...(end === undefined ? [] : hanging("  ", end, turn.outcome === "failed" ? "red" : "yellow", layout))
  ]
}

const summaryOf = (turn: Turn, { zone }: Options, before: Turn | undefined): string => {
  const told = turn.answers.filter(({ tokens }) => tokens !== undefined)
  return Words.joined([
    Words.moment(turn.began, zone, before?.began),
    turn.model,
    Scale.took(turn.ended - turn.began),
    told.length === 0
      ? undefined
      : Words.tokens({
        tokens: told.reduce((sum, { tokens }) => sum + (tokens ?? 0), 0),
        inputTokens: undefined,
        outputTokens: undefined
      })
  ])
}

const rowLines = (
  row: Row,
  cells: Bars.Cells,
  layout: Layout,
  glyphs: Set<string>
): ReadonlyArray<string> => {
  for (const { glyph } of [...cells, row.sign]) glyphs.add(glyph)
  const isQuiet = row.note === ""
  return [
    line([
      { text: ` ${pad(cut(row.label, layout.label), layout.label)} ` },
      ...Bars.pieces(cells),
      { text: ` ${row.sign.glyph}`, style: row.sign.style },
      { text: ` ${padStart(row.millis === undefined ? "" : Scale.took(row.millis), layout.time)}`, style: "dim" },
      ...(layout.note === 0 ? [] : notesOf(row, layout))
    ], layout).trimEnd(),
    ...(layout.note > 0 || isQuiet ? [] : hanging("   └ ", row.note, row.sign.style, layout))
  ]
}

const notesOf = (row: Row, layout: Layout): ReadonlyArray<Piece> => {
  const { aside, note, sign } = row
  // What went wrong is not cut for what is only good to know.
  const hasRoom = note === "" || widthOf(beside(row)) <= layout.note
  return [
    { text: "  " },
    { text: note, style: sign.style === "green" ? undefined : sign.style },
    { text: !hasRoom || aside === "" ? "" : note === "" ? aside : ` · ${aside}`, style: "dim" }
  ]
}

/** What is between two turns: nobody wants to look at a night. */
const waitLines = ({ calls, from, until }: Wait, layout: Layout, began: number): ReadonlyArray<string> => {
  if (until === undefined && calls.length === 0) return []
  if (until !== undefined && calls.length === 0 && until - from < 1000) return []
  const time = until === undefined ? `since ${Words.moment(from, layout.zone, began)}` : Scale.took(until - from)
  const style: Style = calls.length === 0 ? "dim" : "yellow"
  const reasons = calls.map((call) => Words.waitOf(call, until !== undefined))
  const [first, ...rest] = calls.length === 0 ? [`${time} later`] : [`${time}: ${reasons[0]}`, ...reasons.slice(1)]
  const head = `${rule} ${first} `
  const room = layout.width - widthOf(head)
  return [
    "",
    ...(room > 0
      ? [line([{ text: head + "┄".repeat(room), style }], layout)]
      : hanging(`${rule} `, `${first}`, style, layout)),
    ...rest.flatMap((text) => hanging(`${rule} `, text, style, layout))
  ]
}

const rule = "  ┄┄"

const totalLines = (totals: Totals, layout: Layout): ReadonlyArray<string> => {
  const { answers, calls, modelMillis, toolMillis, waitingMillis } = totals
  const lines: ReadonlyArray<readonly [head: string, text: string]> = [
    ["Model", Words.joined([count(answers, "answer"), Scale.took(modelMillis), Words.tokens(totals)])],
    [
      "Tools",
      calls === 0 ? "" : Words.joined([count(calls, "call"), Scale.took(toolMillis), ...Words.outcomes(totals)])
    ],
    ["People", waitingMillis === 0 ? "" : `${Scale.took(waitingMillis)} waited for`]
  ]
  return lines.flatMap(([head, text]) => text === "" ? [] : paragraph(` ${pad(head, 6)}  `, text, undefined, layout))
}

const legendLines = (glyphs: ReadonlySet<string>, layout: Layout): ReadonlyArray<string> => {
  const lines: Array<Array<Piece>> = []
  let room = 0
  for (const { glyph, style, word } of Marks.legendOf(glyphs)) {
    const size = widthOf(`${glyph} ${word}`)
    if (size + 3 > room) {
      lines.push([{ text: " " }])
      room = layout.width - 1
    } else {
      lines.at(-1)!.push({ text: "   " })
      room -= 3
    }
    room -= size
    lines.at(-1)!.push({ text: glyph, style }, { text: ` ${word}`, style: "dim" })
  }
  return lines.length === 0 ? [] : ["", ...lines.map((pieces) => line(pieces, layout))]
}

/** Parts in as many lines as they need, all behind the same indentation. */
const paragraph = (head: string, text: string, style: Style | undefined, layout: Layout): ReadonlyArray<string> =>
  Words.wrapped(text, layout.width - widthOf(head)).map((part, index) =>
    line([{ text: index === 0 ? head : " ".repeat(widthOf(head)) }, { text: part, style }], layout)
  )

/** Words in as many lines as they need, all behind the same indentation. */
const hanging = (head: string, text: string, style: Style | undefined, layout: Layout): ReadonlyArray<string> =>
  wrap(text.replace(/\s+/g, " "), Math.max(10, layout.width - widthOf(head))).map((part, index) =>
    line([{ text: index === 0 ? head : " ".repeat(widthOf(head)), style }, { text: part, style }], layout)
  )
