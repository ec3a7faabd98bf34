/**
 * Text as a terminal shows it: in columns, with a style. Texts come from models, tools and files, so control characters
 * never get through.
 */
import stringWidth from "string-width"

const codes = {
  bold: 1,
  dim: 2,
  inverse: 7,
  red: 31,
  green: 32,
  yellow: 33,
  blue: 34,
  magenta: 35,
  cyan: 36
} as const

export type Style = keyof typeof codes

/** A piece of a line. */
export interface Piece {
  readonly text: string
  readonly style?: Style | undefined
}

export interface LineOptions {
  readonly width: number
  readonly colour: boolean
}

const escape = "\u001b"
const bell = "\u0007"

// Also those that turn the direction of writing, behind which text can hide.
const controls = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu

const escapes = new RegExp(
  `${escape}(?:\\[[0-?]*[ -/]*[@-~]|\\][^\\p{Cc}]*(?:${bell}|${escape}\\\\)?|[@-Z\\\\^_])`,
  "gu"
)

const styles = new RegExp(`${escape}\\[[0-9;]*m`, "g")

/** A line that was painted, without its styles. */
export const unpainted = (line: string): string => line.replace(styles, "")

/** The text in one line, without anything a terminal would obey. */
export const inOneLine = (text: string): string =>
  text.replace(escapes, "").replace(/\s*[\r\n]+\s*/g, " ").replace(/\t/g, " ").replace(controls, "")

/** The text without anything a terminal would obey, its lines kept. */
export const clean = (text: string): string =>
  text.replace(escapes, "").replace(/\r\n?/g, "\n").replace(/\t/g, "  ")
    .replace(controls, (character) => character === "\n" ? "\n" : "")

const isAscii = (text: string): boolean => /^[ -~]*$/.test(text)

/** The columns a text takes. */
export const widthOf = (text: string): number => isAscii(text) ? text.length : stringWidth(text)

const segmenter = new Intl.Segmenter()

/** What people call characters: an emoji is one, whatever it is made of. */
const characters = (text: string): Iterable<string> =>
  isAscii(text) ? text : Array.from(segmenter.segment(text), ({ segment }) => segment)

/** As much of the beginning of a text as fits. */
const fitting = (text: string, width: number): string => {
  if (widthOf(text) <= width) return text
  let kept = ""
  let room = width
  for (const character of characters(text)) {
    room -= widthOf(character)
    if (room < 0) break
    kept += character
  }
  return kept
}

/** A text in at most `width` columns; `…` tells that something is missing. */
export const cut = (text: string, width: number): string => {
  const plain = inOneLine(text)
  if (widthOf(plain) <= width) return plain
  return width < 1 ? "" : `${fitting(plain, width - 1)}…`
}

/** A text with spaces behind it, so that it takes `width` columns. */
export const pad = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - widthOf(text)))

/** A text with spaces before it, so that it takes `width` columns. */
export const padStart = (text: string, width: number): string => " ".repeat(Math.max(0, width - widthOf(text))) + text

/** A text in a style, if there are colours. */
export const paint = (text: string, style: Style | undefined, colour: boolean): string =>
  colour && style !== undefined && text !== "" ? `${escape}[${codes[style]}m${text}${escape}[0m` : text

/** One line of several pieces, cut to the width; `…` tells that something is missing. */
export const line = (pieces: ReadonlyArray<Piece>, { colour, width }: LineOptions): string => {
  const plain = pieces.map(({ style, text }) => ({ style, text: inOneLine(text) }))
  const total = plain.reduce((sum, { text }) => sum + widthOf(text), 0)
  if (total <= width) return plain.map(({ style, text }) => paint(text, style, colour)).join("")
  if (width < 1) return ""
  let room = width - 1
  const kept: Array<string> = []
  for (const { style, text } of plain) {
    const visible = fitting(text, room)
    kept.push(paint(visible, style, colour))
    room -= widthOf(visible)
    if (visible !== text) break
  }
  return `${kept.join("")}…`
}

/** A text in lines of at most `width` columns, broken at spaces where there are any. Empty lines stay. */
export const wrap = (text: string, width: number): ReadonlyArray<string> => {
  const { lines, rest } = takeLines(clean(text), width)
  return [...lines, rest.trimEnd()]
}

/** The lines of a clean text that will stay as they are whatever is added to it, and the rest, which fits in one line. */
export const takeLines = (
  text: string,
  width: number
): { readonly lines: ReadonlyArray<string>; readonly rest: string } => {
  const lines: Array<string> = []
  let rest = text
  for (;;) {
    const end = rest.indexOf("\n")
    const paragraph = end < 0 ? rest : rest.slice(0, end)
    const length = lengthOfLine(paragraph, Math.max(1, width))
    if (length === paragraph.length && end < 0) return { lines, rest }
    lines.push(paragraph.slice(0, length).trimEnd())
    rest = rest.slice(length === paragraph.length ? end + 1 : length)
  }
}

// A word with the spaces behind it. Scripts without spaces may be broken after any character; all of those are wide.
const wide = "\\u1100-\\u115f\\u2e80-\\ua4cf\\uac00-\\ud7a3\\uf900-\\ufaff\\ufe30-\\ufe6f\\uff00-\\uff60\\uffe0-\\uffe6"
const words = new RegExp(`[${wide}] *|[^ ${wide}]+ *| +`, "gu")

/** How much of a paragraph goes into its first line. Spaces at the end of the line take no room. */
const lengthOfLine = (text: string, width: number): number => {
  if (widthOf(text) <= width) return text.length
  let length = 0
  let room = width
  for (const [word] of text.matchAll(words)) {
    if (widthOf(word.trimEnd()) > room) break
    length += word.length
    room -= widthOf(word)
  }
  if (length > 0) return length
  // A word that is too long for any line. At least one character, or there would be no end.
  const [first = ""] = characters(text)
  return fitting(text, width).length || first.length
}

/** A time in seconds, minutes from 100 seconds on. */
export const duration = (millis: number): string => {
  const tenths = Math.round(Math.max(0, millis) / 100) / 10
  if (tenths < 100) return `${tenths.toFixed(1)} s`
  const seconds = Math.round(millis / 1000)
  const minutes = Math.floor(seconds / 60)
  return minutes < 60
    ? `${minutes} min ${seconds % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** A number of things. */
export const count = (number: number, thing: string): string => `${number} ${thing}${number === 1 ? "" : "s"}`
