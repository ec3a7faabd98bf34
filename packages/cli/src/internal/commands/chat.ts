/**
 * `allm chat`: a conversation in the terminal.
 */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import { failed } from "../exit.ts"

const message = Args.text({ name: "message" }).pipe(
  Args.withDescription("What to say first"),
  Args.repeated
)

const model = Options.text("model").pipe(
  Options.withAlias("m"),
  Options.withDescription(
    "The model, as provider/name; without it, the first provider whose key is in the environment"
  ),
  Options.optional
)

const agent = Options.text("agent").pipe(
  Options.withAlias("a"),
  Options.withDescription(
    "A module whose default export is an Engine layer; without it, an agent with tools to play with"
  ),
  Options.optional
)

const session = Options.text("session").pipe(
  Options.withAlias("s"),
  Options.withDescription("The id of a stored session to go on with"),
  Options.optional
)

const root = Options.text("root").pipe(
  Options.withDescription("The directory whose files the agent's tools may read; the current one unless given"),
  Options.optional
)

const home = Options.text("home").pipe(
  Options.withDescription("Where sessions are kept; $ALLM_HOME or ~/.allm unless given"),
  Options.optional
)

export const chat = Command.make("chat", { message, model, agent, session, root, home }, () => failed("soon")).pipe(
  Command.withDescription("Talks with an agent in the terminal")
)
