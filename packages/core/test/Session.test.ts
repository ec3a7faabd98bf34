import {
  type ChatResult,
  Fake,
  Message,
  Response,
  Session,
  type StepResult,
  Tool,
  ToolCall,
  ToolContext,
  ToolError,
  ToolExecutor,
  ToolResult
} from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Either, Schema, TestClock } from "effect"
import { createHash } from "node:crypto"

const call = (id: string, name: string, args: unknown = {}) => Fake.toolCall({ id, name, arguments: args })
const asks = (...calls: ReadonlyArray<Fake.Entry>): Fake.Script => [...calls, Fake.finish("tool_calls")]
const says = (text: string): Fake.Script => [Fake.text(text), Fake.finish("stop")]
const model = (...scripts: ReadonlyArray<Fake.Script>) => Effect.provide(Fake.engine({ scripts }))

const ask = Tool.make("ask", {
  description: "Asks the person",
  parameters: { question: Schema.String },
  handler: ({ question }) => ToolResult.askUser(question)
})
const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })
const release = Tool.make("release", { description: "The caller's to run", manual: true })
const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { amount: Schema.Number },
  needsApproval: true,
  handler: ({ amount }) => `paid ${amount}`
})
const tools = [ask, hi, release, pay]

const said = ({ thread }: Session.Session) => thread.messages.map(({ content, role }) => [role, content])
const throughJson = (session: Session.Session): Session.Session =>
  Schema.decodeUnknownSync(Session.Session)(JSON.parse(JSON.stringify(Schema.encodeSync(Session.Session)(session))))

describe("Session", () => {
  it.effect("SES-01 SES-09 starts with messages and goes on after it was completed", () =>
    Effect.gen(function*() {
      const first = yield* Session.start([Message.user("hi")], { sessionId: "s1" })
      const second = yield* Session.reply(first.session, "more")

      assert.strictEqual(first.session.id, "s1")
      assert.strictEqual(first.session.status, "completed")
      assert.strictEqual(first.result.haltedReason, "completed")
      assert.deepStrictEqual(said(second.session), [["user", "hi"], ["assistant", "a"], ["user", "more"], [
        "assistant",
        "b"
      ]])
    }).pipe(model(says("a"), says("b"))))

  it.effect("makes up an id of its own", () =>
    Effect.gen(function*() {
      const { session } = yield* Session.start("hi")

      assert.match(session.id, /^[\w-]{22}$/)
    }).pipe(model(says("a"))))

  it.effect("SES-04 SES-24 leaves all calls to the caller in manual mode", () =>
    Effect.gen(function*() {
      const chat = yield* Session.start("hi", { mode: "manual", tools })
      const step = yield* Session.step(
        Session.make({ id: "s", thread: { messages: [Message.user("hi")], metadata: {} } }),
        {
          mode: "manual",
          tools
        }
      )

      assert.strictEqual(chat.session.status, "awaiting_tools")
      assert.deepStrictEqual(chat.session.pendingToolCalls.map(({ id }) => id), ["c0"])
      assert.strictEqual(step.session.status, "awaiting_tools")
      assert.deepStrictEqual(step.session.pendingToolCalls.map(({ id }) => id), ["c1"])
    }).pipe(model(asks(call("c0", "hi")), asks(call("c1", "hi")))))

  it.effect("SES-06 is in error, with the reason, when the model broke off", () =>
    Effect.gen(function*() {
      const { result, session } = yield* Session.start("hi")

      assert.strictEqual(result.haltedReason, "error")
      assert.strictEqual(session.status, "error")
      assert.isDefined(session.metadata["error"])
    }).pipe(model([Fake.text("partial"), Fake.error("network_error")])))

  it.effect("SES-08 refuses input that is no conversation", () =>
    Effect.gen(function*() {
      const tuple = yield* Effect.flip(Session.start({ a: 1 } as never))
      const member = yield* Effect.flip(Session.start([42] as never))
      const reply = yield* Effect.flip(Session.reply(Session.make({ id: "s" }), Message.assistant("x") as never))

      assert.deepStrictEqual([tuple._tag, member._tag, reply._tag], [
        "ValidationError",
        "ValidationError",
        "ValidationError"
      ])
    }).pipe(model()))

  it.effect("SES-05 SES-10 SES-43 ASK-07 takes a reply as the answer to its question", () =>
    Effect.gen(function*() {
      const first = yield* Session.start("hi", { tools })
      const second = yield* Session.reply(throughJson(first.session), "Oslo", { tools })

      assert.strictEqual(first.session.status, "awaiting_user")
      assert.deepStrictEqual(first.session.pendingQuestions.map(({ question }) => question), ["Where?"])
      assert.strictEqual(second.session.status, "completed")
      assert.deepStrictEqual(second.session.pendingQuestions, [])
      assert.deepStrictEqual(said(second.session), [
        ["user", "hi"],
        ["assistant", ""],
        ["tool", "<awaiting user response>"],
        ["assistant", "Where?"],
        ["user", "Oslo"],
        ["assistant", "ok"]
      ])
    }).pipe(model(asks(call("c0", "ask", { question: "Where?" })), says("ok"))))

  it.effect("makes an answer the call's own result", () =>
    Effect.gen(function*() {
      const first = yield* Session.start("hi", { tools })
      const answered = yield* Session.answer(throughJson(first.session), "c0", { city: "Oslo" })
      const second = yield* Session.continue(answered, { tools })

      assert.strictEqual(answered.status, "idle")
      assert.deepStrictEqual(said(second.session), [
        ["user", "hi"],
        ["assistant", ""],
        ["tool", "{\"city\":\"Oslo\"}"],
        ["assistant", "ok"]
      ])
    }).pipe(model(asks(call("c0", "ask", { question: "Where?" })), says("ok"))))

  it.effect("SES-32 SES-36 SES-37 SES-62 SES-63 takes results of manual calls one by one", () =>
    Effect.gen(function*() {
      const { session } = yield* Session.start("hi", { tools })
      const one = yield* Session.submitToolResult(session, "c2", [1, 2])
      const again = yield* Effect.flip(Session.submitToolResult(one, "c2", "x"))
      const auto = yield* Effect.flip(Session.submitToolResult(one, "c1", "x"))
      const two = yield* Session.submitToolResult(one, "c0", "shipped")
      const { session: end } = yield* Session.continue(two, { tools })

      assert.deepStrictEqual([session.status, one.status, two.status, end.status], [
        "awaiting_tools",
        "awaiting_tools",
        "idle",
        "completed"
      ])
      assert.deepStrictEqual(
        [again, auto].map((error) => "operation" in error ? [error.reason, error.toolCallId] : []),
        [
          ["unknown_tool_call_id", "c2"],
          ["unknown_tool_call_id", "c1"]
        ]
      )
      assert.deepStrictEqual(said(end).slice(2), [["tool", "shipped"], ["tool", "hi"], ["tool", "[1,2]"], [
        "assistant",
        "ok"
      ]])
    }).pipe(model(asks(call("c0", "release"), call("c1", "hi"), call("c2", "release")), says("ok"))))

  it.effect("tells a call that has its result from those that wait", () =>
    Effect.gen(function*() {
      const { session } = yield* Session.start("hi", { tools })
      const submitted = yield* Session.submitToolResult(session, "c1", "done")
      const again = yield* Effect.flip(Session.submitToolResult(submitted, "c1", "done"))
      const resolved = yield* Effect.flip(Session.resolve(session, "c1", "done"))
      const noText = yield* Effect.flip(Session.answer(session, session.pendingQuestions[0] as never, "yes"))

      assert.match(again.message, /call "c1" does not wait for it; the question of call "c0" waits/)
      assert.match(resolved.message, /no outcome is in doubt; the question of call "c0" waits/)
      assert.match(noText.message, /use Session\.answer\(session, "c0", answer\)/)
    }).pipe(model(asks(call("c0", "ask", { question: "?" }), call("c1", "release")))))

  it.effect("SES-38 SES-40 SES-41 takes a batch of results, all or none", () =>
    Effect.gen(function*() {
      const { session } = yield* Session.start("hi", { tools })
      const both = yield* Session.submitToolResults(session, [["c1", "b"], ["c0", "a"]])
      const single = yield* Effect.flatMap(
        Session.submitToolResult(session, "c0", "a"),
        (next) => Session.submitToolResult(next, "c1", "b")
      )
      const unknown = yield* Effect.flip(Session.submitToolResults(session, [["c9", "x"], ["c0", "a"]]))
      const tooMany = yield* Effect.flip(Session.submitToolResults(session, [["c0", "a"], ["c1", "b"], ["c2", "c"]]))

      assert.deepStrictEqual(both, single)
      assert.deepStrictEqual([unknown, tooMany].map((error) => error.reason), [
        "unknown_tool_call_id",
        "nothing_pending"
      ])
      assert.strictEqual(session.pendingToolCalls.length, 2)
    }).pipe(model(asks(call("c0", "release"), call("c1", "release")))))

  it.effect("SES-45 SES-47 SES-49 hands its id and its context to the handlers, over the engine's", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const look = Tool.make("look", {
        description: "Looks around",
        handler: () => Effect.map(ToolContext.ToolContext, ({ context, sessionId }) => seen.push([sessionId, context]))
      })
      const session = Session.make({ id: "s1", context: { user: "ada" } })
      const first = yield* Session.reply(session, "hi", { tools: [look] })
      yield* Session.reply(first.session, "hi", { tools: [look], sessionId: "other", context: { user: "bob" } })

      assert.deepStrictEqual(seen, [["s1", { tenant: 1, user: "ada" }], ["other", { tenant: 1, user: "bob" }]])
    }).pipe(Effect.provide(Fake.engine({
      scripts: [asks(call("c0", "look")), says("a"), asks(call("c1", "look")), says("b")],
      context: { tenant: 1 }
    }))))

  it.effect("sums usage over its life, and keeps its own metadata", () =>
    Effect.gen(function*() {
      const session = Session.make({ id: "s", metadata: { title: "trip" } })
      const first = yield* Session.reply(session, "a", { tools })
      const answered = yield* Session.answer(first.session, "c0", "x")
      const second = yield* Session.continue(answered, { tools })

      assert.deepStrictEqual(second.session.usage, { inputTokens: 30, outputTokens: 3 })
      assert.deepStrictEqual(first.session.metadata["pendingToolCallId"], "c0")
      assert.deepStrictEqual(second.session.metadata, { title: "trip" })
    }).pipe(model(
      asks(call("c0", "ask", { question: "?" }), Fake.usage({ inputTokens: 10, outputTokens: 1 })),
      [Fake.text("x"), Fake.usage({ inputTokens: 20, outputTokens: 2 }), Fake.finish("stop")]
    )))

  it.effect("waits for questions, manual calls and consent at once, answered in any order after JSON", () =>
    Effect.gen(function*() {
      const { session } = yield* Session.start("hi", { tools })
      const submit = (now: Session.Session) => Session.submitToolResult(now, "c0", "shipped")
      const answer = (now: Session.Session) => Session.answer(now, "c1", "Oslo")
      const approve = (now: Session.Session) => Session.approve(now, "c2")
      const steps = [submit, answer, approve]
      const orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
      const ends = yield* Effect.forEach(
        orders,
        (order) => Effect.reduce(order, session, (now, index) => Effect.map(steps[index]!(now), throughJson))
      )

      assert.strictEqual(session.status, "awaiting_user")
      for (const end of ends) assert.deepStrictEqual(end, ends[0])
      assert.strictEqual(ends[0]?.status, "idle")

      const { session: end } = yield* Session.continue(ends[0]!, { tools })
      assert.deepStrictEqual(said(end).slice(2), [
        ["tool", "shipped"],
        ["tool", "Oslo"],
        ["tool", "paid 5"],
        ["tool", "hi"],
        ["assistant", "ok"]
      ])
    }).pipe(model(
      asks(
        call("c0", "release"),
        call("c1", "ask", { question: "?" }),
        call("c2", "pay", { amount: 5 }),
        call("c3", "hi")
      ),
      says("ok")
    )))

  it.effect("keeps what approved calls did when the model fails after them", () =>
    Effect.gen(function*() {
      const { session } = yield* Session.start("hi", { tools })
      const approved = yield* Session.approve(session, "c0")
      const { result, session: broken } = yield* Session.continue(approved, { tools, retry: false })
      const recovered = yield* Session.recover(throughJson(broken))
      const { session: end } = yield* Session.continue(recovered, { tools })

      assert.strictEqual(result.haltedReason, "error")
      assert.strictEqual(result.error?._tag, "AdapterError")
      assert.strictEqual(broken.status, "error")
      assert.deepStrictEqual(broken.pendingApprovals, [])
      assert.deepStrictEqual(said(end).slice(2), [["tool", "paid 5"], ["assistant", "ok"]])
    }).pipe(model(
      asks(call("c0", "pay", { amount: 5 })),
      [Fake.preflightError("provider_unavailable")],
      says("ok")
    )))

  it.effect("runs calls that a crash left without a result, and only those", () =>
    Effect.gen(function*() {
      const { session } = yield* Session.start("hi", { tools: [hi] })
      const crashed: Session.Session = {
        ...session,
        status: "idle",
        thread: { ...session.thread, messages: session.thread.messages.filter((_, index) => index < 3) }
      }
      const { result, session: end } = yield* Session.continue(throughJson(crashed), { tools: [hi] })

      assert.deepStrictEqual(said(end), [["user", "hi"], ["assistant", ""], ["tool", "hi"], ["tool", "hi"], [
        "assistant",
        "ok"
      ]])
      assert.deepStrictEqual(result.steps[0]?.toolResults.map(({ toolCallId }) => toolCallId), ["c1"])
    }).pipe(model(asks(call("c0", "hi"), call("c1", "hi")), says("done"), says("ok"))))

  it.effect("SES-50 SES-51 SES-54 SES-55 SES-56 takes over what a result says", () =>
    Effect.gen(function*() {
      const session = Session.make({ id: "s" })
      const response = Response.make({ finishReason: "tool_calls" })
      const step: StepResult.StepResult = {
        thread: session.thread,
        response,
        toolResults: [],
        done: false,
        pendingQuestions: [],
        pendingApprovals: [],
        manualToolCalls: [],
        metadata: {}
      }
      const chat = (haltedReason: string, steps: ReadonlyArray<StepResult.StepResult> = []): ChatResult.ChatResult => ({
        thread: session.thread,
        finalResponse: response,
        steps,
        haltedReason,
        pendingQuestions: [],
        pendingApprovals: [],
        manualToolCalls: [],
        usage: {},
        metadata: { note: 1 }
      })
      const error = new ToolError.HandlerExit({ toolName: "t", toolCallId: "c0" })
      const halted = { ...step, halt: { reason: "tool_error", toolCallId: "c0", error } }
      const statusOf = (result: ChatResult.ChatResult | StepResult.StepResult) =>
        Effect.map(Session.apply(session, result), ({ metadata, status }) => [status, metadata["error"]])

      const told = { _tag: "HandlerExit", reason: "handler_exit", message: "tool error (t): handler_exit" }
      assert.deepStrictEqual(yield* statusOf(chat("tool_error", [halted])), ["error", told])
      assert.deepStrictEqual(yield* statusOf(chat("tool_error")), ["error", { note: 1 }])
      for (const reason of ["max_turns", "halt_when", "plan_submitted"]) {
        assert.deepStrictEqual(yield* statusOf(chat(reason)), ["completed", undefined])
      }
      assert.deepStrictEqual(yield* statusOf(chat("cancelled")), ["idle", undefined])
      assert.deepStrictEqual(yield* statusOf(halted), ["error", told])
      assert.deepStrictEqual(
        yield* statusOf({ ...step, response: Response.make({ finishReason: "error" }) }),
        ["error", {}]
      )
    }))

  it("VAL-30 VAL-31 VAL-32 SER-09 names what is wrong with a session", () => {
    const codes = (input: unknown) =>
      Either.match(Session.validate(input), {
        onLeft: ({ issues }) => issues.map(({ code, path }) => [path.join("."), code]),
        onRight: () => []
      })
    const thread = { messages: [], metadata: {} }

    assert.deepStrictEqual(codes({ id: "s", thread, status: "awaiting_tools" }), [[
      "pendingToolCalls",
      "required_for_status"
    ]])
    assert.deepStrictEqual(codes({ id: "s", thread, status: "error" }), [["metadata", "error_required_for_status"]])
    assert.deepStrictEqual(codes({ id: "", thread, status: "asleep" }), [["id", "required"], ["status", "unknown"]])
    assert.throws(() => Session.make({ id: "" }), /id/)
  })
})

describe("a call whose outcome nobody knows", () => {
  const inDoubt = ToolExecutor.layer({
    execute: (tool, _args, { toolCall }) =>
      Effect.fail(new ToolError.OutcomeUnknown({ toolName: tool.name, toolCallId: toolCall.id }))
  })
  const crashed = Session.make({
    id: "s",
    thread: {
      messages: [
        Message.user("hi"),
        Message.assistant("", {
          toolCalls: ["c0", "c1"].map((id) => ToolCall.make({ id, name: "hi", arguments: {} }))
        })
      ],
      metadata: {}
    }
  })
  const halted = Effect.map(
    Effect.provide(Session.continue(crashed, { tools, onToolError: "halt" }), inDoubt),
    ({ session }) => throughJson(session)
  )

  it.effect("waits for a person, who says what became of each", () =>
    Effect.gen(function*() {
      const session = yield* halted
      const one = yield* Session.resolve(session, "c1", "it ran")
      const known = yield* Effect.flip(Session.resolve(one, "c1", "again"))
      const two = yield* Session.resolve(one, "c0", "it did not run", { isError: true })
      const { session: end } = yield* Session.continue(two, { tools })

      assert.deepStrictEqual([session.status, one.status, two.status, end.status], [
        "error",
        "error",
        "idle",
        "completed"
      ])
      assert.deepStrictEqual(session.unknownOutcomes.map(({ id }) => id), ["c0", "c1"])
      assert.strictEqual(known.reason, "unknown_tool_call_id")
      assert.deepStrictEqual(said(end).slice(2), [["tool", "it did not run"], ["tool", "it ran"], ["assistant", "ok"]])
    }).pipe(model(says("ok"))))

  it.effect("is told to the model when the session is recovered", () =>
    Effect.gen(function*() {
      const recovered = yield* Effect.flatMap(halted, Session.recover)
      const { session } = yield* Session.continue(recovered, { tools })

      assert.deepStrictEqual(said(session)[2], ["tool", "{\"error\":\"tool error (hi): outcome_unknown\"}"])
      assert.strictEqual(session.status, "completed")
    }).pipe(model(says("ok"))))
})

describe("approvals", () => {
  const asked = Effect.map(Session.start("hi", { tools, approvalTimeout: "1 minute" }), ({ session }) => session)
  const Paying = model(asks(call("c0", "pay", { amount: 5 })), says("ok"))

  it.effect("are bound to a SHA-256 of the tool and its arguments, and expire", () =>
    Effect.gen(function*() {
      const [pending] = (yield* asked).pendingApprovals

      assert.strictEqual(
        pending?.digest,
        createHash("sha256").update("[\"pay\",{\"amount\":5}]").digest("hex")
      )
      assert.deepStrictEqual([pending?.requestedAt, pending?.expiresAt], [0, 60_000])
    }).pipe(Paying))

  it.effect("tell the model about a refusal and its reason", () =>
    Effect.gen(function*() {
      const denied = yield* Session.deny(yield* asked, "c0", { reason: "too much" })
      const { session } = yield* Session.continue(throughJson(denied), { tools })

      assert.deepStrictEqual(said(session).slice(2), [
        ["tool", "{\"error\":\"tool error (pay): denied: too much\"}"],
        ["assistant", "ok"]
      ])
    }).pipe(Paying))

  it.effect("are refused after their time, before and after consent, and can still be denied", () =>
    Effect.gen(function*() {
      const session = yield* asked
      const approved = yield* Session.approve(session, "c0")
      yield* TestClock.adjust("1 minute")
      const late = yield* Effect.flip(Session.approve(session, "c0"))
      const unused = yield* Effect.flip(Session.continue(approved, { tools }))
      const denied = yield* Session.deny(approved, "c0")

      assert.strictEqual(late.reason, "approval_expired")
      assert.strictEqual("operation" in unused && unused.reason, "approval_expired")
      assert.strictEqual(denied.status, "idle")
    }).pipe(Paying))

  it.effect("do not count for other arguments than were shown", () =>
    Effect.gen(function*() {
      const session = yield* asked
      const approved = yield* Session.approve(session, "c0")
      const forge = (from: Session.Session): Session.Session =>
        JSON.parse(JSON.stringify(from).replaceAll("\"amount\":5", "\"amount\":5000"))
      const shown = yield* Effect.flip(Session.approve(session, "c0", { digest: "0".repeat(64) }))
      const before = yield* Effect.flip(Session.approve(forge(session), "c0"))
      const after = yield* Effect.flip(Session.continue(forge(approved), { tools }))

      for (const error of [shown, before, after]) {
        assert.strictEqual("operation" in error && error.reason, "approval_mismatch")
      }
    }).pipe(Paying))

  it.effect("count once", () =>
    Effect.gen(function*() {
      const approved = yield* Session.approve(yield* asked, "c0")
      const twice = yield* Effect.flip(Session.approve(approved, "c0"))
      const { session } = yield* Session.continue(approved, { tools })
      const later = yield* Effect.flip(Session.approve(session, "c0"))

      assert.deepStrictEqual([twice.reason, later.reason], ["approval_used", "approval_used"])
      assert.deepStrictEqual(session.pendingApprovals, [])
    }).pipe(Paying))
})
