import { type Engine, Fake, Message, Session, SessionRunner, StoreError, Tool } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Layer, Logger, TestClock } from "effect"
import { IdleClock } from "./IdleClock.ts"
import { type Around, asks, call, counting, historyProblems, said, says, type World, world } from "./RunnerWorld.ts"

const run = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  process: Layer.Layer<SessionRunner.SessionRunner>,
  model: Layer.Layer<Engine.Engine>
) => Effect.provide(effect, Layer.merge(process, model))

const five = asks(...["c0", "c1", "c2", "c3", "c4"].map((id) => call(id, "work")))

/** Holds a step up until it is let go. */
const heldUp = (step: string) =>
  Effect.map(Deferred.make<void>(), (gate) => ({
    gate,
    around: ((name, work) => name.startsWith(step) ? Effect.zipRight(Deferred.await(gate), work) : work) as Around
  }))

/** Five calls one after the other; something happens in the second. */
const inTheSecond = (traces: Array<string>, happens: Effect.Effect<void>) =>
  Tool.make("work", {
    description: "Works",
    timeout: "2 hours",
    handler: (_, { toolCall }) => {
      traces.push(toolCall.id)
      return toolCall.id === "c1" ? Effect.as(happens, "late") : Effect.succeed("done")
    }
  })

const down = new StoreError.StoreError({ reason: "unavailable", operation: "the test" })

/** What it was to fail with is known to whoever calls it. */
const broken = <A, E>(_work: Effect.Effect<A, E>): Effect.Effect<A, E> => Effect.fail(down as E)

/** Shows another time, and lets wait by the same. */
const showing = (clock: Clock.Clock, now: () => number): Clock.Clock => ({
  [Clock.ClockTypeId]: Clock.ClockTypeId,
  currentTimeMillis: Effect.sync(now),
  unsafeCurrentTimeMillis: now,
  currentTimeNanos: clock.currentTimeNanos,
  unsafeCurrentTimeNanos: () => clock.unsafeCurrentTimeNanos(),
  sleep: (duration) => clock.sleep(duration)
})

const noting = (steps: Array<string>): Around => (step, work) =>
  Effect.tap(work, () => {
    steps.push(step)
  })

describe("SessionRunner, the right to a session", () => {
  describe("a holder that loses it", () => {
    const started = (shared: World, options: {
      readonly traces: Array<string>
      readonly happens: Effect.Effect<void>
      readonly around?: Around
    }) =>
      run(
        SessionRunner.start("s1", "hi"),
        shared.process({ holder: "old", ...(options.around === undefined ? {} : { around: options.around }) }),
        Fake.engine({
          scripts: [five, says("ok")],
          tools: [inTheSecond(options.traces, options.happens)],
          concurrency: 1
        })
      )

    const resumed = (shared: World, traces: Array<string>) =>
      run(
        SessionRunner.resume("s1"),
        shared.process({ holder: "new" }),
        Fake.engine({
          scripts: [says("ok")],
          tools: [inTheSecond(traces, Effect.void)],
          concurrency: 1
        })
      )

    it.effect("while a call runs starts no other, and saves nothing", () =>
      Effect.gen(function*() {
        const shared = yield* world
        const traces: Array<string> = []
        const { around } = yield* heldUp("lease.renew")
        const fiber = yield* Effect.fork(
          Effect.flip(Effect.asVoid(started(shared, { traces, around, happens: Effect.never })))
        )
        yield* TestClock.adjust("1 second")
        const before = yield* shared.store.load("s1")
        yield* TestClock.adjust("29 seconds")
        const error = yield* Fiber.join(fiber)

        assert.deepInclude(error, { _tag: "LeaseLost", reason: "expired" })
        assert.deepStrictEqual(traces, ["c0", "c1"])
        assert.deepStrictEqual(yield* shared.store.load("s1"), before)

        const { session } = yield* resumed(shared, traces)
        // The second may have taken effect, so it is not run again.
        assert.deepStrictEqual(traces, ["c0", "c1", "c2", "c3", "c4"])
        assert.strictEqual(session.status, "completed")
        assert.deepStrictEqual(historyProblems(session), [])
        assert.match(said(session)[3]![1]!, /outcome_unknown/)
      }))

    it.effect("because its process was paused stops before the next side effect, without any timer", () =>
      Effect.gen(function*() {
        const shared = yield* world
        const traces: Array<string> = []
        const clock = yield* Effect.clock
        let missed = 0
        const pausing = showing(clock, () => clock.unsafeCurrentTimeMillis() + missed)
        const steps: Array<string> = []
        const pause = Effect.sync(() => {
          missed = 30_000
        })
        const error = yield* started(shared, { traces, around: noting(steps), happens: pause }).pipe(
          Effect.asVoid,
          Effect.flip,
          Effect.withClock(pausing)
        )

        assert.deepInclude(error, { _tag: "LeaseLost", reason: "expired" })
        assert.deepStrictEqual(traces, ["c0", "c1"])
        assert.deepStrictEqual(steps.filter((step) => step === "store.save").length, 2)
        // Nobody had taken over yet, so what the call did was still noted.
        assert.include(steps, "journal.settle c1")
        yield* TestClock.adjust("30 seconds")
        const { session } = yield* resumed(shared, traces)
        assert.deepStrictEqual(traces, ["c0", "c1", "c2", "c3", "c4"])
        assert.deepStrictEqual(said(session)[3], ["tool", "late"])
        assert.strictEqual(session.status, "completed")
      }))

    it.effect("while a call is noted down does not run it", () =>
      Effect.gen(function*() {
        const shared = yield* world
        const traces: Array<string> = []
        const clock = yield* Effect.clock
        let missed = 0
        const around: Around = (step, work) =>
          Effect.tap(work, () => {
            if (step === "journal.prepare c1") missed = 30_000
          })
        const error = yield* started(shared, { traces, around, happens: Effect.void }).pipe(
          Effect.asVoid,
          Effect.flip,
          Effect.withClock(showing(clock, () => clock.unsafeCurrentTimeMillis() + missed))
        )

        assert.deepInclude(error, { _tag: "LeaseLost", reason: "expired" })
        assert.deepStrictEqual(traces, ["c0"])
      }))

    it.effect("while it works on something else saves nothing", () =>
      Effect.gen(function*() {
        const shared = yield* world
        const before = yield* shared.store.save(Session.make({ id: "s1" }))
        const clock = yield* Effect.clock
        let missed = 0
        const error = yield* SessionRunner.modify("s1", (session) => {
          missed = 30_000
          return Effect.succeed({ session: { ...session, metadata: { late: true } }, result: undefined })
        }).pipe(
          Effect.flip,
          Effect.provide(shared.process()),
          Effect.withClock(showing(clock, () => clock.unsafeCurrentTimeMillis() + missed))
        )

        assert.deepInclude(error, { _tag: "LeaseLost", reason: "expired" })
        assert.deepStrictEqual(yield* shared.store.load("s1"), before)
      }))

    it.effect("to another finds out when it renews, and notes nothing down any more", () =>
      Effect.gen(function*() {
        const shared = yield* world
        const traces: Array<string> = []
        const steps: Array<string> = []
        const going = yield* Deferred.make<void>()
        const happens = Effect.zipRight(
          Deferred.succeed(going, undefined),
          Effect.uninterruptible(Effect.sleep("25 seconds"))
        )
        const { around, gate } = yield* heldUp("lease.renew")
        const both: Around = (step, work) => noting(steps)(step, around(step, work))
        const fiber = yield* Effect.fork(
          Effect.flip(Effect.asVoid(started(shared, { traces, around: both, happens })))
        )
        yield* Deferred.await(going)
        // By another clock it is later already.
        const lease = yield* Effect.withClock(
          shared.leases.acquire("s1", { holder: "new", duration: "1 hour" }),
          showing(yield* Effect.clock, () => 31_000)
        )
        yield* Deferred.succeed(gate, undefined)
        yield* TestClock.adjust("40 seconds")
        const error = yield* Fiber.join(fiber)

        assert.deepInclude(error, { _tag: "LeaseLost", reason: "taken", takenBy: "new" })
        assert.deepStrictEqual(traces, ["c0", "c1"])
        assert.notInclude(steps, "journal.settle c1")
        yield* shared.leases.check(lease)
      }))

    it.effect("to another while a call ran leaves the call to the other", () =>
      Effect.gen(function*() {
        const shared = yield* world
        const traces: Array<string> = []
        const steps: Array<string> = []
        const clock = yield* Effect.clock
        let missed = 0
        const taken = Effect.suspend(() => {
          missed = 30_000
          return Effect.orDie(shared.leases.acquire("s1", { holder: "new", duration: "1 hour" }))
        })
        const error = yield* started(shared, { traces, around: noting(steps), happens: Effect.asVoid(taken) }).pipe(
          Effect.asVoid,
          Effect.flip,
          Effect.withClock(showing(clock, () => clock.unsafeCurrentTimeMillis() + missed)),
          Effect.provide(Logger.remove(Logger.defaultLogger))
        )

        assert.deepInclude(error, { _tag: "LeaseLost" })
        assert.deepStrictEqual(traces, ["c0", "c1"])
        assert.include(steps, "journal.settle c0")
        assert.notInclude(steps, "journal.settle c1")
      }))

    it.effect("because the store of leases does not answer keeps it as long as there is time", () =>
      Effect.gen(function*() {
        const shared = yield* world
        const traces: Array<string> = []
        let isDown = false
        const around: Around = (step, work) => step === "lease.renew" && isDown ? broken(work) : work
        const fiber = yield* Effect.fork(
          Effect.flip(Effect.asVoid(started(shared, { traces, around, happens: Effect.sleep("1 hour") })))
        )
        yield* TestClock.adjust("1 second")
        isDown = true
        yield* TestClock.adjust("28 seconds")
        isDown = false
        // Renewed at the last moment.
        yield* TestClock.adjust("3 minutes")
        const held = yield* Effect.flip(shared.leases.acquire("s1", { holder: "new", duration: 1 }))
        isDown = true
        yield* TestClock.adjust("31 seconds")
        const error = yield* Fiber.join(fiber)

        assert.deepInclude(held, { _tag: "LeaseHeld", holder: "old" })
        assert.deepInclude(error, { _tag: "LeaseLost", reason: "expired" })
      }))

    it.effect("cannot save although its clock is slow, once another has begun", () =>
      Effect.gen(function*() {
        const shared = yield* world
        const { around, gate } = yield* heldUp("store.save")
        yield* shared.store.save(Session.make({ id: "s1" }))
        const slow = showing(yield* Effect.clock, () => 0)
        const fiber = yield* Effect.fork(
          SessionRunner.modify("s1", (session) =>
            Effect.succeed({ session: Session.append(session, Message.user("old")), result: undefined })).pipe(
              Effect.flip,
              Effect.provide(shared.process({ holder: "old", around })),
              Effect.withClock(slow)
            )
        )
        yield* TestClock.adjust("31 seconds")
        // It changes nothing, and yet whoever comes later comes too late.
        yield* SessionRunner.recover("s1").pipe(Effect.flip, Effect.provide(shared.process({ holder: "new" })))
        yield* Deferred.succeed(gate, undefined)
        const error = yield* Fiber.join(fiber)

        assert.deepInclude(error, { _tag: "LeaseLost", holder: "old" })
        const stored = yield* shared.store.load("s1")
        assert.deepStrictEqual([stored.version, said(stored)], [2, []])
      }))
  })

  it.effect("is kept through a run that takes much longer than a lease lasts", () =>
    Effect.gen(function*() {
      const shared = yield* world
      const slow = Tool.make("slow", {
        description: "Slow",
        timeout: "1 hour",
        handler: () => Effect.sleep("5 minutes")
      })
      const fiber = yield* Effect.fork(
        run(
          SessionRunner.start("s1", "hi"),
          shared.process(),
          Fake.engine({
            scripts: [asks(call("c0", "slow")), says("ok")],
            tools: [slow]
          })
        )
      )
      yield* TestClock.adjust("4 minutes")
      const held = yield* Effect.flip(shared.leases.acquire("s1", { holder: "other", duration: 1 }))
      yield* TestClock.adjust("1 minute")
      const { session } = yield* Fiber.join(fiber)

      assert.strictEqual(held._tag, "LeaseHeld")
      assert.strictEqual(session.status, "completed")
      yield* shared.leases.acquire("s1", { holder: "other", duration: 1 })
    }))

  it.effect("is taken over when it has run out, which is logged, and not before", () =>
    Effect.gen(function*() {
      const shared = yield* world
      yield* shared.store.save(Session.make({ id: "s1" }))
      yield* shared.leases.acquire("s1", { holder: "dead", duration: "30 seconds" })
      const lines: Array<unknown> = []
      const impatient = shared.process({ wait: 0 })
      const reply = run(SessionRunner.reply("s1", "hi"), impatient, Fake.engine({ respond: () => says("ok") })).pipe(
        Effect.provide(Logger.replace(Logger.defaultLogger, Logger.make(({ message }) => void lines.push(message))))
      )
      yield* TestClock.adjust("29 seconds")
      const held = yield* Effect.flip(Effect.asVoid(reply))
      yield* TestClock.adjust("1 second")
      const { session } = yield* reply

      assert.deepInclude(held, { _tag: "LeaseHeld", holder: "dead", until: 30_000 })
      assert.strictEqual(session.status, "completed")
      assert.match(String(lines), /took the session over from dead/)
    }))

  describe("one who has to wait", () => {
    const busy = (shared: World) =>
      Effect.gen(function*() {
        yield* shared.store.save(Session.make({ id: "s1" }))
        return yield* shared.leases.acquire("s1", { holder: "other", duration: "1 hour" })
      })

    it.effect("gets the session as soon as it is free", () =>
      Effect.gen(function*() {
        const shared = yield* world
        const lease = yield* busy(shared)
        const fiber = yield* Effect.fork(
          run(
            SessionRunner.reply("s1", "hi"),
            shared.process({ wait: "1 minute" }),
            Fake.engine({ script: says("ok") })
          )
        )
        yield* TestClock.adjust("30 seconds")
        yield* shared.leases.release(lease)
        yield* TestClock.adjust("1 second")

        assert.strictEqual((yield* Fiber.join(fiber)).session.status, "completed")
      }))

    it.effect("gives up after the time it was given, and says who has it", () =>
      Effect.gen(function*() {
        const shared = yield* world
        yield* busy(shared)
        const fiber = yield* Effect.fork(
          Effect.flip(Effect.provide(SessionRunner.recover("s1"), shared.process({ wait: "5 seconds" })))
        )
        yield* TestClock.adjust("4999 millis")
        const early = yield* Fiber.poll(fiber)
        yield* TestClock.adjust("1 millis")
        const error = yield* Fiber.join(fiber)

        assert.strictEqual(early._tag, "None")
        assert.deepInclude(error, { _tag: "LeaseHeld", holder: "other", until: 3_600_000 })
      }))

    it.effect("fails at once when it was given none, also in the same process", () =>
      Effect.gen(function*() {
        const shared = yield* world
        yield* shared.store.save(Session.make({ id: "s1" }))
        const process = yield* Effect.provide(SessionRunner.SessionRunner, shared.process({ wait: 0, holder: "me" }))
        const own = Effect.provideService(SessionRunner.SessionRunner, process)
        const fiber = yield* Effect.fork(
          SessionRunner.modify("s1", () => Effect.never).pipe(own)
        )
        yield* Effect.yieldNow()
        const error = yield* Effect.flip(own(SessionRunner.recover("s1")))
        yield* Fiber.interrupt(fiber)
        const free = yield* Effect.flip(own(SessionRunner.recover("s1")))

        assert.deepInclude(error, { _tag: "LeaseHeld", holder: "me" })
        assert.strictEqual(free._tag, "SessionError")
      }))

    it.effect("can be interrupted, and is not in the way of others", () =>
      Effect.gen(function*() {
        const shared = yield* world
        const lease = yield* busy(shared)
        const process = yield* Effect.provide(SessionRunner.SessionRunner, shared.process({ wait: "1 minute" }))
        const own = Effect.provideService(SessionRunner.SessionRunner, process)
        const fibers = yield* Effect.forEach(
          [1, 2, 3],
          () => Effect.fork(Effect.flip(own(SessionRunner.recover("s1"))))
        )
        yield* TestClock.adjust("5 seconds")
        yield* Fiber.interrupt(fibers[0]!)
        yield* Fiber.interrupt(fibers[1]!)
        yield* shared.leases.release(lease)
        yield* TestClock.adjust("2 seconds")

        assert.strictEqual((yield* Fiber.join(fibers[2]!))._tag, "SessionError")
      }))
  })

  describe("many at once", () => {
    const pay = (traces: Array<string>) => counting("pay", traces)
    const answering = Fake.engine({
      respond: ({ messages }) => messages.at(-1)?.role === "user" ? asks(call("call_0", "pay")) : says("ok")
    })

    it.effect("in one process come one after the other, in their order", () =>
      Effect.gen(function*() {
        const shared = yield* world
        yield* shared.store.save(Session.make({ id: "s1" }))
        const traces: Array<string> = []
        const texts = Array.from({ length: 50 }, (_, n) => `m${n}`)
        yield* run(
          Effect.forEach(texts, (text) => SessionRunner.reply("s1", text, { tools: [pay(traces)] }), {
            concurrency: "unbounded"
          }),
          shared.process(),
          answering
        )
        const session = yield* shared.store.load("s1")

        assert.deepStrictEqual(said(session).filter(([role]) => role === "user").map(([, text]) => text), texts)
        assert.strictEqual(traces.length, 50)
        assert.strictEqual(session.thread.messages.length, 50 * 4)
        assert.deepStrictEqual(historyProblems(session), [])
      }))

    it.effect("in several processes lose nothing and do nothing twice", () =>
      Effect.gen(function*() {
        const shared = yield* world
        yield* shared.store.save(Session.make({ id: "s1" }))
        const traces: Array<string> = []
        const texts = Array.from({ length: 40 }, (_, n) => `m${n}`)
        const slowly: Around = (_step, work) => Effect.zipRight(Effect.sleep("3 millis"), work)
        const processes = yield* Effect.forEach([1, 2, 3, 4], (n) =>
          Effect.provide(
            SessionRunner.SessionRunner,
            shared.process({ holder: `p${n}`, wait: "1 hour", around: slowly })
          ))
        yield* Effect.forEach(
          texts,
          (text, n) =>
            Effect.provideService(
              SessionRunner.reply("s1", text, { tools: [pay(traces)] }),
              SessionRunner.SessionRunner,
              processes[n % 4]!
            ),
          { concurrency: "unbounded" }
        ).pipe(Effect.provide(answering))
        const session = yield* shared.store.load("s1")

        assert.deepStrictEqual(
          said(session).filter(([role]) => role === "user").map(([, text]) => text).sort(),
          [...texts].sort()
        )
        assert.strictEqual(traces.length, 40)
        assert.strictEqual(session.thread.messages.length, 40 * 4)
        assert.deepStrictEqual(historyProblems(session), [])
      }).pipe(Effect.withClock(new IdleClock())))

    it.effect("on different sessions do not wait for each other", () =>
      Effect.gen(function*() {
        const shared = yield* world
        const gate = yield* Deferred.make<void>()
        const wait = Tool.make("wait", { description: "Waits", handler: () => Deferred.await(gate) })
        const program = Effect.gen(function*() {
          const slow = yield* Effect.fork(SessionRunner.start("slow", "hi", { tools: [wait] }))
          yield* Effect.yieldNow()
          const quick = yield* SessionRunner.start("quick", "hello")
          yield* Deferred.succeed(gate, undefined)
          return [quick.session.status, (yield* Fiber.join(slow)).session.status]
        })
        const ends = yield* run(
          program,
          shared.process(),
          Fake.engine({
            respond: ({ messages }) =>
              messages.length === 1 && Message.toText(messages[0]!) === "hi" ? asks(call("c0", "wait")) : says("ok")
          })
        )

        assert.deepStrictEqual(ends, ["completed", "completed"])
      }))
  })

  it.effect("is given back, or runs out, when the store of leases fails at the end", () =>
    Effect.gen(function*() {
      const shared = yield* world
      const around: Around = (step, work) =>
        step === "lease.release"
          ? Effect.die("no connection")
          : work
      const { session } = yield* run(
        SessionRunner.start("s1", "hi"),
        shared.process({ around }),
        Fake.engine({ script: says("a") })
      )
      const held = yield* Effect.flip(shared.leases.acquire("s1", { holder: "next", duration: 1 }))
      yield* TestClock.adjust("30 seconds")
      yield* shared.leases.acquire("s1", { holder: "next", duration: 1 })

      assert.strictEqual(session.status, "completed")
      assert.strictEqual(held._tag, "LeaseHeld")
    }))
})
