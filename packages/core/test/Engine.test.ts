import { Adapter, Allm, Engine, Fake, Message, Request, Tool } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"

const hello: Fake.Script = [Fake.text("hi"), Fake.finish("stop")]
const calling = (...names: ReadonlyArray<string>): ReadonlyArray<Fake.Script> => [
  [...names.map((name, index) => Fake.toolCall({ id: `c${index}`, name })), Fake.finish("tool_calls")],
  hello
]

const a = Tool.make("a", { description: "Says a", handler: () => "a" })
const b = Tool.make("b", { description: "Says b", handler: () => "b" })
const otherA = Tool.make("a", { description: "Says A", handler: () => "A" })
const fragile = Tool.make("fragile", { description: "Fails", handler: () => Effect.fail("broken") })

const results = (result: { readonly thread: { readonly messages: ReadonlyArray<Message.Message> } }) =>
  result.thread.messages.flatMap((message) => message.role === "tool" ? [message.content] : [])

const engineOf = <T extends Tool.Any = never>(settings: Engine.Options<T> = {}) =>
  Engine.make(settings).pipe(Effect.provide(Fake.layer({ script: hello })))

/** The request a call of this engine leads to. */
const requestOf = <T extends Tool.Any = never>(
  engine: Engine.Service,
  options?: Allm.Options<T>,
  input: Allm.Input = "hi"
) =>
  Effect.gen(function*() {
    const { adapter, fake } = yield* Fake.make({ script: hello })
    yield* Effect.provideService(Allm.generate(input, options), Engine.Engine, { ...engine, adapter })
    return (yield* fake.requests)[0]!
  })

describe("Engine", () => {
  describe("make", () => {
    it.effect("ENG-01 starts with no tools, no settings, and the adapter in use", () =>
      Effect.gen(function*() {
        const engine = yield* Engine.make()

        assert.deepStrictEqual(engine.tools, [])
        assert.deepStrictEqual(engine.settings, {})
        assert.strictEqual(engine.adapter, yield* Adapter.Adapter)
      }).pipe(Effect.provide(Fake.layer({ script: hello }))))

    it.effect("ENG-01 asks for nothing that nobody set", () =>
      Effect.gen(function*() {
        const request = yield* requestOf(yield* engineOf())

        assert.deepStrictEqual(request, { messages: [Message.user("hi")], tools: [], options: {}, metadata: {} })
      }))

    it.effect("takes eight turns unless told otherwise", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi")

        assert.strictEqual(result.haltedReason, "max_turns")
        assert.strictEqual(result.steps.length, 8)
      }).pipe(Effect.provide(Fake.engine({ tools: [a], respond: () => calling("a")[0]! }))))
  })

  describe("construction fails fast", () => {
    const refusals: ReadonlyArray<readonly [string, object, string]> = [
      ["ENG-02 an unknown option", { modle: "small" }, "$.modle: there is no such option; the options are model, "],
      ["ENG-03 an adapter, which is a service", { adapter: "fake" }, "$.adapter: there is no such option"],
      ["maxTurns 0", { maxTurns: 0 }, "$.maxTurns: write a positive whole number, not 0"],
      ["maxTurns 1.5", { maxTurns: 1.5 }, "$.maxTurns: write a positive whole number, not 1.5"],
      ["an unknown mode", { mode: "auto-manual" }, "$.mode: write \"auto\" or \"manual\", not \"auto-manual\""],
      ["two tools of one name", { tools: [a, otherA] }, "$.tools[1]: two tools are named \"a\"; rename one"],
      ["what is no tool", { tools: [{ name: "a" }] }, "$.tools[0]: write a tool made by Tool.make, not"],
      ["tools that are no list", { tools: a }, "$.tools: write a list of tools made by Tool.make, not"],
      ["an empty model", { model: "" }, "$.model: write a non-empty string, not \"\""],
      ["a temperature of 3", { temperature: 3 }, "$.temperature: write a number from 0 to 2, not 3"],
      ["maxTokens -1", { maxTokens: -1 }, "$.maxTokens: write a positive whole number, not -1"],
      [
        "a tool choice that is none",
        { toolChoice: "always" },
        "$.toolChoice: write \"auto\", \"none\", \"required\" or"
      ],
      ["a response format that is none", { responseFormat: "json" }, "$.responseFormat: write a Schema or"],
      ["params that are no map", { params: [1] }, "$.params: write an object, not"],
      ["params that are no JSON", { params: { seed: 1n } }, "$.params: at $.seed "],
      [
        "a temperature of 3 in params",
        { params: { temperature: 3 } },
        "$.params.temperature: write a number from 0 to 2"
      ],
      ["a context that is no map", { context: "me" }, "$.context: write an object, not"],
      ["a haltWhen that is no function", { haltWhen: true }, "$.haltWhen: write a function (step) => boolean"],
      ["a prepareStep of two parameters", { prepareStep: (x: 0, y: 0) => [x, y] }, "$.prepareStep: write a function"],
      ["an onEvent that is no function", { onEvent: "log" }, "$.onEvent: write a function (event) => Effect.void"],
      ["a policy that is none", { onToolError: "ignore" }, "$.onToolError: write \"continue\", \"halt\" or a function"],
      [
        "a retry that is no schedule",
        { retry: 3 },
        "$.retry: write a Schedule, AdapterError.retrySchedule({ … }) or false"
      ],
      ["a request timeout of 0", { requestTimeout: 0 }, "$.requestTimeout: "],
      ["an idle timeout that is none", { idleTimeout: "soon" }, "$.idleTimeout: "],
      ["a flag that is none", { structuredFinalize: "yes" }, "$.structuredFinalize: write true or false, not \"yes\""],
      ["a budget that is no map", { budget: 3 }, "$.budget: write { maxToolCalls: 20 }, not 3"],
      ["an unknown budget", { budget: { maxMoney: 3 } }, "$.budget.maxMoney: there is no such option; the options are"],
      ["a budget of 0", { budget: { maxTokens: 0 } }, "$.budget.maxTokens: write a positive whole number, not 0"]
    ]

    it.each(refusals)("on %s", (_name, options, sentence) => {
      assert.throws(() => Engine.make(options), sentence)
      assert.throws(() => Engine.layer(options), sentence)
    })

    it("and names every problem at once", () => {
      assert.throws(
        () => Engine.layer({ maxTurns: 0, temperature: 3 }),
        /invalid_options \(2 errors\)\n- \$\.temperature: .*\n- \$\.maxTurns: /
      )
    })

    it("and takes options only", () => {
      assert.throws(() => Engine.layer([] as object), "write options such as { tools: […] }, not ")
    })

    it.effect("and calls refuse the same, as a typed failure", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Allm.generate("hi", { modle: "small" } as object))

        assert.strictEqual(error._tag, "ValidationError")
        assert.include(error.message, "$.modle: there is no such option; the options are model, ")
        assert.deepStrictEqual(yield* Fake.requests, [])
      }).pipe(Effect.provide(Fake.engine({ script: hello }))))
  })

  describe("derived engines", () => {
    const derivations: ReadonlyArray<
      readonly [string, (engine: Engine.Service) => Engine.Service, Partial<Request.Request>]
    > = [
      ["withModel", Engine.withModel("small"), { model: "small" }],
      ["withParams", Engine.withParams({ seed: 7 }), { options: { seed: 7, top: 1 } }],
      ["withSettings", Engine.withSettings({ temperature: 0, maxTokens: 9 }), { temperature: 0, maxTokens: 9 }],
      ["withTools", Engine.withTools([b]), { tools: [Tool.declaration(a), Tool.declaration(b)] }]
    ]

    it.effect.each(derivations)(
      "%s changes the new engine and not the old one",
      ([, derive, expected]) =>
        Effect.gen(function*() {
          const engine = yield* engineOf({ model: "large", params: { top: 1 }, tools: [a] })
          const snapshot = { ...engine, settings: structuredClone(engine.settings), tools: [...engine.tools] }
          const before = yield* requestOf(engine)
          const derived = derive(engine)

          assert.deepStrictEqual({ ...(yield* requestOf(derived)) }, { ...before, ...expected })
          assert.deepStrictEqual(yield* requestOf(engine), before)
          assert.deepStrictEqual(engine, snapshot)
        })
    )

    it.effect("withContext adds to what handlers are given", () =>
      Effect.gen(function*() {
        const look = Tool.make("look", { description: "Shows the context", handler: (_args, { context }) => context })
        const engine = yield* Effect.provide(
          Engine.make({ tools: [look], context: { user: "ada", lang: "en" } }),
          Fake.layer({ respond: (_request, index) => calling("look")[index % 2]! })
        )
        const chat = (using: Engine.Service) =>
          Effect.map(Effect.provideService(Allm.chat("hi", { context: { turn: 1 } }), Engine.Engine, using), results)

        assert.deepStrictEqual(yield* chat(Engine.withContext(engine, { lang: "no" })), [
          "{\"user\":\"ada\",\"lang\":\"no\",\"turn\":1}"
        ])
        assert.deepStrictEqual(yield* chat(engine), ["{\"user\":\"ada\",\"lang\":\"en\",\"turn\":1}"])
      }))

    it.effect("read both ways round", () =>
      Effect.gen(function*() {
        const engine = yield* engineOf({ model: "large" })

        assert.deepStrictEqual(Engine.withModel(engine, "small"), Engine.withModel("small")(engine))
        assert.deepStrictEqual(Engine.withTools(engine, [a]), Engine.withTools([a])(engine))
      }))

    it.effect("refuse what Engine.layer refuses", () =>
      Effect.gen(function*() {
        const engine = yield* engineOf({ tools: [a] })

        assert.throws(() => Engine.withSettings(engine, { maxTurns: 0 }), "$.maxTurns: write a positive whole number")
        assert.throws(() => Engine.withSettings(engine, { modle: "x" } as object), "$.modle: there is no such option")
        assert.throws(() => Engine.withModel(engine, ""), "$.model: write a non-empty string")
        assert.throws(() => Engine.withContext(engine, "me" as unknown as {}), "$.context: write an object")
        assert.throws(() => Engine.withParams(engine, { seed: 1n }), "$.params: at $.seed ")
        assert.throws(() => Engine.withTools(engine, [b, b]), "$.tools[1]: two tools are named \"b\"")
      }))

    it.effect("withSettings does not swallow tools", () =>
      Effect.gen(function*() {
        const engine = yield* engineOf()

        assert.throws(() => Engine.withSettings(engine, { tools: [a] } as object), "$.tools: ")
      }))
  })

  describe("tools", () => {
    it.effect("ENG-05 ENG-06 one of the same name is replaced in its place", () =>
      Effect.gen(function*() {
        const engine = yield* engineOf({ tools: [a, b] })
        const derived = Engine.withTools(engine, [otherA])
        const request = yield* requestOf(engine, { tools: [otherA] })

        assert.deepStrictEqual(derived.tools, [otherA, b])
        assert.deepStrictEqual(request.tools.map(({ description }) => description), ["Says A", "Says b"])
      }))

    it.effect("ENG-07 one of a new name comes last", () =>
      Effect.gen(function*() {
        const engine = yield* engineOf({ tools: [b] })
        const request = yield* requestOf(engine, { tools: [a] })

        assert.deepStrictEqual(request.tools.map(({ name }) => name), ["b", "a"])
      }))

    it.effect("ENG-07 an empty list is the engine's tools", () =>
      Effect.gen(function*() {
        const request = yield* requestOf(yield* engineOf({ tools: [a] }), { tools: [] })

        assert.deepStrictEqual(request.tools.map(({ name }) => name), ["a"])
      }))

    it.effect("the call's tool is the one that runs", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { tools: [otherA] })

        assert.deepStrictEqual(results(result), ["A", "b"])
      }).pipe(Effect.provide(Fake.engine({ tools: [a, b], scripts: calling("a", "b") }))))
  })

  describe("precedence", () => {
    it.effect("ENG-09 a call's model beats the engine's", () =>
      Effect.gen(function*() {
        const engine = yield* engineOf({ model: "large" })

        assert.strictEqual((yield* requestOf(engine, { model: "small" })).model, "small")
        assert.strictEqual((yield* requestOf(engine, { model: undefined })).model, "large")
        assert.strictEqual((yield* requestOf(engine)).model, "large")
      }))

    it.effect("ENG-10 a request's own fields beat both", () =>
      Effect.gen(function*() {
        const input = Request.make({
          messages: [Message.user("hi")],
          model: "request",
          temperature: 1,
          maxTokens: 1,
          options: { seed: 1 },
          metadata: { from: "request" }
        })
        const engine = yield* engineOf({ model: "engine", params: { seed: 3, top: 3 } })
        const request = yield* requestOf(engine, { model: "call", temperature: 2, maxTokens: 2 }, input)

        assert.deepStrictEqual(request, { ...input, options: { seed: 1, top: 3 } })
      }))

    it.effect("ENG-11 ENG-13 ENG-15 params are merged and passed on", () =>
      Effect.gen(function*() {
        const engine = yield* engineOf({ params: { seed: 1, top: 1, temperature: 1, maxTokens: 100 } })
        const request = yield* requestOf(engine, { params: { seed: 2, user: "ada" }, temperature: 0 })

        assert.deepStrictEqual(request.options, { seed: 2, top: 1, user: "ada" })
        assert.deepStrictEqual([request.temperature, request.maxTokens], [0, 100])
      }))

    it.effect("ENG-11 settings of the loop do not reach the provider", () =>
      Effect.gen(function*() {
        const engine = yield* engineOf({ maxTurns: 3, toolTimeout: "1 second", haltWhen: () => true })
        const request = yield* requestOf(engine, { onEvent: () => {}, concurrency: 2 })

        assert.deepStrictEqual(request, { messages: [Message.user("hi")], tools: [], options: {}, metadata: {} })
      }))

    it.effect("a call's settings beat the engine's, one by one", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { maxTurns: 1 })

        assert.deepStrictEqual([result.haltedReason, result.metadata["maxTurns"]], ["max_turns", 1])
        assert.deepStrictEqual(results(result), ["{\"error\":\"broken\"}"])
      }).pipe(Effect.provide(Fake.engine({
        tools: [fragile],
        maxTurns: 5,
        onToolError: "continue",
        scripts: calling("fragile")
      }))))
  })

  describe("responseFormat", () => {
    it.effect("of a Schema becomes its JSON Schema", () =>
      Effect.gen(function*() {
        const City = Schema.Struct({ name: Schema.String }).annotations({ identifier: "City" })
        const request = yield* requestOf(yield* engineOf(), { responseFormat: City })

        assert.deepStrictEqual(request.responseFormat?.type === "json_schema" && request.responseFormat.name, "City")
      }))
  })
})
