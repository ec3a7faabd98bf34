/**
 * Tools that are called by their name, with the arguments as JSON: so one can try the tools of an agent without a model.
 */
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { type Wish, wishesIn } from "./rules.ts"

const parse = Schema.decodeUnknownOption(Schema.parseJson())

/** The JSON object a text begins with: up to the last brace that makes it one. */
const objectAt = (text: string): { readonly length: number; readonly value: object } | undefined => {
  const start = /^\s*(?=\{)/.exec(text)?.[0].length
  if (start === undefined) return undefined
  for (let end = text.indexOf("}", start); end >= 0; end = text.indexOf("}", end + 1)) {
    const value = Option.getOrUndefined(parse(text.slice(start, end + 1)))
    if (Predicate.isRecord(value)) return { length: end + 1, value }
  }
  return undefined
}

const escaped = (name: string): string => name.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")

/**
 * What a sentence asks for when these tools are there. A tool that the rules know is called by its name only when arguments
 * follow: its name may be any word.
 */
export const allWishes = (
  text: string,
  tools: ReadonlyArray<string>,
  known: ReadonlySet<string>
): ReadonlyArray<Wish> => {
  const wishes: Array<Wish> = []
  let rest = text
  for (const name of tools) {
    const match = new RegExp(`(?<![\\p{L}\\p{N}_-])${escaped(name)}(?![\\p{L}\\p{N}_-])`, "u").exec(rest)
    if (match === null) continue
    const end = match.index + name.length
    const given = objectAt(rest.slice(end))
    if (given === undefined && known.has(name)) continue
    wishes.push({ name, arguments: { ...given?.value } })
    rest = `${rest.slice(0, match.index)} ${rest.slice(end + (given?.length ?? 0))}`
  }
  return [...wishes, ...wishesIn(rest)]
}
