import {
  type Engine,
  Fake,
  Message,
  Session,
  type SessionError,
  SessionReducer,
  Tool,
  ToolCall,
  type ValidationError
} from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, Stream } from "effect"

const call = (id: string, version = 2) => ToolCall.make({ id, name: "release", arguments: { version } })
const asked = (...ids: ReadonlyArray<string>) => ({
  messages: [Message.user("hi"), Message.assistant("", { toolCalls: ids.map((id) => call(id)) })],
  metadata: {}
})
const approval = (id: string) => ({ toolCall: call(id), digest: Session.digest(call(id)), requestedAt: 0 })

const idle = Session.make({ id: "s", thread: { messages: [Message.user("hi")], metadata: {} } })
const consent = Session.make({
  id: "s",
  status: "awaiting_approval",
  thread: asked("a0"),
  pendingApprovals: [approval("a0")]
})
const manual = Session.make({
  id: "s",
  status: "awaiting_tools",
  thread: asked("m0"),
  pendingToolCalls: [call("m0")]
})
const broken = Session.make({ id: "s", status: "error", metadata: { error: "offline" } })

const Model = Fake.engine({ respond: () => [Fake.text("ok"), Fake.finish("stop")] })

type Attempt = Effect.Effect<unknown, unknown, Engine.Engine>

/** The refusal, if there is one; a defect fails the test with its cause. */
const refusal = (
  attempt: Attempt
): Effect.Effect<ValidationError.ValidationError | SessionError.SessionError, unknown> =>
  Effect.flip(Effect.asVoid(attempt)).pipe(
    Effect.provide(Model),
    Effect.map((error) => error as ValidationError.ValidationError | SessionError.SessionError)
  )

const issuesOf = (attempt: Attempt) =>
  Effect.map(refusal(attempt), (error) => {
    assert.strictEqual(error._tag, "ValidationError")
    return error._tag === "ValidationError"
      ? [error.reason, error.issues.map(({ message, path }) => [path, message])]
      : []
  })

const streamed = <A, E, R>(turn: Session.Turn<A, E, R>) => Stream.runDrain(turn.events)

/** Everything that is done to a session, as somebody without a compiler calls it. */
const operations: { readonly [name: string]: (session: never) => Attempt } = {
  start: (session) => Session.start(session),
  streamStart: (session) => streamed(Session.streamStart(session)),
  reply: (session) => Session.reply(session, "yes"),
  streamReply: (session) => streamed(Session.streamReply(session, "yes")),
  continue: (session) => Session.continue(session),
  streamContinue: (session) => streamed(Session.streamContinue(session)),
  step: (session) => Session.step(session),
  streamStep: (session) => streamed(Session.streamStep(session)),
  answer: (session) => Session.answer(session, "q0", "Oslo"),
  submitToolResult: (session) => Session.submitToolResult(session, "m0", "done"),
  submitToolResults: (session) => Session.submitToolResults(session, [["m0", "done"]]),
  approve: (session) => Session.approve(session, "a0"),
  deny: (session) => Session.deny(session, "a0"),
  resolve: (session) => Session.resolve(session, "u0", "it ran"),
  recover: (session) => Session.recover(session),
  apply: (session) => Session.apply(session, undefined as never)
}

describe("Session, a value that is no session", () => {
  for (const [name, operate] of Object.entries(operations)) {
    it.effect(`${name} asks for the session of an outcome`, () =>
      Effect.gen(function*() {
        const issues = yield* issuesOf(operate({ session: idle, result: {} } as never))

        assert.deepStrictEqual(issues, ["invalid_session", [[
          [],
          `Session.${name} takes a session; pass outcome.session, not the whole { session, result }`
        ]]])
      }))

    it.effect(`${name} refuses what only looks like one`, () =>
      Effect.gen(function*() {
        const { pendingApprovals: _, ...undecoded } = idle
        const strangers = /start/i.test(name) ? [] : [undefined, null, "s1", 7, [], {}, Session.start("hi")]
        const lookalikes: ReadonlyArray<unknown> = [
          ...strangers,
          undecoded,
          { ...idle, status: "asleep" },
          { ...idle, id: 7 },
          { ...idle, thread: undefined },
          { ...idle, thread: { messages: "hi", metadata: {} } },
          { ...idle, thread: { messages: [null], metadata: {} } },
          { ...idle, thread: { messages: [{ role: "assistant", content: "" }], metadata: {} } },
          { ...idle, pendingToolCalls: [null] },
          { ...idle, pendingQuestions: [{}] },
          { ...consent, pendingApprovals: [{ toolCall: call("a0") }] },
          { ...consent, pendingApprovals: [{ ...approval("a0"), decision: "yes" }] },
          { ...idle, unknownOutcomes: {} },
          { ...idle, usage: null },
          { ...idle, context: "u7" },
          { ...idle, version: undefined }
        ]
        for (const lookalike of lookalikes) {
          const [reason, issues] = yield* issuesOf(operate(lookalike as never))
          assert.strictEqual(reason, "invalid_session")
          assert.isNotEmpty(issues)
        }
      }))
  }

  it.effect("is told where the session is to be found", () =>
    Effect.gen(function*() {
      const json: unknown = JSON.parse(
        "{\"id\":\"s\",\"status\":\"idle\",\"thread\":{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}}"
      )
      const messages = yield* Effect.forEach(
        ["s1", JSON.stringify(idle), Session.start("hi"), 7, json, { ...idle, version: null }],
        (value) => Effect.map(refusal(Session.continue(value as never)), ({ message }) => message.split("\n")[1])
      )

      assert.deepStrictEqual(messages, [
        "- $: Session.continue takes a session; \"s1\" is a text; load the session of an id with SessionStore.load, " +
        "or use SessionRunner",
        "- $: Session.continue takes a session; parse the text first, with Schema.decode(Schema.parseJson(Session.Session))",
        "- $: Session.continue takes a session; this is an Effect; write yield* before it, and pass its session",
        "- $: Session.continue takes a session; write Session.make({ id: \"…\" }), not a number",
        "- $.thread.messages[0]: a session has a whole Message here, not an object; " +
        "JSON becomes a session with Schema.decodeUnknown(Session.Session)",
        "- $.version: a session has a whole number here, not null; " +
        "JSON becomes a session with Schema.decodeUnknown(Session.Session)"
      ])
      const decoded = Schema.decodeUnknownSync(Session.Session)(json)
      const { session } = yield* Effect.provide(Session.continue(decoded), Model)
      assert.strictEqual(session.status, "completed")
    }))

  it("is refused where nothing is an Effect, too", () => {
    assert.throws(
      () => Session.append({ session: idle } as never, Message.user("more")),
      /invalid_session[^]*Session\.append takes a session; pass outcome\.session/
    )
    assert.throws(() => Session.append(Message.user("more"))(undefined as never), /Session\.append takes a session/)
    assert.throws(() => SessionReducer.make("s1" as never), /invalid_session[^]*SessionReducer\.make takes a session/)
  })

  it.effect("nor is anything but a result applied", () =>
    Effect.gen(function*() {
      const outcome = yield* Effect.provide(Session.reply(idle, "more"), Model)
      const wrong = [outcome, undefined, "completed", {}, { ...outcome.result, steps: 1 }, {
        ...outcome.result,
        usage: 1
      }]
      const messages = yield* Effect.forEach(wrong, (result) =>
        Effect.map(refusal(Session.apply(idle, result as never)), ({ message }) => message.split("\n")[1]))

      assert.deepStrictEqual(messages, [
        "- $.result: Session.apply takes a result; pass outcome.result, not the whole { session, result }",
        "- $.result: Session.apply takes a ChatResult or a StepResult, not undefined",
        "- $.result: Session.apply takes a ChatResult or a StepResult, not \"completed\"",
        "- $.result.thread: a ChatResult or a StepResult has a Thread here, not undefined",
        "- $.result.steps: a ChatResult or a StepResult has a list here, not 1",
        "- $.result.usage: a ChatResult or a StepResult has an object here, not 1"
      ])
      assert.deepStrictEqual(yield* Session.apply(idle, outcome.result), outcome.session)
    }))
})

describe("Session.submitToolResults", () => {
  it.effect("takes pairs, from wherever they come, and nothing else", () =>
    Effect.gen(function*() {
      const wrong = [
        { m0: "done" },
        "m0",
        undefined,
        7,
        [Message.tool("m0", "done")],
        ["m0", "done"],
        [["m0"]],
        [["m0", "done"], [7, "done"]],
        [["m0", "done", { isError: true }]]
      ]
      const issues = yield* Effect.forEach(wrong, (results) =>
        issuesOf(Session.submitToolResults(manual, results as never)))

      assert.deepStrictEqual(
        issues,
        [
          [[["results"], "write [[toolCallId, result], …], or Object.entries(results), not an object"]],
          [[["results"], "write [[toolCallId, result], …], not a string"]],
          [[["results"], "write [[toolCallId, result], …], not undefined"]],
          [[["results"], "write [[toolCallId, result], …], not a number"]],
          [[["results", 0], "write [message.toolCallId, message.content], not the message"]],
          [
            [["results", 0], "write [toolCallId, result], not \"m0\""],
            [["results", 1], "write [toolCallId, result], not \"done\""]
          ],
          [[["results", 0], "write [toolCallId, result], not an array"]],
          [[["results", 1], "write [toolCallId, result], not an array"]],
          [[["results", 0], "write [toolCallId, result], not an array"]]
        ].map((found) => ["invalid_options", found])
      )
      for (const results of [[["m0", "done"]], new Map([["m0", "done"]]), Object.entries({ m0: "done" }).values()]) {
        const session = yield* Session.submitToolResults(manual, results as Iterable<[string, string]>)
        assert.deepStrictEqual(session.thread.messages.at(-1), Message.tool("m0", "done"))
      }
    }))

  it.effect("says so when they cannot be read", () =>
    Effect.gen(function*() {
      const results = {
        *[Symbol.iterator](): Generator<readonly [string, unknown]> {
          yield ["m0", "done"]
          throw new Error("gone")
        }
      }
      const error = yield* refusal(Session.submitToolResults(manual, results))

      assert.include(error.message, "$.results: reading them threw")
    }))

  it.effect("can be tried again with what can be read only once", () =>
    Effect.gen(function*() {
      const submit = Session.submitToolResults(manual, new Map([["m0", "done"]]).entries())

      assert.deepStrictEqual(yield* submit, yield* submit)
      assert.strictEqual((yield* submit).status, "idle")
    }))
})

describe("Session, options of an answer", () => {
  it.effect("consent is refused when it is not certain what was shown", () =>
    Effect.gen(function*() {
      const wrong: ReadonlyArray<unknown> = [
        "a digest",
        null,
        [],
        true,
        { digset: "a digest" },
        { digest: 7 },
        { digest: null },
        new Map([["digest", "x"]])
      ]
      const issues = yield* Effect.forEach(
        wrong,
        (options) => issuesOf(Session.approve(consent, "a0", options as never))
      )

      assert.deepStrictEqual(
        issues,
        [
          [["options"], "write { digest: \"…\" }, not \"a digest\""],
          [["options"], "write { digest: \"…\" }, not null"],
          [["options"], "write { digest: \"…\" }, not an array"],
          [["options"], "write { digest: \"…\" }, not true"],
          [["digset"], "there is no such option; the options are digest"],
          [["digest"], "write { digest: \"…\" }, not 7"],
          [["digest"], "write { digest: \"…\" }, not null"],
          [["options"], "write { digest: \"…\" }, not a Map"]
        ].map((found) => ["invalid_options", [found]])
      )
      const other = yield* refusal(Session.approve(consent, "a0", { digest: "another" }))
      assert.deepInclude(other, { _tag: "SessionError", reason: "approval_mismatch" })
      const { status } = yield* Session.approve(consent, "a0", { digest: Session.digest(call("a0")) })
      assert.strictEqual(status, "idle")
    }))

  it.effect("no reason and no failure gets lost", () =>
    Effect.gen(function*() {
      const unknown = { ...broken, thread: asked("u0"), unknownOutcomes: [call("u0")] }
      const issues = yield* Effect.forEach(
        [
          Session.deny(consent, "a0", "too early" as never),
          Session.deny(consent, "a0", { why: "too early" } as never),
          Session.deny(consent, "a0", { reason: 7 } as never),
          Session.submitToolResult(manual, "m0", "offline", true as never),
          Session.submitToolResult(manual, "m0", "offline", { error: true } as never),
          Session.resolve(unknown, "u0", "offline", { isError: "yes" } as never)
        ],
        issuesOf
      )

      assert.deepStrictEqual(
        issues,
        [
          [["options"], "write { reason: \"…\" }, not \"too early\""],
          [["why"], "there is no such option; the options are reason"],
          [["reason"], "write { reason: \"…\" }, not 7"],
          [["options"], "write { isError: true }, not true"],
          [["error"], "there is no such option; the options are isError"],
          [["isError"], "write { isError: true }, not \"yes\""]
        ].map((found) => ["invalid_options", [found]])
      )
      const denied = yield* Session.deny(consent, "a0", { reason: "too early" })
      assert.deepStrictEqual(denied.pendingApprovals[0]?.decision, { _tag: "Denied", reason: "too early" })
    }))
})

describe("Session, options of a run", () => {
  it.effect("names the options that there are", () =>
    Effect.gen(function*() {
      const message = (yield* refusal(Session.reply(idle, "yes", { aprovalTimeout: "1 day" } as never))).message

      assert.include(message, "$.aprovalTimeout: there is no such option")
      assert.match(message, /\bapprovalTimeout\b/)
      assert.match(message, /\bsessionId\b/)
      assert.notMatch(message, /\bapprovals\b/)
    }))

  it.effect("takes no decisions but those of the session", () =>
    Effect.gen(function*() {
      const approvals = { a0: { _tag: "Approved" } }
      const issues = yield* Effect.forEach(
        [
          Session.start("hi", { approvals } as never),
          Session.reply(idle, "yes", { approvals } as never),
          Session.continue(idle, { approvals } as never),
          Session.step(idle, { approvals: "all" } as never),
          streamed(Session.streamReply(idle, "yes", { approvals } as never))
        ] as ReadonlyArray<Attempt>,
        (attempt) => Effect.map(refusal(attempt), ({ message }) => message.split("\n")[1])
      )

      assert.deepStrictEqual(
        issues,
        Array.from({ length: 5 }, () =>
          "- $.approvals: consent is given to the session; " +
          "use Session.approve(session, toolCallId) or Session.deny(session, toolCallId)")
      )
    }))

  it.effect("refuses what are no options, and an id that is none", () =>
    Effect.gen(function*() {
      const text = yield* issuesOf(Session.reply(idle, "yes", "fast" as never))
      const id = yield* issuesOf(Session.start("hi", { sessionId: 7 as never }))

      assert.deepStrictEqual(text, ["invalid_options", [
        [[], "write options such as { maxTurns: 4 }, not a string"]
      ]])
      assert.deepStrictEqual(id, ["invalid_options", [[["sessionId"], "write a non-empty string, not 7"]]])
    }))
})

describe("Session, a decision", () => {
  const paid: Array<number> = []
  const pay = Tool.make("pay", {
    description: "Pays",
    parameters: { amount: Schema.Number },
    needsApproval: true,
    handler: ({ amount }) => {
      paid.push(amount)
      return `paid ${amount}`
    }
  })
  const asks = (amount: number): Fake.Script => [
    Fake.toolCall({ id: "c0", name: "pay", arguments: { amount } }),
    Fake.finish("tool_calls")
  ]

  it.effect("counts for its own call, not for a later one of the same id", () =>
    Effect.gen(function*() {
      paid.length = 0
      const first = yield* Session.start("pay", { tools: [pay] })
      const approved = yield* Session.approve(first.session, "c0")
      const second = yield* Session.continue(approved, { tools: [pay] })
      const denied = yield* Session.deny(second.session, "c0")
      const third = yield* Session.continue(denied, { tools: [pay] })

      assert.deepStrictEqual(paid, [1])
      assert.strictEqual(second.session.status, "awaiting_approval")
      assert.deepStrictEqual(
        second.session.pendingApprovals.map(({ decision, toolCall }) => [decision, toolCall.arguments]),
        [
          [undefined, { amount: 999 }]
        ]
      )
      assert.strictEqual(third.session.status, "awaiting_approval")
      assert.deepStrictEqual(third.session.pendingApprovals.map(({ decision }) => decision), [undefined])
    }).pipe(Effect.provide(Fake.engine({ scripts: [asks(1), asks(999), asks(5)] }))))

  it.effect("does not count for a call that another decision of the same id hides", () =>
    Effect.gen(function*() {
      paid.length = 0
      const made = ToolCall.make({ id: "c0", name: "pay", arguments: { amount: 999 } })
      const shown = ToolCall.make({ id: "c0", name: "pay", arguments: { amount: 1 } })
      const thread = { messages: [Message.user("pay"), Message.assistant("", { toolCalls: [made] })], metadata: {} }
      const approved = { _tag: "Approved" as const, digest: Session.digest(shown) }
      const { session } = yield* Session.continue(
        Session.make({
          id: "s",
          thread,
          pendingApprovals: [
            { toolCall: made, digest: Session.digest(made), requestedAt: 0, decision: { _tag: "Denied" } },
            { toolCall: shown, digest: Session.digest(shown), requestedAt: 0, decision: approved }
          ]
        }),
        { tools: [pay] }
      )

      assert.deepStrictEqual(paid, [])
      assert.strictEqual(session.status, "completed")
    }).pipe(Effect.provide(Model)))

  it.effect("that was made is told with what still waits", () =>
    Effect.gen(function*() {
      const session = Session.make({
        id: "s",
        status: "awaiting_approval",
        thread: asked("a0", "a1", "m0"),
        pendingApprovals: [approval("a0"), approval("a1")],
        pendingToolCalls: [call("m0")]
      })
      const one = yield* Session.approve(session, "a0")
      const two = yield* Session.deny(one, "a1")
      const three = yield* Session.submitToolResult(two, "m0", "done")
      const refusals = yield* Effect.forEach(
        [Session.approve(one, "a0"), Session.deny(two, "a1"), Session.approve(three, "a0")],
        (attempt) =>
          Effect.map(refusal(attempt), (error) => error._tag === "SessionError" ? [error.reason, error.advice] : [])
      )

      assert.deepStrictEqual(
        refusals,
        [
          [
            "call \"a0\" is decided, and a decision counts once; call \"a1\" waits for consent; " +
            "use Session.approve(session, \"a1\") or Session.deny(session, \"a1\")"
          ],
          [
            "call \"a1\" is decided, and a decision counts once; call \"m0\" is yours to run; " +
            "use Session.submitToolResult(session, \"m0\", result)"
          ],
          ["call \"a0\" is decided, and a decision counts once; use Session.continue(session)"]
        ].map(([advice]) => ["approval_used", advice])
      )
    }))

  it.effect("about a call that has its result is told with what still waits", () =>
    Effect.gen(function*() {
      const { messages } = asked("a0", "m0")
      const thread = { messages: [...messages, Message.tool("a0", "released")], metadata: {} }
      const waits = Session.make({ id: "s", status: "awaiting_tools", thread, pendingToolCalls: [call("m0")] })
      const error = yield* refusal(Session.approve(waits, "a0"))

      assert.strictEqual(
        error.message,
        "Session.approve does not fit a session that is awaiting_tools: call \"a0\" has its result, and a decision " +
          "counts once; call \"m0\" is yours to run; use Session.submitToolResult(session, \"m0\", result)"
      )
    }))
})

describe("Session, nothing to answer", () => {
  it.effect("is told how to say something", () =>
    Effect.gen(function*() {
      const empty = Session.make({ id: "s" })
      const issues = yield* Effect.forEach(
        [
          Session.continue(empty),
          Session.step(empty),
          Session.start(empty),
          streamed(Session.streamContinue(empty))
        ] as ReadonlyArray<Attempt>,
        issuesOf
      )
      const path = ["thread", "messages"]

      assert.deepStrictEqual(
        issues,
        [
          ...Array.from({ length: 3 }, () => "there is nothing to answer; use Session.reply(session, text)"),
          "there is nothing to answer; use Session.streamReply(session, text)"
        ].map((message) => ["invalid_thread", [[path, message]]])
      )
    }))

  it.effect("nor anything to start with or to say", () =>
    Effect.gen(function*() {
      const start = yield* issuesOf(Session.start(undefined as never))
      const reply = yield* issuesOf(Session.reply(idle, undefined as never))

      assert.deepStrictEqual(start, ["invalid_session", [[
        [],
        "Session.start takes what is said first; write Session.start(text), not undefined"
      ]]])
      assert.deepStrictEqual(reply, ["invalid_message", [[[], "nothing is said; write Session.reply(session, text)"]]])
    }))
})

describe("Session, names in refusals", () => {
  it.effect("are those of what was called", () =>
    Effect.gen(function*() {
      const attempts: ReadonlyArray<Attempt> = [
        streamed(Session.streamReply(consent, "yes")),
        streamed(Session.streamContinue(manual)),
        Session.streamStep(broken).outcome,
        streamed(Session.streamReply({ ...consent, status: "idle", pendingApprovals: [] }, "yes"))
      ]
      const messages = yield* Effect.forEach(attempts, (attempt) =>
        Effect.map(refusal(attempt), ({ message }) => message))

      assert.deepStrictEqual(messages, [
        "Session.streamReply does not fit a session that is awaiting_approval: call \"a0\" waits for consent; " +
        "use Session.approve(session, \"a0\") or Session.deny(session, \"a0\")",
        "Session.streamContinue does not fit a session that is awaiting_tools: call \"m0\" is yours to run; " +
        "use Session.submitToolResult(session, \"m0\", result)",
        "Session.streamStep does not fit a session that is error: use Session.recover(session) and go on from there",
        "Session.streamReply does not fit a session that is idle: call \"a0\" has no result yet; " +
        "use Session.streamContinue(session)"
      ])
    }))
})
