import {
  Allm,
  Engine,
  Fake,
  type Message,
  OnToolError,
  Tool,
  ToolError,
  ToolExecutor,
  ToolResultEncoder
} from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"

const calling = (...names: ReadonlyArray<string>): ReadonlyArray<Fake.Script> => [
  [...names.map((name, index) => Fake.toolCall({ id: `c${index}`, name })), Fake.finish("tool_calls")],
  [Fake.text("hi"), Fake.finish("stop")]
]

class Who extends Context.Tag("Who")<Who, string>() {}

const who = Tool.make("who", { description: "Says who", handler: () => Who })
const whoElse = Tool.make("who_else", { description: "Says who else", handler: () => Who })
const a = Tool.make("a", { description: "Says a", handler: () => "a" })
const bare = Tool.make("bare", { description: "Has no handler" })
const fragile = Tool.make("fragile", { description: "Fails", handler: () => Effect.fail("broken") })

const results = (result: { readonly thread: { readonly messages: ReadonlyArray<Message.Message> } }) =>
  result.thread.messages.flatMap((message) => message.role === "tool" ? [message.content] : [])

describe("Engine", () => {
  describe("services of tools", () => {
    const Model = Fake.layer({ scripts: calling("who", "who_else") })
    const EngineWithWho = Engine.layer({ tools: [who] }).pipe(
      Layer.provide(Model),
      Layer.provide(Layer.succeed(Who, "engine"))
    )

    it.effect("the engine's tools have what was there when it was built, the call's what is there now", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { tools: [whoElse] })

        assert.deepStrictEqual(results(result), ["engine", "caller"])
      }).pipe(Effect.provideService(Who, "caller"), Effect.provide(EngineWithWho)))

    it.effect("a call's tool of the engine's name has what is there now", () =>
      Effect.gen(function*() {
        const mine = Tool.make("who", {
          description: "Says who",
          handler: () => Effect.map(Who, (name) => `my ${name}`)
        })
        const result = yield* Allm.chat("hi", { tools: [mine, whoElse] })

        assert.deepStrictEqual(results(result), ["my caller", "caller"])
      }).pipe(Effect.provideService(Who, "caller"), Effect.provide(EngineWithWho)))

    it.effect("a tool given again with the call has what is there now", () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { tools: [who, whoElse] })

        assert.deepStrictEqual(results(result), ["caller", "caller"])
      }).pipe(Effect.provideService(Who, "caller"), Effect.provide(EngineWithWho)))

    it.effect("of derived engines are what the first engine was given for its tools", () =>
      Effect.gen(function*() {
        const engine = yield* Engine.make({ tools: [who] }).pipe(
          Effect.provideService(Who, "engine"),
          Effect.provide(Fake.layer({ scripts: calling("who", "a") }))
        )
        const derived = Engine.withTools(Engine.withModel(engine, "small"), [a])
        const result = yield* Effect.provideService(Allm.chat("hi"), Engine.Engine, derived)

        assert.deepStrictEqual(results(result), ["engine", "a"])
      }))

    it.effect("finalizers of the engine's services wait for the layer, not for the call", () =>
      Effect.gen(function*() {
        const log: Array<string> = []
        const Service = Layer.scoped(
          Who,
          Effect.acquireRelease(
            Effect.sync(() => {
              log.push("opened")
              return "engine"
            }),
            () => Effect.sync(() => log.push("closed"))
          )
        )
        yield* Effect.gen(function*() {
          yield* Allm.chat("hi")
          log.push("chatted")
        }).pipe(
          Effect.provide(
            Engine.layer({ tools: [who] }).pipe(
              Layer.provide(Service),
              Layer.provide(Fake.layer({ scripts: calling("who") }))
            )
          )
        )

        assert.deepStrictEqual(log, ["opened", "chatted", "closed"])
      }))
  })

  describe("services of functions", () => {
    const given = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
      options: Engine.Options<T, RE, RH, RP, RO>,
      scripts: ReadonlyArray<Fake.Script>
    ) => Engine.layer(options).pipe(Layer.provide(Fake.layer({ scripts })))

    const seen = () => {
      const names: Array<string> = []
      return { names, see: Effect.map(Who, (name) => void names.push(name)) }
    }

    it.effect("the engine's haltWhen, prepareStep, onEvent and onToolError have what was there when it was built", () =>
      Effect.gen(function*() {
        const halt = seen()
        const prepare = seen()
        const event = seen()
        const policy = seen()
        yield* Allm.chat("hi").pipe(
          Effect.provide(
            given({
              tools: [fragile],
              haltWhen: () => Effect.as(halt.see, false),
              prepareStep: () => prepare.see,
              onEvent: (told) => told._tag === "MessageStarted" ? event.see : Effect.void,
              onToolError: () => Effect.as(policy.see, OnToolError.continue())
            }, calling("fragile")).pipe(Layer.provide(Layer.succeed(Who, "engine")))
          )
        )

        assert.deepStrictEqual(halt.names, ["engine"])
        assert.deepStrictEqual(prepare.names, ["engine", "engine"])
        assert.deepStrictEqual(event.names, ["engine", "engine"])
        assert.deepStrictEqual(policy.names, ["engine"])
      }))

    const callbacks = ["haltWhen", "prepareStep", "onEvent", "onToolError"] as const

    it.effect.each(callbacks)(
      "the engine's %s keeps them when the caller has another",
      (callback) =>
        Effect.gen(function*() {
          const { names, see } = seen()
          const functions = {
            haltWhen: () => Effect.as(see, false),
            prepareStep: () => see,
            onEvent: () => see,
            onToolError: () => Effect.as(see, OnToolError.continue())
          }
          yield* Allm.chat("hi").pipe(
            Effect.provideService(Who, "caller"),
            Effect.provide(
              given<typeof fragile, Who, Who, Who, Who>(
                { tools: [fragile], [callback]: functions[callback] },
                calling("fragile")
              ).pipe(Layer.provide(Layer.succeed(Who, "engine")))
            )
          )

          assert.deepStrictEqual([...new Set(names)], ["engine"])
        })
    )

    it.effect.each(callbacks)("the call's %s has the caller's", (callback) =>
      Effect.gen(function*() {
        const { names, see } = seen()
        const functions = {
          haltWhen: () => Effect.as(see, false),
          prepareStep: () => see,
          onEvent: () => see,
          onToolError: () => Effect.as(see, OnToolError.continue())
        }
        yield* Allm.chat<typeof fragile, Who, Who, Who, Who>("hi", {
          tools: [fragile],
          [callback]: functions[callback]
        }).pipe(
          Effect.provideService(Who, "caller"),
          Effect.provide(
            given({ tools: [who] }, calling("fragile")).pipe(Layer.provide(Layer.succeed(Who, "engine")))
          )
        )

        assert.deepStrictEqual([...new Set(names)], ["caller"])
      }))

    it.effect("the engine's onToolError keeps them for a tool of the call", () =>
      Effect.gen(function*() {
        const { names, see } = seen()
        yield* Allm.chat("hi", { tools: [fragile] }).pipe(
          Effect.provideService(Who, "caller"),
          Effect.provide(
            given({ onToolError: () => Effect.as(see, OnToolError.continue()) }, calling("fragile")).pipe(
              Layer.provide(Layer.succeed(Who, "engine"))
            )
          )
        )

        assert.deepStrictEqual(names, ["engine"])
      }))

    it.effect("the call's onToolError has the caller's for a tool of the engine", () =>
      Effect.gen(function*() {
        const { names, see } = seen()
        yield* Allm.chat("hi", { onToolError: () => Effect.as(see, OnToolError.continue()) }).pipe(
          Effect.provideService(Who, "caller"),
          Effect.provide(
            given({ tools: [fragile, who] }, calling("fragile")).pipe(Layer.provide(Layer.succeed(Who, "engine")))
          )
        )

        assert.deepStrictEqual(names, ["caller"])
      }))
  })

  describe("executor and encoder", () => {
    const Executor = (answer: string) => ToolExecutor.layerHandlers({ bare: () => answer })
    const Encoder = (sign: string) =>
      ToolResultEncoder.layer({
        encode: (value) =>
          typeof value === "string"
            ? Effect.succeed(sign + value)
            : Effect.fail(new ToolError.EncodingFailed({ path: [], detail: "no text" }))
      })
    const withLayer = (given: Layer.Layer<never>) =>
      Engine.layer({ tools: [bare, a] }).pipe(
        Layer.provide(Fake.layer({ scripts: calling("bare", "a") })),
        Layer.provide(given)
      )

    it.effect("given to the engine are used by its calls", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(results(yield* Allm.chat("hi")), ["e:engine", "e:a"])
      }).pipe(Effect.provide(withLayer(Layer.merge(Executor("engine"), Encoder("e:"))))))

    it.effect("given to the call beat the engine's", () =>
      Effect.gen(function*() {
        const result = yield* Effect.provide(Allm.chat("hi"), Layer.merge(Executor("call"), Encoder("c:")))

        assert.deepStrictEqual(results(result), ["c:call", "c:a"])
      }).pipe(Effect.provide(withLayer(Layer.merge(Executor("engine"), Encoder("e:"))))))

    it.effect("given to the call alone are used", () =>
      Effect.gen(function*() {
        const result = yield* Effect.provide(Allm.chat("hi"), Executor("call"))

        assert.deepStrictEqual(results(result), ["call", "a"])
      }).pipe(Effect.provide(withLayer(Layer.empty))))
  })
})
