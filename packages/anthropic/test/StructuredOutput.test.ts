import { Anthropic } from "@allm/anthropic"
import * as EventLaws from "@allm/conformance/EventLaws"
import { Allm, Message, Request, Tool } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import {
  answerOf,
  apiKey,
  ask,
  bodyOf,
  call,
  clientOf,
  completion,
  ended,
  heard,
  type Json,
  sse,
  sseOf,
  started,
  stopped,
  text,
  thinking,
  unwritten,
  written
} from "./wire.ts"

const format = (schema: Json, strict = true): Request.ResponseFormat => ({
  type: "json_schema",
  name: "answer",
  schema,
  strict
})

const person = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" } },
  required: ["name"]
}

const look = Tool.declaration(Tool.fromJsonSchema("look", { description: "Looks", schema: { type: "object" } }))

const names = (body: Json) => ((body.tools ?? []) as ReadonlyArray<{ readonly name: string }>).map(({ name }) => name)

describe("a schema", () => {
  const native = (schema: Json) =>
    (written({ responseFormat: format(schema) }).output_config as
      | { readonly format?: { readonly schema?: Json } }
      | undefined)
      ?.format?.schema

  it("is kept by the API, its objects closed", () => {
    const body = written({ responseFormat: format(person) })

    assert.deepStrictEqual(body.output_config, {
      format: { type: "json_schema", schema: { ...person, additionalProperties: false } }
    })
    assert.notProperty(body, "tools")
  })

  it("tells the model of limits that the API cannot keep", () => {
    const written = native({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: {
        name: { type: "string", description: "Of the person.", minLength: 1, maxLength: 9, pattern: "^a" },
        age: { type: "integer", minimum: 0, allOf: [{ maximum: 150, description: "a human" }] },
        mail: { type: "string", format: "email" },
        color: { type: "string", format: "color" },
        tags: { type: "array", items: { type: "string" }, minItems: 1, maxItems: 3 },
        pair: { type: "array", items: { type: "number" }, minItems: 2 }
      },
      required: ["name"],
      additionalProperties: false
    })

    assert.deepStrictEqual(written?.properties, {
      name: { type: "string", description: "Of the person. (minLength: 1, maxLength: 9, pattern: \"^a\")" },
      age: { type: "integer", description: "(minimum: 0, maximum: 150, a human)" },
      mail: { type: "string", format: "email" },
      color: { type: "string", description: "(format: \"color\")" },
      tags: { type: "array", items: { type: "string" }, minItems: 1, description: "(maxItems: 3)" },
      pair: { type: "array", items: { type: "number" }, description: "(minItems: 2)" }
    })
    assert.notProperty(written, "$schema")
  })

  it("keeps alternatives, literals and definitions", () => {
    const given = {
      type: "object",
      properties: {
        kind: { type: "string", enum: ["a", "b"] },
        maybe: { type: ["string", "null"] },
        either: { oneOf: [{ const: 1 }, { $ref: "#/$defs/Other" }] }
      },
      required: ["kind"],
      $defs: { Other: { type: "object", properties: { x: { type: "number", default: 1 } } } }
    }

    assert.deepStrictEqual(native(given), {
      type: "object",
      properties: {
        kind: { type: "string", enum: ["a", "b"] },
        maybe: { type: ["string", "null"] },
        either: { anyOf: [{ const: 1 }, { $ref: "#/$defs/Other" }] }
      },
      required: ["kind"],
      additionalProperties: false,
      $defs: {
        Other: { type: "object", properties: { x: { type: "number", default: 1 } }, additionalProperties: false }
      }
    })
  })

  const impossible: ReadonlyArray<readonly [string, Json]> = [
    ["a record", { type: "object", additionalProperties: { type: "number" } }],
    ["any object", { type: "object" }],
    ["an open object", { type: "object", properties: {}, additionalProperties: true }],
    ["anything", {}],
    ["a tuple", { type: "array", prefixItems: [{ type: "number" }], items: false }],
    ["a list of anything", { type: "array" }],
    ["names by a pattern", { type: "object", properties: {}, patternProperties: { "^a": { type: "string" } } }],
    ["an exception", { type: "string", not: { const: "a" } }],
    ["a literal object", { const: { a: 1 } }],
    ["two shapes at once", { allOf: [{ type: "object", properties: {} }] }],
    ["a schema elsewhere", { $ref: "https://allm.example/schema.json" }],
    ["a definition that is missing", { $ref: "#/$defs/missing" }],
    ["an object with alternatives", { type: "object", properties: {}, anyOf: [{ required: ["a"] }] }]
  ]
  for (const [name, schema] of impossible) {
    it(`with ${name} goes by a tool instead, as it is`, () => {
      const given = { type: "object", properties: { it: schema } }
      const body = written({ responseFormat: format(given) })

      assert.notProperty(body, "output_config")
      assert.deepStrictEqual(body.tool_choice, { type: "tool", name: "json" })
      assert.deepStrictEqual((body.tools as ReadonlyArray<Json>)[0]?.input_schema, given)
    })
  }

  it("that contains itself goes by a tool too", () => {
    const tree = {
      type: "object",
      properties: { children: { type: "array", items: { $ref: "#/$defs/Tree" } } },
      $defs: { Tree: { type: "object", properties: { children: { type: "array", items: { $ref: "#/$defs/Tree" } } } } }
    }

    assert.isUndefined(native(tree))
    assert.deepStrictEqual(names(written({ responseFormat: format(tree) })), ["json"])
  })

  it("that is not strict, or older models, go by a tool", () => {
    assert.deepStrictEqual(names(written({ responseFormat: format(person, false) })), ["json"])
    for (const model of ["claude-3-5-haiku-latest", "claude-opus-4-1", "claude-sonnet-4-20250514", "kimi-k2"]) {
      assert.deepStrictEqual(names(written({ model, responseFormat: format(person) })), ["json"], model)
    }
    for (const model of ["claude-haiku-4-5", "claude-opus-4-5-20251101", "claude-fable-5"]) {
      assert.deepStrictEqual(names(written({ model, responseFormat: format(person) })), [], model)
    }
  })

  it("goes the way that the settings say", () => {
    assert.deepStrictEqual(names(written({ responseFormat: format(person) }, { structuredOutput: "tool" })), ["json"])
    assert.property(
      written({ model: "gate-1", responseFormat: format(person) }, { structuredOutput: "native" }),
      "output_config"
    )
  })

  it("whose answers are no objects needs the API", () => {
    const list = { type: "array", items: { type: "string" } }

    assert.property(written({ responseFormat: format(list) }), "output_config")
    assert.deepStrictEqual(unwritten({ model: "claude-3-opus-20240229", responseFormat: format(list) }), {
      reason: "unsupported_feature",
      detail: "an answer in this form has to be an object; wrap its schema in one, such as { answer: … }"
    })
  })
})

describe("an answer by a tool", () => {
  const old = { model: "claude-3-7-sonnet-latest", responseFormat: format(person) }

  it("is forced, unless there is something else to call or the model thinks first", () => {
    const choice = (request: Parameters<typeof written>[0], config?: Anthropic.Config) =>
      written({ ...old, ...request }, config).tool_choice

    assert.deepStrictEqual(choice({}), { type: "tool", name: "json" })
    assert.deepStrictEqual(choice({ tools: [look] }), { type: "any" })
    assert.deepStrictEqual(choice({ tools: [look], toolChoice: "none" }), { type: "tool", name: "json" })
    assert.deepStrictEqual(choice({}, { serverTools: [{ type: "web_search_20250305", name: "web_search" }] }), {
      type: "any"
    })
    assert.deepStrictEqual(choice({ options: { thinking: { type: "enabled", budget_tokens: 2000 } } }), {
      type: "auto"
    })
    assert.deepStrictEqual(choice({ options: { thinking: { type: "disabled" } } }), { type: "tool", name: "json" })
  })

  it("is not offered where a call is demanded", () => {
    assert.deepStrictEqual(names(written({ ...old, tools: [look], toolChoice: "required" })), ["look"])
    assert.deepStrictEqual(names(written({ ...old, tools: [look], toolChoice: { tool: "look" } })), ["look"])
  })

  it("has a name that no other tool has", () => {
    assert.deepStrictEqual(names(written({ ...old, tools: [{ ...look, name: "json" }] })), ["json", "json_"])
  })

  it("may be any object", () => {
    const body = written({ responseFormat: { type: "json_object" } })

    assert.deepStrictEqual((body.tools as ReadonlyArray<Json>)[0]?.input_schema, { type: "object" })
    assert.notProperty(written({ responseFormat: { type: "text" } }), "tools")
  })
})

describe("what a tool took as the answer", () => {
  const request = Request.make({
    model: "claude-3-5-haiku-latest",
    messages: [Message.user("How many?")],
    responseFormat: { type: "json_schema", name: "count", schema: { type: "object", properties: {} }, strict: true }
  })

  it.effect("is text", () =>
    Effect.gen(function*() {
      const events = yield* heard([
        started(),
        ...text(0, "Here you are:"),
        ...call(1, { id: "toolu_1", name: "json" }, "{\"count\"", ":3}"),
        stopped("tool_use"),
        ended
      ], request)

      assert.deepStrictEqual(EventLaws.problems(events), [])
      assert.deepStrictEqual(events.slice(1), [
        { _tag: "TextDelta", delta: "{\"count\"" },
        { _tag: "TextDelta", delta: ":3}" },
        { _tag: "TextCompleted", text: "{\"count\":3}" },
        completion(events)
      ])
      assert.strictEqual(completion(events).finishReason, "stop")
      assert.deepStrictEqual(completion(events).message, {
        role: "assistant",
        content: "{\"count\":3}",
        toolCalls: [],
        metadata: {}
      })
    }))

  it.effect("counts once, and an empty one is an object too", () =>
    Effect.gen(function*() {
      const twice = yield* heard([
        started(),
        ...call(0, { id: "toolu_1", name: "json" }),
        ...call(1, { id: "toolu_2", name: "json" }, "{\"a\":1}"),
        stopped("tool_use"),
        ended
      ], request)

      assert.deepStrictEqual(EventLaws.problems(twice), [])
      assert.strictEqual(EventLaws.said(twice).text, "{}")
    }))

  it.effect("that did not come leaves the text to stand", () =>
    Effect.gen(function*() {
      const events = yield* heard(answerOf(...text(0, "I can", "not."), ...text(1, " Sorry.")), request)

      assert.deepStrictEqual(EventLaws.problems(events), [])
      assert.strictEqual(EventLaws.said(events).text, "I cannot. Sorry.")
      assert.strictEqual(completion(events).message?.content, "I cannot. Sorry.")
    }))

  it.effect("keeps the thoughts before it", () =>
    Effect.gen(function*() {
      const events = yield* heard([
        started(),
        ...thinking(0, "sig", "Three."),
        ...text(1, "So:"),
        ...call(2, { id: "toolu_1", name: "json" }, "{\"count\":3}"),
        stopped("tool_use"),
        ended
      ], request)

      assert.deepStrictEqual(completion(events).message?.metadata, {
        anthropic: {
          content: [{ type: "thinking", thinking: "Three.", signature: "sig" }, { type: "text", length: 11 }]
        }
      })
    }))

  it.effect("is in one piece where the whole answer is", () =>
    Effect.gen(function*() {
      const events = yield* ask(() =>
        Response.json({
          content: [{ type: "tool_use", id: "toolu_1", name: "json", input: { count: 3 } }],
          stop_reason: "tool_use"
        }), request)

      assert.strictEqual(EventLaws.said(events).text, "{\"count\":3}")
      assert.strictEqual(completion(events).finishReason, "stop")
    }))
})

describe("Allm.object", () => {
  const Person = Schema.Struct({ name: Schema.NonEmptyString, age: Schema.optional(Schema.Int) })

  const object = (model: string, frames: ReturnType<typeof answerOf>, seen: Array<Json>) =>
    Allm.object("Who?", { schema: Person }).pipe(
      Effect.provide(Anthropic.engine({ apiKey, model })),
      Effect.provide(clientOf((request) => {
        seen.push(bodyOf(request))
        return sse(sseOf(frames))
      }))
    )

  it.effect("gives the value, by the API or by a tool", () =>
    Effect.gen(function*() {
      const seen: Array<Json> = []
      const byApi = yield* object("claude-sonnet-5", answerOf(...text(0, "{\"name\":", "\"Ada\"}")), seen)
      const byTool = yield* object("claude-3-haiku-20240307", [
        started(),
        ...call(0, { id: "toolu_1", name: "json" }, "{\"name\":\"Ada\",", "\"age\":36}"),
        stopped("tool_use"),
        ended
      ], seen)

      assert.deepStrictEqual([byApi.value, byTool.value], [{ name: "Ada" }, { name: "Ada", age: 36 }])
      assert.property(seen[0], "output_config")
      assert.deepStrictEqual(names(seen[1]!), ["json"])
    }))

  it.effect("goes on as a conversation in which the answer was text", () =>
    Effect.gen(function*() {
      const seen: Array<Json> = []
      const chat = (messages: ReadonlyArray<Message.Message>) => Allm.chat(messages, { responseFormat: Person })
      yield* Effect.gen(function*() {
        const first = yield* chat([Message.user("Who?")])
        yield* chat([...first.thread.messages, Message.user("And who else?")])
      }).pipe(
        Effect.provide(Anthropic.engine({ apiKey, model: "claude-3-haiku-20240307" })),
        Effect.provide(clientOf((request) => {
          seen.push(bodyOf(request))
          return sse(sseOf([
            started(),
            ...call(0, { id: "toolu_1", name: "json" }, "{\"name\":\"Ada\"}"),
            stopped("tool_use"),
            ended
          ]))
        }))
      )

      assert.deepStrictEqual((seen[1]!.messages as ReadonlyArray<unknown>)[1], {
        role: "assistant",
        content: [{ type: "text", text: "{\"name\":\"Ada\"}" }]
      })
    }))
})
