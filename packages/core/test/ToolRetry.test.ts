import { Tool, ToolCall, type ToolError, ToolExecutor, ToolResult, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Option, Schedule, Schema, Stream, TestClock } from "effect"

const call = (id: string, name: string, args: unknown = {}) => ToolCall.make({ id, name, arguments: args })

/** Ends as told, attempt by attempt; what is behind the last plan is never reached. */
const planned = <E>(
  plan: ReadonlyArray<() => Effect.Effect<unknown, E>>,
  retry: Schedule.Schedule<unknown, ToolError.ToolError>
) => {
  const attempts: Array<string> = []
  const tool = Tool.make("planned", {
    description: "Ends as planned",
    retry,
    handler: (_, { idempotencyKey }) => {
      attempts.push(idempotencyKey)
      return plan[attempts.length - 1]!()
    }
  })
  return { attempts, tool }
}

const thrice = Schedule.recurs(2)

const contentsOf = (result: ToolRunner.RunResult) => result.messages.map((message) => message.content)

const tagsOf = (result: ToolRunner.RunResult) => result.outcomes.map((outcome) => outcome.result._tag)

describe("ToolRunner: retry", () => {
  it.effect("runs the handler again after a reported failure, until it succeeds", () =>
    Effect.gen(function*() {
      const { attempts, tool } = planned([
        () => Effect.fail("offline"),
        () => Effect.fail("offline"),
        () => Effect.succeed("online")
      ], thrice)
      const result = yield* ToolRunner.run([call("c0", "planned")], [tool])

      assert.deepStrictEqual(contentsOf(result), ["online"])
      assert.strictEqual(attempts.length, 3)
    }))

  it.effect("runs the handler again after a crash of any kind", () =>
    Effect.gen(function*() {
      const { attempts, tool } = planned([
        () => {
          throw new Error("thrown")
        },
        () => Effect.die("died"),
        () => Effect.interrupt,
        () => Effect.promise(() => Promise.reject(new Error("rejected"))),
        () => Effect.succeed("well")
      ], Schedule.recurs(4))
      const result = yield* ToolRunner.run([call("c0", "planned")], [tool])

      assert.deepStrictEqual(contentsOf(result), ["well"])
      assert.strictEqual(attempts.length, 5)
    }))

  it.effect("treats ToolResult.error like a failure", () =>
    Effect.gen(function*() {
      const { attempts, tool } = planned([
        () => Effect.succeed(ToolResult.error("busy")),
        () => Effect.succeed("free")
      ], thrice)
      const result = yield* ToolRunner.run([call("c0", "planned")], [tool])

      assert.deepStrictEqual(contentsOf(result), ["free"])
      assert.strictEqual(attempts.length, 2)
    }))

  it.effect("gives the last failure when the schedule is done, and asks the policy once", () =>
    Effect.gen(function*() {
      const asked: Array<unknown> = []
      const { attempts, tool } = planned([
        () => Effect.fail("first"),
        () => Effect.fail("second"),
        () => Effect.fail("third")
      ], thrice)
      const result = yield* ToolRunner.run([call("c0", "planned")], [tool], {
        onToolError: (_call, error) => {
          asked.push(error._tag === "HandlerFailed" ? error.failure : error._tag)
          return "continue"
        }
      })

      assert.deepStrictEqual(contentsOf(result), ["{\"error\":\"third\"}"])
      assert.strictEqual(attempts.length, 3)
      assert.deepStrictEqual(asked, ["third"])
    }))

  it.effect("does not run a handler again without a schedule", () =>
    Effect.gen(function*() {
      let attempts = 0
      const once = Tool.make("once", { description: "Fails", handler: () => Effect.fail(++attempts) })
      yield* ToolRunner.run([call("c0", "once")], [once])

      assert.strictEqual(attempts, 1)
    }))

  it.effect("waits as the schedule says", () =>
    Effect.gen(function*() {
      const { attempts, tool } = planned([
        () => Effect.fail("1"),
        () => Effect.fail("2"),
        () => Effect.succeed("ok")
      ], Schedule.exponential("100 millis"))
      const fiber = yield* Effect.fork(ToolRunner.run([call("c0", "planned")], [tool]))
      const counts: Array<number> = []
      for (const step of [0, 99, 1, 199, 1]) {
        yield* TestClock.adjust(step)
        counts.push(attempts.length)
      }
      yield* Fiber.join(fiber)

      assert.deepStrictEqual(counts, [1, 1, 2, 2, 3])
    }))

  it.effect("lets the schedule see the error", () =>
    Effect.gen(function*() {
      const onlyBusy = Schedule.recurWhile((error: ToolError.ToolError) =>
        error._tag === "HandlerFailed" && error.failure === "busy"
      )
      const { attempts, tool } = planned([() => Effect.fail("busy"), () => Effect.fail("closed")], onlyBusy)
      const result = yield* ToolRunner.run([call("c0", "planned")], [tool])

      assert.deepStrictEqual(contentsOf(result), ["{\"error\":\"closed\"}"])
      assert.strictEqual(attempts.length, 2)
    }))

  it.effect("has one limit for all attempts together", () =>
    Effect.gen(function*() {
      const { attempts, tool } = planned(
        Array.from({ length: 10 }, () => () => Effect.zipRight(Effect.sleep(20), Effect.fail("again"))),
        Schedule.forever
      )
      const fiber = yield* Effect.fork(ToolRunner.run([call("c0", "planned")], [tool], { toolTimeout: 50 }))
      yield* TestClock.adjust("49 millis")
      const early = yield* Fiber.poll(fiber)
      yield* TestClock.adjust("1 millis")
      const result = yield* Fiber.join(fiber)
      yield* TestClock.adjust("1 second")

      assert.strictEqual(Option.isNone(early), true)
      assert.deepStrictEqual(tagsOf(result), ["Timeout"])
      assert.strictEqual(attempts.length, 3)
    }))

  it.effect("does not run a handler again that was over its limit", () =>
    Effect.gen(function*() {
      const { attempts, tool } = planned([() => Effect.never, () => Effect.succeed("again")], Schedule.forever)
      const fiber = yield* Effect.fork(ToolRunner.run([call("c0", "planned")], [tool], { toolTimeout: 50 }))
      yield* TestClock.adjust("1 second")

      assert.deepStrictEqual(tagsOf(yield* Fiber.join(fiber)), ["Timeout"])
      assert.strictEqual(attempts.length, 1)
    }))

  it.effect("counts the waits between attempts against the limit", () =>
    Effect.gen(function*() {
      const { attempts, tool } = planned([() => Effect.fail("1"), () => Effect.succeed("2")], Schedule.spaced(60))
      const fiber = yield* Effect.fork(ToolRunner.run([call("c0", "planned")], [tool], { toolTimeout: 50 }))
      yield* TestClock.adjust("50 millis")

      assert.deepStrictEqual(tagsOf(yield* Fiber.join(fiber)), ["Timeout"])
      assert.strictEqual(attempts.length, 1)
    }))

  it.effect("hands every attempt the same idempotency key, and every call its own", () =>
    Effect.gen(function*() {
      const keys: Array<string> = []
      const flaky = Tool.make("flaky", {
        description: "Fails",
        retry: thrice,
        handler: (_, { idempotencyKey }) => {
          keys.push(idempotencyKey)
          return Effect.fail("no")
        }
      })
      yield* ToolRunner.run([call("c0", "flaky"), call("c1", "flaky")], [flaky], { sessionId: "s1", concurrency: 1 })

      assert.deepStrictEqual(keys, ["s1/c0", "s1/c0", "s1/c0", "s1/c1", "s1/c1", "s1/c1"])
    }))

  it.effect("is one call to whoever watches", () =>
    Effect.gen(function*() {
      const { tool } = planned([() => Effect.fail("1"), () => Effect.fail("2"), () => Effect.succeed("3")], thrice)
      const events = yield* Stream.runCollect(ToolRunner.stream([call("c0", "planned")], [tool]))

      assert.deepStrictEqual(Array.from(events, (event) => event._tag), [
        "ToolExecutionStarted",
        "ToolExecutionCompleted",
        "ToolResultEncoded"
      ])
    }))

  it.effect("starts anew for every call", () =>
    Effect.gen(function*() {
      let attempts = 0
      const flaky = Tool.make("flaky", { description: "Fails", retry: thrice, handler: () => Effect.fail(++attempts) })
      const result = yield* ToolRunner.run([call("c0", "flaky"), call("c1", "flaky")], [flaky], { concurrency: 1 })

      assert.deepStrictEqual(contentsOf(result), ["{\"error\":3}", "{\"error\":6}"])
    }))

  describe("is not for", () => {
    // Tells how often an executor was asked, and lets the real one answer.
    const counted = () => {
      const asked: Array<string> = []
      const layer = ToolExecutor.layer({
        execute: (tool, args, context) => {
          asked.push(tool.name)
          return ToolExecutor.handlers.execute(tool, args, context)
        }
      })
      return { asked, layer }
    }

    it.effect("arguments that are wrong", () =>
      Effect.gen(function*() {
        const { asked, layer } = counted()
        const add = Tool.make("add", {
          description: "Adds",
          parameters: { a: Schema.Number },
          retry: thrice,
          handler: ({ a }) => a
        })
        const result = yield* Effect.provide(ToolRunner.run([call("c0", "add", { a: "six" })], [add]), layer)

        assert.deepStrictEqual(tagsOf(result), ["InvalidArguments"])
        assert.deepStrictEqual(asked, ["add"])
      }))

    it.effect("a value that does not fit the success schema", () =>
      Effect.gen(function*() {
        const { asked, layer } = counted()
        const wrong = Tool.make("wrong", {
          description: "Returns the wrong thing",
          success: Schema.Number,
          retry: thrice,
          handler: () => "six" as unknown as number
        })
        const result = yield* Effect.provide(ToolRunner.run([call("c0", "wrong")], [wrong]), layer)

        assert.deepStrictEqual(tagsOf(result), ["InvalidReturn"])
        assert.deepStrictEqual(asked, ["wrong"])
      }))

    it.effect("a tool without a handler", () =>
      Effect.gen(function*() {
        const { asked, layer } = counted()
        const bare = Tool.make("bare", { description: "Has no handler", retry: thrice })
        const result = yield* Effect.provide(ToolRunner.run([call("c0", "bare")], [bare]), layer)

        assert.deepStrictEqual(tagsOf(result), ["NotFound"])
        assert.deepStrictEqual(asked, ["bare"])
      }))

    it.effect("a question or a halt", () =>
      Effect.gen(function*() {
        const { asked, layer } = counted()
        const ask = Tool.make("ask", {
          description: "Asks",
          retry: thrice,
          handler: () => ToolResult.askUser("Which?")
        })
        const halt = Tool.make("halt", {
          description: "Halts",
          retry: thrice,
          handler: () => ToolResult.halt("enough", null)
        })
        const result = yield* Effect.provide(
          ToolRunner.run([call("c0", "ask"), call("c1", "halt")], [ask, halt]),
          layer
        )

        assert.deepStrictEqual(tagsOf(result), ["AskUser", "Halt"])
        assert.deepStrictEqual(asked, ["ask", "halt"])
      }))
  })

  it.effect("tries again when the executor dies instead of failing", () =>
    Effect.gen(function*() {
      let attempts = 0
      const layer = ToolExecutor.layer({
        execute: () => ++attempts < 3 ? Effect.die("the sandbox is gone") : Effect.succeed(ToolResult.ok("back"))
      })
      const remote = Tool.make("remote", { description: "Runs elsewhere", retry: thrice })
      const result = yield* Effect.provide(ToolRunner.run([call("c0", "remote")], [remote]), layer)

      assert.deepStrictEqual(contentsOf(result), ["back"])
    }))
})
