/**
 * The `allm` command: chat with tools in a terminal, run agents, keep and replay sessions.
 *
 * @since 0.1.0
 */

/**
 * The command and its subcommands, for whoever wants them in a command of their own.
 *
 * @since 0.1.0
 */
export * as Cli from "./Cli.ts"
