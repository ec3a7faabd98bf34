/**
 * A process that works on sessions others work on as well, or worked on before they were killed.
 *
 * `guarantees.ts <place> <directory> run <tool>` runs or resumes a session, and dies in the tool; what the tools do to the
 * world is a line in a file of the directory. `guarantees.ts <place> <directory> add <messages>` adds to three sessions.
 */
import { Fake, Message, Session, SessionLease, SessionRunner, SessionStore, Tool, ToolJournal } from "@allm/core"
import { SqlSessionLease, SqlSessionStore, SqlToolJournal } from "@allm/sql"
import { NodeContext } from "@effect/platform-node"
import { LibsqlClient } from "@effect/sql-libsql"
import { PgClient } from "@effect/sql-pg"
import { type Duration, Effect, Layer, Logger, LogLevel } from "effect"
import { appendFileSync, mkdirSync, rmdirSync } from "node:fs"
import { join } from "node:path"
import { argv, kill, pid, stdout } from "node:process"
import { fileURLToPath } from "node:url"

export type Place =
  | { readonly files: string }
  | { readonly sqlite: string }
  | { readonly port: number; readonly database: string }

const files = (directory: string) =>
  Layer.mergeAll(
    SessionStore.layerFileSystem(join(directory, "sessions")),
    SessionLease.layerFileSystem(join(directory, "leases")),
    ToolJournal.layerFileSystem(join(directory, "journal"))
  ).pipe(Layer.provide(NodeContext.layer))

const sql = Layer.mergeAll(SqlSessionStore.layer, SqlSessionLease.layer, SqlToolJournal.layer)

const storesOf = (place: Place) =>
  "files" in place
    ? Layer.orDie(files(place.files))
    : "sqlite" in place
    ? Layer.orDie(Layer.provide(sql, LibsqlClient.layer({ url: `file:${place.sqlite}` })))
    : Layer.orDie(
      Layer.provide(sql, PgClient.layer({ host: "127.0.0.1", username: "allm", maxConnections: 2, ...place }))
    )

export const layer = (place: Place, leaseDuration: Duration.DurationInput = "30 seconds") =>
  SessionRunner.layer({ leaseDuration, wait: "30 seconds" }).pipe(Layer.provideMerge(storesOf(place)))

const replays: ReadonlyArray<readonly [name: string, replay: Tool.Replay]> = [
  ["pay", "never"],
  ["put", "idempotent"],
  ["mail", "never"]
]

const engine = (directory: string, killedIn: string) =>
  Fake.engine({
    concurrency: 1,
    respond: ({ messages }) =>
      messages.at(-1)?.role === "user"
        ? [...replays.map(([name]) => Fake.toolCall({ id: name, name })), Fake.finish("tool_calls")]
        : [Fake.text("All done"), Fake.finish("stop")],
    tools: replays.map(([name, replay]) =>
      Tool.make(name, {
        description: "Leaves a trace",
        replay,
        handler: () => {
          appendFileSync(join(directory, "traces"), `${name}\n`)
          return name === killedIn ? kill(pid, "SIGKILL") : `${name} done`
        }
      })
    )
  })

const run = (directory: string, killedIn: string) =>
  SessionRunner.resume("s").pipe(
    Effect.catchTag("NotFound", () => SessionRunner.start("s", "Go")),
    Effect.tap(({ session }) => Effect.sync(() => stdout.write(JSON.stringify(session)))),
    Effect.provide(engine(directory, killedIn))
  )

/** Two that hold the same session at once cannot both make the directory. */
const alone = <A>(directory: string, work: Effect.Effect<A>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdirSync(directory)),
    () => Effect.zipLeft(work, Effect.sleep("1 millis")),
    () => Effect.sync(() => rmdirSync(directory))
  )

const add = (directory: string, count: number) =>
  Effect.forEach(
    Array.from({ length: count }, (_, n) => n),
    (n) => {
      const id = `s${n % 3}`
      return SessionRunner.modify(id, (session) =>
        alone(
          join(directory, id),
          Effect.succeed({ session: Session.append(session, Message.user(`${pid} ${n}`)), result: undefined })
        ))
    },
    { concurrency: 3, discard: true }
  )

if (argv[1] === fileURLToPath(import.meta.url)) {
  const [place = "", directory = "", task, detail = ""] = argv.slice(2)
  // Whoever comes after one that was killed waits until its lease has run out.
  const work: Effect.Effect<unknown, unknown> = task === "run"
    ? Effect.provide(run(directory, detail), layer(JSON.parse(place), "2 seconds"))
    : Effect.provide(add(directory, Number(detail)), layer(JSON.parse(place)))
  void Effect.runPromise(Logger.withMinimumLogLevel(work, LogLevel.Warning))
}
