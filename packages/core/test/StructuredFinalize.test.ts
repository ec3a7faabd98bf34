import { Allm, type ChatResult, Fake, Message, Tool, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Effect, Schema, Stream } from "effect"

const call = (name: string) => [Fake.toolCall({ id: "c0", name }), Fake.finish("tool_calls")]
const says = (text: string): Fake.Script => [Fake.text(text), Fake.finish("stop")]

const tools = [
  Tool.make("echo", { description: "Says ok", handler: () => "ok" }),
  Tool.make("fail", { description: "Fails", handler: () => Effect.fail("no") }),
  Tool.make("stop", { description: "Halts", handler: () => ToolResult.halt("plan_submitted", null) }),
  Tool.make("ask", { description: "Asks", handler: () => ToolResult.askUser("Which?") }),
  Tool.make("theirs", { description: "The caller's", manual: true })
]

const responseFormat = {
  type: "json_schema",
  name: "answer",
  schema: { type: "object", properties: { n: { type: "number" } } },
  strict: true
} as const
const twoPass = { responseFormat, structuredFinalize: true } as const

const json = "{\"n\":1}"
const scripts = [call("echo"), says("tool done"), says(json)]
const engine = Fake.engine({ tools, scripts })

const saidIn = (result: ChatResult.ChatResult) =>
  result.thread.messages.map((message) => [message.role, Message.toText(message)])

describe("structuredFinalize", () => {
  describe("chat", () => {
    it.effect("FIN-01 asks once more for the answer in its form", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", twoPass)

        assert.strictEqual(result.haltedReason, "completed")
        assert.lengthOf(result.steps, 3)
        assert.strictEqual(result.finalResponse.outputText, json)
        assert.deepStrictEqual(result.metadata, {
          structuredFinalize: { pass1Halted: "completed", pass1Response: result.steps[1]?.response }
        })
      }).pipe(Effect.provide(engine)))

    it.effect("FIN-01 asks for the form in the second pass only", () =>
      Effect.gen(function*() {
        yield* Allm.chat("hi", twoPass)
        const requests = yield* Fake.requests

        assert.deepStrictEqual(requests.map((request) => request.responseFormat), [
          undefined,
          undefined,
          responseFormat
        ])
      }).pipe(Effect.provide(engine)))

    it.effect("FIN-02 says so to the model", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", twoPass)

        assert.deepStrictEqual(saidIn(result), [
          ["user", "hi"],
          ["assistant", ""],
          ["tool", "ok"],
          ["assistant", "tool done"],
          ["user", "Now provide your final structured response."],
          ["assistant", json]
        ])
      }).pipe(Effect.provide(engine)))

    it.effect("FIN-03 says it in the caller's words", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { ...twoPass, structuredFinalizeNudge: "JSON, please." })

        assert.deepStrictEqual(saidIn(result).at(-2), ["user", "JSON, please."])
      }).pipe(Effect.provide(engine)))

    it.effect("FIN-05 says nothing when the words are empty", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { ...twoPass, structuredFinalizeNudge: "" })

        assert.deepStrictEqual(saidIn(result).slice(-2), [["assistant", "tool done"], ["assistant", json]])
      }).pipe(Effect.provide(engine)))

    it.effect("FIN-06 FIN-13 has a turn of its own when the first pass used up its turns", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { ...twoPass, maxTurns: 1 })

        assert.strictEqual(result.haltedReason, "completed")
        assert.strictEqual(result.finalResponse.outputText, json)
        assert.deepStrictEqual(result.metadata, {
          structuredFinalize: { pass1Halted: "max_turns", pass1Response: result.steps[0]?.response }
        })
        assert.lengthOf(yield* Fake.requests, 2)
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [call("echo"), says(json)] }))))

    it.effect("FIN-07 answers after haltWhen, and does not ask it about the answer", () =>
      Effect.gen(function*() {
        let asked = 0
        const result = yield* Allm.chat("hi", { ...twoPass, haltWhen: () => ++asked > 0 })

        assert.strictEqual(result.haltedReason, "completed")
        assert.deepStrictEqual(result.metadata, {
          structuredFinalize: { pass1Halted: "halt_when", pass1Response: result.steps[0]?.response }
        })
        assert.strictEqual(asked, 1)
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [call("echo"), says(json)] }))))

    const skipped = (reason: string, first: Fake.Script, options: Allm.Options<never> = {}) =>
      it.effect(`FIN-09 has no second pass after ${reason}`, () =>
        Effect.gen(function*() {
          const result = yield* Allm.chat("hi", { ...twoPass, ...options })

          assert.strictEqual(result.haltedReason, reason)
          assert.lengthOf(result.steps, 1)
          assert.deepStrictEqual(result.metadata["structuredFinalize"], {
            pass1Halted: reason,
            pass1Response: result.steps[0]?.response
          })
          assert.lengthOf(yield* Fake.requests, 1)
        }).pipe(Effect.provide(Fake.engine({ tools, scripts: [first, says(json)] }))))

    skipped("tool_error", call("fail"), { onToolError: "halt" })
    skipped("plan_submitted", call("stop"))
    skipped("ask_user", call("ask"))
    skipped("manual_tool_calls", call("theirs"))
    skipped("manual_tool_calls", call("echo"), { mode: "manual" })
    skipped("error", [Fake.text("do"), Fake.error("network_error")])

    it.effect("FIN-09 keeps what a halt says besides", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", twoPass)

        assert.strictEqual(result.metadata["haltToolCallId"], "c0")
        assert.strictEqual(result.metadata["haltResult"], null)
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [call("stop"), says(json)] }))))

    for (const structuredFinalize of [false, undefined]) {
      it.effect(`FIN-10 is one pass when it is ${structuredFinalize}`, () =>
        Effect.gen(function*() {
          const result = yield* Allm.chat("hi", { responseFormat, structuredFinalize })
          const requests = yield* Fake.requests

          assert.lengthOf(result.steps, 2)
          assert.deepStrictEqual(result.metadata, {})
          assert.deepStrictEqual(requests.map((request) => request.responseFormat), [responseFormat, responseFormat])
        }).pipe(Effect.provide(Fake.engine({ tools, scripts: [call("echo"), says(json)] }))))
    }

    for (const format of [undefined, { type: "text" } as const]) {
      it.effect(`FIN-11 is refused with ${format === undefined ? "no form" : "text as the form"}`, () =>
        Effect.gen(function*() {
          const error = yield* Effect.flip(Allm.chat("hi", { responseFormat: format, structuredFinalize: true }))

          assert.strictEqual(error._tag, "ValidationError")
          if (error._tag !== "ValidationError") return
          assert.deepStrictEqual(error.issues.map(({ code, path }) => [path, code]), [[
            ["structuredFinalize"],
            "requires_json_schema"
          ]])
          assert.deepStrictEqual(yield* Fake.requests, [])
        }).pipe(Effect.provide(engine)))
    }

    it.effect("FIN-13 is exactly one call, whatever the model does in it", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", twoPass)

        assert.lengthOf(yield* Fake.requests, 2)
        assert.strictEqual(result.haltedReason, "completed")
        assert.deepStrictEqual(result.steps[1]?.toolResults, [])
        assert.deepStrictEqual(result.manualToolCalls, [])
        assert.deepStrictEqual(result.thread.messages.at(-1), {
          role: "assistant",
          content: "",
          toolCalls: [],
          metadata: { finishReason: "tool_calls" }
        })
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [says("done"), call("echo"), says("never")] }))))

    it.effect("FIN-13 leaves no manual calls behind in manual mode", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { ...twoPass, mode: "manual" })

        assert.strictEqual(result.haltedReason, "completed")
        assert.deepStrictEqual(result.manualToolCalls, [])
        assert.deepStrictEqual(result.steps[1]?.metadata, {})
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [says("done"), call("echo")] }))))

    it.effect("FIN-18 offers no tools and no choice of them in the second pass", () =>
      Effect.gen(function*() {
        const own = Tool.make("own", { description: "The call's", handler: () => "ok" })
        yield* Allm.chat("hi", {
          ...twoPass,
          tools: [own],
          toolChoice: { tool: "own" },
          prepareStep: () => ({ toolChoice: "required" })
        })
        const requests = yield* Fake.requests

        assert.deepStrictEqual(requests.map((request) => request.tools.map((tool) => tool.name)), [
          ["echo", "fail", "stop", "ask", "theirs", "own"],
          []
        ])
        assert.deepStrictEqual(requests.map((request) => request.toolChoice), ["required", undefined])
      }).pipe(Effect.provide(Fake.engine({ tools, scripts: [says("done"), says(json)] }))))

    it.effect("FIN-17 keeps the first pass when the second cannot be asked", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", twoPass)
        const summary = {
          _tag: "AdapterError",
          reason: "invalid_request",
          message: "model call failed (fake): invalid_request: the provider does not accept the request"
        }

        assert.strictEqual(result.haltedReason, "error")
        assert.strictEqual(result.finalResponse.outputText, "done")
        assert.lengthOf(result.steps, 1)
        assert.deepStrictEqual(result.metadata, {
          error: summary,
          structuredFinalize: {
            pass1Halted: "completed",
            pass1Response: result.steps[0]?.response,
            pass2Error: summary
          }
        })
        assert.strictEqual(result.error?._tag, "AdapterError")
      }).pipe(
        Effect.provide(Fake.engine({ tools, scripts: [says("done"), [Fake.preflightError("invalid_request")]] }))
      ))

    it.effect("ends with error when the second answer breaks off", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", twoPass)

        assert.strictEqual(result.haltedReason, "error")
        assert.strictEqual(result.finalResponse.outputText, "{")
        assert.lengthOf(result.steps, 2)
        assert.strictEqual(result.error?._tag, "AdapterError")
      }).pipe(
        Effect.provide(Fake.engine({ tools, scripts: [says("done"), [Fake.text("{"), Fake.error("network_error")]] }))
      ))

    it.effect("sums the usage of both passes", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", twoPass)

        assert.deepStrictEqual(result.usage, { inputTokens: 6 })
      }).pipe(Effect.provide(Fake.engine({ tools, scripts, usage: { inputTokens: 2 } }))))

    it.effect("takes the form of an engine, as a Schema", () =>
      Effect.gen(function*() {
        yield* Allm.chat("hi")
        const requests = yield* Fake.requests

        assert.deepStrictEqual(requests.map((request) => request.responseFormat), [
          undefined,
          {
            type: "json_schema",
            name: "Answer",
            schema: {
              type: "object",
              required: ["n"],
              properties: { n: { type: "number" } },
              additionalProperties: false
            },
            strict: true
          }
        ])
      }).pipe(Effect.provide(Fake.engine({
        responseFormat: Schema.Struct({ n: Schema.Number }).annotations({ identifier: "Answer" }),
        structuredFinalize: true,
        scripts: [says("done"), says(json)]
      }))))
  })

  describe("stream", () => {
    const collect = (options: Allm.Options<never>) =>
      Effect.map(Stream.runCollect(Allm.stream("hi", options)), Chunk.toReadonlyArray)

    it.effect("FIN-14 tells one chat, last, with both passes", () =>
      Effect.gen(function*() {
        const events = yield* collect(twoPass)
        const ends = events.filter((event) => event._tag === "ChatCompleted")

        assert.lengthOf(ends, 1)
        assert.strictEqual(events.at(-1), ends[0])
        assert.lengthOf(ends[0]!.result.steps, 3)
        assert.lengthOf(events.filter((event) => event._tag === "StepCompleted"), 3)
      }).pipe(Effect.provide(engine)))

    const same = (name: string, given: ReadonlyArray<Fake.Script>) =>
      it.effect(name, () =>
        Effect.gen(function*() {
          const options = { ...twoPass, requestId: "r0" }
          const layer = Fake.engine({ tools, scripts: given })
          const events = yield* Effect.provide(collect(options), layer)
          const result = yield* Effect.provide(Allm.chat("hi", options), layer)

          assert.deepStrictEqual(events.at(-1), { _tag: "ChatCompleted", result })
        }))

    same("FIN-15 ends with what chat gives", scripts)
    same("FIN-15 ends with what chat gives when there is no second pass", [call("stop")])
    same("FIN-17 ends with the first pass when the second cannot be asked", [
      says("done"),
      [Fake.preflightError("invalid_request")]
    ])
  })
})
