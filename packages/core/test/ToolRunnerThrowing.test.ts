import { Tool, ToolCall, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Schema, TestClock } from "effect"

const call = (id: string, name: string, args: unknown = {}) => ToolCall.make({ id, name, arguments: args })

const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })

const bug = (): never => {
  throw new Error("secret")
}

/** A schema whose own code throws, both ways. */
const Broken = Schema.transform(Schema.String, Schema.String, { strict: true, decode: bug, encode: bug })

/** Runs a call of the tool beside one of `hi`, and tells how each ended. */
const beside = <P, A, E>(tool: Tool.Tool<"broken", P, A, E, never>) =>
  Effect.gen(function*() {
    const calls = [call("c0", tool.name, { text: "a" }), call("c1", "hi")]
    // A daemon, so that a run that hangs cannot hold the test.
    const fiber = yield* Effect.forkDaemon(ToolRunner.run(calls, [tool, hi], { concurrency: 2 }))
    yield* TestClock.adjust("10 millis")
    yield* Effect.yieldNow()
    const exit = Option.fromNullable(fiber.unsafePoll())
    const { messages, outcomes } = yield* Option.getOrThrow(exit)
    return outcomes.map((outcome, i) => `${outcome.result._tag} ${messages[i]!.content}`)
  })

const raised = ["HandlerRaised {\"error\":\"tool error (broken): handler_raised\"}", "Ok hi"]
const failed = ["HandlerFailed {\"error\":\"tool error (broken): handler_failed\"}", "Ok hi"]

const parameters = { text: Schema.String }

describe("ToolRunner, when code around a handler throws", () => {
  describe("the schema of the parameters", () => {
    it.effect("costs the call its answer, not the run", () =>
      Effect.gen(function*() {
        const broken = Tool.make("broken", { description: "", parameters: { text: Broken }, handler: () => "x" })

        assert.deepStrictEqual(yield* beside(broken), raised)
      }))

    it.effect("costs no more when a key is read from it", () =>
      Effect.gen(function*() {
        const broken = Tool.make("broken", {
          description: "",
          parameters: { text: Broken },
          exclusive: "text",
          handler: () => "x"
        })

        assert.deepStrictEqual(yield* beside(broken), raised)
      }))
  })

  describe("the schema of the success", () => {
    it.effect("costs a plain handler its answer, not the run", () =>
      Effect.gen(function*() {
        const broken = Tool.make("broken", { description: "", parameters, success: Broken, handler: () => "x" })

        assert.deepStrictEqual(yield* beside(broken), raised)
      }))

    it.effect("costs a handler that takes its time no more", () =>
      Effect.gen(function*() {
        const broken = Tool.make("broken", {
          description: "",
          parameters,
          success: Broken,
          handler: () => Effect.delay(Effect.succeed("x"), "5 millis")
        })

        assert.deepStrictEqual(yield* beside(broken), raised)
      }))
  })

  describe("the schema of the failure", () => {
    it.effect("keeps from the model what it might have hidden", () =>
      Effect.gen(function*() {
        const broken = Tool.make("broken", {
          description: "",
          parameters,
          failure: Broken,
          handler: () => Effect.fail("x")
        })

        assert.deepStrictEqual(yield* beside(broken), failed)
      }))

    it.effect("keeps it from the model when the handler takes its time", () =>
      Effect.gen(function*() {
        const broken = Tool.make("broken", {
          description: "",
          parameters,
          failure: Broken,
          handler: () => Effect.delay(Effect.fail("x"), "5 millis")
        })

        assert.deepStrictEqual(yield* beside(broken), failed)
      }))
  })

  describe("a value that cannot be looked at", () => {
    const untouchable: unknown = new Proxy({}, { has: bug })
    const unreadable = {
      get text() {
        return bug()
      }
    }

    it.effect("is a crash when a handler returns it", () =>
      Effect.gen(function*() {
        const broken = Tool.make("broken", { description: "", parameters, handler: () => untouchable })

        assert.deepStrictEqual(yield* beside(broken), raised)
      }))

    it.effect("is a crash when a handler returns it late", () =>
      Effect.gen(function*() {
        const broken = Tool.make("broken", {
          description: "",
          parameters,
          handler: () => Effect.delay(Effect.succeed(untouchable), "5 millis")
        })

        assert.deepStrictEqual(yield* beside(broken), raised)
      }))

    it.effect("is a failure without words when a handler reports it", () =>
      Effect.gen(function*() {
        const broken = Tool.make("broken", { description: "", parameters, handler: () => Effect.fail(unreadable) })

        assert.deepStrictEqual(yield* beside(broken), failed)
      }))

    it.effect("is a failure without words when a handler reports it late", () =>
      Effect.gen(function*() {
        const broken = Tool.make("broken", {
          description: "",
          parameters,
          handler: () => Effect.delay(Effect.fail(unreadable), "5 millis")
        })

        assert.deepStrictEqual(yield* beside(broken), failed)
      }))
  })
})
