/** As much of a terminal as the chat writes for: what is on it, and what has scrolled out of it. */
import stringWidth from "string-width"

const escape = "\x1b"
const codes = new RegExp(`${escape}\\[(\\??[\\d;]*)([A-Za-z])|\\n|\\r|[^${escape}\\n\\r]+`, "gy")

const segmenter = new Intl.Segmenter()

export class Screen {
  isCursorVisible = true
  columns: number
  rows: number
  private lines: Array<Array<string>> = [[]]
  private row = 0
  private column = 0

  constructor(columns: number, rows: number) {
    this.columns = columns
    this.rows = rows
  }

  /** Everything there is to see, also what has scrolled away. */
  get text(): string {
    return this.lines.map((cells) => cells.join("").trimEnd()).join("\n").trimEnd()
  }

  /** The last lines of it. */
  tail(count: number): ReadonlyArray<string> {
    return this.text.split("\n").slice(-count)
  }

  /** Like a terminal that breaks its lines anew when it becomes narrower. */
  resize(columns: number, rows: number): void {
    const broken: Array<Array<string>> = []
    let row = 0
    for (const [index, cells] of this.lines.entries()) {
      if (index === this.row) row = broken.length + Math.max(0, Math.ceil(cells.length / columns) - 1)
      for (let start = 0; start === 0 || start < cells.length; start += columns) {
        broken.push(cells.slice(start, start + columns))
      }
    }
    this.lines = broken
    this.row = row
    this.columns = columns
    this.rows = rows
  }

  write(text: string): void {
    codes.lastIndex = 0
    for (let match = codes.exec(text); match !== null; match = codes.exec(text)) {
      const [whole, parameter = "", command] = match
      if (whole === "\n") this.feed()
      else if (whole === "\r") this.column = 0
      else if (command === undefined) this.put(whole)
      else this.obey(parameter, command)
    }
  }

  private obey(parameter: string, command: string): void {
    switch (`${parameter.startsWith("?") ? parameter : ""}${command}`) {
      case "A":
        // Nothing reaches what has scrolled away.
        this.row = Math.max(this.row - Number(parameter || 1), this.lines.length - this.rows, 0)
        return
      case "K":
        this.lines[this.row] = []
        return
      case "J":
        this.lines[this.row] = this.lines[this.row]!.slice(0, this.column)
        this.lines.length = this.row + 1
        return
      case "?25l":
        this.isCursorVisible = false
        return
      case "?25h":
        this.isCursorVisible = true
        return
      case "m":
        return
      default:
        throw new Error(`the screen does not know ${JSON.stringify(parameter + command)}`)
    }
  }

  private put(text: string): void {
    for (const { segment } of segmenter.segment(text)) {
      const width = stringWidth(segment)
      if (this.column + width > this.columns) this.feed()
      const cells = this.lines[this.row]!
      while (cells.length < this.column) cells.push(" ")
      cells[this.column++] = segment
      for (let covered = 1; covered < width; covered++) cells[this.column++] = ""
    }
  }

  private feed(): void {
    this.row++
    this.column = 0
    this.lines[this.row] ??= []
  }
}
