import {
  type Allm,
  type Engine,
  Fake,
  Message,
  Session,
  type SessionError,
  Tool,
  ToolCall,
  type ToolError
} from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Either, Schema, Stream } from "effect"

const call = (id: string) => ToolCall.make({ id, name: "release", arguments: { version: 2 } })
const asked = (...ids: ReadonlyArray<string>) => [
  Message.user("hi"),
  Message.assistant("", { toolCalls: ids.map(call) })
]
const question = { toolCallId: "q0", toolName: "ask", question: "Where?", options: {} }
const approval = { toolCall: call("a0"), digest: Session.digest(call("a0")), requestedAt: 0, expiresAt: 1000 }
const waiting = Message.tool("q0", "<awaiting user response>")

/** One session for every way a session can stand. */
const sessions = {
  idle: Session.make({ id: "s", thread: { messages: [Message.user("hi")], metadata: {} } }),
  completed: Session.make({
    id: "s",
    status: "completed",
    thread: { messages: [Message.user("hi"), Message.assistant("hello")], metadata: {} }
  }),
  awaiting_user: Session.make({
    id: "s",
    status: "awaiting_user",
    thread: { messages: [...asked("q0"), waiting], metadata: {} },
    pendingQuestions: [question]
  }),
  awaiting_approval: Session.make({
    id: "s",
    status: "awaiting_approval",
    thread: { messages: asked("a0"), metadata: {} },
    pendingApprovals: [approval]
  }),
  awaiting_tools: Session.make({
    id: "s",
    status: "awaiting_tools",
    thread: { messages: asked("m0"), metadata: {} },
    pendingToolCalls: [call("m0")]
  }),
  "awaiting_user, all kinds pending": Session.make({
    id: "s",
    status: "awaiting_user",
    thread: { messages: [...asked("q0", "a0", "m0"), waiting], metadata: {} },
    pendingQuestions: [question],
    pendingApprovals: [approval],
    pendingToolCalls: [call("m0")]
  }),
  "awaiting_tools, nothing pending": {
    ...Session.make({ id: "s", thread: { messages: [Message.user("hi")], metadata: {} } }),
    status: "awaiting_tools" as const
  },
  "idle, a call approved": Session.make({
    id: "s",
    thread: { messages: asked("a0"), metadata: {} },
    pendingApprovals: [{ ...approval, decision: { _tag: "Approved", digest: approval.digest } }]
  }),
  error: Session.make({
    id: "s",
    status: "error",
    thread: { messages: [Message.user("hi")], metadata: {} },
    metadata: { error: { message: "offline" } }
  }),
  "error, an outcome unknown": Session.make({
    id: "s",
    status: "error",
    thread: {
      messages: [...asked("u0"), Message.tool("u0", "{\"error\":\"outcome_unknown\"}", { isError: true })],
      metadata: {}
    },
    metadata: { error: { message: "unknown" } },
    unknownOutcomes: [call("u0")]
  })
}

type Name = keyof typeof sessions

const streamed = <A, E, R>(turn: Session.Turn<A, E, R>) => Effect.zipRight(Stream.runDrain(turn.events), turn.outcome)
const sessionOf = <A, E, R>(outcome: Effect.Effect<Session.Outcome<A>, E, R>) =>
  Effect.map(outcome, ({ session }) => session)

type Refusal = Allm.ChatError | SessionError.SessionError | ToolError.EncodingFailed

const operations = {
  start: (session: Session.Session) => sessionOf(Session.start(session)),
  streamStart: (session: Session.Session) => sessionOf(streamed(Session.streamStart(session))),
  reply: (session: Session.Session) => sessionOf(Session.reply(session, "yes")),
  streamReply: (session: Session.Session) => sessionOf(streamed(Session.streamReply(session, "yes"))),
  continue: (session: Session.Session) => sessionOf(Session.continue(session)),
  streamContinue: (session: Session.Session) => sessionOf(streamed(Session.streamContinue(session))),
  step: (session: Session.Session) => sessionOf(Session.step(session)),
  streamStep: (session: Session.Session) => sessionOf(streamed(Session.streamStep(session))),
  answer: (session: Session.Session) => Session.answer(session, "q0", "Oslo"),
  submitToolResult: (session: Session.Session) => Session.submitToolResult(session, "m0", "done"),
  submitToolResults: (session: Session.Session) => Session.submitToolResults(session, [["m0", "done"]]),
  "submitToolResults of none": (session: Session.Session) => Session.submitToolResults(session, []),
  approve: (session: Session.Session) => Session.approve(session, "a0"),
  deny: (session: Session.Session) => Session.deny(session, "a0"),
  resolve: (session: Session.Session) => Session.resolve(session, "u0", "it ran"),
  recover: (session: Session.Session) => Session.recover(session)
}

type Operation = keyof typeof operations

/** Those who stream are told how to go on streaming. */
const wordedFor = (operation: Operation, instead: string) =>
  operation.startsWith("stream")
    ? instead.replaceAll("Session.reply", "Session.streamReply").replaceAll(
      "Session.continue",
      "Session.streamContinue"
    )
    : instead

/** The status after, or the reason for refusing and what the message names instead. */
type Cell = Session.Status | readonly [reason: SessionError.Reason, instead: string]

const done: Cell = "completed"
const user: Cell = ["awaiting_user", "Session.answer(session, \"q0\", answer) or Session.reply(session, text)"]
const userFirst: Cell = ["awaiting_user", "Session.answer(session, \"q0\", answer)"]
const consent: Cell = ["awaiting_approval", "Session.approve(session, \"a0\") or Session.deny(session, \"a0\")"]
const tools: Cell = ["awaiting_tools", "Session.submitToolResult(session, \"m0\", result)"]
const nothing: Cell = ["nothing_pending", "Session.reply(session, text) or Session.continue(session)"]
const failed: Cell = ["in_error_state", "Session.recover(session)"]
const unknown: Cell = ["in_error_state", "Session.resolve(session, \"u0\", result), or Session.recover(session)"]
const fine: Cell = ["not_in_error_state", "Session.reply(session, text) or Session.continue(session)"]

const drives = (cell: Cell) => ({
  start: cell,
  streamStart: cell,
  continue: cell,
  streamContinue: cell,
  step: cell,
  streamStep: cell
})
const replies = (cell: Cell) => ({ reply: cell, streamReply: cell })
const submits = (cell: Cell) => ({ submitToolResult: cell, submitToolResults: cell })
const decides = (cell: Cell) => ({ approve: cell, deny: cell })

const matrix: { readonly [N in Name]: { readonly [O in Operation]: Cell } } = {
  idle: {
    ...drives(done),
    ...replies(done),
    answer: nothing,
    ...submits(nothing),
    "submitToolResults of none": "idle",
    ...decides(nothing),
    resolve: nothing,
    recover: fine
  },
  completed: {
    ...drives(done),
    ...replies(done),
    answer: nothing,
    ...submits(nothing),
    "submitToolResults of none": "completed",
    ...decides(nothing),
    resolve: nothing,
    recover: fine
  },
  awaiting_user: {
    ...drives(user),
    ...replies(done),
    answer: "idle",
    ...submits(userFirst),
    "submitToolResults of none": "awaiting_user",
    ...decides(userFirst),
    resolve: userFirst,
    recover: ["not_in_error_state", "Session.answer(session, \"q0\", answer)"]
  },
  awaiting_approval: {
    ...drives(consent),
    ...replies(consent),
    answer: consent,
    ...submits(consent),
    "submitToolResults of none": "awaiting_approval",
    ...decides("idle"),
    resolve: consent,
    recover: ["not_in_error_state", "Session.approve(session, \"a0\") or Session.deny(session, \"a0\")"]
  },
  awaiting_tools: {
    ...drives(tools),
    ...replies(tools),
    answer: tools,
    ...submits("idle"),
    "submitToolResults of none": "awaiting_tools",
    ...decides(tools),
    resolve: tools,
    recover: ["not_in_error_state", "Session.submitToolResult(session, \"m0\", result)"]
  },
  "awaiting_user, all kinds pending": {
    ...drives(userFirst),
    // Nobody may speak while calls of the turn want their results.
    ...replies(consent),
    answer: "awaiting_approval",
    ...submits("awaiting_user"),
    "submitToolResults of none": "awaiting_user",
    ...decides("awaiting_user"),
    resolve: userFirst,
    recover: ["not_in_error_state", "Session.answer(session, \"q0\", answer)"]
  },
  "awaiting_tools, nothing pending": {
    ...drives(done),
    ...replies(done),
    answer: nothing,
    ...submits(nothing),
    "submitToolResults of none": "awaiting_tools",
    ...decides(nothing),
    resolve: nothing,
    recover: fine
  },
  "idle, a call approved": {
    ...drives(done),
    // One turn: that of the approved call.
    step: "idle",
    streamStep: "idle",
    ...replies(["unfinished_turn", "Session.continue(session)"]),
    answer: nothing,
    ...submits(nothing),
    "submitToolResults of none": "idle",
    approve: ["approval_used", "Session.continue(session)"],
    deny: "idle",
    resolve: nothing,
    recover: fine
  },
  error: {
    ...drives(failed),
    ...replies(failed),
    answer: failed,
    ...submits(failed),
    "submitToolResults of none": "error",
    ...decides(failed),
    resolve: failed,
    recover: "idle"
  },
  "error, an outcome unknown": {
    ...drives(unknown),
    ...replies(unknown),
    answer: unknown,
    ...submits(unknown),
    "submitToolResults of none": "error",
    ...decides(unknown),
    resolve: "idle",
    recover: "idle"
  }
}

/** The cells that have a name of their own. */
const cases: { readonly [cell in `${Operation} on ${Name}`]?: string } = {
  "reply on idle": "SES-14",
  "reply on completed": "SES-14",
  "reply on awaiting_user": "SES-17",
  "reply on awaiting_tools": "SES-12",
  "reply on awaiting_tools, nothing pending": "SES-20",
  "reply on error": "SES-13",
  "continue on awaiting_user": "SES-16",
  "continue on awaiting_tools": "SES-18",
  "continue on error": "SES-21",
  "step on awaiting_user": "SES-26",
  "step on awaiting_tools": "SES-26",
  "step on error": "SES-28",
  "start on awaiting_user": "SES-29",
  "start on awaiting_tools": "SES-29",
  "start on error": "SES-30",
  "submitToolResult on idle": "SES-34",
  "submitToolResult on completed": "SES-34",
  "submitToolResult on awaiting_user": "SES-34"
}

const release = Tool.make("release", {
  description: "Releases a version",
  parameters: { version: Schema.Number },
  needsApproval: true,
  handler: ({ version }) => `released ${version}`
})

const Model = Fake.engine({ script: [Fake.text("ok"), Fake.finish("stop")], tools: [release] })

describe("status × operation", () => {
  for (const name of Object.keys(sessions) as ReadonlyArray<Name>) {
    for (const operation of Object.keys(operations) as ReadonlyArray<Operation>) {
      const cell = matrix[name][operation]
      const says = typeof cell === "string" ? `leaves it ${cell}` : `is refused: ${cell[0]}`
      const id = cases[`${operation} on ${name}`]
      it.effect(`${id === undefined ? "" : `${id} `}${operation} on ${name} ${says}`, () =>
        Effect.gen(function*() {
          const session: Session.Session = sessions[name]
          const before = JSON.stringify(session)
          const outcome = yield* Effect.either<Session.Session, Refusal, Engine.Engine>(operations[operation](session))

          assert.strictEqual(JSON.stringify(session), before)
          if (typeof cell === "string") {
            assert.strictEqual(Either.getOrThrow(outcome).status, cell)
            assert.strictEqual(Schema.is(Session.Session)(Either.getOrThrow(outcome)), true)
          } else {
            const error = Either.getOrThrow(Either.flip(outcome))
            assert.strictEqual(error._tag, "SessionError")
            if (error._tag !== "SessionError") return
            const [reason, instead] = cell
            assert.strictEqual(error.reason, reason)
            assert.strictEqual(error.status, session.status)
            assert.strictEqual(error.operation, operation)
            assert.include(error.message, `Session.${operation} does not fit`)
            assert.include(error.message, wordedFor(operation, instead))
          }
        }).pipe(Effect.provide(Model)))
    }
  }
})
