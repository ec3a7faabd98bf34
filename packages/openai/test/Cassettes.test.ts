import { Allm, type Engine, Message, Tool } from "@allm/core"
import { OpenAi, OpenAiChat } from "@allm/openai"
import type { HttpClient } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Layer, Redacted } from "effect"
import { cassette, hasRecordings, type Interaction, without } from "./fixtures.ts"
import { clientOf, type Sent } from "./wire.ts"

const getWeather = Tool.fromJsonSchema("get_weather", {
  description: "Get current weather for a city.",
  schema: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false
  },
  handler: () => ({ temperature: 22, condition: "sunny" })
})

/** Replays a whole conversation, and compares every request with the recorded one. */
const replay = (
  interactions: ReadonlyArray<Interaction>,
  engine: Layer.Layer<Engine.Engine, never, HttpClient.HttpClient>,
  messages: ReadonlyArray<Message.Message>
) =>
  Effect.gen(function*() {
    const sent: Array<Sent> = []
    const client = clientOf((_, index) => {
      const { body, headers, status } = interactions[index]!.response
      return new Response(body, { status, headers })
    }, sent)
    const result = yield* Allm.chat(messages).pipe(Effect.provide(engine), Effect.provide(client))

    assert.lengthOf(sent, interactions.length)
    interactions.forEach(({ request }, index) => {
      assert.strictEqual(sent[index]!.url, request.url)
      assert.deepStrictEqual(meaningOf(sent[index]!.body), meaningOf(JSON.parse(request.body)))
    })
    return result
  })

/** A text may be written as itself, or as its only part. */
const meaningOf = (body: { readonly input?: ReadonlyArray<{ readonly content?: unknown }> }): unknown =>
  body.input === undefined ? body : {
    ...body,
    input: body.input.map((item) =>
      typeof item.content === "string" ? { ...item, content: textPart(item.content) } : item
    )
  }

const textPart = (text: string) => [{ type: "input_text", text }]

const weatherChat = (system: string) => [Message.system(system), Message.user("What is the weather in Paris?")]

describe.skipIf(!hasRecordings)(`recorded conversations${without}`, () => {
  const key = { apiKey: Redacted.make("k") }

  it.effect("openai-chat/drives-a-tool-loop-end-to-end", () =>
    Effect.gen(function*() {
      const result = yield* replay(
        cassette("openai-chat", "drives-a-tool-loop-end-to-end.json"),
        OpenAiChat.engine({
          ...key,
          maxTokensField: "max_tokens",
          model: "gpt-4o-mini",
          tools: [getWeather],
          maxTokens: 80,
          temperature: 0
        }),
        weatherChat("Use the get_weather tool, then answer in one short sentence.")
      )
      assert.strictEqual(result.finalResponse.outputText, "The weather in Paris is sunny with a temperature of 22°C.")
      assert.strictEqual(result.haltedReason, "completed")
      assert.deepInclude(result.usage, { inputTokens: 160, outputTokens: 29, totalTokens: 189 })
    }))

  it.effect("openai-compatible-chat/openrouter-gpt-4o-mini-drives-a-tool-loop", () =>
    Effect.gen(function*() {
      const result = yield* replay(
        cassette("openai-compatible-chat", "openrouter-gpt-4o-mini-drives-a-tool-loop.json"),
        OpenAiChat.engine({
          ...key,
          name: "openrouter",
          baseUrl: "https://openrouter.ai/api/v1",
          model: "openai/gpt-4o-mini",
          tools: [getWeather],
          maxTokens: 80,
          temperature: 0
        }),
        weatherChat("Use the get_weather tool exactly once, then answer in one short sentence.")
      )
      assert.strictEqual(result.finalResponse.outputText, "The weather in Paris is sunny with a temperature of 22°C.")
      assert.approximately(result.usage.totalCost ?? 0, 0.000042, 1e-9)
      assert.approximately(result.usage.inputCost ?? 0, 0.0000246, 1e-9)
    }))

  it.effect("openai-responses/gpt-5-5-drives-a-tool-loop", () =>
    Effect.gen(function*() {
      const result = yield* replay(
        cassette("openai-responses", "gpt-5-5-drives-a-tool-loop.json"),
        OpenAi.engine({ ...key, model: "gpt-5.5", tools: [getWeather], maxTokens: 80 }),
        weatherChat("Use the get_weather tool, then answer in one short sentence.")
      )
      assert.strictEqual(result.finalResponse.outputText, "It’s sunny and 22°C in Paris.")
      assert.strictEqual(result.haltedReason, "completed")
      assert.deepInclude(result.usage, { inputTokens: 173, outputTokens: 32, totalTokens: 205 })
      // The phase of the answer is kept for the next turn.
      assert.deepInclude(
        (result.thread.messages.at(-1)!.metadata["openai"] as { items: ReadonlyArray<object> }).items[0],
        { type: "message", phase: "final_answer" }
      )
    }))

  it.effect("openai-responses/openai-responses-gpt-5-5-reasoning", () =>
    Effect.gen(function*() {
      const result = yield* replay(
        cassette("openai-responses", "openai-responses-gpt-5-5-reasoning.json"),
        OpenAi.engine({
          ...key,
          stateless: true,
          model: "gpt-5.5",
          maxTokens: 120,
          params: { reasoning: { effort: "low", summary: "auto" }, text: { verbosity: "low" } }
        }),
        [
          Message.system("Show concise reasoning when the provider supports visible reasoning summaries."),
          Message.user("Think briefly, then reply exactly with: Hello!")
        ]
      )
      assert.strictEqual(result.finalResponse.outputText, "Hello!")
      assert.deepInclude(result.usage, { inputTokens: 31, outputTokens: 21, reasoningTokens: 13 })
      const { items } = result.thread.messages.at(-1)!.metadata["openai"] as {
        readonly items: ReadonlyArray<Record<string, unknown>>
      }
      assert.deepStrictEqual(items.map(({ type }) => type), ["reasoning", "message"])
      assert.match(String(items[0]!["encrypted_content"]), /^gAAAAAB/)
    }))
})
