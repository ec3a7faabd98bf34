/**
 * What a line means that somebody typed: a command, or something to say.
 */
import { nearest } from "../nearest.ts"

export type Line =
  | { readonly _tag: "Empty" }
  | { readonly _tag: "Message"; readonly text: string }
  | { readonly _tag: "Command"; readonly name: Name; readonly rest: string }
  | { readonly _tag: "Unknown"; readonly name: string; readonly meant: Name | undefined }

/** What each command does. */
export const commands = {
  help: "shows this",
  tools: "lists the tools of the agent",
  save: "[title] gives the session a title; it is stored as it happens anyway",
  resume: "[id] goes on with another session, or with what this one waits for",
  new: "begins a new session",
  quit: "leaves, as Ctrl-D does"
} as const

export type Name = keyof typeof commands

export const names = Object.keys(commands) as ReadonlyArray<Name>

const isName = (text: string): text is Name => Object.hasOwn(commands, text)

/**
 * A slash and a word alone are a command. `//` begins a message with a slash, and a path such as `/etc/hosts` is one
 * anyway.
 */
export const parse = (text: string): Line => {
  const line = text.trim()
  if (line === "") return { _tag: "Empty" }
  if (line.startsWith("//")) return { _tag: "Message", text: line.slice(1) }
  const [, word, rest = ""] = /^\/([^\s/.]*)(?:\s+([\s\S]*))?$/.exec(line) ?? []
  if (word === undefined) return { _tag: "Message", text: line }
  const name = word.toLowerCase()
  if (name === "exit") return { _tag: "Command", name: "quit", rest: "" }
  return isName(name)
    ? { _tag: "Command", name, rest: rest.trim() }
    : { _tag: "Unknown", name: `/${word}`, meant: nearest(name, names)[0] as Name | undefined }
}

/** What a line that begins with a slash may become. */
export const complete = (line: string): ReadonlyArray<string> =>
  line.startsWith("/") ? names.map((name) => `/${name}`).filter((name) => name.startsWith(line)) : []
