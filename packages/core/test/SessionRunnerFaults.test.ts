import {
  type Engine,
  Fake,
  Message,
  Session,
  SessionRunner,
  StoreError,
  Tool,
  ToolJournal,
  ToolResult
} from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Logger, Stream, TestClock } from "effect"
import { type Around, asks, call, counting, historyProblems, said, says, type World, world } from "./RunnerWorld.ts"

const full = new StoreError.StoreError({ reason: "full", operation: "SessionStore.save", id: "s1" })
const gone = (
  operation: "compact" | "prepare" | "settle",
  reason: ToolJournal.JournalError["reason"] = "unavailable"
) => new ToolJournal.JournalError({ reason, operation, sessionId: "s1", detail: "the test says so" })

/** Breaks the n-th of some steps; what a step may fail with is known to whoever calls it. */
const breaking = (which: (step: string) => boolean, error: unknown, nth: (n: number) => boolean = () => true) => {
  let seen = 0
  const around: Around = <A, E>(step: string, work: Effect.Effect<A, E>) =>
    Effect.suspend(() => which(step) && nth(++seen) ? Effect.fail(error as E) : work)
  return around
}

const isSave = (step: string) => step === "store.save"

/** Two turns with a call each, then the last word. */
const model = (traces: Array<string>, asked: Array<number> = []) =>
  Fake.engine({
    tools: [counting("pay", traces)],
    respond: ({ messages }) => {
      asked.push(messages.length)
      return messages.length < 5 ? asks(call("call_0", "pay", { n: messages.length })) : says("ok")
    }
  })

const inside = <A, E, R>(
  shared: World,
  around: Around | undefined,
  engine: Layer.Layer<Engine.Engine>,
  effect: Effect.Effect<A, E, R>
) => Effect.provide(effect, Layer.merge(shared.process(around === undefined ? {} : { around }), engine))

const lines = (heard: Array<string>) =>
  Effect.provide(
    Logger.replace(Logger.defaultLogger, Logger.make(({ message }) => void heard.push(String(message))))
  )
const quietly = lines([])

describe("SessionRunner, when something fails", () => {
  describe("a save", () => {
    it.effect("anywhere: stops with the value that was to be saved, and resumes without doing anything twice", () =>
      Effect.gen(function*() {
        for (let nth = 1; nth <= 6; nth++) {
          const shared = yield* world
          const traces: Array<string> = []
          const asked: Array<number> = []
          const broken = breaking(isSave, full, (n) => n === nth)
          const error = yield* Effect.flip(
            Effect.asVoid(inside(shared, broken, model(traces, asked), SessionRunner.start("s1", "hi")))
          )
          const place = `save ${nth}`
          assert.isTrue(error instanceof SessionRunner.NotSaved, place)
          if (!(error instanceof SessionRunner.NotSaved)) continue
          const { error: reason, session } = error
          assert.deepInclude(reason, { _tag: "StoreError", reason: "full" }, place)
          // What could not be saved was not built upon.
          assert.strictEqual(asked.length, Math.floor(nth / 2), place)
          assert.strictEqual(traces.length, Math.max(0, Math.floor((nth - 1) / 2)), place)
          const stored = yield* Effect.option(shared.store.load("s1"))
          assert.strictEqual(stored._tag, nth === 1 ? "None" : "Some", place)

          // The disk has room again: the value is saved by hand, or the run is resumed from what is stored.
          const byHand = nth % 2 === 0
          if (byHand || nth === 1) yield* shared.store.save(session)
          const { session: end } = yield* inside(shared, undefined, model(traces, asked), SessionRunner.resume("s1"))

          assert.strictEqual(end.status, "completed", place)
          assert.deepStrictEqual(traces, ["pay call_0", "pay call_0"], place)
          assert.deepStrictEqual(historyProblems(end), [], place)
          assert.strictEqual(end.thread.messages.length, 6, place)
          assert.deepStrictEqual(shared.entries, [])
        }
      }))

    it.effect("for good: keeps nothing but what is stored, and lets go of the session", () =>
      Effect.gen(function*() {
        const shared = yield* world
        const before = yield* shared.store.save(Session.make({ id: "s1" }))
        const down = breaking(isSave, full)
        const replied = yield* Effect.flip(
          Effect.asVoid(inside(shared, down, model([]), SessionRunner.reply("s1", "hi")))
        )
        const streamed = yield* Effect.flip(
          inside(shared, down, model([]), Stream.runDrain(SessionRunner.streamReply("s1", "hi")))
        )
        const modified = yield* Effect.flip(
          inside(
            shared,
            down,
            model([]),
            SessionRunner.modify("s1", (session) =>
              Effect.succeed({ session: { ...session, metadata: { a: 1 } }, result: 1 }))
          )
        )

        for (const error of [replied, streamed, modified]) {
          assert.strictEqual(error._tag, "NotSaved")
        }
        assert.deepStrictEqual(modified._tag === "NotSaved" && modified.session.metadata, { a: 1 })
        assert.deepStrictEqual(yield* shared.store.load("s1"), before)
        yield* shared.leases.acquire("s1", { holder: "next", duration: 1 })
      }))

    it.effect("that crashes is a defect of the run, which stops there", () =>
      Effect.gen(function*() {
        const shared = yield* world
        const traces: Array<string> = []
        let saves = 0
        const around: Around = (step, work) =>
          Effect.suspend(() => isSave(step) && ++saves === 2 ? Effect.die("a bug") : work)
        const exit = yield* Effect.exit(
          Effect.asVoid(inside(shared, around, model(traces), SessionRunner.start("s1", "hi")))
        )

        assert.match(String(exit), /a bug/)
        assert.deepStrictEqual(traces, [])
        const { session } = yield* inside(shared, undefined, model(traces), SessionRunner.resume("s1"))
        assert.strictEqual(session.status, "completed")
      }))
  })

  describe("somebody who saves without being asked", () => {
    const meddling = (shared: World, nth: number, times = 1): Around => {
      let saves = 0
      return (step, work) =>
        Effect.suspend(() => {
          if (!isSave(step)) return work
          saves++
          if (saves < nth || saves >= nth + times) return work
          return Effect.zipRight(
            Effect.orDie(Effect.flatMap(shared.store.load("s1"), (session) =>
              shared.store.save({ ...session, metadata: { ...session.metadata, [`meddled${saves}`]: true } }))),
            work
          )
        })
    }

    it.effect("before anything has happened is made room for", () =>
      Effect.gen(function*() {
        const shared = yield* world
        yield* shared.store.save(Session.make({ id: "s1" }))
        const { session } = yield* inside(
          shared,
          meddling(shared, 1, 2),
          model([]),
          SessionRunner.reply("s1", "hi")
        )
        yield* shared.store.save({
          ...session,
          status: "awaiting_tools",
          pendingToolCalls: [{ id: "m0", name: "m", arguments: {}, metadata: {} }],
          thread: {
            messages: [
              ...session.thread.messages,
              Message.assistant("", { toolCalls: [{ id: "m0", name: "m", arguments: {}, metadata: {} }] })
            ],
            metadata: {}
          }
        })
        const submitted = yield* inside(
          shared,
          meddling(shared, 1),
          model([]),
          SessionRunner.submitToolResults("s1", new Map([["m0", "x"]]))
        )

        assert.deepStrictEqual(session.metadata, { meddled1: true, meddled2: true })
        assert.strictEqual(said(session).filter(([role]) => role === "user").length, 1)
        assert.strictEqual(submitted.status, "idle")
      }))

    it.effect("while a session is taken over is made room for", () =>
      Effect.gen(function*() {
        const shared = yield* world
        yield* shared.store.save(Session.make({ id: "s1" }))
        yield* shared.leases.acquire("s1", { holder: "dead", duration: 1 })
        yield* TestClock.adjust(1)
        const { session } = yield* inside(shared, meddling(shared, 1), model([]), SessionRunner.reply("s1", "hi")).pipe(
          quietly
        )

        assert.deepStrictEqual(session.metadata, { meddled1: true })
        assert.strictEqual(session.status, "completed")
      }))

    it.effect("in the middle of a run stops it, with what was to be saved", () =>
      Effect.gen(function*() {
        const shared = yield* world
        const traces: Array<string> = []
        yield* shared.store.save(Session.make({ id: "s1" }))
        const error = yield* Effect.flip(
          Effect.asVoid(inside(shared, meddling(shared, 2), model(traces), SessionRunner.reply("s1", "hi")))
        )

        assert.isTrue(error._tag === "NotSaved" && error.error._tag === "Conflict")
        assert.deepStrictEqual(
          error._tag === "NotSaved" && error.session.thread.messages.map(({ role }) => role),
          ["user", "assistant"]
        )
        assert.deepStrictEqual(traces, [])
        const { session } = yield* inside(shared, undefined, model(traces), SessionRunner.resume("s1"))
        assert.strictEqual(session.metadata["meddled2"], true)
        assert.strictEqual(session.status, "completed")
      }))

    it.effect("again and again is told of", () =>
      Effect.gen(function*() {
        const shared = yield* world
        yield* shared.store.save(Session.make({ id: "s1" }))
        const error = yield* Effect.flip(
          Effect.asVoid(inside(shared, meddling(shared, 1, 100), model([]), SessionRunner.reply("s1", "hi")))
        )

        assert.isTrue(error._tag === "NotSaved" && error.error._tag === "Conflict")
        assert.deepStrictEqual(error._tag === "NotSaved" && said(error.session), [["user", "hi"]])
      }))

    it.effect("by deleting the session is told of", () =>
      Effect.gen(function*() {
        const shared = yield* world
        const around: Around = (step, work) =>
          Effect.zipLeft(
            work,
            step.startsWith("journal.settle") ? Effect.ignore(shared.store.delete("s1")) : Effect.void
          )
        const error = yield* Effect.flip(
          Effect.asVoid(inside(shared, around, model([]), SessionRunner.start("s1", "hi")))
        )

        assert.isTrue(
          error._tag === "NotSaved" && error.error._tag === "Conflict" && error.error.storedVersion === 0
        )
      }))
  })

  describe("the journal", () => {
    it.effect("that cannot forget keeps the model from being asked", () =>
      Effect.gen(function*() {
        const shared = yield* world
        const traces: Array<string> = []
        const asked: Array<number> = []
        const down = breaking((step) => step === "journal.compact", gone("compact"), (n) => n === 2)
        const error = yield* Effect.flip(
          Effect.asVoid(inside(shared, down, model(traces, asked), SessionRunner.start("s1", "hi")))
        )
        const stored = yield* shared.store.load("s1")
        const { session } = yield* inside(shared, undefined, model(traces, asked), SessionRunner.resume("s1"))

        assert.deepInclude(error, { _tag: "JournalError", operation: "compact" })
        assert.deepStrictEqual(asked, [1, 3, 5])
        assert.deepStrictEqual(stored.thread.messages.map(({ role }) => role), ["user", "assistant", "tool"])
        // The first of them had the same id.
        assert.deepStrictEqual(traces, ["pay call_0", "pay call_0"])
        assert.strictEqual(session.status, "completed")
      }))

    it.effect("that cannot forget at the end is looked after the next time", () =>
      Effect.gen(function*() {
        const shared = yield* world
        const heard: Array<string> = []
        const stop = Tool.make("stop", { description: "Ends it", handler: () => ToolResult.halt("enough", 1) })
        const halting = Fake.engine({ script: asks(call("call_0", "stop")), tools: [stop] })
        const down = breaking((step) => step === "journal.compact", gone("compact"), (n) => n === 2)
        const first = yield* inside(shared, down, halting, SessionRunner.start("s1", "hi")).pipe(lines(heard))
        const left = shared.entries.length
        yield* inside(shared, undefined, Fake.engine({ script: says("ok") }), SessionRunner.reply("s1", "more"))

        assert.deepStrictEqual([first.session.status, first.result.haltedReason], ["completed", "enough"])
        assert.strictEqual(left, 1)
        assert.match(heard.join(), /the journal was not compacted/)
        assert.deepStrictEqual(shared.entries, [])
      }))

    it.effect("with an entry nobody can read goes on, and says so", () =>
      Effect.gen(function*() {
        const shared = yield* world
        const traces: Array<string> = []
        const heard: Array<string> = []
        shared.texts.set("s1/torn", "{\"vers")
        const { session } = yield* inside(shared, undefined, model(traces), SessionRunner.start("s1", "hi")).pipe(
          lines(heard)
        )

        assert.strictEqual(session.status, "completed")
        assert.deepStrictEqual(traces, ["pay call_0", "pay call_0"])
        assert.match(heard.join(), /corrupt/)
        assert.deepStrictEqual([...shared.texts.keys()], ["s1/torn"])
      }))

    it.effect("that could not note how a call ended does not stand in the way of the next with its id", () =>
      Effect.gen(function*() {
        const shared = yield* world
        const traces: Array<string> = []
        const down = breaking((step) => step.startsWith("journal.settle"), gone("settle"), (n) => n === 1)
        const { session } = yield* inside(shared, down, model(traces), SessionRunner.start("s1", "hi")).pipe(quietly)

        assert.deepStrictEqual(traces, ["pay call_0", "pay call_0"])
        assert.deepStrictEqual(said(session).filter(([role]) => role === "tool"), [["tool", "pay done"], [
          "tool",
          "pay done"
        ]])
      }))
  })
})

describe("SessionRunner, when it is interrupted", () => {
  const waiting = (going: Deferred.Deferred<void>) =>
    Tool.make("wait", {
      description: "Waits",
      handler: () => Effect.zipRight(Deferred.succeed(going, undefined), Effect.never)
    })

  it.effect("while the model speaks: what was said is kept, and the session is free", () =>
    Effect.gen(function*() {
      const shared = yield* world
      yield* shared.store.save(Session.make({ id: "s1" }))
      const engine = Fake.engine({ script: [Fake.text("Once"), Fake.delay("1 hour"), Fake.finish("stop")] })
      const fiber = yield* Effect.fork(inside(shared, undefined, engine, SessionRunner.reply("s1", "tell me")))
      for (let turn = 0; turn < 50; turn++) yield* Effect.yieldNow()
      yield* Fiber.interrupt(fiber)
      const stored = yield* shared.store.load("s1")
      yield* shared.leases.acquire("s1", { holder: "next", duration: 1 })

      assert.deepStrictEqual([stored.status, said(stored)], ["idle", [["user", "tell me"]]])
    }))

  it.effect("in a batch: what ended is kept, what did not is told, nothing runs again", () =>
    Effect.gen(function*() {
      const shared = yield* world
      const traces: Array<string> = []
      const going = yield* Deferred.make<void>()
      const tools = [counting("pay", traces), waiting(going)]
      const script = asks(call("c0", "pay"), call("c1", "wait"), call("c2", "pay"))
      const fiber = yield* Effect.fork(
        inside(shared, undefined, Fake.engine({ script, tools }), SessionRunner.start("s1", "hi"))
      )
      yield* Deferred.await(going)
      for (let turn = 0; turn < 50; turn++) yield* Effect.yieldNow()
      yield* Fiber.interrupt(fiber)
      const stored = yield* shared.store.load("s1")

      assert.strictEqual(stored.status, "idle")
      assert.deepStrictEqual(historyProblems(stored), [])
      assert.deepStrictEqual([said(stored)[2], said(stored)[4]], [["tool", "pay done"], ["tool", "pay done"]])
      assert.match(said(stored)[3]![1]!, /interrupted/)
      assert.deepStrictEqual(shared.entries, [])

      // The model may use the same ids, and the person may speak.
      const again = Fake.engine({ scripts: [script.filter((entry) => entry !== script[1]), says("ok")], tools })
      const { session } = yield* inside(shared, undefined, again, SessionRunner.reply("s1", "go on"))
      assert.strictEqual(session.status, "completed")
      assert.deepStrictEqual(traces, ["pay c0", "pay c2", "pay c0", "pay c2"])
    }))

  it.effect("while a result is being noted: it is kept although nobody had heard of it", () =>
    Effect.gen(function*() {
      const shared = yield* world
      const traces: Array<string> = []
      const going = yield* Deferred.make<void>()
      const gate = yield* Deferred.make<void>()
      const around: Around = (step, work) =>
        step.startsWith("journal.settle")
          ? Deferred.succeed(going, undefined).pipe(Effect.zipRight(Deferred.await(gate)), Effect.zipRight(work))
          : work
      const engine = Fake.engine({ script: asks(call("c0", "pay")), tools: [counting("pay", traces)] })
      const fiber = yield* Effect.fork(inside(shared, around, engine, SessionRunner.start("s1", "hi")))
      yield* Deferred.await(going)
      const interrupting = yield* Effect.fork(Fiber.interrupt(fiber))
      for (let turn = 0; turn < 50; turn++) yield* Effect.yieldNow()
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(interrupting)
      const stored = yield* shared.store.load("s1")

      assert.deepStrictEqual(traces, ["pay c0"])
      assert.deepStrictEqual(said(stored)[2], ["tool", "pay done"])
      assert.deepStrictEqual(shared.entries, [])
    }))

  it.effect("while it saves: the save comes to its end, and the next knows of it", () =>
    Effect.gen(function*() {
      const shared = yield* world
      const traces: Array<string> = []
      const heard: Array<string> = []
      const going = yield* Deferred.make<void>()
      const gate = yield* Deferred.make<void>()
      let saves = 0
      const around: Around = (step, work) =>
        Effect.suspend(() =>
          isSave(step) && ++saves === 2
            ? Effect.zipLeft(work, Effect.zipRight(Deferred.succeed(going, undefined), Deferred.await(gate)))
            : work
        )
      const fiber = yield* Effect.fork(
        inside(shared, around, model(traces), SessionRunner.start("s1", "hi")).pipe(lines(heard))
      )
      yield* Deferred.await(going)
      const interrupting = yield* Effect.fork(Fiber.interrupt(fiber))
      for (let turn = 0; turn < 50; turn++) yield* Effect.yieldNow()
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(interrupting)
      const stored = yield* shared.store.load("s1")

      // No call of the answer had begun, so it is as if the model had not been heard.
      assert.deepStrictEqual([stored.status, said(stored)], ["idle", [["user", "hi"]]])
      assert.deepStrictEqual([stored.version, traces, heard], [3, [], []])
    }))

  it.effect("and cannot save: it is as if it had crashed, and can be resumed", () =>
    Effect.gen(function*() {
      const shared = yield* world
      const traces: Array<string> = []
      const heard: Array<string> = []
      const going = yield* Deferred.make<void>()
      const tools = [counting("pay", traces), waiting(going)]
      const engine = Fake.engine({ script: asks(call("c0", "pay"), call("c1", "wait")), tools })
      const around = breaking(isSave, full, (n) => n > 2)
      const fiber = yield* Effect.fork(
        inside(shared, around, engine, SessionRunner.start("s1", "hi")).pipe(lines(heard))
      )
      yield* Deferred.await(going)
      yield* Fiber.interrupt(fiber)
      const { session } = yield* inside(
        shared,
        undefined,
        Fake.engine({ script: says("ok"), tools }),
        SessionRunner.resume("s1")
      )

      assert.match(heard.join(), /could not be saved; resume it/)
      assert.deepStrictEqual(traces, ["pay c0"])
      assert.deepStrictEqual(said(session)[2], ["tool", "pay done"])
      assert.match(said(session)[3]![1]!, /outcome_unknown/)
      assert.strictEqual(session.status, "completed")
    }))
})
