/**
 * What is JSON, how large it is, and how everything else becomes JSON.
 */
import * as Arbitrary from "effect/Arbitrary"
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"

export type Path = ReadonlyArray<PropertyKey>

const identifier = /^[A-Za-z_$][\w$]*$/

/** Renders a path the way a JavaScript reader writes it: `$.items[2].total`. */
export const formatPath = (path: Path): string =>
  path.reduce<string>(
    (out, key) =>
      typeof key === "number"
        ? `${out}[${key}]`
        : identifier.test(String(key))
        ? `${out}.${String(key)}`
        : `${out}[${JSON.stringify(String(key))}]`,
    "$"
  )

/** Names a value's kind in a sentence: `an array`, `a bigint`, `a Date`. */
export const describe = (value: unknown): string => {
  if (value === null) return "null"
  if (value === undefined) return "undefined"
  return typeof value === "object" ? describeObject(value) : `${article(typeof value)} ${typeof value}`
}

const describeObject = (value: object): string => {
  try {
    if (Array.isArray(value)) return "an array"
    const name = Object.getPrototypeOf(value)?.constructor?.name
    return typeof name === "string" && name !== "" && name !== "Object" ? `${article(name)} ${name}` : "an object"
  } catch {
    // A revoked proxy does not even tell what it is.
    return "an object"
  }
}

const article = (noun: string): string => /^[aeiou]/i.test(noun) ? "an" : "a"

/** Shows a rejected value in a message, cut so that a huge one cannot flood a log. */
export const show = (value: unknown): string => {
  if (typeof value === "string") return cut(JSON.stringify(value))
  if (typeof value === "number" || typeof value === "boolean" || typeof value === "bigint") return String(value)
  if (typeof value === "function") return `a function with ${value.length} parameter${value.length === 1 ? "" : "s"}`
  return describe(value)
}

const cut = (text: string): string => text.length > 80 ? `${text.slice(0, 77)}...` : text

export const isPlainObject = (value: unknown): value is Record<string, unknown> => {
  if (typeof value !== "object" || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}

// Deeper than any result a model could use, and far from the engine's own recursion limit.
const maxDepth = 1_000

/** Where and why a value is not JSON. */
export class NotJson {
  readonly path: Path
  readonly problem: string
  constructor(path: Path, problem: string) {
    this.path = path
    this.problem = problem
  }
}

/** The first part of a value that JSON would lose, or `undefined` when it is JSON through and through. */
export const findNonJson = (value: unknown): NotJson | undefined =>
  isJsonAtAGlance(value) ? undefined : check(value, [], new Set())

const check = (value: unknown, path: Array<PropertyKey>, ancestors: Set<object>): NotJson | undefined => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return undefined
    case "number":
      return Number.isFinite(value) ? undefined : new NotJson([...path], `${value} is not a JSON number`)
    case "object": {
      if (value === null) return undefined
      if (ancestors.has(value)) return new NotJson([...path], "it contains itself")
      if (ancestors.size >= maxDepth) return new NotJson([...path], `it is nested deeper than ${maxDepth} levels`)
      ancestors.add(value)
      const found = Array.isArray(value) ? checkArray(value, path, ancestors) : checkObject(value, path, ancestors)
      ancestors.delete(value)
      return found
    }
    default:
      return new NotJson([...path], `${describe(value)} is not JSON`)
  }
}

const checkArray = (
  value: ReadonlyArray<unknown>,
  path: Array<PropertyKey>,
  ancestors: Set<object>
): NotJson | undefined => {
  for (let i = 0; i < value.length; i++) {
    path.push(i)
    const found = check(value[i], path, ancestors)
    path.pop()
    if (found !== undefined) return found
  }
}

const checkObject = (value: object, path: Array<PropertyKey>, ancestors: Set<object>): NotJson | undefined => {
  if (!isPlainObject(value)) return new NotJson([...path], `${describe(value)} is not JSON`)
  for (const key of Object.keys(value)) {
    const member = value[key]
    // An absent member and an undefined one are the same JSON.
    if (member === undefined) continue
    path.push(key)
    const found = check(member, path, ancestors)
    path.pop()
    if (found !== undefined) return found
  }
}

/**
 * Any JSON value, held by reference. Unlike a schema built of records it keeps every key, `__proto__` included, and
 * refuses what JSON would silently drop.
 */
export const Json: Schema.Schema<unknown> = Schema.declare(
  (value: unknown): value is unknown => findNonJson(value) === undefined,
  {
    identifier: "Json",
    description: "a JSON value",
    jsonSchema: {},
    message: (issue) => nonJsonMessage("a JSON value", issue.actual),
    arbitrary: () => (fc) => fc.jsonValue({ maxDepth: 2 }).map(withoutNegativeZero)
  }
)

const nonJsonMessage = (expected: string, actual: unknown): string => {
  const found = findNonJson(actual)
  return found === undefined
    ? `Expected ${expected}, actual ${describe(actual)}`
    : `Expected ${expected}, but at ${formatPath(found.path)} ${found.problem}`
}

/** A JSON object, held by reference. */
export const JsonObject: Schema.Schema<{ readonly [key: string]: unknown }> = Schema.declare(
  (value: unknown): value is { readonly [key: string]: unknown } =>
    isPlainObject(value) && findNonJson(value) === undefined,
  {
    identifier: "JsonObject",
    description: "a JSON object",
    jsonSchema: { type: "object" },
    message: (issue) => nonJsonMessage("a JSON object", issue.actual),
    arbitrary: () => (fc) =>
      fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 1 }).map(withoutNegativeZero), {
        maxKeys: 3,
        noNullPrototype: true
      })
  }
)

// JSON.stringify(-0) is "0": the one JSON value that does not survive its own round trip.
const withoutNegativeZero = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_key, member: unknown) => Object.is(member, -0) ? 0 : member))

/**
 * A value the library carries but does not own: a tool's result, a failure, a provider's chunk. It is kept untouched in
 * memory; on its way to JSON whatever JSON cannot hold is replaced by a readable stand-in, so encoding cannot fail.
 */
export const Opaque: Schema.Schema<unknown> = Schema.transformOrFail(Json, Schema.Unknown, {
  strict: true,
  decode: (value) => ParseResult.succeed(value),
  encode: (value) => ParseResult.succeed(toJsonOrStandIn(value) ?? null)
}).annotations({ arbitrary: () => Arbitrary.makeLazy(Json) })

/** Every JSON form of a value; parts that have none become a sentence about them. */
export const toJsonOrStandIn = (value: unknown): unknown =>
  Either.getOrThrow(toJson(value, (problem) => `[${problem}]`))

/**
 * Turns a value into JSON: dates, maps, sets, URLs, errors, typed arrays and whatever has a `toJSON` get their usual form.
 * A part without a JSON form fails the whole with its path, unless `standIn` gives a replacement.
 */
export const toJson = (value: unknown, standIn?: (problem: string) => string): Either.Either<unknown, NotJson> => {
  // Most results are shallow JSON already.
  if (isJsonAtAGlance(value)) return Either.right(value)
  const projection = new Projection(standIn)
  const json = projection.any(value, "")
  return projection.failure === undefined ? Either.right(json) : Either.left(projection.failure)
}

/** Prints what `toJson` gave. A getter or a proxy may say something else at this second look. */
export const printJson = (json: unknown): Either.Either<string, NotJson> => {
  try {
    return Either.right(JSON.stringify(json) ?? "null")
  } catch {
    return Either.left(new NotJson([], "it changed while it was read"))
  }
}

/** The text of any value; parts that have no JSON form become a sentence about them. */
export const printOrStandIn = (value: unknown): string =>
  Either.merge(Either.mapLeft(printJson(toJsonOrStandIn(value)), ({ problem }) => `"[${problem}]"`))

/** Whether a value is JSON without a doubt. A cycle or a deep value does not pass, nor one that cannot be looked at. */
export const isJsonAtAGlance = (value: unknown): boolean => {
  try {
    return isShallowJson(value, 8)
  } catch {
    return false
  }
}

const isShallowJson = (value: unknown, depth: number): boolean => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true
    case "number":
      return Number.isFinite(value)
    case "object":
      if (value === null) return true
      if (depth === 0) return false
      return Array.isArray(value) ? areShallowJson(value, depth - 1) : hasShallowJson(value, depth - 1)
    default:
      return false
  }
}

const areShallowJson = (values: ReadonlyArray<unknown> & { toJSON?: unknown }, depth: number): boolean => {
  if (values.toJSON !== undefined) return false
  for (let i = 0; i < values.length; i++) if (!isShallowJson(values[i], depth)) return false
  return true
}

const hasShallowJson = (value: object, depth: number): boolean => {
  if (!isPlainObject(value) || value["toJSON"] !== undefined) return false
  for (const key in value) if (!isShallowJson(value[key], depth)) return false
  return true
}

class Projection {
  failure: NotJson | undefined
  private readonly path: Array<PropertyKey> = []
  private readonly ancestors = new Set<object>()
  private readonly standIn: ((problem: string) => string) | undefined

  constructor(standIn: ((problem: string) => string) | undefined) {
    this.standIn = standIn
  }

  any(value: unknown, key: string): unknown {
    switch (typeof value) {
      case "string":
      case "boolean":
      case "undefined":
        return value
      case "number":
        return Number.isFinite(value) ? value : null
      case "object":
        return value === null ? null : this.object(value, key)
      default:
        return this.refuse(`${describe(value)} has no JSON form`)
    }
  }

  private refuse(problem: string): unknown {
    if (this.standIn !== undefined) return this.standIn(problem)
    if (this.failure === undefined) this.failure = new NotJson([...this.path], problem)
    return null
  }

  private object(value: object, key: string): unknown {
    if (this.failure !== undefined) return null
    if (this.ancestors.has(value)) return this.refuse("it contains itself")
    if (this.ancestors.size >= maxDepth) return this.refuse(`it is nested deeper than ${maxDepth} levels`)
    this.ancestors.add(value)
    let json: unknown
    try {
      json = this.form(value, key)
    } catch {
      // A getter, a proxy or a toJSON that throws: what it said may hold secrets, so only the place is told.
      json = this.refuse(`reading ${describe(value)} threw`)
    }
    this.ancestors.delete(value)
    return json
  }

  private form(value: object, key: string): unknown {
    if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
      return this.array(Array.from(value as unknown as Iterable<unknown>))
    }
    if ("toJSON" in value && typeof value.toJSON === "function") return this.any(value.toJSON(key), key)
    if (Array.isArray(value)) return this.array(value)
    if (isPlainObject(value)) return this.members(value)
    if (value instanceof Map) return this.map(value)
    if (value instanceof Set) return this.array([...value])
    if (value instanceof Error) return this.members({ name: value.name, message: value.message })
    if (value instanceof RegExp) return String(value)
    if (value instanceof Number || value instanceof String || value instanceof Boolean) {
      return this.any(value.valueOf(), key)
    }
    if (value instanceof Promise) return this.refuse("a Promise has no JSON form; await it")
    if (value instanceof ArrayBuffer) return this.array(Array.from(new Uint8Array(value)))
    if (hasNoForm(value)) return this.refuse(`${describe(value)} has no JSON form`)
    return this.members(value as Record<string, unknown>)
  }

  private array(value: ReadonlyArray<unknown>): unknown {
    let copy: Array<unknown> | undefined
    for (let i = 0; i < value.length; i++) {
      const member = value[i]
      this.path.push(i)
      const json = this.any(member, String(i)) ?? null
      this.path.pop()
      if (copy === undefined && json !== member) copy = value.slice(0, i)
      copy?.push(json)
    }
    return copy ?? value
  }

  private map(value: ReadonlyMap<unknown, unknown>): unknown {
    const entries = [...value]
    return entries.every(([key]) => typeof key === "string") ? this.members(fromEntries(entries)) : this.array(entries)
  }

  private members(value: Record<string, unknown>): unknown {
    let copy: Record<string, unknown> | undefined
    const keys = Object.keys(value)
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]!
      const member = value[key]
      this.path.push(key)
      const json = this.any(member, key)
      this.path.pop()
      if (copy === undefined && json !== member) {
        copy = fromEntries(keys.slice(0, i).map((earlier) => [earlier, value[earlier]]))
      }
      if (copy !== undefined) copy[key] = json
    }
    // Most results are plain JSON already: those are returned as they are, without a copy.
    return copy ?? (isPlainObject(value) ? value : fromEntries(keys.map((key) => [key, value[key]])))
  }
}

const hasNoForm = (value: object): boolean =>
  value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef || value instanceof DataView ||
  Symbol.asyncIterator in value || (Symbol.iterator in value && "next" in value)

// Without a prototype, so that a key named `__proto__` is a key like any other.
const fromEntries = (entries: ReadonlyArray<readonly [unknown, unknown]>): Record<string, unknown> => {
  const object: Record<string, unknown> = Object.create(null)
  for (const [key, value] of entries) object[String(key)] = value
  return object
}

/** Whether a JSON value is longer than `limit` characters or nested too deep, found without building the text. */
export const isLongerThan = (value: unknown, limit: number): boolean => spend(value, limit, maxDepth) < 0

/** What is left of an allowance of characters. */
const spend = (value: unknown, allowance: number, depth: number): number => {
  if (typeof value === "string") return allowance - value.length - 2
  if (typeof value !== "object" || value === null) return allowance - 4
  if (depth === 0) return -1
  let left = allowance - 2
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length && left >= 0; i++) left = spend(value[i], left, depth - 1)
    return left
  }
  for (const key in value) {
    if (left < 0) return left
    left = spend((value as Record<string, unknown>)[key], left - key.length - 4, depth - 1)
  }
  return left
}
