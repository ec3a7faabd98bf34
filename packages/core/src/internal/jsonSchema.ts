/**
 * JSON Schema both ways: what a provider is told about a tool, and the check of arguments against a raw schema.
 */
import { dereference, type OutputUnit, type Schema as ValidatorSchema, validate } from "@cfworker/json-schema"
import * as Either from "effect/Either"
import * as JSONSchema from "effect/JSONSchema"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import type { ArgumentIssue } from "../ToolError.ts"
import { findNonJson, formatPath, isPlainObject } from "./json.ts"

export type JsonSchema = { readonly [key: string]: unknown }

/** What providers accept: references inlined, objects closed, a plain object at the root. */
export const fromSchema = (schema: Schema.Schema.Any): JsonSchema => {
  const definitions: Record<string, JSONSchema.JsonSchema7> = {}
  const root = clean(JSONSchema.fromAST(schema.ast, {
    definitions,
    definitionPath: "#/$defs/",
    target: "jsonSchema2020-12",
    topLevelReferenceStrategy: "skip",
    additionalPropertiesStrategy: "strict"
  })) as JsonSchema
  return Object.keys(definitions).length === 0 ? root : { ...root, $defs: cleanAll(definitions) }
}

// Effect marks schemas without a JSON Schema of their own by a private `$id`, which providers refuse.
const emptyStruct = "/schemas/%7B%7D"

// Below these stand schemas, by names that are no keywords.
const mapKeywords = new Set(["properties", "patternProperties", "$defs"])

// Below these stands data, not schemas.
const dataKeywords = new Set(["const", "enum", "default", "examples"])

const clean = (node: unknown): unknown => {
  if (Array.isArray(node)) return node.map(clean)
  if (!isPlainObject(node)) return node
  if (node["$id"] === emptyStruct) return { type: "object", properties: {}, required: [], additionalProperties: false }
  const kept = Object.entries(node).filter(([key]) => key !== "$id")
  return Object.fromEntries(
    kept.map(([key, value]) => [
      key,
      dataKeywords.has(key) ? value : mapKeywords.has(key) && isPlainObject(value) ? cleanAll(value) : clean(value)
    ])
  )
}

const cleanAll = (schemas: { readonly [name: string]: unknown }): JsonSchema =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, clean(schema)]))

/** Compiles a raw schema once. The left side says why it cannot be used. */
export const compile = (
  schema: JsonSchema
): Either.Either<(value: unknown) => ReadonlyArray<ArgumentIssue>, string> =>
  Either.gen(function*() {
    const notJson = findNonJson(schema)
    if (notJson !== undefined) yield* Either.left(`at ${formatPath(notJson.path)} ${notJson.problem}`)
    // The validator writes into what it is given.
    const copy = JSON.parse(JSON.stringify(schema)) as JsonSchema
    const known = yield* Either.try({
      try: () => dereference(copy),
      catch: (error) => `the schema cannot be read: ${error instanceof Error ? error.message : String(error)}`
    })
    const fault = firstFault(known)
    if (fault !== undefined) yield* Either.left(fault)
    const find = (value: unknown) => issuesOf(validate(value, copy, "2020-12", known, false))
    return (value) => Either.getOrElse(Either.try(() => find(value)), () => illFormed(find(escapeNames(value))))
  })

// The validator throws at a name that is no well-formed text, such as half an emoji. Escaped, the name can be reported.
const escapeNames = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(escapeNames)
  if (!isPlainObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [escape(name), escapeNames(member)]))
}

const escape = (name: string): string =>
  name.replaceAll(/\p{Surrogate}/gu, (half) => `\\u${half.charCodeAt(0).toString(16)}`)

const illFormed = (found: ReadonlyArray<ArgumentIssue>): ReadonlyArray<ArgumentIssue> =>
  found.length > 0 ? found : [{ path: [], message: "a name is not well-formed text" }]

const types = new Set(["object", "array", "string", "number", "integer", "boolean", "null"])

/** Every schema within a schema, by its address. */
type Known = ReturnType<typeof dereference>

// The validator meets a dangling reference, a broken pattern or a misspelt type only when arguments reach it. That is
// one conversation too late.
const firstFault = (known: Known): string | undefined => {
  for (const schema of Object.values(known)) {
    const fault = typeof schema === "boolean" ? undefined : findFault(schema, known)
    if (fault !== undefined) return fault
  }
}

const findFault = (schema: ValidatorSchema, known: Known): string | undefined => {
  const { $ref, pattern, patternProperties, type } = schema
  if ($ref !== undefined && known[schema.__absolute_ref__ ?? $ref] === undefined) {
    return `the reference ${JSON.stringify($ref)} leads nowhere`
  }
  const broken = [pattern ?? [], Object.keys(patternProperties ?? {})].flat().find((source) => !isPattern(source))
  if (broken !== undefined) return `the pattern ${JSON.stringify(broken)} is not a regular expression`
  const misspelt = [type === undefined ? [] : type].flat().find((name) => !types.has(name))
  if (misspelt !== undefined) return `${JSON.stringify(misspelt)} is no type; write ${[...types].join(", ")}`
}

const isPattern = (source: string): boolean => Either.isRight(Either.try(() => new RegExp(source, "u")))

// These only repeat that something below them failed.
const containers = new Set([
  "properties",
  "items",
  "prefixItems",
  "additionalProperties",
  "allOf",
  "$ref",
  "then",
  "else"
])

const issuesOf = ({ errors }: { readonly errors: ReadonlyArray<OutputUnit> }): ReadonlyArray<ArgumentIssue> =>
  errors.flatMap((error) =>
    containers.has(error.keyword)
      ? []
      : [{
        path: fromPointer(error.instanceLocation),
        message: error.keyword === "false" ? "is not a known property" : error.error
      }]
  )

const fromPointer = (pointer: string): ReadonlyArray<string | number> =>
  pointer.split("/").slice(1).map((segment) => {
    const key = decodeURIComponent(segment).replaceAll("~1", "/").replaceAll("~0", "~")
    return /^\d+$/.test(key) ? Number(key) : key
  })

const notInNames = /[^A-Za-z0-9_-]+/g

/** The name a schema has for itself, in the letters providers allow. */
export const nameOf = (schema: Schema.Schema.Any): string | undefined => {
  const identifier = Option.getOrUndefined(SchemaAST.getIdentifierAnnotation(schema.ast))
  const name = identifier?.replace(notInNames, "_").slice(0, 64)
  return name === "" ? undefined : name
}
