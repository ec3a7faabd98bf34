import { Adapter, AdapterError, Allm, Engine, type Event, Fake, Tool } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Layer, Schema, Stream, Supervisor, TestClock } from "effect"

const call = (id: string, name: string) => Fake.toolCall({ id, name })
const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })

/** An engine on an adapter that does something first. */
const engineOn = (work: Effect.Effect<void>) =>
  Engine.layer().pipe(
    Layer.provide(Adapter.layer(Adapter.make((_request, emit) =>
      Effect.zipRight(work, emit([{ _tag: "MessageCompleted", finishReason: "stop", metadata: {} }]))
    )))
  )

/** Something that notes its start and its end. */
const noted = (notes: Array<string>, name: string, finalizer: Effect.Effect<unknown> = Effect.void) =>
  Effect.sync(() => notes.push(`${name} begins`)).pipe(
    Effect.zipRight(Effect.never),
    Effect.onInterrupt(() => Effect.zipRight(finalizer, Effect.sync(() => notes.push(`${name} is over`))))
  )

const toolThat = (name: string, work: () => Effect.Effect<string>) =>
  Tool.make(name, { description: "Works", handler: work })

const isInterrupted = (exit: Exit.Exit<unknown, unknown>) => Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause)

describe("Interrupting a chat", () => {
  it.effect("in the model call stops the model and waits for it", () =>
    Effect.gen(function*() {
      const notes: Array<string> = []
      const fiber = yield* Effect.fork(
        Effect.provide(Allm.chat("hi"), engineOn(noted(notes, "model", Effect.sleep("3 seconds"))))
      )
      yield* TestClock.adjust(1)
      const stopping = yield* Effect.fork(Fiber.interrupt(fiber))
      yield* TestClock.adjust("2 seconds")

      assert.deepStrictEqual(notes, ["model begins"])
      assert.isNull(stopping.unsafePoll())

      yield* TestClock.adjust("1 second")
      assert.isTrue(isInterrupted(yield* Fiber.join(stopping)))
      assert.deepStrictEqual(notes, ["model begins", "model is over"])
    }))

  it.effect("does not wait for a model beyond the limit of its call", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.fork(
        Effect.provide(
          Allm.chat("hi", { requestTimeout: "5 seconds" }),
          engineOn(Effect.uninterruptible(Effect.never))
        )
      )
      yield* TestClock.adjust("1 second")
      const stopping = yield* Effect.fork(Fiber.interrupt(fiber))
      yield* TestClock.adjust("3 seconds")
      assert.isNull(stopping.unsafePoll())

      yield* TestClock.adjust("1 second")
      assert.isTrue(isInterrupted(yield* Fiber.join(stopping)))
    }))

  it.effect("in the tools stops all of them, tells their signals, and waits for them", () =>
    Effect.gen(function*() {
      const notes: Array<string> = []
      const signals: Array<AbortSignal> = []
      const tools = [
        toolThat("quick", () => noted(notes, "quick")),
        toolThat("slow", () => noted(notes, "slow", Effect.sleep("3 seconds"))),
        Tool.make("promised", {
          description: "Never keeps it",
          handler: (_, { signal }) => {
            signals.push(signal)
            return new Promise<string>(() => {})
          }
        })
      ]
      const fiber = yield* Allm.chat("hi", { tools }).pipe(
        Effect.provide(Fake.engine({
          script: [call("c0", "quick"), call("c1", "slow"), call("c2", "promised"), Fake.finish("tool_calls")]
        })),
        Effect.fork
      )
      yield* TestClock.adjust(1)
      const stopping = yield* Effect.fork(Fiber.interrupt(fiber))
      yield* TestClock.adjust("2 seconds")

      assert.deepStrictEqual(notes, ["quick begins", "slow begins", "quick is over"])
      assert.deepStrictEqual(signals.map((signal) => signal.aborted), [true])
      assert.isNull(stopping.unsafePoll())

      yield* TestClock.adjust("1 second")
      assert.isTrue(isInterrupted(yield* Fiber.join(stopping)))
      assert.deepStrictEqual(notes.slice(3), ["slow is over"])
    }))

  it.effect("does not wait for a tool beyond its limit", () =>
    Effect.gen(function*() {
      const stubborn = Tool.make("stubborn", {
        description: "Does not stop",
        timeout: "5 seconds",
        handler: () => Effect.uninterruptible(Effect.never)
      })
      const fiber = yield* Allm.chat("hi", { tools: [stubborn] }).pipe(
        Effect.provide(Fake.engine({ script: [call("c0", "stubborn"), Fake.finish("tool_calls")] })),
        Effect.fork
      )
      yield* TestClock.adjust("1 second")
      const stopping = yield* Effect.fork(Fiber.interrupt(fiber))
      yield* TestClock.adjust("3 seconds")
      assert.isNull(stopping.unsafePoll())

      yield* TestClock.adjust("1 second")
      assert.isTrue(isInterrupted(yield* Fiber.join(stopping)))
    }))

  it.effect("before a step stops prepareStep, and asks no model", () =>
    Effect.gen(function*() {
      const notes: Array<string> = []
      const requests = yield* Effect.gen(function*() {
        const fiber = yield* Effect.fork(Allm.chat("hi", { prepareStep: () => noted(notes, "prepareStep") }))
        yield* Effect.yieldNow()
        assert.isTrue(isInterrupted(yield* Fiber.interrupt(fiber)))
        return yield* Fake.requests
      }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("never said")] })))

      assert.deepStrictEqual(notes, ["prepareStep begins", "prepareStep is over"])
      assert.strictEqual(requests.length, 0)
    }))

  it.effect("after a step stops haltWhen, and asks no model again", () =>
    Effect.gen(function*() {
      const notes: Array<string> = []
      const requests = yield* Effect.gen(function*() {
        const fiber = yield* Effect.fork(
          Allm.chat("hi", { tools: [hi], haltWhen: () => noted(notes, "haltWhen") })
        )
        yield* Effect.yieldNow()
        assert.isTrue(isInterrupted(yield* Fiber.interrupt(fiber)))
        return yield* Fake.requests
      }).pipe(Effect.provide(Fake.engine({ scripts: [[call("c0", "hi"), Fake.finish("tool_calls")], []] })))

      assert.deepStrictEqual(notes, ["haltWhen begins", "haltWhen is over"])
      assert.strictEqual(requests.length, 1)
    }))

  it.effect("while a call waits to be repeated does not repeat it", () =>
    Effect.gen(function*() {
      const requests = yield* Effect.gen(function*() {
        const fiber = yield* Effect.fork(
          Allm.chat("hi", { retry: AdapterError.retrySchedule({ baseDelay: "1 second", jitter: 0 }) })
        )
        yield* TestClock.adjust("500 millis")
        assert.isTrue(isInterrupted(yield* Fiber.interrupt(fiber)))
        yield* TestClock.adjust("1 hour")
        return yield* Fake.requests
      }).pipe(Effect.provide(Fake.engine({ respond: () => [Fake.preflightError("rate_limited")] })))

      assert.strictEqual(requests.length, 1)
    }))

  it.effect("in the second pass of a structured answer stops it", () =>
    Effect.gen(function*() {
      const { closed, open } = yield* Effect.gen(function*() {
        const fiber = yield* Effect.fork(
          Allm.chat("hi", { responseFormat: Schema.Struct({ a: Schema.Number }), structuredFinalize: true })
        )
        yield* TestClock.adjust("1 second")
        const fake = yield* Fake.Fake
        assert.strictEqual(yield* fake.open, 1)
        assert.isTrue(isInterrupted(yield* Fiber.interrupt(fiber)))
        return { open: yield* fake.open, closed: yield* fake.closed }
      }).pipe(Effect.provide(Fake.engine({
        scripts: [[Fake.text("four"), Fake.finish("stop")], [Fake.delay("1 minute"), Fake.finish("stop")]]
      })))

      assert.deepStrictEqual({ open, closed }, { open: 0, closed: 2 })
    }))

  it.effect("by a timeout of the caller's is an ordinary timeout", () =>
    Effect.gen(function*() {
      const fiber = yield* Allm.chat("hi").pipe(
        Effect.timeoutFail({ duration: "2 seconds", onTimeout: () => "too slow" }),
        Effect.provide(Fake.engine({ script: [Fake.delay("1 minute"), Fake.finish("stop")] })),
        Effect.flip,
        Effect.fork
      )
      yield* TestClock.adjust("2 seconds")

      assert.strictEqual(yield* Fiber.join(fiber), "too slow")
    }))

  it.effect("finds the tools' fibers where a supervisor looks for them", () =>
    Effect.gen(function*() {
      const supervisor = yield* Supervisor.track
      const started = yield* Deferred.make<void>()
      const waiting = toolThat("waiting", () => Effect.never)
      const last = toolThat("last", () => Effect.zipRight(Deferred.succeed(started, undefined), Effect.never))
      const fiber = yield* Allm.chat("hi", { tools: [waiting, last] }).pipe(
        Effect.provide(Fake.engine({
          script: [call("c0", "waiting"), call("c1", "waiting"), call("c2", "last"), Fake.finish("tool_calls")]
        })),
        Effect.supervised(supervisor),
        Effect.fork
      )
      yield* Deferred.await(started)
      const running = (yield* supervisor.value).length
      yield* Fiber.interrupt(fiber)
      yield* Effect.yieldNow()

      assert.isAtLeast(running, 3)
      assert.strictEqual((yield* supervisor.value).length, 0)
    }))
})

describe("Leaving a stream", () => {
  it.effect("waits for the finalizers of model and tools", () =>
    Effect.gen(function*() {
      const notes: Array<string> = []
      const slow = toolThat("slow", () => noted(notes, "tool", Effect.sleep("1 second")))
      const reader = yield* Allm.stream("hi", { tools: [slow] }).pipe(
        Stream.takeUntil((event) => event._tag === "ToolExecutionStarted"),
        Stream.runDrain,
        Effect.provide(Fake.engine({ script: [call("c0", "slow"), Fake.finish("tool_calls")] })),
        Effect.fork
      )
      yield* TestClock.adjust("999 millis")
      assert.deepStrictEqual(notes, ["tool begins"])
      assert.isNull(reader.unsafePoll())

      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(reader)
      assert.deepStrictEqual(notes, ["tool begins", "tool is over"])
    }))

  it.effect("hears nothing of a model that goes on regardless", () =>
    Effect.gen(function*() {
      const events: Array<Event.Event> = []
      const adapter = Adapter.make((_request, emit) =>
        Effect.uninterruptible(
          emit([{ _tag: "TextDelta", delta: "a" }]).pipe(
            Effect.zipRight(Effect.sleep("1 minute")),
            Effect.zipRight(emit([{ _tag: "TextDelta", delta: "b" }])),
            Effect.zipRight(emit([{ _tag: "MessageCompleted", finishReason: "stop", metadata: {} }]))
          )
        )
      )
      const reader = yield* Allm.stream("hi", { requestTimeout: "10 seconds" }).pipe(
        Stream.runForEach((event) => Effect.sync(() => events.push(event))),
        Effect.provide(Engine.layer().pipe(Layer.provide(Adapter.layer(adapter)))),
        Effect.fork
      )
      yield* TestClock.adjust("1 second")
      yield* Effect.fork(Fiber.interrupt(reader))
      yield* TestClock.adjust("1 hour")

      assert.deepStrictEqual(events.map((event) => event._tag), ["TextDelta"])
      assert.isTrue(isInterrupted(yield* Fiber.await(reader)))
    }))

  it.effect("lets a model that waits for its reader go", () =>
    Effect.gen(function*() {
      let emitted = 0
      const adapter = Adapter.make((_request, emit) =>
        Effect.forever(Effect.suspend(() => {
          emitted++
          return emit([{ _tag: "TextDelta", delta: "x" }])
        }))
      )
      const taken = yield* Allm.stream("hi").pipe(
        Stream.mapEffect((event) => Effect.as(Effect.yieldNow(), event)),
        Stream.take(100),
        Stream.runCount,
        Effect.provide(Engine.layer().pipe(Layer.provide(Adapter.layer(adapter))))
      )

      assert.strictEqual(taken, 100)
      // What was read, and at most two rooms full of what was not.
      assert.isBelow(emitted, 100 + 2 * 64 + 1)
    }))
})
