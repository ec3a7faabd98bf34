/**
 * JSON Schema in the part of it that Gemini reads. What it does not read goes into the description, so that the model
 * still knows; the tool itself is checked against the whole schema in any case.
 */
import * as Either from "effect/Either"
import { listOf, objectOf, textOf, type Wire } from "./wire.ts"

type Schema = { [keyword: string]: unknown }

/** Read as they are. */
const plain: ReadonlySet<string> = new Set([
  "type",
  "format",
  "title",
  "minItems",
  "maxItems",
  "minimum",
  "maximum",
  "required",
  "propertyOrdering"
])

/** Below these stand schemas. */
const lists: ReadonlySet<string> = new Set(["anyOf", "oneOf", "prefixItems"])

/** Seen to apart from the others. */
const handled: ReadonlySet<string> = new Set(["description", "enum", "const"])

/** These say nothing about a value. */
const silent: ReadonlySet<string> = new Set([
  "$schema",
  "$id",
  "$anchor",
  "$comment",
  "$defs",
  "definitions",
  "deprecated",
  "examples",
  "readOnly",
  "writeOnly"
])

export const toGemini = (schema: Wire): Schema => new Conversion(schema).run()

/** A function without parameters is declared without a schema. */
export const takesNothing = (schema: Wire): boolean =>
  Object.keys(objectOf(schema["properties"]) ?? {}).length === 0 &&
  (schema["additionalProperties"] === undefined || schema["additionalProperties"] === false) &&
  Object.keys(schema).every((keyword) =>
    ["type", "properties", "required", "additionalProperties", "title", "description"].includes(keyword) ||
    silent.has(keyword)
  )

class Conversion {
  private readonly root: Wire
  /** Everything that is referred to, by its address: only `$defs` may be. */
  private readonly names = new Map<string, string>()
  private readonly waiting: Array<readonly [name: string, schema: unknown]> = []

  constructor(root: Wire) {
    this.root = root
  }

  run(): Schema {
    const converted = this.convert(this.root)
    const definitions: Array<readonly [name: string, schema: Schema]> = []
    for (let next = this.waiting.pop(); next !== undefined; next = this.waiting.pop()) {
      definitions.push([next[0], this.convert(next[1])])
    }
    return definitions.length === 0 ? converted : { ...converted, $defs: Object.fromEntries(definitions) }
  }

  private convert(node: unknown): Schema {
    const given = objectOf(node)
    // `true` allows anything, and so does what cannot be read.
    if (given === undefined) return {}
    const ref = textOf(given["$ref"])
    // Nothing may stand beside a reference.
    if (ref !== undefined) return this.reference(ref)
    const { left, schema } = this.flat(given)
    const converted: Schema = {}
    const unread: Array<Wire> = [...left]
    for (const [keyword, value] of Object.entries(schema)) {
      if (plain.has(keyword)) converted[keyword] = value
      else if (lists.has(keyword)) converted[keyword] = listOf(value).map((member) => this.convert(member))
      else if (keyword === "items") converted[keyword] = this.convert(value)
      else if (keyword === "properties") converted[keyword] = this.convertAll(objectOf(value) ?? {})
      else if (keyword === "additionalProperties") {
        converted[keyword] = typeof value === "boolean" ? value : this.convert(value)
      } else if (!handled.has(keyword) && !silent.has(keyword)) unread.push({ [keyword]: value })
    }
    const values = "const" in schema ? [schema["const"]] : schema["enum"]
    if (Array.isArray(values)) unread.push(...choose(converted, values))
    const lines = unread.map((one) => JSON.stringify(one))
    const description = [textOf(schema["description"]) ?? [], lines].flat().join("\n")
    return description === "" ? converted : { ...converted, description }
  }

  private convertAll(schemas: Wire): Schema {
    return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, this.convert(schema)]))
  }

  /** The members of `allOf` in the schema itself, and what contradicts it. */
  private flat(given: Wire): { readonly schema: Wire; readonly left: ReadonlyArray<Wire> } {
    const { allOf, ...own } = given
    const schema: Schema = own
    const left: Array<Wire> = []
    const pending = [...listOf(allOf)]
    const seen = new Set<unknown>()
    while (pending.length > 0) {
      const found = objectOf(pending.shift())
      const ref = textOf(found?.["$ref"])
      const member = ref === undefined ? found : objectOf(this.resolve(ref))
      if (member === undefined || seen.has(member)) continue
      seen.add(member)
      pending.push(...listOf(member["allOf"]))
      for (const [keyword, value] of Object.entries(member)) {
        const before = schema[keyword]
        if (keyword === "allOf") continue
        if (before === undefined) schema[keyword] = value
        else if (keyword === "properties") schema[keyword] = { ...objectOf(before), ...objectOf(value) }
        else if (keyword === "required") schema[keyword] = [...new Set([...listOf(before), ...listOf(value)])]
        else if (JSON.stringify(before) !== JSON.stringify(value)) left.push({ [keyword]: value })
      }
    }
    return { schema, left }
  }

  private reference(ref: string): Schema {
    const target = this.resolve(ref)
    if (target === undefined) return {}
    let name = this.names.get(ref)
    if (name === undefined) {
      name = this.freshName(ref)
      this.names.set(ref, name)
      this.waiting.push([name, target])
    }
    return { $ref: `#/$defs/${name}` }
  }

  private freshName(ref: string): string {
    const last = ref === "#" ? "root" : ref.slice(ref.lastIndexOf("/") + 1).replaceAll(/\W+/g, "_")
    const taken = new Set(this.names.values())
    let name = last
    for (let number = 2; taken.has(name); number++) name = `${last}_${number}`
    return name
  }

  private resolve(ref: string): unknown {
    if (ref === "#") return this.root
    if (!ref.startsWith("#/")) return undefined
    let found: unknown = this.root
    for (const segment of ref.slice(2).split("/")) {
      const key = decoded(segment).replaceAll("~1", "/").replaceAll("~0", "~")
      const holder = found as { readonly [key: string]: unknown } | null | undefined
      found = typeof holder === "object" && holder !== null && Object.hasOwn(holder, key) ? holder[key] : undefined
    }
    return found
  }
}

const decoded = (segment: string): string =>
  Either.getOrElse(Either.try(() => decodeURIComponent(segment)), () => segment)

/** Only texts and numbers can be chosen from; `null` is a type of its own. Gives back what cannot be said. */
const choose = (converted: Schema, values: ReadonlyArray<unknown>): ReadonlyArray<Wire> => {
  const texts = values.filter((value) => typeof value === "string")
  const numbers = values.filter((value) => typeof value === "number")
  const booleans = values.filter((value) => typeof value === "boolean")
  const options: ReadonlyArray<Schema> = [
    texts.length === 0 ? [] : { type: "string", enum: texts },
    numbers.length === 0 ? [] : { type: converted["type"] === "integer" ? "integer" : "number", enum: numbers },
    booleans.length === 0 ? [] : { type: "boolean" },
    values.includes(null) ? { type: "null" } : []
  ].flat()
  const [only, ...more] = options
  const hasOthers = values.some((value) => typeof value === "object" && value !== null)
  if (only === undefined || hasOthers || "anyOf" in converted) return [{ enum: values }]
  if (more.length === 0) Object.assign(converted, only)
  else {
    delete converted["type"]
    converted["anyOf"] = options
  }
  return booleans.length === 1 ? [{ enum: values }] : []
}
