import { EventLaws } from "@allm/conformance"
import { Adapter, type AdapterError, type Event, Message, type Request, Tool, ToolCall } from "@allm/core"
import { OpenAiChat } from "@allm/openai"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, Redacted, Schema } from "effect"
import { ask, callsOf, clientOf, ended, hello, reasoningOf, sse, textOf, written } from "./wire.ts"

const Chat = OpenAiChat.layer({ baseUrl: "http://chat.test/v1" })

const chunk = (delta: object, finish: string | null = null, rest: object = {}) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  model: "test-model-1",
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...rest
})

const says = (text: string) => sse([chunk({ content: text }), chunk({}, "stop"), "[DONE]"])

const body = (request: Partial<Request.Request>, layer = Chat) =>
  Effect.map(written(layer, { ...hello, ...request }, () => says("ok")), (sent) => sent.body)

const decoded = (frames: ReadonlyArray<unknown>) =>
  Effect.tap(
    ask(Chat, () => sse(frames)),
    (events) => Effect.sync(() => assert.deepStrictEqual(EventLaws.problems(events), []))
  )

const failure = (frames: ReadonlyArray<unknown>) => Effect.flip(ask(Chat, () => sse(frames)))

describe("a request", () => {
  it.effect("is written with what it says, and no more", () =>
    Effect.gen(function*() {
      const sent = yield* written(Chat, hello, () => says("ok"))

      assert.strictEqual(sent.url, "http://chat.test/v1/chat/completions")
      assert.strictEqual(sent.headers["content-type"], "application/json")
      assert.deepStrictEqual(sent.body, {
        model: "test-model",
        messages: [{ role: "user", content: "Hi" }],
        stream: true,
        stream_options: { include_usage: true }
      })
    }))

  it.effect("holds every kind of message", () =>
    Effect.gen(function*() {
      const { messages } = yield* body({
        messages: [
          Message.system("Be brief."),
          Message.user([Message.text("What is it?"), Message.image("https://allm.example/a.png", { detail: "low" })], {
            name: "ada"
          }),
          Message.user([Message.image({ mediaType: "image/png", data: "iVBO" })]),
          Message.assistant("I look.", {
            toolCalls: [
              ToolCall.make({ id: "c0", name: "look", arguments: { at: "it" } }),
              ToolCall.fromRaw({ id: "c1", name: "look", rawArguments: "{ \"at\": \"that\" }" }),
              ToolCall.fromRaw({ id: "c2", name: "look", rawArguments: "{\"at\":" }),
              ToolCall.fromRaw({ id: "c3", name: "look", rawArguments: "" })
            ]
          }),
          Message.tool("c0", "a cat"),
          Message.tool("c1", "{\"error\":\"too dark\"}", { isError: true }),
          Message.assistant(""),
          Message.system([Message.text("Now "), Message.text("answer.")])
        ]
      })

      assert.deepStrictEqual(messages, [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          name: "ada",
          content: [
            { type: "text", text: "What is it?" },
            { type: "image_url", image_url: { url: "https://allm.example/a.png", detail: "low" } }
          ]
        },
        { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,iVBO" } }] },
        {
          role: "assistant",
          content: "I look.",
          tool_calls: [
            { id: "c0", type: "function", function: { name: "look", arguments: "{\"at\":\"it\"}" } },
            { id: "c1", type: "function", function: { name: "look", arguments: "{ \"at\": \"that\" }" } },
            { id: "c2", type: "function", function: { name: "look", arguments: "{}" } },
            { id: "c3", type: "function", function: { name: "look", arguments: "{}" } }
          ]
        },
        { role: "tool", tool_call_id: "c0", content: "a cat" },
        { role: "tool", tool_call_id: "c1", content: "{\"error\":\"too dark\"}" },
        { role: "system", content: "Now answer." }
      ])
    }))

  it.effect("refuses what the protocol cannot hold", () =>
    Effect.gen(function*() {
      const image = Message.image("https://allm.example/a.png")
      const refusal = (message: Message.Message) =>
        Effect.flip(body({ messages: [message] })).pipe(Effect.map((error) => [error.reason, error.detail]))

      assert.deepStrictEqual(yield* refusal(Message.assistant([image])), [
        "unsupported_feature",
        "a message of role assistant cannot hold images here; put them into a user message"
      ])
      assert.strictEqual((yield* refusal(Message.system([image])))[0], "unsupported_feature")
      assert.deepStrictEqual(
        yield* refusal(Message.user([Message.image({ mediaType: "application/pdf", data: "JVBE" })])),
        ["unsupported_feature", "application/pdf is no image; only images can be sent besides text"]
      )
    }))

  const weather = Tool.declaration(Tool.make("get_weather", {
    description: "Tells the weather",
    parameters: { city: Schema.String, days: Schema.optional(Schema.Number) },
    handler: () => "sunny"
  }))
  const time = Tool.declaration(Tool.make("get_time", {
    description: "Tells the time",
    parameters: { city: Schema.String.pipe(Schema.minLength(1)) },
    handler: () => "noon"
  }))

  it.effect("declares tools, and enforces their schemas only when asked and possible", () =>
    Effect.gen(function*() {
      const { tools } = yield* body({ tools: [weather, time] })
      assert.deepStrictEqual(
        tools,
        [weather, time].map(({ description, inputSchema, name }) => ({
          type: "function",
          function: { name, description, parameters: inputSchema }
        }))
      )

      const strict = yield* body(
        { tools: [weather, time] },
        OpenAiChat.layer({ baseUrl: "http://chat.test/v1", strictTools: true })
      )
      // An optional parameter would come back as null, which the handler does not expect.
      assert.notProperty(strict.tools[0].function, "strict")
      assert.deepStrictEqual(strict.tools[0].function.parameters, weather.inputSchema)
      assert.isTrue(strict.tools[1].function.strict)
      assert.deepStrictEqual(strict.tools[1].function.parameters.required, ["city"])
      assert.notProperty(strict.tools[1].function.parameters.properties.city, "minLength")
    }))

  it.effect("chooses tools", () =>
    Effect.gen(function*() {
      const choice = (toolChoice: Request.ToolChoice, tools = [time]) =>
        Effect.map(body({ tools, toolChoice }), (sent) => sent.tool_choice)

      assert.strictEqual(yield* choice("auto"), "auto")
      assert.strictEqual(yield* choice("none"), "none")
      assert.strictEqual(yield* choice("required"), "required")
      assert.deepStrictEqual(yield* choice({ tool: "get_time" }), {
        type: "function",
        function: { name: "get_time" }
      })
      // Servers refuse a choice of nothing.
      assert.isUndefined(yield* choice("none", []))
    }))

  it.effect("asks for a form", () =>
    Effect.gen(function*() {
      const format = (responseFormat: Request.ResponseFormat) =>
        Effect.map(body({ responseFormat }), (sent) => sent.response_format)

      assert.isUndefined(yield* format({ type: "text" }))
      assert.deepStrictEqual(yield* format({ type: "json_object" }), { type: "json_object" })
      assert.deepStrictEqual(
        yield* format({
          type: "json_schema",
          name: "a name!",
          schema: { type: "object", properties: { a: { type: "number" } }, required: ["a"] },
          strict: true
        }),
        {
          type: "json_schema",
          json_schema: {
            name: "a_name_",
            strict: true,
            schema: {
              type: "object",
              properties: { a: { type: "number" } },
              required: ["a"],
              additionalProperties: false
            }
          }
        }
      )
    }))

  it.effect("passes on what only the server knows, and lets it win", () =>
    Effect.gen(function*() {
      const sent = yield* body({
        temperature: 0.5,
        maxTokens: 100,
        tools: [time],
        options: {
          top_p: 0.9,
          temperature: 1,
          stream_options: { include_obfuscation: false },
          tools: [{ type: "web_search" }]
        }
      })
      assert.strictEqual(sent.top_p, 0.9)
      assert.strictEqual(sent.temperature, 1)
      assert.strictEqual(sent.max_tokens, 100)
      assert.deepStrictEqual(sent.stream_options, { include_usage: true, include_obfuscation: false })
      assert.deepStrictEqual(sent.tools.map((tool: { type: string }) => tool.type), ["function", "web_search"])

      assert.notProperty(yield* body({ options: { stream_options: null } }), "stream_options")
      const whole = yield* body({ options: { stream: false } })
      assert.isFalse(whole.stream)
      assert.notProperty(whole, "stream_options")
    }))

  it.effect("names the limit of tokens as the server knows it", () =>
    Effect.gen(function*() {
      const names = (config: OpenAiChat.Config) =>
        Effect.map(
          body({ maxTokens: 9 }, OpenAiChat.layer({ apiKey: Redacted.make("k"), ...config })),
          (sent) => Object.keys(sent).filter((key) => key.startsWith("max_"))
        )

      assert.deepStrictEqual(yield* names({}), ["max_completion_tokens"])
      assert.deepStrictEqual(yield* names({ baseUrl: "http://chat.test" }), ["max_tokens"])
      assert.deepStrictEqual(yield* names({ baseUrl: "http://chat.test", apiVersion: "1" }), ["max_completion_tokens"])
      assert.deepStrictEqual(yield* names({ maxTokensField: "max_tokens" }), ["max_tokens"])
    }))

  it.effect("goes to Azure with its version and its key", () =>
    Effect.gen(function*() {
      const Azure = OpenAiChat.layer({
        baseUrl: "https://acme.openai.azure.test/openai/deployments/gpt/",
        apiVersion: "2025-01-01",
        apiKey: Redacted.make("azure-key"),
        headers: { "x-team": "blue" }
      })
      const sent = yield* written(Azure, { ...hello, model: "gpt" }, () => says("ok"))

      assert.strictEqual(
        sent.url,
        "https://acme.openai.azure.test/openai/deployments/gpt/chat/completions?api-version=2025-01-01"
      )
      assert.strictEqual(sent.headers["api-key"], "azure-key")
      assert.strictEqual(sent.headers["x-team"], "blue")
      assert.notProperty(sent.headers, "authorization")
    }))

  it.effect("needs a model where there is no server of one's own", () =>
    Effect.gen(function*() {
      const { model: _model, ...request } = hello
      const error = yield* Effect.flip(
        ask(OpenAiChat.layer({ apiKey: Redacted.make("k") }), () => says("ok"), request)
      )
      assert.strictEqual(error.reason, "invalid_request")
      assert.match(error.message, /write model/)
    }))
})

describe("a stream", () => {
  it.effect("is text with its end and its usage in a chunk of its own", () =>
    Effect.gen(function*() {
      const events = yield* decoded([
        chunk({ role: "assistant", content: "" }),
        chunk({ content: "Hel" }),
        chunk({ content: "lo" }),
        chunk({}, "stop", { service_tier: "default", system_fingerprint: null }),
        {
          id: "chatcmpl-1",
          choices: [],
          usage: {
            prompt_tokens: 9,
            completion_tokens: 12,
            total_tokens: 21,
            prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
            completion_tokens_details: { reasoning_tokens: 7 },
            num_sources_used: 1
          }
        },
        "[DONE]"
      ])

      assert.deepStrictEqual(events, [
        { _tag: "MessageStarted", id: "chatcmpl-1", model: "test-model-1" },
        { _tag: "TextDelta", delta: "Hel" },
        { _tag: "TextDelta", delta: "lo" },
        { _tag: "TextCompleted", text: "Hello" },
        {
          _tag: "MessageCompleted",
          finishReason: "stop",
          rawFinishReason: "stop",
          usage: {
            inputTokens: 9,
            outputTokens: 12,
            totalTokens: 21,
            cachedInputTokens: 4,
            cacheWriteInputTokens: 2,
            reasoningTokens: 7,
            extra: { num_sources_used: 1 }
          },
          metadata: { "openai-chat": { serviceTier: "default" } }
        }
      ])
    }))

  it.effect("may tell its usage in a place of its own, or with every chunk", () =>
    Effect.gen(function*() {
      const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 }
      const groq = yield* decoded([chunk({ content: "Hi" }), chunk({}, "stop", { x_groq: { id: "r", usage } })])
      assert.deepStrictEqual(ended(groq).usage, { inputTokens: 1, outputTokens: 2, totalTokens: 3 })
      const growing = yield* decoded([
        chunk({ content: "Hi" }, null, { usage: { ...usage, completion_tokens: 1 } }),
        chunk({}, "stop", { usage })
      ])
      assert.strictEqual(ended(growing).usage?.outputTokens, 2)
    }))

  it.effect("may lack [DONE] and usage, but not its end", () =>
    Effect.gen(function*() {
      assert.strictEqual(ended(yield* decoded([chunk({ content: "Hi" }), chunk({}, "stop")])).finishReason, "stop")
      assert.strictEqual(ended(yield* decoded([chunk({ content: "Hi" }), "[DONE]"])).finishReason, "stop")

      const cut = yield* failure([chunk({ content: "Hi" })])
      assert.deepStrictEqual([cut.reason, cut.isRetryable], ["network_error", true])
      const early = yield* failure([chunk({ role: "assistant", content: "" })])
      assert.strictEqual(early.reason, "network_error")
      const nothing = yield* failure([{ choices: [] }, { hello: "world" }, "[DONE]"])
      assert.strictEqual(nothing.reason, "malformed_response")
    }))

  it.effect("ends for many reasons", () =>
    Effect.gen(function*() {
      const reason = (finish: string) =>
        Effect.map(decoded([chunk({ content: "Hi" }), chunk({}, finish)]), (events) => ended(events).finishReason)

      assert.strictEqual(yield* reason("length"), "length")
      assert.strictEqual(yield* reason("content_filter"), "content_filter")
      assert.strictEqual(yield* reason("model_length"), "length")
      assert.strictEqual(yield* reason("MAX_TOKENS"), "length")
      assert.strictEqual(yield* reason("error"), "error")
      assert.strictEqual(yield* reason("bored"), "other")
    }))

  it.effect("holds a refusal as text that was filtered", () =>
    Effect.gen(function*() {
      const events = yield* decoded([chunk({ refusal: "I " }), chunk({ refusal: "won't." }), chunk({}, "stop")])
      assert.strictEqual(textOf(events), "I won't.")
      assert.deepInclude(ended(events), { finishReason: "content_filter", rawFinishReason: "stop" })
    }))

  it.effect("passes over what it does not know", () =>
    Effect.gen(function*() {
      const events = yield* decoded([
        { choices: [], prompt_filter_results: [{}], id: "", model: "" },
        [1, 2],
        "7",
        chunk({ content: "Hi", audio: { data: "…" }, annotations: [{}] }, null, { obfuscation: "xx" }),
        { ...chunk({ content: "other" }), choices: [{ index: 1, delta: { content: "other" } }] },
        chunk({}, "stop")
      ])
      assert.strictEqual(textOf(events), "Hi")
      assert.deepStrictEqual(events[0], { _tag: "MessageStarted", id: "chatcmpl-1", model: "test-model-1" })
    }))

  it.effect("may bring its text in parts, or the whole message at its end", () =>
    Effect.gen(function*() {
      const parts = yield* decoded([
        chunk({ content: [{ type: "thinking", thinking: [{ type: "text", text: "Hm." }] }] }),
        chunk({ content: [{ type: "text", text: "Hello" }] }),
        chunk({ content: "!" }, "stop")
      ])
      assert.deepStrictEqual([reasoningOf(parts), textOf(parts)], ["Hm.", "Hello!"])

      const message = { role: "assistant", content: "Hello" }
      const whole = yield* decoded([{ id: "1", choices: [{ index: 0, message, finish_reason: "stop" }] }, "[DONE]"])
      assert.strictEqual(textOf(whole), "Hello")
      const twice = yield* decoded([
        chunk({ content: "Hello" }),
        { id: "1", choices: [{ index: 0, message, finish_reason: "stop" }] }
      ])
      assert.strictEqual(textOf(twice), "Hello")
    }))
})

describe("tool calls", () => {
  const call = (index: number | undefined, id: string | undefined, name: string | undefined, args: unknown) => ({
    ...(index === undefined ? {} : { index }),
    ...(id === undefined ? {} : { id }),
    function: {
      ...(name === undefined ? {} : { name }),
      ...(args === undefined ? {} : { arguments: args })
    }
  })
  const calls = (...pieces: ReadonlyArray<ReturnType<typeof call>>) =>
    decoded([...pieces.map((piece) => chunk({ tool_calls: [piece] })), chunk({}, "tool_calls"), "[DONE]"])
  const summary = (events: ReadonlyArray<Event.AdapterEvent>) =>
    callsOf(events).map(({ arguments: args, id, name }) => [id, name, args])

  it.effect("come side by side, told apart by their index", () =>
    Effect.gen(function*() {
      const events = yield* calls(
        call(0, "a", "add", ""),
        call(1, "b", "mul", ""),
        call(0, undefined, undefined, "{\"x\""),
        call(1, undefined, undefined, "{\"y\""),
        call(0, undefined, undefined, ":1}"),
        call(1, undefined, undefined, ":2}")
      )
      assert.deepStrictEqual(summary(events), [["a", "add", { x: 1 }], ["b", "mul", { y: 2 }]])
      assert.deepStrictEqual(events.slice(1, 4), [
        { _tag: "ToolCallStarted", toolCallId: "a", toolName: "add" },
        { _tag: "ToolCallStarted", toolCallId: "b", toolName: "mul" },
        { _tag: "ToolCallDelta", toolCallId: "a", delta: "{\"x\"" }
      ])
      assert.strictEqual(ended(events).finishReason, "tool_calls")
    }))

  it.effect("may repeat their id and name with every piece, or leave both empty", () =>
    Effect.gen(function*() {
      const repeated = yield* calls(
        call(0, "a", "add", "{\"x\""),
        call(0, "a", "add", ":1"),
        call(0, "a", "add", "}")
      )
      assert.deepStrictEqual(summary(repeated), [["a", "add", { x: 1 }]])
      const empty = yield* calls(call(0, "a", "add", ""), call(0, "", "", "{\"x\":1"), call(0, "", "", "}"))
      assert.deepStrictEqual(summary(empty), [["a", "add", { x: 1 }]])
    }))

  it.effect("may all have index 0, or none", () =>
    Effect.gen(function*() {
      const expected = [["a", "add", { x: 1 }], ["b", "add", { x: 2 }]]
      for (const index of [0, undefined]) {
        const events = yield* calls(call(index, "a", "add", "{\"x\":1}"), call(index, "b", "add", "{\"x\":2}"))
        assert.deepStrictEqual(summary(events), expected)
      }
      const pieces = yield* calls(
        call(undefined, "a", "add", "{\"x\""),
        call(undefined, undefined, undefined, ":1}"),
        call(undefined, "b", "add", ""),
        call(undefined, "b", undefined, "{\"x\":2}")
      )
      assert.deepStrictEqual(summary(pieces), expected)
    }))

  it.effect("without ids get stable ones of their own", () =>
    Effect.gen(function*() {
      const frames = [
        chunk({ tool_calls: [call(0, undefined, "add", "{\"x\":1}"), call(1, "", "add", "{\"x\":2}")] }),
        chunk({}, "tool_calls")
      ]
      const first = summary(yield* decoded(frames))
      assert.deepStrictEqual(first, [["call_chatcmpl-1_0", "add", { x: 1 }], ["call_chatcmpl-1_1", "add", { x: 2 }]])
      assert.deepStrictEqual(summary(yield* decoded(frames)), first)

      // Neither does the answer have an id: the place in the conversation tells its calls from those of other turns.
      const nameless = { choices: [{ delta: { tool_calls: [call(0, "", "add", "{}")] }, finish_reason: "stop" }] }
      assert.deepStrictEqual(summary(yield* decoded([nameless])), [["call_1_0", "add", {}]])
      const later = yield* ask(Chat, () => sse([nameless]), {
        ...hello,
        messages: [...hello.messages, Message.assistant("?"), Message.user("!")]
      })
      assert.deepStrictEqual(summary(later), [["call_3_0", "add", {}]])
    }))

  it.effect("without ids or with one index are told apart by their completeness", () =>
    Effect.gen(function*() {
      const events = yield* calls(
        call(0, undefined, "add", "{\"x\":1}"),
        call(0, undefined, "add", "{\"x\":2}")
      )
      assert.deepStrictEqual(summary(events).map(([, , args]) => args), [{ x: 1 }, { x: 2 }])
    }))

  it.effect("that share an id are made distinct, and one that is told twice is one", () =>
    Effect.gen(function*() {
      const shared = yield* calls(call(0, "add", "add", "{\"x\":1}"), call(1, "add", "add", "{\"x\":2}"))
      assert.deepStrictEqual(summary(shared), [["add", "add", { x: 1 }], ["add_1", "add", { x: 2 }]])
      const twice = yield* calls(call(0, "a", "add", "{\"x\":1}"), call(0, "a", "add", "{\"x\":1}"))
      assert.deepStrictEqual(summary(twice), [["a", "add", { x: 1 }]])
    }))

  it.effect("have arguments in one piece, none, as an object, or before the name", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(summary(yield* calls(call(0, "a", "add", "{\"x\":1}"))), [["a", "add", { x: 1 }]])
      assert.deepStrictEqual(summary(yield* calls(call(0, "a", "now", ""))), [["a", "now", {}]])
      assert.deepStrictEqual(summary(yield* calls(call(0, "a", "now", null))), [["a", "now", {}]])
      assert.deepStrictEqual(summary(yield* calls(call(0, "a", "add", { x: 1 }))), [["a", "add", { x: 1 }]])
      assert.deepStrictEqual(
        summary(yield* calls(call(0, "a", "", "{\"x\""), call(0, "", "add", ":1}"))),
        [["a", "add", { x: 1 }]]
      )
    }))

  it.effect("that name no tool are malformed, not passed over", () =>
    Effect.gen(function*() {
      const nameless = { tool_calls: [call(0, "a", undefined, "{}")] }
      const error = yield* failure([chunk({ content: "Hi" }), chunk(nameless), chunk({}, "tool_calls")])
      assert.deepStrictEqual([error.reason, error.detail], [
        "malformed_response",
        "the model made a tool call without a name"
      ])
      const whole = { choices: [{ message: { role: "assistant", ...nameless }, finish_reason: "tool_calls" }] }
      const refused = yield* Effect.flip(ask(Chat, () => Response.json(whole)))
      assert.strictEqual(refused.reason, "malformed_response")
    }))

  it.effect("with broken arguments keep their text", () =>
    Effect.gen(function*() {
      const [broken] = callsOf(yield* calls(call(0, "a", "add", "{\"x\":")))
      assert.deepStrictEqual(broken, { id: "a", name: "add", rawArguments: "{\"x\":", metadata: {} })
    }))

  it.effect("make a stop a wait for their results, but not an end by length", () =>
    Effect.gen(function*() {
      const reason = (finish: string) =>
        Effect.map(
          decoded([chunk({ tool_calls: [call(0, "a", "add", "{}")] }), chunk({}, finish)]),
          (events) => ended(events)
        )
      assert.deepInclude(yield* reason("stop"), { finishReason: "tool_calls", rawFinishReason: "stop" })
      assert.strictEqual((yield* reason("length")).finishReason, "length")
    }))

  it.effect("keep what the server wants to see again with them", () =>
    Effect.gen(function*() {
      const signature = { google: { thought_signature: "c2ln" } }
      const events = yield* decoded([
        chunk({ tool_calls: [{ ...call(0, "a", "add", "{}"), extra_content: signature }] }),
        chunk({}, "tool_calls")
      ])
      const [made] = callsOf(events)
      const again = yield* body({ messages: [...hello.messages, Message.assistant("", { toolCalls: [made!] })] })
      assert.deepStrictEqual(again.messages[1].tool_calls[0].extra_content, signature)
    }))
})

describe("reasoning", () => {
  const thinking = (field: string, layer = Chat) =>
    Effect.gen(function*() {
      const events = yield* ask(layer, () =>
        sse([
          chunk({ role: "assistant", content: null, [field]: "Let me " }),
          chunk({ [field]: "see.", reasoning: field === "reasoning" ? "see." : null }),
          chunk({ content: null, tool_calls: [{ index: 0, id: "a", function: { name: "add", arguments: "{}" } }] }),
          chunk({}, "tool_calls")
        ]))
      return events
    })

  for (const field of ["reasoning_content", "reasoning"]) {
    it.effect(`as ${field} is told, and goes back with the calls it led to`, () =>
      Effect.gen(function*() {
        const events = yield* thinking(field)
        assert.strictEqual(reasoningOf(events), "Let me see.")
        const { message } = ended(events)
        const history = [...hello.messages, message!, Message.tool("a", "1")]
        const again = yield* body({ messages: history })
        assert.strictEqual(again.messages[1][field], "Let me see.")

        // What another server thought is none of this one's business.
        const Other = OpenAiChat.layer({ baseUrl: "http://other.test", name: "other" })
        assert.notProperty((yield* body({ messages: history }, Other)).messages[1], field)
        // Nor does it go back with a text.
        const text = Message.assistant("Hello", { metadata: message!.metadata })
        assert.notProperty((yield* body({ messages: [...hello.messages, text] })).messages[1], field)
      }))
  }

  it.effect("in details goes back in one piece each", () =>
    Effect.gen(function*() {
      const detail = (fields: object) => chunk({ content: "", reasoning_details: [fields] })
      const events = yield* decoded([
        detail({ type: "reasoning.text", index: 0, text: "Let me " }),
        detail({ type: "reasoning.text", index: 0, text: "see.", signature: "c2ln" }),
        detail({ type: "reasoning.encrypted", index: 1, data: "AAAA" }),
        chunk({ content: "Hello" }, "stop")
      ])
      const again = yield* body({ messages: [...hello.messages, ended(events).message!, Message.user("More?")] })
      assert.deepStrictEqual(again.messages[1], {
        role: "assistant",
        content: "Hello",
        reasoning_details: [
          { type: "reasoning.text", index: 0, text: "Let me see.", signature: "c2ln" },
          { type: "reasoning.encrypted", index: 1, data: "AAAA" }
        ]
      })
    }))
})

describe("an answer in one piece", () => {
  it.effect("is read like a stream", () =>
    Effect.gen(function*() {
      const events = yield* ask(Chat, () =>
        Response.json({
          id: "chatcmpl-2",
          model: "m",
          choices: [{
            index: 0,
            message: {
              role: "assistant",
              content: "Hello",
              reasoning_content: "Hm.",
              tool_calls: [
                { id: "", type: "function", function: { name: "add", arguments: "{\"x\":1}" } },
                { id: "", type: "function", function: { name: "add", arguments: "{\"x\":1}" } }
              ]
            },
            finish_reason: "stop"
          }],
          usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, cost: 0.5 }
        }))
      assert.deepStrictEqual(EventLaws.problems(events), [])
      assert.deepStrictEqual([reasoningOf(events), textOf(events)], ["Hm.", "Hello"])
      assert.deepStrictEqual(callsOf(events).map(({ id }) => id), ["call_chatcmpl-2_0", "call_chatcmpl-2_1"])
      assert.deepInclude(ended(events), {
        finishReason: "tool_calls",
        usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3, totalCost: 0.5 }
      })
    }))

  it.effect("without a choice is malformed", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(ask(Chat, () => Response.json({ id: "x", choices: [] })))
      assert.strictEqual(error.reason, "malformed_response")
    }))
})

describe("errors inside a stream", () => {
  const cases: ReadonlyArray<readonly [object, AdapterError.Reason]> = [
    [{ error: { message: "Overloaded", type: "server_error", code: null } }, "provider_unavailable"],
    [{ error: { message: "No", code: 429 } }, "rate_limited"],
    [{ error: { message: "No", code: "502" } }, "provider_unavailable"],
    [{ error: { message: "No", code: "rate_limit_exceeded" } }, "rate_limited"],
    [{ error: { message: "No", type: "insufficient_quota" } }, "rate_limited"],
    [{ error: { message: "No", code: "invalid_api_key", type: "invalid_request_error" } }, "authentication_failed"],
    [{ error: { message: "No", type: "invalid_request_error" } }, "invalid_request"],
    [{ error: { message: "This model's maximum context length is 10" } }, "context_length_exceeded"],
    [
      { error: { message: "Input exceeds the context window", type: "invalid_request_error" } },
      "context_length_exceeded"
    ],
    [{ error: { message: "No", status_code: 400 } }, "invalid_request"],
    [{ error: { message: "No", code: "content_filter" } }, "content_filter"],
    [{ error: "it broke" }, "unknown"],
    [{ object: "error", message: "No", code: 400 }, "invalid_request"],
    [
      { ...chunk({}, "error"), error: { code: "server_error", message: "Provider disconnected" } },
      "provider_unavailable"
    ]
  ]
  for (const [frame, reason] of cases) {
    it.effect(`${JSON.stringify(frame).slice(0, 60)} is ${reason}`, () =>
      Effect.gen(function*() {
        const error = yield* failure([frame])
        assert.strictEqual(error.reason, reason)
        assert.strictEqual(error.provider, "openai-chat")
        assert.isDefined(error.detail)
      }))
  }

  it.effect("say how long to wait", () =>
    Effect.gen(function*() {
      const wait = (message: string) =>
        Effect.map(failure([{ error: { message, code: "rate_limit_exceeded" } }]), ({ retryAfter }) => retryAfter)
      assert.deepStrictEqual(yield* wait("Please try again in 1.5s."), Duration.millis(1_500))
      assert.deepStrictEqual(yield* wait("Please try again in 20ms."), Duration.millis(20))
      assert.isUndefined(yield* wait("Slow down."))
    }))

  it.effect("may be told by the name of the event", () =>
    Effect.gen(function*() {
      const answer = () =>
        new Response("event: error\ndata: {\"message\":\"No\",\"type\":\"server_error\"}\n\n", {
          headers: { "content-type": "text/event-stream" }
        })
      const error = yield* Effect.flip(ask(Chat, answer))
      assert.deepStrictEqual([error.reason, error.detail], ["provider_unavailable", "No"])
    }))

  it.effect("end an answer that had begun", () =>
    Effect.gen(function*() {
      const events: Array<Event.AdapterEvent> = []
      const error = yield* Effect.flatMap(Adapter.Adapter, (adapter) =>
        Effect.flip(adapter.generate(hello, (batch) => Effect.sync(() => void events.push(...batch))))).pipe(
          Effect.provide(Layer.provide(
            Chat,
            clientOf(() =>
              sse([chunk({ content: "Hel" }), { error: { message: "No", code: 503 } }])
            )
          ))
        )
      assert.strictEqual(textOf(events), "Hel")
      assert.deepInclude({ ...error }, { reason: "provider_unavailable", status: 503, detail: "No" })
    }))
})
