/**
 * A picture at the bottom of the terminal that is drawn again and again in place. What is settled goes above it, and is
 * never touched again.
 */
import * as Style from "./style.ts"

export interface Size {
  readonly columns: number
  readonly rows: number
}

export const hideCursor = "\u001b[?25l"
export const showCursor = "\u001b[?25h"

const clearLine = "\u001b[2K"
const clearBelow = "\u001b[0J"

/** Draws frames. What it gives is one text to write; it is empty when nothing changed. */
export class Picture {
  private drawn: ReadonlyArray<string> = []
  private size: Size | undefined

  /** The next frame: `settled` above, then `live`, whose last line the cursor stands in. */
  draw(settled: ReadonlyArray<string>, live: ReadonlyArray<string>, size: Size): string {
    const isSame = settled.length === 0 && this.size?.columns === size.columns && this.size.rows === size.rows &&
      live.length === this.drawn.length && live.every((line, index) => line === this.drawn[index])
    if (isSame) return ""
    const text = this.rewind(size) + [...settled, ...live].map((line) => `${clearLine}${line}`).join("\n") +
      clearBelow +
      (live.length === 0 && settled.length > 0 ? "\n" : "")
    this.drawn = live
    this.size = size
    return text
  }

  /** To the first column of the picture's first row. A window that became narrower has broken its lines. */
  private rewind({ columns, rows }: Size): string {
    const taken = this.drawn.reduce((sum, line) => sum + rowsOf(line, columns), 0)
    const up = Math.min(Math.max(0, taken - 1), Math.max(0, rows - 1))
    return `\r${up === 0 ? "" : `\u001b[${up}A`}`
  }
}

const rowsOf = (line: string, columns: number): number =>
  Math.max(1, Math.ceil(Style.widthOf(Style.unpainted(line)) / Math.max(1, columns)))
