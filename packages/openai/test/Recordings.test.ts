import { EventLaws } from "@allm/conformance"
import { Adapter, Event } from "@allm/core"
import { OpenAi, OpenAiChat } from "@allm/openai"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as fc from "effect/FastCheck"
import { hasRecordings, namesIn, read, without } from "./fixtures.ts"
import { ask, bytes, callsOf, clientOf, ended, hello, reasoningOf, sse, textOf } from "./wire.ts"

const Chat = OpenAiChat.layer({ baseUrl: "http://recorded.test" })
const Responses = OpenAi.layer({ baseUrl: "http://recorded.test" })

type Recorded = "openai-chat" | "openai-responses"
const layerOf = (folder: Recorded) => folder === "openai-chat" ? Chat : Responses

const linesOf = (folder: Recorded, name: string): ReadonlyArray<string> =>
  read(folder, name).split("\n").filter((line) => line.trim() !== "")

/** Some files hold several answers, one after the other. */
const answersIn = (lines: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> => {
  const answers: Array<Array<string>> = []
  for (const line of lines) {
    if (answers.length === 0 || line.includes("\"type\":\"response.created\"")) answers.push([])
    answers.at(-1)!.push(line)
  }
  return answers
}

const responseOf = (folder: Recorded, name: string): Response => {
  const body = read(folder, name)
  if (name.endsWith(".sse")) return new Response(body, { headers: { "content-type": "text/event-stream" } })
  if (name.endsWith(".chunks.txt")) return sse(linesOf(folder, name))
  return Response.json(JSON.parse(body), {
    status: "error" in JSON.parse(body) && !("output" in JSON.parse(body)) ? 429 : 200
  })
}

const recorded = (folder: Recorded, name: string) =>
  Effect.tap(
    ask(layerOf(folder), () => responseOf(folder, name)),
    (events) => Effect.sync(() => assert.isTrue(events.every(Event.isEvent)))
  )

const lawful = (events: ReadonlyArray<Event.Event>) => assert.deepStrictEqual(EventLaws.problems(events), [])

const sanFrancisco = { location: "San Francisco" }

describe.skipIf(!hasRecordings)(`recorded chat completions${without}`, () => {
  const seen = (name: string) =>
    Effect.map(recorded("openai-chat", name), (events) => {
      lawful(events)
      const { finishReason, rawFinishReason, usage } = ended(events)
      return {
        text: textOf(events),
        reasoning: reasoningOf(events),
        calls: callsOf(events).map(({ arguments: args, id, name }) => ({ id, name, args })),
        finish: [finishReason, rawFinishReason],
        usage
      }
    })

  it.effect("alibaba-tool-call: empty ids after the first, usage in a chunk of its own", () =>
    Effect.gen(function*() {
      const usage = { inputTokens: 295, outputTokens: 22, totalTokens: 317, cachedInputTokens: 0 }
      const finish = ["tool_calls", "tool_calls"]
      assert.deepStrictEqual(yield* seen("alibaba-tool-call.chunks.txt"), {
        text: "",
        reasoning: "",
        calls: [{ id: "call_eee11723464a4b9eb8cee71d", name: "weather", args: sanFrancisco }],
        finish,
        usage
      })
      assert.deepStrictEqual(yield* seen("alibaba-tool-call.json"), {
        text: "",
        reasoning: "",
        calls: [{ id: "call_962bfd2ab8f54b89a1161356", name: "weather", args: sanFrancisco }],
        finish,
        usage
      })
    }))

  it.effect("anthropic-fallback-tool-call: the first call has index 1, no usage", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* seen("anthropic-fallback-tool-call.sse"), {
        text: "Reading it.",
        reasoning: "",
        calls: [{ id: "toolu_sanitized", name: "read_file", args: { path: "a.txt" } }],
        finish: ["tool_calls", "tool_calls"],
        usage: undefined
      })
    }))

  it.effect("azure-model-router: begins with a chunk without an answer", () =>
    Effect.gen(function*() {
      const events = yield* recorded("openai-chat", "azure-model-router.1.chunks.txt")
      assert.deepStrictEqual(events[0], {
        _tag: "MessageStarted",
        id: "chatcmpl-CYPS1lijGoK8gd9lYzY3r9Sx50nbt",
        model: "gpt-5-nano-2025-08-07"
      })
      assert.deepStrictEqual(yield* seen("azure-model-router.1.chunks.txt"), {
        text: "Capital of Denmark.",
        reasoning: "",
        calls: [],
        finish: ["stop", "stop"],
        usage: { inputTokens: 15, outputTokens: 78, totalTokens: 93, cachedInputTokens: 0, reasoningTokens: 64 }
      })
    }))

  it.effect("deepseek-tool-call: reasoning, usage with the last chunk", () =>
    Effect.gen(function*() {
      const { calls, reasoning, ...streamed } = yield* seen("deepseek-tool-call.chunks.txt")
      assert.match(reasoning, /^The user is asking for the weather in San Francisco\./)
      assert.deepStrictEqual(calls.map(({ args, name }) => [name, args]), [["weather", sanFrancisco]])
      assert.match(calls[0]!.id, /^call_\d\d_/)
      assert.deepStrictEqual(streamed, {
        text: "",
        finish: ["tool_calls", "tool_calls"],
        usage: {
          inputTokens: 339,
          outputTokens: 83,
          totalTokens: 422,
          cachedInputTokens: 320,
          reasoningTokens: 39,
          extra: { prompt_cache_hit_tokens: 320, prompt_cache_miss_tokens: 19 }
        }
      })
      const whole = yield* seen("deepseek-tool-call.json")
      assert.match(whole.reasoning, /^The user is asking.* Let me call the weather function\.$/s)
      assert.deepStrictEqual(whole.calls, [
        { id: "call_00_9V0vrf86Pc9aelHCJMZqnJBo", name: "weather", args: sanFrancisco }
      ])
    }))

  it.effect("moonshotai-stream: reasoning, then text that ends with its last delta", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* seen("moonshotai-stream.chunks.txt"), {
        text: "Hello!",
        reasoning: "Thinking aloud. ",
        calls: [],
        finish: ["stop", "stop"],
        usage: { inputTokens: 9, outputTokens: 12, totalTokens: 21, reasoningTokens: 7 }
      })
    }))

  it.effect("openai-text: in one piece", () =>
    Effect.gen(function*() {
      const whole = yield* seen("openai-text.json")
      assert.match(whole.text, /^\*\*Holiday Name:\*\* Galaxy Day.*look up and dream beyond our world\.$/s)
      assert.deepStrictEqual(whole.finish, ["stop", "stop"])
      assert.deepInclude(whole.usage, { inputTokens: 16, outputTokens: 363, totalTokens: 379 })
    }))

  it.effect("xai: reasoning, a call in one piece", () =>
    Effect.gen(function*() {
      const text = yield* seen("xai-text.chunks.txt")
      assert.deepInclude(text, { text: "Hello", reasoning: "First, the user said", finish: ["stop", "stop"] })
      assert.deepInclude(text.usage, { outputTokens: 1, totalTokens: 303, cachedInputTokens: 11, reasoningTokens: 290 })
      assert.deepInclude(yield* seen("xai-tool-call.chunks.txt"), {
        text: "",
        reasoning: "First, the user is",
        calls: [{ id: "call_55117580", name: "weather", args: sanFrancisco }],
        finish: ["tool_calls", "tool_calls"]
      })
      const whole = yield* seen("xai-tool-call.json")
      assert.deepInclude(whole, {
        text: "",
        calls: [{ id: "call_93562515", name: "weather", args: sanFrancisco }],
        finish: ["tool_calls", "tool_calls"]
      })
      assert.match(whole.reasoning, /^First, the user is asking.*advance the user's request\.$/s)
    }))
})

describe.skipIf(!hasRecordings)(`recorded responses${without}`, () => {
  const seen = (name: string) => recorded("openai-responses", name)
  const stateOf = (events: ReadonlyArray<Event.AdapterEvent>) =>
    ended(events).message?.metadata["openai"] as { readonly items: ReadonlyArray<Record<string, unknown>> } | undefined

  it.effect("lmstudio-basic: text and reasoning of another server", () =>
    Effect.gen(function*() {
      const streamed = yield* seen("lmstudio-basic.1.chunks.txt")
      lawful(streamed)
      assert.deepStrictEqual(streamed[0], {
        _tag: "MessageStarted",
        id: "resp_604f426346767f2cd7f98c793d9cfd27cba9ef834509019c",
        model: "gemma-7b-it"
      })
      assert.match(textOf(streamed), /^## The Festival of Whispering Leaves/)
      assert.isAbove(streamed.filter(({ _tag }) => _tag === "TextDelta").length, 280)
      assert.isUndefined(stateOf(streamed))

      const whole = yield* seen("lmstudio-basic.1.json")
      lawful(whole)
      assert.deepStrictEqual([reasoningOf(whole), textOf(whole)], ["reasoning content", "text content"])
      assert.deepStrictEqual(ended(whole).usage, {
        inputTokens: 136,
        outputTokens: 3677,
        totalTokens: 3813,
        cachedInputTokens: 0,
        reasoningTokens: 2456
      })
    }))

  it.effect("lmstudio-tool-call: reasoning, text and a call whose arguments come in one piece", () =>
    Effect.gen(function*() {
      const streamed = yield* seen("lmstudio-tool-call.1.chunks.txt")
      lawful(streamed)
      assert.match(reasoningOf(streamed), /^The user is asking for the weather.*make the function call\.$/)
      assert.strictEqual(textOf(streamed), "I'll get the current weather information for San Francisco for you.")
      assert.deepStrictEqual(callsOf(streamed), [{
        id: "call_2025306790300011",
        name: "weather",
        rawArguments: "{\"location\":\"San Francisco\"}",
        arguments: sanFrancisco,
        metadata: {}
      }])
      assert.strictEqual(ended(streamed).finishReason, "tool_calls")
      assert.deepStrictEqual(stateOf(streamed)?.items.map(({ type }) => type), [
        "reasoning",
        "message",
        "function_call"
      ])

      const whole = yield* seen("lmstudio-tool-call.1.json")
      assert.deepStrictEqual(callsOf(whole).map(({ arguments: args, id }) => [id, args]), [
        ["call_2866856768160095", sanFrancisco]
      ])
    }))

  it.effect("openai-custom-tool: kept as what the server did, not taken for a call", () =>
    Effect.gen(function*() {
      for (const name of ["openai-custom-tool.1.chunks.txt", "openai-custom-tool.1.json"]) {
        const events = yield* seen(name)
        lawful(events)
        assert.deepStrictEqual(callsOf(events), [])
        assert.deepInclude(ended(events), { finishReason: "stop", rawFinishReason: "completed" })
        assert.deepInclude(stateOf(events)?.items[0], {
          type: "custom_tool_call",
          name: "write_sql",
          input: "SELECT * FROM users WHERE age > 25"
        })
      }
    }))

  it.effect("openai-error: fails before it began, as a stream and as a refusal", () =>
    Effect.gen(function*() {
      for (const name of ["openai-error.1.chunks.txt", "openai-error.1.json"]) {
        const error = yield* Effect.flip(seen(name))
        assert.strictEqual(error.reason, "rate_limited")
        assert.match(error.detail ?? "", /^You exceeded your current quota/)
      }
    }))

  it.effect("openai-phase: two texts, each with its phase", () =>
    Effect.gen(function*() {
      for (const name of ["openai-phase.1.chunks.txt", "openai-phase.1.json"]) {
        const events = yield* seen(name)
        lawful(events)
        const [first, second] = events.flatMap((event) => event._tag === "TextCompleted" ? [event] : [])
        assert.match(first!.text, /quickly check reliable, up-to-date sources/)
        assert.isUndefined(first!.id)
        assert.match(second!.text, /^Here are /)
        assert.match(second!.id!, /^msg_/)
        assert.strictEqual(textOf(events), first!.text + second!.text)
        assert.deepStrictEqual(
          stateOf(events)?.items.map(({ phase }) => phase),
          ["commentary", "final_answer"]
        )
      }
    }))

  it.effect("openai-reasoning-encrypted-content: four turns of a loop", () =>
    Effect.gen(function*() {
      const turns = answersIn(linesOf("openai-responses", "openai-reasoning-encrypted-content.1.chunks.txt"))
      const read = yield* Effect.forEach(turns, (lines) => ask(Responses, () => sse(lines)))
      for (const events of read) lawful(events)
      assert.deepStrictEqual(read.map((events) => callsOf(events).map((call) => call.arguments)), [
        [{ a: 12, b: 7, op: "add" }],
        [{ a: 19, b: 3, op: "multiply" }],
        [{ a: 57, b: 10, op: "multiply" }],
        []
      ])
      assert.match(reasoningOf(read[0]!), /^\*\*Calculating step-by-step using calculator\*\*\n\nI'll compute/)
      assert.strictEqual(textOf(read[3]!), "The final result is **570**.")
      const [thought, called] = stateOf(read[0]!)!.items
      assert.match(String(thought!["encrypted_content"]), /^gAAAAABp/)
      assert.deepInclude(called, { type: "function_call", call_id: "call_AB6AaRZ1FYZB2RwS6A5vbdqn" })

      const whole = yield* seen("openai-reasoning-encrypted-content.1.json")
      assert.match(reasoningOf(whole), /^\*\*Reporting final result\*\*/)
      assert.strictEqual(textOf(whole), "12 + 7 = 19\n19 × 3 = 57\n57 × 10 = 570\n\nFinal result: 570")
      assert.match(String(stateOf(whole)!.items[0]!["encrypted_content"]), /^gAAAAABp/)
    }))

  it.effect("openai-shell-local-multiturn: a plain answer", () =>
    Effect.gen(function*() {
      for (const name of ["openai-shell-local-multiturn.1.chunks.txt", "openai-shell-local-multiturn.1.json"]) {
        const events = yield* seen(name)
        lawful(events)
        assert.strictEqual(textOf(events), "`arm64` (Apple Silicon).")
        assert.deepStrictEqual(ended(events).usage, {
          inputTokens: 444,
          outputTokens: 12,
          totalTokens: 456,
          cachedInputTokens: 0,
          reasoningTokens: 0
        })
      }
    }))

  it.effect("openai-tool-search: a call in a namespace, after what the server did", () =>
    Effect.gen(function*() {
      for (const name of ["openai-tool-search.1.chunks.txt", "openai-tool-search.1.json"]) {
        const events = yield* seen(name)
        lawful(events)
        assert.deepStrictEqual(callsOf(events).map((call) => call.arguments), [
          { location: "San Francisco, CA", unit: "fahrenheit" }
        ])
        assert.deepStrictEqual(stateOf(events)?.items.map(({ type }) => type), [
          "tool_search_call",
          "tool_search_output",
          "function_call"
        ])
        assert.strictEqual(stateOf(events)?.items[2]!["namespace"], "get_weather")
        assert.strictEqual(ended(events).finishReason, "tool_calls")
      }
    }))

  it.effect("reasoning-model-temperature-error: the provider's own words", () =>
    Effect.gen(function*() {
      const body = JSON.parse(read("openai-responses", "reasoning-model-temperature-error.json"))
      const error = yield* Effect.flip(ask(Responses, () => Response.json(body, { status: 400 })))
      assert.deepInclude({ ...error }, {
        reason: "invalid_request",
        detail: "Unsupported parameter: 'temperature' is not supported with this model."
      })
    }))
})

describe.skipIf(!hasRecordings)(`any cut of recorded bytes${without}`, () => {
  const bodies = (["openai-chat", "openai-responses"] as const).flatMap((folder) =>
    namesIn(folder).filter((name) => !name.endsWith(".json")).map((name) => [folder, name] as const)
  )

  const eventsOf = (folder: Recorded, response: () => Response) =>
    Effect.gen(function*() {
      const events: Array<Event.AdapterEvent> = []
      const adapter = yield* Adapter.Adapter
      const exit = yield* Effect.exit(
        adapter.generate(hello, (batch) => Effect.sync(() => void events.push(...batch)))
      )
      return { events, ended: JSON.stringify(exit) }
    }).pipe(Effect.provide(Layer.provide(layerOf(folder), clientOf(response))))

  for (const [folder, name] of bodies) {
    it.effect.prop(
      `${folder}/${name} means the same`,
      [fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 20 }), fc.boolean()],
      ([cuts, crlf]) =>
        Effect.gen(function*() {
          const lines = yield* Effect.promise(() => responseOf(folder, name).text())
          const body = new TextEncoder().encode(crlf ? lines.replaceAll("\n", "\r\n") : lines)
          const parts: Array<Uint8Array> = []
          for (let at = 0, i = 0; at < body.length; i++) parts.push(body.slice(at, at += cuts[i % cuts.length]!))

          const whole = yield* eventsOf(folder, () => responseOf(folder, name))
          assert.deepStrictEqual(yield* eventsOf(folder, () => bytes(parts)), whole)
        }),
      { fastCheck: { numRuns: 10 } }
    )
  }
})
