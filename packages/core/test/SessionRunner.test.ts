import { Fake, Message, Session, SessionRunner, SessionStore, Tool, ToolJournal, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Effect, Layer, Schema, Stream } from "effect"
import { asks, call, said, says, stores, world } from "./RunnerWorld.ts"

const ask = Tool.make("ask", {
  description: "Asks the person",
  parameters: { question: Schema.String },
  handler: ({ question }) => ToolResult.askUser(question)
})
const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })
const release = Tool.make("release", { description: "The caller's to run", manual: true })
const pay = Tool.make("pay", { description: "Pays", needsApproval: true, handler: () => "paid" })
const tools = [ask, hi, release, pay]

const served = (...scripts: ReadonlyArray<Fake.Script>) =>
  Effect.provide(Layer.mergeAll(
    Layer.provideMerge(SessionRunner.layer(), stores),
    Fake.engine({ scripts, tools })
  ))

const load = (id: string) => Effect.flatMap(SessionStore.SessionStore, (store) => store.load(id))
const put = (session: Session.Session) => Effect.flatMap(SessionStore.SessionStore, (store) => store.save(session))
const asked = Effect.map(Fake.requests, (requests) => requests.length)

describe("SessionRunner", () => {
  it.effect("starts, replies and continues by id, and stores what comes of it", () =>
    Effect.gen(function*() {
      const first = yield* SessionRunner.start("s1", "hi")
      const second = yield* SessionRunner.reply("s1", Message.user("more"))
      const third = yield* SessionRunner.continue("s1")

      assert.deepStrictEqual([first.session.id, first.session.status, first.result.finalResponse.outputText], [
        "s1",
        "completed",
        "a"
      ])
      assert.strictEqual(second.result.haltedReason, "completed")
      assert.deepStrictEqual(said(third.session), [
        ["user", "hi"],
        ["assistant", "a"],
        ["user", "more"],
        ["assistant", "b"],
        ["assistant", "c"]
      ])
      assert.deepStrictEqual(yield* load("s1"), third.session)
    }).pipe(served(says("a"), says("b"), says("c"))))

  it.effect("starts with a session that was prepared, under the id that is asked for", () =>
    Effect.gen(function*() {
      const prepared = Session.make({ id: "other", context: { user: "u7" }, metadata: { title: "t" }, version: 9 })
      const { session } = yield* SessionRunner.start("s1", Session.append(prepared, Message.user("hi")))

      assert.deepStrictEqual([session.id, session.context, session.metadata], ["s1", { user: "u7" }, { title: "t" }])
      assert.deepStrictEqual(yield* load("s1"), session)
    }).pipe(served(says("a"))))

  it.effect("does not start over a session that exists, and gives back what was to be started", () =>
    Effect.gen(function*() {
      const { session } = yield* SessionRunner.start("s1", "hi")
      const error = yield* Effect.flip(Effect.asVoid(SessionRunner.start("s1", "again")))

      assert.isTrue(error instanceof SessionRunner.NotSaved)
      assert.deepStrictEqual(
        error instanceof SessionRunner.NotSaved && [error.error._tag, said(error.session)],
        ["Conflict", [["user", "again"]]]
      )
      assert.match(error.message, /session "s1" was not saved: .*version \d+ is stored.*`session`/)
      assert.deepStrictEqual(yield* load("s1"), session)
      assert.strictEqual(yield* asked, 1)
    }).pipe(served(says("a"))))

  it.effect("tells what is not stored, or cannot be", () =>
    Effect.gen(function*() {
      const missing = yield* Effect.flip(Effect.asVoid(SessionRunner.reply("nobody", "hi")))
      const answered = yield* Effect.flip(SessionRunner.answer("nobody", "c0", "x"))
      const resumed = yield* Effect.flip(Effect.asVoid(SessionRunner.resume("nobody")))
      const invalid = yield* Effect.flip(Effect.asVoid(SessionRunner.reply("", "hi")))

      assert.deepStrictEqual([missing._tag, answered._tag, resumed._tag], ["NotFound", "NotFound", "NotFound"])
      assert.deepInclude(invalid, { _tag: "StoreError", reason: "invalid_id" })
    }).pipe(served()))

  it.effect("refuses what does not fit, and changes nothing", () =>
    Effect.gen(function*() {
      const { session } = yield* SessionRunner.start("s1", "hi")
      const refusals = yield* Effect.forEach(
        [
          SessionRunner.continue("s1"),
          SessionRunner.reply("s1", "hi"),
          SessionRunner.answer("s1", "c9", "x"),
          SessionRunner.deny("s1", "c9"),
          SessionRunner.submitToolResult("s1", "c9", 1),
          SessionRunner.resolve("s1", "c9", "x"),
          SessionRunner.recover("s1"),
          SessionRunner.reply("s1", Message.assistant("x") as never),
          SessionRunner.start("s2", "hi", { maxTurns: 0 })
        ] as ReadonlyArray<Effect.Effect<unknown, unknown, SessionRunner.SessionRunner>>,
        (refused) => Effect.flip(refused)
      )

      assert.deepStrictEqual(
        refusals.map((error) => (error as { readonly _tag: string })._tag),
        [...Array.from({ length: 7 }, () => "SessionError"), "ValidationError", "ValidationError"]
      )
      assert.deepStrictEqual(yield* load("s1"), session)
    }).pipe(
      served(asks(call("c0", "pay"))) as <A, E>(self: Effect.Effect<A, E, unknown>) => Effect.Effect<A, E>
    ))

  it.effect("takes an answer, and goes on with it", () =>
    Effect.gen(function*() {
      yield* SessionRunner.start("s1", "hi")
      const answered = yield* SessionRunner.answer("s1", "c0", { city: "Oslo" })
      const stored = yield* load("s1")
      const { session } = yield* SessionRunner.resume("s1")

      assert.strictEqual(answered.status, "idle")
      assert.deepStrictEqual(stored, answered)
      assert.deepStrictEqual(said(session).slice(2), [["tool", "{\"city\":\"Oslo\"}"], ["assistant", "ok"]])
    }).pipe(served(asks(call("c0", "ask", { question: "Where?" })), says("ok"))))

  it.effect("takes results of manual calls, one by one and several at once", () =>
    Effect.gen(function*() {
      yield* SessionRunner.start("s1", "hi")
      const one = yield* SessionRunner.submitToolResult("s1", "c1", "no", { isError: true })
      const rest = new Map<string, unknown>([["c0", 1], ["c2", [2]]])
      const all = yield* SessionRunner.submitToolResults("s1", rest.entries())
      const { session } = yield* SessionRunner.resume("s1")

      assert.deepStrictEqual([one.status, all.status, session.status], ["awaiting_tools", "idle", "completed"])
      assert.deepStrictEqual(said(session).slice(2), [["tool", "1"], ["tool", "no"], ["tool", "[2]"], [
        "assistant",
        "ok"
      ]])
    }).pipe(served(asks(call("c0", "release"), call("c1", "release"), call("c2", "release")), says("ok"))))

  it.effect("carries out what was approved, and tells what was denied", () =>
    Effect.gen(function*() {
      const { session } = yield* SessionRunner.start("s1", "hi")
      const [first] = session.pendingApprovals
      yield* SessionRunner.approve("s1", "c0", { digest: first!.digest })
      const waiting = yield* Effect.flip(Effect.asVoid(SessionRunner.continue("s1")))
      const untouched = yield* SessionRunner.resume("s1")
      yield* SessionRunner.deny("s1", "c2", { reason: "too much" })
      const { session: end } = yield* SessionRunner.resume("s1")

      assert.deepInclude(waiting, { _tag: "SessionError", reason: "awaiting_approval" })
      assert.strictEqual(untouched.result, undefined)
      assert.deepStrictEqual(said(end).slice(2, 4), [["tool", "paid"], ["tool", "hi"]])
      assert.match(said(end)[4]![1]!, /too much/)
      assert.strictEqual(end.status, "completed")
    }).pipe(served(asks(call("c0", "pay"), call("c1", "hi"), call("c2", "pay")), says("ok"))))

  it.effect("takes a session out of its error", () =>
    Effect.gen(function*() {
      const { session } = yield* SessionRunner.start("s1", "hi")
      const resumed = yield* SessionRunner.resume("s1")
      const recovered = yield* SessionRunner.recover("s1")
      const { session: end } = yield* SessionRunner.continue("s1")

      assert.deepStrictEqual([session.status, resumed.session.status, resumed.result], ["error", "error", undefined])
      assert.deepStrictEqual([recovered.status, end.status], ["idle", "completed"])
    }).pipe(served(asks(call("c0", "hi")), [Fake.text("par"), Fake.error("network_error")], says("ok"))))

  it.effect("finds out by a person what became of a call in doubt", () =>
    Effect.gen(function*() {
      const journal = yield* ToolJournal.ToolJournal
      const mail = Tool.make("mail", { description: "Mails", handler: () => "sent twice" })
      const toolCall = { id: "c0", name: "mail", arguments: {}, metadata: {} }
      yield* put(Session.make({
        id: "s1",
        thread: { messages: [Message.user("hi"), Message.assistant("", { toolCalls: [toolCall] })], metadata: {} }
      }))
      // Another process has begun the call, and died.
      yield* journal.prepare({ sessionId: "s1", toolCallId: "c0" }, {
        toolName: "mail",
        digest: Session.digest(toolCall)
      })
      const { session } = yield* SessionRunner.resume("s1", { tools: [mail], onToolError: "halt" })
      const resolved = yield* SessionRunner.resolve("s1", "c0", "it was sent")
      const { session: end } = yield* SessionRunner.resume("s1", { tools: [mail] })

      assert.deepStrictEqual([session.status, session.unknownOutcomes.map(({ id }) => id)], ["error", ["c0"]])
      assert.strictEqual(resolved.status, "idle")
      assert.deepStrictEqual(said(end).slice(2), [["tool", "it was sent"], ["assistant", "ok"]])
    }).pipe(served(says("ok"))))

  describe("resume", () => {
    it.effect("asks nobody when nothing is left to do", () =>
      Effect.gen(function*() {
        const { session } = yield* SessionRunner.start("s1", "hi")
        const first = yield* SessionRunner.resume("s1")
        const second = yield* SessionRunner.resume("s1")
        yield* put(Session.make({ id: "empty" }))
        const empty = yield* SessionRunner.resume("empty")

        assert.deepStrictEqual([first, second], [{ session, result: undefined }, { session, result: undefined }])
        assert.strictEqual(empty.result, undefined)
        assert.strictEqual(yield* asked, 1)
      }).pipe(served(says("a"))))

    it.effect("goes on after the model has failed, and what was said stays said", () =>
      Effect.gen(function*() {
        yield* SessionRunner.start("s1", "hi")
        const failed = yield* Effect.flip(Effect.asVoid(SessionRunner.reply("s1", "more", { retry: false })))
        const stored = yield* load("s1")
        const { result, session } = yield* SessionRunner.resume("s1")

        assert.deepInclude(failed, { _tag: "AdapterError", reason: "provider_unavailable" })
        assert.deepStrictEqual([stored.status, said(stored).at(-1)], ["idle", ["user", "more"]])
        assert.strictEqual(result?.haltedReason, "completed")
        assert.deepStrictEqual(said(session).slice(2), [["user", "more"], ["assistant", "b"]])
      }).pipe(served(says("a"), [Fake.preflightError("provider_unavailable")], says("b"))))

    it.effect("goes on after a function of the caller's has failed, without running anything twice", () =>
      Effect.gen(function*() {
        const ran: Array<string> = []
        const once = Tool.make("once", {
          description: "Once",
          handler: (_, { toolCall }) => void ran.push(toolCall.id)
        })
        const failed = yield* Effect.flip(
          Effect.asVoid(SessionRunner.start("s1", "hi", { tools: [once], haltWhen: () => Effect.fail("no") }))
        )
        const { session } = yield* SessionRunner.resume("s1", { tools: [once] })

        assert.strictEqual(failed._tag, "CallbackFailed")
        assert.deepStrictEqual(ran, ["c0"])
        assert.strictEqual(session.status, "completed")
      }).pipe(served(asks(call("c0", "once")), says("ok"))))
  })

  describe("modify", () => {
    it.effect("does anything else, and saves it", () =>
      Effect.gen(function*() {
        yield* SessionRunner.start("s1", "hi")
        const { result, session } = yield* SessionRunner.modify("s1", (session) =>
          Effect.succeed({ session: { ...session, metadata: { title: "t" } }, result: session.version }))
        const stepped = yield* SessionRunner.modify("s1", (session) =>
          Session.step(session))

        assert.deepStrictEqual([session.metadata, session.version], [{ title: "t" }, result + 1])
        assert.strictEqual(stepped.result.response.outputText, "b")
        assert.deepStrictEqual(yield* load("s1"), stepped.session)
      }).pipe(served(says("a"), says("b"))))

    it.effect("saves nothing when it fails", () =>
      Effect.gen(function*() {
        const { session } = yield* SessionRunner.start("s1", "hi")
        const error = yield* Effect.flip(SessionRunner.modify("s1", () => Effect.fail("no" as const)))
        const defect = yield* Effect.exit(SessionRunner.modify("s1", (): Effect.Effect<Session.Outcome<void>> => {
          throw new Error("no")
        }))

        assert.strictEqual(error, "no")
        assert.strictEqual(defect._tag, "Failure")
        assert.deepStrictEqual(yield* load("s1"), session)
        // Neither of them kept it.
        yield* SessionRunner.recover("s1").pipe(Effect.flip)
      }).pipe(served(says("a"))))

    it.effect("hands out the journal of the runner", () =>
      Effect.gen(function*() {
        yield* SessionRunner.start("s1", "hi")
        const { session } = yield* SessionRunner.modify("s1", (session) =>
          Effect.gen(function*() {
            const journal = yield* ToolJournal.ToolJournal
            const known = yield* journal.prepare({ sessionId: "s1", toolCallId: "x" }, { toolName: "t", digest: "d" })
            return { session: { ...session, metadata: { known: known._tag } }, result: undefined }
          }))

        assert.deepStrictEqual(session.metadata, { known: "New" })
      }).pipe(served(says("a"))))
  })

  describe("streams", () => {
    const tags = (events: Iterable<{ readonly _tag: string }>) => Array.from(events, ({ _tag }) => _tag)

    it.effect("tell what happens, and have it saved when they end", () =>
      Effect.gen(function*() {
        const first = yield* Stream.runCollect(SessionRunner.streamStart("s1", "hi"))
        const one = yield* load("s1")
        const second = yield* Stream.runCollect(SessionRunner.streamReply("s1", "more"))
        const third = yield* Stream.runCollect(SessionRunner.streamContinue("s1"))
        const end = yield* load("s1")

        for (const events of [first, second, third]) {
          assert.strictEqual(tags(events).filter((tag) => tag === "ChatCompleted").length, 1)
          assert.strictEqual(tags(events).at(-1), "ChatCompleted")
        }
        assert.include(tags(second), "ToolExecutionCompleted")
        assert.deepStrictEqual([one.status, said(one)], ["completed", [["user", "hi"], ["assistant", "a"]]])
        assert.deepStrictEqual(said(end).slice(2).map(([role]) => role), [
          "user",
          "assistant",
          "tool",
          "assistant",
          "assistant"
        ])
      }).pipe(served(says("a"), asks(call("c0", "hi")), says("b"), says("c"))))

    it.effect("save what has happened when nobody reads on", () =>
      Effect.gen(function*() {
        yield* SessionRunner.start("s1", "hi")
        const heard = yield* SessionRunner.streamReply("s1", "tell me").pipe(Stream.take(2), Stream.runCollect)
        const stored = yield* load("s1")
        const { session } = yield* SessionRunner.reply("s1", "shorter")

        assert.strictEqual(Chunk.size(heard), 2)
        assert.deepStrictEqual([stored.status, said(stored).at(-1)], ["idle", ["user", "tell me"]])
        assert.deepStrictEqual(said(session).slice(2), [
          ["user", "tell me"],
          ["user", "shorter"],
          ["assistant", "b"]
        ])
      }).pipe(served(says("a"), [Fake.text("Once"), Fake.delay("1 hour"), Fake.finish("stop")], says("b"))))

    it.effect("fail as the run does", () =>
      Effect.gen(function*() {
        const missing = yield* Effect.flip(Stream.runDrain(SessionRunner.streamReply("s1", "hi")))
        const failed = yield* Effect.flip(Stream.runDrain(SessionRunner.streamStart("s1", "hi", { retry: false })))

        assert.deepStrictEqual([missing._tag, failed._tag], ["NotFound", "AdapterError"])
        assert.deepStrictEqual(said(yield* load("s1")), [["user", "hi"]])
      }).pipe(served([Fake.preflightError("provider_unavailable")])))
  })

  it.effect("saves each step before the next builds upon it", () =>
    Effect.gen(function*() {
      const steps: Array<string> = []
      const shared = yield* world
      const noted = Tool.make("noted", {
        description: "Leaves a trace",
        handler: (_, { toolCall }) => void steps.push(`run ${toolCall.id}`)
      })
      const around = <A, E>(step: string, work: Effect.Effect<A, E>) =>
        Effect.tap(work, () => {
          steps.push(step)
        })
      const scripts = [asks(call("c0", "noted"), call("c1", "noted")), says("ok")]
      const model = Fake.engine({
        respond: (request, index) => {
          steps.push(`ask ${request.messages.length}`)
          return scripts[index]!
        },
        tools: [noted],
        concurrency: 1
      })
      yield* SessionRunner.start("s1", "hi").pipe(
        Effect.provide(Layer.merge(shared.process({ around }), model))
      )

      assert.deepStrictEqual(steps, [
        "lease.acquire",
        "store.save",
        "journal.compact",
        "ask 1",
        "store.save",
        "journal.prepare c0",
        "run c0",
        "journal.settle c0",
        "journal.prepare c1",
        "run c1",
        "journal.settle c1",
        "store.save",
        "journal.compact",
        "ask 4",
        "store.save",
        "journal.compact",
        "lease.release"
      ])
      assert.strictEqual((yield* shared.store.load("s1")).version, 4)
    }))

  it.effect("runs a call although the model has used its id before", () =>
    Effect.gen(function*() {
      const ran: Array<unknown> = []
      const add = Tool.make("add", {
        description: "Adds",
        parameters: { n: Schema.Number },
        handler: ({ n }) => ran.push(n)
      })
      const { session } = yield* SessionRunner.start("s1", "hi", { tools: [add] })
      const { session: end } = yield* SessionRunner.reply("s1", "again", { tools: [add] })

      assert.deepStrictEqual(ran, [1, 1, 2, 1])
      assert.deepStrictEqual(
        said(end).filter(([role]) => role === "tool").map(([, content]) => content),
        ["1", "2", "3", "4"]
      )
      assert.strictEqual(session.status, "completed")
    }).pipe(served(
      asks(call("call_0", "add", { n: 1 })),
      asks(call("call_0", "add", { n: 1 })),
      asks(call("call_0", "add", { n: 2 })),
      says("ok"),
      asks(call("call_0", "add", { n: 1 })),
      says("ok")
    )))

  it.effect("counts the tokens of a session once", () =>
    Effect.gen(function*() {
      const { session } = yield* SessionRunner.start("s1", "hi")

      assert.strictEqual(session.usage.inputTokens, 20)
      assert.deepStrictEqual((yield* load("s1")).usage, session.usage)
    }).pipe(served(
      [call("c0", "hi"), Fake.usage({ inputTokens: 10, outputTokens: 1 }), Fake.finish("tool_calls")],
      [Fake.text("ok"), Fake.usage({ inputTokens: 10, outputTokens: 1 }), Fake.finish("stop")]
    )))

  it("refuses options that cannot be", () => {
    for (
      const [options, problem] of [
        [{ leaseDuration: 0 }, /leaseDuration/],
        [{ leaseDuration: "Infinity" }, /leaseDuration/],
        [{ leaseDuration: Infinity }, /a duration that ends/],
        [{ wait: -1 }, /wait/],
        [{ wait: "soon" }, /wait/],
        [{ holder: "" }, /holder/],
        [{ lease: 1 }, /there is no such option/],
        [null, /write options/]
      ] as const
    ) {
      assert.throws(() => SessionRunner.layer(options as never), problem)
    }
    SessionRunner.layer({ wait: 0, leaseDuration: "1 second", holder: "web-1" })
  })
})
