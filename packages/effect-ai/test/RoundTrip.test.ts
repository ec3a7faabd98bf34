import * as EventLaws from "@allm/conformance/EventLaws"
import {
  Adapter,
  AdapterError,
  type Event,
  Message,
  Request,
  type Response,
  Tool,
  ToolCall,
  type Usage
} from "@allm/core"
import { EffectAi } from "@allm/effect-ai"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FastCheck as fc } from "effect"
import { ask, type Asked } from "./bench.ts"

type AdapterEvent = Event.AdapterEvent

const pieces = fc.array(fc.string({ unit: "grapheme" }), { minLength: 1, maxLength: 4 })
const metadata = fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 2 })
const optional = <A>(value: fc.Arbitrary<A>) => fc.option(value, { nil: undefined })
const defined = <A extends object>(value: A): { [K in keyof A]: Exclude<A[K], undefined> } =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as never

const cut = (text: string, at: number): ReadonlyArray<string> =>
  text.length < 2 ? [text] : [text.slice(0, at % text.length), text.slice(at % text.length)]

/** A block of an answer, told its place in it. */
type Block = (index: number) => ReadonlyArray<AdapterEvent>

const text: fc.Arbitrary<Block> = fc.record({ pieces, isNamed: fc.boolean(), isCompleted: fc.boolean() }).map(
  ({ isCompleted, isNamed, pieces }) => (index) => {
    const id = isNamed || index > 0 ? { id: `t${index}` } : {}
    return [
      ...pieces.map((delta): AdapterEvent => ({ _tag: "TextDelta", ...id, delta })),
      ...(isCompleted ? [{ _tag: "TextCompleted", ...id, text: pieces.join("") } as const] : [])
    ]
  }
)

const reasoning: fc.Arbitrary<Block> = pieces.map((pieces) => () =>
  pieces.map((delta): AdapterEvent => ({ _tag: "ReasoningDelta", delta }))
)

const call: fc.Arbitrary<Block> = fc.record({
  name: fc.constantFrom("get_weather", "get_time"),
  raw: fc.oneof(
    fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })).map((args) => JSON.stringify(args)),
    fc.constant("{\"city\":")
  ),
  at: fc.nat(),
  hasDeltas: fc.boolean(),
  metadata
}).map(({ at, hasDeltas, metadata, name, raw }) => (index) => {
  const id = `call_${index}`
  return [
    { _tag: "ToolCallStarted", toolCallId: id, toolName: name },
    ...(hasDeltas ? cut(raw, at).map((delta): AdapterEvent => ({ _tag: "ToolCallDelta", toolCallId: id, delta })) : []),
    { _tag: "ToolCallCompleted", toolCall: ToolCall.fromRaw({ id, name, rawArguments: raw, metadata }) }
  ]
})

const oops: Block = () => [{
  _tag: "ErrorOccurred",
  error: new AdapterError.AdapterError({ reason: "provider_unavailable", provider: "test" })
}]

const count = optional(fc.nat())

const usage: fc.Arbitrary<Usage.Usage> = fc.record({
  inputTokens: count,
  outputTokens: count,
  totalTokens: count,
  cachedInputTokens: count,
  cacheWriteInputTokens: count,
  totalCost: count,
  extra: optional(metadata)
}).map(defined)

const answer: fc.Arbitrary<ReadonlyArray<AdapterEvent>> = fc.record({
  started: optional(fc.record({ id: optional(fc.constant("resp_1")), model: optional(fc.constant("large")) })),
  blocks: fc.array(
    fc.oneof({ arbitrary: text, weight: 3 }, reasoning, { arbitrary: call, weight: 2 }, fc.constant(oops)),
    { maxLength: 5 }
  ),
  end: fc.record({
    finishReason: optional(
      fc.constantFrom<Response.FinishReason>("stop", "length", "tool_calls", "content_filter", "error", "other")
    ),
    rawFinishReason: optional(fc.constantFrom("end_turn", "pause_turn")),
    usage: optional(usage),
    metadata
  }),
  message: optional(fc.record({ metadata, name: optional(fc.constant("ada")) }))
}).map(({ blocks, end, message, started }) => {
  const events: ReadonlyArray<AdapterEvent> = blocks.flatMap((block, index) => block(index))
  const { text, toolCalls } = EventLaws.said(events)
  return [
    ...(started === undefined ? [] : [{ _tag: "MessageStarted", ...defined(started) } as const]),
    ...events,
    {
      _tag: "MessageCompleted",
      ...defined(end),
      ...(message === undefined ? {} : { message: Message.assistant(text, { ...message, toolCalls }) })
    }
  ]
})

const request = Request.make({
  messages: [Message.user("Hello")],
  tools: ["get_weather", "get_time"].map((name) => Tool.declaration(Tool.make(name, { description: "Tells" })))
})

/** What an answer means, however it was cut into events. */
const meaning = ({ error, response }: Asked) => {
  const { effectAi: _theirs, ...kept } = response.message?.metadata ?? {}
  return {
    ...response,
    message: { ...response.message, metadata: kept },
    // Where a model wrote its arguments in one piece there is no text of them.
    toolCalls: response.toolCalls.map(({ rawArguments, ...call }) =>
      call.arguments === undefined ? { ...call, rawArguments } : call
    ),
    error: error?.message
  }
}

const saysSomething = (event: AdapterEvent): boolean =>
  event._tag !== "MessageStarted" && !("delta" in event && event.delta === "" && event._tag !== "ToolCallDelta") &&
  !("text" in event && event.text === "")

const thereAndBack = (adapter: Adapter.Service) =>
  Effect.map(EffectAi.makeLanguageModel(adapter), (model) => EffectAi.fromLanguageModel(model))

describe("An adapter that went through @effect/ai and back", () => {
  it("says the same", () =>
    fc.assert(
      fc.asyncProperty(answer, fc.array(fc.nat({ max: 4 }), { minLength: 1 }), (events, sizes) =>
        Effect.runPromise(Effect.gen(function*() {
          // In reads of any size.
          const adapter = Adapter.make((_request, emit) => {
            const reads: Array<ReadonlyArray<AdapterEvent>> = []
            for (let start = 0, i = 0; start < events.length; i++) {
              const size = sizes[i % sizes.length]! + 1
              reads.push(events.slice(start, start += size))
            }
            return Effect.forEach(reads, emit, { discard: true })
          })
          const direct = yield* ask(adapter, request)
          const bridged = yield* ask(yield* thereAndBack(adapter), request)
          const first = events.find(saysSomething)

          // An error before the first word is a failure there, so that it can be asked again.
          if (first?._tag === "ErrorOccurred") {
            assert.strictEqual(bridged.error?.reason, "provider_unavailable")
            assert.deepStrictEqual(bridged.events, [])
          } else {
            assert.deepStrictEqual(meaning(bridged), meaning(direct))
            assert.deepStrictEqual(EventLaws.problems(bridged.events), [])
          }
        }))),
      { numRuns: 200 }
    ), 30_000)

  for (const reason of AdapterError.Reason.literals) {
    it.effect(`fails with the same ${reason}`, () =>
      Effect.gen(function*() {
        const error = new AdapterError.AdapterError({ reason, provider: "test", detail: "no", cause: { kept: true } })
        const adapter = yield* thereAndBack(Adapter.make(() => Effect.fail(error)))
        const streamed = yield* ask(adapter, request)
        const whole = yield* ask(adapter, { ...request, responseFormat: { type: "json_object" } })

        assert.strictEqual(streamed.error, error)
        assert.strictEqual(whole.error, error)
      }))
  }

  it.effect("is asked the same", () =>
    Effect.gen(function*() {
      const asked: Array<Request.Request> = []
      const adapter = Adapter.make((request, emit) => {
        asked.push(request)
        return emit([{ _tag: "MessageCompleted", finishReason: "stop", metadata: {} }])
      })
      const bridged = yield* thereAndBack(adapter)
      const requests: ReadonlyArray<Request.Request> = [
        request,
        { ...request, toolChoice: "required" },
        { ...request, toolChoice: { tool: "get_time" } },
        Request.make({
          messages: [
            Message.system("Be brief.", { metadata: { pinned: true } }),
            Message.user([Message.text("Look:"), Message.image("https://allm.example/a.png", { detail: "low" })], {
              name: "ada"
            }),
            Message.assistant("I look.", {
              toolCalls: [
                ToolCall.make({ id: "c0", name: "get_time", arguments: {}, metadata: { signature: "s" } }),
                ToolCall.fromRaw({ id: "c1", name: "get_time", rawArguments: "{" })
              ],
              metadata: { anthropic: { thinking: [{ signature: "s" }] } }
            }),
            Message.tool("c0", "noon", { metadata: { askUser: true } }),
            Message.tool("c1", "{\"error\":\"not JSON\"}", { isError: true }),
            Message.user("And?")
          ]
        }),
        Request.make({
          messages: [Message.user("Hi")],
          responseFormat: {
            type: "json_schema",
            name: "answer",
            schema: { type: "object", properties: {} },
            strict: true
          }
        })
      ]
      for (const request of requests) yield* ask(bridged, request)

      assert.deepStrictEqual(
        asked.map(({ toolChoice, ...request }) => ({ ...request, toolChoice: toolChoice ?? "auto" })),
        requests.map(({ toolChoice, ...request }) => ({ ...request, toolChoice: toolChoice ?? "auto" }))
      )
    }))
})
