/**
 * Leases on sessions in a database: a row per session, each change of it one statement.
 *
 * @since 0.1.0
 */
import { SessionLease, type StoreError } from "@allm/core"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { runner } from "./internal/statement.ts"
import { changed } from "./internal/writes.ts"
import { migrate } from "./Migrations.ts"

const make = Effect.map(SqlClient.SqlClient, (client) => {
  const sql = client.withoutTransforms()
  const run = runner(sql)
  const frameOf = (operation: string, id: string) => ({ operation, id, location: "allm_leases" })

  const read = Effect.fnUntraced(function*(id: string) {
    const [row] = yield* run(
      frameOf("SessionLease.read", id),
      sql<{ readonly token: number | string; readonly holder: string; readonly expires_at: number | string }>`
        SELECT token, holder, expires_at FROM allm_leases WHERE session_id = ${id}`
    )
    if (row === undefined) return undefined
    const state: SessionLease.State = {
      sessionId: id,
      holder: row.holder,
      token: Number(row.token),
      expiresAt: Number(row.expires_at)
    }
    return [state, state] as const
  })

  /** A token is given to one lease, and a lease is changed by its holder only, so that these two tell what was read. */
  const write = Effect.fnUntraced(function*(state: SessionLease.State, replaced: SessionLease.State | undefined) {
    const { expiresAt, holder, sessionId, token } = state
    const values = { token, holder, expires_at: expiresAt }
    const result = yield* run(
      frameOf("SessionLease.write", sessionId),
      replaced === undefined
        ? sql`INSERT INTO allm_leases ${sql.insert({ session_id: sessionId, ...values })} ON CONFLICT DO NOTHING`.raw
        : sql`UPDATE allm_leases SET ${sql.update(values)} WHERE session_id = ${sessionId}
            AND token = ${replaced.token} AND expires_at = ${replaced.expiresAt}`.raw
    )
    const told = changed(result)
    if (told !== undefined) return told
    const [stored] = (yield* read(sessionId)) ?? []
    return stored?.token === token && stored.holder === holder && stored.expiresAt === expiresAt
  })

  return SessionLease.make<SessionLease.State>({
    read,
    // Once it is begun, somebody has to hear how it ended.
    write: (state, replaced) => Effect.uninterruptible(write(state, replaced))
  })
})

/**
 * Keeps leases in the database of the `SqlClient`: SQLite or PostgreSQL. Makes its table when it is missing. Any number of
 * processes on any number of machines may use it at once, if their clocks agree.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<SessionLease.SessionLease, StoreError.StoreError, SqlClient.SqlClient> = Layer.effect(
  SessionLease.SessionLease,
  Effect.zipRight(migrate, make)
)
