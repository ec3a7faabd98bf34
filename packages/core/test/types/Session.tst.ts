import {
  type Allm,
  type ChatResult,
  type Engine,
  Session,
  type SessionError,
  type StepResult,
  Tool,
  type ToolError,
  type ValidationError
} from "@allm/core"
import { Context, Effect } from "effect"
import { describe, expect, test } from "tstyche"

class Mail extends Context.Tag("Mail")<Mail, { readonly send: Effect.Effect<void> }>() {}

const mail = Tool.make("mail", { description: "Mail", handler: () => Effect.flatMap(Mail, ({ send }) => send) })
const session = Session.make({ id: "s" })

type Chat = Session.Outcome<ChatResult.ChatResult>
type Step = Session.Outcome<StepResult.StepResult>
type Failure = Allm.ChatError | SessionError.SessionError
type Refusal = SessionError.SessionError | ValidationError.ValidationError

describe("asking the model", () => {
  test("it needs an engine and gives session and result", () => {
    expect(Session.start("hi")).type.toBe<Effect.Effect<Chat, Failure, Engine.Engine>>()
    expect(Session.reply(session, "hi")).type.toBe<Effect.Effect<Chat, Failure, Engine.Engine>>()
    expect(Session.continue(session)).type.toBe<Effect.Effect<Chat, Failure, Engine.Engine>>()
    expect(Session.step(session)).type.toBe<Effect.Effect<Step, Failure, Engine.Engine>>()
  })

  test("it lists the services of its tools", () => {
    const options = { tools: [mail] }

    expect(Session.reply(session, "hi", options)).type.toBe<Effect.Effect<Chat, Failure, Engine.Engine | Mail>>()
    expect(Session.streamReply(session, "hi", options)).type.toBe<
      Session.Turn<ChatResult.ChatResult, Failure, Engine.Engine | Mail>
    >()
  })
})

describe("answering what is pending", () => {
  test("it needs nothing", () => {
    expect(Session.answer(session, "c0", "x")).type.toBe<
      Effect.Effect<Session.Session, Refusal | ToolError.EncodingFailed>
    >()
    expect(Session.approve(session, "c0")).type.toBe<Effect.Effect<Session.Session, Refusal>>()
    expect(Session.deny(session, "c0")).type.toBe<Effect.Effect<Session.Session, Refusal>>()
  })
})
