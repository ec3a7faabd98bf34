import * as EventLaws from "@allm/conformance/EventLaws"
import { Adapter, Allm, type Engine, Message, Request, Tool, ToolCall, ToolResult } from "@allm/core"
import { EffectAi } from "@allm/effect-ai"
import { LanguageModel, Model, Tool as AiTool } from "@effect/ai"
import { AnthropicTool } from "@effect/ai-anthropic"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, FiberRef, Layer, Ref, Schema, Stream } from "effect"
import { askTheirs } from "./bench.ts"
import * as Scripted from "./scripted.ts"

const inputSchema = {
  $defs: { city: { type: "string", minLength: 1 } },
  type: "object",
  properties: { city: { $ref: "#/$defs/city" }, days: { type: "array", items: { type: "integer" } } },
  required: ["city"],
  "x-own": { kept: true }
}

const weather = Tool.fromJsonSchema("get_weather", {
  description: "Current weather of a city",
  schema: inputSchema,
  handler: ({ city }) => city === "Oslo" ? Effect.succeed({ sky: "clear" }) : Effect.fail(`no station in ${city}`)
})

const hello = Request.make({ messages: [Message.user("Hello")] })
const withTools = { ...hello, tools: [Tool.declaration(weather)] }

const answer: ReadonlyArray<Scripted.Part> = [...Scripted.text(["Hi", "."]), Scripted.finish("stop")]

const engineOf = (
  model: LanguageModel.Service,
  options: EffectAi.Options & Engine.Options<Tool.Tool<string, never, unknown, unknown, never>> = {}
) =>
  EffectAi.engine({ retry: false, ...options }).pipe(Layer.provide(Layer.succeed(LanguageModel.LanguageModel, model)))

describe("EffectAi.fromLanguageModel", () => {
  describe("what the model is asked", () => {
    it.effect("is the conversation, as a prompt", () =>
      Effect.gen(function*() {
        const messages = [
          Message.system("Be brief."),
          Message.user("Weather?"),
          Message.assistant("", {
            toolCalls: [ToolCall.make({ id: "c0", name: "get_weather", arguments: { city: "A" } })]
          }),
          Message.tool("c0", "{\"error\":\"no station\"}", { isError: true })
        ]
        const { asked } = yield* askTheirs(answer, { ...withTools, messages })

        assert.deepStrictEqual(
          asked[0]?.prompt.content.map(({ content, role }) => [
            role,
            typeof content === "string"
              ? content
              : content.map((part) => "result" in part ? [part.result, part.isFailure] : part.type)
          ]),
          [
            ["system", "Be brief."],
            ["user", ["text"]],
            ["assistant", ["tool-call"]],
            ["tool", [[{ error: "no station" }, true]]]
          ]
        )
      }))

    it.effect("has the tools with the very JSON Schema they were declared with", () =>
      Effect.gen(function*() {
        const { asked } = yield* askTheirs(answer, withTools)
        const [tool] = asked[0]?.tools ?? []

        assert.strictEqual(tool?.name, "get_weather")
        assert.strictEqual(AiTool.getDescription(tool as never), "Current weather of a city")
        assert.strictEqual(AiTool.getJsonSchema(tool as never), inputSchema as never)
      }))

    for (const toolChoice of ["auto", "none", "required", { tool: "get_weather" }] as const) {
      it.effect(`has the tool choice ${JSON.stringify(toolChoice)}`, () =>
        Effect.gen(function*() {
          const { asked } = yield* askTheirs(answer, { ...withTools, toolChoice })

          assert.deepStrictEqual(asked[0]?.toolChoice, toolChoice)
        }))
    }

    it.effect("is nothing about tools when there are none", () =>
      Effect.gen(function*() {
        const { asked } = yield* askTheirs(answer, hello)

        assert.deepStrictEqual([asked[0]?.tools, asked[0]?.toolChoice], [[], "none"])
      }))

    it.effect("is what `configure` makes of the request's parameters", () =>
      Effect.gen(function*() {
        const config = FiberRef.unsafeMake<unknown>(undefined)
        const seen = yield* Ref.make<unknown>(undefined)
        const { model } = yield* Scripted.make(() =>
          Stream.unwrap(
            Effect.as(Effect.flatMap(FiberRef.get(config), (value) => Ref.set(seen, value)), Scripted.reads(answer))
          )
        )
        const engine = engineOf(model, {
          model: "large",
          temperature: 0.2,
          maxTokens: 100,
          params: { seed: 7 },
          configure: ({ maxTokens, model, options, temperature }) =>
            Effect.locally(config, { model, temperature, max_tokens: maxTokens, ...options })
        })
        yield* Effect.provide(Allm.generate("Hello"), engine)

        assert.deepStrictEqual(yield* Ref.get(seen), { model: "large", temperature: 0.2, max_tokens: 100, seed: 7 })
      }))

    it.effect("is nothing at all when parameters would get lost", () =>
      Effect.gen(function*() {
        const { asked, error } = yield* askTheirs(answer, {
          ...hello,
          temperature: 0,
          maxTokens: 9,
          options: { seed: 7 }
        })

        assert.strictEqual(asked.length, 0)
        assert.strictEqual(error?.reason, "unsupported_feature")
        assert.strictEqual(
          error?.detail,
          "a LanguageModel of @effect/ai takes no temperature, maxTokens, params (seed); say how it is told with the option `configure`"
        )
      }))

    it.effect("is nothing at all when a prompt cannot hold it", () =>
      Effect.gen(function*() {
        const messages = [Message.user("Hi"), Message.user([Message.image("a.png")])]
        const { asked, error } = yield* askTheirs(answer, { ...hello, messages })

        assert.strictEqual(asked.length, 0)
        assert.strictEqual(error?.reason, "invalid_request")
        assert.match(error?.detail ?? "", /^message 1: the image "a.png" has no address/)
      }))
  })

  describe("what the model answers", () => {
    it.effect("is told as it comes", () =>
      Effect.gen(function*() {
        const { events } = yield* askTheirs([
          { type: "response-metadata", id: "resp_1", modelId: "large-1", timestamp: "2026-01-01T00:00:00.000Z" },
          { type: "reasoning-start", id: "r" },
          { type: "reasoning-delta", id: "r", delta: "Hm." },
          { type: "reasoning-end", id: "r" },
          ...Scripted.text(["I ", "look."], "t"),
          ...Scripted.call("c0", "get_weather", { city: "Oslo" }, ["{\"city\":", "\"Oslo\"}"]),
          Scripted.finish("tool-calls")
        ], withTools)

        assert.deepStrictEqual(events.slice(0, -1), [
          { _tag: "MessageStarted", id: "resp_1", model: "large-1" },
          { _tag: "ReasoningDelta", id: "r", delta: "Hm." },
          { _tag: "TextDelta", id: "t", delta: "I " },
          { _tag: "TextDelta", id: "t", delta: "look." },
          { _tag: "TextCompleted", id: "t", text: "I look." },
          { _tag: "ToolCallStarted", toolCallId: "c0", toolName: "get_weather" },
          { _tag: "ToolCallDelta", toolCallId: "c0", delta: "{\"city\":" },
          { _tag: "ToolCallDelta", toolCallId: "c0", delta: "\"Oslo\"}" },
          {
            _tag: "ToolCallCompleted",
            toolCall: {
              id: "c0",
              name: "get_weather",
              arguments: { city: "Oslo" },
              rawArguments: "{\"city\":\"Oslo\"}",
              metadata: {}
            }
          }
        ])
      }))

    it.effect("comes to a response with all it told", () =>
      Effect.gen(function*() {
        const { response } = yield* askTheirs([
          { type: "response-metadata", id: "resp_1", modelId: "large-1", timestamp: undefined },
          ...Scripted.text(["One."], "0"),
          { type: "source", sourceType: "url", id: "s", url: "https://allm.example/", title: "ALLM" },
          ...Scripted.text(["Two."], "1"),
          {
            type: "finish",
            reason: "stop",
            usage: { inputTokens: 5, outputTokens: 3, totalTokens: 8, reasoningTokens: 1, cachedInputTokens: 2 },
            metadata: { openai: { serviceTier: "default" } }
          }
        ], hello)

        assert.deepStrictEqual(response.outputText, "One.Two.")
        assert.deepStrictEqual([response.id, response.model], ["resp_1", "large-1"])
        assert.deepStrictEqual([response.finishReason, response.rawFinishReason], ["stop", "stop"])
        assert.deepStrictEqual(response.usage, {
          inputTokens: 5,
          outputTokens: 3,
          totalTokens: 8,
          reasoningTokens: 1,
          cachedInputTokens: 2
        })
        assert.deepStrictEqual(response.metadata["effectAi"], {
          metadata: { openai: { serviceTier: "default" } },
          sources: [{
            "~effect/ai/Content/Part": "~effect/ai/Content/Part",
            type: "source",
            sourceType: "url",
            id: "s",
            url: "https://allm.example/",
            title: "ALLM",
            metadata: {}
          }]
        })
      }))

    const reasons = [
      ["stop", "stop"],
      ["length", "length"],
      ["content-filter", "content_filter"],
      ["tool-calls", "tool_calls"],
      ["error", "error"],
      ["pause", "other"],
      ["other", "other"],
      ["unknown", "other"]
    ] as const
    for (const [theirs, ours] of reasons) {
      it.effect(`that ends with ${theirs} ends with ${ours}`, () =>
        Effect.gen(function*() {
          const { response } = yield* askTheirs([...Scripted.text(["Hi"]), Scripted.finish(theirs)], hello)

          assert.deepStrictEqual([response.finishReason, response.rawFinishReason], [ours, theirs])
        }))
    }

    for (const reason of ["stop", "unknown", "tool-calls"] as const) {
      it.effect(`that calls a tool waits for it, also when it ends with ${reason}`, () =>
        Effect.gen(function*() {
          const { response } = yield* askTheirs([
            { type: "tool-call", id: "c0", name: "get_weather", params: { city: "Oslo" } },
            Scripted.finish(reason)
          ], withTools)

          assert.strictEqual(response.finishReason, "tool_calls")
        }))
    }

    it.effect("keeps blocks apart that have one name", () =>
      Effect.gen(function*() {
        const { events, response } = yield* askTheirs([
          ...Scripted.text(["One."], "0"),
          ...Scripted.text(["Two."], "0"),
          Scripted.finish("stop")
        ], hello)

        assert.strictEqual(response.outputText, "One.Two.")
        assert.deepStrictEqual(EventLaws.problems(events), [])
      }))

    it.effect("keeps a call that a limit cut as text", () =>
      Effect.gen(function*() {
        const { response } = yield* askTheirs([
          ...Scripted.call("c0", "get_weather", {}, ["{\"city\":"]).slice(0, 2),
          Scripted.finish("length")
        ], withTools)

        assert.strictEqual(response.finishReason, "length")
        assert.deepStrictEqual(response.toolCalls, [
          { id: "c0", name: "get_weather", rawArguments: "{\"city\":", metadata: {} }
        ])
      }))

    it.effect("takes arguments of the wrong type as they are: the loop refuses them", () =>
      Effect.gen(function*() {
        const { response } = yield* askTheirs([
          { type: "tool-call", id: "c0", name: "get_weather", params: ["Oslo"] },
          { type: "tool-call", id: "c1", name: "get_weather", params: undefined },
          Scripted.finish("tool-calls")
        ], withTools)

        assert.deepStrictEqual(response.toolCalls.map((call) => call.arguments), [["Oslo"], {}])
      }))

    it.effect("passes what it does not know", () =>
      Effect.gen(function*() {
        const parts: ReadonlyArray<unknown> = [
          { type: "hologram", depth: 3 },
          ...Scripted.text(["Hi"]),
          { type: "tool-params-delta", id: "nobody", delta: "{}" },
          null,
          Scripted.finish("stop")
        ]
        const model = { streamText: () => Stream.fromIterable(parts) } as unknown as LanguageModel.Service
        const adapter = EffectAi.fromLanguageModel(model)
        const chunks: Array<unknown> = []
        yield* adapter.generate(hello, (events) =>
          Effect.sync(() => {
            for (const event of events) if (event._tag === "RawChunk") chunks.push(event.chunk)
          }))

        assert.deepStrictEqual(chunks, [{ type: "hologram", depth: 3 }, parts[4]])
      }))
  })

  describe("what only the provider understands", () => {
    const thought: ReadonlyArray<Scripted.Part> = [
      { type: "reasoning-start", id: "0" },
      { type: "reasoning-delta", id: "0", delta: "Oslo, " },
      { type: "reasoning-delta", id: "0", delta: "then." },
      { type: "reasoning-delta", id: "0", delta: "", metadata: { anthropic: { type: "thinking", signature: "sig" } } },
      { type: "reasoning-end", id: "0" },
      {
        type: "reasoning-start",
        id: "1",
        metadata: { anthropic: { type: "redacted_thinking", redactedData: "secret" } }
      },
      { type: "reasoning-end", id: "1" },
      { type: "text-start", id: "2", metadata: { openai: { itemId: "msg_1" } } },
      { type: "text-delta", id: "2", delta: "I look." },
      { type: "text-end", id: "2" },
      {
        type: "tool-call",
        id: "c0",
        name: "get_weather",
        params: { city: "Oslo" },
        metadata: { openai: { itemId: "fc_1" } }
      },
      Scripted.finish("tool-calls")
    ]

    it.effect("is kept in the message, and goes back to it in the next turn", () =>
      Effect.gen(function*() {
        const turns = [thought, answer]
        const { asked, model } = yield* Scripted.make(() => Scripted.reads(turns.shift() ?? []))
        const { thread } = yield* Effect.provide(Allm.chat("Weather in Oslo?"), engineOf(model, { tools: [weather] }))
        const stored = JSON.parse(JSON.stringify(thread.messages)) as typeof thread.messages

        assert.deepStrictEqual(stored, thread.messages)
        const assistant = asked[1]?.prompt.content.find((message) => message.role === "assistant")
        assert.deepStrictEqual(
          assistant?.content.map((part): ReadonlyArray<unknown> =>
            "text" in part ? [part.type, part.text, part.options] : [part.type, part.options]
          ),
          [
            ["reasoning", "Oslo, then.", { anthropic: { type: "thinking", signature: "sig" } }],
            ["reasoning", "", { anthropic: { type: "redacted_thinking", redactedData: "secret" } }],
            ["text", "I look.", { openai: { itemId: "msg_1" } }],
            ["tool-call", { openai: { itemId: "fc_1" } }]
          ]
        )
      }))

    it.effect("is not in the way of the text or the calls", () =>
      Effect.gen(function*() {
        const { response } = yield* askTheirs(thought, withTools)

        assert.strictEqual(response.message?.content, "I look.")
        assert.deepStrictEqual(response.toolCalls.map(({ id }) => id), ["c0"])
        assert.strictEqual(response.metadata["reasoning"], "Oslo, then.")
      }))

    it.effect("includes what the provider runs itself: it is passed on, kept, and nobody here runs it", () =>
      Effect.gen(function*() {
        const search = AnthropicTool.WebSearch_20250305({})
        const turns = [
          [
            {
              type: "tool-params-start",
              id: "s0",
              name: search.name,
              providerName: "web_search",
              providerExecuted: true
            },
            {
              type: "tool-call",
              id: "s0",
              name: search.name,
              params: { query: "Oslo" },
              providerName: "web_search",
              providerExecuted: true
            },
            {
              type: "tool-result",
              id: "s0",
              name: search.name,
              isFailure: false,
              result: [],
              providerName: "web_search",
              providerExecuted: true
            },
            ...Scripted.text(["Found."]),
            ...Scripted.call("c0", "get_weather", { city: "Oslo" }),
            Scripted.finish("tool-calls")
          ],
          answer
        ] satisfies ReadonlyArray<ReadonlyArray<Scripted.Part>>
        const { asked, model } = yield* Scripted.make(() => Scripted.reads(turns.shift() ?? []))
        const result = yield* Effect.provide(
          Allm.chat("Weather?"),
          engineOf(model, { tools: [weather], providerTools: [search] })
        )

        assert.deepStrictEqual(asked[0]?.tools.map(({ name }) => name), ["get_weather", search.name])
        assert.isTrue(AiTool.isProviderDefined(asked[0]?.tools[1]))
        assert.strictEqual(asked[0]?.tools[1]?.id, search.id)
        assert.deepStrictEqual(result.steps[0]?.toolResults.map(({ toolCallId }) => toolCallId), ["c0"])
        const assistant = asked[1]?.prompt.content.find((message) => message.role === "assistant")
        assert.deepStrictEqual(
          assistant?.content.map((part) =>
            "providerExecuted" in part ? [part.type, part.id, part.providerExecuted] : part.type
          ),
          [["tool-call", "s0", true], ["tool-result", "s0", true], "text", ["tool-call", "c0", false]]
        )
      }))

    it.effect("includes tools that the provider defines and a handler here runs", () =>
      Effect.gen(function*() {
        const bash = AnthropicTool.Bash_20250124({})
        const tools = [Tool.make(bash.name, {
          description: "Runs a command",
          parameters: Schema.Struct({ command: Schema.String }),
          handler: ({ command }) => `ran ${command}`
        })]
        const turns = [
          [
            { type: "tool-params-start", id: "c0", name: "bash", providerName: "bash" },
            { type: "tool-params-delta", id: "c0", delta: "{\"command\":\"ls\"}" },
            { type: "tool-call", id: "c0", name: bash.name, params: { command: "ls" }, providerName: "bash" },
            Scripted.finish("tool-calls")
          ],
          answer
        ] satisfies ReadonlyArray<ReadonlyArray<Scripted.Part>>
        const { asked, model } = yield* Scripted.make(() => Scripted.reads(turns.shift() ?? []))
        const result = yield* Effect.provide(Allm.chat("List"), engineOf(model, { tools, providerTools: [bash] }))

        assert.deepStrictEqual(asked[0]?.tools.map(({ id }) => id), [bash.id])
        assert.strictEqual(result.steps[0]?.toolResults[0]?.content, "ran ls")
        assert.deepStrictEqual(
          asked[1]?.prompt.content.slice(1).map(({ content }) =>
            typeof content === "string" ? [] : content.map((part) => "name" in part ? part.name : part.type)
          ),
          [["bash"], ["bash"]]
        )
      }))

    it.effect("includes files, which become images and go back", () =>
      Effect.gen(function*() {
        const { response } = yield* askTheirs([
          ...Scripted.text(["Here:"]),
          { type: "file", mediaType: "image/png", data: "AQID" },
          Scripted.finish("stop")
        ], hello)
        const message = response.message!

        assert.deepStrictEqual(message.content, [
          Message.text("Here:"),
          Message.image({ mediaType: "image/png", data: "AQID" })
        ])
        const { asked } = yield* askTheirs(answer, {
          ...hello,
          messages: [...hello.messages, message, Message.user("?")]
        })
        const assistant = asked[0]?.prompt.content[1]
        assert(assistant?.role === "assistant")
        assert.deepStrictEqual(
          assistant.content.map((part) => part.type === "file" ? part.data : part.type),
          ["text", new Uint8Array([1, 2, 3])]
        )
      }))
  })

  describe("in the loop", () => {
    it.effect("leaves the tools to the loop, also those it would run itself", () =>
      Effect.gen(function*() {
        const turns = [
          [
            ...Scripted.call("c0", "get_weather", { city: "Oslo" }),
            ...Scripted.call("c1", "get_weather", { city: "Atlantis" }),
            ...Scripted.call("c2", "get_weather", { days: "many" }),
            Scripted.finish("tool-calls")
          ],
          answer
        ]
        const { model } = yield* Scripted.make(() => Scripted.reads(turns.shift() ?? []))
        const result = yield* Effect.provide(Allm.chat("Weather?"), engineOf(model, { tools: [weather] }))

        assert.strictEqual(result.haltedReason, "completed")
        assert.deepStrictEqual(result.steps[0]?.toolResults.slice(0, 2).map(({ content }) => content), [
          "{\"sky\":\"clear\"}",
          "{\"error\":\"no station in Atlantis\"}"
        ])
        assert.match(result.steps[0]?.toolResults[2]?.content ?? "", /invalid_arguments/)
      }))

    it.effect("suspends for a person, and goes on", () =>
      Effect.gen(function*() {
        const ask = Tool.make("ask", { description: "Asks", handler: () => ToolResult.askUser("Which city?") })
        const turns = [[...Scripted.call("c0", "ask", {}), Scripted.finish("tool-calls")], answer]
        const { asked, model } = yield* Scripted.make(() => Scripted.reads(turns.shift() ?? []))
        const engine = engineOf(model, { tools: [ask] })
        const first = yield* Effect.provide(Allm.chat("Weather?"), engine)
        const second = yield* Effect.provide(Allm.chat([...first.thread.messages, Message.user("Oslo")]), engine)

        assert.deepStrictEqual([first.haltedReason, second.haltedReason], ["ask_user", "completed"])
        assert.deepStrictEqual(
          asked[1]?.prompt.content.map(({ role }) => role),
          ["user", "assistant", "tool", "assistant", "user"]
        )
      }))
  })

  describe("layer", () => {
    it.effect("takes the name of its provider from the model", () =>
      Effect.gen(function*() {
        const { model } = yield* Scripted.make(() => Scripted.reads(answer))
        const named = Model.make("acme", Layer.succeed(LanguageModel.LanguageModel, model))
        const nameOf = (layer: Layer.Layer<Adapter.Adapter>) =>
          Effect.map(Layer.build(layer), (context) => Context.get(context, Adapter.Adapter).name)

        assert.strictEqual(yield* nameOf(Layer.provide(EffectAi.layer(), named)), "acme")
        assert.strictEqual(yield* nameOf(Layer.provide(EffectAi.layer({ name: "mine" }), named)), "mine")
        assert.strictEqual(EffectAi.fromLanguageModel(model).name, "effect-ai")
      }).pipe(Effect.scoped))

    it.effect("refuses what its capabilities deny", () =>
      Effect.gen(function*() {
        const { asked, model } = yield* Scripted.make(() => Scripted.reads(answer))
        const engine = engineOf(model, { tools: [weather], capabilities: { tools: false } })
        const error = yield* Effect.flip(Effect.asVoid(Effect.provide(Allm.chat("Weather?"), engine)))

        assert.strictEqual(error._tag, "ValidationError")
        assert.strictEqual(asked.length, 0)
      }))
  })
})
