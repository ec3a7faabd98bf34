/**
 * The `allm` command and its subcommands.
 *
 * @since 0.1.0
 */
import * as Command from "@effect/cli/Command"
import * as ValidationError from "@effect/cli/ValidationError"
import type * as NodeContext from "@effect/platform-node/NodeContext"
import type { Teardown } from "@effect/platform/Runtime"
import * as Cause from "effect/Cause"
import * as Config from "effect/Config"
import type { ConfigError } from "effect/ConfigError"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import { createRequire } from "node:module"
import { chat } from "./internal/commands/chat.ts"
import { replay } from "./internal/commands/replay.ts"
import { run as runCommand } from "./internal/commands/run.ts"
import { sessions } from "./internal/commands/sessions.ts"
import { withPlainConsole } from "./internal/console.ts"
import * as Ending from "./internal/exit.ts"
import * as Help from "./internal/help.ts"

const { version } = createRequire(import.meta.url)("../package.json") as { readonly version: string }

/**
 * The command, for whoever wants it in a command of their own.
 *
 * @since 0.1.0
 * @category constructors
 */
export const command = Command.make("allm").pipe(
  Command.withDescription("Chats with tools in the terminal, runs agents, keeps and replays sessions."),
  Command.withSubcommands([chat, runCommand, sessions, replay])
)

const pages = Help.root(
  "allm",
  command.descriptor,
  [chat, runCommand, sessions, replay].map(({ descriptor }) => descriptor)
)

const parsed = Command.run(command, { name: "allm", version, executable: "allm" })

/**
 * Runs a command line, the first two of whose words are the runtime and the script, and gives the exit code: 0 done, 1
 * failed, 2 wrong use, 3 waits for a person, 130 interrupted. What went wrong has been said on the error output.
 *
 * @example
 * ```ts
 * import { Cli } from "@allm/cli"
 * import { NodeContext } from "@effect/platform-node"
 * import { Effect } from "effect"
 *
 * const program = Cli.run(["node", "allm", "--version"])
 *
 * Effect.runPromise(Effect.provide(program, NodeContext.layer)).then((code) => {
 *   assert.strictEqual(code, 0)
 * })
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const run = (argv: ReadonlyArray<string>): Effect.Effect<number, never, NodeContext.NodeContext> =>
  Option.match(Help.asked(pages, argv.slice(2)), {
    onNone: () => parsed(argv),
    onSome: described
  }).pipe(
    Effect.as(Ending.codes.done),
    Effect.catchAllCause((cause) =>
      Cause.isInterruptedOnly(cause) ? Effect.interrupt : Option.match(Cause.failureOption(cause), {
        onNone: () => told(`${messageOf(Cause.squash(cause))} (this is a mistake in allm itself)`, Ending.codes.failed),
        onSome: explained
      })
    ),
    withPlainConsole({ log: process.stdout.isTTY, error: process.stderr.isTTY })
  )

// Wider than that, lines are hard to read.
const widest = 100

const described = (place: Help.Place): Effect.Effect<void, ConfigError> =>
  Effect.flatMap(Config.withDefault(Config.string("NO_COLOR"), ""), (noColour) => {
    const width = Math.min(widest, process.stdout.columns || 80)
    return Console.log(Help.page(place, { width, colour: noColour === "" }))
  })

const explained = (error: { readonly message: string } | ValidationError.ValidationError): Effect.Effect<number> => {
  // Its message has been printed.
  if (ValidationError.isValidationError(error)) return Effect.succeed(Ending.codes.wrongUse)
  if (error instanceof Ending.Exit) return Effect.succeed(error.code)
  return told(error.message, error instanceof Ending.Refused ? error.code : Ending.codes.failed)
}

const told = (message: string, code: number): Effect.Effect<number> =>
  Effect.as(Console.error(`allm: ${message}`), code)

const messageOf = (defect: unknown): string =>
  Predicate.hasProperty(defect, "message") ? String(defect.message) : String(defect)

/**
 * Ends the process with the code that `run` gave, once everything is written, whatever still runs: for
 * `NodeRuntime.runMain`.
 *
 * @since 0.1.0
 * @category running
 */
export const teardown: Teardown = (exit) => {
  const code = Exit.match(exit, {
    onFailure: (cause) => Cause.isInterruptedOnly(cause) ? Ending.codes.interrupted : Ending.codes.failed,
    onSuccess: (code) => typeof code === "number" ? code : Ending.codes.done
  })
  process.stdout.write("", () => process.exit(code))
}
