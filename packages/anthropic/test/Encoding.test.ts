import { Anthropic } from "@allm/anthropic"
import { Message, ToolCall } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Either } from "effect"
import { hello, unwritten, written } from "./wire.ts"

const called = (id: string, args: unknown = {}) => ToolCall.make({ id, name: "look", arguments: args })

const messagesOf = (...messages: ReadonlyArray<Message.Message>) => written({ messages }).messages

describe("a request", () => {
  it("is written with what the API demands", () => {
    assert.deepStrictEqual(written({}), {
      model: "claude-sonnet-5",
      max_tokens: 64_000,
      messages: [{ role: "user", content: [{ type: "text", text: "Hello" }] }],
      stream: true
    })
  })

  it("goes to the Messages API, with its version", () => {
    const sent = (config: Anthropic.Config) => {
      const { headers, method, url } = Either.getOrThrow(Anthropic.protocol(config).encode(hello))
      return { headers, method, url }
    }

    assert.deepInclude(sent({}), { method: "POST", url: "https://api.anthropic.com/v1/messages" })
    assert.deepInclude(sent({}).headers, { "anthropic-version": "2023-06-01", "content-type": "application/json" })
    assert.notProperty(sent({}).headers, "anthropic-beta")
    assert.deepInclude(
      sent({ version: "2099-01-01", betas: ["one-2025", "two-2025"], headers: { "x-team": "a" } }).headers,
      { "anthropic-version": "2099-01-01", "anthropic-beta": "one-2025,two-2025", "x-team": "a" }
    )
    for (
      const baseUrl of ["http://gate.test/a", "http://gate.test/a/", "http://gate.test/a/v1", "http://gate.test/a/v1/"]
    ) {
      assert.strictEqual(sent({ baseUrl }).url, "http://gate.test/a/v1/messages")
    }
  })

  it("names a model: its own, or the one of the settings", () => {
    const { model: _model, ...anonymous } = hello
    const encode = (config: Anthropic.Config) => Anthropic.protocol(config).encode(anonymous)

    assert.strictEqual(written({}, { model: "other" }).model, "claude-sonnet-5")
    assert.isTrue(Either.isRight(encode({ model: "claude-haiku-4-5" })))
    assert.include(
      Either.getOrThrow(Either.flip(encode({}))).message,
      "no model is named; write a model such as \"claude-sonnet-5\""
    )
  })

  it("says how long the answer may be, by default as long as is sensible for the model", () => {
    const limits: ReadonlyArray<readonly [string, number]> = [
      ["claude-sonnet-5", 64_000],
      ["claude-opus-4-7", 64_000],
      ["claude-haiku-4-5-20251001", 64_000],
      ["claude-sonnet-4.5", 64_000],
      ["anthropic.claude-sonnet-4-5-20250929-v1:0", 64_000],
      ["claude-mythos-preview", 64_000],
      ["claude-opus-4-1@20250805", 32_000],
      ["claude-opus-4-20250514", 32_000],
      ["claude-sonnet-4-0", 32_000],
      ["claude-3-7-sonnet-latest", 32_000],
      ["claude-3-5-haiku-20241022", 8_192],
      ["claude-3-opus-20240229", 4_096],
      ["claude-2.1", 4_096],
      ["claude-instant-1.2", 4_096],
      ["kimi-k2", 8_192]
    ]

    for (const [model, limit] of limits) assert.strictEqual(written({ model }).max_tokens, limit, model)
    assert.strictEqual(written({ maxTokens: 80 }).max_tokens, 80)
  })

  it("leaves room for more than thoughts", () => {
    const maxTokens = (budget_tokens: number) =>
      written({ options: { thinking: { type: "enabled", budget_tokens } } }).max_tokens

    assert.strictEqual(maxTokens(10_000), 64_000)
    assert.strictEqual(maxTokens(100_000), 164_000)
  })

  it("passes options on as they are; they win, and objects are merged", () => {
    const body = written({
      temperature: 0.5,
      options: {
        temperature: 0.1,
        top_k: 5,
        thinking: { type: "adaptive" },
        metadata: { user_id: "u1" },
        output_config: { effort: "low" },
        a_new_option: [1]
      },
      responseFormat: {
        type: "json_schema",
        name: "a",
        schema: { type: "object", properties: {}, additionalProperties: false },
        strict: true
      }
    })

    assert.deepInclude(body, {
      temperature: 0.1,
      top_k: 5,
      thinking: { type: "adaptive" },
      metadata: { user_id: "u1" },
      a_new_option: [1],
      output_config: {
        effort: "low",
        format: { type: "json_schema", schema: { type: "object", properties: {}, additionalProperties: false } }
      }
    })
  })

  it("refuses what the API cannot do", () => {
    assert.deepStrictEqual(unwritten({ temperature: 1.5 }), {
      reason: "unsupported_feature",
      detail: "the temperature goes up to 1, not to 1.5"
    })
    assert.strictEqual(written({ temperature: 1 }).temperature, 1)
    assert.strictEqual(unwritten({ messages: [Message.system("Be brief.")] }).reason, "invalid_request")
    assert.strictEqual(unwritten({ messages: [Message.user("  ")] }).reason, "invalid_request")
    assert.strictEqual(unwritten({ toolChoice: "required" }).reason, "invalid_request")
    assert.strictEqual(unwritten({ options: { a: 1n } }).reason, "invalid_request")
  })
})

describe("system messages", () => {
  it("are the instructions, wherever they stand", () => {
    const body = written({
      messages: [
        Message.system("Be brief."),
        Message.system([Message.text("Be kind."), Message.text("")]),
        Message.user("Hi"),
        Message.system("Be quick.")
      ]
    })

    assert.deepStrictEqual(body.system, [
      { type: "text", text: "Be brief." },
      { type: "text", text: "Be kind." },
      { type: "text", text: "Be quick." }
    ])
    assert.deepStrictEqual(body.messages, [{ role: "user", content: [{ type: "text", text: "Hi" }] }])
  })

  it("hold text only", () => {
    const detail = "a system message holds text only; put the image into a user message"
    const messages = [Message.system([Message.image("https://allm.example/a.png")]), Message.user("Hi")]

    assert.deepStrictEqual(unwritten({ messages }), { reason: "unsupported_feature", detail })
  })
})

describe("user messages", () => {
  it("hold texts and images, by address or with their data", () => {
    assert.deepStrictEqual(
      messagesOf(Message.user([
        Message.text("What is this?"),
        Message.image("https://allm.example/a.png"),
        Message.image("data:image/png;base64,iVBO"),
        Message.image({ mediaType: "image/jpg", data: "/9j/" }),
        { type: "image", source: { type: "url", url: "data:image/webp;base64,UklG" } },
        Message.image({ mediaType: "application/pdf", data: "JVBE" })
      ])),
      [{
        role: "user",
        content: [
          { type: "text", text: "What is this?" },
          { type: "image", source: { type: "url", url: "https://allm.example/a.png" } },
          { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBO" } },
          { type: "image", source: { type: "base64", media_type: "image/jpeg", data: "/9j/" } },
          { type: "image", source: { type: "base64", media_type: "image/webp", data: "UklG" } },
          { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBE" } }
        ]
      }]
    )
    assert.match(
      String(
        unwritten({ messages: [Message.user([Message.image({ mediaType: "image/tiff", data: "SUkq" })])] }).detail
      ),
      /image\/tiff cannot be read; send image\/jpeg, image\/png/
    )
  })

  it("in a row are one turn, and empty ones are none", () => {
    assert.deepStrictEqual(messagesOf(Message.user("a"), Message.user(""), Message.user("b"), Message.assistant("c")), [
      { role: "user", content: [{ type: "text", text: "a" }, { type: "text", text: "b" }] },
      { role: "assistant", content: [{ type: "text", text: "c" }] }
    ])
  })
})

describe("calls and their results", () => {
  it("are written as the API wants them, results first", () => {
    assert.deepStrictEqual(
      messagesOf(
        Message.user("Look."),
        Message.assistant("I look.", { toolCalls: [called("t1", { at: "it" }), called("t2")] }),
        Message.tool("t1", "seen"),
        Message.tool("t2", "it is dark", { isError: true }),
        Message.user("And?")
      ),
      [
        { role: "user", content: [{ type: "text", text: "Look." }] },
        {
          role: "assistant",
          content: [
            { type: "text", text: "I look." },
            { type: "tool_use", id: "t1", name: "look", input: { at: "it" } },
            { type: "tool_use", id: "t2", name: "look", input: {} }
          ]
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "t1", content: "seen" },
            { type: "tool_result", tool_use_id: "t2", content: "it is dark", is_error: true },
            { type: "text", text: "And?" }
          ]
        }
      ]
    )
  })

  it("stand first in their turn also when they came later", () => {
    const [, , last] = messagesOf(
      Message.user("Look."),
      Message.assistant("", { toolCalls: [called("t1")] }),
      Message.user("Hurry."),
      Message.tool("t1", "seen")
    ) as ReadonlyArray<{ readonly content: ReadonlyArray<{ readonly type: string }> }>

    assert.deepStrictEqual(last?.content.map(({ type }) => type), ["tool_result", "text"])
  })

  it("with arguments that are no object are sent as an empty one", () => {
    const inputOf = (toolCall: ToolCall.ToolCall) => {
      const [turn] = messagesOf(Message.assistant("", { toolCalls: [toolCall] })) as ReadonlyArray<
        { readonly content: ReadonlyArray<{ readonly input: unknown }> }
      >
      return turn?.content[0]?.input
    }

    assert.deepStrictEqual(inputOf(ToolCall.fromRaw({ id: "t", name: "look", rawArguments: "{\"at\":" })), {})
    assert.deepStrictEqual(inputOf(ToolCall.fromRaw({ id: "t", name: "look", rawArguments: "[1]" })), {})
    assert.deepStrictEqual(inputOf({ id: "t", name: "look", rawArguments: "{\"at\":1}", metadata: {} }), { at: 1 })
  })

  it("have ids that the API lets pass, also when another provider gave them", () => {
    const [use, result] = messagesOf(
      Message.assistant("", { toolCalls: [called("call.1|fc:2")] }),
      Message.tool("call.1|fc:2", "seen")
    ) as ReadonlyArray<{ readonly content: ReadonlyArray<{ readonly [key: string]: string }> }>

    assert.match(use!.content[0]!.id!, /^[A-Za-z0-9_-]+$/)
    assert.strictEqual(result!.content[0]!.tool_use_id, use!.content[0]!.id)
  })

  it("say something when they failed, and nothing when there is nothing to say", () => {
    const [, turn] = messagesOf(
      Message.assistant("", { toolCalls: [called("t1"), called("t2")] }),
      Message.tool("t1", ""),
      Message.tool("t2", "", { isError: true })
    ) as ReadonlyArray<{ readonly content: unknown }>

    assert.deepStrictEqual(turn?.content, [
      { type: "tool_result", tool_use_id: "t1" },
      { type: "tool_result", tool_use_id: "t2", content: "error", is_error: true }
    ])
  })
})

describe("what the model said", () => {
  const thought = { type: "thinking", thinking: "Hm.", signature: "sig" }
  const search = { type: "server_tool_use", id: "s1", name: "web_search", input: { query: "a" } }
  const found = { type: "web_search_tool_result", tool_use_id: "s1", content: [] }

  const answer = (text: string, content: ReadonlyArray<object>, toolCalls: ReadonlyArray<ToolCall.ToolCall> = []) =>
    Message.assistant(text, { toolCalls, metadata: { anthropic: { content } } })

  const said = (...messages: ReadonlyArray<Message.Message>) =>
    (messagesOf(Message.user("Hi"), ...messages) as ReadonlyArray<{ readonly role: string; readonly content: unknown }>)
      .filter(({ role }) => role === "assistant").map(({ content }) => content)

  it("goes back block by block, in its order, with its signatures", () => {
    const citations = [{ type: "web_search_result_location", encrypted_index: "x" }]
    const content = [
      thought,
      { type: "text", length: 3 },
      search,
      found,
      { type: "text", length: 4, citations },
      { type: "redacted_thinking", data: "abc" },
      { type: "tool_use", id: "t1", caller: { type: "code_execution_20260120", tool_id: "s1" } },
      { type: "tool_use", id: "t2" }
    ]

    assert.deepStrictEqual(
      said(
        answer("a. B äö", content, [called("t1", { at: "it" }), called("t2")]),
        Message.tool("t1", "seen"),
        Message.tool("t2", "seen")
      ),
      [[
        thought,
        { type: "text", text: "a. " },
        search,
        found,
        { citations, type: "text", text: "B äö" },
        { type: "redacted_thinking", data: "abc" },
        {
          caller: { type: "code_execution_20260120", tool_id: "s1" },
          type: "tool_use",
          id: "t1",
          name: "look",
          input: { at: "it" }
        },
        { type: "tool_use", id: "t2", name: "look", input: {} }
      ]]
    )
  })

  it("keeps its thoughts when somebody changed its text or took its calls away", () => {
    const content = [thought, { type: "text", length: 6 }, { type: "tool_use", id: "t1" }]

    assert.deepStrictEqual(
      said(answer("Changed.", content, [called("t1"), called("t9")]), Message.tool("t1", "a"), Message.tool("t9", "b")),
      [[
        thought,
        { type: "text", text: "Changed." },
        { type: "tool_use", id: "t1", name: "look", input: {} },
        { type: "tool_use", id: "t9", name: "look", input: {} }
      ]]
    )
    assert.deepStrictEqual(said(answer("I see.", content), Message.user("Go on.")), [
      [thought, { type: "text", text: "I see." }]
    ])
  })

  it("does not end with thoughts; where there is nothing else it is left out", () => {
    assert.deepStrictEqual(said(answer("", [thought]), Message.user("Go on.")), [])
    assert.deepStrictEqual(
      messagesOf(Message.user("a"), answer("", [thought]), Message.user("b")),
      [{ role: "user", content: [{ type: "text", text: "a" }, { type: "text", text: "b" }] }]
    )
  })

  it("is left out when it is empty, and joined when it is said in a row", () => {
    assert.deepStrictEqual(
      said(Message.assistant(""), Message.assistant("One."), Message.assistant(" "), Message.assistant("Two. ")),
      [[{ type: "text", text: "One." }, { type: "text", text: "Two." }]]
    )
  })

  it("has its calls last: no text stands between a call and its answer", () => {
    const content = [{ type: "tool_use", id: "t1" }, { type: "text", length: 7 }, thought]

    assert.deepStrictEqual(said(answer("I look.", content, [called("t1")]), Message.tool("t1", "seen")), [
      [{ type: "text", text: "I look." }, { type: "tool_use", id: "t1", name: "look", input: {} }]
    ])
  })

  it("goes on where a tool of Anthropic's is still at it, and forgets what never got an answer", () => {
    assert.deepStrictEqual(said(answer("", [search])), [[search]])
    assert.deepStrictEqual(said(answer("a", [{ type: "text", length: 1 }, search]), Message.user("Go on.")), [
      [{ type: "text", text: "a" }]
    ])
    // The program at Anthropic waits for the answer to its call.
    assert.deepStrictEqual(
      said(answer("", [search, { type: "tool_use", id: "t1" }], [called("t1")]), Message.tool("t1", "seen")),
      [[search, { type: "tool_use", id: "t1", name: "look", input: {} }]]
    )
    assert.deepStrictEqual(said(answer("", [search]), answer("", [found]), Message.user("Go on.")), [[search, found]])
  })

  it("is not touched by what other providers keep", () => {
    const message = Message.assistant("Hi.", { metadata: { openai: { content: [thought] }, anthropic: "nonsense" } })

    assert.deepStrictEqual(said(message, Message.user("Go on.")), [[{ type: "text", text: "Hi." }]])
  })

  it("holds text only", () => {
    const image = Message.assistant([Message.image("https://allm.example/a.png")])

    assert.strictEqual(unwritten({ messages: [Message.user("Hi"), image] }).reason, "unsupported_feature")
  })
})
