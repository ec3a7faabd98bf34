import { Allm, Fake, Tool, ToolCall, ToolContext, ToolResult, ToolRunner } from "@allm/core"
import { EffectAi } from "@allm/effect-ai"
import { AiError, LanguageModel, Tool as AiTool, Toolkit } from "@effect/ai"
import { AnthropicTool } from "@effect/ai-anthropic"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Schema, TestClock, Tracer } from "effect"

class Stations extends Context.Tag("Stations")<Stations, { readonly has: (city: string) => boolean }>() {}
class Unit extends Context.Tag("Unit")<Unit, "C" | "F">() {}

class NoStation extends Schema.TaggedError<NoStation>()("NoStation", { city: Schema.String }) {}

const GetWeather = AiTool.make("GetWeather", {
  description: "Current weather of a city",
  parameters: { city: Schema.NonEmptyString, since: Schema.optional(Schema.DateFromString) },
  success: Schema.Struct({ sky: Schema.String, at: Schema.Date }),
  failure: NoStation,
  failureMode: "return",
  dependencies: [Unit]
})
const Now = AiTool.make("Now", { success: Schema.String }).annotate(AiTool.Readonly, true)
const Launch = AiTool.make("Launch", { failure: Schema.String }).annotate(AiTool.Idempotent, true)
const Crash = AiTool.make("Crash", { success: Schema.Number })

const toolkit = Toolkit.make(GetWeather, Now, Launch, Crash)

const Handlers = toolkit.toLayer(Effect.gen(function*() {
  const stations = yield* Stations
  return {
    GetWeather: ({ city, since }) =>
      Effect.flatMap(Unit, (unit) =>
        stations.has(city)
          ? Effect.succeed({ sky: `clear, ${unit}`, at: since ?? new Date(0) })
          : Effect.fail(new NoStation({ city }))),
    Now: () => Effect.succeed("noon"),
    Launch: () => Effect.fail("no fuel"),
    Crash: () => Effect.dieMessage("secret")
  }
})).pipe(Layer.provide(Layer.succeed(Stations, { has: (city) => city === "Oslo" })))

const Services = Layer.merge(Handlers, Layer.succeed(Unit, "C"))

const call = (id: string, name: string, args: unknown = {}) => ToolCall.make({ id, name, arguments: args })

const contents = ({ messages }: ToolRunner.RunResult) => messages.map(({ content, isError }) => [content, isError])

const calls = [
  call("c0", "GetWeather", { city: "Oslo", since: "2026-01-01T00:00:00.000Z" }),
  call("c1", "GetWeather", { city: "Atlantis" }),
  call("c2", "GetWeather", { city: "" }),
  call("c3", "Now"),
  call("c4", "Launch"),
  call("c5", "Crash")
]

const expected = [
  ["{\"sky\":\"clear, C\",\"at\":\"2026-01-01T00:00:00.000Z\"}", false],
  ["{\"error\":{\"city\":\"Atlantis\",\"_tag\":\"NoStation\"}}", true],
  [
    "{\"error\":\"tool error (GetWeather): invalid_arguments\",\"issues\":[{\"path\":[\"city\"],\"message\":\"Expected a non empty string, actual \\\"\\\"\"}]}",
    true
  ],
  ["noon", false],
  ["{\"error\":\"no fuel\"}", true],
  ["{\"error\":\"tool error (Crash): handler_raised\"}", true]
]

describe("EffectAi.fromToolkit", () => {
  it.effect("runs the handlers of a toolkit with what they need", () =>
    Effect.gen(function*() {
      const run = yield* ToolRunner.run(calls, EffectAi.fromToolkit(toolkit))

      assert.deepStrictEqual(contents(run), expected)
      const failed = run.outcomes[1]?.result
      assert(failed?._tag === "HandlerFailed")
      assert.deepStrictEqual(failed.failure, new NoStation({ city: "Atlantis" }))
    }).pipe(Effect.provide(Services)))

  it.effect("lets a handler find what its layer was built with, unless the call brings another", () =>
    Effect.gen(function*() {
      const run = ToolRunner.run([call("c0", "GetWeather", { city: "Oslo" })], EffectAi.fromToolkit(toolkit)).pipe(
        Effect.map(({ messages }) => messages[0]?.content ?? ""),
        Effect.provide(Layer.provide(Handlers, Layer.succeed(Unit, "F")))
      )
      // The type asks for the unit in either case.
      const nothing = Context.empty() as Context.Context<Unit>

      assert.match(yield* Effect.provide(run, nothing), /clear, F/)
      assert.match(yield* Effect.provideService(run, Unit, "C"), /clear, C/)
    }))

  it.effect("runs a toolkit that is already provided", () =>
    Effect.gen(function*() {
      const run = yield* ToolRunner.run(calls, EffectAi.fromToolkit(yield* toolkit))

      assert.deepStrictEqual(contents(run), expected)
    }).pipe(Effect.provide(Services)))

  it("declares what theirs declares", () => {
    const declared = EffectAi.fromToolkit(toolkit).map(Tool.declaration)

    assert.deepStrictEqual(declared.map(({ description, name, replay }) => [name, description, replay]), [
      ["GetWeather", "Current weather of a city", "never"],
      ["Now", "", "readonly"],
      ["Launch", "", "idempotent"],
      ["Crash", "", "never"]
    ])
    assert.deepStrictEqual(declared[0]?.inputSchema["required"], ["city"])
    assert.deepStrictEqual(declared[1]?.inputSchema, {
      type: "object",
      properties: {},
      required: [],
      additionalProperties: false
    })
  })

  it.effect("takes tagged requests as tools", () =>
    Effect.gen(function*() {
      class Double extends Schema.TaggedRequest<Double>()("Double", {
        payload: { n: Schema.Number },
        success: Schema.Number,
        failure: Schema.Never
      }) {}
      const requests = Toolkit.make(AiTool.fromTaggedRequest(Double))
      const run = yield* ToolRunner.run(
        [call("c0", "Double", { _tag: "Double", n: 21 })],
        EffectAi.fromToolkit(requests)
      ).pipe(Effect.provide(requests.toLayer({ Double: ({ n }) => Effect.succeed(n * 2) })))

      assert.strictEqual(run.messages[0]?.content, "42")
    }))

  it.effect("gives its tools what only tools here have", () =>
    Effect.gen(function*() {
      const Slow = AiTool.make("Slow")
      const slow = Toolkit.make(Slow)
      const tools = EffectAi.fromToolkit(slow, { Slow: { timeout: "2 seconds", exclusive: true } })
      const fiber = yield* ToolRunner.run([call("c0", "Slow")], tools).pipe(
        Effect.provide(slow.toLayer({ Slow: () => Effect.never })),
        Effect.fork
      )
      yield* TestClock.adjust("2 seconds")

      assert.strictEqual((yield* Fiber.join(fiber)).outcomes[0]?.result._tag, "Timeout")
      assert.strictEqual(tools[0]?.exclusive, true)
    }))

  it.effect("lets handlers know their call", () =>
    Effect.gen(function*() {
      const Who = AiTool.make("Who", { success: Schema.String, dependencies: [ToolContext.ToolContext] })
      const who = Toolkit.make(Who)
      const run = yield* ToolRunner.run([call("c7", "Who")], EffectAi.fromToolkit(who)).pipe(
        Effect.provide(who.toLayer({
          Who: () => Effect.map(ToolContext.ToolContext, ({ toolCall }) => toolCall.id)
        }))
      )

      assert.strictEqual(run.messages[0]?.content, "c7")
    }))

  it("leaves out what a provider runs, and keeps what it only defines", () => {
    const provided = Toolkit.make(AnthropicTool.WebSearch_20250305({}), AnthropicTool.Bash_20250124({}))

    assert.deepStrictEqual(EffectAi.fromToolkit(provided).map(({ name }) => name), ["AnthropicBash"])
  })

  it.effect("tells no value of a call to the spans", () =>
    Effect.gen(function*() {
      const spans: Array<Tracer.Span> = []
      const tracer = Tracer.make({
        span: (...args) => {
          const span = new Tracer_(args)
          spans.push(span)
          return span
        },
        context: (run) => run()
      })
      yield* ToolRunner.run([call("c0", "GetWeather", { city: "Oslo" })], EffectAi.fromToolkit(toolkit)).pipe(
        Effect.withTracer(tracer)
      )

      assert.isFalse(
        spans.some((span) => [...span.attributes.values()].some((value) => String(value).includes("Oslo")))
      )
    }).pipe(Effect.provide(Services)))

  it.effect("takes a crash for what it is when theirs calls it a malformed result", () =>
    Effect.gen(function*() {
      const Lie = AiTool.make("Lie", { success: Schema.Number })
      const lie = Toolkit.make(Lie)
      const Lies = lie.toLayer({ Lie: () => Effect.succeed("one" as never) })
      const direct = yield* ToolRunner.run([call("c0", "Lie")], EffectAi.fromToolkit(lie)).pipe(Effect.provide(Lies))
      const provided = yield* Effect.flatMap(
        lie,
        (kit) => ToolRunner.run([call("c0", "Lie")], EffectAi.fromToolkit(kit))
      ).pipe(Effect.provide(Lies))

      assert.strictEqual(direct.outcomes[0]?.result._tag, "InvalidReturn")
      assert.strictEqual(provided.outcomes[0]?.result._tag, "HandlerRaised")
    }))

  describe("failureModes", () => {
    const chat = (name: string, args: unknown) =>
      Allm.chat("Go", { tools: EffectAi.fromToolkit(toolkit), onToolError: EffectAi.failureModes(toolkit) }).pipe(
        Effect.provide([
          Services,
          Fake.engine({
            scripts: [
              [Fake.toolCall({ id: "c0", name, arguments: args }), Fake.finish("tool_calls")],
              [Fake.text("I see."), Fake.finish("stop")]
            ]
          })
        ])
      )

    it.effect("stops where theirs would fail", () =>
      Effect.gen(function*() {
        const result = yield* chat("Launch", {})

        assert.strictEqual(result.haltedReason, "tool_error")
        assert.strictEqual(result.steps.length, 1)
      }))

    it.effect("goes on where theirs returns the failure", () =>
      Effect.gen(function*() {
        assert.strictEqual((yield* chat("GetWeather", { city: "Atlantis" })).haltedReason, "completed")
      }))

    it.effect("goes on where theirs has no word", () =>
      Effect.gen(function*() {
        assert.strictEqual((yield* chat("Launch", [])).haltedReason, "completed")
        assert.strictEqual((yield* chat("Crash", {})).haltedReason, "completed")
      }))
  })
})

describe("EffectAi.toToolkit", () => {
  const weather = Tool.make("get_weather", {
    description: "Current weather of a city",
    parameters: { city: Schema.String },
    success: Schema.Struct({ at: Schema.Date }),
    failure: NoStation,
    replay: "readonly",
    handler: ({ city }) =>
      Effect.flatMap(
        Stations,
        (stations) => stations.has(city) ? Effect.succeed({ at: new Date(0) }) : Effect.fail(new NoStation({ city }))
      )
  })
  const crash = Tool.make("crash", {
    description: "Throws",
    handler: (): string => {
      throw new Error("secret")
    }
  })
  const ask = Tool.make("ask", { description: "Asks", handler: () => ToolResult.askUser("Which city?") })
  const stop = Tool.make("stop", { description: "Stops", handler: () => ToolResult.halt("done", { ok: true }) })
  const slow = Tool.make("slow", { description: "Never ends", handler: () => Effect.never })
  const danger = Tool.make("danger", { description: "Asks first", needsApproval: true, handler: () => "boom" })
  const manual = Tool.make("manual", { description: "Yours", manual: true })
  const raw = Tool.fromJsonSchema("raw", {
    description: "Takes a raw schema",
    schema: { type: "object", properties: { n: { type: "integer", maximum: 9 } }, "x-own": 1 },
    handler: ({ n }) => n
  })
  const tools = [weather, crash, ask, stop, slow, danger, manual, raw] as const
  const Oslo = Layer.succeed(Stations, { has: (city) => city === "Oslo" })

  const toolkit = EffectAi.toToolkit(tools)

  it("declares what ours declares", () => {
    const theirs = toolkit.tools

    assert.deepStrictEqual(Object.keys(theirs), tools.map(({ name }) => name))
    assert.strictEqual(AiTool.getJsonSchema(theirs.raw), raw.inputSchema as never)
    assert.strictEqual(AiTool.getJsonSchema(theirs.get_weather as never), weather.inputSchema as never)
    assert.strictEqual(AiTool.getDescription(theirs.get_weather as never), "Current weather of a city")
    assert.isTrue(Context.get(theirs.get_weather.annotations, AiTool.Readonly))
    assert.isFalse(Context.get(theirs.crash.annotations, AiTool.Idempotent))
  })

  it.effect("gives a success, decoded and as the model reads it", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* toolkit.handle("get_weather", { city: "Oslo" }), {
        isFailure: false,
        result: { at: new Date(0) },
        encodedResult: { at: "1970-01-01T00:00:00.000Z" }
      })
      assert.deepStrictEqual((yield* toolkit.handle("raw", { n: 3 })).encodedResult, 3)
    }).pipe(Effect.provide(Oslo)))

  it.effect("gives what a handler reported as a failed result", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* toolkit.handle("get_weather", { city: "Atlantis" }), {
        isFailure: true,
        result: new NoStation({ city: "Atlantis" }),
        encodedResult: { error: { city: "Atlantis", _tag: "NoStation" } }
      })
    }).pipe(Effect.provide(Oslo)))

  const failures = [
    ["crash", {}, "HandlerRaised", { error: "tool error (crash): handler_raised" }],
    ["get_weather", { city: 1 }, "InvalidArguments", undefined],
    ["get_weather", "{\"city\":", "InvalidArguments", undefined],
    ["raw", { n: 10 }, "InvalidArguments", undefined],
    ["ask", {}, "AskUser", "<awaiting user response>"],
    ["stop", {}, "Halt", { ok: true }],
    ["danger", {}, "Denied", "tool error (danger): denied: it needs a person's consent, and nobody is asked"],
    [
      "manual",
      {},
      "NotFound",
      "tool error (manual): not_found: the tool is manual; write disableToolCallResolution: true and run its calls yourself"
    ]
  ] as const
  for (const [name, params, tag, encoded] of failures) {
    it.effect(`gives ${tag} of ${name} ${JSON.stringify(params)} as a failed result`, () =>
      Effect.gen(function*() {
        const result = yield* toolkit.handle(name, params as {})

        assert.strictEqual(result.isFailure, true)
        assert.strictEqual((result.result as { readonly _tag?: string })._tag, tag)
        if (encoded !== undefined) assert.deepStrictEqual<unknown>(result.encodedResult, encoded)
      }).pipe(Effect.provide(Oslo)))
  }

  it.effect("keeps limits", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.fork(EffectAi.toToolkit([slow], { toolTimeout: "1 second" }).handle("slow", {}))
      yield* TestClock.adjust("1 second")

      assert.strictEqual((yield* Fiber.join(fiber)).isFailure, true)
    }))

  it.effect("hands the context of the run to handlers", () =>
    Effect.gen(function*() {
      const who = Tool.make("who", {
        description: "Who asks",
        handler: (_params, { context, sessionId }) => [context, sessionId]
      })
      const kit = EffectAi.toToolkit([who], { context: { user: "ada" }, sessionId: "s1" })

      assert.deepStrictEqual((yield* kit.handle("who", {})).encodedResult, [{ user: "ada" }, "s1"])
    }))

  it.effect("fails where it is told to", () =>
    Effect.gen(function*() {
      const kit = EffectAi.toToolkit(tools, { failureMode: "error" })
      const reported = yield* Effect.flip(Effect.asVoid(kit.handle("get_weather", { city: "Atlantis" })))
      const crashed = yield* Effect.flip(Effect.asVoid(kit.handle("crash", {})))

      assert.deepStrictEqual(reported, new NoStation({ city: "Atlantis" }))
      assert.strictEqual(crashed._tag, "HandlerRaised")
    }).pipe(Effect.provide(Oslo)))

  it.effect("fails as theirs does when there is no such tool", () =>
    Effect.gen(function*() {
      const error: unknown = yield* Effect.flip(Effect.asVoid(toolkit.handle("fly" as "raw", {})))

      assert(AiError.isAiError(error) && error._tag === "MalformedOutput")
      assert.match(error.description ?? "", /no tool "fly"; there is get_weather, crash/)
    }))

  it.effect("serves a model of theirs: whatever a tool does, its siblings keep their results", () =>
    Effect.gen(function*() {
      const response = yield* LanguageModel.generateText({ prompt: "Go", toolkit })

      assert.deepStrictEqual(
        response.toolResults.map(({ encodedResult, isFailure, name }) => [name, isFailure, encodedResult]),
        [
          ["get_weather", false, { at: "1970-01-01T00:00:00.000Z" }],
          ["crash", true, { error: "tool error (crash): handler_raised" }],
          ["get_weather", true, {
            error: "tool error (get_weather): invalid_arguments",
            issues: [{ path: ["city"], message: "is missing" }]
          }]
        ]
      )
    }).pipe(Effect.provide([
      Oslo,
      EffectAi.toLanguageModel().pipe(Layer.provide(Fake.layer({
        script: [
          Fake.toolCall({ id: "c0", name: "get_weather", arguments: { city: "Oslo" } }),
          Fake.toolCall({ id: "c1", name: "crash" }),
          Fake.toolCall({ id: "c2", name: "get_weather" }),
          Fake.finish("tool_calls")
        ]
      })))
    ])))

  it.effect("comes back as the tools it was made of", () =>
    Effect.gen(function*() {
      const back = EffectAi.fromToolkit(toolkit)
      const run = yield* ToolRunner.run(
        [
          call("c0", "get_weather", { city: "Oslo" }),
          call("c1", "get_weather", { city: "Atlantis" }),
          call("c2", "raw", { n: 3 })
        ],
        back
      )

      assert.deepStrictEqual(
        back.map(({ description, inputSchema, name }) => ({ description, inputSchema, name })),
        tools.map(({ description, inputSchema, name }) => ({ description, inputSchema, name }))
      )
      assert.deepStrictEqual(contents(run), [
        ["{\"at\":\"1970-01-01T00:00:00.000Z\"}", false],
        ["{\"error\":{\"city\":\"Atlantis\",\"_tag\":\"NoStation\"}}", true],
        ["3", false]
      ])
    }).pipe(Effect.provide(Oslo)))

  it.effect("puts tools of both sides together", () =>
    Effect.gen(function*() {
      const Theirs = Toolkit.make(Now)
      const both = EffectAi.toToolkit([...EffectAi.fromToolkit(Theirs), raw])
      const results = yield* Effect.all([both.handle("Now", {}), both.handle("raw", { n: 1 })]).pipe(
        Effect.provide(Theirs.toLayer({ Now: () => Effect.succeed("noon") }))
      )

      assert.deepStrictEqual(results.map(({ result }) => result), ["noon", 1])
    }))
})

class Tracer_ implements Tracer.Span {
  readonly _tag = "Span"
  readonly name: string
  readonly spanId = "1"
  readonly traceId = "1"
  readonly parent: Tracer.Span["parent"]
  readonly context: Tracer.Span["context"]
  readonly status: Tracer.SpanStatus = { _tag: "Started", startTime: 0n }
  readonly attributes = new Map<string, unknown>()
  readonly links: ReadonlyArray<Tracer.SpanLink> = []
  readonly sampled = true
  readonly kind = "internal"
  constructor([name, parent, context]: Parameters<Tracer.Tracer["span"]>) {
    this.name = name
    this.parent = parent
    this.context = context
  }
  end(): void {}
  attribute(key: string, value: unknown): void {
    this.attributes.set(key, value)
  }
  event(): void {}
  addLinks(): void {}
}
