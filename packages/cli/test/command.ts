/** The command in this process, with streams in memory and a home of its own. */
import { Cli } from "@allm/cli"
import { FileSystem } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { ConfigProvider, Console, Effect } from "effect"
import { fileURLToPath } from "node:url"
import { type Service, Stdio } from "../src/internal/stdio.ts"

/** An agent module of the fixtures. */
export const agent = (name: string): string => fileURLToPath(new URL(`./fixtures/agents/${name}`, import.meta.url))

export interface Ended {
  readonly code: number
  readonly out: string
  readonly error: string
}

export interface Options {
  readonly piped?: string
  readonly stdio?: Partial<Service>
  readonly environment?: { readonly [name: string]: string }
}

export type Allm = (words: ReadonlyArray<string>, options?: Options) => Effect.Effect<Ended>

/** Gives what was written to the streams, and the exit code. */
const command = (home: string): Allm => (words, { environment = {}, piped = "", stdio = {} } = {}) =>
  Effect.gen(function*() {
    let out = ""
    let error = ""
    const streams: Service = {
      out: (text) => Effect.sync(() => void (out += text)),
      error: (text) => Effect.sync(() => void (error += text)),
      piped: Effect.succeed(piped),
      isSeen: false,
      isInteractive: false,
      width: Infinity,
      colour: false,
      ...stdio
    }
    const console = yield* Console.consoleWith(Effect.succeed)
    const code = yield* Cli.run(["node", "allm", ...words]).pipe(
      Effect.provideService(Stdio, streams),
      Effect.withConsole({
        ...console,
        log: (...values: ReadonlyArray<unknown>) => Effect.sync(() => void (out += `${values.join(" ")}\n`)),
        error: (...values: ReadonlyArray<unknown>) => Effect.sync(() => void (error += `${values.join(" ")}\n`))
      }),
      Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries({ ALLM_HOME: home, ...environment })))),
      Effect.provide(NodeContext.layer)
    )
    return { code, out, error }
  })

/** Runs commands in a home that goes away afterwards. */
export const withAllm = <A, E, R>(use: (allm: Allm, home: string) => Effect.Effect<A, E, R>) =>
  Effect.scoped(
    Effect.flatMap(FileSystem.FileSystem, (fs) =>
      Effect.flatMap(fs.makeTempDirectoryScoped(), (home) => use(command(home), home)))
  ).pipe(Effect.provide(NodeContext.layer))

/** The id that a command told. */
export const sessionIn = ({ error }: Ended): string => /session (\S+?)(?:,|$)/m.exec(error)?.[1] ?? "no session"
