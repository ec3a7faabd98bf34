import { Allm, type Event, Message, Tool } from "@allm/core"
import { Google } from "@allm/google"
import { LLMock } from "@copilotkit/aimock"
import { FetchHttpClient } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { type Content, GoogleGenAI } from "@google/genai"
import { Duration, Effect, Layer, Redacted, Schema, Stream } from "effect"

/** A mock server of a third party that speaks Gemini's protocol. */
const mock = (script: (server: LLMock) => void) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = new LLMock({ port: 0, logLevel: "silent" })
      script(server)
      await server.start()
      return server
    }),
    (server) => Effect.promise(() => server.stop())
  )

const getWeather = Tool.make("get_weather", {
  description: "Weather of a city",
  parameters: { city: Schema.String },
  handler: ({ city }) => ({ city, degrees: 21 })
})

const engineOf = (server: LLMock) =>
  Google.engine({
    model: "gemini-2.5-flash",
    apiKey: Redacted.make("a key"),
    baseUrl: `${server.url}/v1beta`,
    tools: [getWeather]
  }).pipe(Layer.provide(FetchHttpClient.layer))

const question = "How is the weather in Oslo and Rome?"
const answer = "Both are warm and sunny today."
const wanted = [
  { name: "get_weather", arguments: JSON.stringify({ city: "Oslo" }) },
  { name: "get_weather", arguments: JSON.stringify({ city: "Rome" }) }
]

const weather = (server: LLMock): void => {
  server.on({ userMessage: question, hasToolResult: false }, { toolCalls: wanted }, { chunkSize: 4 })
  server.on({ userMessage: question, hasToolResult: true }, { content: answer }, { chunkSize: 4 })
}

/** The same conversation, held by the client of Google itself. */
const officially = async (baseUrl: string) => {
  const client = new GoogleGenAI({ apiKey: "a key", httpOptions: { baseUrl } })
  const contents: Array<Content> = [{ role: "user", parts: [{ text: question }] }]
  const tools = [{ functionDeclarations: [{ name: "get_weather", description: "Weather of a city" }] }]
  const turns: Array<unknown> = []
  for (let turn = 0; turn < 2; turn++) {
    let text = ""
    const calls: Array<{ readonly name: string; readonly args: unknown }> = []
    for await (
      const part of await client.models.generateContentStream({
        model: "gemini-2.5-flash",
        contents,
        config: { tools }
      })
    ) {
      text += part.candidates?.[0]?.content?.parts?.map((one) => one.text ?? "").join("") ?? ""
      for (const { args, name } of part.functionCalls ?? []) calls.push({ name: name!, args })
    }
    turns.push({ text, calls })
    contents.push(
      {
        role: "model",
        parts: calls.map(({ args, name }) => ({ functionCall: { name, args: args as Record<string, unknown> } }))
      },
      {
        role: "user",
        parts: calls.map(({ args, name }) => ({
          functionResponse: { name, response: { output: JSON.stringify({ ...args as object, degrees: 21 }) } }
        }))
      }
    )
  }
  return turns
}

describe("aimock", () => {
  it.live("is asked twice: parallel calls first, then the answer; Google's own client sees the same", () =>
    Effect.gen(function*() {
      const server = yield* mock(weather)
      const events: Array<Event.Event> = []
      yield* Allm.stream(question).pipe(
        Stream.runForEach((event) => Effect.sync(() => events.push(event))),
        Effect.provide(engineOf(server))
      )
      const last = events.at(-1)
      const result = last?._tag === "ChatCompleted" ? last.result : assert.fail("the chat did not end")

      assert.strictEqual(result.finalResponse.outputText, answer)
      assert.isAbove(events.filter(({ _tag }) => _tag === "TextDelta").length, 5)
      assert.deepStrictEqual(
        result.thread.messages.filter(({ role }) => role === "tool").map(Message.toText),
        ["{\"city\":\"Oslo\",\"degrees\":21}", "{\"city\":\"Rome\",\"degrees\":21}"]
      )

      const ours = server.getRequests().map(({ body }) => body as { readonly messages: unknown })
      server.clearRequests()
      const turns = yield* Effect.promise(() => officially(server.url))
      const theirs = server.getRequests().map(({ body }) => body as { readonly messages: unknown })

      assert.deepStrictEqual(
        result.steps.map(({ response }) => ({
          text: response.outputText,
          calls: response.toolCalls.map(({ arguments: args, name }) => ({ name, args }))
        })),
        turns
      )
      const contentOf = ({ messages }: { readonly messages: unknown }) =>
        (messages as ReadonlyArray<{ readonly role: string; readonly content: unknown }>).map((
          { content, role }
        ) => [role, content])
      assert.deepStrictEqual(ours.map(contentOf), theirs.map(contentOf))
    }).pipe(Effect.scoped))

  it.live("says 429 and how long to wait; then it answers", () =>
    Effect.gen(function*() {
      const server = yield* mock((server) => {
        const error = { message: "Slow down.", type: "RESOURCE_EXHAUSTED" }
        server.on({ userMessage: "Hi", sequenceIndex: 0 }, { error, status: 429, retryAfter: 1 })
        server.on({ userMessage: "Hi" }, { content: "Hello" })
      })
      const [duration, response] = yield* Effect.timed(Effect.provide(Allm.generate("Hi"), engineOf(server)))

      assert.strictEqual(response.outputText, "Hello")
      assert.deepStrictEqual(server.getRequests().map(({ response: { status } }) => status), [429, 200])
      assert.isAtLeast(Duration.toMillis(duration), 1_000)
    }).pipe(Effect.scoped))

  it.live("cuts an answer in the middle: what was said is kept, with the error", () =>
    Effect.gen(function*() {
      const server = yield* mock((server) => {
        server.on({ userMessage: "Hi" }, { content: "One two three four five" }, {
          chunkSize: 4,
          latency: 10,
          truncateAfterChunks: 3
        })
      })
      const result = yield* Effect.provide(Allm.chat("Hi"), engineOf(server))

      assert.strictEqual(result.haltedReason, "error")
      // The last piece may be lost with its connection.
      assert.match(result.finalResponse.outputText ?? "", /^One two (thre)?$/)
      assert.strictEqual(result.error?._tag === "AdapterError" ? result.error.reason : result.error, "network_error")
    }).pipe(Effect.scoped))

  it.live("is silent for too long: the call ends in time", () =>
    Effect.gen(function*() {
      const server = yield* mock((server) => {
        server.on({ userMessage: "Hi" }, { content: "Hello" }, { latency: 5_000 })
      })
      const [duration, error] = yield* Effect.timed(
        Effect.flip(Effect.asVoid(Allm.generate("Hi", { idleTimeout: "100 millis", retry: false }))).pipe(
          Effect.provide(engineOf(server))
        )
      )
      assert.strictEqual(error._tag === "AdapterError" ? error.reason : error, "timeout")
      assert.isBelow(Duration.toMillis(duration), 3_000)
    }).pipe(Effect.scoped))
})
