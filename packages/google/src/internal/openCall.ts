/**
 * A function call as it comes: whole, or its arguments bit by bit, each with the path of the value it belongs to.
 */
import { ToolCall } from "@allm/core"
import { listOf, objectOf, textOf, type Wire } from "./wire.ts"

type Container = { [key: string]: unknown } | Array<unknown>

export class OpenCall {
  readonly id: string
  readonly name: string
  /** The whole of the arguments. */
  private given: Wire | string | undefined
  /** The arguments put together from their bits. */
  private built: { [key: string]: unknown } | undefined
  /** The path of a text of which more comes. */
  private unfinished: string | undefined
  private isBroken = false

  constructor(id: string, name: string) {
    this.id = id
    this.name = name
  }

  add(wire: Wire): void {
    const { args } = wire
    if (args !== undefined) this.given = textOf(args) ?? objectOf(args)
    for (const bit of listOf(wire["partialArgs"])) {
      // A bit that has no place would be a value that is silently missing.
      if (!this.put(objectOf(bit))) this.isBroken = true
    }
  }

  /** The call. Of one that was cut off nothing is guessed: its arguments stay text that cannot be read. */
  close(isWhole: boolean): ToolCall.ToolCall {
    const { id, name } = this
    const rawArguments = this.raw()
    return isWhole && !this.isBroken
      ? ToolCall.fromRaw({ id, name, rawArguments })
      : ToolCall.fromRaw({ id, name, rawArguments: rawArguments.replace(/\}?$/, ",") })
  }

  private raw(): string {
    const { built, given } = this
    if (typeof given === "string") return given
    return JSON.stringify(built === undefined ? given ?? {} : { ...given, ...built }, unbounded)
  }

  private put(bit: Wire | undefined): boolean {
    const path = textOf(bit?.["jsonPath"])
    const keys = path === undefined ? undefined : keysOf(path)
    if (bit === undefined || path === undefined || keys === undefined) return false
    const holder = this.holderOf(keys)
    const last = keys[keys.length - 1]!
    if (holder === undefined || !fits(holder, last)) return false
    const target = holder as { [key: string | number]: unknown }
    const value = valueOf(bit)
    const goesOn = typeof value === "string" && this.unfinished === path && typeof target[last] === "string"
    target[last] = goesOn ? `${target[last] as string}${value}` : value
    this.unfinished = bit["willContinue"] === true ? path : undefined
    return value !== undefined
  }

  /** What holds the value of a path, made where it is missing. */
  private holderOf(keys: ReadonlyArray<string | number>): Container | undefined {
    let holder: Container = this.built ??= bare()
    for (let i = 0; i < keys.length - 1; i++) {
      const key = keys[i]!
      if (!fits(holder, key)) return undefined
      const known = holder as { [key: string | number]: unknown }
      const next: unknown = known[key] ??= typeof keys[i + 1] === "number" ? [] : bare()
      if (typeof next !== "object" || next === null) return undefined
      holder = next as Container
    }
    return holder
  }
}

// Without a prototype, so that every name is a name.
const bare = (): { [key: string]: unknown } => Object.create(null) as { [key: string]: unknown }

/** Lists grow by one: an index far beyond the end is no place. */
const fits = (holder: Container, key: string | number): boolean =>
  Array.isArray(holder) ? typeof key === "number" && key <= holder.length : typeof key === "string"

const valueOf = (bit: Wire): unknown =>
  bit["stringValue"] ?? bit["numberValue"] ?? bit["boolValue"] ?? ("nullValue" in bit ? null : undefined)

const step = /\.([^.[\]]+)|\[(\d+)\]|\[(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]/gy

/** The names and indices of a path such as `$.places[0]['the name']`. */
const keysOf = (path: string): ReadonlyArray<string | number> | undefined => {
  if (!path.startsWith("$")) return undefined
  const keys: Array<string | number> = []
  step.lastIndex = 1
  while (step.lastIndex < path.length) {
    const [, name, index, single, double] = step.exec(path) ?? []
    if (index !== undefined) keys.push(Number(index))
    else if (name !== undefined) keys.push(name)
    else {
      const quoted = single ?? double
      if (quoted === undefined) return undefined
      keys.push(quoted.replaceAll(/\\(.)/g, "$1"))
    }
  }
  return keys.length === 0 ? undefined : keys
}

// What JSON.parse reads as infinite, such as 1e999, is no number: it must not become null in silence.
const unbounded = (_key: string, value: unknown): unknown =>
  typeof value === "number" && !Number.isFinite(value) ? `${value}` : value
