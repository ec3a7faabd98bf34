/**
 * A journal of tool calls in a database: a row per call, each change of it one statement.
 *
 * @since 0.1.0
 */
import { type StoreError, ToolJournal } from "@allm/core"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { runner } from "./internal/statement.ts"
import { changed, randomToken } from "./internal/writes.ts"
import { migrate } from "./Migrations.ts"

const table = "allm_tool_calls"
const chunk = 400

const make = Effect.map(SqlClient.SqlClient, (client) => {
  const sql = client.withoutTransforms()
  const run = runner(sql)
  const { nameOf } = ToolJournal
  const frameOf = (operation: string) => ({ operation: `ToolJournal.${operation}`, location: table })
  // Databases do not take every text, nor keys of any length.
  const rowOf = ({ sessionId, toolCallId }: ToolJournal.Key) =>
    sql`session_name = ${nameOf(sessionId)} AND call_name = ${nameOf(toolCallId)}`
  const placeOf = (session: string, call: string): string => `${table} (${session}, ${call})`

  const find = (operation: string, key: ToolJournal.Key) =>
    Effect.map(
      run(
        frameOf(operation),
        sql<{ readonly token: string; readonly entry: string }>`
          SELECT token, entry FROM allm_tool_calls WHERE ${rowOf(key)}`
      ),
      (rows) => rows[0]
    )

  const create = (key: ToolJournal.Key, entry: string): Effect.Effect<string | undefined, StoreError.StoreError> =>
    Effect.gen(function*() {
      const token = yield* randomToken
      const row = { session_name: nameOf(key.sessionId), call_name: nameOf(key.toolCallId), token, settled: 0, entry }
      const result = yield* run(
        frameOf("prepare"),
        sql`INSERT INTO allm_tool_calls ${sql.insert(row)} ON CONFLICT DO NOTHING`.raw
      )
      if (changed(result) === true) return undefined
      const found = yield* find("prepare", key)
      // Forgotten between the two looks.
      if (found === undefined) return yield* create(key, entry)
      return found.token === token ? undefined : found.entry
    })

  return ToolJournal.fromCells<StoreError.StoreError>({
    locate: ({ sessionId, toolCallId }) => placeOf(nameOf(sessionId), nameOf(toolCallId)),
    read: (key) => Effect.map(find("settle", key), (found) => found?.entry),
    create,
    replace: (key, entry) =>
      Effect.asVoid(
        run(frameOf("settle"), sql`UPDATE allm_tool_calls SET ${sql.update({ settled: 1, entry })} WHERE ${rowOf(key)}`)
      ),
    list: (sessionId) => {
      const session = nameOf(sessionId)
      return Effect.map(
        run(
          frameOf("compact"),
          sql<{ readonly call_name: string; readonly entry: string }>`
            SELECT call_name, entry FROM allm_tool_calls WHERE session_name = ${session}`
        ),
        (rows) => rows.map(({ call_name, entry }) => ({ location: placeOf(session, call_name), text: entry }))
      )
    },
    // A call that was forgotten and prepared anew in between is in doubt, and stays.
    remove: (sessionId, toolCallIds) =>
      Effect.forEach(
        Array.from({ length: Math.ceil(toolCallIds.length / chunk) }, (_, part) => part * chunk),
        (from) =>
          run(
            frameOf("compact"),
            sql`DELETE FROM allm_tool_calls WHERE session_name = ${nameOf(sessionId)} AND settled = 1 AND ${
              sql.in("call_name", toolCallIds.slice(from, from + chunk).map(nameOf))
            }`
          ),
        { discard: true }
      )
  })
})

/**
 * Keeps the journal in the database of the `SqlClient`: SQLite or PostgreSQL. Makes its table when it is missing. Any
 * number of processes may use it at once: of those that prepare the same call, one is told that it is new.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<ToolJournal.ToolJournal, StoreError.StoreError, SqlClient.SqlClient> = Layer.effect(
  ToolJournal.ToolJournal,
  Effect.zipRight(migrate, make)
)
