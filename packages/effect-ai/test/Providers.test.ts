import { Allm, type Engine, Message, Tool } from "@allm/core"
import { EffectAi } from "@allm/effect-ai"
import { LLMock } from "@copilotkit/aimock"
import type { LanguageModel } from "@effect/ai"
import { AnthropicClient, AnthropicLanguageModel } from "@effect/ai-anthropic"
import { OpenAiClient, OpenAiLanguageModel } from "@effect/ai-openai"
import { FetchHttpClient } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Logger, Redacted, Schema } from "effect"
import { inspect } from "node:util"
import * as Wire from "./openai.ts"
import * as Server from "./server.ts"

const inputSchema = {
  $defs: { city: { type: "string" } },
  type: "object",
  properties: { city: { $ref: "#/$defs/city" } },
  required: ["city"],
  additionalProperties: false
}

const weather = Tool.fromJsonSchema("get_weather", {
  description: "Current weather of a city",
  schema: inputSchema,
  handler: ({ city }) => city === "Oslo" ? Effect.succeed({ sky: "clear" }) : Effect.fail(`no station in ${city}`)
})

const key = "sk-test-1234567890abcdef"
const apiKey = Redacted.make(key)

type Options = EffectAi.Options & Engine.Options<typeof weather>

const engineOn = (model: Layer.Layer<LanguageModel.LanguageModel>, options: Options = {}) =>
  EffectAi.engine({ tools: [weather], retry: false, ...options }).pipe(Layer.provide(model))

const openAi = (url: string, config: OpenAiLanguageModel.Config.Service = {}) =>
  OpenAiLanguageModel.model("gpt-test", config).pipe(
    Layer.provide(OpenAiClient.layer({ apiKey, apiUrl: `${url}/v1` })),
    Layer.provide(FetchHttpClient.layer)
  )

const anthropic = (url: string) =>
  AnthropicLanguageModel.model("claude-test").pipe(
    Layer.provide(AnthropicClient.layer({ apiKey, apiUrl: url })),
    Layer.provide(FetchHttpClient.layer)
  )

const said = (text: string) => Server.events(Wire.frames([Wire.message("msg_2", [text])]))

const mock = Effect.acquireRelease(
  Effect.promise(() => LLMock.create({ port: 0, chunkSize: 5 })),
  (server) => Effect.promise(() => server.stop())
)

describe("EffectAi with @effect/ai-openai", () => {
  it.scopedLive("does not pass frames that the provider cannot read off as an empty answer", () =>
    Effect.gen(function*() {
      // The mock leaves out fields that their schemas insist on, so that their stream ends without a part.
      const server = (yield* mock).on({ userMessage: "Hi" }, { content: "Hello" })
      const error = yield* Effect.flip(Effect.asVoid(Allm.generate("Hi"))).pipe(
        Effect.provide(engineOn(openAi(server.url)))
      )

      assert(error._tag === "AdapterError")
      assert.strictEqual(error.reason, "malformed_response")
    }))

  const turn = [
    Wire.reasoning("rs_1", "Two cities.", "encrypted-thoughts"),
    Wire.message("msg_1", ["I ", "look."]),
    Wire.call("call_a", "get_weather", ["{\"city\":", "\"Oslo\"}"]),
    Wire.call("call_b", "get_weather", ["{\"city\":\"Atlantis\"}"])
  ]

  it.scopedLive("runs parallel calls over two turns, and gives back what the provider wants to see again", () =>
    Effect.gen(function*() {
      const server = yield* Server.serve([Server.events(Wire.frames(turn)), said("Clear in Oslo.")])
      const result = yield* Allm.chat([
        Message.system("Be brief."),
        Message.user([Message.text("Weather?"), Message.image("data:image/png;base64,AQID", { detail: "low" })])
      ]).pipe(Effect.provide(engineOn(openAi(server.url, { strict: false }))))

      assert.strictEqual(result.haltedReason, "completed")
      assert.strictEqual(result.finalResponse.outputText, "Clear in Oslo.")
      const [step] = result.steps
      assert.deepStrictEqual(step?.toolResults.map(({ content }) => content), [
        "{\"sky\":\"clear\"}",
        "{\"error\":\"no station in Atlantis\"}"
      ])
      assert.deepStrictEqual([step?.response.id, step?.response.model], ["resp_1", "gpt-test"])
      assert.deepStrictEqual(step?.response.usage, {
        inputTokens: 50,
        outputTokens: 12,
        totalTokens: 62,
        reasoningTokens: 4,
        cachedInputTokens: 40
      })
      const [first, second] = server.received
      assert.deepStrictEqual(first?.body.tools, [{
        type: "function",
        name: "get_weather",
        description: "Current weather of a city",
        parameters: inputSchema,
        strict: false
      }])
      assert.deepStrictEqual(first?.body.input[1].content, [
        { type: "input_text", text: "Weather?" },
        { type: "input_image", image_url: "data:image/png;base64,AQID", detail: "low" }
      ])
      assert.deepStrictEqual(second?.body.input.slice(2), [
        {
          id: "rs_1",
          type: "reasoning",
          summary: [{ type: "summary_text", text: "Two cities." }],
          encrypted_content: "encrypted-thoughts"
        },
        { role: "assistant", content: [{ type: "output_text", text: "I look." }], id: "msg_1" },
        {
          id: "fc_call_a",
          type: "function_call",
          call_id: "call_a",
          name: "get_weather",
          arguments: "{\"city\":\"Oslo\"}"
        },
        {
          id: "fc_call_b",
          type: "function_call",
          call_id: "call_b",
          name: "get_weather",
          arguments: "{\"city\":\"Atlantis\"}"
        },
        { type: "function_call_output", call_id: "call_a", output: "{\"sky\":\"clear\"}" },
        { type: "function_call_output", call_id: "call_b", output: "{\"error\":\"no station in Atlantis\"}" }
      ])
    }))

  it.scopedLive("asks for an object in the form of the schema", () =>
    Effect.gen(function*() {
      const server = yield* Server.serve([
        Server.json(Wire.whole([Wire.message("msg_1", ["{\"sky\":", "\"clear\"}"])]))
      ])
      const { value } = yield* Allm.object("Weather?", { schema: Schema.Struct({ sky: Schema.String }) }).pipe(
        Effect.provide(engineOn(openAi(server.url), { tools: [] }))
      )

      assert.deepStrictEqual(value, { sky: "clear" })
      const { format } = server.received[0]?.body.text ?? {}
      assert.strictEqual(format.type, "json_schema")
      assert.deepStrictEqual(format.schema, {
        type: "object",
        required: ["sky"],
        properties: { sky: { type: "string" } },
        additionalProperties: false
      })
    }))

  it.scopedLive("tells the provider what `configure` makes of a request", () =>
    Effect.gen(function*() {
      const server = yield* Server.serve([said("Hi.")])
      yield* Allm.generate("Hi", { temperature: 0.2, maxTokens: 99, model: "gpt-other", params: { top_p: 0.5 } }).pipe(
        Effect.provide(engineOn(openAi(server.url), {
          configure: ({ maxTokens, model, options, temperature }) =>
            OpenAiLanguageModel.withConfigOverride({ model, temperature, max_output_tokens: maxTokens, ...options })
        }))
      )
      const { max_output_tokens, model, temperature, top_p } = server.received[0]!.body

      assert.deepStrictEqual({ max_output_tokens, model, temperature, top_p }, {
        max_output_tokens: 99,
        model: "gpt-other",
        temperature: 0.2,
        top_p: 0.5
      })
    }))

  it.scopedLive("waits as long as the provider asks, and asks again", () =>
    Effect.gen(function*() {
      const server = yield* Server.serve([
        Server.refuse(429, { error: { message: "Slow down" } }, { "retry-after": "1" }),
        said("Hi.")
      ])
      const [took, response] = yield* Effect.timed(Allm.generate("Hi")).pipe(
        Effect.provide(engineOn(openAi(server.url), { retry: undefined }))
      )

      assert.strictEqual(response.outputText, "Hi.")
      assert.isAtLeast(Duration.toMillis(took), 1_000)
    }))

  const refusals = [
    [
      Server.refuse(401, { error: { message: "Incorrect API key" } }),
      "authentication_failed",
      401,
      "Incorrect API key"
    ],
    [
      Server.refuse(400, { error: { code: "context_length_exceeded", message: "Too long" } }),
      "context_length_exceeded",
      400,
      "Too long"
    ],
    [Server.refuse(503, { error: { message: "Busy" } }), "provider_unavailable", 503, "Busy"],
    [Server.events(Wire.error), "provider_unavailable", undefined, "The server had an error"],
    // Their provider reads a failed answer as one that stops without a word.
    [
      Server.events(Wire.failed),
      "malformed_response",
      undefined,
      "the model said nothing, and the provider counted nothing"
    ],
    // And frames that it cannot read it leaves out.
    [Server.events([{ type: "response.unheard_of" }]), "malformed_response", undefined, "the model said nothing"],
    [
      Server.events(Wire.frames([Wire.message("msg_1", ["Hel"])]).slice(0, 3)),
      undefined,
      undefined,
      "the answer broke off: no finish part came"
    ]
  ] as const
  for (const [handler, reason, status, detail] of refusals) {
    it.scopedLive(`fails with ${reason}: ${detail}`, () =>
      Effect.gen(function*() {
        const server = yield* Server.serve([handler])
        const result = yield* Effect.either(Allm.generate("Hi")).pipe(Effect.provide(engineOn(openAi(server.url))))
        const error = result._tag === "Left" && result.left._tag === "AdapterError" ? result.left : undefined

        if (reason === undefined) {
          assert(result._tag === "Right")
          assert.deepStrictEqual([result.right.outputText, result.right.finishReason], ["Hel", "error"])
          assert.match(JSON.stringify(result.right.metadata), new RegExp(detail))
        } else {
          assert.deepStrictEqual([error?.reason, error?.status, error?.detail], [reason, status, detail])
          assert.strictEqual(error?.provider, "openai")
        }
      }))
  }

  it.scopedLive("keeps a call whose arguments are not JSON, and goes on", () =>
    Effect.gen(function*() {
      const server = yield* Server.serve([
        Server.events(Wire.frames([Wire.call("call_a", "get_weather", ["{\"city\":", "\"Os"])])),
        said("Sorry.")
      ])
      const result = yield* Effect.provide(Allm.chat("Weather?"), engineOn(openAi(server.url)))

      assert.strictEqual(result.haltedReason, "completed")
      assert.match(result.steps[0]?.toolResults[0]?.content ?? "", /invalid_arguments/)
      assert.strictEqual(server.received[1]?.body.input[1].arguments, "{\"invalidJson\":\"{\\\"city\\\":\\\"Os\"}")
    }))

  it.scopedLive("closes the connection when it is interrupted", () =>
    Effect.gen(function*() {
      const server = yield* Server.serve([Server.events(Wire.frames([Wire.message("m", ["Hel"])]).slice(0, 3), true)])
      const fiber = yield* Effect.fork(Effect.provide(Allm.chat("Hi"), engineOn(openAi(server.url))))
      const until = (holds: () => boolean): Effect.Effect<void> =>
        Effect.suspend(() => holds() ? Effect.void : Effect.zipRight(Effect.sleep(5), until(holds)))
      yield* until(() => server.open() === 1)
      yield* Fiber.interrupt(fiber)
      yield* until(() => server.open() === 0)
    }))

  it.scopedLive("shows its key to nobody but the provider", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const log = Logger.replace(
        Logger.defaultLogger,
        Logger.make(({ annotations, cause, message }) => {
          lines.push(inspect([message, cause, annotations], { depth: 20 }))
        })
      )
      const server = yield* Server.serve([Server.refuse(401, { error: { message: "no" } })])
      const refused = yield* Effect.flip(Effect.asVoid(Allm.generate("Hi"))).pipe(
        Effect.tapErrorCause((cause) => Effect.logError(cause)),
        Effect.provide(engineOn(openAi(server.url))),
        Effect.provide(log)
      )
      const unreachable = yield* Effect.flip(Effect.asVoid(Allm.generate("Hi"))).pipe(
        Effect.provide(engineOn(openAi("http://127.0.0.1:1")))
      )

      assert.strictEqual(server.received[0]?.headers.authorization, `Bearer ${key}`)
      assert(unreachable._tag === "AdapterError")
      assert.strictEqual(unreachable.reason, "network_error")
      for (const error of [refused, unreachable]) {
        assert.notInclude(inspect(error, { depth: 20, showHidden: true }) + JSON.stringify(error), key)
      }
      assert.notInclude(lines.join("\n"), key)
    }))
})

describe("EffectAi with @effect/ai-anthropic", () => {
  it.scopedLive("runs parallel calls over two turns", () =>
    Effect.gen(function*() {
      const server = (yield* mock)
        .on({ userMessage: "Weather?", hasToolResult: false }, {
          content: "I look.",
          toolCalls: [
            { id: "toolu_a", name: "get_weather", arguments: "{\"city\":\"Oslo\"}" },
            { id: "toolu_b", name: "get_weather", arguments: "{\"city\":\"Atlantis\"}" }
          ]
        })
        .on({ userMessage: "Weather?", hasToolResult: true }, { content: "Clear in Oslo." })
      const result = yield* Allm.chat([Message.system("Be brief."), Message.user("Weather?")]).pipe(
        Effect.provide(engineOn(anthropic(server.url)))
      )

      assert.strictEqual(result.haltedReason, "completed")
      assert.strictEqual(result.finalResponse.outputText, "Clear in Oslo.")
      assert.deepStrictEqual(result.steps[0]?.toolResults.map(({ content, toolCallId }) => [toolCallId, content]), [
        ["toolu_a", "{\"sky\":\"clear\"}"],
        ["toolu_b", "{\"error\":\"no station in Atlantis\"}"]
      ])
      assert.lengthOf(server.getRequests(), 2)
    }))

  it.scopedLive("waits as long as the provider asks, and asks again", () =>
    Effect.gen(function*() {
      const server = (yield* mock)
        .on({ userMessage: "Hi", sequenceIndex: 0 }, {
          error: { message: "Slow down", type: "rate_limit_error" },
          status: 429,
          retryAfter: 1
        })
        .on({ userMessage: "Hi" }, { content: "Hello" })
      const [took, response] = yield* Effect.timed(Allm.generate("Hi")).pipe(
        Effect.provide(engineOn(anthropic(server.url), { retry: undefined }))
      )

      assert.strictEqual(response.outputText, "Hello")
      assert.isAtLeast(Duration.toMillis(took), 1_000)
    }))

  const start = {
    type: "message_start",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "claude-test",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      container: null,
      context_management: null,
      usage: {
        input_tokens: 20,
        output_tokens: 1,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 15,
        cache_creation: null,
        server_tool_use: null,
        service_tier: "standard"
      }
    }
  }
  const block = (index: number, content: object, deltas: ReadonlyArray<object>) => [
    { type: "content_block_start", index, content_block: content },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index }
  ]
  const stop = (reason: string) => [
    {
      type: "message_delta",
      delta: { stop_reason: reason, stop_sequence: null, container: null },
      context_management: null,
      usage: {
        input_tokens: 20,
        output_tokens: 9,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 15,
        server_tool_use: null
      }
    },
    { type: "message_stop" }
  ]

  it.scopedLive("gives thoughts back with their signatures", () =>
    Effect.gen(function*() {
      const server = yield* Server.serve([
        Server.events([
          start,
          ...block(0, { type: "thinking", thinking: "", signature: "" }, [
            { type: "thinking_delta", thinking: "Oslo, " },
            { type: "thinking_delta", thinking: "then." },
            { type: "signature_delta", signature: "signed" }
          ]),
          ...block(1, { type: "redacted_thinking", data: "hidden" }, []),
          ...block(2, { type: "tool_use", id: "toolu_a", name: "get_weather", input: {} }, [
            { type: "input_json_delta", partial_json: "{\"city\":" },
            { type: "input_json_delta", partial_json: "\"Oslo\"}" }
          ]),
          ...stop("tool_use")
        ]),
        Server.events([
          start,
          ...block(0, { type: "text", text: "", citations: null }, [{ type: "text_delta", text: "Clear." }]),
          ...stop("end_turn")
        ])
      ])
      const result = yield* Effect.provide(Allm.chat("Weather?"), engineOn(anthropic(server.url)))

      assert.strictEqual(result.finalResponse.outputText, "Clear.")
      assert.deepStrictEqual(result.steps[0]?.response.usage, {
        inputTokens: 20,
        outputTokens: 9,
        totalTokens: 29,
        cachedInputTokens: 15
      })
      assert.deepStrictEqual(server.received[0]?.body.tools, [
        { name: "get_weather", description: "Current weather of a city", input_schema: inputSchema }
      ])
      assert.deepStrictEqual(server.received[1]?.body.messages.slice(1), [
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Oslo, then.", signature: "signed" },
            { type: "redacted_thinking", data: "hidden" },
            { type: "tool_use", id: "toolu_a", name: "get_weather", input: { city: "Oslo" } }
          ]
        },
        {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: "toolu_a", content: "{\"sky\":\"clear\"}", is_error: false }]
        }
      ])
    }))

  it.scopedLive("asks again when the provider is overloaded before it said a word", () =>
    Effect.gen(function*() {
      const server = yield* Server.serve([
        Server.events([start, { type: "error", error: { type: "overloaded_error", message: "Overloaded" } } as never]),
        Server.events([
          start,
          ...block(0, { type: "text", text: "", citations: null }, [{ type: "text_delta", text: "Hello" }]),
          ...stop("end_turn")
        ])
      ])
      const response = yield* Allm.generate("Hi").pipe(
        Effect.provide(engineOn(anthropic(server.url), { retry: undefined }))
      )

      assert.strictEqual(response.outputText, "Hello")
    }))
})
