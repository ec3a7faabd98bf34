/**
 * `allm chat`: a conversation in the terminal.
 */
import * as Engine from "@allm/core/Engine"
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
import { withNotes } from "../chat/notes.ts"
import { quoted } from "../chat/tell.ts"
import { codes, Exit, wrongUse } from "../exit.ts"
import * as Home from "../home.ts"
import * as Models from "../models.ts"
import * as SessionIds from "../sessionIds.ts"
import * as NodeTerminal from "../terminal/nodeTerminal.ts"

const message = Args.text({ name: "message" }).pipe(
  Args.withDescription("What to say first. Options come before it."),
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

interface Asked {
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

const checkMessage = (words: ReadonlyArray<string>): Effect.Effect<string | undefined, ReturnType<typeof wrongUse>> => {
  const option = words.find((word) => /^--?[a-z]/i.test(word))
  if (option === undefined) return Effect.succeed(words.length === 0 ? undefined : words.join(" "))
  const known = ["--model", "--agent", "--session", "--root", "--home", "-m", "-a", "-s"].includes(
    option.split("=")[0]!
  )
  return wrongUse(
    known
      ? `${option} comes too late: write options before the message.`
      : `There is no option ${option}; see allm chat --help. A message that begins with a dash goes in quotes, after a space.`
  )
}

const checkRoot = (asked: Option.Option<string>): Effect.Effect<string, ReturnType<typeof wrongUse>> => {
  const root = Option.getOrElse(asked, () => process.cwd())
  return NodeFs.statSync(root, { throwIfNoEntry: false })?.isDirectory() === true
    ? Effect.succeed(root)
    : wrongUse(`--root ${root} is no directory.`)
}

const start = (asked: Asked) =>
  Effect.gen(function*() {
    const message = yield* checkMessage(asked.message)
    const root = yield* checkRoot(asked.root)
    const model = yield* Models.resolve(asked.model)
    const agent = yield* Option.match(asked.agent, {
      onNone: () => Effect.succeed(Agents.demo({ root })),
      onSome: Agents.load
    })
    const { directory } = yield* Home.home(asked.home)
    const code = yield* withNotes((notes) =>
      Effect.gen(function*() {
        const sessionId = Option.isNone(asked.session) ? undefined : yield* SessionIds.find(asked.session.value)
        const engine = yield* Engine.Engine
        return yield* Chat.run({
          agent,
          model,
          label: engine.adapter.name === model.label || model.isDemo ? model.label : Agents.labelOf(engine),
          comeBack: yield* comeBack(asked),
          sessionId,
          message
        }, notes)
      }).pipe(Effect.provide(
        Layer.mergeAll(Home.layer(directory), Agents.engine(agent, model), NodeTerminal.layer)
      ))
    )
    if (code !== codes.done) return yield* new Exit({ code })
  })

export const chat = Command.make("chat", { message, model, agent, session, root, home: Home.option }, start).pipe(
  Command.withDescription("Talks with an agent in the terminal.")
)
