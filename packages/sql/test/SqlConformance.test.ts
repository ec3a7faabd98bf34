import { SessionStoreSuite, ToolJournalSuite } from "@allm/conformance"
import { SqlSessionStore, SqlToolJournal } from "@allm/sql"
import { SqlClient } from "@effect/sql"
import { afterAll, it } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { places, sqlite } from "./places.ts"

const { all, stop } = await places()
const scope = Effect.runSync(Scope.make())
afterAll(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void))
  await stop()
})

const options = { live: true, limit: "30 seconds" } as const

/** With a log of writes beside the file, which many set for speed. */
const withLog = Effect.tap(sqlite, (client) =>
  Effect.provide(
    Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe("PRAGMA journal_mode = WAL")),
    client
  ))

for (const { make, name } of [...all, { name: "SQLite with a log of writes", make: Effect.orDie(withLog) }]) {
  if (typeof make === "string") {
    it.skip(`SqlSessionStore and SqlToolJournal on ${name}: ${make}`, () => {})
    continue
  }
  // One database for all checks, which need no empty one.
  const client = await Effect.runPromise(Scope.extend(make, scope))

  SessionStoreSuite.run(`SqlSessionStore on ${name}`, {
    place: Effect.succeed(Layer.provide(SqlSessionStore.layer, client)),
    shared: true
  }, options)

  ToolJournalSuite.run(`SqlToolJournal on ${name}`, {
    place: Effect.succeed(Layer.provide(SqlToolJournal.layer, client)),
    shared: true
  }, options)
}
