import { Allm, type Engine, Fake, Message, Tool } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Deferred, Effect, Exit, Fiber, Layer, Schema, Stream } from "effect"

const call = (id: string, name: string, args: unknown = {}) => Fake.toolCall({ id, name, arguments: args })
const asks = (...calls: ReadonlyArray<Fake.Entry>): Fake.Script => [...calls, Fake.finish("tool_calls")]
const says = (text: string): Fake.Script => [Fake.text(text), Fake.finish("stop")]

const ping = Tool.make("ping", { description: "Answers", handler: () => "pong" })
const clock = Tool.make("clock", { description: "Tells the time", handler: () => "noon" })

/** Two turns: one call of `ping`, then text. */
const twoTurns: Fake.Options & { readonly tools: ReadonlyArray<typeof ping | typeof clock> } = {
  scripts: [asks(call("c0", "ping")), says("done")],
  tools: [ping, clock]
}

class Planner extends Context.Tag("test/Planner")<Planner, { readonly model: string }>() {}

describe("prepareStep", () => {
  describe("is told", () => {
    it.effect("the index, the thread and the steps before each step", () =>
      Effect.gen(function*() {
        const seen: Array<Engine.StepInfo> = []
        const result = yield* Allm.chat("hi", { prepareStep: (info) => void seen.push(info) })

        assert.deepStrictEqual(seen.map(({ stepIndex }) => stepIndex), [0, 1])
        assert.deepStrictEqual(seen.map(({ thread }) => thread.messages.length), [1, 3])
        assert.deepStrictEqual(seen.map(({ steps }) => steps), [[], [result.steps[0]!]])
        assert.strictEqual(result.haltedReason, "completed")
      }).pipe(Effect.provide(Fake.engine(twoTurns))))

    it.effect("in a single step too", () =>
      Effect.gen(function*() {
        yield* Allm.step("hi", { prepareStep: ({ stepIndex }) => ({ model: `model ${stepIndex}` }) })
        const [request] = yield* Fake.requests

        assert.strictEqual(request?.model, "model 0")
      }).pipe(Effect.provide(Fake.engine(twoTurns))))

    it.effect("in a stream too", () =>
      Effect.gen(function*() {
        yield* Stream.runDrain(Allm.stream("hi", { prepareStep: ({ stepIndex }) => ({ model: `model ${stepIndex}` }) }))

        assert.deepStrictEqual((yield* Fake.requests).map(({ model }) => model), ["model 0", "model 1"])
      }).pipe(Effect.provide(Fake.engine(twoTurns))))
  })

  describe("changes, for one step,", () => {
    const changing = (changes: Engine.StepChanges) =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", {
          model: "large",
          temperature: 1,
          maxTokens: 1000,
          toolChoice: "auto",
          prepareStep: ({ stepIndex }) => stepIndex === 0 ? changes : undefined
        })
        const [first, second] = yield* Fake.requests
        return { result, first: first!, second: second! }
      }).pipe(Effect.provide(Fake.engine(twoTurns)))

    const unchanged = { model: "large", temperature: 1, maxTokens: 1000, toolChoice: "auto" as const }

    it.effect("the model", () =>
      Effect.gen(function*() {
        const { first, second } = yield* changing({ model: "small" })

        assert.deepInclude(first, { ...unchanged, model: "small" })
        assert.deepInclude(second, unchanged)
      }))

    it.effect("the temperature, also to 0", () =>
      Effect.gen(function*() {
        const { first, second } = yield* changing({ temperature: 0 })

        assert.deepInclude(first, { ...unchanged, temperature: 0 })
        assert.deepInclude(second, unchanged)
      }))

    it.effect("the limit of tokens", () =>
      Effect.gen(function*() {
        const { first, second } = yield* changing({ maxTokens: 7 })

        assert.deepInclude(first, { ...unchanged, maxTokens: 7 })
        assert.deepInclude(second, unchanged)
      }))

    it.effect("the choice of tools", () =>
      Effect.gen(function*() {
        const { first, second } = yield* changing({ toolChoice: { tool: "ping" } })

        assert.deepInclude(first, { ...unchanged, toolChoice: { tool: "ping" } })
        assert.deepInclude(second, unchanged)
      }))

    it.effect("the tools the model may use", () =>
      Effect.gen(function*() {
        const { first, second } = yield* changing({ activeTools: ["ping"] })

        assert.deepStrictEqual(first.tools.map(({ name }) => name), ["ping"])
        assert.deepStrictEqual(second.tools.map(({ name }) => name), ["ping", "clock"])
      }))

    it.effect("what the model reads, not what was said", () =>
      Effect.gen(function*() {
        const { first, result, second } = yield* changing({ messages: [Message.user("in short: hi")] })

        assert.deepStrictEqual(first.messages, [Message.user("in short: hi")])
        assert.deepStrictEqual(second.messages[0], Message.user("hi"))
        assert.deepStrictEqual(result.thread.messages.map(({ content }) => content), ["hi", "", "pong", "done"])
      }))

    it.effect("nothing, if it gives nothing", () =>
      Effect.gen(function*() {
        const { first, second } = yield* changing({})

        assert.deepInclude(first, unchanged)
        assert.deepInclude(second, unchanged)
      }))

    it.effect("nothing that it leaves undefined", () =>
      Effect.gen(function*() {
        const { first } = yield* changing({
          model: undefined,
          messages: undefined,
          activeTools: undefined,
          toolChoice: undefined,
          temperature: undefined,
          maxTokens: undefined
        })

        assert.deepInclude(first, unchanged)
        assert.deepStrictEqual(first.messages, [Message.user("hi")])
        assert.strictEqual(first.tools.length, 2)
      }))
  })

  it.effect("takes away all tools with an empty list", () =>
    Effect.gen(function*() {
      yield* Allm.step("hi", { prepareStep: () => ({ activeTools: [] }) })
      const [request] = yield* Fake.requests

      assert.deepStrictEqual(request?.tools, [])
    }).pipe(Effect.provide(Fake.engine({ script: says("hello"), tools: [ping, clock] }))))

  it.effect("keeps a tool it took away from running, though the model calls it", () =>
    Effect.gen(function*() {
      const step = Allm.step("hi", { prepareStep: () => ({ activeTools: ["clock"] }) })
      const error = yield* Effect.flip(Effect.asVoid(step))

      assert(error._tag === "UnknownTool")
      assert.strictEqual(error.toolName, "ping")
      assert.deepStrictEqual(error.available, ["clock"])
    }).pipe(Effect.provide(Fake.engine(twoTurns))))

  it.effect("changes the last word of a structured answer too, but gives it no tools", () =>
    Effect.gen(function*() {
      yield* Allm.chat("hi", {
        responseFormat: Schema.Struct({ city: Schema.String }),
        structuredFinalize: true,
        prepareStep: ({ stepIndex }) => ({ model: `model ${stepIndex}`, activeTools: ["ping"], toolChoice: "required" })
      })
      const last = (yield* Fake.requests).at(-1)

      assert.strictEqual(last?.model, "model 1")
      assert.deepStrictEqual(last?.tools, [])
      assert.isFalse("toolChoice" in last!)
    }).pipe(Effect.provide(Fake.engine({
      scripts: [says("Oslo"), says("{\"city\":\"Oslo\"}")],
      tools: [ping, clock]
    }))))

  describe("as an Effect", () => {
    it.effect("may take its time", () =>
      Effect.gen(function*() {
        const ready = yield* Deferred.make<string>()
        const fiber = yield* Effect.fork(Allm.step("hi", {
          prepareStep: () => Effect.map(Deferred.await(ready), (model) => ({ model }))
        }))
        yield* Effect.yieldNow()
        assert.deepStrictEqual(yield* Fake.requests, [])

        yield* Deferred.succeed(ready, "small")
        yield* Fiber.join(fiber)
        assert.strictEqual((yield* Fake.requests)[0]?.model, "small")
      }).pipe(Effect.provide(Fake.engine(twoTurns))))

    it.effect("takes the services of the call", () =>
      Effect.gen(function*() {
        yield* Allm.step("hi", { prepareStep: () => Effect.map(Planner, ({ model }) => ({ model })) })

        assert.strictEqual((yield* Fake.requests)[0]?.model, "planned")
      }).pipe(
        Effect.provide(Fake.engine(twoTurns)),
        Effect.provideService(Planner, { model: "planned" })
      ))

    it.effect("takes the services its engine was built with", () =>
      Effect.gen(function*() {
        yield* Allm.step("hi")

        assert.strictEqual((yield* Fake.requests)[0]?.model, "planned")
      }).pipe(Effect.provide(
        Fake.engine({ ...twoTurns, prepareStep: () => Effect.map(Planner, ({ model }) => ({ model })) }).pipe(
          Layer.provide(Layer.succeed(Planner, { model: "planned" }))
        )
      )))

    it.effect("stops when the chat is interrupted", () =>
      Effect.gen(function*() {
        const started = yield* Deferred.make<void>()
        let stopped = 0
        const fiber = yield* Effect.fork(Allm.chat("hi", {
          prepareStep: () =>
            Effect.zipRight(Deferred.succeed(started, undefined), Effect.never).pipe(
              Effect.onInterrupt(() => Effect.sync(() => stopped++))
            )
        }))
        yield* Deferred.await(started)
        const exit = yield* Fiber.interrupt(fiber)

        assert.isTrue(Exit.isInterrupted(exit))
        assert.strictEqual(stopped, 1)
      }).pipe(Effect.provide(Fake.engine(twoTurns))))
  })

  it.effect("of a call replaces that of its engine", () =>
    Effect.gen(function*() {
      yield* Allm.step("hi", { prepareStep: () => ({ model: "call's" }) })

      assert.strictEqual((yield* Fake.requests)[0]?.model, "call's")
    }).pipe(Effect.provide(Fake.engine({ ...twoTurns, prepareStep: () => ({ model: "engine's" }) }))))

  describe("that misbehaves", () => {
    const failing = (prepareStep: (info: Engine.StepInfo) => Engine.StepChanges) =>
      Effect.flip(Effect.asVoid(Allm.chat("hi", { prepareStep })))

    it.effect("fails the chat when it throws, and keeps what was said before", () =>
      Effect.gen(function*() {
        const error = yield* failing(({ stepIndex }) => {
          if (stepIndex === 1) throw new Error("no plan")
          return {}
        })

        assert(error._tag === "CallbackFailed")
        assert.strictEqual(error.callback, "prepareStep")
        assert.strictEqual(error.message, "prepareStep failed; the chat so far is in `result`")
        assert.strictEqual(error.result.haltedReason, "error")
        assert.strictEqual(error.result.steps.length, 1)
        assert.deepStrictEqual(error.result.thread.messages.map(({ content }) => content), ["hi", "", "pong"])
        assert.strictEqual((yield* Fake.requests).length, 1)
      }).pipe(Effect.provide(Fake.engine(twoTurns))))

    it.effect("keeps what it threw for operators", () =>
      Effect.gen(function*() {
        const thrown = new Error("no plan")
        const error = yield* failing(() => {
          throw thrown
        })

        assert(error._tag === "CallbackFailed")
        assert.deepStrictEqual(error.cause, Cause.die(thrown))
        assert.deepStrictEqual(error.result.thread.messages, [Message.user("hi")])
        assert.deepStrictEqual(error.result.steps, [])
      }).pipe(Effect.provide(Fake.engine(twoTurns))))

    it.effect("fails the chat when its Effect fails", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Allm.chat("hi", { prepareStep: () => Effect.fail("no plan") }))

        assert(error._tag === "CallbackFailed")
        assert.deepStrictEqual(error.cause, Cause.fail("no plan"))
        assert.deepStrictEqual(yield* Fake.requests, [])
      }).pipe(Effect.provide(Fake.engine(twoTurns))))

    it.effect("fails a single step the same way", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Allm.step("hi", { prepareStep: () => Effect.fail("no plan") }))

        assert.strictEqual(error._tag, "CallbackFailed")
      }).pipe(Effect.provide(Fake.engine(twoTurns))))

    it.effect("fails a stream after the events of the steps before", () =>
      Effect.gen(function*() {
        const tags: Array<string> = []
        const error = yield* Allm.stream("hi", {
          prepareStep: ({ stepIndex }) => stepIndex === 1 ? Effect.fail("no plan") : Effect.void
        }).pipe(Stream.runForEach(({ _tag }) => Effect.sync(() => tags.push(_tag))), Effect.flip)

        assert.strictEqual(error._tag, "CallbackFailed")
        assert.strictEqual(tags.at(-1), "StepCompleted")
        assert.notInclude(tags, "ChatCompleted")
      }).pipe(Effect.provide(Fake.engine(twoTurns))))

    it.effect("fails the chat when it gives something else than changes", () =>
      Effect.gen(function*() {
        const error = yield* failing(() => "small" as never)

        assert.strictEqual(
          error.message,
          "prepareStep gave a string instead of changes; the chat so far is in `result`"
        )
      }).pipe(Effect.provide(Fake.engine(twoTurns))))

    it.effect.each<[string, unknown]>([
      ["a change it does not know", { modle: "small" }],
      ["an empty model", { model: "" }],
      ["a temperature in words", { temperature: "hot" }],
      ["a temperature out of range", { temperature: 3 }],
      ["a limit of no tokens", { maxTokens: 0 }],
      ["a toolChoice it does not know", { toolChoice: "sometimes" }],
      ["a toolChoice that names no tool", { toolChoice: { tool: "missing" } }],
      ["text as messages", { messages: "hi" }],
      ["no messages", { messages: [] }],
      ["messages with an unknown role", { messages: [{ role: "robot", content: "hi" }] }],
      ["a name as active tools", { activeTools: "ping" }],
      ["a number as active tools", { activeTools: 5 }]
    ])("fails the chat when it gives %s, and the model is not asked", ([, changes]) =>
      Effect.gen(function*() {
        const error = yield* failing(() => changes as never)

        assert(error._tag === "CallbackFailed")
        assert.strictEqual(error.callback, "prepareStep")
        assert.deepStrictEqual(error.result.thread.messages, [Message.user("hi")])
        assert.deepStrictEqual(yield* Fake.requests, [])
      }).pipe(Effect.provide(Fake.engine(twoTurns))))

    it.effect("is refused when it is no function", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Allm.chat("hi", { prepareStep: { model: "small" } as never }))

        assert.strictEqual(
          error.message,
          "validation failed: invalid_options (1 error)\n" +
            "- $.prepareStep: write a function (info) => changes of one parameter, not an object"
        )
      }).pipe(Effect.provide(Fake.engine(twoTurns))))
  })
})
