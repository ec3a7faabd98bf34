/**
 * The terminal as the chat sees it: where text goes, how big it is, and the lines and the Ctrl-C of a person.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Size } from "./picture.ts"
import * as Style from "./style.ts"

/** What came of waiting for a line. */
export type Input =
  | { readonly _tag: "Line"; readonly text: string }
  /** Ctrl-C. What was in the line is gone. */
  | { readonly _tag: "Interrupt"; readonly wasEmpty: boolean }
  /** Nothing more will come: Ctrl-D, or the end of a pipe. */
  | { readonly _tag: "End" }

export interface Prompt {
  readonly text: string
  /**
   * A line of the chat knows what was said before, completes commands, and begins with what was typed while nobody asked. An
   * answer does not: nobody consents to what has not been shown yet.
   */
  readonly kind: "chat" | "answer"
  /** What the line begins with. */
  readonly draft?: string | undefined
  /** What was said before the first line, and not in one. */
  readonly remembered?: string | undefined
  /** What a line may be completed to. */
  readonly complete?: ((line: string) => ReadonlyArray<string>) | undefined
}

export interface Service {
  /** Whether what was written can be drawn again in place. */
  readonly isLive: boolean
  readonly colour: boolean
  /** Whether a person is at the other end, and no pipe. */
  readonly isInteractive: boolean
  readonly size: Effect.Effect<Size>
  readonly write: (text: string) => Effect.Effect<void>
  readonly readLine: (prompt: Prompt) => Effect.Effect<Input>
  /** Waits for a Ctrl-C that no `readLine` has taken. */
  readonly interrupt: Effect.Effect<void>
  /** What was typed while nobody asked. */
  readonly typed: Effect.Effect<string>
}

export class Terminal extends Context.Tag("@allm/cli/internal/terminal/terminal")<Terminal, Service>() {}

/** How lines are cut and coloured. The last column stays free: some terminals break the line when it is filled. */
export const lineOptions = (terminal: Service): Effect.Effect<Style.LineOptions> =>
  Effect.map(terminal.size, ({ columns }) => ({
    width: terminal.isLive ? Math.max(1, columns - 1) : Infinity,
    colour: terminal.colour
  }))

/** A paragraph, in as many lines as it needs. */
export interface Paragraph {
  readonly text: string
  readonly style?: Style.Style | undefined
  /** How far to the right it stands. */
  readonly indent?: number | undefined
  /** What its first line begins with. */
  readonly lead?: Style.Piece | undefined
  /** What stands in a column of its own before it. */
  readonly label?: string | undefined
}

export const paragraphLines = (paragraph: Paragraph, options: Style.LineOptions): ReadonlyArray<string> => {
  const { colour, width } = options
  const { indent = 0, label, lead = { text: "" }, style, text } = paragraph
  if (label !== undefined) return labelled(label, paragraph, options)
  const margin = " ".repeat(indent < width / 2 ? indent : 0)
  return Style.wrap(lead.text + text, width - margin.length).map((line, index) => {
    const head = index === 0 ? line.slice(0, lead.text.length) : ""
    return line === ""
      ? ""
      : margin + Style.paint(head, lead.style, colour) + Style.paint(line.slice(head.length), style, colour)
  })
}

/** Where there is no room for two columns, the label stands above. */
const labelled = (
  label: string,
  { indent = 0, style, text }: Paragraph,
  { colour, width }: Style.LineOptions
): ReadonlyArray<string> => {
  const column = indent + Style.widthOf(label) + 2
  if (column >= width / 2) {
    const above = label.trim() === "" ? [] : [Style.paint(Style.cut(label, width), "bold", colour)]
    return [...above, ...paragraphLines({ text, style }, { colour, width })]
  }
  const head = `${" ".repeat(indent)}${Style.paint(label, "bold", colour)}  `
  return paragraphLines({ text, style }, { colour, width: width - column })
    .map((line, index) => (index === 0 ? head : " ".repeat(column)) + line)
}

/** Writes paragraphs below each other; a text alone is one without a style. */
export const say = (...paragraphs: ReadonlyArray<Paragraph | string>): Effect.Effect<void, never, Terminal> =>
  Effect.flatMap(Terminal, (terminal) =>
    Effect.flatMap(lineOptions(terminal), (options) =>
      terminal.write(
        paragraphs
          .flatMap((one) => paragraphLines(typeof one === "string" ? { text: one } : one, options))
          .map((line) => `${line}\n`)
          .join("")
      )))

/** A thing said in passing. */
export const dim = (text: string): Paragraph => ({ text, style: "dim" })
