/**
 * The embedded model: scripted by rules, it needs no key and no network. It answers from what its tools really told it.
 */
import type { Adapter } from "@allm/core/Adapter"
import * as Fake from "@allm/core/Fake"
import * as Message from "@allm/core/Message"
import type { Request } from "@allm/core/Request"
import type * as Layer from "effect/Layer"
import { failureOf, sentence, type Told } from "./answers.ts"
import { allWishes } from "./named.ts"
import type { Wish } from "./rules.ts"

/** Provides the embedded model. */
export const layer: Layer.Layer<Adapter> = Fake.layer({
  name: "demo",
  delay: "25 millis",
  respond: (request) => respond(request)
})

/** What the model does when it is asked: calls tools, corrects a call that failed, or answers. */
export const respond = (request: Request): Fake.Script => {
  const { asked, told, turns } = readThread(request.messages)
  const known = new Set(request.tools.map(({ name }) => name))
  const next = turns === 0
    ? { thought: undefined, wishes: allWishes(asked, [...known], toolNames) }
    : { thought: "One of them can be asked better.", wishes: turns > mostCorrections ? [] : corrections(told) }
  const possible = next.wishes.filter(({ name }) => known.has(name))
  if (possible.length > 0) return calling(request, possible, next.thought)
  return turns === 0 ? answering(request, withoutTools(asked, known, next.wishes)) : concluding(request, told)
}

/** The tools that the rules know. */
const toolNames: ReadonlySet<string> = new Set([
  "clock",
  "calculator",
  "list_files",
  "read_file",
  "write_note",
  "slow",
  "stubborn",
  "flaky",
  "broken",
  "ask_person",
  "flip_coin"
])

interface Read {
  /** What the person said last. */
  readonly asked: string
  /** The calls made since, and what they came to. */
  readonly told: ReadonlyArray<Told>
  /** How often tools were called since. */
  readonly turns: number
}

const isQuestion = (message: Message.Message | undefined): boolean =>
  message?.role === "assistant" && message.metadata["askUser"] === true

const lastUser = (messages: ReadonlyArray<Message.Message>): number =>
  messages.map(({ role }) => role).lastIndexOf("user")

const readThread = (messages: ReadonlyArray<Message.Message>): Read => {
  const last = lastUser(messages)
  const said = messages[last]
  const asked = said === undefined ? "" : Message.toText(said)
  // An answer in words, not as the result of the call that asked.
  if (isQuestion(messages[last - 1]) && last === messages.length - 1) {
    const told = { id: "", name: "ask_person", arguments: {}, content: asked, isError: false }
    return {
      asked,
      told: [...toldIn(messages.slice(0, last)).filter(({ name }) => name !== "ask_person"), told],
      turns: 1
    }
  }
  const since = messages.slice(last + 1)
  return {
    asked,
    told: toldIn(since),
    turns: since.filter((message) => message.role === "assistant" && message.toolCalls.length > 0).length
  }
}

/** The calls of the last turns that called tools, in the order they were made. */
const toldIn = (messages: ReadonlyArray<Message.Message>): ReadonlyArray<Told> => {
  const begin = lastUser(messages) + 1
  const results = new Map(messages.flatMap((message) => message.role === "tool" ? [[message.toolCallId, message]] : []))
  return messages.slice(begin).flatMap((message) => message.role !== "assistant" ? [] : message.toolCalls).flatMap(
    (call) => {
      const result = results.get(call.id)
      return result === undefined
        ? []
        : [{
          id: call.id,
          name: call.name,
          arguments: call.arguments,
          content: result.content,
          isError: result.isError
        }]
    }
  )
}

const mostCorrections = 2

/** What failed in a way that says how to do better. */
const corrections = (told: ReadonlyArray<Told>): ReadonlyArray<Wish> =>
  told.flatMap((one) => isCorrected(one, told) ? [] : correctionOf(one) ?? [])

/** A call that has been made again since, in another way. */
const isCorrected = (one: Told, told: ReadonlyArray<Told>): boolean => {
  const wish = correctionOf(one)
  return wish === undefined ||
    told.some(({ arguments: args, name }) =>
      name === wish.name && JSON.stringify(args) === JSON.stringify(wish.arguments)
    )
}

const correctionOf = (told: Told): Wish | undefined => {
  const failure = failureOf(told)
  const [near] = Array.isArray(failure["nearest"]) ? failure["nearest"].filter((name) => typeof name === "string") : []
  if (told.name === "clock" && near !== undefined) return { name: "clock", arguments: { zone: near } }
  if (told.name === "read_file" && near !== undefined) return { name: "read_file", arguments: { path: near } }
  if (told.name === "read_file" && failure["reason"] === "wrong_kind" && /list_files/.test(String(failure["detail"]))) {
    return { name: "list_files", arguments: { path: failure["path"] } }
  }
  if (told.name === "calculator" && /^expected "\)"|^"\)" is missing/.test(String(failure["detail"]))) {
    return { name: "calculator", arguments: { expression: `${String(failure["expression"])})` } }
  }
  return undefined
}

// --- saying it ------------------------------------------------------------------------------------------------------------

const words = (entry: (text: string) => Fake.Entry, text: string): ReadonlyArray<Fake.Entry> =>
  (text.match(/\S+\s*|\s+/gu) ?? []).map((word) => entry(word))

/** A call whose arguments come in pieces, cut between characters. */
const called = (id: string, wish: Wish): ReadonlyArray<Fake.Entry> =>
  (JSON.stringify(wish.arguments).match(/[^]{1,6}/gu) ?? []).map((delta, index) =>
    Fake.toolCallDelta({ id, delta, ...(index === 0 ? { name: wish.name } : {}) })
  )

// About four characters make a token.
const tokens = (text: string): number => Math.ceil(text.length / 4)

const ending = (request: Request, said: string, reason: "tool_calls" | "stop"): ReadonlyArray<Fake.Entry> => [
  Fake.usage({ inputTokens: tokens(JSON.stringify(request.messages)), outputTokens: tokens(said) }),
  Fake.finish(reason)
]

const calling = (request: Request, wishes: ReadonlyArray<Wish>, why: string | undefined): Fake.Script => {
  const thought = why ?? thoughtAbout(wishes)
  const text = wishes.length > 1
    ? `I will do ${wishes.length} things at once. `
    : `Let me ask \`${wishes[0]!.name}\`. `
  return [
    ...words(Fake.reasoning, `${thought} `),
    ...words(Fake.text, text),
    ...wishes.flatMap((wish, index) => called(`call_${request.messages.length}_${index}`, wish)),
    ...ending(request, thought + text + JSON.stringify(wishes), "tool_calls")
  ]
}

const thoughtAbout = (wishes: ReadonlyArray<Wish>): string => {
  const known = [...new Set(wishes.map(({ name }) => name))]
  return wishes.length === 1
    ? `I cannot know this by myself; ${known[0]} can.`
    : `These do not depend on one another: ${known.join(", ")}. All of them at the same time, then.`
}

const answering = (request: Request, text: string): Fake.Script => [
  ...words(Fake.text, text),
  ...ending(request, text, "stop")
]

/** What came of all of it: what was corrected since is not told. */
const concluding = (request: Request, told: ReadonlyArray<Told>): Fake.Script => {
  const counted = told.filter((one) => correctionOf(one) === undefined || !isCorrected(one, told))
  const failed = counted.filter(({ isError }) => isError).length
  const thought = failed === 0
    ? "Everything is here."
    : `${failed} of ${counted.length} failed. I say so, and use the rest.`
  const text = counted.map((one) => sentence(one)).join("\n")
  return [
    ...(counted.length > 1 ? words(Fake.reasoning, `${thought} `) : []),
    ...words(Fake.text, text === "" ? "Nothing came of it." : text),
    ...ending(request, text, "stop")
  ]
}

/** An answer in words alone, which is honest about who speaks. */
const withoutTools = (asked: string, known: ReadonlySet<string>, wishes: ReadonlyArray<Wish>): string => {
  const [wish] = wishes
  if (wish !== undefined) {
    return `I would call \`${wish.name}\` for that, but this agent has no such tool. ${introduction(known)}`
  }
  if (/^\W*(?:thanks?|thank you|danke|merci|great|ok(?:ay)?|cool)\b/iu.test(asked)) return "You are welcome."
  const greeting = /^\W*(?:hello|hi|hey|hallo|good (?:morning|evening|day))\b/iu.test(asked) ? "Hello! " : ""
  const isHelp = greeting !== "" || /\b(?:help|what can you|who are you|what are you|how do)\b/iu.test(asked)
  return `${isHelp ? greeting : "I do not understand that. "}${introduction(known)}`
}

const introduction = (known: ReadonlySet<string>): string =>
  `I am a scripted model: I follow a few rules and know nothing about the world. ${abilities(known)} ` +
  "For a real model, set OPENAI_API_KEY, ANTHROPIC_API_KEY or GOOGLE_API_KEY, or write --model provider/name."

const abilities = (known: ReadonlySet<string>): string => {
  const lines = [
    ["clock", "the time in a city"],
    ["calculator", "a sum such as 2 * (3 + 4)^2"],
    ["read_file", "what is in a file here"],
    ["write_note", "to write a note"],
    ["ask_person", "to ask you something"],
    ["slow", "to try the slow, stubborn, flaky or broken tool"]
  ].flatMap(([name, words]) => known.has(name!) ? [words!] : [])
  const others = [...known].filter((name) => !toolNames.has(name))
  return [
    ...(lines.length === 0 ? [] : [`Ask me for ${lines.join(", ")}.`]),
    ...(others.length === 0 ? [] : [`Call a tool by its name, with its arguments as JSON: ${others.join(", ")}.`]),
    ...(known.size === 0 ? ["This agent has no tools."] : [])
  ].join(" ")
}
