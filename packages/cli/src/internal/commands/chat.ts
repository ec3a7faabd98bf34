/**
 * `allm chat`: a conversation in the terminal.
 */
import { Engine } from "@allm/core/Engine"
import type { Session } from "@allm/core/Session"
import { SessionStore } from "@allm/core/SessionStore"
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as NodeFs from "node:fs"
import * as Agents from "../agent.ts"
import * as Chat from "../chat/chat.ts"
import { type Notes, withNotes } from "../chat/notes.ts"
import { quoted } from "../chat/tell.ts"
import { codes, Exit, type Refused, wrongUse } from "../exit.ts"
import * as Home from "../home.ts"
import * as Models from "../models.ts"
import * as SessionIds from "../sessionIds.ts"
import * as NodeTerminal from "../terminal/nodeTerminal.ts"
import { refusals } from "./refusals.ts"

const message = Args.text({ name: "message" }).pipe(
  Args.withDescription("What to say first."),
  Args.repeated
)

const model = Options.text("model").pipe(
  Options.withAlias("m"),
  Options.withPseudoName("provider/name"),
  Options.withDescription(
    "The model. Default $ALLM_MODEL, else one of the first provider whose key is in the environment, else an embedded one."
  ),
  Options.optional
)

const agent = Options.text("agent").pipe(
  Options.withAlias("a"),
  Options.withPseudoName("file"),
  Options.withDescription(
    "A module whose default export is an Engine layer. Default an agent with tools to play with."
  ),
  Options.optional
)

const session = Options.text("session").pipe(
  Options.withAlias("s"),
  Options.withPseudoName("id"),
  Options.withDescription("A stored session to go on with."),
  Options.optional
)

const root = Options.text("root").pipe(
  Options.withPseudoName("directory"),
  Options.withDescription("Where the files are that the embedded agent may read. Default the current directory."),
  Options.optional
)

export interface Asked {
  readonly message: ReadonlyArray<string>
  readonly model: Option.Option<string>
  readonly agent: Option.Option<string>
  readonly session: Option.Option<string>
  readonly root: Option.Option<string>
  readonly home: Option.Option<string>
}

/** The command line that goes on with a session, with everything that was asked for this time. */
const comeBack = (asked: Asked): Effect.Effect<(sessionId: string) => string> =>
  Effect.map(
    Effect.orElseSucceed(Config.string("npm_lifecycle_event"), () => ""),
    (script) => (sessionId) => {
      const given = (["model", "agent", "root", "home"] as const).flatMap((name) =>
        Option.match(asked[name], { onNone: () => [], onSome: (value) => [`--${name}`, quoted(value)] })
      )
      const start = script === "start" ? "npm start --" : "allm chat"
      return [start, "--session", quoted(sessionId), ...given].join(" ")
    }
  )

/** Words that look like an option were meant to be one. */
const checkMessage = (words: ReadonlyArray<string>): Effect.Effect<string | undefined, Refused> => {
  const option = words.find((word) => /^--?[a-z]\S*$/i.test(word))
  if (option === undefined) return Effect.succeed(words.length === 0 ? undefined : words.join(" "))
  return wrongUse(`There is no option ${option}. See them with: allm chat --help`)
}

const checkRoot = (asked: Option.Option<string>): Effect.Effect<string, Refused> => {
  const root = Option.getOrElse(asked, () => process.cwd())
  return NodeFs.statSync(root, { throwIfNoEntry: false })?.isDirectory() === true
    ? Effect.succeed(root)
    : wrongUse(`--root ${root} is no directory.`)
}

/** The session to go on with. */
const stored = (asked: Option.Option<string>) =>
  Effect.gen(function*() {
    if (Option.isNone(asked)) return undefined
    const store = yield* SessionStore
    return yield* store.load(yield* SessionIds.find(asked.value))
  })

/** The agent that is asked for, else the one the session was started with, else the embedded one. */
const agentFor = (asked: Option.Option<string>, session: Session | undefined, root: string) => {
  const { agent } = session?.metadata ?? {}
  const file = Option.getOrElse(asked, () => agent)
  return typeof file === "string" ? Agents.load(file) : Effect.succeed(Agents.demo({ root }))
}

/** Opens a chat as the command line asks for it. */
export const start = (asked: Asked) =>
  Effect.gen(function*() {
    const message = yield* checkMessage(asked.message)
    const root = yield* checkRoot(asked.root)
    const model = yield* Models.resolve(asked.model)
    const { directory } = yield* Home.home(asked.home)
    const code = yield* Effect.provide(opened(asked, { message, model, root }), Home.layer(directory))
    if (code !== codes.done) return yield* new Exit({ code })
  }).pipe(Effect.catchTags(refusals))

interface Checked {
  readonly message: string | undefined
  readonly model: Models.Model
  readonly root: string
}

const opened = (asked: Asked, { message, model, root }: Checked) =>
  Effect.gen(function*() {
    const session = yield* stored(asked.session)
    const agent = yield* agentFor(asked.agent, session, root)
    const talk = (notes: Notes) =>
      Effect.gen(function*() {
        return yield* Chat.run({
          agent,
          model,
          label: Agents.labelOf(yield* Engine),
          comeBack: yield* comeBack(asked),
          sessionId: session?.id,
          message
        }, notes)
      })
    return yield* Effect.provide(withNotes(talk), Layer.merge(Agents.engine(agent, model), NodeTerminal.layer))
  })

export const chat = Command.make("chat", { message, model, agent, session, root, home: Home.option }, start).pipe(
  Command.withDescription("Talks with an agent in the terminal.")
)
