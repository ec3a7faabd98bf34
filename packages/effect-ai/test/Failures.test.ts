import { AdapterError, Allm, Message, Request, Telemetry, Tool } from "@allm/core"
import { EffectAi } from "@allm/effect-ai"
import { AiError, LanguageModel } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Duration, Effect, Layer, Metric, Option, Stream, TestClock } from "effect"
import { ask, askTheirs } from "./bench.ts"
import * as Scripted from "./scripted.ts"

const hello = Request.make({ messages: [Message.user("Hello")] })
const common = { module: "Scripted", method: "streamText" }
const request = { method: "POST", url: "https://api.example", urlParams: [], hash: Option.none(), headers: {} } as const

const failing = (error: AiError.AiError, before: ReadonlyArray<Scripted.Part> = []) =>
  Effect.gen(function*() {
    const { model } = yield* Scripted.make(() => Stream.concat(Scripted.reads(before), Stream.fail(error)))
    return yield* ask(EffectAi.fromLanguageModel(model, { name: "acme" }), hello)
  })

const status = (status: number, body?: unknown, headers: Record<string, string> = {}) =>
  new AiError.HttpResponseError({
    ...common,
    reason: "StatusCode",
    request,
    response: { status, headers },
    body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body)
  })

const transport = (cause?: unknown) =>
  new AiError.HttpRequestError({ ...common, reason: "Transport", request, description: "it broke", cause })

describe("EffectAi.fromLanguageModel", () => {
  describe("reads a failure", () => {
    const failures: ReadonlyArray<readonly [what: string, error: AiError.AiError, reason: AdapterError.Reason]> = [
      ["400", status(400), "invalid_request"],
      ["401", status(401), "authentication_failed"],
      ["403", status(403), "authentication_failed"],
      ["404", status(404), "invalid_request"],
      ["408", status(408), "timeout"],
      ["422", status(422), "invalid_request"],
      ["429", status(429), "rate_limited"],
      ["500", status(500), "provider_unavailable"],
      ["503", status(503), "provider_unavailable"],
      ["529", status(529), "provider_unavailable"],
      [
        "a prompt that is too long",
        status(400, { error: { code: "context_length_exceeded", message: "too long" } }),
        "context_length_exceeded"
      ],
      ["content that is refused", status(400, { error: { code: "content_filter", message: "no" } }), "content_filter"],
      ["a lost connection", transport(), "network_error"],
      ["a limit", transport(new Cause.TimeoutException()), "timeout"],
      [
        "a bad address",
        new AiError.HttpRequestError({ ...common, reason: "InvalidUrl", request }),
        "invalid_request"
      ],
      [
        "an answer in no form",
        new AiError.HttpResponseError({ ...common, reason: "Decode", request, response: { status: 200, headers: {} } }),
        "malformed_response"
      ],
      ["a malformed answer", new AiError.MalformedOutput(common), "malformed_response"],
      ["a malformed prompt", new AiError.MalformedInput({ ...common, description: "no" }), "invalid_request"],
      [
        "a file it cannot take",
        new AiError.MalformedInput({ ...common, description: "Detected unsupported media type for file: 'a/b'" }),
        "unsupported_feature"
      ],
      ["anything else", new AiError.UnknownError({ ...common, description: "who knows" }), "unknown"]
    ]

    for (const [what, error, reason] of failures) {
      it.effect(`of ${what} as ${reason}`, () =>
        Effect.gen(function*() {
          const asked = yield* failing(error)

          assert.deepStrictEqual([asked.error?.reason, asked.error?.provider], [reason, "acme"])
          assert.deepStrictEqual(asked.events, [])
        }))
    }

    it.effect("with its status, its words and the id of the request", () =>
      Effect.gen(function*() {
        const { error } = yield* failing(
          status(400, { error: { message: "no such model" } }, { "x-request-id": "req_1" })
        )

        assert.deepStrictEqual([error?.status, error?.detail, error?.requestId], [400, "no such model", "req_1"])
      }))

    for (
      const [headers, body, millis] of [
        [{ "retry-after": "7" }, undefined, 7_000],
        [{ "retry-after": "0.5" }, undefined, 500],
        [{ "retry-after-ms": "1500", "retry-after": "9" }, undefined, 1_500],
        [{ "retry-after": "Thu, 01 Jan 1970 00:01:00 GMT" }, undefined, 30_000],
        [{}, { error: { details: [{ retryDelay: "34.5s" }] } }, 34_500],
        [{ "retry-after": "soon" }, undefined, undefined],
        [{}, "busy", undefined]
      ] as const
    ) {
      it.effect(`with the wait of ${JSON.stringify(headers)} ${JSON.stringify(body) ?? ""}`, () =>
        Effect.gen(function*() {
          yield* TestClock.setTime(30_000)
          const { error } = yield* failing(status(429, body, headers))

          assert.strictEqual(error?.retryAfter && Duration.toMillis(error.retryAfter), millis)
        }))
    }

    it.effect("after words, and keeps them", () =>
      Effect.gen(function*() {
        const asked = yield* failing(transport(), Scripted.text(["Hel"]).slice(0, 2))

        assert.strictEqual(asked.error?.reason, "network_error")
        assert.strictEqual(asked.response.outputText, "Hel")
      }))

    it.effect("after the last word as none", () =>
      Effect.gen(function*() {
        const asked = yield* failing(transport(), [...Scripted.text(["Hello"]), Scripted.finish("stop")])

        assert.strictEqual(asked.error, undefined)
        assert.strictEqual(asked.response.finishReason, "stop")
      }))

    it.effect("of the loop's own kind as itself", () =>
      Effect.gen(function*() {
        const own = new AdapterError.AdapterError({ reason: "content_filter", provider: "mine" })
        const { error } = yield* failing(new AiError.UnknownError({ ...common, cause: own }))

        assert.strictEqual(error, own)
      }))
  })

  describe("reads an error inside the answer", () => {
    const errors: ReadonlyArray<readonly [error: unknown, reason: AdapterError.Reason]> = [
      [{ type: "overloaded_error", message: "Overloaded" }, "provider_unavailable"],
      [{ type: "api_error", message: "Internal" }, "provider_unavailable"],
      [{ type: "error", code: "rate_limit_exceeded", message: "Slow down" }, "rate_limited"],
      [{ type: "error", code: "context_length_exceeded", message: "Too long" }, "context_length_exceeded"],
      [{ type: "authentication_error", message: "Bad key" }, "authentication_failed"],
      [{ error: { type: "invalid_request_error", message: "Bad" } }, "invalid_request"],
      ["something", "unknown"],
      [undefined, "unknown"],
      [10n, "unknown"]
    ]

    for (const [error, reason] of errors) {
      it.effect(`such as ${typeof error === "object" ? JSON.stringify(error) : String(error)} as ${reason}`, () =>
        Effect.gen(function*() {
          const asked = yield* askTheirs([{ type: "error", error }], hello)

          assert.strictEqual(asked.error?.reason, reason)
          assert.deepStrictEqual(asked.events, [])
        }))
    }

    it.effect("that comes after words as an event", () =>
      Effect.gen(function*() {
        const { error, events, response } = yield* askTheirs([
          ...Scripted.text(["Hel"]).slice(0, 2),
          { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
          Scripted.finish("stop")
        ], hello)

        assert.strictEqual(error, undefined)
        const [told] = events.flatMap((event) => event._tag === "ErrorOccurred" ? [event.error] : [])
        assert(told instanceof AdapterError.AdapterError)
        assert.deepStrictEqual([told.reason, told.detail], ["provider_unavailable", "Overloaded"])
        assert.strictEqual(response.finishReason, "error")
        assert.strictEqual(response.outputText, "Hel")
      }))

    it.effect("once, when nothing comes after it", () =>
      Effect.gen(function*() {
        const { error, events } = yield* askTheirs([
          ...Scripted.text(["Hel"]).slice(0, 2),
          { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }
        ], hello)

        assert.strictEqual(error, undefined)
        assert.deepStrictEqual(events.map(({ _tag }) => _tag), ["MessageStarted", "TextDelta", "ErrorOccurred"])
      }))

    it.effect("before a word has come, so that the loop asks again", () =>
      Effect.gen(function*() {
        const turns: Array<ReadonlyArray<Scripted.Part>> = [
          [
            { type: "response-metadata", id: "resp_1", modelId: "m", timestamp: undefined },
            { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }
          ],
          [...Scripted.text(["Hello"]), Scripted.finish("stop")]
        ]
        const { asked, model } = yield* Scripted.make(() => Scripted.reads(turns.shift() ?? []))
        const engine = Layer.provide(
          EffectAi.engine({ retry: AdapterError.retrySchedule({ baseDelay: 1, jitter: 0 }) }),
          Layer.succeed(LanguageModel.LanguageModel, model)
        )
        const fiber = yield* Effect.fork(Effect.provide(Allm.generate("Hello"), engine))
        yield* TestClock.adjust("1 second")

        assert.strictEqual((yield* fiber).outputText, "Hello")
        assert.strictEqual(asked.length, 2)
      }))
  })

  describe("does not take for an answer", () => {
    const cases: ReadonlyArray<readonly [what: string, parts: ReadonlyArray<Scripted.Part>, detail: RegExp]> = [
      ["nothing", [], /said nothing/],
      ["a beginning", [{ type: "response-metadata", id: "r", modelId: "m", timestamp: undefined }], /said nothing/],
      ["words without an end", Scripted.text(["Hel"]), /broke off/],
      [
        "an end that nobody counted",
        [{
          type: "finish",
          reason: "stop",
          usage: { inputTokens: undefined, outputTokens: undefined, totalTokens: 0 }
        }],
        /counted nothing/
      ],
      [
        "a block of nothing that nobody counted",
        [...Scripted.text([""]), {
          type: "finish",
          reason: "stop",
          usage: { inputTokens: undefined, outputTokens: undefined, totalTokens: 0 }
        }],
        /counted nothing/
      ],
      ["a call without an id", [...Scripted.call("", "add", {}), Scripted.finish("tool-calls")], /has no id/],
      [
        "two calls of one id",
        [
          ...Scripted.call("c0", "add", { a: 1 }),
          ...Scripted.call("c0", "add", { a: 2 }),
          Scripted.finish("tool-calls")
        ],
        /two tool calls have the id "c0"/
      ]
    ]

    for (const [what, parts, detail] of cases) {
      it.effect(what, () =>
        Effect.gen(function*() {
          const add = Tool.make("add", { description: "Adds", handler: () => 1 })
          const { error, events } = yield* askTheirs(parts, { ...hello, tools: [Tool.declaration(add)] })

          assert.strictEqual(error?.reason, "malformed_response")
          assert.match(error?.detail ?? "", detail)
          assert.isFalse(events.some((event) => event._tag === "MessageCompleted"))
        }))
    }

    it.effect("unless it is empty and someone counted", () =>
      Effect.gen(function*() {
        const { error, response } = yield* askTheirs([Scripted.finish("stop")], hello)

        assert.strictEqual(error, undefined)
        assert.deepStrictEqual([response.outputText, response.finishReason], ["", "stop"])
      }))
  })

  describe("keeps calls that their framework refuses", () => {
    const look = Tool.make("look", { description: "Looks", handler: () => "a door" })

    const chat = (
      turns: Array<Stream.Stream<Scripted.Part, AiError.AiError>>,
      unknownTool: "fail" | "feedback" = "feedback"
    ) =>
      Effect.gen(function*() {
        const { asked, model } = yield* Scripted.make(() => turns.shift() ?? Stream.empty)
        const engine = EffectAi.engine({ tools: [look], unknownTool, retry: false }).pipe(
          Layer.provide(Layer.succeed(LanguageModel.LanguageModel, model))
        )
        const result = yield* Effect.either(Effect.provide(Allm.chat("Where am I?"), engine))
        return { asked, result }
      })

    const end = Scripted.reads([...Scripted.text(["In a room."]), Scripted.finish("stop")])

    it.effect("of a tool that is not there: the model is told, and goes on", () =>
      Effect.gen(function*() {
        const { asked, result } = yield* chat([
          Scripted.reads([
            ...Scripted.call("c0", "look", {}),
            ...Scripted.call("c1", "fly", { to: "Oslo" }),
            // Lost: their framework reads no further.
            ...Scripted.call("c2", "look", {}),
            Scripted.finish("tool-calls")
          ]),
          end
        ])

        assert(result._tag === "Right")
        assert.strictEqual(result.right.haltedReason, "completed")
        assert.deepStrictEqual(
          result.right.steps[0]?.toolResults.map(({ isError, toolCallId }) => [toolCallId, isError]),
          [["c0", false], ["c1", true]]
        )
        assert.strictEqual(asked.length, 2)
      }))

    it.effect("of a tool that is not there: with the rest of the same read, and its tokens", () =>
      Effect.gen(function*() {
        const { result } = yield* chat([
          Stream.fromIterable([
            ...Scripted.text(["I try."]),
            ...Scripted.call("c0", "fly", { to: "Oslo" }),
            ...Scripted.call("c1", "look", {}),
            Scripted.finish("tool-calls")
          ]),
          end
        ])

        assert(result._tag === "Right")
        const [step] = result.right.steps
        assert.deepStrictEqual(step?.toolResults.map(({ toolCallId }) => toolCallId), ["c0", "c1"])
        assert.strictEqual(step?.response.outputText, "I try.")
        assert.deepStrictEqual(step?.response.usage, Scripted.usage)
      }))

    it.effect("of a tool that is not there: the loop names it", () =>
      Effect.gen(function*() {
        const { result } = yield* chat(
          [Scripted.reads([...Scripted.call("c0", "fly", {}), Scripted.finish("tool-calls")])],
          "fail"
        )

        assert(result._tag === "Left" && result.left._tag === "UnknownTool")
        assert.strictEqual(result.left.toolName, "fly")
      }))

    it.effect("with arguments that are not JSON: the model is told, sees what it wrote, and goes on", () =>
      Effect.gen(function*() {
        const counted = Metric.tagged(Telemetry.unreadableFrames, "provider", "effect-ai")
        const before = yield* Metric.value(counted)
        const { asked, result } = yield* chat([
          Stream.concat(
            Scripted.reads(Scripted.call("c0", "look", {}, ["{\"at\":", "\"the do"]).slice(0, 3)),
            Stream.fail(new AiError.MalformedOutput({ ...common, description: "Failed to parse parameters" }))
          ),
          end
        ])

        assert(result._tag === "Right")
        assert.strictEqual(result.right.haltedReason, "completed")
        assert.match(result.right.steps[0]?.toolResults[0]?.content ?? "", /invalid_arguments/)
        const assistant = asked[1]?.prompt.content[1]
        assert(assistant?.role === "assistant" && assistant.content[0]?.type === "tool-call")
        assert.deepStrictEqual(assistant.content[0].params, { invalidJson: "{\"at\":\"the do" })
        assert.strictEqual((yield* Metric.value(counted)).count - before.count, 1)
      }))

    it.effect("but not those whose arguments were fine", () =>
      Effect.gen(function*() {
        const { result } = yield* chat([
          Stream.concat(
            Scripted.reads(Scripted.call("c0", "look", {}).slice(0, 2)),
            Stream.fail(new AiError.MalformedOutput({ ...common, description: "forbidden prototype property" }))
          )
        ])

        assert(result._tag === "Right")
        assert.strictEqual(result.right.haltedReason, "error")
        assert.deepStrictEqual(result.right.steps[0]?.toolResults, [])
      }))
  })
})
