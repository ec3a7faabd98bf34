/**
 * Pages of help, made of what the commands say of themselves: short enough to be read, and no wider than the window.
 */
import * as CliConfig from "@effect/cli/CliConfig"
import * as Descriptor from "@effect/cli/CommandDescriptor"
import * as HelpDoc from "@effect/cli/HelpDoc"
import type { Span } from "@effect/cli/HelpDoc/Span"
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"
import type * as Style from "./terminal/style.ts"
import { dim, type Paragraph, paragraphLines } from "./terminal/terminal.ts"

type Command = Descriptor.Command<unknown>

/** A command, the words that lead to it, and the commands below it. */
export interface Place {
  readonly words: ReadonlyArray<string>
  readonly command: Command
  readonly below: ReadonlyArray<readonly [name: string, command: Command]>
}

/** The command of this name, with the commands below it in their order. */
export const root = (name: string, command: Command, below: ReadonlyArray<Command>): Place => ({
  words: [name],
  command,
  below: below.flatMap((one) => [...Descriptor.getNames(one)].map((name) => [name, one] as const))
})

/** The command whose page is asked for: with `--help`, with `help`, or by saying nothing at all. */
export const asked = (root: Place, words: ReadonlyArray<string>): Option.Option<Place> => {
  const end = words.indexOf("--")
  const read = end < 0 ? words : words.slice(0, end)
  const isAsked = words.length === 0 || words[0] === "help" || read.some((word) => word === "--help" || word === "-h")
  return isAsked ? Option.some(read.reduce(into, root)) : Option.none()
}

const into = (place: Place, word: string): Place => {
  const [, command] = place.below.find(([name]) => name === word) ?? []
  return command === undefined ? place : { words: [...place.words, word], command, below: belowOf(command) }
}

const belowOf = (command: Command): Place["below"] => {
  const order = (helpOf(command).get("COMMANDS") ?? []).map(({ text }) => text.split(" ")[0])
  return order.length === 0
    ? []
    : [...HashMap.entries(Descriptor.getSubcommands(command))]
      .sort(([one], [other]) => order.indexOf(one) - order.indexOf(other))
}

/** The page of a command. */
export const page = (place: Place, options: Style.LineOptions): string => {
  const { command, words } = place
  const sections = helpOf(command)
  const below = place.below.map(([name, command]) => ({
    name,
    text: helpOf(command).get("DESCRIPTION")?.[0]?.text ?? ""
  }))
  const args = (sections.get("ARGUMENTS") ?? []).map((entry) => ({ ...entry, name: argument(entry) }))
  const own = (sections.get("OPTIONS") ?? []).map((entry) => ({ ...entry, name: withoutParentheses(entry.name) }))
  const isRoot = words.length === 1
  const usage = [
    words.join(" "),
    ...(below.length > 0 ? [isRoot ? "<command>" : "[command]"] : []),
    ...(own.length > 0 || isRoot ? ["[options]"] : []),
    ...args.map(({ name }) => name)
  ]
  return [
    { text: usage.join(" "), style: "bold" as const },
    { text: "" },
    ...(sections.get("DESCRIPTION") ?? []).map(({ text }) => ({ text })),
    ...table("Commands", below),
    ...table("Arguments", args),
    ...table("Options", isRoot ? general : own),
    ...(isRoot ? [{ text: "" }, ...more] : [])
  ].flatMap((paragraph) => paragraphLines(paragraph, options)).join("\n")
}

const general: ReadonlyArray<Entry> = [
  { name: "--help", text: "Shows this; after a command, what it takes: allm chat --help" },
  { name: "--version", text: "Shows the version." },
  { name: "--completions shell", text: "Writes a script that completes words, for sh, bash, fish or zsh." }
]

const more: ReadonlyArray<Paragraph> = [
  dim("Exit codes: 0 done, 1 failed, 2 wrong use, 3 waits for a person, 130 interrupted."),
  dim("NO_COLOR leaves the colours out; ALLM_MODEL and ALLM_HOME stand in for --model and --home.")
]

// --- what commands say ----------------------------------------------------------------------------------------------------

interface Entry {
  readonly name: string
  readonly text: string
  readonly isOptional?: boolean
}

const optional = /may be repeated zero or more times|is optional/

const helpOf = (command: Command): ReadonlyMap<string, ReadonlyArray<Entry>> =>
  sectionsOf(Descriptor.getHelp(command, CliConfig.make({ showBuiltIns: false })))

/** The entries below each heading; a paragraph is an entry without a name. */
const sectionsOf = (doc: HelpDoc.HelpDoc): ReadonlyMap<string, ReadonlyArray<Entry>> => {
  const sections = new Map<string, Array<Entry>>()
  let section: Array<Entry> = []
  const read = (doc: HelpDoc.HelpDoc): void => {
    switch (doc._tag) {
      case "Sequence":
        read(doc.left)
        read(doc.right)
        break
      case "Header":
        section = []
        sections.set(textOf(doc.value), section)
        break
      case "Paragraph":
        section.push({ name: "", text: textOf(doc.value) })
        break
      case "DescriptionList":
        for (const [name, about] of doc.definitions) section.push(entry(textOf(name), paragraphsOf(about)))
        break
      case "Enumeration":
        for (const element of doc.elements) read(element)
    }
  }
  read(doc)
  return sections
}

// What kind of value it takes comes first, and last whether it may be left out or repeated: the name says both.
const entry = (name: string, paragraphs: ReadonlyArray<string>): Entry => ({
  name,
  text: (paragraphs.length > 1 ? paragraphs[1] : paragraphs[0]) ?? "",
  isOptional: paragraphs.some((text) => optional.test(text))
})

const paragraphsOf = (doc: HelpDoc.HelpDoc): ReadonlyArray<string> => {
  if (HelpDoc.isSequence(doc)) return [...paragraphsOf(doc.left), ...paragraphsOf(doc.right)]
  return HelpDoc.isParagraph(doc) ? [textOf(doc.value)] : []
}

const textOf = (span: Span): string =>
  span._tag === "Sequence"
    ? textOf(span.left) + textOf(span.right)
    : typeof span.value === "string"
    ? span.value
    : textOf(span.value)

const withoutParentheses = (name: string): string => name.replace(/^\((.*)\)$/, "$1")

const argument = ({ isOptional, name }: Entry): string =>
  isOptional === true ? `[${name.replace(/^\[(.*)\]$/, "$1")}]` : name

const table = (title: string, entries: ReadonlyArray<Entry>): ReadonlyArray<Paragraph> => {
  if (entries.length === 0) return []
  const widest = Math.max(...entries.map(({ name }) => name.length))
  return [
    { text: "" },
    { text: title },
    ...entries.map(({ name, text }) => ({ label: name.padEnd(widest), text, indent: 2 }))
  ]
}
