import { Message, Tool, ToolCall } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { written } from "./wire.ts"

const look = Tool.declaration(Tool.fromJsonSchema("look", {
  description: "Looks",
  schema: { type: "object", properties: { at: { type: "string" } }, required: ["at"] }
}))

const called = (id: string) => ToolCall.make({ id, name: "look", arguments: {} })

describe("tools", () => {
  it("are declared with their schemas", () => {
    assert.deepStrictEqual(written({ tools: [look] }).tools, [
      { name: "look", description: "Looks", input_schema: look.inputSchema }
    ])
  })

  it("are chosen as the API says it", () => {
    const choice = (toolChoice: "auto" | "none" | "required" | { readonly tool: string }) =>
      written({ tools: [look], toolChoice }).tool_choice

    assert.deepStrictEqual(choice("auto"), { type: "auto" })
    assert.deepStrictEqual(choice("none"), { type: "none" })
    assert.deepStrictEqual(choice("required"), { type: "any" })
    assert.deepStrictEqual(choice({ tool: "look" }), { type: "tool", name: "look" })
    assert.notProperty(written({ tools: [look] }), "tool_choice")
    // Without tools the API lets no choice pass.
    assert.notProperty(written({ toolChoice: "none" }), "tool_choice")
  })

  it("of Anthropic's own stand beside them", () => {
    const search = { type: "web_search_20250305", name: "web_search", max_uses: 3 }

    assert.deepStrictEqual(
      (written({ tools: [look] }, { serverTools: [search] }).tools as ReadonlyArray<unknown>)[1],
      search
    )
    assert.deepStrictEqual(written({}, { serverTools: [search] }).tools, [search])
  })

  it("that were called stay known when none are offered any more", () => {
    const body = written({
      messages: [
        Message.user("Look."),
        Message.assistant("", { toolCalls: [called("t1"), called("t2")] }),
        Message.tool("t1", "seen"),
        Message.tool("t2", "seen"),
        Message.user("Answer now.")
      ]
    })

    assert.deepStrictEqual(body.tool_choice, { type: "none" })
    assert.deepStrictEqual((body.tools as ReadonlyArray<{ readonly name: string }>).map(({ name }) => name), ["look"])
  })

  it("carry what only Anthropic knows in their metadata", () => {
    const own = { ...look, metadata: { anthropic: { strict: true, cacheControl: "1h" }, other: 1 } }

    assert.deepStrictEqual(written({ tools: [own] }).tools, [{
      name: "look",
      description: "Looks",
      input_schema: look.inputSchema,
      strict: true,
      cache_control: { type: "ephemeral", ttl: "1h" }
    }])
  })

  it("with alternatives at the root of their schema are told as one object", () => {
    const schemaOf = (schema: { readonly [key: string]: unknown }) =>
      (written({ tools: [{ ...look, inputSchema: schema }] }).tools as ReadonlyArray<
        { readonly input_schema: unknown }
      >)[0]
        ?.input_schema

    assert.deepStrictEqual(
      schemaOf({
        type: "object",
        description: "Either way",
        properties: { id: { type: "string" } },
        required: ["id"],
        additionalProperties: false,
        anyOf: [
          { type: "object", properties: { at: { type: "string" }, kind: { const: "a" } }, required: ["at", "kind"] },
          { $ref: "#/$defs/other" }
        ],
        allOf: [{ properties: { why: { type: "string" } }, required: ["why"] }],
        $defs: { other: { type: "object", properties: { kind: { const: "b" } }, required: ["kind"] } }
      }),
      {
        type: "object",
        description: "Either way",
        properties: {
          id: { type: "string" },
          why: { type: "string" },
          at: { type: "string" },
          kind: { anyOf: [{ const: "a" }, { const: "b" }] }
        },
        required: ["id", "why", "kind"],
        $defs: { other: { type: "object", properties: { kind: { const: "b" } }, required: ["kind"] } }
      }
    )
  })
})

describe("the cache", () => {
  const marked = { metadata: { anthropic: { cacheControl: true } } }
  const ephemeral = { type: "ephemeral" }

  it("keeps the whole conversation on demand", () => {
    assert.deepStrictEqual(written({}, { cacheControl: true }).cache_control, ephemeral)
    assert.deepStrictEqual(written({}, { cacheControl: "1h" }).cache_control, { type: "ephemeral", ttl: "1h" })
    assert.notProperty(written({}, { cacheControl: false }), "cache_control")
    assert.notProperty(written({}), "cache_control")
  })

  it("keeps all up to a message that says so", () => {
    const body = written({
      messages: [
        Message.system([Message.text("Be brief."), Message.text("Be kind.")], marked),
        Message.user("Look.", marked),
        Message.assistant("I look.", {
          toolCalls: [called("t1")],
          metadata: {
            anthropic: {
              content: [
                { type: "tool_use", id: "t1" },
                { type: "text", length: 7 },
                { type: "thinking", thinking: "", signature: "s" }
              ],
              cacheControl: "1h"
            }
          }
        }),
        Message.tool("t1", "seen", marked),
        Message.user("And?")
      ]
    })

    assert.deepStrictEqual(body.system, [
      { type: "text", text: "Be brief." },
      { type: "text", text: "Be kind.", cache_control: ephemeral }
    ])
    assert.deepStrictEqual(body.messages, [
      { role: "user", content: [{ type: "text", text: "Look.", cache_control: ephemeral }] },
      {
        role: "assistant",
        content: [
          { type: "text", text: "I look.", cache_control: { type: "ephemeral", ttl: "1h" } },
          { type: "tool_use", id: "t1", name: "look", input: {} }
        ]
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "t1", content: "seen", cache_control: ephemeral },
          { type: "text", text: "And?" }
        ]
      }
    ])
  })
})
