import { type ChatResult, Fake, Message, Response, Session, Thread, Tool, ToolContext, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, pipe, Schema } from "effect"

const call = (id: string, name: string, args: unknown = {}) => Fake.toolCall({ id, name, arguments: args })
const asks = (...calls: ReadonlyArray<Fake.Entry>): Fake.Script => [...calls, Fake.finish("tool_calls")]
const says = (text: string): Fake.Script => [Fake.text(text), Fake.finish("stop")]
const model = (...scripts: ReadonlyArray<Fake.Script>) => Effect.provide(Fake.engine({ scripts }))

const ask = Tool.make("ask", {
  description: "Asks the person",
  parameters: { question: Schema.String },
  handler: ({ question }) => ToolResult.askUser(question, { choices: ["Oslo"] })
})
const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })
const release = Tool.make("release", { description: "The caller's to run", manual: true })
const tools = [ask, hi, release]

const said = ({ thread }: Session.Session) => thread.messages.map(({ content, role }) => [role, content])
const asked = Session.append(Session.make({ id: "s" }), Message.user("hi"))

describe("Session", () => {
  it.effect("SES-02 starts with a thread as with its messages", () =>
    Effect.gen(function*() {
      const messages = [Message.system("Be brief"), Message.user("hi")]
      const options = { sessionId: "s", requestId: "r" }
      const fromThread = yield* Session.start(Thread.make(messages), options).pipe(model(says("a")))
      const fromMessages = yield* Session.start(messages, options).pipe(model(says("a")))

      assert.strictEqual(fromThread.session.status, "completed")
      assert.strictEqual(fromThread.result.haltedReason, "completed")
      assert.deepStrictEqual(fromThread.session, fromMessages.session)
    }))

  it.effect("SES-14 goes on with a message that was appended as with a reply", () =>
    Effect.gen(function*() {
      const first = yield* Session.start("hi", { sessionId: "s" }).pipe(model(says("a")))
      const replied = yield* Session.reply(first.session, "more").pipe(model(says("b")))
      const continued = yield* Session.continue(Session.append(first.session, Message.user("more"))).pipe(
        model(says("b"))
      )

      assert.deepStrictEqual(continued.session, replied.session)
    }))

  it.effect("SES-17 takes a whole message as the reply to a question", () =>
    Effect.gen(function*() {
      const first = yield* Session.start("hi", { tools })
      const { session } = yield* Session.reply(first.session, Message.user("Oslo", { name: "ada" }), { tools })

      assert.strictEqual(session.status, "completed")
      assert.deepInclude(session.thread.messages.at(-2), { role: "user", content: "Oslo", name: "ada" })
    }).pipe(model(asks(call("c0", "ask", { question: "Where?" })), says("ok"))))

  it.effect("SES-22 is completed by a turn of text", () =>
    Effect.gen(function*() {
      const { result, session } = yield* Session.step(asked)

      assert.strictEqual(result.done, true)
      assert.strictEqual(session.status, "completed")
      assert.deepStrictEqual(said(session), [["user", "hi"], ["assistant", "a"]])
    }).pipe(model(says("a"))))

  it.effect("SES-25 waits for the person after a turn with a question", () =>
    Effect.gen(function*() {
      const { result, session } = yield* Session.step(asked, { tools })

      assert.strictEqual(result.halt?.reason, "ask_user")
      assert.strictEqual(session.status, "awaiting_user")
      assert.deepStrictEqual(session.pendingQuestions, [
        { toolCallId: "c0", toolName: "ask", question: "Where?", options: { choices: ["Oslo"] } }
      ])
    }).pipe(model(asks(call("c0", "ask", { question: "Where?" })))))

  it.effect("SES-33 gives the model text as it is, and everything else as JSON", () =>
    Effect.gen(function*() {
      const { session } = yield* Session.start("hi", { tools })
      const contents = yield* Effect.forEach(
        ["a \"b\"", ["x", 1], 42, { ok: true }, null, undefined],
        (result) =>
          Effect.map(
            Session.submitToolResult(session, "c0", result),
            ({ thread }) => thread.messages.at(-1)?.content
          )
      )
      const refused = yield* Effect.flip(Effect.asVoid(Session.submitToolResult(session, "c0", 1n)))

      assert.deepStrictEqual(contents, ["a \"b\"", "[\"x\",1]", "42", "{\"ok\":true}", "null", "null"])
      assert.strictEqual(refused._tag, "EncodingFailed")
    }).pipe(model(asks(call("c0", "release")))))

  it.effect("SES-42 goes from a manual call to its result to the end", () =>
    Effect.gen(function*() {
      const { session: first } = yield* Session.start("hi", { tools })
      const second = yield* Session.submitToolResult(first, "c0", "released")
      const { session: third } = yield* Session.continue(second, { tools })

      assert.deepStrictEqual([first.status, second.status, third.status], ["awaiting_tools", "idle", "completed"])
      assert.deepStrictEqual(said(third).slice(2), [["tool", "released"], ["assistant", "ok"]])
    }).pipe(model(asks(call("c0", "release")), says("ok"))))

  // A session always has an id, so there is none that handlers could not see.
  it.effect("SES-46 tells handlers the id it made up", () =>
    Effect.gen(function*() {
      const seen: Array<string | undefined> = []
      const look = Tool.make("look", {
        description: "Looks around",
        handler: () => Effect.map(ToolContext.ToolContext, ({ sessionId }) => seen.push(sessionId))
      })
      const { session } = yield* Session.start("hi", { tools: [look] })

      assert.deepStrictEqual(seen, [session.id])
    }).pipe(model(asks(call("c0", "look")), says("ok"))))

  // There is nothing the caller could submit, so it does not wait for it.
  it.effect("SES-52 does not wait for manual calls when a result names none", () =>
    Effect.gen(function*() {
      const result: ChatResult.ChatResult = {
        thread: asked.thread,
        finalResponse: Response.make({ finishReason: "tool_calls" }),
        steps: [],
        haltedReason: "manual_tool_calls",
        pendingQuestions: [],
        pendingApprovals: [],
        manualToolCalls: [],
        usage: {},
        metadata: {}
      }
      const session = yield* Session.apply(asked, result)

      assert.deepStrictEqual([session.status, session.pendingToolCalls], ["completed", []])
      assert.strictEqual((yield* Session.reply(session, "more")).session.status, "completed")
    }).pipe(model(says("ok"))))

  it.effect("SES-58 appends messages whatever the status, and changes nothing else", () =>
    Effect.gen(function*() {
      const { session } = yield* Session.start("hi", { tools })
      const appended = pipe(
        session,
        Session.append(Message.tool("c0", "released")),
        Session.append([Message.user("a"), Message.user("b")])
      )

      assert.deepStrictEqual(said(appended).slice(2), [["tool", "released"], ["user", "a"], ["user", "b"]])
      assert.deepStrictEqual(appended.pendingToolCalls.map(({ id }) => id), ["c0"])
      assert.deepStrictEqual({ ...appended, thread: session.thread }, session)
    }).pipe(model(asks(call("c0", "release")))))

  it.effect("SES-60 waits for a manual tool's call without any mode", () =>
    Effect.gen(function*() {
      const { result, session } = yield* Session.start("hi", { tools })

      assert.strictEqual(result.haltedReason, "manual_tool_calls")
      assert.strictEqual(session.status, "awaiting_tools")
      assert.deepStrictEqual(session.pendingToolCalls, result.manualToolCalls)
      assert.deepStrictEqual(session.pendingToolCalls.map(({ id, name }) => [id, name]), [["c0", "release"]])
    }).pipe(model(asks(call("c0", "release")))))

  it.effect("SES-64 keeps keys of metadata over turns, and takes whole values of the newer", () =>
    Effect.gen(function*() {
      const session = { ...asked, metadata: { title: "trip", note: { a: 1 } } }
      const { result } = yield* Session.continue(session).pipe(model(says("ok")))
      const next = yield* Session.apply(session, { ...result, metadata: { note: { b: 2 }, page: 3 } })
      const last = yield* Session.reply(next, "more").pipe(model(says("ok")))

      assert.deepStrictEqual(next.metadata, { title: "trip", note: { b: 2 }, page: 3 })
      assert.deepStrictEqual(last.session.metadata, { title: "trip", note: { b: 2 }, page: 3 })
    }))
})
