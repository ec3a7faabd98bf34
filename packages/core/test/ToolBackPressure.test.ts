import { type Event, Tool, ToolCall, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream, TestClock } from "effect"

const calls = (size: number, name: string) =>
  Array.from({ length: size }, (_, i) => ToolCall.make({ id: `c${i}`, name, arguments: {} }))

/** Counts how often it was started. */
const counting = (work: Effect.Effect<void>) => {
  const state = { started: 0 }
  const tool = Tool.make("counting", {
    description: "Counts",
    handler: () =>
      Effect.suspend(() => {
        state.started++
        return work
      })
  })
  return { state, tool }
}

/** Reports from 0 on; `reported` tells how far it is. */
const reporting = (times: number) => {
  const state = { reported: 0 }
  const tool = Tool.make("reporting", {
    description: "Reports",
    handler: (_, { progress }) =>
      Effect.iterate(0, {
        while: (i) => i < times,
        body: (i) =>
          Effect.map(progress(i), () => {
            state.reported++
            return i + 1
          })
      })
  })
  return { state, tool }
}

const progressOf = (events: Iterable<Event.ToolEvent>) =>
  Array.from(events).flatMap((event) => event._tag === "ToolProgress" ? [event.value] : [])

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i)

/** Takes the first event, and no more until the gate opens. */
const paused = <E, R>(stream: Stream.Stream<Event.ToolEvent, E, R>) =>
  Effect.gen(function*() {
    const gate = yield* Deferred.make<void>()
    const consumer = yield* stream.pipe(
      Stream.tap(() => Deferred.await(gate)),
      Stream.runCollect,
      Effect.map((events) => Array.from(events)),
      Effect.fork
    )
    return { open: Effect.zipRight(Deferred.succeed(gate, undefined), Fiber.join(consumer)) }
  })

// Long enough for everything to happen that can happen without a consumer.
const idle = TestClock.adjust(0)

describe("ToolRunner: back-pressure", () => {
  describe("a consumer that does not read", () => {
    it.effect("holds further calls back", () =>
      Effect.gen(function*() {
        const { state, tool } = counting(Effect.yieldNow())
        const { open } = yield* paused(ToolRunner.stream(calls(1000, "counting"), [tool], { concurrency: 4 }))
        yield* idle
        const held = state.started
        yield* idle
        const stillHeld = state.started
        const events = yield* open

        assert.isBelow(held, 100)
        assert.strictEqual(stillHeld, held)
        assert.strictEqual(state.started, 1000)
        assert.strictEqual(events.length, 3000)
      }))

    it.effect("holds back calls that end at once, too", () =>
      Effect.gen(function*() {
        const { state, tool } = counting(Effect.void)
        const { open } = yield* paused(ToolRunner.stream(calls(5000, "counting"), [tool]))
        yield* idle
        const held = state.started
        const events = yield* open

        assert.isBelow(held, 1000)
        assert.strictEqual(events.length, 15_000)
      }))

    it.effect("lets what is running end", () =>
      Effect.gen(function*() {
        const ended: Array<string> = []
        const slow = Tool.make("slow", {
          description: "Slow",
          handler: (_, { toolCall }) => Effect.zipRight(Effect.sleep(10), Effect.sync(() => ended.push(toolCall.id)))
        })
        const { open } = yield* paused(ToolRunner.stream(calls(4, "slow"), [slow], { concurrency: 4 }))
        yield* TestClock.adjust("10 millis")
        const endedMeanwhile = [...ended].sort()
        yield* open

        assert.deepStrictEqual(endedMeanwhile, ["c0", "c1", "c2", "c3"])
      }))

    it.effect("lets progress wait, and loses none of it", () =>
      Effect.gen(function*() {
        const { state, tool } = reporting(2000)
        const { open } = yield* paused(ToolRunner.stream(calls(1, "reporting"), [tool]))
        yield* idle
        const held = state.reported
        yield* idle
        const stillHeld = state.reported
        const events = yield* open

        assert.isBelow(held, 200)
        assert.strictEqual(stillHeld, held)
        assert.deepStrictEqual(progressOf(events), upTo(2000))
      }))

    it.effect("does not lift the limit of a call that waits for it", () =>
      Effect.gen(function*() {
        const { tool } = reporting(Infinity)
        const { open } = yield* paused(ToolRunner.stream(calls(1, "reporting"), [tool], { toolTimeout: 50 }))
        yield* TestClock.adjust("50 millis")
        const events = yield* open

        assert.deepStrictEqual(
          events.filter((event) => event._tag === "ToolExecutionCompleted").map((event) => event.result._tag),
          ["Timeout"]
        )
      }))
  })

  describe("a consumer that is slower than the tools", () => {
    it.effect("is never far behind", () =>
      Effect.gen(function*() {
        const { state, tool } = reporting(5000)
        let consumed = 0
        let furthest = 0
        yield* ToolRunner.stream(calls(1, "reporting"), [tool]).pipe(
          Stream.runForEach((event) => {
            if (event._tag === "ToolProgress") consumed++
            furthest = Math.max(furthest, state.reported - consumed)
            return Effect.yieldNow()
          })
        )

        assert.strictEqual(consumed, 5000)
        assert.isBelow(furthest, 200)
      }))

    it.effect("is never far behind several tools that report at once", () =>
      Effect.gen(function*() {
        const { state, tool } = reporting(500)
        let consumed = 0
        let furthest = 0
        yield* ToolRunner.stream(calls(10, "reporting"), [tool], { concurrency: 10 }).pipe(
          Stream.runForEach((event) => {
            if (event._tag === "ToolProgress") consumed++
            furthest = Math.max(furthest, state.reported - consumed)
            return Effect.yieldNow()
          })
        )

        assert.strictEqual(consumed, 5000)
        assert.isBelow(furthest, 300)
      }))

    it.effect("gets every event, each call's in order", () =>
      Effect.gen(function*() {
        const { tool } = reporting(30)
        const batch = calls(50, "reporting")
        const events: Array<Event.ToolEvent> = []
        yield* ToolRunner.stream(batch, [tool], { concurrency: 7 }).pipe(
          Stream.runForEach((event) => Effect.zipRight(Effect.yieldNow(), Effect.sync(() => events.push(event))))
        )

        for (const { id } of batch) {
          const own = events.filter((event) => event._tag !== "ManualToolCalls" && event.toolCallId === id)
          assert.deepStrictEqual(own.map((event) => event._tag === "ToolProgress" ? event.value : event._tag), [
            "ToolExecutionStarted",
            ...upTo(30),
            "ToolExecutionCompleted",
            "ToolResultEncoded"
          ])
        }
      }))
  })

  it.effect("progress of a plain function is told at once and not lost", () =>
    Effect.gen(function*() {
      const plain = Tool.make("plain", {
        description: "Reports without waiting",
        handler: (_, { unsafeProgress }) => {
          for (let i = 0; i < 500; i++) unsafeProgress(i)
          return "done"
        }
      })
      const events = yield* Stream.runCollect(ToolRunner.stream(calls(1, "plain"), [plain]))

      assert.deepStrictEqual(progressOf(events), upTo(500))
    }))

  it.effect("progress arrives while the tool still runs", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const half = Tool.make("half", {
        description: "Waits for its own progress to be seen",
        handler: (_, { progress }) => Effect.zipRight(progress("half"), Deferred.await(gate))
      })
      const seen: Array<string> = []
      yield* ToolRunner.stream(calls(1, "half"), [half]).pipe(
        Stream.runForEach((event) => {
          seen.push(event._tag)
          return event._tag === "ToolProgress" ? Deferred.succeed(gate, undefined) : Effect.void
        })
      )

      assert.deepStrictEqual(seen, [
        "ToolExecutionStarted",
        "ToolProgress",
        "ToolExecutionCompleted",
        "ToolResultEncoded"
      ])
    }))

  it.effect("a run has no consumer to wait for", () =>
    Effect.gen(function*() {
      const { state, tool } = reporting(10_000)
      yield* ToolRunner.run(calls(1, "reporting"), [tool])

      assert.strictEqual(state.reported, 10_000)
    }))
})
