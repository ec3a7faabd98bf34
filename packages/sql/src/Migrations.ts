/**
 * The tables of this package, and how they come to be.
 *
 * @since 0.1.0
 */
import { StoreError } from "@allm/core"
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import { runner } from "./internal/statement.ts"

// Each step may be repeated, alone or by several processes at once, so none needs a transaction.
const steps: ReadonlyArray<{
  readonly id: number
  readonly name: string
  readonly statements: (sql: SqlClient.SqlClient, text: string) => ReadonlyArray<Effect.Effect<unknown, SqlError>>
}> = [
  {
    id: 1,
    name: "sessions",
    statements: (sql, text) => [
      sql.unsafe(
        `CREATE TABLE IF NOT EXISTS allm_sessions (id ${text} NOT NULL PRIMARY KEY, version INTEGER NOT NULL, ` +
          `token TEXT NOT NULL, status TEXT NOT NULL, updated_at BIGINT NOT NULL, format INTEGER NOT NULL, ` +
          `head TEXT NOT NULL, layout TEXT NOT NULL, tail TEXT NOT NULL)`
      ),
      sql.unsafe(
        `CREATE TABLE IF NOT EXISTS allm_messages (session_id ${text} NOT NULL, epoch TEXT NOT NULL, ` +
          `position INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (session_id, epoch, position))`
      )
    ]
  },
  {
    id: 2,
    name: "leases",
    statements: (sql, text) => [
      sql.unsafe(
        `CREATE TABLE IF NOT EXISTS allm_leases (session_id ${text} NOT NULL PRIMARY KEY, token BIGINT NOT NULL, ` +
          `holder TEXT NOT NULL, expires_at BIGINT NOT NULL)`
      )
    ]
  },
  {
    id: 3,
    name: "tool journal",
    statements: (sql, text) => [
      sql.unsafe(
        `CREATE TABLE IF NOT EXISTS allm_tool_calls (session_name ${text} NOT NULL, call_name ${text} NOT NULL, ` +
          `token TEXT NOT NULL, settled INTEGER NOT NULL, entry TEXT NOT NULL, PRIMARY KEY (session_name, call_name))`
      )
    ]
  }
]

const latest = Math.max(...steps.map(({ id }) => id))

/**
 * Makes the tables that are missing. It may be run again, and by several processes at once. Tables of a newer version of
 * this package are left alone, with a `StoreError` of reason `newer_format`.
 *
 * @since 0.1.0
 * @category running
 */
export const migrate: Effect.Effect<void, StoreError.StoreError, SqlClient.SqlClient> = Effect.gen(function*() {
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  const run = runner(sql)
  const frame = { operation: "Migrations.migrate", location: "allm_migrations" }
  // Ids are in the order of their bytes, whatever the language of the database.
  const text = sql.onDialectOrElse({ pg: () => "TEXT COLLATE \"C\"", orElse: () => "TEXT" })
  yield* run(
    frame,
    sql`CREATE TABLE IF NOT EXISTS allm_migrations (id INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL)`
  )
  const done = (yield* run(frame, sql<{ id: number }>`SELECT id FROM allm_migrations`)).map(({ id }) => Number(id))
  const newest = Math.max(0, ...done)
  if (newest > latest) {
    return yield* new StoreError.StoreError({
      ...frame,
      reason: "newer_format",
      detail: `the tables are of step ${newest}, this version knows ${latest}; they were left as they are`
    })
  }
  for (const { id, name, statements } of steps) {
    if (done.includes(id)) continue
    yield* Effect.forEach(statements(sql, text), (statement) => run(frame, statement), { discard: true })
    yield* run(frame, sql`INSERT INTO allm_migrations (id, name) VALUES (${id}, ${name}) ON CONFLICT (id) DO NOTHING`)
  }
})
