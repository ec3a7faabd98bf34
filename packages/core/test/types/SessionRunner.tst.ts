import {
  type Allm,
  type ChatResult,
  type Engine,
  type Event,
  type Session,
  type SessionError,
  type SessionLease,
  SessionRunner,
  type SessionStore,
  type StoreError,
  Tool,
  type ToolError,
  ToolJournal,
  type ValidationError
} from "@allm/core"
import { Context, Effect, type Layer, type Stream } from "effect"
import { describe, expect, test } from "tstyche"

class Mail extends Context.Tag("Mail")<Mail, { readonly send: Effect.Effect<void> }>() {}

const mail = Tool.make("mail", { description: "Mail", handler: () => Effect.flatMap(Mail, ({ send }) => send) })

type Chat = Session.Outcome<ChatResult.ChatResult>
type Runner = SessionRunner.SessionRunner
type Failure = Allm.ChatError | SessionError.SessionError | SessionRunner.RunnerError

test("a runner needs its three stores", () => {
  expect(SessionRunner.layer()).type.toBe<
    Layer.Layer<
      SessionRunner.SessionRunner,
      never,
      SessionStore.SessionStore | SessionLease.SessionLease | ToolJournal.ToolJournal
    >
  >()
})

test("its errors say everything that can go wrong", () => {
  expect<SessionRunner.RunnerError>().type.toBe<
    | SessionLease.LeaseHeld
    | SessionLease.LeaseLost
    | SessionStore.NotFound
    | SessionRunner.NotSaved
    | StoreError.StoreError
    | ToolJournal.JournalError
  >()
})

describe("asking the model", () => {
  test("it needs a runner and an engine", () => {
    expect(SessionRunner.start("s", "hi")).type.toBe<Effect.Effect<Chat, Failure, Runner | Engine.Engine>>()
    expect(SessionRunner.reply("s", "hi")).type.toBe<Effect.Effect<Chat, Failure, Runner | Engine.Engine>>()
    expect(SessionRunner.continue("s")).type.toBe<Effect.Effect<Chat, Failure, Runner | Engine.Engine>>()
    expect(SessionRunner.resume("s")).type.toBe<
      Effect.Effect<Session.Outcome<ChatResult.ChatResult | undefined>, Failure, Runner | Engine.Engine>
    >()
  })

  test("it lists the services of its tools", () => {
    const options = { tools: [mail] }

    expect(SessionRunner.reply("s", "hi", options)).type.toBe<
      Effect.Effect<Chat, Failure, Runner | Engine.Engine | Mail>
    >()
    expect(SessionRunner.streamReply("s", "hi", options)).type.toBe<
      Stream.Stream<Event.Event, Failure, Runner | Engine.Engine | Mail>
    >()
  })

  test("the id of the session is not an option", () => {
    expect(SessionRunner.reply).type.not.toBeCallableWith("s", "hi", { sessionId: "other" })
  })
})

describe("answering what is pending", () => {
  test("it needs no engine", () => {
    expect(SessionRunner.answer("s", "c0", "x")).type.toBe<
      Effect.Effect<
        Session.Session,
        | SessionError.SessionError
        | ValidationError.ValidationError
        | ToolError.EncodingFailed
        | SessionRunner.RunnerError,
        Runner
      >
    >()
    expect(SessionRunner.approve("s", "c0")).type.toBe<
      Effect.Effect<
        Session.Session,
        SessionError.SessionError | ValidationError.ValidationError | SessionRunner.RunnerError,
        Runner
      >
    >()
  })
})

test("modify adds what the change fails with and needs, but for the journal", () => {
  const change = (session: Session.Session) =>
    Effect.gen(function*() {
      yield* Mail
      yield* ToolJournal.ToolJournal
      if (session.version > 1) return yield* Effect.fail("no" as const)
      return { session, result: 1 }
    })

  expect(SessionRunner.modify("s", change)).type.toBe<
    Effect.Effect<
      Session.Outcome<number>,
      "no" | ValidationError.ValidationError | SessionRunner.RunnerError,
      Runner | Mail
    >
  >()
})
