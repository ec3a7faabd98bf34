/**
 * Answers and calls as bars on a scale.
 */
import type { Piece } from "../terminal/style.ts"
import type { Answer, Call } from "../timeline.ts"
import * as Marks from "./marks.ts"
import type { Mark } from "./marks.ts"
import * as Scale from "./scale.ts"

export type Cells = ReadonlyArray<Mark>

const blank: Mark = { glyph: " ", style: undefined }

class Bar {
  readonly cells: Array<Mark>
  private readonly scale: Scale.Scale

  constructor(scale: Scale.Scale) {
    this.scale = scale
    this.cells = Array.from({ length: scale.width }, () => blank)
  }

  fill(from: number, until: number, mark: Mark): void {
    const [first, last] = Scale.columnsOf(this.scale, from, until)
    this.cells.fill(mark, first, last + 1)
  }

  /** Puts a mark where a moment is, inside a span. */
  at(moment: number, [from, until]: readonly [number, number], mark: Mark): void {
    const [first, last] = Scale.columnsOf(this.scale, from, until)
    this.cells[Math.max(first, Math.min(last, Scale.columnOf(this.scale, moment)))] = mark
  }

  /** Puts a mark into the last column of a span. */
  end(from: number, until: number, mark: Mark): void {
    this.cells[Scale.columnsOf(this.scale, from, until)[1]] = mark
  }
}

export const ofAnswer = (answer: Answer, scale: Scale.Scale): Cells => {
  const bar = new Bar(scale)
  const { began, ended, outcome, retries, spoke } = answer
  bar.fill(began, ended, Marks.thinking)
  if (spoke !== undefined) bar.fill(spoke, ended, Marks.speaking)
  for (const at of retries) bar.at(at, [began, ended], Marks.again)
  if (outcome !== "done") bar.end(began, ended, Marks.signs[outcome])
  return bar.cells
}

export const ofCall = (call: Call, scale: Scale.Scale): Cells => {
  const bar = new Bar(scale)
  const { asked, began, ended, outcome, progress, retries } = call
  const { style } = Marks.signOf(call)
  if (asked !== undefined && asked < (began ?? ended)) bar.fill(asked, began ?? ended, Marks.queued)
  if (began !== undefined) {
    bar.fill(began, ended, { ...Marks.running, style })
    for (const { at } of progress) bar.at(at, [began, ended], { ...Marks.progress, style })
    for (const at of retries) bar.at(at, [began, ended], Marks.again)
  }
  if (outcome !== "done" || call.isReplayed) bar.end(began ?? ended, ended, Marks.signOf(call))
  return bar.cells
}

/** Cells of the same style as one piece. */
export const pieces = (cells: Cells): ReadonlyArray<Piece> => {
  const joined: Array<{ text: string; style: Mark["style"] }> = []
  for (const { glyph, style } of cells) {
    const last = joined.at(-1)
    if (last !== undefined && (last.style === style || glyph === " ")) last.text += glyph
    else joined.push({ text: glyph, style })
  }
  return joined
}

/** The time along the bars: each mark stands in the column of its time. */
export const axis = (scale: Scale.Scale): string => {
  let text = ""
  for (const { column, label } of Scale.ticksOf(scale)) text = `${text.padEnd(column)}│${label}`
  return text
}
