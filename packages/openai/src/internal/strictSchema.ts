/**
 * The JSON Schema that OpenAI enforces to the letter. It is a smaller language: every property is required, every object is
 * closed, and many keywords are unknown. What cannot be said in it is `undefined`, and is then only asked for.
 */
import { type Fields, fieldsOf, listOf, textOf } from "./lenient.ts"

/** What the smaller language has words for. Whatever else is only a hint is left out: the answer is checked here anyway. */
const keywords = new Set([
  "type",
  "title",
  "description",
  "enum",
  "const",
  "pattern",
  "format",
  "multipleOf",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "minItems",
  "maxItems"
])

const formats = new Set(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"])

/** To leave these out would change which answers are right in a way that a hint cannot make good. */
const impossible = [
  "not",
  "if",
  "dependentSchemas",
  "dependentRequired",
  "patternProperties",
  "prefixItems",
  "contains"
]

const maxDepth = 10
const maxProperties = 5_000

export interface Options {
  /** Whether a property may become `null` where it might have been left out. */
  readonly nullable: boolean
}

/** Undefined when the schema cannot be enforced. */
export const strictSchema = (schema: Fields, options: Options): Fields | undefined => {
  const writer = new Writer(schema, options)
  const root = writer.schema(schema, 1)
  return root === undefined || root["type"] !== "object" ? undefined : { ...root, ...writer.definitions() }
}

class Writer {
  private readonly root: Fields
  private readonly nullable: boolean
  private readonly used = new Map<string, Fields | undefined>()
  private properties = 0

  constructor(root: Fields, options: Options) {
    this.root = root
    this.nullable = options.nullable
  }

  /** The definitions that are referred to, in the places where they were. */
  definitions(): Fields {
    const found: Record<string, Record<string, unknown>> = {}
    for (const [ref, schema] of this.used) {
      const [, room, name] = definition.exec(ref) ?? []
      if (room !== undefined && name !== undefined) (found[room] ??= {})[decode(name)] = schema
    }
    return found
  }

  schema(value: unknown, depth: number): Fields | undefined {
    const schema = fieldsOf(value)
    if (schema === undefined || depth > maxDepth) return undefined
    if (impossible.some((keyword) => schema[keyword] !== undefined)) return undefined
    if (typeof schema["$ref"] === "string") return this.reference(schema, schema["$ref"], depth)
    if (schema["allOf"] !== undefined) return this.all(schema, depth)
    const plain = plainOf(schema)
    const choices = schema["anyOf"] ?? schema["oneOf"]
    if (choices !== undefined) return this.any(plain, listOf(choices), depth)
    const types = listOf(typeof schema["type"] === "string" ? [schema["type"]] : schema["type"])
    if (types.includes("object") || schema["properties"] !== undefined) return this.object(plain, schema, depth)
    if (types.includes("array")) return this.array(plain, schema, depth)
    if (types.length > 0) return plain
    // Anything at all cannot be enforced; a choice of values can, once their types are said.
    const values = schema["const"] === undefined ? listOf(schema["enum"]) : [schema["const"]]
    return values.length === 0 ? undefined : { type: typesOf(values), ...plain }
  }

  private object(plain: Fields, schema: Fields, depth: number): Fields | undefined {
    const given = fieldsOf(schema["properties"]) ?? {}
    const extra = schema["additionalProperties"]
    // An open object without properties holds anything.
    const isClosed = extra === false || (extra === undefined && schema["properties"] !== undefined)
    this.properties += Object.keys(given).length
    if (!isClosed || this.properties > maxProperties) return undefined
    const required = new Set(listOf(schema["required"]))
    const properties: Record<string, Fields> = {}
    for (const [name, property] of Object.entries(given)) {
      const strict = this.schema(property, depth + 1)
      if (strict === undefined || (!required.has(name) && !this.nullable)) return undefined
      properties[name] = required.has(name) ? strict : orNull(strict)
    }
    return {
      type: "object",
      ...plain,
      properties,
      required: Object.keys(properties),
      additionalProperties: false
    }
  }

  private array(plain: Fields, schema: Fields, depth: number): Fields | undefined {
    const items = this.schema(schema["items"], depth + 1)
    return items === undefined ? undefined : { ...plain, items }
  }

  private any(plain: Fields, choices: ReadonlyArray<unknown>, depth: number): Fields | undefined {
    const anyOf = choices.map((choice) => this.schema(choice, depth))
    const { type: _type, ...annotations } = plain
    return anyOf.length > 0 && anyOf.every((choice) => choice !== undefined) ? { ...annotations, anyOf } : undefined
  }

  /** Parts that agree are one schema; what they disagree in cannot be said. */
  private all(schema: Fields, depth: number): Fields | undefined {
    const { allOf, ...own } = schema
    const merged: Record<string, unknown> = { ...own }
    for (const part of listOf(allOf)) {
      for (const [key, value] of Object.entries(fieldsOf(part) ?? {})) {
        const isHint = annotations.has(key) || !keywords.has(key) && !structural.has(key)
        if (merged[key] === undefined) merged[key] = value
        else if (!isHint && JSON.stringify(merged[key]) !== JSON.stringify(value)) return undefined
      }
    }
    return this.schema(merged, depth)
  }

  /** A reference stands alone: whoever adds something to it gets a copy. */
  private reference(schema: Fields, ref: string, depth: number): Fields | undefined {
    const { $ref: _ref, ...own } = schema
    const target = this.target(ref)
    if (target === undefined) return undefined
    const adds = Object.keys(own).filter((key) => keywords.has(key) || structural.has(key))
    const isCopied = adds.some((key) => !annotations.has(key)) || (adds.length > 0 && !mentions(target, ref))
    if (isCopied) return this.schema({ ...target, ...own }, depth)
    if (ref === "#") return { $ref: ref }
    if (!this.used.has(ref)) {
      this.used.set(ref, undefined)
      const strict = this.schema(target, 1)
      if (strict === undefined) return undefined
      this.used.set(ref, strict)
    }
    return { $ref: ref }
  }

  private target(ref: string): Fields | undefined {
    if (ref === "#") return this.root
    const [, room, name] = definition.exec(ref) ?? []
    return room === undefined || name === undefined ? undefined : fieldsOf(fieldsOf(this.root[room])?.[decode(name)])
  }
}

const definition = /^#\/(\$defs|definitions)\/([^/]+)$/

const decode = (name: string): string => decodeURIComponent(name).replaceAll("~1", "/").replaceAll("~0", "~")

const annotations = new Set(["title", "description"])

const structural = new Set(["properties", "required", "additionalProperties", "items", "anyOf", "oneOf", "allOf"])

/** Its own words, as far as they are known. */
const plainOf = (schema: Fields): Fields =>
  Object.fromEntries(
    Object.entries(schema).filter(([key, value]) => {
      if (key === "format") return formats.has(textOf(value))
      if (key === "pattern") return !lookaround.test(textOf(value))
      return keywords.has(key)
    })
  )

const lookaround = /\(\?<?[=!]|\\[1-9]/

const typesOf = (values: ReadonlyArray<unknown>): unknown => {
  const types = [...new Set(values.map((value) => value === null ? "null" : typeof value))]
  return types.length === 1 ? types[0] : types
}

const mentions = (schema: Fields, ref: string): boolean => JSON.stringify(schema).includes(JSON.stringify(ref))

const orNull = (schema: Fields): Fields => {
  const isNull = (choice: unknown): boolean => fieldsOf(choice)?.["type"] === "null"
  if (listOf(schema["type"]).includes("null") || listOf(schema["anyOf"]).some(isNull)) return schema
  return { anyOf: [schema, { type: "null" }] }
}
