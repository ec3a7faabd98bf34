import { Tool, ToolCall, ToolContext, ToolError, ToolExecutor, ToolResult, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Effect, Fiber, FiberId, Layer, Option, Schedule, Schema, Scope, TestClock } from "effect"

const description = "Does something"
const toolCall = ToolCall.make({ id: "c0", name: "x", arguments: {} })
const context = ToolContext.make({ toolCall, context: { tenant: "acme" }, sessionId: "s1" })

const tool = (handler: (params: {}, context: ToolContext.Service) => unknown) =>
  Tool.make("x", { description, handler })

const execute = (handler: (params: {}, context: ToolContext.Service) => unknown, args: unknown = {}) =>
  ToolExecutor.handlers.execute(tool(handler), args, context)

const failure = (handler: () => unknown) => Effect.flip(execute(handler))

class Greeting extends Context.Tag("Greeting")<Greeting, string>() {}

describe("ToolExecutor", () => {
  describe("handlers", () => {
    it.effect("EXEC-01 calls the handler with the arguments and gives its value untouched", () =>
      Effect.gen(function*() {
        const echo = Tool.fromJsonSchema("x", { description, schema: { type: "object" }, handler: (args) => args })
        const args = { city: "Oslo" }

        const outcome = yield* ToolExecutor.handlers.execute(echo, args, context)

        assert(outcome._tag === "Ok")
        assert.strictEqual(outcome.value, args)
      }))

    it.effect("EXEC-02 hands over the context exactly as passed", () =>
      Effect.gen(function*() {
        const outcome = yield* execute((_params, given) => given)

        assert(outcome._tag === "Ok")
        assert.strictEqual(outcome.value, context)
      }))

    it.effect("EXEC-04 keeps a reported failure untouched", () =>
      Effect.gen(function*() {
        const reason = { code: 404 }

        const error = yield* failure(() => Effect.fail(reason))

        assert(error._tag === "HandlerFailed")
        assert.strictEqual(error.failure, reason)
        assert.strictEqual(error.reason, "handler_failed")
        assert.strictEqual(error.origin, "handler")
        assert.strictEqual(error.toolName, "x")
        assert.strictEqual(error.toolCallId, "c0")
      }))

    it.effect("EXEC-05 passes a question on", () =>
      Effect.gen(function*() {
        const outcome = yield* execute(() => ToolResult.askUser("Which city?"))

        assert.deepStrictEqual({ ...outcome }, { _tag: "AskUser", question: "Which city?", options: {} })
      }))

    it.effect("EXEC-06 passes a question with options on", () =>
      Effect.gen(function*() {
        const outcome = yield* execute(() => ToolResult.askUser("Which city?", { choices: ["Oslo", "Rome"] }))

        assert.deepStrictEqual({ ...outcome }, {
          _tag: "AskUser",
          question: "Which city?",
          options: { choices: ["Oslo", "Rome"] }
        })
      }))

    it.effect("EXEC-08 turns a throw into HandlerRaised and keeps what was thrown", () =>
      Effect.gen(function*() {
        const boom = new Error("boom")

        const error = yield* failure(() => {
          throw boom
        })

        assert(error._tag === "HandlerRaised")
        assert.deepStrictEqual(error.cause, Cause.die(boom))
        assert.strictEqual(error.reason, "handler_raised")
        assert.strictEqual(error.origin, "executor")
        assert.strictEqual(error.message, "tool error (x): handler_raised")
      }))

    it.effect("EXEC-08 turns a rejection and a defect into HandlerRaised", () =>
      Effect.gen(function*() {
        const boom = new Error("boom")

        const errors = yield* Effect.forEach([() => Promise.reject(boom), () => Effect.die(boom)], failure)

        assert.deepStrictEqual(errors.map(({ _tag, cause }) => ({ _tag, cause })), [
          { _tag: "HandlerRaised", cause: Cause.die(boom) },
          { _tag: "HandlerRaised", cause: Cause.die(boom) }
        ])
      }))

    it.effect("EXEC-09 turns a handler that interrupts itself into HandlerExit", () =>
      Effect.gen(function*() {
        const error = yield* failure(() => Effect.interruptWith(FiberId.none))

        assert(error._tag === "HandlerExit")
        assert.deepStrictEqual(error.cause, Cause.interrupt(FiberId.none))
        assert.strictEqual(error.reason, "handler_exit")
      }))

    it.effect("EXEC-10 turns a throw of anything into HandlerRaised", () =>
      Effect.gen(function*() {
        const errors = yield* Effect.forEach([undefined, null, 5, "text", { odd: true }], (value) =>
          failure(() => {
            throw value
          }))

        assert.deepStrictEqual(errors.map(({ _tag, cause }) => ({ _tag, cause })), [
          { _tag: "HandlerRaised", cause: Cause.die(undefined) },
          { _tag: "HandlerRaised", cause: Cause.die(null) },
          { _tag: "HandlerRaised", cause: Cause.die(5) },
          { _tag: "HandlerRaised", cause: Cause.die("text") },
          { _tag: "HandlerRaised", cause: Cause.die({ odd: true }) }
        ])
      }))

    it.effect("EXEC-12 takes nothing for a success", () =>
      Effect.gen(function*() {
        const outcomes = yield* Effect.forEach(
          [() => {}, () => null, () => Promise.resolve(), () => Effect.void],
          (handler) => execute(handler)
        )

        assert.deepStrictEqual(outcomes.map((outcome) => ({ ...outcome })), [
          { _tag: "Ok", value: undefined },
          { _tag: "Ok", value: null },
          { _tag: "Ok", value: undefined },
          { _tag: "Ok", value: undefined }
        ])
      }))

    it.effect("EXEC-13 refuses a question that is no text", () =>
      Effect.gen(function*() {
        const error = yield* failure(() => ToolResult.askUser(42 as never))

        assert(error._tag === "InvalidReturn")
        assert.strictEqual(error.detail, "a question is a string, not a number")
      }))

    it.effect("EXEC-14 refuses options of a question that are no object", () =>
      Effect.gen(function*() {
        const error = yield* failure(() => ToolResult.askUser("Which?", ["Oslo"] as never))

        assert(error._tag === "InvalidReturn")
        assert.strictEqual(error.detail, "a question's options are an object, not an array")
      }))

    it.effect("EXEC-14 refuses options of a question that cannot wait as plain data", () =>
      Effect.gen(function*() {
        const error = yield* failure(() => ToolResult.askUser("Which?", { pick: () => "Oslo" }))

        assert.strictEqual(error._tag, "InvalidReturn")
      }))

    it.effect("refuses a halt without a reason", () =>
      Effect.gen(function*() {
        const errors = yield* Effect.forEach(["", 5 as never], (reason) => failure(() => ToolResult.halt(reason, 1)))

        assert.deepStrictEqual(errors.map((error) => error._tag === "InvalidReturn" && error.detail), [
          "a halt reason is a non-empty string, not a string",
          "a halt reason is a non-empty string, not a number"
        ])
      }))

    it.effect("refuses a result of a kind there is not", () =>
      Effect.gen(function*() {
        const error = yield* failure(() => ({ [ToolResult.TypeId]: ToolResult.TypeId, _tag: "Maybe" }))

        assert.strictEqual(error._tag, "InvalidReturn")
      }))

    it.effect("EXEC-18 passes a reserved halt reason on: the runner refuses it", () =>
      Effect.gen(function*() {
        const halting = tool(() => ToolResult.halt("completed", 1))

        const outcome = yield* ToolExecutor.handlers.execute(halting, {}, context)
        const { outcomes } = yield* ToolRunner.run([toolCall], [halting])

        assert.deepStrictEqual({ ...outcome }, { _tag: "Halt", reason: "completed", result: 1 })
        const result = outcomes[0]?.result
        assert(result?._tag === "InvalidReturn")
        assert.strictEqual(result.reservedHaltReason, "completed")
      }))

    it.effect("fails with NotFound when the tool has no handler", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(ToolExecutor.handlers.execute(Tool.make("x", { description }), {}, context))

        assert(error._tag === "NotFound")
        assert.strictEqual(error.toolName, "x")
        assert.strictEqual(error.toolCallId, "c0")
        assert.strictEqual(error.detail, "the tool has no handler")
        assert.strictEqual(error.remedy, "give it one, or provide ToolExecutor.layerHandlers")
      }))

    it.effect("never calls the handler with arguments that do not decode", () =>
      Effect.gen(function*() {
        let called = 0
        const strict = Tool.make("x", { description, parameters: { n: Schema.Number }, handler: () => ++called })

        const error = yield* Effect.flip(ToolExecutor.handlers.execute(strict, { n: "one" }, context))

        assert.strictEqual(error._tag, "InvalidArguments")
        assert.strictEqual(called, 0)
      }))

    it.effect("neither retries nor times out: the runner does", () =>
      Effect.gen(function*() {
        let called = 0
        const options = { description, retry: Schedule.recurs(3), timeout: "1 second" } as const
        const failing = Tool.make("x", { ...options, handler: () => Effect.fail(++called) })
        const endless = Tool.make("x", { ...options, handler: () => Effect.never })

        yield* Effect.flip(ToolExecutor.handlers.execute(failing, {}, context))
        const fiber = yield* Effect.fork(ToolExecutor.handlers.execute(endless, {}, context))
        yield* TestClock.adjust("1 hour")

        assert.strictEqual(called, 1)
        assert.deepStrictEqual(yield* Fiber.poll(fiber), Option.none())
      }))

    it.effect("calls the handler when it is run, each time it is run", () =>
      Effect.gen(function*() {
        let called = 0
        const effect = execute(() => ++called)
        assert.strictEqual(called, 0)

        yield* effect
        yield* effect

        assert.strictEqual(called, 2)
      }))
  })

  describe("success schema", () => {
    const at = Tool.make("x", {
      description,
      success: Schema.Struct({ at: Schema.Date }),
      handler: () => ({ at: new Date(0) })
    })

    it.effect("gives the value and the form the model sees", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* ToolExecutor.handlers.execute(at, {}, context), {
          _tag: "Ok",
          value: { at: new Date(0) },
          encoded: { at: "1970-01-01T00:00:00.000Z" }
        })
      }))

    it.effect("refuses a value against it, naming the place and not the value", () =>
      Effect.gen(function*() {
        const wrong = Tool.make("x", {
          description,
          success: Schema.Struct({ user: Schema.Struct({ name: Schema.String }) }),
          handler: () => ({ user: { name: { password: "hunter2" } as unknown as string } })
        })

        const error = yield* Effect.flip(ToolExecutor.handlers.execute(wrong, {}, context))

        assert(error._tag === "InvalidReturn")
        assert.strictEqual(error.detail, "the value does not fit the success schema (see user.name)")
      }))
  })

  describe("layerHandlers", () => {
    const ping = Tool.make("ping", { description })
    const pingCall = ToolCall.make({ id: "c0", name: "ping", arguments: {} })
    const contents = (tools: ReadonlyArray<Tool.Tool<string, {}, unknown, unknown, never>>) =>
      Effect.map(
        ToolRunner.run([pingCall], tools),
        ({ messages }) => messages.map((message) => message.content)
      )

    it.effect("supplies handlers by name", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* contents([ping]), ["pong"])
      }).pipe(Effect.provide(ToolExecutor.layerHandlers({ ping: () => "pong", other: () => "other" }))))

    it.effect("lets a tool's own handler win", () =>
      Effect.gen(function*() {
        const own = Tool.make("ping", { description, handler: () => "own" })

        assert.deepStrictEqual(yield* contents([own]), ["own"])
      }).pipe(Effect.provide(ToolExecutor.layerHandlers({ ping: () => "pong" }))))

    it.effect("decodes arguments and hands over the context as for any handler", () =>
      Effect.gen(function*() {
        const add = Tool.make("x", { description, parameters: { n: Schema.NumberFromString } })
        const { messages } = yield* ToolRunner.run([
          ToolCall.make({ id: "c0", name: "x", arguments: { n: "4" } }),
          ToolCall.make({ id: "c1", name: "x", arguments: { n: 4 } })
        ], [add])

        assert.strictEqual(messages[0]?.content, "c0 5")
        assert.match(messages[1]?.content ?? "", /Expected string, actual 4/)
      }).pipe(Effect.provide(ToolExecutor.layerHandlers({
        x: ({ n }: { readonly n: number }, { toolCall }) => `${toolCall.id} ${n + 1}`
      }))))

    it.effect("fails with NotFound for a name it does not have", () =>
      Effect.gen(function*() {
        const found = yield* Effect.forEach(["ping", "toString", "constructor"], (name) => {
          const tool = Tool.make(name, { description })
          return Effect.map(
            ToolRunner.run([ToolCall.make({ id: "c0", name, arguments: {} })], [tool]),
            ({ outcomes }) => outcomes[0]?.result._tag
          )
        })

        assert.deepStrictEqual(found, ["NotFound", "NotFound", "NotFound"])
      }).pipe(Effect.provide(ToolExecutor.layerHandlers({ other: () => "other" }))))

    it.effect("takes what the handlers need when the layer is built", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* contents([ping]), ["hello"])
      }).pipe(
        Effect.provide(
          ToolExecutor.layerHandlers({ ping: () => Greeting }).pipe(Layer.provide(Layer.succeed(Greeting, "hello")))
        )
      ))

    it.effect("keeps what was taken when the layer was built, whatever is there at the call", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* contents([ping]), ["when built"])
      }).pipe(
        Effect.provide(
          ToolExecutor.layerHandlers({ ping: () => Greeting }).pipe(
            Layer.provide(Layer.succeed(Greeting, "when built"))
          )
        ),
        Effect.provideService(Greeting, "at the call")
      ))

    it.scoped("leaves the handlers the context, the span and the scope of the call", () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const layer = ToolExecutor.layerHandlers({
          ping: () =>
            Effect.map(
              Effect.all([ToolContext.ToolContext, Effect.currentParentSpan, Effect.scope]),
              ([{ toolCall }, span, scope]) => seen.push(toolCall, span, scope)
            )
        })
        const built = yield* Effect.withSpan(Layer.build(layer), "build")
        const [span, scope] = yield* Effect.all([Effect.makeSpan("call"), Scope.make()])

        yield* ToolRunner.run([pingCall], [ping]).pipe(
          Effect.provide(built),
          Effect.provideService(Scope.Scope, scope),
          Effect.withParentSpan(span)
        )

        assert.strictEqual(seen.length, 3)
        assert.isTrue(seen[0] === pingCall && seen[1] === span && seen[2] === scope)
      }))

    it.effect("leaves a tool's own handler what it finds at the call", () =>
      Effect.gen(function*() {
        const own = Tool.make("own", { description, handler: () => Greeting })

        const { messages } = yield* ToolRunner.run([ToolCall.make({ id: "c0", name: "own", arguments: {} })], [own])

        assert.deepStrictEqual(messages.map((message) => message.content), ["at the call"])
      }).pipe(
        Effect.provide(
          ToolExecutor.layerHandlers({ ping: () => Greeting }).pipe(
            Layer.provide(Layer.succeed(Greeting, "when built"))
          )
        ),
        Effect.provideService(Greeting, "at the call")
      ))
  })

  describe("layer", () => {
    const run = (executor: unknown) =>
      ToolRunner.run([toolCall], [tool(() => "own")]).pipe(
        // Callers without types may provide anything.
        Effect.provide(ToolExecutor.layer({ execute: executor as ToolExecutor.Service["execute"] })),
        Effect.map(({ messages, outcomes }) => ({
          content: messages[0]?.content,
          tag: outcomes[0]?.result._tag,
          isError: messages[0]?.isError
        }))
      )

    it.effect("puts an executor of one's own in place of the handlers", () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const { content } = yield* run((given: Tool.Any, args: unknown, { toolCall }: ToolContext.Service) => {
          seen.push(given.name, args, toolCall.id)
          return Effect.succeed(ToolResult.ok("elsewhere"))
        })

        assert.strictEqual(content, "elsewhere")
        assert.deepStrictEqual(seen, ["x", {}, "c0"])
      }))

    it.effect("may fail with any ToolError", () =>
      Effect.gen(function*() {
        const result = yield* run(() => Effect.fail(new ToolError.OutcomeUnknown({ toolName: "x", toolCallId: "c0" })))

        assert.deepStrictEqual(result, {
          content: "{\"error\":\"tool error (x): outcome_unknown\"}",
          tag: "OutcomeUnknown",
          isError: true
        })
      }))

    it.effect("applies the success schema to what another executor gives", () =>
      Effect.gen(function*() {
        const at = Tool.make("x", { description, success: Schema.Date, handler: () => new Date(1) })
        const { messages, outcomes } = yield* ToolRunner.run([toolCall, { ...toolCall, id: "c1" }], [at])

        assert.strictEqual(messages[0]?.content, "1970-01-01T00:00:00.000Z")
        assert.strictEqual(outcomes[1]?.result._tag, "InvalidReturn")
      }).pipe(Effect.provide(ToolExecutor.layer({
        execute: (_tool, _args, { toolCall }) =>
          Effect.succeed(ToolResult.ok(toolCall.id === "c0" ? new Date(0) : "yesterday"))
      }))))

    it.effect("cannot break the run, whatever it does", () =>
      Effect.gen(function*() {
        const odd: ReadonlyArray<readonly [tag: string, execute: () => unknown]> = [
          ["HandlerRaised", () => {
            throw new Error("secret")
          }],
          ["HandlerRaised", () => Effect.die("secret")],
          ["HandlerRaised", () => 5],
          ["HandlerRaised", () => undefined],
          ["HandlerRaised", () => Promise.resolve(ToolResult.ok(1))],
          ["HandlerExit", () => Effect.interrupt],
          ["InvalidReturn", () => Effect.fail("secret")],
          ["InvalidReturn", () => Effect.fail(new Error("secret"))],
          ["InvalidReturn", () => Effect.succeed("secret")],
          ["InvalidReturn", () => Effect.succeed(null)],
          ["InvalidReturn", () => Effect.succeed({ _tag: "Maybe" })],
          ["InvalidReturn", () => Effect.succeed({ _tag: "Halt", reason: 5, result: 1 })],
          ["InvalidReturn", () => Effect.succeed({ _tag: "AskUser", question: 5, options: {} })]
        ]

        for (const [tag, executor] of odd) {
          const result = yield* run(executor)
          assert.deepStrictEqual([result.tag, result.isError], [tag, true])
          assert.notMatch(result.content ?? "", /secret/)
        }
      }))

    it.effect("cannot break the run by a value that throws when it is encoded", () =>
      Effect.gen(function*() {
        const Fragile = Schema.transform(Schema.String, Schema.String, {
          strict: true,
          decode: (text) => text,
          encode: (): string => {
            throw new Error("secret")
          }
        })

        const fragile = Tool.make("x", { description, success: Fragile, handler: () => "own" })

        const { messages, outcomes } = yield* ToolRunner.run([toolCall], [fragile])

        assert.include(["InvalidReturn", "HandlerRaised"], outcomes[0]?.result._tag)
        assert.notMatch(messages[0]?.content ?? "secret", /secret/)
      }).pipe(Effect.provide(ToolExecutor.layer({ execute: () => Effect.succeed(ToolResult.ok("text")) }))))
  })
})
