import * as EventLaws from "@allm/conformance/EventLaws"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  answerOf,
  ask,
  begun,
  call,
  completion,
  ended,
  grown,
  heard,
  over,
  ping,
  sse,
  sseOf,
  started,
  stopped,
  tags,
  text,
  thinking
} from "./wire.ts"

const failure = (frames: Parameters<typeof heard>[0]) => Effect.flip(Effect.asVoid(ask(() => sse(sseOf(frames)))))

describe("text", () => {
  it.effect("comes piece by piece, and as a whole", () =>
    Effect.gen(function*() {
      const events = yield* heard(answerOf(ping, ...text(0, "Grü", "ße", "")))

      assert.deepStrictEqual(events, [
        { _tag: "MessageStarted", id: "msg_1", model: "claude-sonnet-5" },
        { _tag: "TextDelta", delta: "Grü" },
        { _tag: "TextDelta", delta: "ße" },
        { _tag: "TextCompleted", text: "Grüße" },
        {
          _tag: "MessageCompleted",
          message: { role: "assistant", content: "Grüße", toolCalls: [], metadata: {} },
          finishReason: "stop",
          rawFinishReason: "end_turn",
          usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 },
          metadata: {}
        }
      ])
    }))

  it.effect("in several blocks is told apart, and is one text in the end", () =>
    Effect.gen(function*() {
      const events = yield* heard(answerOf(...text(0, "One, "), ...text(1, "two, "), ...text(2, "three")))

      assert.deepStrictEqual(EventLaws.problems(events), [])
      assert.deepStrictEqual(
        events.filter(({ _tag }) => _tag === "TextDelta"),
        [
          { _tag: "TextDelta", delta: "One, " },
          { _tag: "TextDelta", id: "1", delta: "two, " },
          { _tag: "TextDelta", id: "2", delta: "three" }
        ]
      )
      assert.strictEqual(completion(events).message?.content, "One, two, three")
      assert.deepStrictEqual(completion(events).message?.metadata, {})
    }))

  it.effect("may come with the beginning of its block", () =>
    Effect.gen(function*() {
      const events = yield* heard(answerOf(
        begun(0, { type: "text", text: "Hel" }),
        grown(0, {
          type: "text_delta",
          text: "lo"
        }),
        over(0)
      ))

      assert.strictEqual(EventLaws.said(events).text, "Hello")
    }))

  it.effect("counts without the beginning of its block, and without its end", () =>
    Effect.gen(function*() {
      const events = yield* heard([started(), grown(0, { type: "text_delta", text: "Hi" }), stopped("end_turn"), ended])

      assert.deepStrictEqual(EventLaws.problems(events), [])
      assert.strictEqual(EventLaws.said(events).text, "Hi")
      assert.include(tags(events), "TextCompleted")
    }))

  it.effect("keeps its citations for the next request", () =>
    Effect.gen(function*() {
      const citation = { type: "char_location", cited_text: "c", document_index: 0, start_char_index: 0 }
      const events = yield* heard(answerOf(
        ...text(0, "See: "),
        begun(1, { type: "text", text: "", citations: [] }),
        grown(1, { type: "text_delta", text: "this" }),
        grown(1, { type: "citations_delta", citation: { ...citation, file_id: null } }),
        over(1)
      ))

      assert.deepStrictEqual(completion(events).message?.metadata, {
        anthropic: { content: [{ type: "text", length: 5 }, { type: "text", length: 4, citations: [citation] }] }
      })
    }))
})

describe("thinking", () => {
  it.effect("is told as reasoning, and kept with its signature", () =>
    Effect.gen(function*() {
      const events = yield* heard(answerOf(...thinking(0, "sig==", "Let me ", "see."), ...text(1, "Yes.")))

      assert.deepStrictEqual(events.filter(({ _tag }) => _tag === "ReasoningDelta"), [
        { _tag: "ReasoningDelta", delta: "Let me " },
        { _tag: "ReasoningDelta", delta: "see." }
      ])
      assert.strictEqual(completion(events).message?.content, "Yes.")
      assert.deepStrictEqual(completion(events).message?.metadata, {
        anthropic: {
          content: [{ type: "thinking", thinking: "Let me see.", signature: "sig==" }, { type: "text", length: 4 }]
        }
      })
    }))

  it.effect("that is redacted or not shown is kept all the same", () =>
    Effect.gen(function*() {
      const events = yield* heard([
        started(),
        begun(0, { type: "redacted_thinking", data: "EncryptedData" }),
        over(0),
        ...thinking(1, "hidden=="),
        ...call(2, { id: "toolu_1", name: "look" }),
        stopped("tool_use"),
        ended
      ])

      assert.deepStrictEqual(EventLaws.problems(events), [])
      assert.notInclude(tags(events), "ReasoningDelta")
      assert.deepStrictEqual(completion(events).message?.metadata, {
        anthropic: {
          content: [
            { type: "redacted_thinking", data: "EncryptedData" },
            { type: "thinking", thinking: "", signature: "hidden==" },
            { type: "tool_use", id: "toolu_1" }
          ]
        }
      })
    }))
})

describe("calls", () => {
  it.effect("come with their arguments in pieces, several in one answer", () =>
    Effect.gen(function*() {
      const events = yield* heard([
        started(),
        ...text(0, "I look."),
        ...call(1, { id: "toolu_1", name: "get_weather" }, "{\"city\":", " \"Zürich\"}"),
        ...call(2, { id: "toolu_2", name: "get_time" }),
        stopped("tool_use"),
        ended
      ])

      assert.deepStrictEqual(EventLaws.problems(events), [])
      assert.deepStrictEqual(events.slice(3), [
        { _tag: "ToolCallStarted", toolCallId: "toolu_1", toolName: "get_weather" },
        { _tag: "ToolCallDelta", toolCallId: "toolu_1", delta: "{\"city\":" },
        { _tag: "ToolCallDelta", toolCallId: "toolu_1", delta: " \"Zürich\"}" },
        {
          _tag: "ToolCallCompleted",
          toolCall: {
            id: "toolu_1",
            name: "get_weather",
            arguments: { city: "Zürich" },
            rawArguments: "{\"city\": \"Zürich\"}",
            metadata: {}
          }
        },
        { _tag: "ToolCallStarted", toolCallId: "toolu_2", toolName: "get_time" },
        {
          _tag: "ToolCallCompleted",
          toolCall: { id: "toolu_2", name: "get_time", arguments: {}, rawArguments: "", metadata: {} }
        },
        completion(events)
      ])
      assert.strictEqual(completion(events).finishReason, "tool_calls")
      assert.strictEqual(completion(events).rawFinishReason, "tool_use")
      assert.deepStrictEqual(completion(events).message?.toolCalls.map(({ id }) => id), ["toolu_1", "toolu_2"])
      assert.deepStrictEqual(completion(events).message?.metadata, {})
    }))

  it.effect("may come with all their arguments at once", () =>
    Effect.gen(function*() {
      const events = yield* heard([
        started(),
        begun(0, { type: "tool_use", id: "toolu_1", name: "add", input: { a: 1 } }),
        over(0),
        stopped("tool_use"),
        ended
      ])

      assert.deepStrictEqual(EventLaws.problems(events), [])
      assert.deepStrictEqual(EventLaws.said(events).toolCalls[0]?.arguments, { a: 1 })
    }))

  it.effect("make the answer one that waits for them, though it says that it stopped", () =>
    Effect.gen(function*() {
      const events = yield* heard(answerOf(...call(0, { id: "toolu_1", name: "look" }, "{}")))

      assert.strictEqual(completion(events).finishReason, "tool_calls")
    }))

  it.effect("that are cut off by the limit are not run", () =>
    Effect.gen(function*() {
      const events = yield* heard([
        started(),
        begun(0, { type: "tool_use", id: "toolu_1", name: "add", input: {} }),
        grown(0, { type: "input_json_delta", partial_json: "{\"a\":" }),
        stopped("max_tokens"),
        ended
      ])

      assert.deepStrictEqual(EventLaws.problems(events), [])
      assert.strictEqual(completion(events).finishReason, "length")
      assert.deepStrictEqual(EventLaws.said(events).toolCalls, [
        { id: "toolu_1", name: "add", rawArguments: "{\"a\":", metadata: {} }
      ])
    }))

  it.effect("without an id get one, without a name are no calls", () =>
    Effect.gen(function*() {
      const events = yield* heard([
        started(),
        begun(0, { type: "tool_use", name: "look", input: {} }),
        begun(1, { type: "tool_use", name: "look", input: {} }),
        stopped("tool_use"),
        ended
      ])
      const error = yield* failure([started(), begun(0, { type: "tool_use", id: "toolu_1" })])

      assert.deepStrictEqual(EventLaws.problems(events), [])
      assert.deepStrictEqual(EventLaws.said(events).toolCalls.map(({ id }) => id), ["toolu_msg_1_0", "toolu_msg_1_1"])
      assert.strictEqual(error.reason, "malformed_response")
    }))

  it.effect("made on behalf of a program keep who made them", () =>
    Effect.gen(function*() {
      const caller = { type: "code_execution_20260120", tool_id: "srvtoolu_1" }
      const calls = (given: object) =>
        heard([
          started(),
          begun(0, { type: "tool_use", id: "toolu_1", name: "look", input: {}, caller: given }),
          over(0),
          stopped("tool_use"),
          ended
        ])

      assert.deepStrictEqual(completion(yield* calls(caller)).message?.metadata, {
        anthropic: { content: [{ type: "tool_use", id: "toolu_1", caller }] }
      })
      assert.deepStrictEqual(completion(yield* calls({ type: "direct" })).message?.metadata, {})
    }))
})

describe("tools that run at Anthropic", () => {
  it.effect("say nothing, and are kept with their results", () =>
    Effect.gen(function*() {
      const result = {
        type: "web_search_tool_result",
        tool_use_id: "srvtoolu_1",
        content: [{ type: "web_search_result", url: "https://allm.example", encrypted_content: "abc" }]
      }
      const events = yield* heard([
        started(),
        begun(0, { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }),
        grown(0, { type: "input_json_delta", partial_json: "{\"query\":" }),
        grown(0, { type: "input_json_delta", partial_json: "\"allm\"}" }),
        over(0),
        begun(1, result),
        over(1),
        ...text(2, "Found."),
        stopped("end_turn", {}, {
          output_tokens: 9,
          server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 }
        }),
        ended
      ])

      assert.deepStrictEqual(tags(events), ["MessageStarted", "TextDelta", "TextCompleted", "MessageCompleted"])
      assert.deepStrictEqual(completion(events).message?.metadata, {
        anthropic: {
          content: [
            { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "allm" } },
            result,
            { type: "text", length: 6 }
          ]
        }
      })
      assert.deepStrictEqual(completion(events).usage?.extra, { web_search_requests: 1 })
    }))

  it.effect("may pause the answer", () =>
    Effect.gen(function*() {
      const events = yield* heard([
        started(),
        begun(0, { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "a" } }),
        over(0),
        stopped("pause_turn"),
        ended
      ])

      assert.strictEqual(completion(events).finishReason, "other")
      assert.strictEqual(completion(events).rawFinishReason, "pause_turn")
      assert.isDefined(completion(events).message?.metadata["anthropic"])
    }))
})

describe("what nobody knows yet", () => {
  it.effect("passes: frames, blocks, deltas and fields", () =>
    Effect.gen(function*() {
      const events = yield* heard([
        { type: "wind_forecast", gusts: 3 },
        started({ mood: "sunny" }),
        begun(0, { type: "compaction", content: null }),
        grown(0, { type: "compaction_delta", content: "What was " }),
        grown(0, { type: "compaction_delta", content: "said." }),
        over(0),
        ...text(1, "Hi"),
        grown(1, { type: "hum_delta", hum: "mm" }),
        grown(7, { type: "hum_delta", hum: "mm" }),
        over(9),
        { type: "content_block_delta", index: 1, delta: "text" },
        stopped("end_turn", { why: "done" }),
        ended
      ])

      assert.deepStrictEqual(EventLaws.problems(events), [])
      assert.strictEqual(EventLaws.said(events).text, "Hi")
      assert.deepStrictEqual(completion(events).message?.metadata, {
        anthropic: { content: [{ type: "compaction", content: "What was said." }, { type: "text", length: 2 }] }
      })
    }))

  it.effect("is no answer by itself", () =>
    Effect.gen(function*() {
      for (const frames of [[{ type: "wind_forecast" }], [ping], [ended].slice(1)]) {
        assert.strictEqual((yield* failure(frames)).reason, "malformed_response")
      }
    }))
})

describe("the beginning", () => {
  it.effect("counts once, however often it comes", () =>
    Effect.gen(function*() {
      const events = yield* heard([started(), started(), ...text(0, "Hi"), started(), stopped("end_turn"), ended])

      assert.deepStrictEqual(EventLaws.problems(events), [])
      assert.strictEqual(tags(events).filter((tag) => tag === "MessageStarted").length, 1)
    }))

  it.effect("is told with what follows it, so that an error right after it lets the call be repeated", () =>
    Effect.gen(function*() {
      const error = yield* failure([
        started(),
        ping,
        { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }
      ])

      assert.strictEqual(error.reason, "provider_unavailable")
    }))
})

describe("the end", () => {
  const reasons: ReadonlyArray<readonly [string, string]> = [
    ["end_turn", "stop"],
    ["stop_sequence", "stop"],
    ["max_tokens", "length"],
    ["model_context_window_exceeded", "length"],
    ["refusal", "content_filter"],
    ["pause_turn", "other"],
    ["a_new_reason", "other"]
  ]
  for (const [raw, finishReason] of reasons) {
    it.effect(`${raw} is ${finishReason}`, () =>
      Effect.gen(function*() {
        const events = yield* heard([started(), ...text(0, "Hi"), stopped(raw), ended])

        assert.strictEqual(completion(events).finishReason, finishReason)
        assert.strictEqual(completion(events).rawFinishReason, raw)
      }))
  }

  it.effect("tells why", () =>
    Effect.gen(function*() {
      const stop_details = { type: "refusal", category: "bio", explanation: "No." }
      const refused = yield* heard([started(), stopped("refusal", { stop_details }), ended])
      const cut = yield* heard([started(), ...text(0, "a"), stopped("stop_sequence", { stop_sequence: "b" }), ended])

      assert.deepStrictEqual(completion(refused).metadata, { anthropic: { stopDetails: stop_details } })
      assert.strictEqual(completion(refused).message?.content, "")
      assert.deepStrictEqual(completion(cut).metadata, { anthropic: { stopSequence: "b" } })
    }))

  it.effect("need not be said by its own frame", () =>
    Effect.gen(function*() {
      const events = yield* heard([started(), ...text(0, "Hi"), stopped("end_turn")])

      assert.deepStrictEqual(EventLaws.problems(events), [])
      assert.strictEqual(completion(events).finishReason, "stop")
    }))

  it.effect("may be said as other providers say it, or without a reason", () =>
    Effect.gen(function*() {
      const done = yield* ask(() => sse(`${sseOf([started(), ...text(0, "Hi")])}data: [DONE]\n\n`))
      const silent = yield* heard([started(), ...text(0, "Hi"), stopped(null), ended])

      for (const events of [done, silent]) {
        assert.deepStrictEqual(EventLaws.problems(events), [])
        assert.strictEqual(completion(events).finishReason, "stop")
        assert.notProperty(completion(events), "rawFinishReason")
      }
    }))

  it.effect("has to be said: what breaks off is an error", () =>
    Effect.gen(function*() {
      const early = yield* failure([started()])
      const late = yield* failure([started(), ...text(0, "Hi")])

      for (const error of [early, late]) {
        assert.strictEqual(error.reason, "network_error")
        assert.isTrue(error.isRetryable)
      }
    }))
})

describe("usage", () => {
  it.effect("counts all input, and of it what was read from the cache and written there", () =>
    Effect.gen(function*() {
      const events = yield* heard([
        started({
          usage: {
            input_tokens: 3,
            output_tokens: 1,
            cache_creation_input_tokens: 100,
            cache_read_input_tokens: 2000,
            cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 100 },
            service_tier: "standard"
          }
        }),
        ...text(0, "Hi"),
        stopped("end_turn", {}, {
          input_tokens: null,
          output_tokens: 40,
          output_tokens_details: { thinking_tokens: 30 }
        }),
        ended
      ])

      assert.deepStrictEqual(completion(events).usage, {
        inputTokens: 2103,
        outputTokens: 40,
        totalTokens: 2143,
        cachedInputTokens: 2000,
        cacheWriteInputTokens: 100,
        reasoningTokens: 30,
        extra: { ephemeral_1h_input_tokens: 100 }
      })
      assert.deepStrictEqual(completion(events).metadata, { anthropic: { serviceTier: "standard" } })
    }))

  it.effect("takes the later count, for tools at Anthropic add to it", () =>
    Effect.gen(function*() {
      const events = yield* heard([
        started(),
        ...text(0, "Hi"),
        stopped("end_turn", {}, { input_tokens: 50, output_tokens: 7 }),
        ended
      ])

      assert.deepStrictEqual(completion(events).usage, { inputTokens: 50, outputTokens: 7, totalTokens: 57 })
    }))

  it.effect("is absent where it was not told", () =>
    Effect.gen(function*() {
      const events = yield* heard([
        started({ usage: undefined }),
        ...text(0, "Hi"),
        { type: "message_delta", delta: { stop_reason: "end_turn" } },
        ended
      ])

      assert.notProperty(completion(events), "usage")
    }))
})

describe("an answer in one piece", () => {
  const message = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-sonnet-5",
    content: [
      { type: "thinking", thinking: "Hm.", signature: "sig" },
      { type: "text", text: "I look.", citations: null },
      { type: "tool_use", id: "toolu_1", name: "look", input: { at: "it" } },
      { type: "tool_use", id: "toolu_2", name: "stop", input: {} }
    ],
    stop_reason: "tool_use",
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 2 }
  }

  it.effect("means what the same answer means in frames", () =>
    Effect.gen(function*() {
      const whole = yield* ask(() => Response.json(message))
      const framed = yield* heard([
        started({ usage: message.usage }),
        ...thinking(0, "sig", "Hm."),
        ...text(1, "I look."),
        ...call(2, { id: "toolu_1", name: "look" }, "{\"at\":\"it\"}"),
        ...call(3, { id: "toolu_2", name: "stop" }),
        stopped("tool_use", {}, { output_tokens: 2 }),
        ended
      ])

      assert.deepStrictEqual(whole, framed)
    }))

  it.effect("that is none is a malformed response or the error it tells", () =>
    Effect.gen(function*() {
      const reasonOf = (body: unknown) =>
        Effect.map(Effect.flip(Effect.asVoid(ask(() => Response.json(body)))), ({ reason }) => reason)

      assert.strictEqual(yield* reasonOf({ ok: true }), "malformed_response")
      assert.strictEqual(yield* reasonOf("fine"), "malformed_response")
      assert.strictEqual(
        yield* reasonOf({ type: "error", error: { type: "api_error", message: "?" } }),
        "provider_unavailable"
      )
      assert.strictEqual(
        yield* reasonOf({ ...message, content: [{ type: "tool_use", id: "t" }] }),
        "malformed_response"
      )
    }))
})
