import {
  type Event,
  OnToolError,
  Telemetry,
  Tool,
  ToolCall,
  ToolResult,
  ToolResultEncoder,
  ToolRunner
} from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import {
  Cause,
  Deferred,
  Effect,
  Exit,
  Fiber,
  Logger,
  Metric,
  Option,
  Queue,
  Ref,
  Schedule,
  Schema,
  Stream,
  Supervisor,
  TestClock
} from "effect"

const call = (id: string, name: string, args: unknown = {}) => ToolCall.make({ id, name, arguments: args })

const calls = (size: number, name: string) => Array.from({ length: size }, (_, i) => call(`c${i}`, name))

/** A place to write down what happened, in order. */
const journal = Effect.map(Ref.make<ReadonlyArray<string>>([]), (lines) => ({
  note: (line: string) => Ref.update(lines, (before) => [...before, line]),
  lines: Ref.get(lines)
}))

const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })

/** Waits until it is stopped, and tells when it has begun. */
const waiting = (begun: Queue.Enqueue<string>, tidy: (id: string) => Effect.Effect<void>) =>
  Tool.make("waiting", {
    description: "Waits",
    handler: (_, { toolCall }) =>
      Effect.ensuring(Effect.zipRight(Queue.offer(begun, toolCall.id), Effect.never), tidy(toolCall.id))
  })

const liveFibers = <A, E, R>(effect: (count: Effect.Effect<number>) => Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const supervisor = yield* Supervisor.track
    return yield* Effect.supervised(
      effect(Effect.map(supervisor.value, (fibers) => fibers.length)),
      supervisor
    )
  })

describe("ToolRunner: interruption", () => {
  describe("of run", () => {
    it.effect("interrupts every tool, and waits for the finalizers", () =>
      Effect.gen(function*() {
        const { lines, note } = yield* journal
        const begun = yield* Queue.unbounded<string>()
        const millis: Record<string, number> = { c0: 20, c1: 30, c2: 10 }
        const tool = waiting(begun, (id) => Effect.delay(note(`${id} tidied`), millis[id]!))
        const fiber = yield* Effect.fork(ToolRunner.run(calls(3, "waiting"), [tool]))
        yield* Queue.takeN(begun, 3)
        yield* Fiber.interrupt(fiber).pipe(Effect.zipRight(note("interrupted")), Effect.fork)
        yield* TestClock.adjust("30 millis")

        assert.deepStrictEqual(yield* lines, ["c2 tidied", "c0 tidied", "c1 tidied", "interrupted"])
      }))

    it.effect("ends as interrupted, and as nothing else", () =>
      Effect.gen(function*() {
        const begun = yield* Queue.unbounded<string>()
        const fiber = yield* Effect.fork(
          ToolRunner.run([call("c0", "waiting"), call("c1", "hi")], [waiting(begun, () => Effect.die("no")), hi])
        )
        yield* Queue.take(begun)
        const exit = yield* Fiber.interrupt(fiber)

        assert.strictEqual(Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause), true)
      }))

    it.effect("aborts the signal of every running call, also of a promise", () =>
      Effect.gen(function*() {
        const signals: Array<AbortSignal> = []
        const deaf = Tool.make("deaf", {
          description: "Waits",
          handler: (_, { signal }) => {
            signals.push(signal)
            return new Promise<string>(() => {})
          }
        })
        const fiber = yield* Effect.fork(ToolRunner.run(calls(2, "deaf"), [deaf]))
        yield* Effect.yieldNow()
        const before = signals.map((signal) => signal.aborted)
        yield* Fiber.interrupt(fiber)

        assert.deepStrictEqual(before, [false, false])
        assert.deepStrictEqual(signals.map((signal) => signal.aborted), [true, true])
      }))

    it.effect("does not start what is still queued", () =>
      Effect.gen(function*() {
        const begun = yield* Queue.unbounded<string>()
        const tool = waiting(begun, () => Effect.void)
        const fiber = yield* Effect.fork(ToolRunner.run(calls(5, "waiting"), [tool], { concurrency: 2 }))
        yield* Queue.takeN(begun, 2)
        yield* Fiber.interrupt(fiber)
        yield* TestClock.adjust("1 minute")

        assert.strictEqual(yield* Queue.size(begun), 0)
      }))

    it.effect("does not start what waits for its key or for being alone", () =>
      Effect.gen(function*() {
        const begun = yield* Queue.unbounded<string>()
        const handler = (id: string) => Effect.zipRight(Queue.offer(begun, id), Effect.never)
        const keyed = Tool.make("keyed", {
          description: "Waits",
          parameters: { key: Schema.String },
          exclusive: "key",
          handler: (_, { toolCall }) => handler(toolCall.id)
        })
        const alone = Tool.make("alone", {
          description: "Waits",
          exclusive: true,
          handler: (_, { toolCall }) => handler(toolCall.id)
        })
        const fiber = yield* Effect.fork(
          ToolRunner.run(
            [call("c0", "keyed", { key: "k" }), call("c1", "keyed", { key: "k" }), call("c2", "alone")],
            [keyed, alone]
          )
        )
        const first = yield* Queue.take(begun)
        yield* Fiber.interrupt(fiber)
        yield* TestClock.adjust("1 minute")

        assert.strictEqual(first, "c0")
        assert.strictEqual(yield* Queue.size(begun), 0)
      }))

    it.effect("stops a tool between two attempts", () =>
      Effect.gen(function*() {
        const attempts = yield* Ref.make(0)
        const flaky = Tool.make("flaky", {
          description: "Fails",
          retry: Schedule.spaced("1 second"),
          handler: () => Effect.zipRight(Ref.update(attempts, (n) => n + 1), Effect.fail("again"))
        })
        const fiber = yield* Effect.fork(ToolRunner.run([call("c0", "flaky")], [flaky]))
        yield* TestClock.adjust("2 seconds")
        yield* Fiber.interrupt(fiber)
        yield* TestClock.adjust("1 minute")

        assert.strictEqual(yield* Ref.get(attempts), 3)
      }))

    it.effect("stops a policy that decides and an encoder that encodes", () =>
      Effect.gen(function*() {
        const { lines, note } = yield* journal
        const begun = yield* Queue.unbounded<string>()
        const wait = (who: string) =>
          Effect.zipRight(Queue.offer(begun, who), Effect.never).pipe(Effect.onInterrupt(() => note(`${who} stopped`)))
        const failing = Tool.make("failing", { description: "Fails", handler: () => Effect.fail("no") })
        const encoder = ToolResultEncoder.layer({ encode: () => wait("encoder") })
        const fiber = yield* ToolRunner.run([call("c0", "failing"), call("c1", "hi")], [failing, hi], {
          onToolError: () => Effect.as(wait("policy"), OnToolError.halt)
        }).pipe(Effect.provide(encoder), Effect.fork)
        yield* Queue.takeN(begun, 2)
        yield* Fiber.interrupt(fiber)

        assert.deepStrictEqual(yield* lines, ["policy stopped", "encoder stopped"])
      }))

    it.effect("is not held for longer than the limit by a tool that cannot be stopped", () =>
      Effect.gen(function*() {
        const before = yield* Metric.value(Telemetry.abandonedFibers)
        const stuck = Tool.make("stuck", { description: "Waits", handler: () => Effect.uninterruptible(Effect.never) })
        const fiber = yield* Effect.fork(ToolRunner.run([call("c0", "stuck")], [stuck], { toolTimeout: 50 }))
        yield* TestClock.adjust("20 millis")
        const interruption = yield* Effect.fork(Fiber.interrupt(fiber))
        yield* TestClock.adjust("29 millis")
        const early = yield* Fiber.poll(interruption)
        yield* TestClock.adjust("1 millis")
        const exit = yield* Fiber.join(interruption)
        const after = yield* Metric.value(Telemetry.abandonedFibers)

        assert.strictEqual(Option.isNone(early), true)
        assert.strictEqual(Exit.isInterrupted(exit), true)
        assert.strictEqual(after.count - before.count, 1)
      }))

    it.effect("comes with a timeout of the caller's own", () =>
      Effect.gen(function*() {
        const { lines, note } = yield* journal
        const begun = yield* Queue.unbounded<string>()
        const fiber = yield* ToolRunner.run([call("c0", "waiting")], [waiting(begun, (id) => note(`${id} tidied`))])
          .pipe(Effect.timeoutOption("5 seconds"), Effect.fork)
        yield* TestClock.adjust("5 seconds")

        assert.strictEqual(Option.isNone(yield* Fiber.join(fiber)), true)
        assert.deepStrictEqual(yield* lines, ["c0 tidied"])
      }))

    it.effect("comes with the loss of a race", () =>
      Effect.gen(function*() {
        const { lines, note } = yield* journal
        const begun = yield* Queue.unbounded<string>()
        const winner = yield* Effect.race(
          ToolRunner.run([call("c0", "waiting")], [waiting(begun, (id) => note(`${id} tidied`))]),
          Effect.as(Queue.take(begun), "winner")
        )

        assert.strictEqual(winner, "winner")
        assert.deepStrictEqual(yield* lines, ["c0 tidied"])
      }))
  })

  describe("by a sibling that halts", () => {
    const halting = Tool.make("halting", {
      description: "Halts",
      handler: () => Effect.as(Effect.sleep(10), ToolResult.halt("enough", null))
    })

    it.effect("stops the running and skips the queued, each with a message", () =>
      Effect.gen(function*() {
        const { lines, note } = yield* journal
        const begun = yield* Queue.unbounded<string>()
        const fiber = yield* ToolRunner.run(
          [call("c0", "waiting"), call("c1", "halting"), call("c2", "waiting")],
          [waiting(begun, (id) => note(`${id} tidied`)), halting],
          { siblings: "interrupt", concurrency: 2 }
        ).pipe(Effect.fork)
        yield* TestClock.adjust("10 millis")
        const { halt, messages, outcomes } = yield* Fiber.join(fiber)

        assert.deepStrictEqual(yield* lines, ["c0 tidied"])
        assert.deepStrictEqual(halt, { reason: "enough", toolCallId: "c1", result: null })
        assert.deepStrictEqual(outcomes.map(({ result }) => result._tag), ["Interrupted", "Halt", "Skipped"])
        assert.deepStrictEqual(messages.map(({ content, isError }) => ({ content, isError })), [
          {
            content: "{\"error\":\"tool error (waiting): interrupted: " +
              "stopped because the turn was ended; it may have taken effect\"}",
            isError: true
          },
          { content: "null", isError: false },
          {
            content: "{\"error\":\"tool error (waiting): skipped: not started because the turn was ended\"}",
            isError: true
          }
        ])
      }))

    it.effect("gives siblings the time of drainFor, and no more", () =>
      Effect.gen(function*() {
        const takes = (millis: number) =>
          Tool.make(`takes_${millis}`, {
            description: "Takes its time",
            handler: () => Effect.as(Effect.sleep(millis), millis)
          })
        const fiber = yield* Effect.fork(
          ToolRunner.run(
            [call("c0", "takes_29"), call("c1", "takes_31"), call("c2", "halting")],
            [takes(29), takes(31), halting],
            { siblings: { drainFor: 20 } }
          )
        )
        yield* TestClock.adjust("29 millis")
        const early = yield* Fiber.poll(fiber)
        yield* TestClock.adjust("1 millis")
        const { outcomes } = yield* Fiber.join(fiber)

        assert.strictEqual(Option.isNone(early), true)
        assert.deepStrictEqual(outcomes.map(({ result }) => result._tag), ["Ok", "Interrupted", "Halt"])
      }))

    it.effect("lets siblings drain by default, the queued ones too", () =>
      Effect.gen(function*() {
        const slow = Tool.make("slow", { description: "Slow", handler: () => Effect.as(Effect.sleep(50), "slow") })
        const fiber = yield* Effect.fork(
          ToolRunner.run([call("c0", "slow"), call("c1", "halting"), call("c2", "slow")], [slow, halting], {
            concurrency: 2
          })
        )
        yield* TestClock.adjust("60 millis")
        const { messages } = yield* Fiber.join(fiber)

        assert.deepStrictEqual(messages.map((message) => message.content), ["slow", "null", "slow"])
      }))
  })

  describe("of stream", () => {
    it.effect("RSTR-17 comes with a consumer that stops early", () =>
      Effect.gen(function*() {
        const { lines, note } = yield* journal
        const begun = yield* Queue.unbounded<string>()
        const tool = waiting(begun, (id) => Effect.delay(note(`${id} tidied`), 10))
        yield* ToolRunner.stream([call("c0", "hi"), call("c1", "waiting")], [hi, tool]).pipe(
          Stream.take(2),
          Stream.runDrain,
          Effect.zipRight(note("consumer done")),
          Effect.fork
        )
        yield* TestClock.adjust("10 millis")

        assert.deepStrictEqual(yield* lines, ["c1 tidied", "consumer done"])
      }))

    it.effect("comes with a consumer that fails", () =>
      Effect.gen(function*() {
        const { lines, note } = yield* journal
        const begun = yield* Queue.unbounded<string>()
        const exit = yield* ToolRunner.stream([call("c0", "waiting")], [waiting(begun, (id) => note(`${id} tidied`))])
          .pipe(Stream.runForEach(() => Effect.fail("enough")), Effect.exit)

        assert.strictEqual(Exit.isFailure(exit), true)
        assert.deepStrictEqual(yield* lines, ["c0 tidied"])
      }))

    it.effect("emits nothing afterwards", () =>
      Effect.gen(function*() {
        const seen: Array<Event.ToolEvent["_tag"]> = []
        const begun = yield* Deferred.make<void>()
        const chatty = Tool.make("chatty", {
          description: "Reports also while it ends",
          handler: (_, { progress, unsafeProgress }) =>
            Effect.zipRight(Deferred.succeed(begun, undefined), Effect.never).pipe(
              Effect.ensuring(Effect.zipRight(progress("tidying"), Effect.sync(() => unsafeProgress("tidied"))))
            )
        })
        const fiber = yield* ToolRunner.stream([call("c0", "chatty"), call("c1", "chatty")], [chatty]).pipe(
          Stream.runForEach((event) => Effect.sync(() => seen.push(event._tag))),
          Effect.fork
        )
        yield* Deferred.await(begun)
        yield* TestClock.adjust(0)
        yield* Fiber.interrupt(fiber)
        yield* TestClock.adjust("1 minute")

        assert.deepStrictEqual(seen, ["ToolExecutionStarted", "ToolExecutionStarted"])
      }))

    it.effect("frees tools that wait for a slow consumer", () =>
      Effect.gen(function*() {
        const { lines, note } = yield* journal
        const chatty = Tool.make("chatty", {
          description: "Reports for ever",
          handler: (_, { progress }) => Effect.forever(progress("more")).pipe(Effect.ensuring(note("tidied")))
        })
        const fiber = yield* ToolRunner.stream([call("c0", "chatty")], [chatty], { toolTimeout: "1 hour" }).pipe(
          Stream.runForEach(() => Effect.never),
          Effect.fork
        )
        yield* TestClock.adjust("1 second")
        yield* Fiber.interrupt(fiber)

        assert.deepStrictEqual(yield* lines, ["tidied"])
      }))
  })

  describe("leaves nothing behind", () => {
    const sleepy = Tool.make("sleepy", {
      description: "Sleeps",
      handler: () => Effect.as(Effect.sleep("1 hour"), "up")
    })
    const brief = Tool.make("brief", { description: "Brief", handler: () => Effect.as(Effect.sleep(2), "ok") })

    // The test runner has timers of its own that come and go: only many left behind are a finding.
    const timersLeft = <A, E>(batch: Effect.Effect<A, E>) =>
      Effect.gen(function*() {
        const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length
        const before = timers()
        yield* Effect.repeatN(batch, 29)
        yield* Effect.yieldNow()
        return timers() - before
      })

    it.live("no timer after an interruption", () =>
      Effect.gen(function*() {
        const left = yield* timersLeft(
          Effect.fork(ToolRunner.run(calls(3, "sleepy"), [sleepy])).pipe(
            Effect.tap(Effect.yieldNow()),
            Effect.flatMap(Fiber.interrupt)
          )
        )

        assert.isBelow(left, 5)
      }))

    it.live("no timer after a run that went well", () =>
      Effect.gen(function*() {
        assert.isBelow(yield* timersLeft(ToolRunner.run(calls(3, "brief"), [brief])), 5)
      }))

    it.live("no timer after a run that timed out", () =>
      Effect.gen(function*() {
        assert.isBelow(yield* timersLeft(ToolRunner.run(calls(3, "sleepy"), [sleepy], { toolTimeout: 2 })), 5)
      }))

    it.live("but timers of tools that go on, while they go on", () =>
      Effect.gen(function*() {
        const running: Array<Fiber.RuntimeFiber<unknown, unknown>> = []
        const left = yield* timersLeft(
          Effect.fork(ToolRunner.run(calls(3, "sleepy"), [sleepy])).pipe(
            Effect.tap((fiber) => Effect.sync(() => running.push(fiber))),
            Effect.zipRight(Effect.yieldNow())
          )
        )
        yield* Fiber.interruptAll(running)

        assert.isAbove(left, 80)
      }))

    it.live("no fiber after an interruption", () =>
      liveFibers((count) =>
        Effect.gen(function*() {
          const before = yield* count
          const fiber = yield* Effect.fork(ToolRunner.run(calls(20, "sleepy"), [sleepy], { concurrency: 20 }))
          yield* Effect.sleep(5)
          const during = yield* count
          yield* Fiber.interrupt(fiber)
          yield* Effect.yieldNow()

          // The caller, twenty calls, and the one that keeps their time.
          assert.strictEqual(during - before, 22)
          assert.strictEqual(yield* count, before)
        })
      ))

    it.live("no fiber after a stream that was cut short", () =>
      liveFibers((count) =>
        Effect.gen(function*() {
          const before = yield* count
          yield* ToolRunner.stream(calls(20, "sleepy"), [sleepy]).pipe(Stream.take(3), Stream.runDrain)
          yield* Effect.yieldNow()

          assert.strictEqual(yield* count, before)
        })
      ))

    it.live("no fiber after a run that went well, timed out or crashed", () =>
      liveFibers((count) =>
        Effect.gen(function*() {
          const before = yield* count
          const boom = Tool.make("boom", {
            description: "Crashes",
            handler: () => Effect.zipRight(Effect.sleep(1), Effect.die("boom"))
          })
          yield* ToolRunner.run([call("c0", "sleepy"), call("c1", "boom"), call("c2", "hi")], [sleepy, boom, hi], {
            toolTimeout: 10
          }).pipe(Effect.provide(Logger.remove(Logger.defaultLogger)))
          yield* Effect.yieldNow()

          assert.strictEqual(yield* count, before)
        })
      ))
  })
})
