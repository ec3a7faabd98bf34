/**
 * The JSON Schemas that the API accepts: of the answer, and of a tool's input.
 */
import { isObject, type JsonObject, listOf } from "./json.ts"

/**
 * A schema in the words the API keeps answers to: objects are closed, and limits it cannot keep are told to the model in
 * the description. Nothing where it would come to mean something else, such as with records, recursion or tuples.
 */
export const answerSchema = (schema: JsonObject): JsonObject | undefined => {
  const writer = new Writer(schema)
  const written = writer.schema(schema)
  return writer.isPossible && !isRecursive(schema) ? written : undefined
}

const copied = ["title", "description", "default", "enum", "const", "type", "required", "$ref"]

// Names of the dialect and remarks: they say nothing about the answer.
const dropped = new Set(["$schema", "$id", "$comment", "examples", "deprecated", "readOnly", "writeOnly"])

const handled = new Set([...copied, "anyOf", "oneOf", "properties", "additionalProperties", "items", "format"])

const formats = new Set([
  "date-time",
  "time",
  "date",
  "duration",
  "email",
  "hostname",
  "uri",
  "ipv4",
  "ipv6",
  "uuid"
])

// A word that says which answers there are, rather than how long or how large.
const structural = new Set([
  "allOf",
  "not",
  "if",
  "then",
  "else",
  "patternProperties",
  "propertyNames",
  "dependentSchemas",
  "dependentRequired",
  "prefixItems",
  "additionalItems",
  "contains",
  "unevaluatedProperties",
  "unevaluatedItems",
  "$dynamicRef"
])

class Writer {
  isPossible = true
  private readonly root: JsonObject

  constructor(root: JsonObject) {
    this.root = root
  }

  schema(node: unknown): JsonObject {
    if (!isObject(node)) return this.impossible()
    const written: Record<string, unknown> = {}
    const hints: Array<string> = []
    for (const key of copied) if (node[key] !== undefined) written[key] = node[key]
    for (const [key, value] of Object.entries(node)) {
      if (handled.has(key) || dropped.has(key)) continue
      if (key === "$defs" || key === "definitions") written[key] = this.all(value)
      else if (key === "minItems" && (value === 0 || value === 1)) written[key] = value
      else if (key === "allOf") this.limits(value, hints)
      else if (structural.has(key)) this.impossible()
      else hints.push(`${key}: ${JSON.stringify(value)}`)
    }
    this.literals(node)
    this.alternatives(node, written)
    this.members(node, written)
    if (node["format"] !== undefined) {
      if (formats.has(String(node["format"]))) written["format"] = node["format"]
      else hints.push(`format: ${JSON.stringify(node["format"])}`)
    }
    if (hints.length > 0) {
      written["description"] = [node["description"], `(${hints.join(", ")})`].filter((text) => text !== undefined)
        .join(" ")
    }
    return written
  }

  private all(schemas: unknown): JsonObject {
    return isObject(schemas)
      ? Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, this.schema(schema)]))
      : this.impossible()
  }

  // Refinements on top of a type come as `allOf`; as long as they only limit, they are hints like any other.
  private limits(members: unknown, hints: Array<string>): void {
    for (const member of listOf(members)) {
      if (!isObject(member)) return void this.impossible()
      for (const [key, value] of Object.entries(member)) {
        if (handled.has(key) || structural.has(key) || key === "$defs") {
          if (key === "description" || key === "title") hints.push(String(value))
          else this.impossible()
        } else if (!dropped.has(key)) hints.push(`${key}: ${JSON.stringify(value)}`)
      }
    }
  }

  private literals(node: JsonObject): void {
    const literals = [...listOf(node["enum"]), node["const"]]
    if (literals.some((literal) => typeof literal === "object" && literal !== null)) this.impossible()
  }

  private alternatives(node: JsonObject, written: Record<string, unknown>): void {
    const given = node["anyOf"] ?? node["oneOf"]
    if (given === undefined) return
    if (node["properties"] !== undefined || node["items"] !== undefined) this.impossible()
    written["anyOf"] = listOf(given).map((alternative) => this.schema(alternative))
  }

  private members(node: JsonObject, written: Record<string, unknown>): void {
    const types = [node["type"] ?? []].flat()
    if (types.includes("object")) {
      // Closed, an object without properties could only be empty.
      const open = node["properties"] === undefined ? node["additionalProperties"] !== false : false
      if (open || (node["additionalProperties"] ?? false) !== false) this.impossible()
      written["properties"] = this.all(node["properties"] ?? {})
      written["additionalProperties"] = false
    }
    if (types.includes("array")) written["items"] = this.schema(node["items"])
    const reference = node["$ref"]
    if (reference !== undefined && definitionOf(this.root, reference) === undefined) this.impossible()
    const says = ["type", "anyOf", "oneOf", "enum", "const", "$ref"].some((key) => node[key] !== undefined)
    if (!says) this.impossible()
  }

  private impossible(): JsonObject {
    this.isPossible = false
    return {}
  }
}

const definitionOf = (root: JsonObject, reference: unknown): JsonObject | undefined => {
  const [, place, name] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(String(reference)) ?? []
  const definitions = place === undefined ? undefined : root[place]
  const definition = isObject(definitions) ? definitions[decodeURIComponent(name!)] : undefined
  return isObject(definition) ? definition : undefined
}

const isRecursive = (root: JsonObject): boolean => {
  const visit = (node: unknown, path: ReadonlySet<unknown>): boolean => {
    if (Array.isArray(node)) return node.some((member) => visit(member, path))
    if (!isObject(node)) return false
    const target = node["$ref"] === undefined ? undefined : definitionOf(root, node["$ref"])
    if (target !== undefined && (path.has(target) || visit(target, new Set([...path, target])))) return true
    return Object.entries(node).some(([key, member]) => key !== "$defs" && key !== "definitions" && visit(member, path))
  }
  return visit(root, new Set([root]))
}

/**
 * A schema of a tool's input. The API takes an object whose properties are known at the root, so alternatives there are
 * told as one object with the properties of all. Arguments are still checked against what the tool asked for.
 */
export const inputSchema = (schema: JsonObject): JsonObject | undefined => {
  const { allOf, anyOf, oneOf, ...own } = schema
  if (allOf === undefined && anyOf === undefined && oneOf === undefined) {
    return schema["type"] === "object" ? schema : undefined
  }
  const together = listOf(allOf).map((branch) => inputSchemaOf(schema, own, branch))
  const alternatives = [anyOf, oneOf].map((branches) =>
    listOf(branches).map((branch) => inputSchemaOf(schema, own, branch))
  )
  const branches = [...together, ...alternatives.flat()]
  if (!branches.every((branch) => branch !== undefined)) return undefined
  const required = new Set([own, ...together].flatMap((branch) => listOf(branch?.["required"])))
  for (const [first, ...rest] of alternatives) {
    for (const name of listOf(first?.["required"])) {
      if (rest.every((branch) => listOf(branch?.["required"]).includes(name))) required.add(name)
    }
  }
  const { additionalProperties: _closed, ...open } = own
  return {
    ...open,
    type: "object",
    properties: propertiesOf([own, ...branches]),
    ...(required.size === 0 ? {} : { required: [...required] })
  }
}

const inputSchemaOf = (root: JsonObject, own: JsonObject, branch: unknown): JsonObject | undefined => {
  if (!isObject(branch)) return undefined
  const target = branch["$ref"] === undefined ? branch : definitionOf(root, branch["$ref"])
  return target === undefined ? undefined : inputSchema({ ...target, type: target["type"] ?? own["type"] })
}

const propertiesOf = (branches: ReadonlyArray<JsonObject>): JsonObject => {
  const found = new Map<string, Map<string, unknown>>()
  for (const branch of branches) {
    for (const [name, schema] of Object.entries(isObject(branch["properties"]) ? branch["properties"] : {})) {
      const schemas = found.get(name) ?? new Map<string, unknown>()
      found.set(name, schemas.set(JSON.stringify(schema), schema))
    }
  }
  return Object.fromEntries(
    Array.from(found, ([name, schemas]) => {
      const [first, ...rest] = schemas.values()
      return [name, rest.length === 0 ? first : { anyOf: [first, ...rest] }]
    })
  )
}
