/**
 * Where the command keeps things: sessions, leases, journals and traces, in files below one directory.
 */
import * as SessionLease from "@allm/core/SessionLease"
import * as SessionRunner from "@allm/core/SessionRunner"
import * as SessionStore from "@allm/core/SessionStore"
import type { StoreError } from "@allm/core/StoreError"
import * as ToolJournal from "@allm/core/ToolJournal"
import * as Options from "@effect/cli/Options"
import type { PlatformError } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Config from "effect/Config"
import type { ConfigError } from "effect/ConfigError"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as NodeOs from "node:os"
import * as NodePath from "node:path"
import * as Traces from "./trace.ts"

export interface Home {
  readonly directory: string
}

/** The option of every command that keeps something. */
export const option: Options.Options<Option.Option<string>> = Options.text("home").pipe(
  Options.withPseudoName("directory"),
  Options.withDescription("Where sessions are kept. Default $ALLM_HOME, else ~/.allm."),
  Options.optional
)

/** The directory that `--home` asks for, else `$ALLM_HOME`, else `~/.allm`. */
export const home = (asked: Option.Option<string>): Effect.Effect<Home, ConfigError> =>
  Effect.map(Config.option(Config.string("ALLM_HOME")), (variable) => {
    const isGiven = (text: string): boolean => text.trim() !== ""
    const chosen = Option.orElse(Option.filter(asked, isGiven), () => Option.filter(variable, isGiven))
    return {
      directory: Option.match(chosen, {
        onNone: () => NodePath.join(NodeOs.homedir(), ".allm"),
        onSome: (directory) => NodePath.resolve(directory)
      })
    }
  })

/** Everything a command keeps things in. */
export const layer = (
  directory: string
): Layer.Layer<
  | SessionStore.SessionStore
  | SessionLease.SessionLease
  | ToolJournal.ToolJournal
  | SessionRunner.SessionRunner
  | Traces.Traces,
  StoreError | PlatformError,
  FileSystem.FileSystem | Path.Path
> => {
  const below = (name: string): string => NodePath.join(directory, name)
  const stores = Layer.mergeAll(
    SessionStore.layerFileSystem(below("sessions")),
    SessionLease.layerFileSystem(below("leases")),
    ToolJournal.layerFileSystem(below("journal")),
    Traces.layerFileSystem(below("traces"))
  )
  // Whoever comes back after a crash finds the session held by the dead; waiting has to take longer than that lasts.
  const runner = SessionRunner.layer({
    holder: `allm, process ${process.pid}`,
    leaseDuration: "6 seconds",
    wait: "8 seconds"
  })
  return Layer.provideMerge(runner, stores)
}

// Without those that are easily taken for one another.
const letters = "abcdefghjkmnpqrstvwxyz23456789"

/** An id that sorts by the time it was made, such as `20261118-200432-k3f9`. */
export const newSessionId: Effect.Effect<string> = Effect.gen(function*() {
  const now = yield* DateTime.now
  const stamp = DateTime.formatIso(now).slice(0, 19).replaceAll(/[-:]/g, "").replace("T", "-")
  const picks = yield* Effect.replicateEffect(Random.nextIntBetween(0, letters.length), 4)
  return `${stamp}-${picks.map((index) => letters[index]).join("")}`
})
