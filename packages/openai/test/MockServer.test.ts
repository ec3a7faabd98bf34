import { Allm, type Engine, Tool } from "@allm/core"
import { OpenAi, OpenAiChat } from "@allm/openai"
import { LLMock } from "@copilotkit/aimock"
import { FetchHttpClient } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Redacted, Schema } from "effect"
import OpenAI from "openai"

const server = Effect.acquireRelease(
  Effect.promise(() => LLMock.create({ port: 0, chunkSize: 7 })),
  (mock) => Effect.promise(() => mock.stop())
)

const question = "What is the weather in Oslo and in Zürich?"
const answer = "Oslo is sunny, Zürich ☂ is rainy."
const wanted = [
  { id: "call_oslo", name: "get_weather", arguments: { city: "Oslo" } },
  { id: "call_zurich", name: "get_weather", arguments: { city: "Zürich ☂", days: [1, 2] } }
]

const weatherOf = (city: string) => city === "Oslo" ? "sunny" : "rainy"

const getWeather = Tool.make("get_weather", {
  description: "Tells the weather",
  parameters: { city: Schema.String, days: Schema.optional(Schema.Array(Schema.Number)) },
  handler: ({ city }) => weatherOf(city)
})

const weather = (mock: LLMock) =>
  mock
    .on({ userMessage: question, hasToolResult: false }, {
      toolCalls: wanted.map((call) => ({ ...call, arguments: JSON.stringify(call.arguments) }))
    })
    .on({ userMessage: question, hasToolResult: true }, { content: answer })

/** What a conversation came to: its calls and its last text. */
interface Story {
  readonly calls: ReadonlyArray<{ readonly id: string; readonly name: string; readonly arguments: unknown }>
  readonly text: string
}

const chatStory = async (client: OpenAI): Promise<Story> => {
  const messages: Array<OpenAI.Chat.ChatCompletionMessageParam> = [{ role: "user", content: question }]
  const calls: Array<Story["calls"][number]> = []
  for (;;) {
    const { choices: [choice] } = await client.chat.completions.stream({ model: "m", messages }).finalChatCompletion()
    const made = (choice!.message.tool_calls ?? []).flatMap((call) => call.type === "function" ? [call] : [])
    if (made.length === 0) return { calls, text: choice!.message.content ?? "" }
    messages.push(choice!.message)
    for (const { function: called, id } of made) {
      const args = JSON.parse(called.arguments) as { readonly city: string }
      calls.push({ id, name: called.name, arguments: args })
      messages.push({ role: "tool", tool_call_id: id, content: weatherOf(args.city) })
    }
  }
}

const responsesStory = async (client: OpenAI): Promise<Story> => {
  const input: Array<OpenAI.Responses.ResponseInputItem> = [{ role: "user", content: question }]
  const calls: Array<Story["calls"][number]> = []
  for (;;) {
    let output: ReadonlyArray<OpenAI.Responses.ResponseOutputItem> = []
    let text = ""
    for await (const event of await client.responses.create({ model: "m", input, stream: true })) {
      if (event.type === "response.output_text.delta") text += event.delta
      if (event.type === "response.completed") output = event.response.output
    }
    const made = output.flatMap((item) => item.type === "function_call" ? [item] : [])
    if (made.length === 0) return { calls, text }
    input.push(...made)
    for (const call of made) {
      const args = JSON.parse(call.arguments) as { readonly city: string }
      calls.push({ id: call.call_id, name: call.name, arguments: args })
      input.push({ type: "function_call_output", call_id: call.call_id, output: weatherOf(args.city) })
    }
  }
}

const protocols = [
  { name: "OpenAi", engine: OpenAi.engine, story: responsesStory },
  { name: "OpenAiChat", engine: OpenAiChat.engine, story: chatStory }
]

for (const { engine, name, story } of protocols) {
  describe(`${name} with a mock server`, () => {
    const engineOn = (mock: LLMock, options: Engine.Options<typeof getWeather> = {}) =>
      engine({
        baseUrl: `${mock.url}/v1`,
        apiKey: Redacted.make("mock"),
        model: "m",
        tools: [getWeather],
        ...options
      })

    for (const [client, layer] of [["fetch", FetchHttpClient.layer], ["node", NodeHttpClient.layer]] as const) {
      it.scopedLive(`has the conversation that OpenAI's own client has, over ${client}`, () =>
        Effect.gen(function*() {
          const mock = weather(yield* server)
          const result = yield* Allm.chat(question).pipe(Effect.provide(engineOn(mock)), Effect.provide(layer))
          const ours = mock.getRequests().map(({ body, path }) => ({ path, messages: seenBy(body) }))
          mock.clearRequests()
          const theirs = yield* Effect.promise(() =>
            story(new OpenAI({ baseURL: `${mock.url}/v1`, apiKey: "mock", maxRetries: 0 }))
          )

          assert.deepStrictEqual(theirs, { calls: wanted, text: answer })
          assert.strictEqual(result.finalResponse.outputText, theirs.text)
          assert.deepStrictEqual(
            result.steps.flatMap((step) => step.response.toolCalls).map(({ arguments: args, id, name }) => ({
              id,
              name,
              arguments: args
            })),
            theirs.calls
          )
          assert.deepStrictEqual(ours, mock.getRequests().map(({ body, path }) => ({ path, messages: seenBy(body) })))
          assert.lengthOf(ours, 2)
        }))
    }

    it.scopedLive("waits as long as it is asked to, and asks again", () =>
      Effect.gen(function*() {
        const mock = (yield* server)
          .on({ userMessage: "Hi", sequenceIndex: 0 }, {
            error: { message: "Slow down", type: "rate_limit_error" },
            status: 429,
            retryAfter: 1
          })
          .on({ userMessage: "Hi" }, { content: "Hello" })
        const [took, response] = yield* Effect.timed(Allm.generate("Hi")).pipe(
          Effect.provide(engineOn(mock)),
          Effect.provide(FetchHttpClient.layer)
        )
        assert.strictEqual(response.outputText, "Hello")
        assert.lengthOf(mock.getRequests(), 2)
        assert.isAtLeast(Duration.toMillis(took), 1_000)
      }))

    it.scopedLive("tells how long to wait, where it does not wait itself", () =>
      Effect.gen(function*() {
        const mock = (yield* server).on({ userMessage: "Hi" }, {
          error: { message: "Slow down" },
          status: 429,
          retryAfter: 7
        })
        const error = yield* Effect.flip(Effect.asVoid(Allm.generate("Hi", { retry: false }))).pipe(
          Effect.provide(engineOn(mock)),
          Effect.provide(FetchHttpClient.layer)
        )
        assert.strictEqual(error._tag, "AdapterError")
        if (error._tag !== "AdapterError") return
        assert.deepInclude({ ...error }, { reason: "rate_limited", status: 429, detail: "Slow down" })
        assert.deepStrictEqual(error.retryAfter, Duration.seconds(7))
        assert.isDefined(error.requestId)
      }))

    it.scopedLive("keeps what came before a cut, and says that it was one", () =>
      Effect.gen(function*() {
        const whole = "a long answer that is cut off somewhere in its middle"
        const mock = (yield* server).on({ userMessage: "Hi" }, { content: whole }, {
          latency: 5,
          truncateAfterChunks: 6
        })
        const response = yield* Allm.generate("Hi").pipe(
          Effect.provide(engineOn(mock)),
          Effect.provide(FetchHttpClient.layer)
        )
        assert.strictEqual(response.finishReason, "error")
        assert.deepInclude(response.metadata["error"], { reason: "network_error" })
        assert.match(response.outputText ?? "", /^a long /)
        assert.isTrue(whole.startsWith(response.outputText!) && whole !== response.outputText)
        assert.lengthOf(mock.getRequests(), 1)
      }))

    it.scopedLive("does not wait for ever for a first byte", () =>
      Effect.gen(function*() {
        const mock = (yield* server).on({ userMessage: "Hi" }, { content: "Hello" }, {
          streamingProfile: { ttft: 5_000 }
        })
        const [took, error] = yield* Effect.timed(
          Effect.flip(Effect.asVoid(Allm.generate("Hi", { idleTimeout: "100 millis", retry: false })))
        ).pipe(Effect.provide(engineOn(mock)), Effect.provide(FetchHttpClient.layer))
        assert.deepInclude({ ...error }, { _tag: "AdapterError", reason: "timeout" })
        assert.isBelow(Duration.toMillis(took), 3_000)
      }))

    it.scopedLive("decodes an answer that follows a schema", () =>
      Effect.gen(function*() {
        const City = Schema.Struct({ name: Schema.String, founded: Schema.optional(Schema.Number) })
        const mock = (yield* server).on({ userMessage: "The capital of Norway?" }, {
          content: "{\"name\":\"Oslo\",\"founded\":null}"
        })
        const { value } = yield* Allm.object("The capital of Norway?", { schema: City, tools: [] }).pipe(
          Effect.provide(engine({ baseUrl: `${mock.url}/v1`, apiKey: Redacted.make("mock"), model: "m" })),
          Effect.provide(FetchHttpClient.layer)
        )
        assert.deepStrictEqual(value, { name: "Oslo" })
      }))
  })
}

/** What the server understood of the messages, which it reads in one form whatever the protocol. */
const seenBy = (body: unknown): unknown => {
  const { messages } = body as { readonly messages: ReadonlyArray<Record<string, unknown>> }
  return messages.map(({ content, role, tool_call_id, tool_calls }) => ({
    role,
    content: content ?? "",
    tool_call_id,
    calls: (tool_calls as ReadonlyArray<{ id: string; function: object }> | undefined)?.map((call) => [
      call.id,
      call.function
    ])
  }))
}
