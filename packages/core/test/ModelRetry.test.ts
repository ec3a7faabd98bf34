import { Adapter, AdapterError, Allm, Engine, Fake, type Response, Tool } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { assertEquals } from "@effect/vitest/utils"
import { Chunk, Clock, Duration, Effect, FastCheck, Fiber, Layer, Random, Schedule, Stream, TestClock } from "effect"

const limited = new AdapterError.AdapterError({ reason: "rate_limited", status: 429 })
const asksToWait = (seconds: number) =>
  new AdapterError.AdapterError({ reason: "rate_limited", status: 429, retryAfter: Duration.seconds(seconds) })

const hello: Fake.Script = [Fake.text("hi"), Fake.finish("stop")]
const failing = (error: AdapterError.AdapterError | AdapterError.Reason): Fake.Script => [Fake.preflightError(error)]

/** Fails as often as told, then answers; `at` is when it was asked. */
const flaky = (failures: number, error = limited, settings: Engine.Options<never> = {}) => {
  const at: Array<number> = []
  const layer = Fake.engine({
    respond: (_request, index) => index < failures ? failing(error) : hello,
    record: () => Effect.map(Clock.currentTimeMillis, (now) => void at.push(now)),
    ...settings
  })
  return { at, layer }
}

const steady = AdapterError.retrySchedule({ jitter: 0 })

/** Runs with an hour of time to spend. */
const inTime = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.fork(effect)
    yield* TestClock.adjust("1 hour")
    return yield* Fiber.join(fiber)
  })

const waits = (at: ReadonlyArray<number>) => at.slice(1).map((time, index) => time - at[index]!)

describe("retry of model calls", () => {
  it.effect("RET-01 asks once when the first answer comes", () =>
    Effect.gen(function*() {
      const { at, layer } = flaky(0)
      const response = yield* inTime(Effect.provide(Allm.generate("hi"), layer))

      assert.strictEqual(response.outputText, "hi")
      assert.deepStrictEqual(at, [0])
    }))

  it.effect("RET-02 asks three times when the first two fail", () =>
    Effect.gen(function*() {
      const { at, layer } = flaky(2)
      const response = yield* inTime(Effect.provide(Allm.generate("hi"), layer))

      assert.strictEqual(response.outputText, "hi")
      assert.strictEqual(at.length, 3)
    }))

  it.effect("RET-03 gives up after three, with the last error", () =>
    Effect.gen(function*() {
      const error = yield* inTime(Effect.flip(Allm.generate("hi")))

      assert.strictEqual(error._tag === "AdapterError" && error.status, 3)
      assert.strictEqual((yield* Fake.requests).length, 3)
    }).pipe(Effect.provide(Fake.engine({
      scripts: [1, 2, 3].map((status) => failing(new AdapterError.AdapterError({ reason: "network_error", status })))
    }))))

  it.effect("RET-05 asks once with retry: false", () =>
    Effect.gen(function*() {
      const { at, layer } = flaky(1, limited, { retry: false })
      const error = yield* inTime(Effect.provide(Effect.flip(Allm.generate("hi")), layer))

      assert.strictEqual(error, limited)
      assert.deepStrictEqual(at, [0])
    }))

  it.effect.each([0, 1])("RET-05 asks once with maxAttempts: %s", (maxAttempts) =>
    Effect.gen(function*() {
      const { at, layer } = flaky(1, limited, { retry: AdapterError.retrySchedule({ maxAttempts }) })
      yield* inTime(Effect.provide(Effect.flip(Allm.generate("hi")), layer))

      assert.deepStrictEqual(at, [0])
    }))

  it.effect("RET-06 waits as long as the provider asks", () =>
    Effect.gen(function*() {
      const { at, layer } = flaky(2, asksToWait(42), { retry: steady })
      yield* inTime(Effect.provide(Allm.generate("hi"), layer))

      assert.deepStrictEqual(waits(at), [42_000, 42_000])
    }))

  it.effect("RET-06 waits less than it would, when the provider asks for less", () =>
    Effect.gen(function*() {
      const { at, layer } = flaky(2, asksToWait(0.1), { retry: steady })
      yield* inTime(Effect.provide(Allm.generate("hi"), layer))

      assert.deepStrictEqual(waits(at), [100, 100])
    }))

  it.effect("RET-06 adds jitter to what the provider asks for", () =>
    Effect.gen(function*() {
      const { at, layer } = flaky(1, asksToWait(42))
      yield* inTime(Effect.provide(Allm.generate("hi"), layer)).pipe(Effect.withRandom(Random.fixed([0.5])))

      assert.deepStrictEqual(waits(at), [42_125])
    }))

  it.effect("RET-07 doubles the wait up to the longest", () =>
    Effect.gen(function*() {
      const retry = AdapterError.retrySchedule({ maxAttempts: 6, jitter: 0, maxDelay: "3 seconds" })
      const { at, layer } = flaky(5, limited, { retry })
      yield* inTime(Effect.provide(Allm.generate("hi"), layer))

      assert.deepStrictEqual(waits(at), [500, 1_000, 2_000, 3_000, 3_000])
    }))

  it.effect("RET-07 waits at most 30 seconds and a quarter by default", () =>
    Effect.gen(function*() {
      const delays = yield* Schedule.run(
        Schedule.delays(AdapterError.retrySchedule({ maxAttempts: 10 })),
        0,
        Array.from({ length: 9 }, () => limited)
      )
      const millis = Array.from(delays, Duration.toMillis)

      millis.forEach((wait, index) => {
        const least = Math.min(30_000, 500 * 2 ** index)
        assert.isAtLeast(wait, least)
        assert.isAtMost(wait, least + 250)
      })
      assert.isAbove(new Set(millis.map((wait, index) => wait - Math.min(30_000, 500 * 2 ** index))).size, 1)
    }))

  it.effect.prop(
    "RET-07 keeps jitter within its bounds",
    [FastCheck.string()],
    ([seed]) =>
      Effect.gen(function*() {
        const delays = yield* Schedule.run(
          Schedule.delays(AdapterError.retrySchedule({ jitter: "100 millis" })),
          0,
          [limited, limited]
        ).pipe(Effect.withRandom(Random.make(seed)))
        const [first, second] = Array.from(delays, Duration.toMillis)

        assert.isTrue(first! >= 500 && first! <= 600)
        assert.isTrue(second! >= 1_000 && second! <= 1_100)
      })
  )

  it.effect.each(
    AdapterError.Reason.literals.filter((reason) => !new AdapterError.AdapterError({ reason }).isRetryable)
  )(
    "asks once when the reason is %s",
    (reason) =>
      Effect.gen(function*() {
        const error = new AdapterError.AdapterError({ reason })
        const { at, layer } = flaky(1, error)
        const failed = yield* inTime(Effect.provide(Effect.flip(Allm.generate("hi")), layer))

        assert.strictEqual(failed, error)
        assert.deepStrictEqual(at, [0])
      })
  )

  it.effect("does not ask again after a crash", () =>
    Effect.gen(function*() {
      let asked = 0
      const adapter = Adapter.make(() => {
        asked++
        return Effect.die("bug")
      })
      yield* inTime(Effect.flip(Allm.generate("hi"))).pipe(
        Effect.provide(Engine.layer().pipe(Layer.provide(Adapter.layer(adapter))))
      )

      assert.strictEqual(asked, 1)
    }))

  it.effect("RET-09 never asks again once something came", () =>
    Effect.gen(function*() {
      let asked = 0
      const adapter = Adapter.make((_request, emit) => {
        asked++
        return Effect.zipRight(emit([{ _tag: "TextDelta", delta: "half" }]), limited)
      })
      const result = yield* inTime(Allm.chat("hi")).pipe(
        Effect.provide(Engine.layer().pipe(Layer.provide(Adapter.layer(adapter))))
      )

      assert.strictEqual(asked, 1)
      assert.strictEqual(result.haltedReason, "error")
      assert.strictEqual(result.error, limited)
      assert.strictEqual(result.finalResponse.outputText, "half")
    }))

  it.effect("RET-09 never asks again after a lone start", () =>
    Effect.gen(function*() {
      const result = yield* inTime(Allm.generate("hi"))

      assert.strictEqual(result.finishReason, "error")
      assert.strictEqual((yield* Fake.requests).length, 1)
    }).pipe(Effect.provide(Fake.engine({ scripts: [[Fake.error("rate_limited")], hello] }))))

  it.effect("streams of chats are repeated too, and tell nothing of it", () =>
    Effect.gen(function*() {
      const { at, layer } = flaky(2)
      const events = yield* inTime(Stream.runCollect(Allm.stream("hi")).pipe(Effect.provide(layer)))

      assert.strictEqual(at.length, 3)
      assert.deepStrictEqual(Array.from(Chunk.toReadonlyArray(events), ({ _tag }) => _tag), [
        "MessageStarted",
        "TextDelta",
        "TextCompleted",
        "MessageCompleted",
        "StepCompleted",
        "ChatCompleted"
      ])
    }))

  it.effect("repeats a later step, and runs no tool twice", () =>
    Effect.gen(function*() {
      let ran = 0
      const count = Tool.make("count", { description: "Counts", handler: () => ++ran })
      const result = yield* inTime(Allm.chat("hi", { tools: [count] })).pipe(
        Effect.provide(Fake.engine({
          scripts: [
            [Fake.toolCall({ id: "c0", name: "count" }), Fake.finish("tool_calls")],
            failing("provider_unavailable"),
            hello
          ]
        }))
      )

      assert.strictEqual(ran, 1)
      assert.deepStrictEqual([result.haltedReason, result.steps.length], ["completed", 2])
    }))

  it.effect("every model call of a chat has its own attempts", () =>
    Effect.gen(function*() {
      const echo = Tool.make("echo", { description: "Says it again", handler: (args) => args })
      const result = yield* inTime(Allm.chat("hi", { tools: [echo] })).pipe(
        Effect.provide(Fake.engine({
          scripts: [
            failing(limited),
            failing(limited),
            [Fake.toolCall({ id: "c0", name: "echo" }), Fake.finish("tool_calls")],
            failing(limited),
            failing(limited),
            hello
          ]
        }))
      )

      assert.strictEqual(result.haltedReason, "completed")
    }))

  it.effect("goes by a schedule of the caller's own", () =>
    Effect.gen(function*() {
      const { at, layer } = flaky(4)
      const retry = Schedule.intersect(Schedule.spaced("10 seconds"), Schedule.recurs(4))
      const response: Response.Response = yield* inTime(Effect.provide(Allm.generate("hi", { retry }), layer))

      assert.strictEqual(response.outputText, "hi")
      assert.deepStrictEqual(at, [0, 10_000, 20_000, 30_000, 40_000])
    }))

  it.effect("a schedule of the caller's own decides by the error", () =>
    Effect.gen(function*() {
      const { at, layer } = flaky(1, limited)
      const retry = Schedule.recurWhile<AdapterError.AdapterError>((error) => error.status !== 429)
      const error = yield* inTime(Effect.provide(Effect.flip(Allm.generate("hi", { retry })), layer))

      assertEquals(error, limited)
      assert.deepStrictEqual(at, [0])
    }))

  it.effect("the call's retry beats the engine's", () =>
    Effect.gen(function*() {
      const { at, layer } = flaky(1, limited, { retry: false })
      const response = yield* inTime(Effect.provide(Allm.generate("hi", { retry: steady }), layer))

      assert.strictEqual(response.outputText, "hi")
      assert.deepStrictEqual(at, [0, 500])
    }))

  it.effect("stops waiting when interrupted", () =>
    Effect.gen(function*() {
      const { at, layer } = flaky(1, asksToWait(60))
      const fiber = yield* Effect.fork(Effect.provide(Allm.generate("hi"), layer))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)
      yield* TestClock.adjust("10 minutes")

      assert.deepStrictEqual(at, [0])
    }))
})
