/** The few escape codes a live table needs. */

export const hideCursor = "\x1b[?25l"
export const showCursor = "\x1b[?25h"

/** Goes to the start of the line `lines` above and forgets everything from there on. */
export const rewind = (lines: number): string => `${lines === 0 ? "" : `\x1b[${lines}A`}\r\x1b[J`

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const

export type Style = keyof typeof codes

/** A piece of a line. The text has no escape codes in it, so it can be measured and cut. */
export interface Piece {
  readonly text: string
  readonly style?: Style | undefined
}

/** One line, cut to `width` characters; `…` tells that something is missing. */
export const line = (pieces: ReadonlyArray<Piece>, options: { readonly width: number; readonly colour: boolean }) => {
  const length = pieces.reduce((sum, { text }) => sum + [...text].length, 0)
  let room = length <= options.width ? length : options.width - 1
  const kept = pieces.map(({ style, text }) => {
    const visible = [...text].slice(0, room).join("")
    room -= [...visible].length
    return options.colour && style !== undefined && visible !== ""
      ? `\x1b[${codes[style]}m${visible}\x1b[0m`
      : visible
  })
  return kept.join("") + (length <= options.width ? "" : "…")
}

/** Text in lines of at most `width` characters, broken at spaces where there are any. */
export const wrap = (text: string, width: number): ReadonlyArray<string> =>
  width === Infinity
    ? [text]
    : text.match(new RegExp(`.{1,${width}}(?= |$)|.{1,${width}}`, "gsu"))?.map((part) => part.trimStart()) ?? [""]
