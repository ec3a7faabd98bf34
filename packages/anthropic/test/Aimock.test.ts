import { Anthropic } from "@allm/anthropic"
import { Allm, type Engine, Tool } from "@allm/core"
import Sdk from "@anthropic-ai/sdk"
import { LLMock } from "@copilotkit/aimock"
import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, Redacted, Schema } from "effect"

/** A mock server by others, and the provider's own client, which has to see the same. */
const open = (fill: (mock: LLMock) => void) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const mock = new LLMock({ port: 0, strict: true })
        fill(mock)
        await mock.start()
        return mock
      }),
      (mock) => Effect.promise(() => mock.stop())
    ),
    (mock) => ({
      mock,
      sdk: new Sdk({ apiKey: "sk-ant-test", baseURL: mock.url }),
      engine: <T extends Tool.Any = never>(options: Engine.Options<T> = {}) =>
        Layer.provide(
          Anthropic.engine({ ...options, apiKey: Redacted.make("sk-ant-test"), baseUrl: mock.url, model }),
          NodeHttpClient.layer
        )
    })
  )

const model = "claude-sonnet-5"

const getWeather = Tool.make("get_weather", {
  description: "Weather of a city",
  parameters: { city: Schema.String },
  handler: ({ city }) => ({ city, sky: "clear" })
})

const getTime = Tool.make("get_time", { description: "The time", handler: () => "noon" })

const wireTools: Array<Sdk.Tool> = [getWeather, getTime].map(({ description, inputSchema, name }) => ({
  name,
  description,
  input_schema: inputSchema as Sdk.Tool.InputSchema
}))

const results: Record<string, string> = { toolu_a: "{\"city\":\"Zürich\",\"sky\":\"clear\"}", toolu_b: "noon" }

/** The same conversation, led by hand with the provider's client. */
const bySdk = (sdk: Sdk, prompt: string, params: object = {}) =>
  Effect.promise(async () => {
    const body = { model, max_tokens: 64_000, tools: wireTools, ...params }
    const messages: Array<Sdk.MessageParam> = [{ role: "user", content: [{ type: "text", text: prompt }] }]
    const first = await sdk.messages.stream({ ...body, messages }).finalMessage()
    const calls = first.content.filter((block) => block.type === "tool_use")
    messages.push(
      { role: "assistant", content: first.content },
      {
        role: "user",
        content: calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: results[id]! }))
      }
    )
    const second = await sdk.messages.stream({ ...body, messages }).finalMessage()
    return { calls, first, second }
  })

const conversation = (mock: LLMock, more: object = {}) =>
  mock
    .on({ userMessage: "Weather and time", hasToolResult: false }, {
      ...more,
      toolCalls: [
        { id: "toolu_a", name: "get_weather", arguments: { city: "Zürich" } },
        { id: "toolu_b", name: "get_time", arguments: {} }
      ]
    }, { chunkSize: 3 })
    .on({ userMessage: "Weather and time", hasToolResult: true }, { ...more, content: "Clear sky at noon. ☂?" }, {
      chunkSize: 4
    })

/** What was asked, as the server understood it. */
const asked = (mock: LLMock) => mock.getRequests().map(({ body }) => (body as { readonly messages: unknown }).messages)

describe("aimock", () => {
  it.scopedLive("streams parallel calls over two turns", () =>
    Effect.gen(function*() {
      const { engine, mock, sdk } = yield* open(conversation)
      const result = yield* Effect.provide(
        Allm.chat("Weather and time in Zürich?"),
        engine({ tools: [getWeather, getTime] })
      )
      const ours = asked(mock)
      mock.clearRequests()
      const theirs = yield* bySdk(sdk, "Weather and time in Zürich?")

      assert.strictEqual(result.finalResponse.outputText, "Clear sky at noon. ☂?")
      assert.strictEqual(result.steps.length, 2)
      assert.deepStrictEqual(
        result.steps[0]?.response.toolCalls.map(({ arguments: input, id, name }) => ({ id, input, name })),
        theirs.calls.map(({ id, input, name }) => ({ id, input, name }))
      )
      assert.deepStrictEqual(result.steps[0]?.toolResults.map(({ content }) => content), Object.values(results))
      assert.deepStrictEqual(theirs.second.content.map((block) => block.type === "text" ? block.text : block.type), [
        result.finalResponse.outputText
      ])
      assert.deepStrictEqual(
        result.steps.map(({ response }) => response.rawFinishReason),
        [theirs.first.stop_reason ?? "", theirs.second.stop_reason ?? ""]
      )
      assert.strictEqual(ours.length, 2)
      assert.deepStrictEqual(ours, asked(mock))
    }))

  it.scopedLive("thinks, and gets its thoughts back with their signature", () =>
    Effect.gen(function*() {
      const thinking = { thinking: { type: "enabled", budget_tokens: 2000 } }
      const { engine, mock, sdk } = yield* open((mock) =>
        conversation(mock, { reasoning: "I need both.", reasoningSignature: "sig==", redactedThinking: ["secret=="] })
      )
      // Without its thoughts the server refuses the second turn.
      const result = yield* Effect.provide(
        Allm.chat("Weather and time?"),
        engine({ tools: [getWeather, getTime], params: thinking })
      )
      const theirs = yield* bySdk(sdk, "Weather and time?", thinking)

      assert.strictEqual(result.haltedReason, "completed")
      assert.strictEqual(result.steps[0]?.response.metadata["reasoning"], "I need both.")
      assert.deepStrictEqual(
        theirs.first.content.map(({ type }) => type),
        ["redacted_thinking", "thinking", "tool_use", "tool_use"]
      )
      assert.deepStrictEqual(result.thread.messages[1]?.metadata["anthropic"], {
        content: [
          ...theirs.first.content.slice(0, 2),
          { type: "tool_use", id: "toolu_a" },
          { type: "tool_use", id: "toolu_b" }
        ]
      })
      assert.strictEqual(mock.getRequests().length, 4)
    }))

  const limited = (mock: LLMock) =>
    mock
      .on({ userMessage: "Hi", sequenceIndex: 0 }, {
        error: { message: "Slow down", type: "rate_limit_error" },
        status: 429,
        retryAfter: 1
      })
      .on({ userMessage: "Hi" }, { content: "Hello" })

  it.scopedLive("is asked again after as long as it says", () =>
    Effect.gen(function*() {
      const { engine, mock, sdk } = yield* open(limited)
      const [duration, response] = yield* Effect.timed(Effect.provide(Allm.generate("Hi"), engine()))
      mock.resetMatchCounts()
      const theirs = yield* Effect.promise(() =>
        sdk.messages.stream({ model, max_tokens: 99, messages: [{ role: "user", content: "Hi" }] }).finalText()
      )

      assert.strictEqual(response.outputText, "Hello")
      assert.strictEqual(theirs, "Hello")
      assert.isAtLeast(Duration.toMillis(duration), 1_000)
      assert.strictEqual(mock.getRequests().length, 4)
    }))

  it.scopedLive("tells how long to wait when it is not asked again", () =>
    Effect.gen(function*() {
      const { engine } = yield* open(limited)
      const error = yield* Effect.flip(Effect.asVoid(Effect.provide(Allm.generate("Hi"), engine({ retry: false }))))

      assert.deepInclude({ ...error }, { reason: "rate_limited", status: 429, retryAfter: Duration.seconds(1) })
    }))

  it.scopedLive("may be cut in the middle: what was said is kept, and the rest is an error", () =>
    Effect.gen(function*() {
      const { engine, sdk } = yield* open((mock) =>
        mock.on({ userMessage: "Hi" }, { content: "Hello, how are you?" }, {
          chunkSize: 5,
          latency: 5,
          truncateAfterChunks: 5
        })
      )
      const response = yield* Effect.provide(Allm.generate("Hi"), engine())
      const theirs = yield* Effect.promise(async () => {
        let text = ""
        const stream = sdk.messages.stream({ model, max_tokens: 99, messages: [{ role: "user", content: "Hi" }] })
        stream.on("text", (piece) => text += piece)
        const failed = await stream.done().then(() => false, () => true)
        return { failed, text }
      })

      assert.isTrue(theirs.failed)
      assert.isAbove(theirs.text.length, 0)
      assert.strictEqual(response.outputText, theirs.text)
      assert.strictEqual(response.finishReason, "error")
      assert.deepInclude(response.metadata["error"], { reason: "network_error" })
    }))

  it.scopedLive("may take too long for its first word", () =>
    Effect.gen(function*() {
      const { engine } = yield* open((mock) =>
        mock.on({ userMessage: "Hi" }, { content: "Hello" }, { streamingProfile: { ttft: 3_000 } })
      )
      const ask = Allm.generate("Hi").pipe(
        Effect.provide(engine({ retry: false, idleTimeout: "100 millis" })),
        Effect.asVoid,
        Effect.flip
      )
      const [duration, error] = yield* Effect.timed(ask)

      assert.deepInclude({ ...error }, { reason: "timeout", detail: "nothing came from the model for 100 ms" })
      assert.isBelow(Duration.toMillis(duration), 2_000)
    }))
})
