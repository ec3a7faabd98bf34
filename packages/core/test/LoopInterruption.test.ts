import { Allm, type Event, Fake } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Chunk, Deferred, Duration, Effect, Exit, FastCheck as fc, Fiber, Stream, Supervisor } from "effect"
import { optionsOf, within, type World, worlds } from "./GeneratedChats.ts"
import { aTurn, IdleClock } from "./IdleClock.ts"

/** What is still alive once everything that was told to stop had its turn. */
const remains = (supervisor: Supervisor.Supervisor<Array<Fiber.RuntimeFiber<unknown, unknown>>>, clock: IdleClock) =>
  Effect.gen(function*() {
    yield* aTurn
    const fake = yield* Fake.Fake
    const fibers = yield* supervisor.value
    const requests = yield* fake.requests
    return {
      fibers: fibers.length,
      timers: clock.timers,
      open: yield* fake.open,
      unclosed: requests.length - (yield* fake.closed)
    }
  })

const nothing = { fibers: 0, timers: 0, open: 0, unclosed: 0 }

/** Reads a chat until an event, then interrupts the reader. Tells what had come, and what came after. */
const interruptedAt = (world: World, index: number) =>
  Effect.suspend(() => {
    const clock = new IdleClock()
    return Effect.gen(function*() {
      const supervisor = yield* Supervisor.track
      const reached = yield* Deferred.make<void>()
      const events: Array<Event.Event> = []
      const reader = yield* Allm.stream("hi", optionsOf(world)).pipe(
        Stream.runForEach((event) => {
          events.push(event)
          return events.length > index
            ? Effect.zipRight(Deferred.succeed(reached, undefined), Effect.never)
            : Effect.void
        }),
        Effect.exit,
        Effect.supervised(supervisor),
        Effect.fork
      )
      yield* Effect.race(Deferred.await(reached), Fiber.await(reader))
      const before = clock.unsafeCurrentTimeMillis()
      yield* Fiber.interrupt(reader)
      const took = clock.unsafeCurrentTimeMillis() - before
      const seen = events.length
      const left = yield* remains(supervisor, clock)
      yield* clock.sleep(Duration.minutes(20))
      return { left, later: events.length - seen, took }
    }).pipe(within(world, clock))
  })

const eventsOf = (world: World) =>
  Effect.exit(Stream.runCollect(Allm.stream("hi", optionsOf(world)))).pipe(within(world))

const runs = { fastCheck: { numRuns: 200 }, timeout: 60_000 }

describe("Interrupting a stream", () => {
  it.effect.prop(
    "leaves nothing running and tells nothing more, at whichever event",
    [worlds, fc.nat({ max: 40 })],
    ([world, index]) =>
      Effect.gen(function*() {
        const { later, left, took } = yield* interruptedAt(world, index)

        deepStrictEqual(left, nothing)
        assert.strictEqual(later, 0)
        // Nothing here minds to be stopped, so nothing waits for a limit.
        assert.strictEqual(took, 0)
      }),
    runs
  )

  it.effect.prop(
    "reading n events gives the first n and leaves nothing running, for every n",
    [worlds],
    ([world]) =>
      Effect.gen(function*() {
        const exit = yield* eventsOf(world)
        if (Exit.isFailure(exit)) return
        const all = Chunk.toReadonlyArray(exit.value)
        for (let n = 0; n <= all.length; n++) {
          const clock = new IdleClock()
          const supervisor = yield* Supervisor.track
          const { left, taken } = yield* Effect.gen(function*() {
            const taken = yield* Allm.stream("hi", optionsOf(world)).pipe(
              Stream.take(n),
              Stream.runCollect,
              Effect.supervised(supervisor)
            )
            return { taken: Chunk.toReadonlyArray(taken), left: yield* remains(supervisor, clock) }
          }).pipe(within(world, clock))

          deepStrictEqual(taken, all.slice(0, n))
          deepStrictEqual(left, nothing)
        }
      }),
    { ...runs, fastCheck: { numRuns: 40 } }
  )

  it.effect.prop(
    "of any kind lets go when its reader fails",
    [worlds, fc.nat({ max: 10 })],
    ([world, index]) =>
      Effect.gen(function*() {
        for (const stream of [Allm.stream, Allm.streamStep, Allm.streamGenerate]) {
          const clock = new IdleClock()
          const supervisor = yield* Supervisor.track
          const left = yield* Effect.gen(function*() {
            let seen = 0
            yield* stream("hi", optionsOf(world)).pipe(
              Stream.runForEach(() => seen++ < index ? Effect.void : Effect.fail("had enough")),
              Effect.exit,
              Effect.supervised(supervisor)
            )
            return yield* remains(supervisor, clock)
          }).pipe(within(world, clock))

          deepStrictEqual(left, nothing)
        }
      }),
    runs
  )

  it.effect.prop("a chat interrupted after any time leaves nothing running", [worlds, fc.nat({ max: 60 })], ([
    world,
    millis
  ]) =>
    Effect.gen(function*() {
      const clock = new IdleClock()
      const supervisor = yield* Supervisor.track
      const left = yield* Effect.gen(function*() {
        const fiber = yield* Effect.fork(Effect.supervised(Allm.chat("hi", optionsOf(world)), supervisor))
        yield* clock.sleep(Duration.millis(millis))
        yield* Fiber.interrupt(fiber)
        assert.isAtMost(clock.unsafeCurrentTimeMillis(), millis)
        return yield* remains(supervisor, clock)
      }).pipe(within(world, clock))

      deepStrictEqual(left, nothing)
    }), runs)
})
