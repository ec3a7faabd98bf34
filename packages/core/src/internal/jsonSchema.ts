/**
 * JSON Schema both ways: what a provider is told about a tool, and the check of arguments against a raw schema.
 */
import { Validator } from "@cfworker/json-schema"
import * as Either from "effect/Either"
import * as JSONSchema from "effect/JSONSchema"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import type { ArgumentIssue } from "../ToolError.ts"
import { isPlainObject } from "./json.ts"

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
  return Object.keys(definitions).length === 0 ? root : { ...root, $defs: clean(definitions) }
}

// Effect marks schemas without a JSON Schema of their own by a private `$id`, which providers refuse.
const emptyStruct = "/schemas/%7B%7D"

const clean = (node: unknown): unknown => {
  if (Array.isArray(node)) return node.map(clean)
  if (!isPlainObject(node)) return node
  if (node["$id"] === emptyStruct) return { type: "object", properties: {}, required: [], additionalProperties: false }
  return Object.fromEntries(Object.entries(node).flatMap(([key, value]) => key === "$id" ? [] : [[key, clean(value)]]))
}

/** Compiles a raw schema once. The left side says why it cannot be used. */
export const compile = (
  schema: JsonSchema
): Either.Either<(value: unknown) => ReadonlyArray<ArgumentIssue>, string> => {
  const fault = findFault(schema, schema)
  if (fault !== undefined) return Either.left(fault)
  const validator = new Validator(schema, "2020-12", false)
  return Either.right((value) => issuesOf(validator.validate(value)))
}

const types = new Set(["object", "array", "string", "number", "integer", "boolean", "null"])

// The validator meets a dangling reference, a broken pattern or a misspelt type only when arguments reach it. That is
// one conversation too late.
const findFault = (node: unknown, root: JsonSchema): string | undefined => {
  if (Array.isArray(node)) return firstFault(node, root)
  if (!isPlainObject(node)) return undefined
  const { $ref, pattern, type } = node
  if (typeof $ref === "string" && $ref.startsWith("#") && !resolves($ref, root)) {
    return `the reference ${JSON.stringify($ref)} leads nowhere`
  }
  if (typeof pattern === "string" && Either.isLeft(Either.try(() => new RegExp(pattern, "u")))) {
    return `the pattern ${JSON.stringify(pattern)} is not a regular expression`
  }
  if (typeof type === "string" && !types.has(type)) {
    return `${JSON.stringify(type)} is no type; write ${[...types].join(", ")}`
  }
  return firstFault(Object.entries(node).flatMap(([key, value]) => dataKeywords.has(key) ? [] : [value]), root)
}

const firstFault = (nodes: ReadonlyArray<unknown>, root: JsonSchema): string | undefined => {
  for (const node of nodes) {
    const fault = findFault(node, root)
    if (fault !== undefined) return fault
  }
}

// Below these stands data, not schemas.
const dataKeywords = new Set(["const", "enum", "default", "examples"])

const resolves = (reference: string, root: JsonSchema): boolean => {
  // `#name` is an anchor, which the validator finds by itself.
  if (reference !== "#" && !reference.startsWith("#/")) return true
  return fromPointer(reference).reduce<unknown>(
    (node, key) => typeof node === "object" && node !== null ? (node as Record<PropertyKey, unknown>)[key] : undefined,
    root
  ) !== undefined
}

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

const issuesOf = (result: ReturnType<Validator["validate"]>): ReadonlyArray<ArgumentIssue> =>
  result.errors.flatMap((error) =>
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
