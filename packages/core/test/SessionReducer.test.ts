import { Allm, type Event, Fake, Message, Session, SessionReducer, Tool } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"

const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })
const session = Session.append(Session.make({ id: "s" }), Message.user("hi"))
const Model = Fake.engine({
  scripts: [
    [Fake.toolCall({ id: "c0", name: "hi", arguments: {} }), Fake.finish("tool_calls")],
    [Fake.text("ok"), Fake.finish("stop")]
  ]
})
const events = Effect.map(Stream.runCollect(Allm.stream(session.thread, { tools: [hi] })), (all) => Array.from(all))

const reduce = (all: ReadonlyArray<Event.Event>) => all.reduce(SessionReducer.add, SessionReducer.make(session))

describe("SessionReducer", () => {
  it.effect("RED-05 RED-06 leaves its session alone and gives the same outcome twice", () =>
    Effect.gen(function*() {
      const before = JSON.stringify(session)
      const reducer = reduce(yield* events)
      const first = yield* SessionReducer.toChatOutcome(reducer)

      assert.strictEqual(first.session.status, "completed")
      assert.deepStrictEqual(yield* SessionReducer.toChatOutcome(reducer), first)
      assert.strictEqual(JSON.stringify(session), before)
    }).pipe(Effect.provide(Model)))

  it.effect("RED-08 is total wherever the events are cut, keeps history valid and never claims completion", () =>
    Effect.gen(function*() {
      const all = yield* events
      for (let end = 0; end < all.length; end++) {
        const { result, session: cut } = yield* SessionReducer.toChatOutcome(reduce(all.slice(0, end)))
        const next = yield* Effect.provide(
          Session.reply(cut, "go on"),
          Fake.engine({ script: [Fake.text("yes"), Fake.finish("stop")] })
        )

        assert.strictEqual(result.haltedReason, "cancelled")
        assert.strictEqual(cut.status, "idle")
        assert.strictEqual(cut.thread.messages[0]?.content, "hi")
        assert.strictEqual(next.session.status, "completed")
      }
    }).pipe(Effect.provide(Model)))

  it.effect("RED-10 leaves the session as it was when no turn came about", () =>
    Effect.gen(function*() {
      const [first] = yield* events
      const { result, session: cut } = yield* SessionReducer.toStepOutcome(reduce([first!]))

      assert.deepStrictEqual(cut, session)
      assert.strictEqual(result.done, false)
    }).pipe(Effect.provide(Model)))

  it.effect("RED-11 is in error after an error and no end", () =>
    Effect.gen(function*() {
      const broken = reduce([{ _tag: "MessageStarted" }, { _tag: "ErrorOccurred", error: "offline" }])
      const { result, session: cut } = yield* SessionReducer.toChatOutcome(broken)

      assert.strictEqual(result.haltedReason, "error")
      assert.strictEqual(cut.status, "error")
      assert.strictEqual(cut.metadata["error"], "offline")
    }))
})
