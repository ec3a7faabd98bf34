import { EventLaws } from "@allm/conformance"
import { Adapter, Allm, Engine, Message, ToolCall } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { adapterOf, ask, chunk, completedOf, frames, messageOf, read, requestOf, sse, stop } from "./support.ts"

const call = (functionCall: object, more: object = {}) => ({ functionCall, ...more })

const callsOf = (chunks: ReadonlyArray<unknown>, request = requestOf()) =>
  Effect.map(read(chunks, request), (events) => {
    assert.deepStrictEqual(EventLaws.problems(events), [])
    return EventLaws.said(events).toolCalls
  })

describe("text", () => {
  it.effect("comes piece by piece, and the message is complete at the end", () =>
    Effect.gen(function*() {
      const events = yield* read([
        chunk([{ text: "Hel" }], {}, { usageMetadata: { promptTokenCount: 3 } }),
        chunk([{ text: "lo" }]),
        chunk([{ text: "" }], stop, {
          usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 }
        })
      ])

      assert.deepStrictEqual(events, [
        { _tag: "MessageStarted", id: "r1", model: "gemini-2.5-flash-001" },
        { _tag: "TextDelta", delta: "Hel" },
        { _tag: "TextDelta", delta: "lo" },
        {
          _tag: "MessageCompleted",
          message: Message.assistant("Hello"),
          finishReason: "stop",
          rawFinishReason: "STOP",
          usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 },
          metadata: {}
        }
      ])
    }))

  it.effect("may go on after the chunk with the reason", () =>
    Effect.gen(function*() {
      const events = yield* read([
        chunk([{ text: "a" }], stop),
        chunk([{ text: "b" }]),
        { usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2 } }
      ])

      assert.strictEqual(messageOf(events).content, "ab")
      assert.deepStrictEqual(completedOf(events).usage, { inputTokens: 1, outputTokens: 2 })
    }))

  it.effect("is that of the first candidate", () =>
    Effect.gen(function*() {
      const other = { content: { parts: [{ text: "other" }] }, index: 1 }
      const first = { content: { parts: [{ text: "first" }] }, index: 0, finishReason: "STOP" }
      const events = yield* read([{ candidates: [other] }, { candidates: [other, first] }])

      assert.strictEqual(messageOf(events).content, "first")
    }))

  it.effect("of a body in one piece, or of a list of chunks, means the same", () =>
    Effect.gen(function*() {
      const chunks = [chunk([{ text: "Hel" }]), chunk([{ text: "lo" }], stop)]
      const streamed = yield* read(chunks)

      assert.deepStrictEqual(yield* ask(() => Response.json(chunks)), streamed)
      const whole = yield* ask(() => Response.json(chunk([{ text: "Hello" }], stop)))
      assert.deepStrictEqual(whole.at(-1), streamed.at(-1))
    }))

  it.effect("without an end is a cut, not an answer", () =>
    Effect.gen(function*() {
      const cut = yield* Effect.flip(Effect.asVoid(read([chunk([{ text: "Hel" }])])))
      assert.strictEqual(cut.reason, "network_error")
      assert.strictEqual((yield* Effect.flip(Effect.asVoid(read([])))).reason, "malformed_response")
      assert.strictEqual(
        (yield* Effect.flip(Effect.asVoid(read([{ unheard: "of" }, "[DONE]"])))).reason,
        "malformed_response"
      )
    }))

  it.effect("ends with [DONE] where a server says so and gives no reason", () =>
    Effect.gen(function*() {
      const events = yield* read([chunk([{ text: "Hi" }]), "[DONE]"])
      assert.strictEqual(completedOf(events).finishReason, "stop")
    }))
})

describe("what is not known", () => {
  it.effect("passes: fields, parts and shapes of any kind", () =>
    Effect.gen(function*() {
      const events = yield* read([
        { candidates: null, error: null, novelty: 1 },
        { candidates: [null], novelty: 1 },
        { candidates: [{ content: { parts: "none" } }] },
        chunk([null, 7, { novelty: { a: 1 } }, { functionCall: "x" }, { functionCall: {} }, { text: 5 }]),
        chunk([{ text: "Hi", novelty: 1 }], { ...stop, novelty: [1] }, {
          novelty: {},
          usageMetadata: { promptTokenCount: "3" }
        })
      ])

      assert.strictEqual(messageOf(events).content, "Hi")
      assert.deepStrictEqual(completedOf(events).usage, {})
      assert.deepStrictEqual(completedOf(events).metadata, { google: { novelty: [1] } })
      assert.deepStrictEqual(EventLaws.problems(events), [])
    }))
})

describe("thoughts", () => {
  it.effect("are reasoning, not text, and counted", () =>
    Effect.gen(function*() {
      const usageMetadata = {
        promptTokenCount: 10,
        candidatesTokenCount: 5,
        thoughtsTokenCount: 7,
        toolUsePromptTokenCount: 2,
        cachedContentTokenCount: 4,
        totalTokenCount: 24
      }
      const events = yield* read([
        chunk([{ text: "Let me see.", thought: true }]),
        chunk([{ text: "", thought: true }, { text: "Hi" }], stop, { usageMetadata })
      ])

      assert.deepStrictEqual(events.filter(({ _tag }) => _tag === "ReasoningDelta"), [
        { _tag: "ReasoningDelta", delta: "Let me see." }
      ])
      assert.strictEqual(messageOf(events).content, "Hi")
      assert.deepStrictEqual(messageOf(events).metadata, {})
      assert.deepStrictEqual(completedOf(events).usage, {
        inputTokens: 12,
        outputTokens: 12,
        totalTokens: 24,
        cachedInputTokens: 4,
        reasoningTokens: 7
      })
    }))

  it.effect("keep the tokens of the chunk that tells them", () =>
    Effect.gen(function*() {
      const events = yield* read([
        chunk([{ text: "Hi" }], {}, { usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 } }),
        chunk([], stop, { usageMetadata: { trafficType: "ON_DEMAND" } })
      ])
      assert.deepStrictEqual(completedOf(events).usage, { inputTokens: 1, outputTokens: 1 })
    }))
})

describe("calls", () => {
  it.effect("with ids keep them", () =>
    Effect.gen(function*() {
      const calls = yield* callsOf([
        chunk([call({ id: "g1", name: "add", args: { a: 1 } }), call({ id: "g2", name: "add", args: { a: 2 } })], stop)
      ])
      assert.deepStrictEqual(calls, [
        ToolCall.make({ id: "g1", name: "add", arguments: { a: 1 }, rawArguments: "{\"a\":1}" }),
        ToolCall.make({ id: "g2", name: "add", arguments: { a: 2 }, rawArguments: "{\"a\":2}" })
      ])
    }))

  it.effect("end the turn for their results, whatever the reason says", () =>
    Effect.gen(function*() {
      for (const finishReason of ["STOP", "FUNCTION_CALL", "SOMETHING_NEW"]) {
        const events = yield* read([chunk([call({ name: "add", args: {} })], { finishReason })])
        assert.strictEqual(completedOf(events).finishReason, "tool_calls")
        assert.strictEqual(completedOf(events).rawFinishReason, finishReason)
      }
    }))

  it.effect("without ids get one of their own, the same whenever the same answer is read", () =>
    Effect.gen(function*() {
      const chunks = [
        chunk([call({ name: "add", args: {} })]),
        chunk([call({ name: "add", args: {} }), call({ name: "look" })], stop)
      ]
      const calls = yield* callsOf(chunks)

      assert.deepStrictEqual(calls.map(({ id }) => id), ["call_r1_0", "call_r1_1", "call_r1_2"])
      assert.deepStrictEqual(yield* callsOf(chunks), calls)
    }))

  it.effect("have ids that differ from those of earlier turns, even without an id of the answer", () =>
    Effect.gen(function*() {
      const answer = (
        more: object
      ) => [{ candidates: [{ content: { parts: [call({ name: "add", ...more })] }, ...stop }] }]
      const ids: Array<string> = []
      const messages: Array<Message.Message> = [Message.user("Hi")]
      for (const more of [{}, {}, { id: "add" }, { id: "add" }, { id: "" }]) {
        const [made] = yield* callsOf(answer(more), requestOf({ messages }))
        ids.push(made!.id)
        messages.push(Message.assistant("", { toolCalls: [made!] }), Message.tool(made!.id, "5"))
      }
      assert.strictEqual(new Set(ids).size, 5)
      assert.strictEqual(ids[2], "add")
    }))

  it.effect("without arguments have none", () =>
    Effect.gen(function*() {
      const calls = yield* callsOf([
        chunk([call({ name: "a" }), call({ name: "b", args: {} }), call({ name: "c", args: null })], stop)
      ])
      assert.deepStrictEqual(calls.map((made) => made.arguments), [{}, {}, {}])
    }))

  it.effect("with arguments as text are read, and kept when they are broken", () =>
    Effect.gen(function*() {
      const [good, broken] = yield* callsOf([
        chunk([call({ name: "a", args: "{\"x\":1}" }), call({ name: "a", args: "{\"x\":" })], stop)
      ])
      assert.deepStrictEqual(good?.arguments, { x: 1 })
      assert.deepInclude(broken, { rawArguments: "{\"x\":" })
      assert.notProperty(broken, "arguments")
    }))

  it.effect("with a number beyond all numbers do not lose it in silence", () =>
    Effect.gen(function*() {
      const body = frames(chunk([call({ name: "a", args: { x: "BIG" } })], stop)).replace("\"BIG\"", "1e999")
      const events = yield* ask(() => sse(body))
      assert.deepStrictEqual(EventLaws.said(events).toolCalls[0]?.arguments, { x: "Infinity" })
    }))
})

describe("arguments bit by bit", () => {
  const bits = (...partialArgs: ReadonlyArray<unknown>) => chunk([call({ partialArgs, willContinue: true })])
  const made = (...chunks: ReadonlyArray<unknown>) =>
    Effect.map(
      callsOf([chunk([call({ name: "a", willContinue: true })]), ...chunks, chunk([call({})]), chunk([], stop)]),
      ([first]) => first
    )

  it.effect("are put together by their paths", () =>
    Effect.gen(function*() {
      const whole = yield* made(
        bits({ jsonPath: "$.city", stringValue: "Zü", willContinue: true }),
        bits({ jsonPath: "$.city", stringValue: "rich", willContinue: true }, { jsonPath: "$.city", stringValue: "" }),
        bits({ jsonPath: "$.days[0].n", numberValue: 1 }, { jsonPath: "$.days[0].rain", boolValue: false }),
        bits({ jsonPath: "$.days[1]", nullValue: "NULL_VALUE" }),
        bits({ jsonPath: "$['the \\'name\\'']", stringValue: "x" }, { jsonPath: "$[\"a.b\"]", stringValue: "y" }),
        bits({ jsonPath: "$.__proto__.x", numberValue: 2 })
      )
      assert.strictEqual(
        JSON.stringify(whole?.arguments),
        "{\"city\":\"Zürich\",\"days\":[{\"n\":1,\"rain\":false},null],\"the 'name'\":\"x\",\"a.b\":\"y\",\"__proto__\":{\"x\":2}}"
      )
    }))

  it.effect("replace a text that was complete", () =>
    Effect.gen(function*() {
      const whole = yield* made(
        bits({ jsonPath: "$.a", stringValue: "old" }),
        bits({ jsonPath: "$.a", stringValue: "new" })
      )
      assert.deepStrictEqual(whole?.arguments, { a: "new" })
    }))

  it.effect("that have no place make the arguments unreadable, not incomplete", () =>
    Effect.gen(function*() {
      for (
        const bit of [
          { jsonPath: "$", stringValue: "x" },
          { jsonPath: "city", stringValue: "x" },
          { jsonPath: "$.list[4294967294]", stringValue: "x" },
          { jsonPath: "$[0]", stringValue: "x" },
          { jsonPath: "$..a", stringValue: "x" },
          { jsonPath: "$.known.below", stringValue: "x" },
          { jsonPath: "$.known[0].below", stringValue: "x" },
          { jsonPath: "$.a" },
          { stringValue: "x" },
          null
        ]
      ) {
        const whole = yield* made(bits({ jsonPath: "$.known", stringValue: "k" }, bit))
        assert.notProperty(whole, "arguments", JSON.stringify(bit))
        assert.include(whole?.rawArguments, "\"known\":\"k\"")
      }
    }))

  it.effect("end with the next call, or with the answer", () =>
    Effect.gen(function*() {
      const chunks = [
        chunk([call({ name: "a", willContinue: true })]),
        bits({ jsonPath: "$.x", numberValue: 1 }),
        chunk([call({ name: "b", willContinue: true })]),
        bits({ jsonPath: "$.y", numberValue: 2 })
      ]
      const calls = yield* callsOf([...chunks, chunk([], stop)])
      assert.deepStrictEqual(calls.map((made) => made.arguments), [{ x: 1 }, { y: 2 }])

      const [first, cut] = yield* callsOf([...chunks, chunk([], { finishReason: "MAX_TOKENS" })])
      assert.deepStrictEqual(first?.arguments, { x: 1 })
      assert.notProperty(cut, "arguments")
    }))
})

describe("endings", () => {
  const cases = [
    ["STOP", "stop"],
    ["FUNCTION_CALL", "stop"],
    ["MAX_TOKENS", "length"],
    ["SAFETY", "content_filter"],
    ["RECITATION", "content_filter"],
    ["BLOCKLIST", "content_filter"],
    ["PROHIBITED_CONTENT", "content_filter"],
    ["SPII", "content_filter"],
    ["IMAGE_SAFETY", "content_filter"],
    ["MALFORMED_FUNCTION_CALL", "error"],
    ["UNEXPECTED_TOOL_CALL", "error"],
    ["TOO_MANY_TOOL_CALLS", "error"],
    ["OTHER", "other"],
    ["LANGUAGE", "other"],
    ["SOMETHING_NEW", "other"]
  ] as const
  for (const [finishReason, meaning] of cases) {
    it.effect(`${finishReason} is ${meaning}`, () =>
      Effect.gen(function*() {
        const completed = completedOf(yield* read([chunk([{ text: "Hi" }], { finishReason })]))
        assert.deepInclude({ ...completed }, { finishReason: meaning, rawFinishReason: finishReason })
      }))
  }

  it.effect("with calls that were cut by the limit do not ask for results", () =>
    Effect.gen(function*() {
      const events = yield* read([chunk([call({ name: "a" })], { finishReason: "MAX_TOKENS" })])
      assert.strictEqual(completedOf(events).finishReason, "length")
    }))

  const generate = (chunks: ReadonlyArray<unknown>) =>
    Allm.chat("Hi").pipe(
      Effect.provide(
        Engine.layer({ model: "gemini-2.5-flash" }).pipe(Layer.provide(adapterOf(() => sse(frames(...chunks)))))
      )
    )

  it.effect("tell of a call the model could not write", () =>
    Effect.gen(function*() {
      const result = yield* generate([
        { candidates: [{ finishReason: "MALFORMED_FUNCTION_CALL", finishMessage: "Malformed function call: print(" }] }
      ])

      assert.strictEqual(result.haltedReason, "error")
      assert.strictEqual(result.error?._tag, "AdapterError")
      assert.include(result.error?.message, "MALFORMED_FUNCTION_CALL: Malformed function call: print(")
      assert.deepStrictEqual(result.finalResponse.metadata["google"], {
        finishMessage: "Malformed function call: print("
      })
    }))

  it.effect("of a blocked prompt are a refusal, with what was said about it", () =>
    Effect.gen(function*() {
      const promptFeedback = {
        blockReason: "PROHIBITED_CONTENT",
        safetyRatings: [{ category: "A", probability: "HIGH" }]
      }
      const result = yield* generate([{ promptFeedback, usageMetadata: { promptTokenCount: 4 }, responseId: "r9" }])

      assert.deepInclude({ ...result.finalResponse }, {
        id: "r9",
        outputText: "",
        finishReason: "content_filter",
        rawFinishReason: "PROHIBITED_CONTENT",
        usage: { inputTokens: 4 },
        metadata: { google: { promptFeedback } }
      })
      assert.strictEqual(result.haltedReason, "completed")
    }))

  it.effect("by safety keep what was said", () =>
    Effect.gen(function*() {
      const result = yield* generate([chunk([{ text: "How to" }]), {
        candidates: [{ finishReason: "SAFETY", safetyRatings: [] }]
      }])
      assert.deepInclude({ ...result.finalResponse }, { outputText: "How to", finishReason: "content_filter" })
    }))

  it.effect("carry what else is known of the answer", () =>
    Effect.gen(function*() {
      const groundingMetadata = { webSearchQueries: ["oslo"] }
      const completed = completedOf(
        yield* read([chunk([{ text: "Hi" }], { groundingMetadata }), chunk([], { ...stop, avgLogprobs: -0.1 })])
      )
      assert.deepStrictEqual(completed.metadata, { google: { groundingMetadata, avgLogprobs: -0.1 } })
    }))
})

describe("images", () => {
  it.effect("are parts of the message, in their place", () =>
    Effect.gen(function*() {
      const image = { inlineData: { mimeType: "image/png", data: "iVBO" } }
      const events = yield* read([chunk([{ text: "Look: " }, image, { text: "Nice?" }], stop)])

      assert.deepStrictEqual(messageOf(events).content, [
        Message.text("Look: "),
        Message.image({ mediaType: "image/png", data: "iVBO" }),
        Message.text("Nice?")
      ])
      assert.deepStrictEqual(EventLaws.problems(events), [])
    }))
})

describe("errors inside a stream", () => {
  it.effect("are typed, and may be repeated when nothing was said", () =>
    Effect.gen(function*() {
      const error = (code: number, status: string) =>
        Effect.flip(Effect.asVoid(read([{ error: { code, status, message: "The model is overloaded." } }])))
      const overloaded = yield* error(503, "UNAVAILABLE")
      assert.deepInclude({ ...overloaded }, {
        reason: "provider_unavailable",
        status: 503,
        detail: "The model is overloaded.",
        provider: "google"
      })
      assert.isTrue(overloaded.isRetryable)
      assert.strictEqual((yield* error(504, "DEADLINE_EXCEEDED")).reason, "timeout")
    }))

  it.effect("come before the answer as long as nothing was said", () =>
    Effect.gen(function*() {
      const empty = chunk([{ text: "" }])
      const error = { error: { code: 503, status: "UNAVAILABLE", message: "The model is overloaded." } }
      for (const chunks of [[empty, error], [empty]]) {
        const events: Array<unknown> = []
        const failed = yield* Stream.runForEach(Adapter.stream(requestOf()), (event) =>
          Effect.sync(() => events.push(event))).pipe(
            Effect.provide(adapterOf(() =>
              sse(frames(...chunks))
            )),
            Effect.flip
          )
        assert.deepStrictEqual(events, [])
        assert.isTrue(failed.isRetryable)
      }
    }))

  it.effect("need not have a number, and may come in a list", () =>
    Effect.gen(function*() {
      const body = [{ error: { status: "RESOURCE_EXHAUSTED", message: "Slow down." } }]
      const error = yield* Effect.flip(Effect.asVoid(ask(() => Response.json(body))))
      assert.deepInclude({ ...error }, { reason: "rate_limited", detail: "Slow down." })
    }))

  it.effect("keep what was said before", () =>
    Effect.gen(function*() {
      const chunks = [chunk([{ text: "Hel" }]), { error: { code: 500, status: "INTERNAL", message: "Oops." } }]
      const response = yield* Allm.generate("Hi").pipe(
        Effect.provide(Engine.layer({ model: "gemini" }).pipe(Layer.provide(adapterOf(() => sse(frames(...chunks))))))
      )
      assert.strictEqual(response.outputText, "Hel")
      assert.strictEqual(response.finishReason, "error")
      assert.deepInclude(response.metadata["error"], { reason: "provider_unavailable" })
    }))
})
