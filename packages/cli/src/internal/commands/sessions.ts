/**
 * `allm sessions`: what is stored, and what can be done with it.
 */
import { Session } from "@allm/core/Session"
import { SessionLease } from "@allm/core/SessionLease"
import { SessionStore } from "@allm/core/SessionStore"
import { ToolJournal } from "@allm/core/ToolJournal"
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as Prompt from "@effect/cli/Prompt"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Agent from "../agent.ts"
import { goOn, isUnfinished } from "../conversation.ts"
import { codes, Exit, type Refused, wrongUse } from "../exit.ts"
import * as Home from "../home.ts"
import * as Models from "../models.ts"
import * as SessionIds from "../sessionIds.ts"
import * as Views from "../sessionViews.ts"
import { jsonLine, print, Stdio, tell } from "../stdio.ts"
import { Traces } from "../trace.ts"
import * as Unattended from "../unattended.ts"
import { start } from "./chat.ts"
import { refusals } from "./refusals.ts"
import { agentIn } from "./run.ts"

const id = Args.text({ name: "id" }).pipe(
  Args.withDescription("The id of a session, or the beginning of one.")
)

const json = (description: string) => Options.boolean("json").pipe(Options.withDescription(description))

/** Runs a command where things are kept. */
const atHome = <A, E, R>(
  home: Option.Option<string>,
  command: Effect.Effect<A, E, R>
) => Effect.flatMap(Home.home(home), ({ directory }) => Effect.provide(command, Home.layer(directory)))

/** The session that is meant. */
const stored = (id: string) => Effect.flatMap(SessionStore, (store) => Effect.flatMap(SessionIds.find(id), store.load))

// --- list -----------------------------------------------------------------------------------------------------------------

const listedLine = jsonLine(Views.Listed)
const unreadableLine = jsonLine(Views.Unreadable)

const listing = Effect.fnUntraced(function*(json: boolean) {
  const store = yield* SessionStore
  const { sessions, unreadable } = yield* SessionIds.all
  const found = yield* Effect.forEach(
    sessions,
    // One may be deleted in the meantime.
    ({ id, updatedAt }) => Effect.option(Effect.map(store.load(id), (session) => Views.listed(session, updatedAt))),
    { concurrency: 8 }
  )
  const newest = found.flatMap(Option.toArray).sort((one, other) => other.updatedAt - one.updatedAt)
  if (json) {
    for (const one of newest) yield* print(yield* listedLine(one))
    for (const { id, message } of unreadable) yield* print(yield* unreadableLine({ id, error: message }))
    return
  }
  if (newest.length === 0 && unreadable.length === 0) {
    return yield* tell("There are no sessions yet. Start one with: allm chat")
  }
  const { colour, width } = yield* Stdio
  yield* print(...Views.table(newest, unreadable, yield* Clock.currentTimeMillis, { colour, width }))
})

const listOptions = {
  json: json("Writes one JSON object per line, in place of the table."),
  home: Home.option
}

const list = Command.make("list", listOptions, ({ home, json }) => atHome(home, listing(json))).pipe(
  Command.withDescription("Lists the stored sessions, the newest first.")
)

// --- show -----------------------------------------------------------------------------------------------------------------

const encodeSession = Schema.encode(Schema.parseJson(Session, { space: 2 }))

const show = Command.make(
  "show",
  { id, json: json("Writes the whole session as JSON."), home: Home.option },
  ({ home, id, json }) =>
    atHome(
      home,
      Effect.gen(function*() {
        const session = yield* stored(id)
        if (json) return yield* print(yield* Effect.orDie(encodeSession(session)))
        const { colour, width } = yield* Stdio
        yield* print(...Views.whole(session, { colour, width }))
      })
    )
).pipe(Command.withDescription("Shows a conversation: what was said, called and answered, and what is pending."))

// --- resume ---------------------------------------------------------------------------------------------------------------

const agentOption = Options.text("agent").pipe(
  Options.withAlias("a"),
  Options.withPseudoName("file"),
  Options.withDescription("The agent's module. Default the one the session was started with."),
  Options.optional
)

/** The agent a session was started with, unless another is asked for. */
const agentOf = (asked: Option.Option<string>, { metadata: { agent } }: Session): string =>
  Option.getOrElse(asked, () => typeof agent === "string" ? agent : "demo")

/** Goes on with a session that nobody attends, as far as it can go without a person. */
const goingOn = Effect.fnUntraced(function*(
  session: Session,
  agent: Agent.Agent,
  json: boolean
) {
  const { id } = session
  if (!isUnfinished(session)) {
    yield* Unattended.waits(id)
    const command = agent.file ?? "demo"
    return yield* tell(`Nothing is left to do in session ${id}. Say something: allm run ${command} --session ${id} "…"`)
  }
  const conversation = { sessionId: id, instructions: undefined, model: yield* Agent.label, agent: agent.file }
  yield* Unattended.play(goOn(conversation), { sessionId: id, json })
})

const resume = Command.make(
  "resume",
  {
    id,
    agent: agentOption,
    json: json("Writes every event as a line of JSON, in place of a chat or the answer."),
    model: Models.option,
    home: Home.option
  },
  ({ agent: asked, home, id, json, model }) =>
    Effect.gen(function*() {
      const session = yield* atHome(home, stored(id))
      const { isInteractive } = yield* Stdio
      if (isInteractive && !json) {
        const root = Option.none()
        return yield* start({ message: [], model, agent: asked, session: Option.some(session.id), root, home })
      }
      const chosen = yield* Models.resolve(model)
      const loaded = yield* agentIn(agentOf(asked, session))
      yield* atHome(home, Effect.provide(goingOn(session, loaded, json), Agent.engine(loaded, chosen)))
    }).pipe(Effect.catchTags(refusals))
).pipe(
  Command.withDescription("Goes on with a session: in a terminal as a chat, elsewhere as far as nobody is needed.")
)

// --- delete ---------------------------------------------------------------------------------------------------------------

const yes = Options.boolean("yes").pipe(
  Options.withAlias("y"),
  Options.withDescription("Does not ask.")
)

const confirmed = (id: string): Effect.Effect<boolean, Refused | Exit, Prompt.Prompt.Environment> =>
  Effect.flatMap(
    Stdio,
    ({ isInteractive }): Effect.Effect<boolean, Refused | Exit, Prompt.Prompt.Environment> =>
      isInteractive
        ? Prompt.confirm({ message: `Delete session ${id}?` }).pipe(
          Effect.catchTag("QuitException", () => new Exit({ code: codes.interrupted }))
        )
        : wrongUse(`Nobody can be asked here: write allm sessions delete ${id} --yes`)
  )

/** Deletes a session, its trace, and what its journal needs no more, while nobody else works on it. */
const deleting = (id: string) =>
  Effect.gen(function*() {
    const store = yield* SessionStore
    const traces = yield* Traces
    const leases = yield* SessionLease
    const journal = yield* ToolJournal
    const holder = { holder: "allm sessions delete", duration: "30 seconds" } as const
    yield* Effect.acquireUseRelease(
      leases.acquire(id, holder),
      () => Effect.zipRight(store.delete(id), traces.delete(id)),
      (lease) => Effect.ignore(leases.release(lease))
    )
    // Results of its calls; the session is gone whether or not they can be found.
    yield* Effect.catchAll(journal.compact(id), ({ message }) => tell(message))
    yield* tell(`deleted session ${id}`)
  })

const remove = Command.make("delete", { id, yes, home: Home.option }, ({ home, id, yes }) =>
  atHome(
    home,
    Effect.gen(function*() {
      const found = yield* SessionIds.find(id)
      if (!yes && !(yield* confirmed(found))) return yield* tell(`session ${found} stays`)
      yield* deleting(found)
    })
  )).pipe(Command.withDescription("Deletes a session and its trace."))

export const sessions = Command.make("sessions", listOptions, ({ home, json }) => atHome(home, listing(json))).pipe(
  Command.withDescription("Lists, shows, goes on with and deletes stored sessions."),
  Command.withSubcommands([list, show, resume, remove])
)
