import { Allm, Fake, Message, Request, Response, Tool, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Either, Schema } from "effect"

const says = (text: string): Fake.Script => [Fake.text(text), Fake.finish("stop")]
const call = (name: string): Fake.Script => [Fake.toolCall({ id: "c0", name }), Fake.finish("tool_calls")]

const City = Schema.Struct({ name: Schema.String, founded: Schema.DateFromString }).annotations({ identifier: "City" })
const oslo = "{\"name\":\"Oslo\",\"founded\":\"1040-01-01T00:00:00.000Z\"}"
const wrong = "{\"name\":7}"

const echo = Tool.make("echo", { description: "Says ok", handler: () => "ok" })

const invalid = <A, R>(effect: Effect.Effect<A, Allm.ChatError | Allm.InvalidObject, R>) =>
  Effect.matchEffect(effect, {
    onFailure: (error) => error._tag === "InvalidObject" ? Effect.succeed(error) : Effect.die(error),
    onSuccess: () => Effect.dieMessage("the answer fits")
  })

describe("Allm.object", () => {
  it.effect("gives the answer as a decoded, typed value, and the chat", () =>
    Effect.gen(function*() {
      const { result, value } = yield* Allm.object("The capital of Norway?", { schema: City })
      const name: string = value.name

      assert.strictEqual(name, "Oslo")
      assert.strictEqual(value.founded.getUTCFullYear(), 1040)
      assert.strictEqual(result.haltedReason, "completed")
      assert.strictEqual(result.finalResponse.outputText, oslo)
    }).pipe(Effect.provide(Fake.engine({ script: says(oslo) }))))

  it.effect("asks for the form of the schema, in one pass when there are no tools", () =>
    Effect.gen(function*() {
      yield* Allm.object("The capital of Norway?", { schema: Schema.Struct({ name: Schema.String }) })
      const requests = yield* Fake.requests

      assert.deepStrictEqual(requests.map((request) => request.responseFormat), [{
        type: "json_schema",
        name: "response",
        schema: {
          type: "object",
          required: ["name"],
          properties: { name: { type: "string" } },
          additionalProperties: false
        },
        strict: true
      }])
    }).pipe(Effect.provide(Fake.engine({ script: says(oslo) }))))

  it.effect("takes its schema's services from the caller", () =>
    Effect.gen(function*() {
      class Greeting extends Context.Tag("test/Greeting")<Greeting, string>() {}
      const Greeted = Schema.transformOrFail(Schema.String, Schema.String, {
        strict: true,
        decode: (name) => Effect.map(Greeting, (greeting) => `${greeting} ${name}`),
        encode: (text) => Effect.succeed(text)
      })
      const { value } = yield* Allm.object("Who?", { schema: Schema.Struct({ name: Greeted }) }).pipe(
        Effect.provideService(Greeting, "Hello")
      )

      assert.deepStrictEqual(value, { name: "Hello Ada" })
    }).pipe(Effect.provide(Fake.engine({ script: says("{\"name\":\"Ada\"}") }))))

  it.effect("reads a null as absence where the schema takes none", () =>
    Effect.gen(function*() {
      const Line = Schema.Struct({ name: Schema.String, note: Schema.optional(Schema.String) })
      const Order = Schema.Struct({
        lines: Schema.Array(Line),
        tip: Schema.optionalWith(Schema.Number, { default: () => 7 }),
        until: Schema.NullOr(Schema.String)
      })
      const { value } = yield* Allm.object("Order?", { schema: Order })

      assert.deepStrictEqual(value, { lines: [{ name: "tea" }, { name: "pie", note: "hot" }], tip: 7, until: null })
    }).pipe(
      Effect.provide(Fake.engine({
        script: says(
          "{\"lines\":[{\"name\":\"tea\",\"note\":null},{\"name\":\"pie\",\"note\":\"hot\"}],\"tip\":null,\"until\":null}"
        )
      }))
    ))

  describe("an answer that does not fit", () => {
    it.effect("is told as it is when the absence of a null does not help either", () =>
      Effect.gen(function*() {
        const error = yield* invalid(Allm.object("The capital of Norway?", { schema: City }))

        assert.deepStrictEqual(error.issues.map(({ message, path }) => [path, message]), [
          [["name"], "Expected string, actual null"],
          [["founded"], "Expected string, actual 1"]
        ])
      }).pipe(Effect.provide(Fake.engine({ script: says("{\"name\":null,\"founded\":1}") }))))

    it.effect("fails with the text, every issue and the chat", () =>
      Effect.gen(function*() {
        const error = yield* invalid(Allm.object("The capital of Norway?", { schema: City }))

        assert.strictEqual(error.text, wrong)
        assert.deepStrictEqual(error.issues, [
          { path: ["name"], code: "invalid", message: "Expected string, actual 7" },
          { path: ["founded"], code: "invalid", message: "is missing" }
        ])
        assert.strictEqual(
          error.message,
          "the answer does not fit the schema\n- name: Expected string, actual 7\n- founded: is missing"
        )
        assert.strictEqual(error.result.finalResponse.outputText, wrong)
        assert.lengthOf(yield* Fake.requests, 1)
      }).pipe(Effect.provide(Fake.engine({ scripts: [says(wrong), says(oslo)] }))))

    it.effect("fails the same way when it is not JSON", () =>
      Effect.gen(function*() {
        const error = yield* invalid(Allm.object("The capital of Norway?", { schema: City }))

        assert.strictEqual(error.text, "Oslo, of course")
        assert.lengthOf(error.issues, 1)
        assert.deepStrictEqual(error.issues[0].path, [])
        assert.match(error.message, /^the answer does not fit the schema\n- the answer: .*JSON/)
      }).pipe(Effect.provide(Fake.engine({ script: says("Oslo, of course") }))))

    it.effect("fails the same way when there is none", () =>
      Effect.gen(function*() {
        const error = yield* invalid(Allm.object("The capital of Norway?", { schema: City }))

        assert.strictEqual(error.text, "")
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.finish("stop")] }))))

    it.effect("goes to JSON and back", () =>
      Effect.gen(function*() {
        const error = yield* invalid(Allm.object("The capital of Norway?", { schema: City }))
        const Line = Schema.parseJson(Allm.InvalidObject)
        const back = yield* Effect.flatMap(Schema.encode(Line)(error), Schema.decode(Line))

        assert.strictEqual(back.message, error.message)
        assert.deepStrictEqual(back.result, error.result)
      }).pipe(Effect.provide(Fake.engine({ script: says(wrong) }))))

    it.effect("does not hide a chat that ended for another reason", () =>
      Effect.gen(function*() {
        const ask = Tool.make("ask", { description: "Asks", handler: () => ToolResult.askUser("Which country?") })
        const error = yield* invalid(Allm.object("The capital?", { schema: City, tools: [ask] }))

        assert.strictEqual(error.result.haltedReason, "ask_user")
        assert.deepStrictEqual(error.result.pendingQuestions.map(({ question }) => question), ["Which country?"])
      }).pipe(Effect.provide(Fake.engine({ script: call("ask") }))))

    it.effect("fails like chat when the model cannot be asked", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Allm.object("The capital of Norway?", { schema: City }))

        assert.strictEqual(error._tag, "AdapterError")
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.preflightError("invalid_request")] }))))
  })

  describe("correct", () => {
    const given = { schema: City, correct: true } as const
    const correction = "Your answer does not fit the schema:\n" +
      "- name: Expected string, actual 7\n- founded: is missing\n" +
      "Answer again, with JSON that fits."

    it.effect("tells the model what is wrong, once", () =>
      Effect.gen(function*() {
        const { result, value } = yield* Allm.object("The capital of Norway?", given)
        const requests = yield* Fake.requests

        assert.strictEqual(value.name, "Oslo")
        assert.lengthOf(requests, 2)
        assert.deepStrictEqual(
          requests[1]?.messages.map((message) => [message.role, message.content]),
          [["user", "The capital of Norway?"], ["assistant", wrong], ["user", correction]]
        )
        assert.deepStrictEqual(requests[1]?.responseFormat, requests[0]?.responseFormat)
        assert.strictEqual(result.thread.messages.at(-1)?.content, oslo)
      }).pipe(Effect.provide(Fake.engine({ scripts: [says(wrong), says(oslo)] }))))

    it.effect("is not needed when the answer fits", () =>
      Effect.gen(function*() {
        const { value } = yield* Allm.object("The capital of Norway?", given)

        assert.strictEqual(value.name, "Oslo")
        assert.lengthOf(yield* Fake.requests, 1)
      }).pipe(Effect.provide(Fake.engine({ scripts: [says(oslo), says("never")] }))))

    it.effect("fails with the second answer when that does not fit either", () =>
      Effect.gen(function*() {
        const error = yield* invalid(Allm.object("The capital of Norway?", given))

        assert.strictEqual(error.text, "{}")
        assert.deepStrictEqual(error.issues.map(({ path }) => path), [["name"], ["founded"]])
        assert.lengthOf(yield* Fake.requests, 2)
      }).pipe(Effect.provide(Fake.engine({ scripts: [says(wrong), says("{}"), says(oslo)] }))))

    it.effect("belongs to the same chat: steps, usage and request id are of both answers", () =>
      Effect.gen(function*() {
        const { result } = yield* Allm.object("The capital of Norway?", given)

        assert.deepStrictEqual(result.steps.map((step) => step.response.outputText), [wrong, oslo])
        assert.deepStrictEqual(result.usage, { inputTokens: 2 })
        assert.strictEqual(result.steps[0]?.response.requestId, result.steps[1]?.response.requestId)
      }).pipe(Effect.provide(Fake.engine({ usage: { inputTokens: 1 }, scripts: [says(wrong), says(oslo)] }))))

    it.effect("asks as the request did", () =>
      Effect.gen(function*() {
        const request = Request.make({
          messages: [Message.user("The capital of Norway?")],
          model: "big",
          temperature: 0
        })
        yield* Allm.object(request, given)
        const requests = yield* Fake.requests

        assert.deepStrictEqual(requests.map(({ model, temperature }) => [model, temperature]), [["big", 0], ["big", 0]])
      }).pipe(Effect.provide(Fake.engine({ scripts: [says(wrong), says(oslo)] }))))

    it.effect("asks for nothing but the answer after two passes", () =>
      Effect.gen(function*() {
        const { value } = yield* Allm.object("The capital of Norway?", { ...given, tools: [echo] })
        const requests = yield* Fake.requests

        assert.strictEqual(value.name, "Oslo")
        assert.deepStrictEqual(requests.map((request) => request.tools.length), [1, 1, 0, 0])
        assert.strictEqual(requests[3]?.messages.at(-1)?.content, correction)
      }).pipe(Effect.provide(Fake.engine({ scripts: [call("echo"), says("I know"), says(wrong), says(oslo)] }))))

    const unfinished = (reason: string, tool: Tool.Any) =>
      it.effect(`does not correct a chat that ended with ${reason}`, () =>
        Effect.gen(function*() {
          const error = yield* invalid(Allm.object("The capital?", { ...given, tools: [tool] as Array<typeof echo> }))

          assert.strictEqual(error.result.haltedReason, reason)
          assert.lengthOf(yield* Fake.requests, 1)
        }).pipe(Effect.provide(Fake.engine({ scripts: [call(tool.name), says(oslo)] }))))

    unfinished(
      "ask_user",
      Tool.make("ask", { description: "Asks", handler: () => ToolResult.askUser("Which country?") })
    )
    unfinished("manual_tool_calls", Tool.make("theirs", { description: "The caller's", manual: true }))
  })

  describe("with tools", () => {
    it.effect("asks for the answer in a second pass", () =>
      Effect.gen(function*() {
        const { result, value } = yield* Allm.object("The capital of Norway?", { schema: City, tools: [echo] })
        const requests = yield* Fake.requests

        assert.strictEqual(value.name, "Oslo")
        assert.lengthOf(result.steps, 3)
        assert.deepStrictEqual(requests.map((request) => [request.tools.length, request.responseFormat?.type]), [
          [1, undefined],
          [1, undefined],
          [0, "json_schema"]
        ])
        assert.deepStrictEqual(result.metadata, {
          structuredFinalize: { pass1Halted: "completed", pass1Response: result.steps[1]?.response }
        })
      }).pipe(Effect.provide(Fake.engine({ scripts: [call("echo"), says("I know"), says(oslo)] }))))

    it.effect("asks for the answer in a second pass when they are the engine's", () =>
      Effect.gen(function*() {
        const { result } = yield* Allm.object("The capital of Norway?", { schema: City })

        assert.lengthOf(result.steps, 2)
      }).pipe(Effect.provide(Fake.engine({ tools: [echo], scripts: [says("I know"), says(oslo)] }))))

    it.effect("asks for it at once when told so", () =>
      Effect.gen(function*() {
        const { result, value } = yield* Allm.object("The capital of Norway?", {
          schema: City,
          tools: [echo],
          structuredFinalize: false
        })
        const requests = yield* Fake.requests

        assert.strictEqual(value.name, "Oslo")
        assert.deepStrictEqual(result.metadata, {})
        assert.deepStrictEqual(requests.map((request) => [request.tools.length, request.responseFormat?.type]), [
          [1, "json_schema"],
          [1, "json_schema"]
        ])
      }).pipe(Effect.provide(Fake.engine({ scripts: [call("echo"), says(oslo)] }))))
  })
})

describe("Allm.unwrap", () => {
  it("gives the text of a response that came to its end", () => {
    const response = Response.make({ finishReason: "stop", outputText: "hi", message: Message.assistant("other") })

    assert.deepStrictEqual(Allm.unwrap(response), Either.right("hi"))
  })

  it("HLP-11 gives the message's text when there is no other", () => {
    const response = Response.make({ finishReason: "stop", message: Message.assistant("hi") })

    assert.deepStrictEqual(Allm.unwrap(response), Either.right("hi"))
  })

  for (const response of [{ finishReason: "stop" }, { finishReason: "stop", outputText: "" }] as const) {
    it(`HLP-02 has no text for ${JSON.stringify(response)}`, () => {
      assert.deepStrictEqual(Allm.unwrap(Response.make(response)), Either.left({ _tag: "EmptyResponse" }))
    })
  }

  for (const finishReason of ["length", "tool_calls", "content_filter", "error", "other", undefined] as const) {
    it(`HLP-03 tells that the response ended with ${finishReason}`, () => {
      const response = Response.make({ outputText: "hi", ...(finishReason === undefined ? {} : { finishReason }) })

      assert.deepStrictEqual(Allm.unwrap(response), Either.left({ _tag: "NonStopFinish", finishReason }))
    })
  }

  it("HLP-05 tells that the content has parts", () => {
    const response = Response.make({ finishReason: "stop", message: Message.assistant([Message.text("hi")]) })

    assert.deepStrictEqual(Allm.unwrap(response), Either.left({ _tag: "StructuredContent" }))
  })
})
