import { Tool } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { encoded, requestOf } from "./support.ts"

type JsonSchema = { readonly [key: string]: unknown }

/** A schema as Gemini gets it. */
const sent = (schema: JsonSchema): unknown =>
  (encoded(requestOf({ responseFormat: { type: "json_schema", name: "answer", schema, strict: true } }))[
    "generationConfig"
  ] as JsonSchema)["responseJsonSchema"]

const parametersOf = (tool: Tool.Any): unknown => {
  const [tools] = encoded(requestOf({ tools: [Tool.declaration(tool)] }))["tools"] as ReadonlyArray<JsonSchema>
  const [declared] = tools!["functionDeclarations"] as ReadonlyArray<JsonSchema>
  return declared?.["parametersJsonSchema"]
}

describe("schemas", () => {
  it("keep what Gemini reads", () => {
    const schema = {
      type: "object",
      title: "Trip",
      description: "A trip",
      properties: {
        to: { type: ["string", "null"], format: "date-time" },
        nights: { type: "integer", minimum: 1, maximum: 9 },
        with: { type: "array", items: { type: "string" }, minItems: 1, maxItems: 3 },
        point: { type: "array", prefixItems: [{ type: "number" }, { type: "number" }] },
        by: { anyOf: [{ type: "string", enum: ["car", "train"] }, { type: "number", enum: [1, 2] }] },
        more: { type: "object", additionalProperties: { type: "string" } }
      },
      required: ["to"],
      additionalProperties: false,
      propertyOrdering: ["to", "nights"]
    }
    assert.deepStrictEqual(sent(schema), schema)
  })

  it("put what Gemini does not read into the description", () => {
    assert.deepStrictEqual(
      sent({
        $schema: "https://json-schema.org/draft/2020-12/schema",
        $id: "x",
        type: "string",
        description: "A code",
        pattern: "^[a-z]+$",
        minLength: 2,
        examples: ["ab"]
      }),
      { type: "string", description: "A code\n{\"pattern\":\"^[a-z]+$\"}\n{\"minLength\":2}" }
    )
  })

  it("choose from texts and numbers; of the rest they name the type", () => {
    assert.deepStrictEqual(sent({ const: "a" }), { type: "string", enum: ["a"] })
    assert.deepStrictEqual(sent({ enum: [1, 2], type: "integer" }), { type: "integer", enum: [1, 2] })
    assert.deepStrictEqual(sent({ const: null }), { type: "null" })
    assert.deepStrictEqual(sent({ enum: [true, false] }), { type: "boolean" })
    assert.deepStrictEqual(sent({ const: true }), { type: "boolean", description: "{\"enum\":[true]}" })
    assert.deepStrictEqual(sent({ enum: ["a", null], type: ["string", "null"] }), {
      anyOf: [{ type: "string", enum: ["a"] }, { type: "null" }]
    })
    assert.deepStrictEqual(sent({ enum: [{ a: 1 }] }), { description: "{\"enum\":[{\"a\":1}]}" })
    assert.deepStrictEqual(sent({ enum: [] }), { description: "{\"enum\":[]}" })
  })

  it("merge what must hold at once, and tell what cannot be merged", () => {
    assert.deepStrictEqual(
      sent({
        allOf: [
          { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
          { $ref: "#/$defs/B" },
          { allOf: [{ title: "AB" }] }
        ],
        $defs: { B: { type: "object", properties: { b: { type: "number" } }, required: ["a", "b"] } }
      }),
      {
        type: "object",
        properties: { a: { type: "string" }, b: { type: "number" } },
        required: ["a", "b"],
        title: "AB"
      }
    )
    assert.deepStrictEqual(sent({ type: "number", minimum: 1, allOf: [{ minimum: 5 }] }), {
      type: "number",
      minimum: 1,
      description: "{\"minimum\":5}"
    })
  })

  it("refer to $defs alone, wherever the target stands, with nothing beside the reference", () => {
    assert.deepStrictEqual(
      sent({
        type: "object",
        properties: {
          a: { $ref: "#/definitions/Point", description: "From" },
          b: { $ref: "#/definitions/Point" },
          c: { type: "array", items: { $ref: "#/properties/d~1e" } },
          "d/e": { type: "string" },
          f: { $ref: "https://allm.example/elsewhere" },
          g: { $ref: "#/nowhere" },
          h: { $ref: "#/$defs/Point" },
          i: { $ref: "#" }
        },
        definitions: { Point: { type: "number", description: "old" } },
        $defs: { Point: { type: "number", description: "%" } }
      }),
      {
        type: "object",
        properties: {
          a: { $ref: "#/$defs/Point" },
          b: { $ref: "#/$defs/Point" },
          c: { type: "array", items: { $ref: "#/$defs/d_1e" } },
          "d/e": { type: "string" },
          f: {},
          g: {},
          h: { $ref: "#/$defs/Point_2" },
          i: { $ref: "#/$defs/root" }
        },
        $defs: {
          Point: { type: "number", description: "old" },
          Point_2: { type: "number", description: "%" },
          d_1e: { type: "string" },
          root: {
            type: "object",
            properties: {
              a: { $ref: "#/$defs/Point" },
              b: { $ref: "#/$defs/Point" },
              c: { type: "array", items: { $ref: "#/$defs/d_1e" } },
              "d/e": { type: "string" },
              f: {},
              g: {},
              h: { $ref: "#/$defs/Point_2" },
              i: { $ref: "#/$defs/root" }
            }
          }
        }
      }
    )
  })

  it("may be recursive", () => {
    interface Tree {
      readonly name: string
      readonly children?: ReadonlyArray<Tree>
    }
    const Tree = Schema.Struct({
      name: Schema.String,
      children: Schema.optionalWith(Schema.Array(Schema.suspend((): Schema.Schema<Tree> => Tree)), { exact: true })
    }).annotations({ identifier: "Tree" })
    const plant = Tool.make("plant", { description: "Plants", parameters: Tree, handler: () => "planted" })

    const node = {
      type: "object",
      required: ["name"],
      properties: { name: { type: "string" }, children: { type: "array", items: { $ref: "#/$defs/Tree" } } },
      additionalProperties: false
    }
    assert.deepStrictEqual(parametersOf(plant), { ...node, $defs: { Tree: node } })
  })

  it("are left out where a tool takes nothing, not where it takes anything", () => {
    const tool = (schema: JsonSchema) => Tool.fromJsonSchema("look", { description: "Looks", schema })
    assert.isUndefined(
      parametersOf(tool({ type: "object", properties: {}, required: [], additionalProperties: false }))
    )
    assert.deepStrictEqual(parametersOf(tool({ type: "object", additionalProperties: true })), {
      type: "object",
      additionalProperties: true
    })
    assert.deepStrictEqual(
      parametersOf(tool({ type: "object", anyOf: [{ properties: { a: true } }] })),
      { type: "object", anyOf: [{ properties: { a: {} } }] }
    )
  })
})
