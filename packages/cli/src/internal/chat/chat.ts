/**
 * The chat: reads lines, runs turns, asks what they wait for, until the person leaves.
 */
import { Engine } from "@allm/core/Engine"
import * as SessionRunner from "@allm/core/SessionRunner"
import { SessionStore } from "@allm/core/SessionStore"
import type { EncodingFailed } from "@allm/core/ToolError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import {
  canGoOn,
  type Conversation,
  goOn,
  isCutOff,
  say as saying,
  type Turn,
  type TurnError,
  waiting
} from "../conversation.ts"
import { codes } from "../exit.ts"
import { newSessionId } from "../home.ts"
import * as Style from "../terminal/style.ts"
import { dim, type Input, say, Terminal } from "../terminal/terminal.ts"
import type { Traces } from "../trace.ts"
import { askAll } from "./answers.ts"
import { explain } from "./errors.ts"
import { complete, parse } from "./line.ts"
import * as Line from "./line.ts"
import type { Notes } from "./notes.ts"
import * as Sessions from "./sessions.ts"
import * as Tell from "./tell.ts"
import * as RunTurn from "./turn.ts"

export interface Options extends Tell.Setting {
  /** A stored session to go on with. */
  readonly sessionId: string | undefined
  /** What is said first. */
  readonly message: string | undefined
}

/** How far a chat has come. */
interface State {
  readonly options: Options
  readonly notes: Notes
  sessionId: string
  /** Whether the next Ctrl-C leaves. */
  isWarned: boolean
  hasFailed: boolean
  /** What could not be said, and is to be seen in the next line. */
  draft: string
}

type Needs = Terminal | SessionStore | SessionRunner.SessionRunner | Engine | Traces

type Failure = TurnError | EncodingFailed

/** What to do next: read a line, or leave. */
type Next = "line" | "leave" | "interrupted"

const prompt = "› "

/** Chats until the person leaves; gives the exit code. */
export const run = (options: Options, notes: Notes): Effect.Effect<number, Failure, Needs> =>
  Effect.gen(function*() {
    const terminal = yield* Terminal
    const state: State = {
      options,
      notes,
      sessionId: options.sessionId ?? (yield* newSessionId),
      isWarned: false,
      hasFailed: false,
      draft: ""
    }
    yield* say(...Tell.header(options, state.sessionId))
    if (terminal.isInteractive && options.sessionId === undefined) yield* say(...Tell.suggestions(options.agent))
    let next = yield* begin(state)
    while (next === "line") next = yield* readAndDo(state)
    const code = yield* leave(state)
    return next === "interrupted" ? codes.interrupted : code
  })

const conversation = ({ options, sessionId }: State): Conversation => ({
  sessionId,
  instructions: options.agent.instructions,
  model: options.label,
  agent: options.agent.file
})

// --- the beginning ------------------------------------------------------------------------------------------------------

// A pipe that is open and silent is as good as none: a build server may leave it so.
const silence = Duration.seconds(1)

const begin = (state: State): Effect.Effect<Next, Failure, Needs> =>
  Effect.gen(function*() {
    const { agent, message, model, sessionId } = state.options
    const terminal = yield* Terminal
    if (sessionId !== undefined) yield* show(state, sessionId)
    if (message !== undefined) return yield* speak(state, message, true)
    if (sessionId !== undefined) return yield* answer(state)
    const demonstration = model.isDemo ? agent.prompt : undefined
    if (demonstration === undefined) return "line"
    if (terminal.isInteractive) return yield* speak(state, demonstration, true)
    const first = yield* Effect.timeoutOption(readLine(state), silence)
    const isSilent = Option.match(first, { onNone: () => true, onSome: ({ _tag }) => _tag === "End" })
    return yield* (isSilent ? speak(state, demonstration, true) : obey(state, Option.getOrThrow(first)))
  })

/** Goes over to a stored session, and shows where it stands. */
const show = (state: State, sessionId: string): Effect.Effect<void, Failure, Needs> =>
  Effect.gen(function*() {
    const store = yield* SessionStore
    const session = yield* store.load(sessionId)
    state.sessionId = sessionId
    yield* say(...Tell.resumed(session))
  })

// --- lines --------------------------------------------------------------------------------------------------------------

const readLine = (state: State) =>
  Effect.gen(function*() {
    const terminal = yield* Terminal
    const { draft } = state
    state.draft = ""
    yield* say(...state.notes.take().map((note) => dim(note)))
    return yield* terminal.readLine({
      text: Style.paint(prompt, "cyan", terminal.colour),
      kind: "chat",
      draft,
      remembered: state.options.message,
      complete
    })
  })

const readAndDo = (state: State): Effect.Effect<Next, Failure, Needs> =>
  Effect.gen(function*() {
    const terminal = yield* Terminal
    if (terminal.isLive) yield* say("")
    return yield* obey(state, yield* readLine(state))
  }).pipe(
    // Nothing of that is a reason to end the chat.
    Effect.catchAll((error) => {
      state.hasFailed = true
      return Effect.as(say({ text: explain(error), style: "red" }), "line" as const)
    })
  )

const obey = (state: State, input: Input): Effect.Effect<Next, Failure, Needs> => {
  switch (input._tag) {
    case "End":
      return Effect.succeed("leave")
    case "Interrupt":
      return warned(state, input.wasEmpty)
    case "Line":
      state.isWarned = false
      return told(state, input.text)
  }
}

const warned = (state: State, wasEmpty: boolean): Effect.Effect<Next, never, Terminal> => {
  if (state.isWarned && wasEmpty) return Effect.succeed("interrupted")
  state.isWarned = true
  return Effect.as(say(dim("Ctrl-C again leaves.")), "line")
}

const told = (state: State, text: string): Effect.Effect<Next, Failure, Needs> =>
  Effect.gen(function*() {
    const terminal = yield* Terminal
    // Where lines are not typed into the window, they would be missing there.
    if (terminal.isLive && !terminal.isInteractive) yield* say({ text, lead: { text: prompt, style: "cyan" } })
    const line = parse(text)
    switch (line._tag) {
      case "Empty":
        return terminal.isInteractive ? yield* proceed(state) : "line"
      case "Message":
        return yield* speak(state, line.text, false)
      case "Unknown": {
        const meant = line.meant === undefined ? "" : ` Did you mean /${line.meant}?`
        yield* say({
          text: `There is no command ${line.name}.${meant} There are ${
            Line.names.map((name) => `/${name}`).join(", ")
          }; ` +
            "begin with // to say this to the model.",
          style: "red"
        })
        return "line"
      }
      case "Command":
        return yield* command(state, line.name, line.rest)
    }
  })

const command = (state: State, name: Line.Name, rest: string): Effect.Effect<Next, Failure, Needs> =>
  Effect.gen(function*() {
    switch (name) {
      case "help":
        yield* say(...Tell.help)
        return "line"
      case "tools":
        yield* say(...Tell.tools(yield* Engine))
        return "line"
      case "save":
        yield* Sessions.save(state.sessionId, rest, state.options.comeBack)
        return "line"
      case "resume":
        return yield* resume(state, rest)
      case "new":
        state.sessionId = yield* newSessionId
        yield* say(dim(`A new session: ${state.sessionId}`))
        return "line"
      case "quit":
        return "leave"
    }
  })

/** With an id, goes over to that session; without one, asks what this one waits for, or which of the latest is meant. */
const resume = (state: State, asked: string): Effect.Effect<Next, Failure, Needs> =>
  Effect.gen(function*() {
    if (asked === "") {
      const session = yield* Sessions.find(state.sessionId)
      if (Option.isSome(session) && (waiting(session.value).length > 0 || canGoOn(session.value))) {
        return yield* proceed(state)
      }
    }
    const chosen = yield* (asked === "" ? Sessions.choose(state.sessionId) : Sessions.named(asked))
    if (Option.isNone(chosen)) return "line"
    yield* show(state, chosen.value)
    return yield* answer(state)
  })

// --- turns --------------------------------------------------------------------------------------------------------------

/** Says something, unless the session waits for something else first. */
const speak = (state: State, text: string, isShown: boolean): Effect.Effect<Next, Failure, Needs> =>
  Effect.gen(function*() {
    const terminal = yield* Terminal
    if (isShown) yield* say(...(terminal.isLive ? [""] : []), { text, lead: { text: prompt, style: "cyan" } })
    const session = yield* Sessions.find(state.sessionId)
    if (Option.isSome(session)) {
      const open = waiting(session.value)
      if (open.some(({ _tag }) => _tag !== "Question")) {
        yield* say({ text: "Something waits for you first; what you said comes after it.", style: "yellow" })
        const next = yield* answer(state)
        const after = yield* Sessions.find(state.sessionId)
        if (next !== "line" || Option.exists(after, (session) => waiting(session).length > 0)) {
          state.draft = text
          return next
        }
      } else if (isCutOff(session.value)) {
        const next = yield* drive(state, goOn(conversation(state)))
        if (next !== "line") return next
      }
    }
    return yield* drive(state, saying(conversation(state), text))
  })

/** Goes on without anything new being said, where there is something left to do. */
const proceed = (state: State): Effect.Effect<Next, Failure, Needs> =>
  Effect.gen(function*() {
    const session = yield* Sessions.find(state.sessionId)
    if (Option.isNone(session)) return "line"
    if (waiting(session.value).length > 0) return yield* answer(state)
    return canGoOn(session.value) ? yield* drive(state, goOn(conversation(state))) : "line"
  })

const answer = (state: State): Effect.Effect<Next, Failure, Needs> =>
  Effect.gen(function*() {
    const answered = yield* askAll(state.sessionId)
    switch (answered) {
      case "nothing":
        return "line"
      case "everything":
        return yield* drive(state, goOn(conversation(state)))
      case "left":
        yield* say(
          dim("Left open; /resume asks again, also later:"),
          ...Tell.command(state.options.comeBack(state.sessionId))
        )
        return "line"
      case "end":
        return "leave"
    }
  })

/** Runs a turn, tells how it ended, and asks what it waits for. */
const drive = (state: State, turn: Turn): Effect.Effect<Next, Failure, Needs> =>
  Effect.gen(function*() {
    const terminal = yield* Terminal
    const ended = yield* RunTurn.run(turn, state.notes)
    if (ended._tag === "Abandoned") {
      yield* say({ text: "Left while a tool was still running.", style: "yellow" })
      return "interrupted"
    }
    if (ended._tag === "Failed" && isLateConsent(ended.error)) return yield* withdraw(state, ended.error)
    yield* say(...(terminal.isLive ? [""] : []), ...Tell.endOf(ended))
    const isOver = ended._tag === "Completed"
    if (ended._tag === "Failed" || isOver && ended.result?.haltedReason === "error") state.hasFailed = true
    // Whoever has just stopped a turn knows what Ctrl-C does.
    state.isWarned = ended._tag === "Interrupted"
    return isOver ? yield* answer(state) : "line"
  })

type LateConsent = Extract<TurnError, { readonly _tag: "SessionError" }> & { readonly toolCallId: string }

/** Whether consent was given that does not count any more. */
const isLateConsent = (error: TurnError): error is LateConsent =>
  error._tag === "SessionError" && error.toolCallId !== undefined &&
  (error.reason === "approval_expired" || error.reason === "approval_mismatch")

const withdraw = (state: State, { reason, toolCallId }: LateConsent): Effect.Effect<Next, Failure, Needs> =>
  Effect.gen(function*() {
    const why = reason === "approval_expired" ? "the time to agree to it was over" : "it is not the call that was shown"
    yield* say({
      text: `A call you agreed to is not run: ${why}. The model is told, and may ask again.`,
      style: "yellow"
    })
    yield* SessionRunner.deny(state.sessionId, toolCallId, { reason: why })
    return yield* answer(state).pipe(
      Effect.filterOrElse((next) => next !== "line", () => drive(state, goOn(conversation(state))))
    )
  })

// --- the end ------------------------------------------------------------------------------------------------------------

/** Tells how to come back; a pipe also hears by the exit code how it went. */
const leave = (state: State): Effect.Effect<number, Failure, Needs> =>
  Effect.gen(function*() {
    const terminal = yield* Terminal
    const session = yield* Sessions.find(state.sessionId)
    const open = Option.match(session, { onNone: () => [], onSome: waiting })
    if (Option.isSome(session)) {
      const left = open.length === 0 ? "" : `${Style.count(open.length, "thing")} left to answer. `
      yield* say(dim(`${left}To come back:`), ...Tell.command(state.options.comeBack(state.sessionId)))
    }
    if (terminal.isInteractive) return codes.done
    return open.length > 0 ? codes.waits : state.hasFailed ? codes.failed : codes.done
  })
