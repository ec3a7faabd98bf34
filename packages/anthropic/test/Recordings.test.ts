import { Anthropic } from "@allm/anthropic"
import * as EventLaws from "@allm/conformance/EventLaws"
import { Adapter, Allm, Message, Request, Tool, ToolCall } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Effect, Exit, Schema, Stream } from "effect"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { apiKey, ask, bodyOf, clientOf, completion, type Frame, hello, type Json, sse, sseOf } from "./wire.ts"

// Recorded traffic of the provider, kept beside the project, not in it.
const folder = new URL("../../../../shared/fixtures/", import.meta.url)
const isAbsent = !existsSync(folder)
const where = isAbsent ? " (skipped: ../shared/fixtures is not here)" : ""

const read = (path: string): string => readFileSync(new URL(path, folder), "utf8")

const framesOf = (name: string): ReadonlyArray<Frame> =>
  read(`anthropic/${name}.chunks.txt`).split("\n").filter((line) => line.trim() !== "").map((line) => JSON.parse(line))

const streamed = (name: string, request?: Request.Request) => ask(() => sse(sseOf(framesOf(name))), request)

const whole = (name: string, request?: Request.Request) =>
  ask(() => new Response(read(`anthropic/${name}.json`), { headers: { "content-type": "application/json" } }), request)

const usageOf = (inputTokens: number, outputTokens: number) => ({
  inputTokens,
  outputTokens,
  totalTokens: inputTokens + outputTokens,
  cachedInputTokens: 0,
  cacheWriteInputTokens: 0
})

describe.skipIf(isAbsent)(`recordings${where}`, () => {
  it.effect("anthropic-text", () =>
    Effect.gen(function*() {
      const events = yield* streamed("anthropic-text")
      const body = yield* whole("anthropic-text")

      assert.deepStrictEqual(events[0], {
        _tag: "MessageStarted",
        id: "msg_01QC4g3HwBThD4BaNtBckFDJ",
        model: "claude-sonnet-4-5-20250929"
      })
      assert.deepStrictEqual(
        events.flatMap((event) => event._tag === "TextDelta" ? [event.delta] : []),
        [
          "Hello",
          "! I",
          "'m doing well, thank you for asking",
          ". How are you doing today?",
          " Is",
          " there anything I can help you with?"
        ]
      )
      assert.deepInclude(completion(events), {
        finishReason: "stop",
        rawFinishReason: "end_turn",
        usage: usageOf(12, 30)
      })
      assert.strictEqual(
        EventLaws.said(body).text,
        "Hello! I'm doing well, thanks for asking. How are you doing today? Is there anything I can help you with?"
      )
      assert.deepStrictEqual(completion(body).usage, usageOf(12, 29))
    }))

  it.effect("anthropic-clear-thinking", () =>
    Effect.gen(function*() {
      const events = yield* streamed("anthropic-clear-thinking.1")
      const body = yield* whole("anthropic-clear-thinking.1")
      const reasoning = (all: typeof events) =>
        all.flatMap((event) => event._tag === "ReasoningDelta" ? [event.delta] : []).join("")
      const thought = (all: typeof events) =>
        (completion(all).message!.metadata["anthropic"] as { readonly content: ReadonlyArray<Json> }).content

      assert.strictEqual(
        reasoning(events),
        "The previous result was 925. Now I need to divide that by 5.\n\n925 ÷ 5 = 185"
      )
      assert.strictEqual(EventLaws.said(events).text, "925 ÷ 5 = 185")
      assert.deepStrictEqual(thought(events).map(({ type }) => type), ["thinking", "text"])
      assert.strictEqual(thought(events)[0]?.thinking, reasoning(events))
      assert.match(String(thought(events)[0]?.signature), /^EvQBCkYICxgCKkAxhD4N[^]*T6Ca17BgB$/)
      assert.deepStrictEqual(completion(events).usage, usageOf(69, 53))
      assert.deepInclude(completion(events).metadata["anthropic"], { contextManagement: { applied_edits: [] } })
      assert.strictEqual(reasoning(body), "925 divided by 5 = 185")
      assert.strictEqual(EventLaws.said(body).text, "925 ÷ 5 = 185")
      assert.match(String(thought(body)[0]?.signature), /^Er4BCkYICxgC/)
    }))

  it.effect("anthropic-tool-no-args", () =>
    Effect.gen(function*() {
      for (
        const [events, id, text] of [
          [
            yield* streamed("anthropic-tool-no-args"),
            "toolu_01QE1WLsSVp5hy5Q3GmGTmjP",
            /^I'll update the issue list for you\.$/
          ],
          [yield* whole("anthropic-tool-no-args"), "toolu_01LRmxn9vGM1d2DZSDBowdZ1", /^<thinking>[^]*issue list:$/]
        ] as const
      ) {
        assert.match(EventLaws.said(events).text, text)
        assert.deepStrictEqual(
          EventLaws.said(events).toolCalls.map(({ arguments: args, id, name }) => ({ args, id, name })),
          [{ args: {}, id, name: "updateIssueList" }]
        )
        assert.strictEqual(completion(events).finishReason, "tool_calls")
      }
    }))

  it.effect("anthropic-json-tool: a call, or the answer where one was asked for", () =>
    Effect.gen(function*() {
      const request: Request.Request = {
        ...hello,
        model: "claude-3-5-haiku-latest",
        responseFormat: { type: "json_object" }
      }
      const asCall = yield* streamed("anthropic-json-tool.1")
      const asAnswer = yield* streamed("anthropic-json-tool.1", request)
      const body = yield* whole("anthropic-json-tool.1", request)
      const expected = { elements: [{ location: "San Francisco", temperature: 58, condition: "sunny" }] }

      assert.deepStrictEqual(EventLaws.said(asCall).toolCalls[0]?.arguments, expected)
      assert.strictEqual(completion(asCall).finishReason, "tool_calls")
      assert.deepStrictEqual(JSON.parse(EventLaws.said(asAnswer).text), expected)
      assert.deepStrictEqual(EventLaws.said(asAnswer).toolCalls, [])
      assert.strictEqual(completion(asAnswer).finishReason, "stop")
      assert.strictEqual(JSON.parse(EventLaws.said(body).text).elements.length, 4)
      assert.deepStrictEqual(completion(asCall).usage, usageOf(849, 47))
    }))

  it.effect("anthropic-json-output-format", () =>
    Effect.gen(function*() {
      const events = yield* streamed("anthropic-json-output-format.1")
      const body = yield* whole("anthropic-json-output-format.1")

      assert.strictEqual(JSON.parse(EventLaws.said(events).text).characters[0].name, "Theron Ironheart")
      assert.strictEqual(JSON.parse(EventLaws.said(body).text).recipe.ingredients.length, 18)
    }))

  it.effect("anthropic-mcp: tools of a server are kept, and say nothing", () =>
    Effect.gen(function*() {
      const kept = (id: string, text: string) => [
        { type: "mcp_tool_use", id, name: "echo", input: { message: "hello world" }, server_name: "echo" },
        {
          type: "mcp_tool_result",
          tool_use_id: id,
          is_error: false,
          content: [{ type: "text", text: "Tool echo: hello world" }]
        },
        { type: "text", length: text.length }
      ]
      const events = yield* streamed("anthropic-mcp.1")
      const body = yield* whole("anthropic-mcp.1")

      assert.match(EventLaws.said(events).text, /^The echo tool responded back with: \*\*hello world\*\*/)
      assert.deepStrictEqual(completion(events).message?.metadata, {
        anthropic: { content: kept("mcptoolu_017CuqaJcXe5ZHJjaz3KS1AT", EventLaws.said(events).text) }
      })
      assert.deepStrictEqual(completion(body).message?.metadata, {
        anthropic: { content: kept("mcptoolu_015oTj2fXVKLrDohFetJd5UL", EventLaws.said(body).text) }
      })
      assert.deepStrictEqual(completion(events).usage, usageOf(1250, 83))
    }))

  it.effect("anthropic-refusal", () =>
    Effect.gen(function*() {
      for (const events of [yield* streamed("anthropic-refusal"), yield* whole("anthropic-refusal")]) {
        assert.deepStrictEqual(events.map(({ _tag }) => _tag), ["MessageStarted", "MessageCompleted"])
        assert.deepInclude(completion(events), {
          finishReason: "content_filter",
          rawFinishReason: "refusal",
          usage: usageOf(18, 5)
        })
        const { stopDetails } = completion(events).metadata["anthropic"] as { readonly stopDetails: Json }
        assert.deepInclude(stopDetails, { category: "cyber" })
      }
    }))

  it.effect("duplicate-message-start", () =>
    Effect.gen(function*() {
      const events = yield* streamed("duplicate-message-start")

      assert.strictEqual(EventLaws.said(events).text, "Hello, World!")
      assert.deepStrictEqual(completion(events).usage, { inputTokens: 17, outputTokens: 227, totalTokens: 244 })
    }))

  const names = isAbsent ? [] : readdirSync(new URL("anthropic/", folder))
  for (const name of names) {
    it.effect(`${name} keeps the laws of an answer`, () =>
      Effect.gen(function*() {
        const events = name.endsWith(".json")
          ? yield* whole(name.replace(/\.json$/, ""))
          : yield* streamed(name.replace(/\.chunks\.txt$/, ""))

        assert.deepStrictEqual(EventLaws.problems(events), [])
      }))
  }
})

interface Interaction {
  readonly request: { readonly url: string; readonly headers: Record<string, string>; readonly body: string }
  readonly response: { readonly status: number; readonly headers: Record<string, string>; readonly body: string }
}

const interactionsOf = (name: string): ReadonlyArray<Interaction> =>
  JSON.parse(read(`cassettes/anthropic-messages/${name}`)).interactions

/** Serves what was recorded, and notes what is sent beside what was sent. */
const replay = (interactions: ReadonlyArray<Interaction>, seen: Array<readonly [sent: Json, recorded: Json]>) =>
  clientOf((request, index) => {
    const { request: recorded, response } = interactions[index]!
    const headers = Object.fromEntries(Object.keys(recorded.headers).map((key) => [key, request.headers[key]]))
    seen.push([
      { url: request.url, headers, body: meaning(bodyOf(request)) },
      { url: recorded.url, headers: recorded.headers, body: meaning(JSON.parse(recorded.body)) }
    ])
    return new Response(response.body, { status: response.status, headers: response.headers })
  })

type Turn = { readonly role: string; readonly content: ReadonlyArray<{ readonly type: string }> }

/** Turns of one side in a row are one to the API, and in an answer all text stands before the calls. */
const meaning = (body: Json): Json => {
  const turns: Array<Turn> = []
  for (const turn of body.messages as ReadonlyArray<Turn>) {
    const last = turns.at(-1)
    if (last?.role === turn.role) turns[turns.length - 1] = { ...last, content: [...last.content, ...turn.content] }
    else turns.push(turn)
  }
  const isCall = ({ type }: { readonly type: string }) => type === "tool_use"
  return {
    ...body,
    messages: turns.map(({ content, role }) => ({
      role,
      content: [...content.filter((block) => !isCall(block)), ...content.filter(isCall)]
    }))
  }
}

describe.skipIf(isAbsent)(`cassettes${where}`, () => {
  it.effect("claude-opus-4-7-drives-a-tool-loop", () =>
    Effect.gen(function*() {
      const seen: Array<readonly [Json, Json]> = []
      const getWeather = Tool.make("get_weather", {
        description: "Get current weather for a city.",
        parameters: { city: Schema.String },
        handler: ({ city }) => {
          assert.strictEqual(city, "Paris")
          return { temperature: 22, condition: "sunny" }
        }
      })
      const result = yield* Allm.chat([
        Message.system("Use the get_weather tool, then answer in one short sentence."),
        Message.user("What is the weather in Paris?")
      ]).pipe(
        Effect.provide(Anthropic.engine({ apiKey, model: "claude-opus-4-7", maxTokens: 80, tools: [getWeather] })),
        Effect.provide(replay(interactionsOf("claude-opus-4-7-drives-a-tool-loop.json"), seen))
      )

      assert.strictEqual(seen.length, 2)
      for (const [sent, recorded] of seen) assert.deepStrictEqual(sent, recorded)
      assert.strictEqual(result.finalResponse.outputText, "Paris is currently sunny at 22°C.")
      assert.strictEqual(result.haltedReason, "completed")
      assert.deepStrictEqual(result.usage, usageOf(798 + 895, 66 + 19))
    }))

  it.effect("rejects-malformed-assistant-tool-order-without-patch", () =>
    Effect.gen(function*() {
      const seen: Array<readonly [Json, Json]> = []
      const getWeather = Tool.fromJsonSchema("get_weather", {
        description: "Get weather",
        schema: { type: "object", properties: {} }
      })
      const error = yield* Allm.chat([
        Message.assistant("I will check the weather.", {
          toolCalls: [ToolCall.make({ id: "call_1", name: "get_weather", arguments: { city: "Paris" } })]
        }),
        Message.tool("call_1", "{\"temperature\":\"72F\"}"),
        Message.user("Use that result to answer briefly.")
      ]).pipe(
        Effect.asVoid,
        Effect.flip,
        Effect.provide(
          Anthropic.engine({ apiKey, model: "claude-haiku-4-5-20251001", maxTokens: 4096, tools: [getWeather] })
        ),
        Effect.provide(replay(interactionsOf("rejects-malformed-assistant-tool-order-without-patch.json"), seen))
      )

      assert.strictEqual(seen.length, 1)
      for (const [sent, recorded] of seen) assert.deepStrictEqual(sent, recorded)
      assert.deepInclude({ ...error }, {
        reason: "invalid_request",
        status: 400,
        requestId: "req_011Cak2XdJgnzxKCY2BC2Beh"
      })
      assert.include(error.message, "`tool_use` ids were found without `tool_result` blocks immediately after: call_1")
    }))

  const names = isAbsent ? [] : readdirSync(new URL("cassettes/anthropic-messages/", folder))
  for (const name of names) {
    it.effect(`${name}: every request can be made again, and every answer is heard`, () =>
      Effect.gen(function*() {
        for (const interaction of interactionsOf(name)) {
          const seen: Array<readonly [Json, Json]> = []
          const exit = yield* Stream.runCollect(Adapter.stream(requestOf(JSON.parse(interaction.request.body)))).pipe(
            Effect.provide(Anthropic.layer({ apiKey })),
            Effect.provide(replay([interaction], seen)),
            Effect.exit
          )

          assert.deepStrictEqual(seen[0]?.[0], seen[0]?.[1])
          assert.strictEqual(Exit.isSuccess(exit), interaction.response.status === 200)
          if (Exit.isSuccess(exit)) assert.deepStrictEqual(EventLaws.problems(Chunk.toReadonlyArray(exit.value)), [])
        }
      }))
  }
})

/** The request that is written like this. What has no place of its own goes with the options. */
const requestOf = (
  { max_tokens, messages, model, stream: _stream, system, tools, ...options }: Json
): Request.Request =>
  Request.make({
    messages: [
      ...textsOf(system).map((text) => Message.system(text)),
      ...(messages as ReadonlyArray<Turn>).flatMap(messagesOf)
    ],
    model: String(model),
    maxTokens: Number(max_tokens),
    tools: ((tools ?? []) as ReadonlyArray<{ name: string; description: string; input_schema: Json }>).map((tool) =>
      Tool.declaration(
        Tool.fromJsonSchema(tool.name, { description: tool.description, schema: tool.input_schema })
      )
    ),
    options
  })

const textsOf = (content: unknown): ReadonlyArray<string> =>
  typeof content === "string"
    ? [content]
    : ((content ?? []) as ReadonlyArray<Json>).flatMap(({ text, type }) => type === "text" ? [String(text)] : [])

const messagesOf = ({ content, role }: Turn): ReadonlyArray<Message.Message> => {
  const blocks: ReadonlyArray<Json> = Array.isArray(content) ? content : []
  if (role === "assistant") {
    const toolCalls = blocks.filter(({ type }) => type === "tool_use").map(({ id, input, name }) =>
      ToolCall.make({ id: String(id), name: String(name), arguments: input })
    )
    return [Message.assistant(textsOf(content).join(""), { toolCalls })]
  }
  const results = blocks.filter(({ type }) => type === "tool_result").map((block) =>
    Message.tool(String(block.tool_use_id), String(block.content), { isError: block.is_error === true })
  )
  return [...results, ...textsOf(content).map((text) => Message.user(text))]
}
