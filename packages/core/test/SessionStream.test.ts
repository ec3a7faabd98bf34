import { type Event, Fake, Message, Session, Tool, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schema, Stream } from "effect"

const call = (id: string, name: string, args: unknown = {}) => Fake.toolCall({ id, name, arguments: args })
const asks = (...calls: ReadonlyArray<Fake.Entry>): Fake.Script => [...calls, Fake.finish("tool_calls")]
const says = (text: string): Fake.Script => [Fake.text(text), Fake.finish("stop")]
const model = (...scripts: ReadonlyArray<Fake.Script>) => Effect.provide(Fake.engine({ scripts }))

const ask = Tool.make("ask", { description: "Asks", handler: () => ToolResult.askUser("Where?") })
const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })
const release = Tool.make("release", { description: "The caller's to run", manual: true })
const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { amount: Schema.Number },
  needsApproval: true,
  handler: ({ amount }) => `paid ${amount}`
})
const tools = [ask, hi, release, pay]
const options = { tools, sessionId: "s", requestId: "r" }

const said = ({ thread }: Session.Session) => thread.messages.map(({ content, role }) => [role, content])
const drained = <A, E, R>(turn: Session.Turn<A, E, R>) => Effect.zipRight(Stream.runDrain(turn.events), turn.outcome)
const cutAt = <A, E, R>(turn: Session.Turn<A, E, R>, tag: Event.Event["_tag"]) =>
  Effect.zipRight(Stream.runDrain(Stream.takeUntil(turn.events, ({ _tag }) => _tag === tag)), turn.outcome)

const scripts: { readonly [name: string]: ReadonlyArray<Fake.Script> } = {
  "text": [says("hello")],
  "RED-12 a manual call and another": [asks(call("c0", "release"), call("c1", "hi"))],
  "a question": [asks(call("c0", "ask"))],
  "consent": [asks(call("c0", "pay", { amount: 5 }), call("c1", "hi"))],
  "two turns": [asks(call("c0", "hi")), says("ok")],
  "a break": [[Fake.text("partial"), Fake.error("network_error")]]
}

describe("streams of a session", () => {
  for (const [name, script] of Object.entries(scripts)) {
    it.effect(`RED-01 come to what start comes to: ${name}`, () =>
      Effect.gen(function*() {
        const plain = yield* Session.start("hi", options).pipe(model(...script))
        const stream = yield* drained(Session.streamStart("hi", options)).pipe(model(...script))

        assert.deepStrictEqual(stream.session, plain.session)
        assert.deepStrictEqual(stream.result.haltedReason, plain.result.haltedReason)
      }))
  }

  it.effect("RED-14 leave all calls to the caller in manual mode", () =>
    Effect.gen(function*() {
      const { session } = yield* drained(Session.streamStart("hi", { ...options, mode: "manual" }))

      assert.deepStrictEqual(session.pendingToolCalls.map(({ id }) => id), ["c0", "c1"])
    }).pipe(model(asks(call("c0", "release"), call("c1", "hi")))))

  it.effect("RED-02 take a reply as the answer to a question", () =>
    Effect.gen(function*() {
      const first = yield* drained(Session.streamStart("hi", options))
      const second = yield* drained(Session.streamReply(first.session, "Oslo", options))

      assert.strictEqual(second.session.status, "completed")
      assert.deepStrictEqual(said(second.session).slice(3), [["assistant", "Where?"], ["user", "Oslo"], [
        "assistant",
        "ok"
      ]])
    }).pipe(model(asks(call("c0", "ask")), says("ok"))))

  it.effect("RED-03 take one turn", () =>
    Effect.gen(function*() {
      const session = Session.make({ id: "s", thread: { messages: [Message.user("hi")], metadata: {} } })
      const { result, session: next } = yield* drained(Session.streamStep(session, { tools }))

      assert.strictEqual(next.status, "idle")
      assert.deepStrictEqual(result.toolResults.map(({ content }) => content), ["hi"])
    }).pipe(model(asks(call("c0", "hi")))))

  it.effect("tell of approved calls before the model's answer, and end once", () =>
    Effect.gen(function*() {
      const { session } = yield* Session.start("hi", options)
      const approved = yield* Session.approve(session, "c0")
      const turn = Session.streamContinue(approved, options)
      const events = Array.from(yield* Stream.runCollect(turn.events), ({ _tag }) => _tag)
      const { result, session: end } = yield* turn.outcome

      assert.deepStrictEqual(events, [
        "ToolExecutionStarted",
        "ToolExecutionCompleted",
        "ToolResultEncoded",
        "StepCompleted",
        "MessageStarted",
        "TextDelta",
        "TextCompleted",
        "MessageCompleted",
        "StepCompleted",
        "ChatCompleted"
      ])
      assert.strictEqual(result.steps.length, 2)
      assert.deepStrictEqual(said(end).slice(2), [["tool", "paid 5"], ["assistant", "ok"]])
    }).pipe(model(asks(call("c0", "pay", { amount: 5 })), says("ok"))))

  it.effect("RED-06 give the same outcome twice", () =>
    Effect.gen(function*() {
      const turn = Session.streamStart("hi", options)
      const first = yield* drained(turn)

      assert.deepStrictEqual(yield* turn.outcome, first)
    }).pipe(model(says("ok"))))
})

describe("a cut stream", () => {
  it.effect("RED-08 keeps the person's message and claims nothing", () =>
    Effect.gen(function*() {
      const session = Session.make({ id: "s" })
      const { result, session: cut } = yield* cutAt(Session.streamReply(session, "hi", options), "TextDelta")

      assert.strictEqual(result.haltedReason, "cancelled")
      assert.strictEqual(result.finalResponse.outputText, "one")
      assert.strictEqual(cut.status, "idle")
      assert.deepStrictEqual(said(cut), [["user", "hi"]])
    }).pipe(model([Fake.text("one"), Fake.delay("1 minute"), Fake.text(" two"), Fake.finish("stop")])))

  it.effect("RED-10 leaves a session as it was when no turn came about", () =>
    Effect.gen(function*() {
      const session = Session.make({ id: "s", thread: { messages: [Message.user("hi")], metadata: {} } })
      const { result, session: cut } = yield* cutAt(Session.streamStep(session), "TextDelta")

      assert.deepStrictEqual(cut, session)
      assert.strictEqual(result.done, false)
    }).pipe(model([Fake.text("one"), Fake.delay("1 minute"), Fake.finish("stop")])))

  it.effect("keeps completed turns", () =>
    Effect.gen(function*() {
      const { session } = yield* cutAt(Session.streamStart("hi", options), "TextDelta")

      assert.strictEqual(session.status, "idle")
      assert.deepStrictEqual(said(session), [["user", "hi"], ["assistant", ""], ["tool", "hi"]])
    }).pipe(model(asks(call("c0", "hi")), [Fake.text("o"), Fake.delay("1 minute"), Fake.finish("stop")])))

  it.effect("keeps what tools did, tells what was stopped, and goes on", () =>
    Effect.gen(function*() {
      const begun = yield* Deferred.make<void>()
      const stuck = Tool.make("stuck", {
        description: "Never ends",
        handler: () => Effect.zipRight(Deferred.succeed(begun, undefined), Effect.never)
      })
      const own = [...tools, stuck]
      const turn = Session.streamStart("hi", { tools: own, concurrency: 2 })
      const fiber = yield* Effect.fork(Stream.runDrain(turn.events))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(fiber)
      const { session } = yield* turn.outcome
      const { session: end } = yield* Session.reply(session, "and now?", { tools: own })

      assert.strictEqual(session.status, "idle")
      assert.deepStrictEqual(said(end), [
        ["user", "hi"],
        ["assistant", ""],
        ["tool", "hi"],
        [
          "tool",
          "{\"error\":\"tool error (stuck): interrupted: stopped because the turn was ended; it may have taken effect\"}"
        ],
        ["user", "and now?"],
        ["assistant", "ok"]
      ])
    }).pipe(model(asks(call("c0", "hi"), call("c1", "stuck")), says("ok"))))

  it.effect("RED-11 is in error when the model failed before anything came", () =>
    Effect.gen(function*() {
      const turn = Session.streamReply(Session.make({ id: "s" }), "hi", { retry: false })
      const failure = yield* Effect.flip(Stream.runDrain(turn.events))
      const { result, session } = yield* turn.outcome

      assert.strictEqual(failure._tag, "AdapterError")
      assert.strictEqual(result.haltedReason, "error")
      assert.strictEqual(session.status, "error")
      assert.deepStrictEqual(said(session), [["user", "hi"]])
    }).pipe(model([Fake.preflightError("provider_unavailable")])))
})
