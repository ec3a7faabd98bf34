import { OnToolError, Telemetry, Tool, ToolCall, ToolError, ToolResultEncoder, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { assertEquals } from "@effect/vitest/utils"
import {
  Data,
  Deferred,
  Duration,
  Effect,
  Exit,
  Fiber,
  HashMap,
  Logger,
  Metric,
  Option,
  Ref,
  Schedule,
  Schema,
  TestClock
} from "effect"

const call = (id: string, name: string, args: unknown = {}) => ToolCall.make({ id, name, arguments: args })

const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })

// Whatever they are told, these do not end; some of them cannot be stopped either.
const endless: ReadonlyArray<{
  readonly what: string
  readonly abandoned: boolean
  readonly tool: Tool.Tool<"endless", {}, unknown, unknown, never>
}> = [
  {
    what: "a handler that only waits",
    abandoned: false,
    tool: Tool.make("endless", { description: "Waits", handler: () => Effect.never })
  },
  {
    what: "a handler that cannot be interrupted",
    abandoned: true,
    tool: Tool.make("endless", { description: "Waits", handler: () => Effect.uninterruptible(Effect.never) })
  },
  {
    what: "a handler whose finalizer sleeps for ever",
    abandoned: true,
    tool: Tool.make("endless", {
      description: "Waits",
      handler: () => Effect.ensuring(Effect.never, Effect.never)
    })
  },
  {
    what: "a handler whose resource takes for ever to acquire",
    abandoned: true,
    tool: Tool.make("endless", {
      description: "Waits",
      handler: () => Effect.scoped(Effect.acquireRelease(Effect.never, () => Effect.void))
    })
  },
  {
    what: "a handler whose promise never settles",
    abandoned: false,
    tool: Tool.make("endless", { description: "Waits", handler: () => new Promise<string>(() => {}) })
  },
  {
    what: "an async handler that never gets on",
    abandoned: false,
    tool: Tool.make("endless", {
      description: "Waits",
      handler: async () => {
        await new Promise(() => {})
        return "unreachable"
      }
    })
  },
  {
    what: "a handler that retries for ever",
    abandoned: false,
    tool: Tool.make("endless", {
      description: "Waits",
      retry: Schedule.spaced("7 millis"),
      handler: () => Effect.fail("again")
    })
  }
]

const timeout = (toolCallId: string, toolName: string, limitMillis: number, abandoned: boolean) =>
  new ToolError.Timeout({ toolName, toolCallId, limitMillis, abandoned })

// The tool that is most often stuck below.
const stuck = endless[1]!.tool

const resultsOf = (result: ToolRunner.RunResult) => Data.array(result.outcomes.map((outcome) => outcome.result))

const tagsOf = (result: ToolRunner.RunResult) => result.outcomes.map((outcome) => outcome.result._tag)

const contentsOf = (result: ToolRunner.RunResult) => result.messages.map((message) => message.content)

const abandonedCount = Effect.map(Metric.value(Telemetry.abandonedFibers), (state) => state.count)

describe("ToolRunner: timeout", () => {
  describe("under the TestClock", () => {
    for (const { abandoned, tool, what } of endless) {
      it.effect(`RUN-38 ends ${what} at the limit and not before`, () =>
        Effect.gen(function*() {
          const fiber = yield* Effect.fork(ToolRunner.run([call("c0", "endless")], [tool], { toolTimeout: 50 }))
          yield* TestClock.adjust("49 millis")
          const early = yield* Fiber.poll(fiber)
          yield* TestClock.adjust("1 millis")
          const result = yield* Fiber.join(fiber)

          assertEquals(early, Option.none())
          assertEquals(resultsOf(result), Data.array([timeout("c0", "endless", 50, abandoned)]))
          assert.deepStrictEqual(contentsOf(result), ["{\"error\":\"tool error (endless): timeout\"}"])
        }))
    }

    it.effect("gives a call 30 seconds unless told otherwise", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.fork(ToolRunner.run([call("c0", "endless")], [stuck]))
        yield* TestClock.adjust("29999 millis")
        const early = yield* Fiber.poll(fiber)
        yield* TestClock.adjust("1 millis")

        assertEquals(early, Option.none())
        assertEquals(resultsOf(yield* Fiber.join(fiber)), Data.array([timeout("c0", "endless", 30_000, true)]))
      }))

    it.effect("lets the tool's own limit beat the run's, shorter or longer", () =>
      Effect.gen(function*() {
        const short = Tool.make("short", { description: "Waits", timeout: 20, handler: () => Effect.never })
        const long = Tool.make("long", { description: "Waits", timeout: 80, handler: () => Effect.never })
        const fiber = yield* Effect.fork(
          ToolRunner.run([call("c0", "short"), call("c1", "long")], [short, long], { toolTimeout: 50 })
        )
        yield* TestClock.adjust("79 millis")
        const early = yield* Fiber.poll(fiber)
        yield* TestClock.adjust("1 millis")

        assertEquals(early, Option.none())
        assertEquals(
          resultsOf(yield* Fiber.join(fiber)),
          Data.array([timeout("c0", "short", 20, false), timeout("c1", "long", 80, false)])
        )
      }))

    it.effect("keeps what came a moment before the limit", () =>
      Effect.gen(function*() {
        const late = Tool.make("late", {
          description: "Slow",
          handler: () => Effect.delay(Effect.succeed("made it"), 49)
        })
        const fiber = yield* Effect.fork(ToolRunner.run([call("c0", "late")], [late], { toolTimeout: 50 }))
        yield* TestClock.adjust("50 millis")

        assert.deepStrictEqual(contentsOf(yield* Fiber.join(fiber)), ["made it"])
      }))

    it.effect("never ends a call whose limit is infinite", () =>
      Effect.gen(function*() {
        const slow = Tool.make("slow", {
          description: "Slow",
          handler: () => Effect.delay(Effect.succeed("done"), "3 days")
        })
        const fiber = yield* Effect.fork(
          ToolRunner.run([call("c0", "slow")], [slow], { toolTimeout: Duration.infinity })
        )
        yield* TestClock.adjust("3 days")

        assert.deepStrictEqual(contentsOf(yield* Fiber.join(fiber)), ["done"])
      }))

    it.effect("does not count the time a call waits for its turn", () =>
      Effect.gen(function*() {
        const slow = Tool.make("slow", { description: "Slow", handler: () => Effect.delay(Effect.succeed("done"), 40) })
        const fiber = yield* Effect.fork(
          ToolRunner.run([call("c0", "slow"), call("c1", "slow"), call("c2", "slow")], [slow], {
            concurrency: 1,
            toolTimeout: 50
          })
        )
        yield* TestClock.adjust("120 millis")

        assert.deepStrictEqual(contentsOf(yield* Fiber.join(fiber)), ["done", "done", "done"])
      }))

    it.effect("does not count the time a call waits for its key", () =>
      Effect.gen(function*() {
        const slow = Tool.make("slow", {
          description: "Slow",
          parameters: { file: Schema.String },
          exclusive: "file",
          handler: () => Effect.delay(Effect.succeed("done"), 40)
        })
        const fiber = yield* Effect.fork(
          ToolRunner.run([call("c0", "slow", { file: "a" }), call("c1", "slow", { file: "a" })], [slow], {
            toolTimeout: 50
          })
        )
        yield* TestClock.adjust("80 millis")

        assert.deepStrictEqual(contentsOf(yield* Fiber.join(fiber)), ["done", "done"])
      }))

    it.effect("counts the time an encoder takes, and does not ask it again", () =>
      Effect.gen(function*() {
        const encoder = ToolResultEncoder.layer({ encode: () => Effect.never })
        const fiber = yield* Effect.fork(
          Effect.provide(ToolRunner.run([call("c0", "hi")], [hi], { toolTimeout: 50 }), encoder)
        )
        yield* TestClock.adjust("50 millis")
        const result = yield* Fiber.join(fiber)

        assertEquals(resultsOf(result), Data.array([timeout("c0", "hi", 50, false)]))
        assert.deepStrictEqual(contentsOf(result), ["{\"error\":\"tool error (hi): timeout\"}"])
      }))

    it.effect("RUN-40 does not delay the siblings of a call that hangs", () =>
      Effect.gen(function*() {
        const ended = yield* Ref.make<ReadonlyArray<string>>([])
        const steady = Tool.make("steady", {
          description: "Takes 10 ms",
          handler: (_, { toolCall }) =>
            Effect.delay(Ref.update(ended, (ids) => [...ids, toolCall.id]), 10).pipe(Effect.as("steady"))
        })
        const fiber = yield* Effect.fork(
          ToolRunner.run([call("c0", "endless"), call("c1", "steady"), call("c2", "steady")], [stuck, steady], {
            concurrency: 2,
            toolTimeout: 50
          })
        )
        yield* TestClock.adjust("20 millis")
        const soon = yield* Ref.get(ended)
        yield* TestClock.adjust("30 millis")

        assert.deepStrictEqual(soon, ["c1", "c2"])
        assert.deepStrictEqual(contentsOf(yield* Fiber.join(fiber)), [
          "{\"error\":\"tool error (endless): timeout\"}",
          "steady",
          "steady"
        ])
      }))

    it.effect("gives the place of an abandoned call to the next", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.fork(
          ToolRunner.run([call("c0", "endless"), call("c1", "endless"), call("c2", "hi")], [stuck, hi], {
            concurrency: 1,
            toolTimeout: 50
          })
        )
        yield* TestClock.adjust("99 millis")
        const early = yield* Fiber.poll(fiber)
        yield* TestClock.adjust("1 millis")

        assertEquals(early, Option.none())
        assert.deepStrictEqual(tagsOf(yield* Fiber.join(fiber)), ["Timeout", "Timeout", "Ok"])
      }))

    it.effect("RUN-41 asks the policy once, with the timeout", () =>
      Effect.gen(function*() {
        const asked: Array<unknown> = []
        const fiber = yield* Effect.fork(
          ToolRunner.run([call("c0", "endless")], [stuck], {
            toolTimeout: 50,
            onToolError: (_call, error) => {
              asked.push(error)
              return OnToolError.continueWith("never mind")
            }
          })
        )
        yield* TestClock.adjust("50 millis")

        assert.deepStrictEqual(contentsOf(yield* Fiber.join(fiber)), ["never mind"])
        assertEquals(Data.array(asked), Data.array([timeout("c0", "endless", 50, true)]))
      }))

    it.effect("abandons a call also when a limit of less than a millisecond begins meanwhile", () =>
      Effect.gen(function*() {
        const waits = Tool.make("waits", { description: "Waits", handler: () => Effect.never })
        const fiber = yield* Effect.forkDaemon(
          ToolRunner.run([call("c0", "endless"), call("c1", "waits")], [stuck, waits], {
            toolTimeout: "50400 micros",
            onToolError: "halt",
            siblings: { drainFor: "100 micros" }
          })
        )
        yield* TestClock.adjust("60 millis")
        const exit = yield* Fiber.poll(fiber)

        const tags = Option.map(exit, Exit.match({ onFailure: () => [], onSuccess: tagsOf }))
        assert.deepStrictEqual(Option.getOrElse(tags, () => ["still running"]), ["Timeout", "Timeout"])
      }))
  })

  describe("of an abandoned call", () => {
    it.effect("ignores the result that comes late", () =>
      Effect.gen(function*() {
        const finished = yield* Deferred.make<void>()
        const late = Tool.make("late", {
          description: "Ends late",
          handler: () =>
            Effect.uninterruptible(Effect.delay(Effect.as(Deferred.succeed(finished, undefined), "late"), 70))
        })
        const slow = Tool.make("slow", { description: "Slow", timeout: 200, handler: () => Effect.sleep(100) })
        const fiber = yield* Effect.fork(
          ToolRunner.run([call("c0", "late"), call("c1", "slow")], [late, slow], { toolTimeout: 50 })
        )
        yield* TestClock.adjust("100 millis")
        const result = yield* Fiber.join(fiber)

        assert.strictEqual(yield* Deferred.isDone(finished), true)
        assert.deepStrictEqual(contentsOf(result), ["{\"error\":\"tool error (late): timeout\"}", "null"])
      }))

    it.effect("ignores the result that comes while the policy decides", () =>
      Effect.gen(function*() {
        const asked = yield* Ref.make<ReadonlyArray<string>>([])
        const late = Tool.make("late", {
          description: "Ends late",
          handler: () => Effect.uninterruptible(Effect.as(Effect.sleep(70), "late"))
        })
        const slow = Tool.make("slow", { description: "Slow", timeout: 300, handler: () => Effect.sleep(200) })
        const fiber = yield* Effect.fork(
          ToolRunner.run([call("c0", "late"), call("c1", "slow")], [late, slow], {
            toolTimeout: 50,
            onToolError: (_call, error) =>
              Ref.update(asked, (tags) => [...tags, error._tag]).pipe(
                Effect.delay(50),
                Effect.as(OnToolError.continue())
              )
          })
        )
        yield* TestClock.adjust("200 millis")
        const result = yield* Fiber.join(fiber)

        assert.deepStrictEqual(contentsOf(result), ["{\"error\":\"tool error (late): timeout\"}", "null"])
        assert.deepStrictEqual(yield* Ref.get(asked), ["Timeout"])
      }))

    it.effect("ignores the result that comes while the timeout is encoded", () =>
      Effect.gen(function*() {
        const encoder = ToolResultEncoder.layer({ encode: (value) => Effect.delay(Effect.succeed(String(value)), 50) })
        const late = Tool.make("late", {
          description: "Ends late",
          handler: () => Effect.uninterruptible(Effect.as(Effect.sleep(70), "late"))
        })
        const slow = Tool.make("slow", { description: "Slow", timeout: 300, handler: () => Effect.sleep(200) })
        const fiber = yield* Effect.fork(
          Effect.provide(
            ToolRunner.run([call("c0", "late"), call("c1", "slow")], [late, slow], { toolTimeout: 50 }),
            encoder
          )
        )
        yield* TestClock.adjust("250 millis")
        const result = yield* Fiber.join(fiber)

        assert.deepStrictEqual(tagsOf(result), ["Timeout", "Ok"])
        assert.strictEqual(result.messages.length, 2)
      }))

    it.effect("counts the fiber in the metric, and only where there is one", () =>
      Effect.gen(function*() {
        const before = yield* abandonedCount
        const waits = Tool.make("waits", { description: "Waits", handler: () => Effect.never })
        const fiber = yield* Effect.fork(
          ToolRunner.run(
            [call("c0", "endless"), call("c1", "waits"), call("c2", "endless"), call("c3", "hi")],
            [stuck, waits, hi],
            { toolTimeout: 50, concurrency: 4 }
          )
        )
        yield* TestClock.adjust("50 millis")
        yield* Fiber.join(fiber)

        assert.strictEqual(yield* abandonedCount, before + 2)
      }))

    it.effect("names the tool and the call in a log line", () =>
      Effect.gen(function*() {
        const lines: Array<unknown> = []
        const logger = Logger.make(({ annotations, logLevel, message }) => {
          if (logLevel._tag === "Warning") {
            lines.push({ message, ...Object.fromEntries(HashMap.toEntries(annotations)) })
          }
        })
        const fiber = yield* Effect.fork(
          ToolRunner.run([call("c0", "endless")], [stuck], {
            toolTimeout: 50,
            sessionId: "s1",
            requestId: "r1"
          }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
        )
        yield* TestClock.adjust("50 millis")
        yield* Fiber.join(fiber)

        assert.deepStrictEqual(lines, [{
          message: ["tool endless did not stop when interrupted; its fiber was left behind"],
          toolName: "endless",
          toolCallId: "c0",
          sessionId: "s1",
          requestId: "r1"
        }])
      }))

    it.effect("runs the finalizers it has, after the run has gone on", () =>
      Effect.gen(function*() {
        const log = yield* Ref.make<ReadonlyArray<string>>([])
        const note = (line: string) => Ref.update(log, (lines) => [...lines, line])
        const tidy = Tool.make("tidy", {
          description: "Tidies up for a while",
          handler: () => Effect.ensuring(Effect.never, Effect.delay(note("tidied"), 30))
        })
        yield* ToolRunner.run([call("c0", "tidy")], [tidy], { toolTimeout: 50 }).pipe(
          Effect.zipRight(note("run over")),
          Effect.fork
        )
        yield* TestClock.adjust("80 millis")

        assert.deepStrictEqual(yield* Ref.get(log), ["run over", "tidied"])
      }))

    it.effect("aborts its signal", () =>
      Effect.gen(function*() {
        let signal: AbortSignal | undefined
        const deaf = Tool.make("deaf", {
          description: "Waits",
          handler: (_, context) => {
            signal = context.signal
            return new Promise<string>(() => {})
          }
        })
        const fiber = yield* Effect.fork(ToolRunner.run([call("c0", "deaf")], [deaf], { toolTimeout: 50 }))
        yield* TestClock.adjust("49 millis")
        const early = signal?.aborted
        yield* TestClock.adjust("1 millis")
        yield* Fiber.join(fiber)

        assert.deepStrictEqual([early, signal?.aborted], [false, true])
      }))
  })

  describe("under the live clock", () => {
    // A sleep beside the run tells how late this machine is anyway.
    const measure = <A, E>(limit: number, run: Effect.Effect<A, E>) =>
      Effect.all([Effect.timed(run), Effect.timed(Effect.sleep(limit))], { concurrency: 2 }).pipe(
        Effect.map(([[taken, result], [slept]]) => ({
          result,
          taken: Duration.toMillis(taken),
          allowed: 1.2 * Math.max(limit, Duration.toMillis(slept))
        })),
        Effect.provide(Logger.remove(Logger.defaultLogger))
      )

    for (const { abandoned, tool, what } of endless) {
      it.live(`ends ${what} within 20 % of the limit`, () =>
        Effect.gen(function*() {
          const { allowed, result, taken } = yield* measure(
            80,
            ToolRunner.run([call("c0", "endless"), call("c1", "hi")], [tool, hi], { toolTimeout: 80 })
          )

          assertEquals(resultsOf(result)[0], timeout("c0", "endless", 80, abandoned))
          assert.strictEqual(contentsOf(result)[1], "hi")
          assert.isAtLeast(taken, 79)
          assert.isAtMost(taken, allowed)
        }))
    }

    it.live("keeps every limit of a batch of stuck calls at once", () =>
      Effect.gen(function*() {
        const calls = Array.from({ length: 50 }, (_, i) => call(`c${i}`, "endless"))
        const { allowed, result, taken } = yield* measure(
          100,
          ToolRunner.run(calls, [stuck], { toolTimeout: 100, concurrency: "unbounded" })
        )

        assert.deepStrictEqual(tagsOf(result), calls.map(() => "Timeout"))
        assert.isAtMost(taken, allowed)
      }))
  })
})
