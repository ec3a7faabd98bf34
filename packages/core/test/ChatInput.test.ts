import { Allm, Engine, Fake, Message, Request, Thread, Tool, ToolCall } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"

const says = (text: string): Fake.Script => [Fake.text(text), Fake.finish("stop")]
const calls = (name: string): Fake.Script => [Fake.toolCall({ id: "c0", name }), Fake.finish("tool_calls")]

const tellContext = Tool.make("tell", { description: "Tells its context", handler: (_, { context }) => context })
const saying = (name: string, text: string) => Tool.make(name, { description: "Says it", handler: () => text })

const onlyRequest = Effect.map(Fake.requests, ([request]) => request ?? assert.fail("the model was not asked"))

describe("what a chat begins with", () => {
  const messages = [Message.system("Be brief."), Message.user("hi")]

  it.effect("may be text", () =>
    Effect.gen(function*() {
      yield* Allm.chat("hi")

      assert.deepStrictEqual((yield* onlyRequest).messages, [Message.user("hi")])
    }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))

  it.effect("may be messages", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat(messages)

      assert.deepStrictEqual((yield* onlyRequest).messages, messages)
      assert.deepStrictEqual(result.thread.messages.slice(0, 2), messages)
      assert.deepStrictEqual(result.thread.metadata, {})
    }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))

  it.effect("may be a thread, whose metadata stays with it", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat({ ...Thread.make(messages), metadata: { topic: "greeting" } })

      assert.deepStrictEqual((yield* onlyRequest).messages, messages)
      assert.deepStrictEqual(result.thread.metadata, { topic: "greeting" })
    }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))

  it.effect("may be the thread of another chat", () =>
    Effect.gen(function*() {
      const first = yield* Allm.chat("hi")
      const second = yield* Allm.chat(Thread.append(first.thread, Message.user("and?")))

      assert.deepStrictEqual(second.thread.messages.map((message) => message.content), ["hi", "one", "and?", "two"])
    }).pipe(Effect.provide(Fake.engine({ scripts: [says("one"), says("two")] }))))

  it.effect("may be a request, which beats every option", () =>
    Effect.gen(function*() {
      const request = Request.make({
        messages,
        tools: [Tool.declaration(saying("theirs", "request"))],
        model: "request",
        temperature: 0.5,
        maxTokens: 10,
        toolChoice: "none",
        responseFormat: { type: "json_object" },
        options: { seed: 1 },
        metadata: { trace: "t" }
      })
      yield* Allm.chat(request, {
        tools: [saying("own", "call")],
        model: "call",
        temperature: 1,
        maxTokens: 20,
        toolChoice: "auto",
        responseFormat: { type: "text" },
        params: { seed: 2, topK: 3 }
      })

      assert.deepStrictEqual(yield* onlyRequest, { ...request, options: { seed: 1, topK: 3 } })
    }).pipe(Effect.provide(Fake.engine({ model: "engine", script: says("done") }))))

  it.effect("may be a request that leaves the rest to the options", () =>
    Effect.gen(function*() {
      yield* Allm.chat(Request.make({ messages, temperature: 0 }), { model: "call", temperature: 1 })
      const { model, temperature, tools } = yield* onlyRequest

      assert.strictEqual(model, "call")
      assert.strictEqual(temperature, 0)
      assert.deepStrictEqual(tools.map((tool) => tool.name), ["own"])
    }).pipe(Effect.provide(Fake.engine({ tools: [saying("own", "engine")], model: "engine", script: says("done") }))))

  it.effect("may be a request whose tools the engine can run", () =>
    Effect.gen(function*() {
      const own = saying("own", "engine")
      const request = Request.make({ messages, tools: [Tool.declaration(own)] })
      const result = yield* Allm.chat(request, { tools: [own, saying("other", "call")] })

      assert.deepStrictEqual(result.steps[0]?.toolResults.map((message) => message.content), ["engine"])
    }).pipe(Effect.provide(Fake.engine({ scripts: [calls("own"), says("done")] }))))

  const call = ToolCall.make({ id: "c0", name: "own", arguments: {} })
  const asked = Message.assistant("", { toolCalls: [call] })

  for (
    const [what, input, issue] of [
      ["no messages", [], { path: ["messages"], code: "empty" }],
      ["an empty thread", Thread.empty, { path: ["messages"], code: "empty" }],
      ["a tool message without its call", [Message.user("hi"), Message.tool("c0", "ok")], {
        path: ["messages", 1, "toolCallId"],
        code: "unknown_call"
      }],
      ["a call without its answer", [Message.user("hi"), asked, Message.user("and?")], {
        path: ["messages", 1, "toolCalls"],
        code: "unanswered_call"
      }],
      ["a call that is answered twice", [
        Message.user("hi"),
        asked,
        Message.tool("c0", "ok"),
        Message.tool("c0", "ok")
      ], { path: ["messages", 3, "toolCallId"], code: "unknown_call" }]
    ] as const
  ) {
    it.effect(`may not be ${what}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Allm.chat(input))

        assert.strictEqual(error._tag, "ValidationError")
        if (error._tag !== "ValidationError") return
        assert.strictEqual(error.reason, "invalid_thread")
        assert.deepStrictEqual(error.issues.map(({ code, path }) => ({ path, code })), [issue])
        assert.deepStrictEqual(yield* Fake.requests, [])
      }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))
  }

  it.effect("may not be a number", () =>
    Effect.gen(function*() {
      // @ts-expect-error - text, messages, a thread or a request are wanted
      const error = yield* Effect.flip(Allm.chat(42))

      assert.strictEqual(
        error.message,
        "validation failed: invalid_thread (1 error)\n" +
          "- $.thread: write text, a list of messages, a Thread or a Request, not a number"
      )
    }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))
})

describe("the options of a chat", () => {
  it.effect("beat the engine's, which beat the defaults", () =>
    Effect.gen(function*() {
      yield* Allm.chat("hi", { model: "call", params: { seed: 2 } })
      const { maxTokens, model, options, temperature } = yield* onlyRequest

      assert.strictEqual(model, "call")
      assert.strictEqual(temperature, 0.5)
      assert.strictEqual(maxTokens, undefined)
      assert.deepStrictEqual(options, { seed: 2, topK: 3 })
    }).pipe(Effect.provide(
      Fake.engine({ model: "engine", temperature: 0.5, params: { seed: 1, topK: 3 }, script: says("done") })
    )))

  it.effect("that are undefined leave the engine's in place", () =>
    Effect.gen(function*() {
      yield* Allm.chat("hi", { model: undefined, temperature: undefined, params: undefined })
      const { model, options, temperature } = yield* onlyRequest

      assert.deepStrictEqual([model, temperature, options], ["engine", 0.5, { seed: 1 }])
    }).pipe(
      Effect.provide(Fake.engine({ model: "engine", temperature: 0.5, params: { seed: 1 }, script: says("done") }))
    ))

  it.effect("CHAT-45 do not reach the model when they are the loop's", () =>
    Effect.gen(function*() {
      yield* Allm.chat("hi", {
        maxTurns: 3,
        haltWhen: () => false,
        onToolError: "continue",
        toolTimeout: "1 second",
        context: { user: "ada" },
        sessionId: "s0",
        requestId: "r0",
        budget: { maxToolCalls: 9 },
        softLanding: true
      })

      assert.deepStrictEqual(yield* onlyRequest, {
        messages: [Message.user("hi")],
        tools: [],
        options: {},
        metadata: {}
      })
    }).pipe(Effect.provide(Fake.engine({ maxTurns: 4, retry: false, script: says("done") }))))

  it.effect("merge their context into the engine's", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { context: { user: "ada" } })

      assert.deepStrictEqual(result.steps[0]?.toolResults.map((message) => message.content), [
        "{\"tenant\":\"t0\",\"user\":\"ada\"}"
      ])
    }).pipe(Effect.provide(
      Fake.engine({
        tools: [tellContext],
        context: { tenant: "t0", user: "nobody" },
        scripts: [calls("tell"), says("done")]
      })
    )))

  it.effect("replace a tool of the engine in its place, and add others last", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { tools: [saying("c", "call"), saying("a", "call")] })
      const [request] = yield* Fake.requests

      assert.deepStrictEqual(request?.tools.map((tool) => tool.name), ["a", "b", "c"])
      assert.deepStrictEqual(result.steps[0]?.toolResults.map((message) => message.content), ["call"])
    }).pipe(Effect.provide(
      Fake.engine({ tools: [saying("a", "engine"), saying("b", "engine")], scripts: [calls("a"), says("done")] })
    )))

  it.effect("of one call do not stay for the next", () =>
    Effect.gen(function*() {
      yield* Allm.chat("hi", { model: "call", tools: [saying("a", "call")] })
      yield* Allm.chat("hi")
      const requests = yield* Fake.requests

      assert.deepStrictEqual(requests.map(({ model, tools }) => [model, tools.length]), [["call", 1], ["engine", 0]])
    }).pipe(Effect.provide(Fake.engine({ model: "engine", scripts: [says("one"), says("two")] }))))

  it.effect("are refused when there is no such option", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Allm.chat("hi", { maxTurn: 3 } as Allm.Options<never>))

      assert.strictEqual(error._tag, "ValidationError")
      assert.match(error.message, /\$\.maxTurn: there is no such option; the options are model, .*maxTurns, /)
    }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))

  it("are refused by an engine when there is no such option", () => {
    assert.throws(
      () => Engine.layer({ sessionId: "s0" } as Engine.Options<never>),
      /\$\.sessionId: there is no such option/
    )
  })

  it.effect("are refused when the mode is unknown", () =>
    Effect.gen(function*() {
      // @ts-expect-error - "auto" or "manual"
      const error = yield* Effect.flip(Allm.chat("hi", { mode: "fast" }))

      assert.match(error.message, /\$\.mode: write "auto" or "manual", not "fast"/)
    }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))

  it.effect("are refused when they choose a tool that is not there", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Allm.chat("hi", { toolChoice: { tool: "nope" } }))

      assert.match(error.message, /\$\.toolChoice: no tool is named "nope"; write "own"$/)
      assert.deepStrictEqual(yield* Fake.requests, [])
    }).pipe(Effect.provide(Fake.engine({ tools: [saying("own", "engine")], script: says("done") }))))
})
