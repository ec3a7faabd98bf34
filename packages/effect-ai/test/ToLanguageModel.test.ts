import { Adapter, AdapterError, Fake, Message } from "@allm/core"
import { EffectAi } from "@allm/effect-ai"
import { type AiError, Chat, LanguageModel, Prompt, Tool, Toolkit } from "@effect/ai"
import { OpenAiTool } from "@effect/ai-openai"
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Duration, Effect, Fiber, Layer, Schema, Stream } from "effect"

const Add = Tool.make("Add", {
  description: "Adds two numbers",
  parameters: { a: Schema.Number, b: Schema.NumberFromString },
  success: Schema.Struct({ sum: Schema.Number })
})
const Now = Tool.make("Now", { success: Schema.String })
const toolkit = Toolkit.make(Add, Now)
const Handlers = toolkit.toLayer({
  Add: ({ a, b }) => Effect.succeed({ sum: a + b }),
  Now: () => Effect.succeed("noon")
})

const model = (options: Fake.Options, modelOptions?: EffectAi.ModelOptions) =>
  Layer.provideMerge(EffectAi.toLanguageModel(modelOptions), Fake.layer(options))

const calling = [
  Fake.reasoning("Numbers."),
  Fake.text("I add."),
  Fake.toolCall({ id: "c0", name: "Add", arguments: { a: 2, b: "3" } }),
  Fake.toolCall({ id: "c1", name: "Now" }),
  Fake.usage({ inputTokens: 5, outputTokens: 3, reasoningTokens: 1, cachedInputTokens: 2 }),
  Fake.finish("tool_calls")
]

describe("EffectAi.toLanguageModel", () => {
  describe("generateText", () => {
    it.effect("gives what the adapter said, and runs the tools that it called", () =>
      Effect.gen(function*() {
        const response = yield* LanguageModel.generateText({ prompt: "2 + 3?", toolkit })

        assert.strictEqual(response.text, "I add.")
        assert.strictEqual(response.reasoningText, "Numbers.")
        assert.strictEqual(response.finishReason, "tool-calls")
        assert.deepStrictEqual({ ...response.usage }, {
          inputTokens: 5,
          outputTokens: 3,
          totalTokens: 8,
          reasoningTokens: 1,
          cachedInputTokens: 2
        })
        assert.deepStrictEqual(response.toolCalls.map(({ id, params }) => [id, params]), [["c0", { a: 2, b: 3 }], [
          "c1",
          {}
        ]])
        assert.deepStrictEqual(response.toolResults.map(({ result }) => result), [{ sum: 5 }, "noon"])
      }).pipe(Effect.provide([model({ script: calling }), Handlers])))

    it.effect("asks the adapter for what it was asked", () =>
      Effect.gen(function*() {
        yield* LanguageModel.generateText({
          prompt: [
            { role: "system", content: "Be brief." },
            {
              role: "user",
              content: [
                { type: "text", text: "What is it?" },
                { type: "file", mediaType: "image/png", data: new Uint8Array([1, 2, 3]) }
              ]
            },
            { role: "assistant", content: [{ type: "tool-call", id: "c0", name: "Add", params: { a: 1, b: "2" } }] },
            {
              role: "tool",
              content: [{
                type: "tool-result",
                id: "c0",
                name: "Add",
                isFailure: true,
                result: { no: 1 },
                providerExecuted: false
              }]
            }
          ],
          toolkit,
          toolChoice: { tool: "Add" },
          disableToolCallResolution: true
        })
        const [request] = yield* Fake.requests

        assert.deepStrictEqual(request?.messages.map(({ content, role }) => [role, content]), [
          ["system", "Be brief."],
          ["user", [Message.text("What is it?"), Message.image({ mediaType: "image/png", data: "AQID" })]],
          ["assistant", ""],
          ["tool", "{\"no\":1}"]
        ])
        assert.isTrue(request?.messages[3]?.role === "tool" && request.messages[3].isError)
        assert.deepStrictEqual(request?.toolChoice, { tool: "Add" })
        assert.deepStrictEqual(
          request?.tools.map(({ description, inputSchema, name }) => ({ description, inputSchema, name })),
          [
            { name: "Add", description: "Adds two numbers", inputSchema: Tool.getJsonSchema(Add) as never },
            {
              name: "Now",
              description: "",
              inputSchema: { type: "object", properties: {}, required: [], additionalProperties: false }
            }
          ]
        )
        assert.deepStrictEqual(
          [request?.model, request?.temperature, request?.maxTokens, request?.options],
          ["small", 0.3, 99, { seed: 7 }]
        )
      }).pipe(Effect.provide([
        model({ script: [Fake.text("Hi"), Fake.finish("stop")] }, {
          model: "small",
          temperature: 0.3,
          maxTokens: 99,
          params: { seed: 7 }
        }),
        Handlers
      ])))

    for (
      const [choice, expected] of [
        ["auto", "auto"],
        ["none", "none"],
        ["required", "required"],
        [{ oneOf: ["Add"] }, "auto"],
        [{ mode: "required", oneOf: ["Add"] }, "required"]
      ] as const
    ) {
      it.effect(`offers tools by the choice ${JSON.stringify(choice)}`, () =>
        Effect.gen(function*() {
          yield* LanguageModel.generateText({ prompt: "Hi", toolkit, toolChoice: choice })
          const [request] = yield* Fake.requests

          assert.strictEqual(request?.toolChoice, expected)
          assert.strictEqual(request?.tools.length, typeof choice === "string" ? 2 : 1)
        }).pipe(Effect.provide([model({ script: [Fake.text("Hi"), Fake.finish("stop")] }), Handlers])))
    }

    it.effect("says nothing of tools when there are none", () =>
      Effect.gen(function*() {
        yield* LanguageModel.generateText({ prompt: "Hi" })
        const [request] = yield* Fake.requests

        assert.deepStrictEqual([request?.tools, request?.toolChoice, request?.responseFormat], [
          [],
          undefined,
          undefined
        ])
      }).pipe(Effect.provide(model({ script: [Fake.text("Hi"), Fake.finish("stop")] }))))

    it.effect("refuses arguments of a model that no schema takes", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Effect.asVoid(LanguageModel.generateText({ prompt: "Hi", toolkit })))

        assert.strictEqual(error._tag, "MalformedOutput")
      }).pipe(Effect.provide([
        model({
          script: [Fake.toolCall({ id: "c0", name: "Add", rawArguments: "{\"a\":" }), Fake.finish("tool_calls")]
        }),
        Handlers
      ])))

    it.effect("takes an answer that comes as its message alone", () =>
      Effect.gen(function*() {
        const service = yield* EffectAi.makeLanguageModel(Adapter.make((_request, emit) =>
          emit([{
            _tag: "MessageCompleted",
            finishReason: "stop",
            message: Message.assistant([
              Message.text("Here:"),
              Message.image({ mediaType: "image/png", data: "AQID" })
            ]),
            metadata: {}
          }])
        ))
        const response = yield* service.generateText({ prompt: "Hi" })

        assert.strictEqual(response.text, "Here:")
        assert.deepStrictEqual(
          response.content.flatMap((part) => part.type === "file" ? [part.data] : []),
          [new Uint8Array([1, 2, 3])]
        )
      }))

    it.effect("fails when an error came inside the answer", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Effect.asVoid(LanguageModel.generateText({ prompt: "Hi" })))

        assert.strictEqual(error._tag, "HttpRequestError")
      }).pipe(Effect.provide(model({ script: [Fake.text("Hel"), Fake.error("network_error")] }))))

    it.effect("fails when the adapter just stops", () =>
      Effect.gen(function*() {
        const service = yield* EffectAi.makeLanguageModel(
          Adapter.make((_request, emit) => emit([{ _tag: "TextDelta", delta: "Hel" }]))
        )
        const whole = yield* Effect.flip(Effect.asVoid(service.generateText({ prompt: "Hi" })))
        const streamed = yield* Effect.flip(Stream.runDrain(service.streamText({ prompt: "Hi" })))

        assert.deepStrictEqual([whole._tag, streamed._tag], ["MalformedOutput", "MalformedOutput"])
      }))
  })

  describe("streamText", () => {
    it.effect("gives what the adapter says as it comes, and runs the tools that it called", () =>
      Effect.gen(function*() {
        const parts = Chunk.toReadonlyArray(
          yield* Stream.runCollect(LanguageModel.streamText({ prompt: "2 + 3?", toolkit }))
        )

        assert.deepStrictEqual(
          parts.map((part) =>
            "delta" in part
              ? [part.type, part.delta]
              : part.type === "tool-result"
              ? [part.type, part.result]
              : [part.type]
          ),
          [
            ["response-metadata"],
            ["reasoning-start"],
            ["reasoning-delta", "Numbers."],
            ["reasoning-end"],
            ["text-start"],
            ["text-delta", "I add."],
            ["text-end"],
            ["tool-params-start"],
            ["tool-params-delta", "{\"a\":2,\"b\":\"3\"}"],
            ["tool-params-end"],
            ["tool-call"],
            ["tool-params-start"],
            ["tool-params-delta", "{}"],
            ["tool-params-end"],
            ["tool-call"],
            ["finish"],
            ["tool-result", { sum: 5 }],
            ["tool-result", "noon"]
          ]
        )
      }).pipe(Effect.provide([model({ script: calling }), Handlers])))

    it.effect("ends each block before the next and before the end, whatever the adapter completes", () =>
      Effect.gen(function*() {
        const service = yield* EffectAi.makeLanguageModel(Adapter.make((_request, emit) =>
          emit([
            { _tag: "ReasoningDelta", delta: "Hm." },
            { _tag: "TextDelta", id: "a", delta: "One" },
            { _tag: "TextCompleted", id: "a", text: "One." },
            { _tag: "TextCompleted", id: "b", text: "Two." },
            { _tag: "TextDelta", id: "c", delta: "Three." },
            { _tag: "MessageCompleted", finishReason: "stop", metadata: {} }
          ])
        ))
        const parts = Array.from(yield* Stream.runCollect(service.streamText({ prompt: "Hi" })))

        assert.deepStrictEqual(
          parts.map((part) => "delta" in part ? part.delta : part.type),
          [
            "response-metadata",
            "reasoning-start",
            "Hm.",
            "reasoning-end",
            "text-start",
            "One",
            ".",
            "text-end",
            "text-start",
            "Two.",
            "text-end",
            "text-start",
            "Three.",
            "text-end",
            "finish"
          ]
        )
        assert.strictEqual((yield* service.generateText({ prompt: "Hi" })).text, "One.Two.Three.")
      }))

    it.effect("lets go of the adapter when nobody reads any more", () =>
      Effect.gen(function*() {
        const first = yield* LanguageModel.streamText({ prompt: "Hi" }).pipe(
          Stream.filter((part) => part.type === "text-delta"),
          Stream.runHead
        )
        const { closed, open } = yield* Fake.Fake

        assert.strictEqual(first._tag, "Some")
        assert.deepStrictEqual([yield* open, yield* closed], [0, 1])
      }).pipe(Effect.provide(model({ script: [Fake.text("Hel"), Fake.delay("1 hour"), Fake.text("lo")] }))))

    it.effect("lets go of the adapter when it is interrupted", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.fork(LanguageModel.generateText({ prompt: "Hi" }))
        yield* Effect.yieldNow()
        yield* Fiber.interrupt(fiber)
        const { closed, open } = yield* Fake.Fake

        assert.deepStrictEqual([yield* open, yield* closed], [0, 1])
      }).pipe(Effect.provide(model({ script: [Fake.text("Hel"), Fake.delay("1 hour")] }))))

    it.effect("tells an error inside the answer as a part", () =>
      Effect.gen(function*() {
        const parts = yield* Stream.runCollect(LanguageModel.streamText({ prompt: "Hi" }))
        const [error] = Array.from(parts).flatMap((part) => part.type === "error" ? [part.error] : [])

        assert(error instanceof AdapterError.AdapterError)
        assert.strictEqual(error.reason, "network_error")
      }).pipe(Effect.provide(model({ script: [Fake.text("Hel"), Fake.error("network_error")] }))))
  })

  describe("generateObject", () => {
    class Weather extends Schema.Class<Weather>("app/Weather")({ sky: Schema.String, degrees: Schema.Number }) {}

    it.effect("asks for the schema and decodes the answer", () =>
      Effect.gen(function*() {
        const { value } = yield* LanguageModel.generateObject({ prompt: "Weather?", schema: Weather })
        const [request] = yield* Fake.requests

        assert.deepStrictEqual(value, new Weather({ sky: "clear", degrees: 21 }))
        assert(request?.responseFormat?.type === "json_schema")
        assert.deepStrictEqual([request.responseFormat.name, request.responseFormat.strict], ["app_Weather", true])
        assert.deepStrictEqual(request.responseFormat.schema["required"], ["sky", "degrees"])
      }).pipe(Effect.provide(model({
        script: [Fake.text("{\"sky\":\"clear\","), Fake.text("\"degrees\":21}"), Fake.finish("stop")]
      }))))

    it.effect("fails when the answer is none", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(
          Effect.asVoid(LanguageModel.generateObject({ prompt: "Weather?", schema: Weather }))
        )

        assert.strictEqual(error._tag, "MalformedOutput")
      }).pipe(Effect.provide(model({ script: [Fake.text("Sunny."), Fake.finish("stop")] }))))
  })

  describe("with Chat", () => {
    it.effect("holds a conversation with tools over several turns", () =>
      Effect.gen(function*() {
        const chat = yield* Chat.empty
        yield* chat.generateText({ prompt: "2 + 3?", toolkit })
        const second = yield* chat.generateText({ prompt: "Thanks.", toolkit })
        const requests = yield* Fake.requests

        assert.strictEqual(second.text, "Welcome.")
        assert.deepStrictEqual(requests[1]?.messages.map(({ role }) => role), [
          "user",
          "assistant",
          "tool",
          "tool",
          "user"
        ])
        const [, assistant, result] = requests[1]?.messages ?? []
        assert(assistant?.role === "assistant" && result?.role === "tool")
        assert.deepStrictEqual(assistant.toolCalls.map(({ name }) => name), ["Add", "Now"])
        assert.deepStrictEqual([result.toolCallId, result.content], ["c0", "{\"sum\":5}"])
        // And the history goes on here.
        assert.strictEqual(EffectAi.fromPrompt(yield* chat.history).length, 6)
      }).pipe(Effect.provide([
        model({ scripts: [calling, [Fake.text("Welcome."), Fake.finish("stop")]] }),
        Handlers
      ])))
  })

  describe("refuses", () => {
    const refusals: ReadonlyArray<
      readonly [what: string, run: Effect.Effect<unknown, AiError.AiError, LanguageModel.LanguageModel>, why: RegExp]
    > = [
      [
        "tools that a provider of theirs defines",
        LanguageModel.generateText({ prompt: "Hi", toolkit: Toolkit.make(OpenAiTool.WebSearch({})) }),
        /"OpenAiWebSearch" is defined by a provider/
      ],
      [
        "files that are no images",
        LanguageModel.generateText({
          prompt: [{ role: "user", content: [{ type: "file", mediaType: "application/pdf", data: new Uint8Array() }] }]
        }),
        /no file of type "application\/pdf"/
      ],
      ["a prompt without messages", LanguageModel.generateText({ prompt: Prompt.empty }), /a request needs a message/],
      [
        "schemas that have no JSON Schema",
        LanguageModel.generateObject({
          prompt: "Hi",
          schema: Schema.Struct({
            a: Schema.Unknown.pipe(Schema.filter(() => true)),
            b: Schema.SymbolFromSelf
          }) as never
        }),
        /Symbol/i
      ]
    ]
    for (const [what, run, why] of refusals) {
      it.effect(what, () =>
        Effect.gen(function*() {
          const error = yield* Effect.flip(Effect.asVoid(run))

          assert(error._tag === "MalformedInput")
          assert.match(error.description ?? "", why)
          assert.deepStrictEqual(yield* Fake.requests, [])
        }).pipe(Effect.provide(model({ script: [] }))))
    }
  })

  describe("tells failures in their words", () => {
    const failures: ReadonlyArray<readonly [AdapterError.AdapterError, AiError.AiError["_tag"], number | undefined]> = [
      [new AdapterError.AdapterError({ reason: "rate_limited" }), "HttpResponseError", 429],
      [new AdapterError.AdapterError({ reason: "rate_limited", status: 529 }), "HttpResponseError", 529],
      [new AdapterError.AdapterError({ reason: "authentication_failed" }), "HttpResponseError", 401],
      [new AdapterError.AdapterError({ reason: "provider_unavailable" }), "HttpResponseError", 503],
      [new AdapterError.AdapterError({ reason: "invalid_request", status: 422 }), "HttpResponseError", 422],
      [new AdapterError.AdapterError({ reason: "invalid_request" }), "MalformedInput", undefined],
      [new AdapterError.AdapterError({ reason: "unsupported_feature" }), "MalformedInput", undefined],
      [new AdapterError.AdapterError({ reason: "context_length_exceeded" }), "MalformedInput", undefined],
      [new AdapterError.AdapterError({ reason: "network_error" }), "HttpRequestError", undefined],
      [new AdapterError.AdapterError({ reason: "timeout" }), "HttpRequestError", undefined],
      [new AdapterError.AdapterError({ reason: "malformed_response" }), "MalformedOutput", undefined],
      [new AdapterError.AdapterError({ reason: "content_filter" }), "UnknownError", undefined],
      [new AdapterError.AdapterError({ reason: "no_scripted_response" }), "UnknownError", undefined],
      [new AdapterError.AdapterError({ reason: "unknown" }), "UnknownError", undefined]
    ]
    for (const [error, tag, status] of failures) {
      it.effect(`such as ${error.reason}${error.status ?? ""} as ${tag}`, () =>
        Effect.gen(function*() {
          const told = yield* Effect.flip(Effect.asVoid(LanguageModel.generateText({ prompt: "Hi" })))

          assert.strictEqual(told._tag, tag)
          assert.strictEqual(told._tag === "HttpResponseError" ? told.response.status : undefined, status)
        }).pipe(Effect.provide(model({ script: [Fake.preflightError(error)] }))))
    }

    it.effect("with the wait and the id of the request", () =>
      Effect.gen(function*() {
        const told = yield* Effect.flip(Effect.asVoid(LanguageModel.generateText({ prompt: "Hi" })))

        assert(told._tag === "HttpResponseError")
        assert.deepStrictEqual(told.response.headers, { "retry-after": "1.5", "x-request-id": "req_1" })
      }).pipe(Effect.provide(model({
        script: [Fake.preflightError(
          new AdapterError.AdapterError({
            reason: "rate_limited",
            retryAfter: Duration.millis(1500),
            requestId: "req_1"
          })
        )]
      }))))
  })
})
