/**
 * What the embedded model understands: rules that find in a sentence which tools to call, and with what.
 */
import * as Calculator from "./calculator.ts"
import { places } from "./zones.ts"

/** A call somebody asked for. */
export interface Wish {
  readonly name: string
  readonly arguments: { readonly [key: string]: unknown }
}

interface Found extends Wish {
  readonly at: number
}

/** A sentence of which each rule may take what it has understood, so that no other rule reads it again. */
class Sentence {
  readonly found: Array<Found> = []
  text: string

  constructor(text: string) {
    this.text = text
  }

  add(at: number, name: string, args: { readonly [key: string]: unknown } = {}): void {
    this.found.push({ at, name, arguments: args })
  }

  take(at: number, length: number): void {
    this.text = `${this.text.slice(0, at)}${" ".repeat(length)}${this.text.slice(at + length)}`
  }

  /** Every place where the pattern fits, the last first, so that what is taken moves nothing. */
  all(pattern: RegExp): ReadonlyArray<RegExpExecArray> {
    return [...this.text.matchAll(pattern)].reverse()
  }
}

type Rule = (sentence: Sentence) => void

const quoted = /["“”«»„]([^"“”«»„]+)["“”«»„]/u

const fileName =
  /(?<![\p{L}\p{N}_./\\~-])(?:[\p{L}\p{N}_.~-]*[/\\])*(?:[\p{L}\p{N}_-][\p{L}\p{N}_.-]*\.\p{L}[\p{L}\p{N}]{0,7}|README|LICENSE|Makefile|Dockerfile)(?![\p{L}\p{N}/\\])/giu

/** What a note says: what is quoted, else up to the end of the sentence, or to where something else is asked for. */
const saidIn = (rest: string): string =>
  quoted.exec(rest)?.[0] ??
    rest.split(/[.?!](?=\s|$)|,?\s+(?:and|then)\s+(?=(?:what|how|list|read|ask|tell|show|try|then|flip)\b)/iu)[0]!

const write: Rule = (sentence) => {
  const [match] = sentence.all(/\b(?:write|save|make|leave|jot|take|create)\b[^?!\n]*?\b(?:note|file)\b([^\n]*)/giu)
  if (match === undefined) return
  const [whole, tail = ""] = match
  const [lead = ""] = /^.*?(?:\b(?:that|which|it)?\s*(?:says|saying|reading|with|containing)\b:?|:)\s*/iu.exec(tail) ??
    []
  const said = lead === "" ? "" : saidIn(tail.slice(lead.length))
  const [path] = [...`${whole.slice(0, whole.length - tail.length)}${lead === "" ? tail : lead}`.matchAll(fileName)]
  const text = said.replace(quoted, "$1").trim()
  sentence.add(match.index, "write_note", {
    path: path?.[0] ?? "note.txt",
    text: text === "" ? "This is a note." : text
  })
  const taken = lead === "" ? (path === undefined ? 0 : tail.length) : lead.length + said.length
  sentence.take(match.index, whole.length - tail.length + taken)
}

const noSubject = new Set(["something", "anything", "a question", "one", "me", ""])

const ask: Rule = (sentence) => {
  for (const match of sentence.all(/\bask\s+(?:me|us|him|her|them)\b([^?!\n]*)/giu)) {
    const [whole, rest = ""] = match
    const colon = rest.indexOf(":")
    const subject = (colon < 0 ? rest : rest.slice(0, colon)).split(/,?\s+and\s+/iu)[0]!
    const choices = colon < 0 ? [] : choicesIn(rest.slice(colon + 1))
    const about = subject.replace(/^\s*(?:about|for)\b/iu, "").replace(/[.,\s]+$/u, "").trim()
    const isOpen = noSubject.has(about.toLowerCase())
    sentence.add(match.index, "ask_person", {
      question: isOpen ? "What would you like to see next?" : `${about[0]!.toUpperCase()}${about.slice(1)}?`,
      choices: choices.length > 0 ? choices : isOpen ? ["the time", "a sum", "the files here"] : ["yes", "no"]
    })
    sentence.take(match.index, choices.length > 0 ? whole.length : whole.length - rest.length + subject.length)
  }
}

const choicesIn = (list: string): ReadonlyArray<string> =>
  list.split(/,|;|\bor\b/iu).map((choice) => choice.replace(/[.\s]+$/u, "").trim()).filter((choice) => choice !== "")

const outside = /(?<![\p{L}\p{N}_.])(?:\.{2}(?:[/\\][^\s?!,;"]*)?|[/~\\][^\s?!,;"*()\d][^\s?!,;"]*)/gu

/** Reading, also of what may not be read: the tool says so, not the model. */
const read: Rule = (sentence) => {
  const isReading =
    /\b(?:read|open|cat|print|show|says?|content|contents|what(?:'s|’s|\s+is)?|in|summari[sz]e|look)\b/iu
  if (!isReading.test(sentence.text)) return
  const isListing = /\b(?:list|ls|files|directory|folder)\b/iu.test(sentence.text)
  for (const match of sentence.all(fileName)) {
    sentence.add(match.index, "read_file", { path: match[0] })
    sentence.take(match.index, match[0].length)
  }
  for (const match of sentence.all(outside)) {
    const path = match[0].replace(/[.:]+$/u, (dots) => dots.startsWith("..") ? ".." : "") || ".."
    sentence.add(match.index, isListing ? "list_files" : "read_file", { path })
    sentence.take(match.index, match[0].length)
  }
}

const list: Rule = (sentence) => {
  const pattern =
    /\b(?:list|ls|dir|directory|director(?:y|ies)|folders?|files)\b(?:[^.?!,;\n]*?\b(?:in|of|below|under)\s+(?:the\s+)?([\p{L}\p{N}_.-]+(?:\/[\p{L}\p{N}_.-]*)*))?/giu
  const found = sentence.all(pattern)
  const named = found.map(([, path]) => path).find((path) => path !== undefined && !here.has(path.toLowerCase()))
  const [last] = found
  // Where it leads out, it has been found already.
  if (last === undefined || sentence.found.some(({ name }) => name === "list_files")) return
  sentence.add(found.at(-1)!.index, "list_files", named === undefined ? {} : { path: named.replace(/[.]+$/u, "") })
  for (const match of found) sentence.take(match.index, match[0].length)
}

const here = new Set(["this", "here", "it", "current", "working", "directory", "folder", "all", "which", "my", "your"])

const capitalized = /^\p{Lu}[\p{L}'_/-]*(?:\s\p{Lu}[\p{L}'_/-]*)*$/u
const noPlace = new Set([
  "the",
  "this",
  "that",
  "my",
  "your",
  "a",
  "an",
  "which",
  "what",
  "here",
  "now",
  "all",
  "words",
  "me"
])

const time: Rule = (sentence) => {
  const asked = /\b(?:time|clock|o['’]clock|date|today|weekday|day\s+is\s+it|hour)\b/iu.exec(sentence.text)
  if (asked === null) return
  const before = sentence.found.length
  const zones = new Set<string>()
  const add = (at: number, zone: string): void => {
    if (!zones.has(zone)) sentence.add(at, "clock", { zone })
    zones.add(zone)
  }
  for (const { at, zone } of placesIn(sentence.text)) add(at, zone)
  // The place next to "in" is asked for, known or not.
  for (const match of sentence.all(/\b(?:in|at|for)\s+([^.?!;:\n]+)/giu)) {
    for (const part of match[1]!.split(/,|\s+(?:and|or)\s+|&/iu)) {
      const name = part.trim()
      if (name === "" || placesIn(name).length > 0) continue
      const isSingle = /^\p{L}[\p{L}'_/-]*$/u.test(name) && !noPlace.has(name.toLowerCase())
      if (!capitalized.test(name) && !(isSingle && zones.size === 0)) break
      add(sentence.text.indexOf(name, match.index), name.replaceAll(" ", "_"))
    }
  }
  if (sentence.found.length === before) sentence.add(asked.index, "clock")
}

const longestPlace = 3

const placesIn = (text: string): ReadonlyArray<{ readonly at: number; readonly zone: string }> => {
  const words = [...text.matchAll(/[\p{L}\p{M}_/+-]+/gu)]
  const found: Array<{ at: number; zone: string }> = []
  for (let first = 0; first < words.length; first++) {
    for (let count = Math.min(longestPlace, words.length - first); count > 0; count--) {
      const name = words.slice(first, first + count).map(([word]) => word).join(" ").toLowerCase()
      const zone = places.get(name)
      if (zone === undefined) continue
      found.push({ at: words[first]!.index, zone })
      first += count - 1
      break
    }
  }
  return found
}

// Words that stand for a sign, the longest first.
const spoken: ReadonlyArray<readonly [RegExp, string]> = [
  [/\b(?:percent|per\s+cent)\s+of\b|%\s*of\b/giu, " / 100 * "],
  [/\b(?:to\s+the\s+power\s+of)\b/giu, "^"],
  [/\b(?:multiplied\s+by|times)\b/giu, "*"],
  [/\bdivided\s+by\b/giu, "/"],
  [/\bplus\b/giu, "+"],
  [/\bminus\b/giu, "-"],
  [/\bmod(?:ulo)?\b/giu, "%"],
  [/\bsquared\b/giu, "^2"],
  [/\bcubed\b/giu, "^3"],
  [/\b(?:the\s+)?square\s+root\s+of\s+(\d+(?:\.\d+)?)/giu, "sqrt($1)"],
  [/(?<=\d)\s*x\s*(?=\d)/giu, " * "]
]

const piece = `\\d[\\d_]*(?:\\.\\d+)?(?:e[+-]?\\d+)?|\\.\\d+|\\*\\*|[-+*/%^(),×÷·−]|(?:${
  Calculator.names.join("|")
})(?![\\p{L}\\d])|\\s+`
const expression = new RegExp(`(?<![\\p{L}\\d_.:])(?:${piece})+(?![\\p{L}_:])`, "giu")

const calculate: Rule = (sentence) => {
  // Signs take the place of words of the same length, so that every other place stays where it is.
  const text = spoken.reduce(
    (text, [pattern, sign]) =>
      text.replace(
        pattern,
        (whole: string, ...groups: ReadonlyArray<unknown>) =>
          (typeof groups[0] === "string" ? sign.replace("$1", groups[0]) : sign).padEnd(whole.length)
      ),
    sentence.text
  )
  for (const match of text.matchAll(expression)) {
    const trimmed = match[0].replace(/^[\s,+*/%^)×÷·]+/u, "").replace(/[\s,−-]+$/u, "").replaceAll(/\s+/g, " ")
    const isDate = /^\d{4}-\d\d(-\d\d)?$/u.test(trimmed)
    const hasWork = /\d\s*[)%]*\s*(?:[-+*/%^×÷·−]|\*\*)|[\p{L}]\s*\(|^-?\(.*[-+*/%^×÷·−]|(?:pi|π|tau)\b\s*[-+*/^]/iu
      .test(trimmed)
    if (isDate || !hasWork || !/\d|pi|π|tau/iu.test(trimmed)) continue
    const grouped = /\p{L}/u.test(trimmed) ? trimmed : trimmed.replaceAll(/(?<=\d),(?=\d{3}(?!\d))/gu, "")
    sentence.add(match.index, "calculator", { expression: grouped })
  }
}

const named = (name: string, pattern: RegExp): Rule => (sentence) => {
  const match = pattern.exec(sentence.text)
  if (match !== null) sentence.add(match.index, name)
}

const everything: Rule = (sentence) => {
  if (
    !/\b(?:try|do|use|call|run|show)\b[^.?!]*\b(?:everything|all\s+(?:of\s+)?(?:it|them|the\s+tools|your\s+tools|tools))\b/iu
      .test(sentence.text)
  ) return
  const wishes: ReadonlyArray<Wish> = [
    { name: "clock", arguments: { zone: "Asia/Tokyo" } },
    { name: "calculator", arguments: { expression: "2 * (3 + 4)^2" } },
    { name: "list_files", arguments: {} },
    { name: "slow", arguments: {} },
    { name: "stubborn", arguments: {} },
    { name: "flaky", arguments: {} },
    { name: "broken", arguments: {} },
    { name: "ask_person", arguments: { question: "Was that everything?", choices: ["yes", "no"] } },
    { name: "write_note", arguments: { path: "note.txt", text: "All of it was tried at once." } }
  ]
  for (const wish of wishes) sentence.add(0, wish.name, wish.arguments)
  sentence.text = ""
}

// What takes a part of the sentence away comes before what looks for single words.
const rules: ReadonlyArray<Rule> = [
  everything,
  write,
  ask,
  read,
  list,
  time,
  calculate,
  named("slow", /\b(?:slow|progress)\b/iu),
  named("stubborn", /\b(?:stubborn|time[sd]?[\s-]?out|never\s+answers?|hangs?)\b/iu),
  named("flaky", /\b(?:flaky|retr(?:y|ies))\b/iu),
  named("broken", /\b(?:broken|crash(?:es)?|break)\b/iu),
  named("flip_coin", /\b(?:coin|heads\s+or\s+tails)\b/iu)
]

const mostWishes = 12

/** What a sentence asks for, in its order, each thing once. */
export const wishesIn = (text: string): ReadonlyArray<Wish> => {
  const sentence = new Sentence(text.normalize("NFC").slice(0, 4000))
  for (const rule of rules) rule(sentence)
  const wishes = new Map<string, Wish>()
  for (const { arguments: args, name } of [...sentence.found].sort((one, other) => one.at - other.at)) {
    wishes.set(`${name} ${JSON.stringify(args)}`, { name, arguments: args })
  }
  return [...wishes.values()].slice(0, mostWishes)
}
