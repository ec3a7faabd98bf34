import { Allm, type Request } from "@allm/core"
import { OpenAi, OpenAiChat } from "@allm/openai"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { clientOf, hello, responseStream, type Sent, sse, written } from "./wire.ts"

const Responses = OpenAi.layer({ baseUrl: "http://strict.test" })
const answer = () => sse(responseStream([{ id: "m", type: "message", content: [{ type: "output_text", text: "ok" }] }]))

type Json = { readonly [key: string]: unknown }

/** What becomes of a schema on its way. */
const enforced = (schema: Json, strict = true): Effect.Effect<{ readonly strict: boolean; readonly schema: Json }> => {
  const responseFormat: Request.ResponseFormat = { type: "json_schema", name: "answer", schema, strict }
  return written(Responses, { ...hello, responseFormat }, answer).pipe(
    Effect.map((sent) => sent.body.text.format),
    Effect.orDie
  )
}

const object = (properties: Json, rest: Json = {}): Json => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...rest
})

const text = { type: "string" }
const nothing = { type: "null" }

describe("a schema that can be enforced", () => {
  const becomes = (schema: Json, expected: Json) =>
    Effect.map(
      enforced(schema),
      (format) => assert.deepStrictEqual([format.strict, format.schema], [true, expected])
    )

  it.effect("has all properties required, null where they may be absent, and no others", () =>
    becomes(
      {
        type: "object",
        properties: {
          a: text,
          b: text,
          c: { anyOf: [text, nothing] },
          d: { type: ["string", "null"] },
          e: { type: "string", enum: ["x"] }
        },
        required: ["a"]
      },
      object({
        a: text,
        b: { anyOf: [text, nothing] },
        c: { anyOf: [text, nothing] },
        d: { type: ["string", "null"] },
        e: { anyOf: [{ type: "string", enum: ["x"] }, nothing] }
      })
    ))

  it.effect("is mended at every depth", () =>
    becomes(
      object({
        list: { type: "array", items: { type: "object", properties: { a: text }, required: [] }, minItems: 1 },
        either: { oneOf: [{ type: "object", properties: { a: text }, required: ["a"] }, text], description: "One" }
      }),
      object({
        list: { type: "array", items: object({ a: { anyOf: [text, nothing] } }), minItems: 1 },
        either: { anyOf: [object({ a: text }), text], description: "One" }
      })
    ))

  it.effect("keeps the words that are known, and loses those that only hint", () =>
    becomes(
      object({
        a: { type: "string", minLength: 1, maxLength: 9, pattern: "^a", format: "email", title: "A", default: "a" },
        b: { type: "string", format: "color", pattern: "^(?=a)", examples: ["x"] },
        c: { type: "integer", minimum: 1, maximum: 3, multipleOf: 2 },
        d: { type: "array", items: text, minItems: 1, maxItems: 2, uniqueItems: true },
        e: { const: "x" },
        f: { enum: ["x", 1, null] }
      }, { $schema: "https://json-schema.org/draft/2020-12/schema", $comment: "…", description: "All" }),
      {
        ...object({
          a: { type: "string", pattern: "^a", format: "email", title: "A" },
          b: { type: "string" },
          c: { type: "integer", minimum: 1, maximum: 3, multipleOf: 2 },
          d: { type: "array", items: text, minItems: 1, maxItems: 2 },
          e: { type: "string", const: "x" },
          f: { type: ["string", "number", "null"], enum: ["x", 1, null] }
        }),
        description: "All"
      }
    ))

  it.effect("refers to definitions, but not with anything besides", () =>
    becomes(
      object(
        {
          a: { $ref: "#/$defs/Name" },
          b: { $ref: "#/$defs/Name", description: "Another" },
          c: { $ref: "#/definitions/Count", minimum: 3 }
        },
        {
          $defs: { Name: { type: "string", minLength: 1 }, Unused: { type: "string", not: {} } },
          definitions: { Count: { type: "integer", minimum: 1 } }
        }
      ),
      object(
        {
          a: { $ref: "#/$defs/Name" },
          b: { type: "string", description: "Another" },
          c: { type: "integer", minimum: 3 }
        },
        { $defs: { Name: text } }
      )
    ))

  it.effect("may refer to itself", () => {
    const tree = { type: "object", properties: { next: { $ref: "#/$defs/Tree" }, also: { $ref: "#" } }, required: [] }
    const strict = object({
      next: { anyOf: [{ $ref: "#/$defs/Tree" }, nothing] },
      also: { anyOf: [{ $ref: "#" }, nothing] }
    })
    return becomes({ ...tree, $defs: { Tree: tree } }, { ...strict, $defs: { Tree: strict } })
  })

  it.effect("may be put together from parts that agree", () =>
    becomes(
      object({ a: { type: "string", allOf: [{ pattern: "^a" }, { minLength: 2, description: "A" }] } }),
      object({ a: { type: "string", pattern: "^a", description: "A" } })
    ))
})

describe("a schema that cannot be enforced", () => {
  const impossible: ReadonlyArray<readonly [string, Json]> = [
    ["is no object", { type: "array", items: text }],
    ["is a choice", { anyOf: [object({ a: text }), object({ b: text })] }],
    ["has other properties", { type: "object", properties: {}, additionalProperties: text }],
    ["has any properties", object({ a: { type: "object" } })],
    ["has properties by pattern", object({ a: { ...object({}), patternProperties: { "^a": text } } })],
    ["holds anything", object({ a: {} })],
    ["holds anything in a list", object({ a: { type: "array" } })],
    ["is a tuple", object({ a: { type: "array", prefixItems: [text], items: false } })],
    ["excludes something", object({ a: { type: "string", not: { const: "x" } } })],
    ["has conditions", object({ a: text }, { if: { required: ["a"] }, else: {} })],
    ["refers to nothing", object({ a: { $ref: "#/$defs/Gone" } })],
    ["refers elsewhere", object({ a: { $ref: "https://allm.example/a.json" } })],
    ["is put together from parts that disagree", object({ a: { allOf: [{ type: "string" }, { type: "number" }] } })],
    [
      "is too deep",
      Array.from({ length: 12 }).reduce<Json>((inner) => object({ a: inner }), text)
    ],
    ["has an impossible definition", object({ a: { $ref: "#/$defs/Any" } }, { $defs: { Any: {} } })]
  ]
  for (const [what, schema] of impossible) {
    it.effect(`because it ${what} is only asked for`, () =>
      Effect.map(enforced(schema), (format) => {
        assert.isFalse(format.strict)
        assert.deepStrictEqual(format.schema, schema)
      }))
  }

  it.effect("or need not be stays as it is", () =>
    Effect.gen(function*() {
      const schema = { type: "object", properties: { a: text } }
      const format = yield* enforced(schema, false)
      assert.deepStrictEqual([format.strict, format.schema], [false, schema])
    }))
})

describe("a Schema", () => {
  const Person = Schema.Struct({
    name: Schema.NonEmptyTrimmedString.annotations({ description: "The full name" }),
    age: Schema.optional(Schema.Int.pipe(Schema.between(0, 150))),
    born: Schema.Date,
    kind: Schema.Union(
      Schema.Struct({ kind: Schema.Literal("cat"), lives: Schema.Number }),
      Schema.Struct({ kind: Schema.Literal("dog") })
    ),
    tags: Schema.Array(Schema.Literal("a", "b")),
    nick: Schema.NullOr(Schema.String)
  })

  it.effect("goes out enforced, and its answer comes back decoded", () =>
    Effect.gen(function*() {
      const sent: Array<Sent> = []
      const said = {
        name: "Ada",
        age: null,
        born: "1815-12-10T00:00:00.000Z",
        kind: { kind: "dog" },
        tags: ["a"],
        nick: null
      }
      const { value } = yield* Allm.object("Who?", { schema: Person }).pipe(
        Effect.provide(OpenAiChat.engine({ baseUrl: "http://strict.test", model: "m" })),
        Effect.provide(
          clientOf(
            () => sse([{ choices: [{ delta: { content: JSON.stringify(said) }, finish_reason: "stop" }] }]),
            sent
          )
        )
      )
      const { json_schema: format } = sent[0]!.body.response_format
      assert.isTrue(format.strict)
      assert.deepStrictEqual(format.schema.required, ["name", "age", "born", "kind", "tags", "nick"])
      assert.deepStrictEqual(keywordsIn(format.schema), [])

      assert.strictEqual(value.name, "Ada")
      assert.notProperty(value, "age")
      assert.strictEqual(value.born.getUTCFullYear(), 1815)
    }))

  it.effect("with what no provider enforces goes out as it is", () =>
    Effect.gen(function*() {
      const sent: Array<Sent> = []
      const Open = Schema.Struct({ counts: Schema.Record({ key: Schema.String, value: Schema.Number }) })
      const { value } = yield* Allm.object("How many?", { schema: Open }).pipe(
        Effect.provide(OpenAiChat.engine({ baseUrl: "http://strict.test", model: "m" })),
        Effect.provide(clientOf(() =>
          sse([{ choices: [{ delta: { content: "{\"counts\":{\"a\":1}}" }, finish_reason: "stop" }] }]), sent))
      )
      assert.isFalse(sent[0]!.body.response_format.json_schema.strict)
      assert.deepStrictEqual(value, { counts: { a: 1 } })
    }))
})

const refused = new Set(["minLength", "maxLength", "default", "allOf", "oneOf", "not", "uniqueItems", "prefixItems"])

/** The keywords in a schema that OpenAI refuses, and references with company. */
const keywordsIn = (node: unknown): ReadonlyArray<string> => {
  if (Array.isArray(node)) return node.flatMap(keywordsIn)
  if (typeof node !== "object" || node === null) return []
  const keys = Object.keys(node)
  return [
    ...keys.filter((key) => refused.has(key)),
    ...(keys.includes("$ref") && keys.length > 1 ? ["$ref"] : []),
    ...Object.values(node).flatMap(keywordsIn)
  ]
}
