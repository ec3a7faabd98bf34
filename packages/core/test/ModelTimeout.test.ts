import { Adapter, AdapterError, Allm, Engine, type Event } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { assertEquals } from "@effect/vitest/utils"
import { Chunk, Clock, Deferred, Effect, Fiber, Layer, Ref, Stream, TestClock } from "effect"

const delta = (text: string): Event.AdapterEvent => ({ _tag: "TextDelta", delta: text })
const stop: Event.AdapterEvent = { _tag: "MessageCompleted", finishReason: "stop", metadata: {} }

const engine = (generate: Adapter.Service["generate"], settings: Engine.Options<never>) =>
  Engine.layer({ retry: false, ...settings }).pipe(Layer.provide(Adapter.layer(Adapter.make(generate))))

const stuck = {
  "that waits for ever": () => Effect.never,
  "that cannot be interrupted": () => Effect.uninterruptible(Effect.never),
  "whose finalizer never ends": () => Effect.ensuring(Effect.never, Effect.never),
  "that waits for a promise": () => Effect.promise(() => new Promise<void>(() => {}))
} satisfies { readonly [name: string]: Adapter.Service["generate"] }

const tooLong = (detail: string) => new AdapterError.AdapterError({ reason: "timeout", provider: "custom", detail })

const taking = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const before = yield* Clock.currentTimeMillis
    yield* effect
    return (yield* Clock.currentTimeMillis) - before
  })

describe("limits of model calls", () => {
  describe("requestTimeout", () => {
    for (const [name, generate] of Object.entries(stuck)) {
      it.effect(`ends a model ${name}, on time`, () =>
        Effect.gen(function*() {
          const fiber = yield* Effect.fork(Effect.flip(Allm.generate("hi")))
          yield* TestClock.adjust("1999 millis")
          assert.strictEqual(fiber.unsafePoll(), null)
          yield* TestClock.adjust("1 millis")

          assertEquals(yield* Fiber.join(fiber), tooLong("the model call took longer than 2000 ms"))
        }).pipe(Effect.provide(engine(generate, { requestTimeout: "2 seconds" }))))

      it.live(`ends a model ${name} within 20 % of the limit`, () =>
        Effect.gen(function*() {
          const took = yield* taking(Effect.flip(Allm.generate("hi")))

          assert.isAtLeast(took, 199)
          assert.isAtMost(took, 240)
        }).pipe(Effect.provide(engine(generate, { requestTimeout: "200 millis" }))))
    }

    it.effect("is ten minutes by default", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.fork(Effect.flip(Allm.generate("hi")))
        yield* TestClock.adjust("599 seconds")
        assert.strictEqual(fiber.unsafePoll(), null)
        yield* TestClock.adjust("1 second")

        assertEquals(yield* Fiber.join(fiber), tooLong("the model call took longer than 600000 ms"))
      }).pipe(Effect.provide(engine(() => Effect.never, {}))))

    it.effect("ends a model that goes on and on, and keeps what it said", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.fork(Allm.chat("hi"))
        yield* TestClock.adjust("2500 millis")
        const result = yield* Fiber.join(fiber)

        assert.strictEqual(result.haltedReason, "error")
        assert.strictEqual(result.finalResponse.outputText, "aa")
        assertEquals(result.error, tooLong("the model call took longer than 2500 ms"))
      }).pipe(Effect.provide(engine(
        (_request, emit) => Effect.forever(Effect.zipRight(Effect.sleep("1 second"), emit([delta("a")]))),
        { requestTimeout: "2500 millis" }
      ))))

    it.effect("runs the finalizers of a model that stops when told to", () =>
      Effect.gen(function*() {
        const closed = yield* Ref.make(false)
        const fiber = yield* Effect.fork(
          Effect.flip(Allm.generate("hi")).pipe(
            Effect.provide(engine(() => Effect.ensuring(Effect.never, Ref.set(closed, true)), { requestTimeout: 100 }))
          )
        )
        yield* TestClock.adjust("100 millis")
        yield* Fiber.join(fiber)

        assert.isTrue(yield* Ref.get(closed))
      }))

    it.effect("limits each attempt for itself", () =>
      Effect.gen(function*() {
        let asked = 0
        const layer = engine((_request, emit) => ++asked < 3 ? Effect.never : emit([delta("hi"), stop]), {
          requestTimeout: "1 second",
          retry: AdapterError.retrySchedule({ jitter: 0 })
        })
        const fiber = yield* Effect.fork(Effect.provide(Allm.generate("hi"), layer))
        yield* TestClock.adjust("3500 millis")

        assert.strictEqual((yield* Fiber.join(fiber)).outputText, "hi")
        assert.strictEqual(asked, 3)
      }))

    it.effect("of a call beats the engine's", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.fork(Effect.flip(Allm.generate("hi", { requestTimeout: "1 second" })))
        yield* TestClock.adjust("1 second")

        assertEquals(yield* Fiber.join(fiber), tooLong("the model call took longer than 1000 ms"))
      }).pipe(Effect.provide(engine(() => Effect.never, { requestTimeout: "1 minute" }))))

    it.effect("hears nothing of a model that it left behind", () =>
      Effect.gen(function*() {
        let asked = 0
        const layer = engine((_request, emit) =>
          ++asked === 1
            ? Effect.uninterruptible(Effect.zipRight(Effect.sleep("2 seconds"), emit([delta("late "), stop])))
            : Effect.zipRight(Effect.sleep("900 millis"), emit([delta("hi"), stop])), {
          requestTimeout: "1 second",
          retry: AdapterError.retrySchedule({ jitter: 0, baseDelay: "500 millis" })
        })
        const fiber = yield* Effect.fork(Effect.provide(Allm.generate("hi"), layer))
        yield* TestClock.adjust("1 minute")

        assert.strictEqual((yield* Fiber.join(fiber)).outputText, "hi")
        assert.strictEqual(asked, 2)
      }))
  })

  describe("idleTimeout", () => {
    for (const [name, generate] of Object.entries(stuck)) {
      it.effect(`ends a model ${name}, on time`, () =>
        Effect.gen(function*() {
          const fiber = yield* Effect.fork(Effect.flip(Allm.generate("hi")))
          yield* TestClock.adjust("1999 millis")
          assert.strictEqual(fiber.unsafePoll(), null)
          yield* TestClock.adjust("1 millis")

          assertEquals(yield* Fiber.join(fiber), tooLong("nothing came from the model for 2000 ms"))
        }).pipe(Effect.provide(engine(generate, { idleTimeout: "2 seconds" }))))

      it.live(`ends a model ${name} within 20 % of the limit`, () =>
        Effect.gen(function*() {
          const took = yield* taking(Effect.flip(Allm.generate("hi")))

          assert.isAtLeast(took, 199)
          assert.isAtMost(took, 240)
        }).pipe(Effect.provide(engine(generate, { idleTimeout: "200 millis" }))))
    }

    it.effect("does not mind a model that is slow but never silent for long", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.fork(Allm.generate("hi"))
        yield* TestClock.adjust("10 seconds")
        const response = yield* Fiber.join(fiber)

        assert.strictEqual(response.outputText, "aaaaaaaaaa")
        assert.strictEqual(response.finishReason, "stop")
      }).pipe(Effect.provide(engine((_request, emit) =>
        Effect.zipRight(
          Effect.forEach(
            Array.from({ length: 10 }),
            () => Effect.zipRight(Effect.sleep("1 second"), emit([delta("a")])),
            { discard: true }
          ),
          emit([stop])
        ), { idleTimeout: "1500 millis" }))))

    it.effect("counts from the last event, and keeps what came", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.fork(Allm.chat("hi"))
        yield* TestClock.adjust("2999 millis")
        assert.strictEqual(fiber.unsafePoll(), null)
        yield* TestClock.adjust("1 millis")
        const result = yield* Fiber.join(fiber)

        assert.strictEqual(result.haltedReason, "error")
        assert.strictEqual(result.finalResponse.outputText, "half")
        assertEquals(result.error, tooLong("nothing came from the model for 2000 ms"))
      }).pipe(Effect.provide(engine(
        (_request, emit) =>
          Effect.sleep("1 second").pipe(Effect.zipRight(emit([delta("half")])), Effect.zipRight(Effect.never)),
        { idleTimeout: "2 seconds" }
      ))))

    it.effect("tells a stream of it, and ends it", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.fork(Stream.runCollect(Allm.stream("hi")))
        yield* TestClock.adjust("2 seconds")
        const events = Chunk.toReadonlyArray(yield* Fiber.join(fiber))

        assert.deepStrictEqual(events.map(({ _tag }) => _tag), [
          "TextDelta",
          "ErrorOccurred",
          "StepCompleted",
          "ChatCompleted"
        ])
      }).pipe(Effect.provide(engine(
        (_request, emit) => Effect.zipRight(emit([delta("half")]), Effect.uninterruptible(Effect.never)),
        { idleTimeout: "2 seconds" }
      ))))

    it.effect("a slow reader is not a silent model", () =>
      Effect.gen(function*() {
        const fiber = yield* Allm.stream("hi").pipe(
          Stream.rechunk(1),
          Stream.tap((event) => event._tag === "TextDelta" ? Effect.sleep("1 second") : Effect.void),
          Stream.runCollect,
          Effect.fork
        )
        yield* TestClock.adjust("10 minutes")
        const events = Chunk.toReadonlyArray(yield* Fiber.join(fiber))

        assert.strictEqual(events.filter(({ _tag }) => _tag === "TextDelta").length, 300)
        assert.strictEqual(events.filter(({ _tag }) => _tag === "ErrorOccurred").length, 0)
      }).pipe(Effect.provide(engine(
        (_request, emit) =>
          Effect.zipRight(
            Effect.forEach(Array.from({ length: 300 }), () => emit([delta("a")]), { discard: true }),
            emit([stop])
          ),
        { idleTimeout: "5 seconds", requestTimeout: "1 hour" }
      ))))
  })

  describe("both", () => {
    it.effect("the shorter one counts", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.fork(Effect.flip(Allm.generate("hi")))
        yield* TestClock.adjust("1 second")

        assertEquals(yield* Fiber.join(fiber), tooLong("nothing came from the model for 1000 ms"))
      }).pipe(Effect.provide(engine(() => Effect.never, { requestTimeout: "2 seconds", idleTimeout: "1 second" }))))

    it.effect("leave a model alone that answers at once", () =>
      Effect.gen(function*() {
        const response = yield* Allm.generate("hi")
        yield* TestClock.adjust("1 hour")

        assert.strictEqual(response.outputText, "hi")
      }).pipe(Effect.provide(engine((_request, emit) => emit([delta("hi"), stop]), {
        requestTimeout: "2 seconds",
        idleTimeout: "1 second"
      }))))

    it.effect("an interrupted call waits for finalizers, and no longer than its limit", () =>
      Effect.gen(function*() {
        const started = yield* Deferred.make<void>()
        const fiber = yield* Effect.fork(Effect.provide(
          Allm.generate("hi"),
          engine(
            () => Effect.zipRight(Deferred.succeed(started, undefined), Effect.uninterruptible(Effect.never)),
            { requestTimeout: "2 seconds" }
          )
        ))
        yield* Deferred.await(started)
        const interrupting = yield* Effect.fork(Fiber.interrupt(fiber))
        yield* TestClock.adjust("1999 millis")
        assert.strictEqual(interrupting.unsafePoll(), null)
        yield* TestClock.adjust("1 millis")

        assert.strictEqual((yield* Fiber.join(interrupting))._tag, "Failure")
      }))
  })
})
