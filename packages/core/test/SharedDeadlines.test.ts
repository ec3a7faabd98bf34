import { Adapter, AdapterError, Allm, Engine, type Event, Tool, ToolCall, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, TestClock } from "effect"

const sleepy = Tool.make("sleepy", { description: "Never ends", handler: () => Effect.never })
const call = ToolCall.make({ id: "a", name: "sleepy", arguments: {} })

const batch = (toolTimeout: string) =>
  Effect.map(
    ToolRunner.run([call], [sleepy], { toolTimeout: toolTimeout as "1 second" }),
    ({ messages }) => messages[0]!
  )

describe("the deadlines of runs that share a clock", () => {
  it.effect("are each kept, whichever comes first", () =>
    Effect.gen(function*() {
      const ended: Array<string> = []
      const limits = ["5 seconds", "1 second", "3 seconds", "1 second"]
      const fibers = yield* Effect.forEach(
        limits,
        (limit, index) =>
          Effect.fork(Effect.tap(batch(limit), () => Effect.sync(() => ended.push(`${index}: ${limit}`))))
      )
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(ended, ["1: 1 second", "3: 1 second"])
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(ended.slice(2), ["2: 3 seconds"])
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(ended.slice(3), ["0: 5 seconds"])
      yield* Effect.forEach(fibers, Fiber.join)
    }))

  it.effect("outlive the run that was there first", () =>
    Effect.gen(function*() {
      const first = yield* Effect.fork(batch("10 seconds"))
      const second = yield* Effect.fork(batch("20 seconds"))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(first)
      yield* TestClock.adjust("19 seconds")
      assert.isTrue((yield* Fiber.join(second)).isError)
    }))

  it.effect("of a run that is over say nothing to one that comes later", () =>
    Effect.gen(function*() {
      const before = yield* Effect.fork(batch("2 seconds"))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(before)
      const after = yield* Effect.fork(batch("3 seconds"))
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* Fiber.poll(after).pipe(Effect.map(({ _tag }) => _tag)), "None")
      yield* TestClock.adjust("1 second")
      assert.isTrue((yield* Fiber.join(after)).isError)
    }))

  it.live("are kept by one fiber for a thousand chats, and by none when they are over", () =>
    Effect.gen(function*() {
      const stop: Event.AdapterEvent = { _tag: "MessageCompleted", finishReason: "stop", metadata: {} }
      const release: Array<() => void> = []
      const adapter = Adapter.fromPromise(
        () => new Promise<ReadonlyArray<Event.AdapterEvent>>((resolve) => release.push(() => resolve([stop]))),
        (cause) => new AdapterError.AdapterError({ reason: "unknown", cause })
      )
      const engine = Engine.layer().pipe(Layer.provide(Adapter.layer(adapter)))
      const before = Fiber.unsafeRoots().length
      const chats = Effect.forEach(Array.from({ length: 1_000 }), () => Allm.generate("hi"), {
        concurrency: "unbounded"
      })
      const running = yield* Effect.fork(Effect.provide(chats, engine))
      yield* Effect.sleep("20 millis")
      assert.strictEqual(release.length, 1_000)
      // A fiber for each chat and the one that waits for them are `forEach`'s.
      assert.strictEqual(Fiber.unsafeRoots().length - before, 1_000 + 1 + 1)
      for (const one of release) one()
      yield* Fiber.join(running)
      yield* Effect.sleep("5 millis")
      assert.strictEqual(Fiber.unsafeRoots().length - before, 0)
    }))
})
