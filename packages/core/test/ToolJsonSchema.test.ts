import { Tool, ToolCall, ToolContext, ToolExecutor, ValidationError } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, FastCheck, Schema } from "effect"

const description = "Does something"

const inputSchema = (parameters: Tool.ParametersInput) => Tool.make("x", { description, parameters }).inputSchema

const property = (schema: Schema.Schema.Any) =>
  (inputSchema({ p: schema }) as { properties: { p: unknown } }).properties.p

const echo = (schema: { readonly [key: string]: unknown }) =>
  Tool.fromJsonSchema("x", { description, schema, handler: (args) => args })

const execute = <T extends Tool.Any>(tool: T, args: unknown) =>
  ToolExecutor.handlers.execute(
    tool,
    args,
    ToolContext.make({ toolCall: ToolCall.make({ id: "c0", name: "x", arguments: {} }) })
  )

/** What the validator finds in the arguments; nothing when the handler got them. */
const issues = (schema: { readonly [key: string]: unknown }, args: unknown) =>
  Effect.match(Effect.suspend(() => execute(echo(schema), args)), {
    onFailure: (error) => error._tag === "InvalidArguments" ? error.issues : assert.fail(error.message),
    onSuccess: () => []
  })

interface Tree {
  readonly value: string
  readonly children: ReadonlyArray<Tree>
}
const Tree: Schema.Schema<Tree> = Schema.Struct({
  value: Schema.String,
  children: Schema.Array(Schema.suspend(() => Tree))
}).annotations({ identifier: "Tree" })

class Item extends Schema.Class<Item>("Item")({ id: Schema.String, note: Schema.optional(Schema.String) }) {}

const itemSchema = {
  type: "object",
  required: ["id"],
  properties: { id: { type: "string" }, note: { type: "string" } },
  additionalProperties: false
}

describe("Tool.inputSchema", () => {
  it("closes every object and keeps descriptions", () => {
    const schema = inputSchema(
      Schema.Struct({
        city: Schema.String.annotations({ description: "Name of the city" }),
        at: Schema.Struct({ lat: Schema.Number }).annotations({ description: "Where it lies" })
      }).annotations({ description: "What to look up" })
    )

    assert.deepStrictEqual(schema, {
      type: "object",
      description: "What to look up",
      required: ["city", "at"],
      properties: {
        city: { type: "string", description: "Name of the city" },
        at: {
          type: "object",
          description: "Where it lies",
          required: ["lat"],
          properties: { lat: { type: "number" } },
          additionalProperties: false
        }
      },
      additionalProperties: false
    })
  })

  it("keeps a description on an optional member", () => {
    const unit = Schema.optional(Schema.Literal("C", "F").annotations({ description: "Unit of the answer" }))

    assert.deepStrictEqual(inputSchema({ unit }), {
      type: "object",
      required: [],
      properties: { unit: { type: "string", enum: ["C", "F"], description: "Unit of the answer" } },
      additionalProperties: false
    })
  })

  it("tells what the model has to write, not what the handler gets", () => {
    assert.deepStrictEqual(property(Schema.NumberFromString.annotations({ description: "digits" })), {
      type: "string",
      description: "digits"
    })
  })

  it("speaks draft 2020-12: tuples are prefixItems", () => {
    assert.deepStrictEqual(property(Schema.Tuple(Schema.String, Schema.Number)), {
      type: "array",
      minItems: 2,
      prefixItems: [{ type: "string" }, { type: "number" }],
      items: false
    })
  })

  it("keeps bounds, patterns, nulls and unions", () => {
    const days = Schema.Int.pipe(Schema.between(1, 5, { title: "days", description: "how many" }))

    assert.deepStrictEqual(property(days), {
      type: "integer",
      title: "days",
      description: "how many",
      minimum: 1,
      maximum: 5
    })
    assert.deepStrictEqual(property(Schema.String.pipe(Schema.pattern(/^a+$/, { description: "only a" }))), {
      type: "string",
      description: "only a",
      pattern: "^a+$"
    })
    assert.deepStrictEqual(property(Schema.NullOr(Schema.String)), { anyOf: [{ type: "string" }, { type: "null" }] })
    assert.deepStrictEqual(property(Schema.Union(Schema.String, Schema.Number)), {
      anyOf: [{ type: "string" }, { type: "number" }]
    })
    assert.deepStrictEqual(property(Schema.Record({ key: Schema.String, value: Schema.Number })), {
      type: "object",
      required: [],
      properties: {},
      additionalProperties: { type: "number" }
    })
  })

  it("writes classes out in place", () => {
    assert.deepStrictEqual(inputSchema(Item), itemSchema)
    assert.deepStrictEqual(property(Schema.Array(Item)), { type: "array", items: itemSchema })
  })

  it("keeps a definition only for what contains itself", () => {
    const tree = {
      type: "object",
      required: ["value", "children"],
      properties: { value: { type: "string" }, children: { type: "array", items: { $ref: "#/$defs/Tree" } } },
      additionalProperties: false
    }

    assert.deepStrictEqual(inputSchema(Tree), { ...tree, $defs: { Tree: tree } })
  })

  it("has no private ids, not even for an empty struct", () => {
    assert.deepStrictEqual(property(Schema.Struct({})), {
      type: "object",
      properties: {},
      required: [],
      additionalProperties: false
    })
    assert.notMatch(JSON.stringify(inputSchema({ a: Schema.Unknown, b: Schema.Struct({}) })), /\$id|\$schema/)
  })

  it("keeps a parameter that happens to be named $id", () => {
    assert.deepStrictEqual(inputSchema({ $id: Schema.String }), {
      type: "object",
      required: ["$id"],
      properties: { $id: { type: "string" } },
      additionalProperties: false
    })
  })

  it("is plain JSON", () => {
    const schema = inputSchema({ item: Item, tree: Tree, when: Schema.DateFromString, more: Schema.Unknown })

    assert.deepStrictEqual(JSON.parse(JSON.stringify(schema)), schema)
  })

  it.effect("accepts whatever the parameters can be encoded to", () =>
    Effect.gen(function*() {
      const Parameters = Schema.Struct({
        city: Schema.NonEmptyString,
        days: Schema.Int.pipe(Schema.between(1, 14)),
        unit: Schema.optional(Schema.Literal("C", "F")),
        since: Schema.NumberFromString,
        at: Schema.Tuple(Schema.JsonNumber, Schema.JsonNumber),
        tags: Schema.Array(Schema.String),
        item: Schema.NullOr(Item)
      })
      const tool = echo(inputSchema(Parameters))
      const samples = FastCheck.sample(Arbitrary.make(Parameters), { numRuns: 100, seed: 1 })
        .map((sample): unknown => JSON.parse(JSON.stringify(Schema.encodeSync(Parameters)(sample))))

      const outcomes = yield* Effect.forEach(samples, (args) => execute(tool, args))

      assert.deepStrictEqual(outcomes.map((outcome) => outcome._tag === "Ok" && outcome.value), samples)
    }))
})

describe("Tool.fromJsonSchema", () => {
  it.effect("hands valid arguments to the handler untouched", () =>
    Effect.gen(function*() {
      const args = { city: "Oslo", more: [1, { deep: null }] }
      const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] }

      const outcome = yield* execute(echo(schema), args)

      assert(outcome._tag === "Ok")
      assert.strictEqual(outcome.value, args)
    }))

  it.effect("never calls the handler with arguments that do not fit", () =>
    Effect.gen(function*() {
      let called = 0
      const tool = Tool.fromJsonSchema("x", {
        description,
        schema: { type: "object", required: ["city"] },
        handler: () => ++called
      })

      const error = yield* Effect.flip(execute(tool, {}))

      assert.strictEqual(error._tag, "InvalidArguments")
      assert.strictEqual(called, 0)
    }))

  it.effect("finds every issue and its place", () =>
    Effect.gen(function*() {
      const found = yield* issues(
        {
          type: "object",
          properties: {
            days: { type: "integer", minimum: 3 },
            tags: { type: "array", items: { type: "string" } },
            unit: { enum: ["C", "F"] },
            at: { $ref: "#/$defs/Place" },
            "a/b~c": { type: "string" }
          },
          required: ["days", "city"],
          additionalProperties: false,
          $defs: { Place: { type: "object", required: ["lat"] } }
        },
        { days: 1, tags: ["x", 2], unit: "K", at: {}, extra: 1, "a/b~c": 5 }
      )

      assert.deepStrictEqual(found, [
        { path: [], message: "Instance does not have required property \"city\"." },
        { path: ["days"], message: "1 is less than 3." },
        { path: ["tags", 1], message: "Instance type \"number\" is invalid. Expected \"string\"." },
        { path: ["unit"], message: "Instance does not match any of [\"C\",\"F\"]." },
        { path: ["at"], message: "Instance does not have required property \"lat\"." },
        { path: ["a/b~c"], message: "Instance type \"number\" is invalid. Expected \"string\"." },
        { path: ["extra"], message: "is not a known property" }
      ])
    }))

  it.effect("checks what draft 2020-12 can say", () =>
    Effect.gen(function*() {
      const accepts = (schema: { readonly [key: string]: unknown }, value: unknown) =>
        Effect.map(
          issues({ type: "object", properties: { v: schema }, $defs: { short: { $anchor: "short", maxLength: 2 } } }, {
            v: value
          }),
          (found) => found.length === 0
        )
      const cases: ReadonlyArray<readonly [schema: { readonly [key: string]: unknown }, good: unknown, bad: unknown]> =
        [
          [{ type: ["string", "null"] }, null, 1],
          [{ const: { a: [1] } }, { a: [1] }, { a: [2] }],
          [{ prefixItems: [{ type: "string" }], items: false }, ["a"], ["a", 1]],
          [{ oneOf: [{ multipleOf: 2 }, { multipleOf: 3 }] }, 4, 6],
          [{ not: { type: "string" } }, 1, "a"],
          [{ if: { const: 1 }, else: { type: "string" } }, "a", 2],
          [{ dependentRequired: { a: ["b"] } }, { a: 1, b: 2 }, { a: 1 }],
          [{ uniqueItems: true }, [1, 2], [1, 1]],
          [{ contains: { const: 1 } }, [0, 1], [0]],
          [{ pattern: "^\\p{L}+$" }, "Åse", "a1"],
          [{ format: "date" }, "2024-02-29", "2023-02-29"],
          [{ $ref: "#short" }, "ab", "abc"],
          [{ propertyNames: { maxLength: 1 } }, { a: 1 }, { ab: 1 }],
          [{ unevaluatedProperties: false, properties: { a: true } }, { a: 1 }, { b: 1 }]
        ]

      for (const [schema, good, bad] of cases) {
        assert.deepStrictEqual([yield* accepts(schema, good), yield* accepts(schema, bad)], [true, false])
      }
    }))

  it.effect("takes members of Object.prototype for what they are: absent", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* issues({ type: "object", properties: { toString: { type: "string" } }, required: ["constructor"] }, {}),
        [{ path: [], message: "Instance does not have required property \"constructor\"." }]
      )
    }))

  it.effect("reports a key that is not well-formed text like any other", () =>
    Effect.gen(function*() {
      const args: unknown = JSON.parse("{\"\\ud800\":1}")

      const found = yield* issues({ type: "object", additionalProperties: false }, args)

      assert.deepStrictEqual(found.map((issue) => issue.message), ["is not a known property"])
    }))

  it.effect("refuses a name that is not well-formed text when nothing else is wrong with it", () =>
    Effect.gen(function*() {
      const args: unknown = JSON.parse("{\"\\ud800\":1}")

      assert.deepStrictEqual(yield* issues({ type: "object", additionalProperties: { type: "number" } }, args), [
        { path: [], message: "a name is not well-formed text" }
      ])
    }))

  it.effect("takes a frozen schema, and leaves every schema as it was", () =>
    Effect.gen(function*() {
      const n = Object.freeze({ $ref: "#/$defs/n" })
      const schema = Object.freeze({ type: "object", properties: { n }, $defs: { n: { type: "number" } } })

      assert.strictEqual(echo(schema).inputSchema, schema)
      assert.deepStrictEqual(Reflect.ownKeys(schema.$defs.n), ["type"])
      assert.deepStrictEqual((yield* issues(schema, { n: "one" })).map((issue) => issue.path), [["n"]])
    }))

  it.effect("compiles the schema when the tool is made, not when it is called", () =>
    Effect.gen(function*() {
      let walks = 0
      const schema = new Proxy({ type: "object", properties: { n: { type: "number" } } }, {
        ownKeys: (target) => {
          walks++
          return Reflect.ownKeys(target)
        }
      })
      const tool = echo(schema)
      const atStart = walks

      yield* Effect.forEach([1, 2, 3], (n) => execute(tool, { n }))
      const error = yield* Effect.flip(execute(tool, { n: "four" }))

      assert.strictEqual(error._tag, "InvalidArguments")
      assert.isAbove(atStart, 0)
      assert.strictEqual(walks, atStart)
    }))

  it.effect("compiles an Effect schema once, too", () =>
    Effect.gen(function*() {
      let compiled = 0
      const Node = Schema.suspend(() => {
        compiled++
        return Schema.Number
      })
      const tool = Tool.make("x", {
        description,
        parameters: { n: Node.annotations({ jsonSchema: { type: "number" } }) },
        handler: ({ n }) => n
      })

      yield* Effect.forEach([1, 2, 3], (n) => execute(tool, { n }))

      assert.strictEqual(compiled, 1)
    }))

  describe("refuses at once", () => {
    const refuses = (schema: { readonly [key: string]: unknown }, why: RegExp) => {
      assert.throws(() => echo({ type: "object", ...schema }), ValidationError.ValidationError)
      assert.throws(() => echo({ type: "object", ...schema }), why)
    }

    it("a reference that leads nowhere", () => {
      refuses({ properties: { a: { $ref: "#/$defs/missing" } } }, /the reference "#\/\$defs\/missing" leads nowhere/)
    })

    it("a reference that leads nowhere below a parameter named like a keyword", () => {
      refuses({ properties: { default: { $ref: "#/$defs/missing" } } }, /leads nowhere/)
      refuses({ properties: { enum: { $ref: "#/$defs/missing" } } }, /leads nowhere/)
    })

    it("a reference to another document, which nobody would fetch", () => {
      refuses({ properties: { a: { $ref: "https://schemas.example/place" } } }, /https:\/\/schemas\.example\/place/)
    })

    it("an anchor nobody set", () => {
      refuses({ properties: { a: { $ref: "#nowhere" } } }, /#nowhere/)
    })

    it("a pattern that is no regular expression", () => {
      refuses({ properties: { a: { pattern: "[" } } }, /the pattern "\[" is not a regular expression/)
    })

    it("a pattern for names that is no regular expression", () => {
      refuses({ patternProperties: { "[": {} } }, /"\[" is not a regular expression/)
    })

    it("a type there is not", () => {
      refuses({ properties: { a: { type: "text" } } }, /"text" is no type; write object, array, string/)
    })

    it("a type there is not among several", () => {
      refuses({ properties: { a: { type: ["string", "nil"] } } }, /"nil" is no type/)
    })

    it("what is not JSON, such as a schema that contains itself", () => {
      const properties: { [name: string]: unknown } = { a: { type: "string" } }
      properties["b"] = { properties }

      refuses({ properties }, /at \$\.properties\.b\.properties it contains itself/)
      refuses({ properties: { a: { pattern: /a/ } } }, /at \$\.properties\.a\.pattern a RegExp is not JSON/)
    })

    it("an address that is none", () => {
      refuses({ $id: "http://[" }, /the schema cannot be read/)
    })

    it("but not data that looks like a broken schema", () => {
      const schema = {
        type: "object",
        properties: { a: { const: { type: "text", $ref: "#/nowhere", pattern: "[" } }, b: { default: { type: "x" } } }
      }

      assert.strictEqual(echo(schema).inputSchema, schema)
    })
  })
})
