/**
 * Databases for tests, each of them empty: a file of SQLite, a database of a PostgreSQL server of the tests' own.
 */
import { SqlClient } from "@effect/sql"
import { LibsqlClient } from "@effect/sql-libsql"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, type Scope } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { start } from "./postgres.ts"

/** A client as another process would open it: each build is a connection of its own. */
export type Client = Layer.Layer<SqlClient.SqlClient>

export interface Place {
  readonly name: string
  /** A new database, or why none can be had. */
  readonly make: Effect.Effect<Client, never, Scope.Scope> | string
}

export const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "allm-sql-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

export const sqliteFile = (file: string): Client => Layer.fresh(LibsqlClient.layer({ url: `file:${file}` }))

const sqlite = Effect.map(directory, (path) => sqliteFile(join(path, "a.db")))

let databases = 0

const connect = (port: number, database: string): Client =>
  Layer.fresh(
    Layer.orDie(PgClient.layer({ host: "127.0.0.1", port, username: "allm", database, maxConnections: 3 }))
  )

const postgres = (port: number) =>
  Effect.suspend(() => {
    const database = `test_${++databases}`
    return Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(`CREATE DATABASE ${database}`)).pipe(
      Effect.provide(connect(port, "postgres")),
      Effect.orDie,
      Effect.as(connect(port, database))
    )
  })

/** Starts the server; `stop` ends it. */
export const places = async (): Promise<{
  readonly all: ReadonlyArray<Place>
  readonly stop: () => Promise<void>
}> => {
  const server = await start()
  return {
    all: [
      { name: "SQLite", make: sqlite },
      { name: "PostgreSQL", make: typeof server === "string" ? server : postgres(server.port) }
    ],
    stop: async () => typeof server === "string" ? undefined : server.stop()
  }
}

/** A layer on a database of its own. */
export const onNew = <A, E>(
  make: Effect.Effect<Client, never, Scope.Scope>,
  layer: Layer.Layer<A, E, SqlClient.SqlClient>
): Layer.Layer<A, E> => Layer.unwrapScoped(Effect.map(make, (client) => Layer.provide(Layer.fresh(layer), client)))
