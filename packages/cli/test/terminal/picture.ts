/** A screen as a picture: SVG that looks the same whatever fonts there are. */
import type { Cell } from "./Terminal.ts"

export interface Options {
  readonly title: string
  readonly columns: number
}

type Row = ReadonlyArray<Cell>

const cell = { width: 8.4, height: 19, font: 14 }
const margin = 16
const bar = 36

const colours = { window: "#15171c", bar: "#22252c", edge: "#3a3f4b", text: "#d5d9e0", title: "#8b93a3" }

// The sixteen colours that a terminal has by name, on a dark ground.
const named = [
  "#4a505c",
  "#f07178",
  "#98c379",
  "#e5c07b",
  "#61afef",
  "#c792ea",
  "#56b6c2",
  "#c5cad3",
  "#6b7280",
  "#ff8b92",
  "#b5e08d",
  "#ffd896",
  "#82c4ff",
  "#ddb0f6",
  "#7fd8e0",
  "#ffffff"
]

/** Draws a window with the rows that have something in them. */
export const svg = (rows: ReadonlyArray<Row>, { columns, title }: Options): string => {
  const isEmpty = (row: Row) => row.every((cell) => cell.text.trim() === "")
  const used = rows.filter((_, index) => !rows.slice(index).every(isEmpty))
  const width = round(columns * cell.width + 2 * margin)
  const height = bar + used.length * cell.height + 2 * margin
  const lines = used.map((row, index) => {
    const top = bar + margin + index * cell.height
    return runs(row).map((run) => draw(run, top)).join("")
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${
      escape(title)
    }">`,
    `<style>text{font:${cell.font}px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre}</style>`,
    `<rect x=".5" y=".5" width="${width - 1}" height="${
      height - 1
    }" rx="8" fill="${colours.window}" stroke="${colours.edge}"/>`,
    `<path d="M1 ${bar}V8.5A7.5 7.5 0 0 1 8.5 1H${width - 8.5}A7.5 7.5 0 0 1 ${
      width - 1
    } 8.5V${bar}Z" fill="${colours.bar}"/>`,
    ["#f07178", "#e5c07b", "#98c379"].map((fill, index) =>
      `<circle cx="${20 + index * 20}" cy="${bar / 2}" r="6" fill="${fill}"/>`
    ).join(""),
    `<text x="${round(width / 2)}" y="${bar / 2 + 5}" fill="${colours.title}" text-anchor="middle">${
      escape(title)
    }</text>`,
    ...lines.filter((line) => line !== ""),
    "</svg>",
    ""
  ].join("\n")
}

/** Neighbours that look alike; a character that fonts may lack or draw in another width stands alone. */
interface Run {
  readonly column: number
  readonly width: number
  readonly text: string
  readonly look: Cell
}

const runs = (row: Row): ReadonlyArray<Run> => {
  const found: Array<Run> = []
  row.forEach((look, column) => {
    if (look.width === 0) return
    const text = look.text === "" ? " " : look.text
    const last = found.at(-1)
    const joins = last !== undefined && last.column + last.width === column && alike(last.look, look) &&
      kind(last.text) === kind(text) && kind(text) !== "alone"
    if (joins) found[found.length - 1] = { ...last, width: last.width + look.width, text: last.text + text }
    else found.push({ column, width: look.width, text, look })
  })
  return found.flatMap(trimmed)
}

/** Blanks need to be drawn only where they have a ground or a line. */
const trimmed = (run: Run): ReadonlyArray<Run> => {
  if (run.look.background !== undefined || run.look.inverse || run.look.underline) return [run]
  const start = run.text.length - run.text.trimStart().length
  const text = run.text.trim()
  return text === ""
    ? []
    : [{ ...run, column: run.column + start, width: run.width - (run.text.length - text.length), text }]
}

const alike = (one: Cell, other: Cell) =>
  one.foreground === other.foreground && one.background === other.background && one.bold === other.bold &&
  one.dim === other.dim && one.underline === other.underline &&
  one.inverse === other.inverse

// Fonts agree about the width of ASCII and of box drawing; the rest may come from another font. Blocks are drawn as one.
const kind = (text: string) =>
  /^[\x20-\x7e]+$/.test(text)
    ? "letters"
    : /^[\u2500-\u257f]+$/.test(text)
    ? "lines"
    : /^([█░▒▓])\1*$/.test(text)
    ? text.charAt(0)
    : "alone"

const draw = ({ column, look, text, width }: Run, top: number): string => {
  const left = round(margin + column * cell.width)
  const across = round(width * cell.width)
  const front = paint(look.inverse ? look.background ?? colours.window : look.foreground, colours.text)
  const ground = look.inverse ? paint(look.foreground, colours.text) : paint(look.background, undefined)
  const faded = look.dim ? ` opacity=".6"` : ""
  const behind = ground === undefined
    ? ""
    : `<rect x="${left}" y="${top}" width="${across}" height="${cell.height}" fill="${ground}"/>`
  const block = blocks.get(text.charAt(0))
  if (block !== undefined) {
    const [from, to, alpha] = block
    const opacity = alpha * (look.dim ? 0.6 : 1)
    return `${behind}<rect x="${round(left + from * across)}" y="${top + 2}" width="${
      round((to - from) * across)
    }" height="${cell.height - 4}" fill="${front}"${opacity === 1 ? "" : ` opacity="${round(opacity)}"`}/>`
  }
  const style = [look.bold ? ` style="font-weight:bold"` : "", faded].join("")
  const line = look.underline ? ` text-decoration="underline"` : ""
  return `${behind}<text x="${left}" y="${
    top + 14
  }" textLength="${across}" lengthAdjust="spacingAndGlyphs" fill="${front}"${style}${line}>${escape(text)}</text>`
}

// Where block characters begin and end in their place, and how much of the ground they cover. As glyphs they would have seams.
const blocks = new Map<string, readonly [from: number, to: number, alpha: number]>([
  ["█", [0, 1, 1]],
  ["▐", [0.5, 1, 1]],
  ["▕", [0.875, 1, 1]],
  ["░", [0, 1, 0.25]],
  ["▒", [0, 1, 0.5]],
  ["▓", [0, 1, 0.75]],
  ...["▉", "▊", "▋", "▌", "▍", "▎", "▏"].map((text, index) => [text, [0, (7 - index) / 8, 1]] as const)
])

const paint = <A extends string | undefined>(colour: number | string | undefined, none: A): string | A =>
  colour === undefined ? none : typeof colour === "string" ? colour : named[colour] ?? extended(colour)

/** The cube of 216 colours and the greys, from number 16 on. */
const extended = (colour: number): string => {
  const levels = [0, 95, 135, 175, 215, 255]
  const place = colour - 16
  const triple = colour >= 232
    ? Array.from({ length: 3 }, () => 8 + (colour - 232) * 10)
    : [Math.floor(place / 36), Math.floor(place / 6) % 6, place % 6].map((index) => levels[index] ?? 0)
  return `#${triple.map((value) => value.toString(16).padStart(2, "0")).join("")}`
}

const round = (value: number) => Math.round(value * 100) / 100

const escape = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\"", "&quot;")
