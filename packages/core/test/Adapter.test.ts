import { Adapter, AdapterError, Allm, Engine, type Event, Message, Request } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { assertEquals } from "@effect/vitest/utils"
import { Chunk, Deferred, Effect, Fiber, Layer, Stream, TestClock } from "effect"

const request = Request.make({ messages: [Message.user("hi")] })
const delta = (text: string): Event.AdapterEvent => ({ _tag: "TextDelta", delta: text })
const stop: Event.AdapterEvent = { _tag: "MessageCompleted", finishReason: "stop", metadata: {} }
const unavailable = new AdapterError.AdapterError({ reason: "provider_unavailable", status: 503 })

const engine = (adapter: Adapter.Service) => Engine.layer({ retry: false }).pipe(Layer.provide(Adapter.layer(adapter)))

const textOf = (adapter: Adapter.Service) =>
  Allm.generate("hi").pipe(Effect.map((response) => response.outputText), Effect.provide(engine(adapter)))

const eventsOf = (adapter: Adapter.Service) =>
  Stream.runCollect(Adapter.stream(request)).pipe(
    Effect.map(Chunk.toReadonlyArray),
    Effect.provide(Adapter.layer(adapter))
  )

const named = (error: unknown) =>
  new AdapterError.AdapterError({ reason: "network_error", detail: String(error), cause: error })

async function* reads(...given: ReadonlyArray<ReadonlyArray<Event.AdapterEvent>>) {
  yield* given
}

/** Gives a read, then waits until it is told to stop, and tells what it heard of that. */
const endless = (reached: Deferred.Deferred<void>) => {
  const heard: Array<string> = []
  const adapter = Adapter.fromAsyncIterable((_request, signal) => {
    let count = 0
    return {
      [Symbol.asyncIterator]: () => ({
        next: () => {
          if (count++ === 0) return Promise.resolve({ done: false, value: [delta("a")] })
          Deferred.unsafeDone(reached, Effect.void)
          return new Promise((_resolve, reject) =>
            signal.addEventListener("abort", () => {
              heard.push("abort")
              reject(new Error("aborted"))
            })
          )
        },
        return: () => {
          heard.push("return")
          return Promise.resolve({ done: true as const, value: undefined })
        }
      })
    }
  }, named)
  return { adapter, heard }
}

describe("Adapter", () => {
  describe("make", () => {
    it("is called custom and can everything unless it says otherwise", () => {
      const plain = Adapter.make(() => Effect.void)
      const other = Adapter.make(() => Effect.void, { name: "mine", capabilities: { tools: false } })

      assert.deepStrictEqual([plain.name, plain.capabilities], ["custom", {}])
      assert.deepStrictEqual([other.name, other.capabilities], ["mine", { tools: false }])
    })

    it.effect("emits as often as it likes", () =>
      Effect.gen(function*() {
        const adapter = Adapter.make((_request, emit) =>
          emit([delta("a"), delta("b")]).pipe(Effect.zipRight(emit([])), Effect.zipRight(emit([delta("c"), stop])))
        )

        assert.strictEqual(yield* textOf(adapter), "abc")
        assert.deepStrictEqual(yield* eventsOf(adapter), [delta("a"), delta("b"), delta("c"), stop])
      }))

    it.effect("is given the request", () =>
      Effect.gen(function*() {
        const seen: Array<Request.Request> = []
        yield* eventsOf(Adapter.make((given, emit) => {
          seen.push(given)
          return emit([stop])
        }))

        assert.deepStrictEqual(seen, [request])
      }))

    it.effect("that crashes is an error, not a defect", () =>
      Effect.gen(function*() {
        const bug = new Error("bug")
        const error = yield* Effect.flip(textOf(Adapter.make(() => Effect.die(bug))))

        assertEquals(
          error,
          new AdapterError.AdapterError({
            reason: "unknown",
            provider: "custom",
            detail: "the adapter crashed",
            cause: bug
          })
        )
      }))

    it.effect("that throws is an error, not a defect", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(textOf(Adapter.make(() => {
          throw new Error("bug")
        })))

        assert.strictEqual(error._tag === "AdapterError" && error.detail, "the adapter crashed")
      }))

    it.effect("that interrupts itself is an error", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(textOf(Adapter.make(() => Effect.interrupt)))

        assert.strictEqual(error._tag === "AdapterError" && error.detail, "the adapter interrupted itself")
      }))

    it.effect("that ends without saying so is malformed", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(textOf(Adapter.make(() => Effect.void)))

        assertEquals(
          error,
          new AdapterError.AdapterError({
            reason: "malformed_response",
            provider: "custom",
            detail: "the adapter ended without MessageCompleted"
          })
        )
      }))

    it.effect("ERR-07 that fails after its first event gives what came, and the error", () =>
      Effect.gen(function*() {
        const adapter = Adapter.make((_request, emit) => Effect.zipRight(emit([delta("half")]), unavailable))
        const response = yield* Effect.provide(Allm.generate("hi"), engine(adapter))

        assert.strictEqual(response.outputText, "half")
        assert.strictEqual(response.finishReason, "error")
        assert.deepStrictEqual(response.metadata["error"], {
          _tag: "AdapterError",
          reason: "provider_unavailable",
          message: unavailable.message
        })
      }))

    it.effect("ERR-08 that fails before its first event fails the call", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(textOf(Adapter.make(() => unavailable)))

        assert.strictEqual(error, unavailable)
      }))

    it.effect("cannot speak for the tools or the loop", () =>
      Effect.gen(function*() {
        const stray = { _tag: "ToolResultEncoded", toolCallId: "c0", toolName: "x", content: "", isError: false }
        const adapter = Adapter.make((_request, emit) =>
          emit([stray as unknown as Event.AdapterEvent, delta("a"), stop])
        )
        const events = yield* Allm.stream("hi").pipe(
          Stream.map((event) => event._tag),
          Stream.runCollect,
          Effect.provide(engine(adapter))
        )

        assert.deepStrictEqual(Chunk.toReadonlyArray(events), [
          "TextDelta",
          "MessageCompleted",
          "StepCompleted",
          "ChatCompleted"
        ])
      }))
  })

  describe("fromStream", () => {
    it.effect("emits what the stream gives, in order", () =>
      Effect.gen(function*() {
        const adapter = Adapter.fromStream(() => Stream.make(delta("a"), delta("b"), stop), { name: "streamed" })

        assert.strictEqual(adapter.name, "streamed")
        assert.deepStrictEqual(yield* eventsOf(adapter), [delta("a"), delta("b"), stop])
      }))

    it.effect("fails as the stream does", () =>
      Effect.gen(function*() {
        const before = Adapter.fromStream(() => Stream.fail(unavailable))
        const after = Adapter.fromStream(() => Stream.concat(Stream.make(delta("half")), Stream.fail(unavailable)))
        const response = yield* Effect.provide(Allm.generate("hi"), engine(after))

        assert.strictEqual(yield* Effect.flip(textOf(before)), unavailable)
        assert.deepStrictEqual([response.outputText, response.finishReason], ["half", "error"])
      }))

    it.effect("finalizes the stream when its reader leaves", () =>
      Effect.gen(function*() {
        const closed = yield* Deferred.make<void>()
        const adapter = Adapter.fromStream(() =>
          Stream.make(delta("a")).pipe(
            Stream.concat(Stream.never),
            Stream.ensuring(Deferred.succeed(closed, undefined))
          )
        )
        yield* Allm.stream("hi").pipe(Stream.take(1), Stream.runDrain, Effect.provide(engine(adapter)))

        assert.isTrue(yield* Deferred.isDone(closed))
      }))
  })

  describe("fromAsyncIterable", () => {
    it.effect("emits every read", () =>
      Effect.gen(function*() {
        const adapter = Adapter.fromAsyncIterable(() => reads([delta("a"), delta("b")], [], [stop]), named)

        assert.strictEqual(yield* textOf(adapter), "ab")
        assert.deepStrictEqual(yield* eventsOf(adapter), [delta("a"), delta("b"), stop])
      }))

    it.effect("names what the first read threw", () =>
      Effect.gen(function*() {
        const cause = new Error("reset")
        const adapter = Adapter.fromAsyncIterable(async function*() {
          yield* await Promise.reject<ReadonlyArray<ReadonlyArray<Event.AdapterEvent>>>(cause)
        }, named)

        assertEquals(yield* Effect.flip(textOf(adapter)), named(cause))
      }))

    it.effect("names what opening it threw", () =>
      Effect.gen(function*() {
        const adapter = Adapter.fromAsyncIterable(() => {
          throw "no route"
        }, named)

        assertEquals(yield* Effect.flip(textOf(adapter)), named("no route"))
      }))

    it.effect("names what an iterator threw instead of rejecting", () =>
      Effect.gen(function*() {
        const adapter = Adapter.fromAsyncIterable(() => ({
          [Symbol.asyncIterator]: () => ({
            next: () => {
              throw "broken iterator"
            }
          })
        }), named)

        assertEquals(yield* Effect.flip(textOf(adapter)), named("broken iterator"))
      }))

    it.effect("keeps what came before a read that threw", () =>
      Effect.gen(function*() {
        const adapter = Adapter.fromAsyncIterable(async function*() {
          yield [delta("half")]
          throw new Error("reset")
        }, named)
        const response = yield* Effect.provide(Allm.generate("hi"), engine(adapter))

        assert.deepStrictEqual([response.outputText, response.finishReason], ["half", "error"])
        assert.deepStrictEqual(response.metadata["error"], {
          _tag: "AdapterError",
          reason: "network_error",
          message: "model call failed: network_error: Error: reset"
        })
      }))

    it.live("that reads something else than events is an error", () =>
      Effect.gen(function*() {
        const read = undefined as unknown as ReadonlyArray<Event.AdapterEvent>
        const adapter = Adapter.fromAsyncIterable(() => reads(read, [stop]), named)
        const error = yield* Effect.flip(Effect.timeout(textOf(adapter), "150 millis"))

        assert.strictEqual(error._tag, "AdapterError")
      }))

    it.live("whose onError throws is an error", () =>
      Effect.gen(function*() {
        const adapter = Adapter.fromAsyncIterable(
          async function*() {
            yield* await Promise.reject<ReadonlyArray<ReadonlyArray<Event.AdapterEvent>>>("reset")
          },
          (): AdapterError.AdapterError => {
            throw "no name"
          }
        )
        const error = yield* Effect.flip(Effect.timeout(textOf(adapter), "150 millis"))

        assert.strictEqual(error._tag, "AdapterError")
      }))

    it.effect("aborts the signal and returns the iterator when interrupted", () =>
      Effect.gen(function*() {
        const reached = yield* Deferred.make<void>()
        const { adapter, heard } = endless(reached)
        const fiber = yield* Effect.fork(textOf(adapter))
        yield* Deferred.await(reached)
        yield* Fiber.interrupt(fiber)

        assert.deepStrictEqual(heard, ["abort", "return"])
      }))

    it.effect("aborts the signal for a call that listens to events, too", () =>
      Effect.gen(function*() {
        const reached = yield* Deferred.make<void>()
        const { adapter, heard } = endless(reached)
        const fiber = yield* Effect.fork(
          Effect.provide(Allm.generate("hi", { onEvent: () => Effect.void }), engine(adapter))
        )
        yield* Deferred.await(reached)
        yield* Fiber.interrupt(fiber)

        assert.include(heard, "abort")
      }))

    it.effect("runs the finally of a generator whose reader leaves", () =>
      Effect.gen(function*() {
        const closed = yield* Deferred.make<void>()
        const adapter = Adapter.fromAsyncIterable(async function*() {
          try {
            while (true) yield [delta("a")]
          } finally {
            Deferred.unsafeDone(closed, Effect.void)
          }
        }, named)
        yield* Allm.stream("hi").pipe(Stream.take(3), Stream.runDrain, Effect.provide(engine(adapter)))

        yield* Deferred.await(closed)
      }))

    it.effect("reads no further than a slow reader has room for", () =>
      Effect.gen(function*() {
        let given = 0
        const adapter = Adapter.fromAsyncIterable(async function*() {
          for (; given < 1_000; given++) yield [delta(String(given))]
          yield [stop]
        }, named)
        const counts: Array<number> = []
        yield* Adapter.stream(request).pipe(
          Stream.rechunk(1),
          Stream.take(2),
          Stream.runForEach(() => Effect.zipRight(turns, Effect.sync(() => counts.push(given)))),
          Effect.provide(Adapter.layer(adapter))
        )

        assert.strictEqual(counts.length, 2)
        assert.isAtMost(Math.max(...counts), 200)
      }))
  })

  describe("fromPromise", () => {
    it.effect("gives all its events at once, to the loop and to a stream", () =>
      Effect.gen(function*() {
        const adapter = Adapter.fromPromise(async ({ messages }) => [delta(`${messages.length}`), stop], named)

        assert.strictEqual(yield* textOf(adapter), "1")
        assert.deepStrictEqual(yield* eventsOf(adapter), [delta("1"), stop])
      }))

    it.effect("tells a watcher of events", () =>
      Effect.gen(function*() {
        const seen: Array<string> = []
        const adapter = Adapter.fromPromise(async () => [delta("a"), stop], named)
        yield* Effect.provide(
          Allm.generate("hi", {
            onEvent: (event) => {
              seen.push(event._tag)
            }
          }),
          engine(adapter)
        )

        assert.deepStrictEqual(seen, ["TextDelta", "MessageCompleted"])
      }))

    it.effect("names what it was rejected with, or threw", () =>
      Effect.gen(function*() {
        const rejects = Adapter.fromPromise(() => Promise.reject("reset"), named)
        const throws = Adapter.fromPromise(() => {
          throw "no key"
        }, named)

        assertEquals(yield* Effect.flip(textOf(rejects)), named("reset"))
        assertEquals(yield* Effect.flip(textOf(throws)), named("no key"))
      }))

    it.effect("that gives something else than events, or whose onError throws, is an error", () =>
      Effect.gen(function*() {
        const nothing = Adapter.fromPromise(
          async () => undefined as unknown as ReadonlyArray<Event.AdapterEvent>,
          named
        )
        const nameless = Adapter.fromPromise(() => Promise.reject("reset"), () => {
          throw "no name"
        })

        assert.strictEqual((yield* Effect.flip(textOf(nothing)))._tag, "AdapterError")
        assert.strictEqual((yield* Effect.flip(textOf(nameless)))._tag, "AdapterError")
      }))

    it.effect("aborts its signal when interrupted or over its limit, and is not waited for", () =>
      Effect.gen(function*() {
        const heard: Array<string> = []
        const adapter = Adapter.fromPromise((_request, { signal }) => {
          signal.addEventListener("abort", () => heard.push("abort"))
          return new Promise<never>(() => {})
        }, named)
        const interrupted = yield* Effect.fork(textOf(adapter))
        yield* Effect.yieldNow()
        yield* Fiber.interrupt(interrupted)
        assert.deepStrictEqual(heard, ["abort"])

        const late = yield* Effect.fork(
          Effect.flip(
            Effect.asVoid(Effect.provide(Allm.generate("hi", { requestTimeout: "1 minute" }), engine(adapter)))
          )
        )
        yield* TestClock.adjust("1 minute")
        const error = yield* Fiber.join(late)
        assert.deepStrictEqual([error._tag, heard], ["AdapterError", ["abort", "abort"]])
      }))

    it.effect("is repeated while nothing came", () =>
      Effect.gen(function*() {
        let asked = 0
        const adapter = Adapter.fromPromise(
          () => ++asked < 3 ? Promise.reject("busy") : Promise.resolve([delta("at last"), stop]),
          named
        )
        const running = yield* Effect.fork(
          Effect.provide(Allm.generate("hi"), Engine.layer().pipe(Layer.provide(Adapter.layer(adapter))))
        )
        yield* TestClock.adjust("10 seconds")

        assert.strictEqual((yield* Fiber.join(running)).outputText, "at last")
        assert.strictEqual(asked, 3)
      }))
  })

  describe("stream", () => {
    it.effect("fails as the adapter does, after what it said", () =>
      Effect.gen(function*() {
        const seen: Array<Event.AdapterEvent> = []
        const adapter = Adapter.make((_request, emit) => Effect.zipRight(emit([delta("half")]), unavailable))
        const error = yield* Adapter.stream(request).pipe(
          Stream.runForEach((event) => Effect.sync(() => seen.push(event))),
          Effect.flip,
          Effect.provide(Adapter.layer(adapter))
        )

        assert.strictEqual(error, unavailable)
        assert.deepStrictEqual(seen, [delta("half")])
      }))

    it.effect("waits for a slow reader", () =>
      Effect.gen(function*() {
        let emitted = 0
        const adapter = Adapter.make((_request, emit) =>
          Effect.forEach(Array.from({ length: 1_000 }), () => {
            emitted++
            return emit([delta("a")])
          }, { discard: true })
        )
        const counts: Array<number> = []
        yield* Adapter.stream(request).pipe(
          Stream.rechunk(1),
          Stream.take(2),
          Stream.runForEach(() => Effect.zipRight(turns, Effect.sync(() => counts.push(emitted)))),
          Effect.provide(Adapter.layer(adapter))
        )

        assert.strictEqual(counts.length, 2)
        assert.isAtMost(Math.max(...counts), 200)
      }))

    it.effect("gives everything, however much there is", () =>
      Effect.gen(function*() {
        const events = Array.from({ length: 1_000 }, (_, index) => delta(String(index)))
        const adapter = Adapter.make((_request, emit) =>
          Effect.forEach(events, (event) => emit([event]), { discard: true })
        )

        assert.deepStrictEqual(yield* eventsOf(adapter), events)
      }))
  })

  describe("isAdapterEvent", () => {
    it("knows a model's events from the others", () => {
      assert.isTrue(Adapter.isAdapterEvent(delta("a")))
      assert.isTrue(Adapter.isAdapterEvent({ _tag: "ErrorOccurred", error: "boom" }))
      assert.isFalse(Adapter.isAdapterEvent({ _tag: "ManualToolCalls", toolCalls: [] }))
    })
  })
})

/** Long enough for everything that can go on by itself. */
const turns = Effect.promise(() => new Promise<void>((resolve) => setTimeout(resolve, 5)))
