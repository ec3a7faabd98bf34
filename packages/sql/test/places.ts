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
import { type Fault, faultyLibsql, faultyPostgres } from "./faulty.ts"
import { start } from "./postgres.ts"

/** Each build is a connection of its own, as another process would have. */
export type Client = Layer.Layer<SqlClient.SqlClient>

export interface Database {
  readonly client: Client
  /** One that fails when it is told to. */
  readonly faulty: (fault: Fault) => Effect.Effect<Client, never, Scope.Scope>
}

export interface Place {
  readonly name: string
  /** A new database, or why none can be had. */
  readonly make: Effect.Effect<Client, never, Scope.Scope> | string
  /** The same, with a way to fail. */
  readonly database: Effect.Effect<Database, never, Scope.Scope>
}

export const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "allm-sql-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

export const sqliteFile = (file: string): Client => LibsqlClient.layer({ url: `file:${file}` })

const sqliteDatabase = Effect.map(directory, (path): Database => {
  const file = join(path, "a.db")
  return { client: sqliteFile(file), faulty: (fault) => faultyLibsql(file, fault) }
})

let databases = 0

const connect = (port: number, database: string): Client =>
  Layer.orDie(PgClient.layer({ host: "127.0.0.1", port, username: "allm", database, maxConnections: 3 }))

const postgres = (port: number) =>
  Effect.suspend(() => {
    const database = `test_${++databases}`
    return Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(`CREATE DATABASE ${database}`)).pipe(
      Effect.provide(connect(port, "postgres")),
      Effect.orDie,
      Effect.as<Database>({
        client: connect(port, database),
        faulty: (fault) => faultyPostgres(port, database, fault)
      })
    )
  })

const clientOf = (database: Effect.Effect<Database, never, Scope.Scope>) => Effect.map(database, ({ client }) => client)

export const sqlite = clientOf(sqliteDatabase)

/** Starts the server; `stop` ends it. */
export const places = async (): Promise<{
  readonly all: ReadonlyArray<Place>
  readonly stop: () => Promise<void>
}> => {
  const server = await start()
  return {
    all: [
      { name: "SQLite", make: sqlite, database: sqliteDatabase },
      typeof server === "string"
        ? { name: "PostgreSQL", make: server, database: Effect.dieMessage(server) }
        : { name: "PostgreSQL", make: clientOf(postgres(server.port)), database: postgres(server.port) }
    ],
    stop: async () => typeof server === "string" ? undefined : server.stop()
  }
}
