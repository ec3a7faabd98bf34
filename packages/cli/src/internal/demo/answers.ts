/**
 * What the embedded model says about the results it was given.
 */
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"

/** A call of the model, and what it was told about it. */
export interface Told {
  readonly id: string
  readonly name: string
  readonly arguments: unknown
  readonly content: string
  readonly isError: boolean
}

const parse = Schema.decodeUnknownOption(Schema.parseJson())

const jsonOf = (content: string): unknown => Option.getOrElse(parse(content), () => content)

type Fields = { readonly [key: string]: unknown }

const fieldsOf = (value: unknown): Fields => Predicate.isReadonlyRecord(value) ? value : {}

const textOf = (value: unknown): string => typeof value === "string" ? value : value === undefined ? "" : String(value)

/** The fields of a result. */
export const resultOf = (told: Told): Fields => fieldsOf(jsonOf(told.content))

/** The fields of a failure that the tool declared, or nothing when it was told only that it failed. */
export const failureOf = (told: Told): Fields => told.isError ? fieldsOf(fieldsOf(jsonOf(told.content))["error"]) : {}

/** The failure as a text: what the tool reported, or what the executor says of it, such as what is wrong in the arguments. */
const failureText = (told: Told): string => {
  const { error, issues } = fieldsOf(jsonOf(told.content))
  if (typeof error !== "string") return textOf(fieldsOf(error)["detail"] ?? JSON.stringify(error ?? told.content))
  const problems = Array.isArray(issues) ? issues.map(fieldsOf).map(issueText) : []
  return [error, ...problems].join(": ").replace(/\s+/g, " ")
}

const issueText = ({ message, path }: Fields): string =>
  `${Array.isArray(path) && path.length > 0 ? `${path.join(".")} ` : ""}${textOf(message)}`

const cityOf = (zone: string): string => zone.slice(zone.lastIndexOf("/") + 1).replaceAll("_", " ")

const months = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December"
]

const dateInWords = (date: string): string => {
  const [year, month, day] = date.split("-").map(Number)
  return `${day} ${months[(month ?? 1) - 1]} ${year}`
}

const time = ({ date, time, weekday, zone }: Fields): string =>
  `In ${cityOf(textOf(zone))} it is ${textOf(time).slice(0, 5)} on ${textOf(weekday)}, ${dateInWords(textOf(date))}.`

const mostNames = 12

const names = ({ entries, more, path }: Fields): string => {
  const all = Array.isArray(entries) ? entries.map(fieldsOf) : []
  const where = path === "." ? "here" : `in \`${textOf(path)}\``
  if (all.length === 0) return `There is nothing ${where}.`
  const total = all.length + Number(more ?? 0)
  const shown = all.slice(0, mostNames).map(({ kind, name }) => `${textOf(name)}${kind === "directory" ? "/" : ""}`)
  const rest = total > shown.length ? ` and ${total - shown.length} more` : ""
  return `There ${total === 1 ? "is one entry" : `are ${total} entries`} ${where}: ${shown.join(", ")}${rest}.`
}

const shortText = 400
const firstLines = 3

const contents = ({ path, text }: Fields): string => {
  const whole = textOf(text).trimEnd()
  if (whole === "") return `\`${textOf(path)}\` is empty.`
  const lines = whole.split(/\r?\n/)
  const quote = (some: ReadonlyArray<string>): string => some.map((line) => `> ${line}`).join("\n")
  if (whole.length <= shortText && lines.length <= 10) return `\`${textOf(path)}\` says:\n${quote(lines)}\n`
  const first = lines.filter((line) => line.trim() !== "").slice(0, firstLines)
  return `\`${textOf(path)}\` has ${lines.length} lines. It begins:\n${quote(first)}\n`
}

const count = (number: unknown, thing: string): string => `${textOf(number)} ${thing}${number === 1 ? "" : "s"}`

/** What the tools of the embedded agent give. Those of another agent may have the same name, and give anything. */
const successes: { readonly [name: string]: { readonly has: string; readonly say: (result: Fields) => string } } = {
  clock: { has: "weekday", say: time },
  calculator: { has: "expression", say: ({ expression, result }) => `${textOf(expression)} is ${textOf(result)}.` },
  list_files: { has: "entries", say: names },
  read_file: { has: "text", say: contents },
  write_note: { has: "bytes", say: ({ bytes, path }) => `I wrote ${count(bytes, "byte")} to \`${textOf(path)}\`.` },
  slow: {
    has: "steps",
    say: ({ seconds, steps }) => `\`slow\` took ${count(seconds, "second")} for ${count(steps, "step")}.`
  },
  flaky: { has: "attempts", say: ({ attempts }) => `\`flaky\` succeeded at attempt ${textOf(attempts)}.` }
}

const succeeded = (told: Told): string => {
  if (told.name === "ask_person") return `You answered: ${answerOf(told)}.`
  if (told.name === "flip_coin") return `You say the coin shows ${answerOf(told)}.`
  const known = successes[told.name]
  const result = resultOf(told)
  return known !== undefined && known.has in result ? known.say(result) : `\`${told.name}\` says: ${told.content}`
}

const answerOf = (told: Told): string => {
  const answer = jsonOf(told.content)
  return (typeof answer === "string" ? answer : told.content).replace(/\.$/, "")
}

const failures: { readonly [name: string]: (failure: Fields, told: Told) => string } = {
  clock: ({ zone }) => `I know no time zone ${JSON.stringify(zone)}.`,
  calculator: ({ detail, expression, position }) =>
    `I could not work out ${textOf(expression)}: ${textOf(detail)}, at position ${textOf(position)}.`,
  list_files: ({ detail, path }) => `I could not list \`${textOf(path)}\`: ${textOf(detail)}.`,
  read_file: ({ detail, path }) => `I could not read \`${textOf(path)}\`: ${textOf(detail)}.`,
  write_note: ({ detail, path }) => `I could not write \`${textOf(path)}\`: ${textOf(detail)}.`
}

/** What the executor says of a call instead of its tool: `tool error (name): reason`. */
const executors: ReadonlyArray<readonly [RegExp, (name: string, text: string) => string]> = [
  [/: timeout/, (name) => `\`${name}\` never answered and was given up at its time limit.`],
  [/: handler_raised|: handler_exit/, (name) => `\`${name}\` crashed; I am not told why, only you can see that.`],
  [/: denied/, (name, text) => {
    const [, why] = /denied[^:]*:\s*(.+)$/.exec(text) ?? []
    return `You did not allow \`${name}\`${why === undefined ? "" : ` (${why})`}, so it was not run.`
  }],
  [/: outcome_unknown/, (name) => `Nobody knows whether \`${name}\` took effect.`]
]

const failed = (told: Told): string => {
  const declared = failureOf(told)
  const known = failures[told.name]
  if (known !== undefined && "detail" in declared) return known(declared, told)
  const text = failureText(told)
  const [, said] = executors.find(([pattern]) => pattern.test(text)) ?? []
  return said === undefined ? `\`${told.name}\` failed: ${text}.` : said(told.name, text)
}

/** One call in a sentence. */
export const sentence = (told: Told): string => told.isError ? failed(told) : succeeded(told)
