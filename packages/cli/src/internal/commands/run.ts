/**
 * `allm run`: an agent at work that nobody attends.
 */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Agent from "../agent.ts"
import * as Conversation from "../conversation.ts"
import { type Refused, wrongUse } from "../exit.ts"
import * as Home from "../home.ts"
import * as Models from "../models.ts"
import * as SessionIds from "../sessionIds.ts"
import { type InputFailed, Stdio } from "../stdio.ts"
import * as Unattended from "../unattended.ts"
import { refusals, spoken } from "./refusals.ts"

const file = Args.text({ name: "file" }).pipe(
  Args.withDescription(
    "A module whose default export is an Engine layer, such as agent.ts; demo is the embedded agent."
  )
)

const prompt = Args.text({ name: "prompt" }).pipe(
  Args.withDescription("What to say. Default what is piped in, else the module's own prompt."),
  Args.repeated
)

const json = Options.boolean("json").pipe(
  Options.withDescription("Writes every event as a line of JSON, in place of the answer.")
)

const session = Options.text("session").pipe(
  Options.withAlias("s"),
  Options.withPseudoName("id"),
  Options.withDescription("A stored session to say it in; the beginning of its id will do."),
  Options.optional
)

/** The agent in a file, or the embedded one. */
export const agentIn = (file: string): Effect.Effect<Agent.Agent, Agent.AgentError> =>
  file === "demo" ? Effect.succeed(Agent.demo({ root: process.cwd() })) : Agent.load(file)

const promptOf = (
  words: ReadonlyArray<string>,
  file: string,
  agent: Agent.Agent
): Effect.Effect<string, Refused | InputFailed> =>
  Effect.gen(function*() {
    const typed = yield* spoken(words, "run")
    if (typed !== "") return typed
    const { piped } = yield* Stdio
    const read = (yield* piped).trim()
    if (read !== "") return read
    if (agent.prompt !== undefined && agent.prompt.trim() !== "") return agent.prompt
    return yield* wrongUse(
      `There is nothing to say: write allm run ${file} "…", pipe it in, or export const prompt = "…" in the module.`
    )
  })

export const run = Command.make(
  "run",
  { file, prompt, json, session, model: Models.option, home: Home.option },
  ({ file, home, json, model, prompt, session }) =>
    Effect.gen(function*() {
      const agent = yield* agentIn(file)
      const chosen = yield* Models.resolve(model)
      const text = yield* promptOf(prompt, file, agent)
      const { directory } = yield* Home.home(home)
      const turn = Effect.gen(function*() {
        const sessionId = yield* Option.match(session, {
          onNone: () => Home.newSessionId,
          onSome: (asked) => Effect.tap(SessionIds.find(asked), Unattended.waitsForMore)
        })
        const conversation = {
          sessionId,
          instructions: agent.instructions,
          model: yield* Agent.label,
          agent: agent.file
        }
        yield* Unattended.play(Conversation.say(conversation, text), { sessionId, json })
      })
      yield* Effect.provide(turn, Layer.merge(Home.layer(directory), Agent.engine(agent, chosen)))
    }).pipe(Effect.catchTags(refusals))
).pipe(
  Command.withDescription("Runs an agent without a terminal: the answer goes to the output, the rest beside it.")
)
