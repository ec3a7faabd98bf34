/**
 * Statements that stand alone, tried again when the database is busy. No transactions: a client may lose its connection
 * for good when it cannot begin one, and each statement here leaves the tables in order.
 */
import { StoreError } from "@allm/core"
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"

interface Cause {
  readonly name?: unknown
  readonly code?: unknown
  readonly message?: unknown
}

const causeOf = (error: SqlError): Cause | undefined => error.cause as Cause | undefined

const textOf = (error: SqlError): string => {
  const cause = causeOf(error)
  return `${String(error.message)}: ${String(cause?.code ?? "")} ${String(cause?.message ?? cause ?? "")}`.trim()
}

const isLocked = (error: SqlError): boolean => /SQLITE_BUSY|SQLITE_LOCKED|database is locked/.test(textOf(error))

// Besides locked tables of SQLite: deadlocks, failed serialization and two that make the same table in PostgreSQL.
const busy = /\b(40001|40P01|42710|42P07|pg_type_typname_nsp_index|pg_class_relname_nsp_index)\b|tuple concurrently/

const isBusy = (error: SqlError): boolean => isLocked(error) || busy.test(textOf(error))

const isFull = (error: SqlError): boolean => /SQLITE_FULL|database or disk is full|\b53100\b/.test(textOf(error))

const patience = Schedule.exponential("5 millis", 1.5).pipe(
  Schedule.union(Schedule.spaced("200 millis")),
  Schedule.jittered,
  Schedule.upTo("20 seconds")
)

export interface Frame {
  readonly operation: string
  readonly id?: string
  readonly location: string
}

export type Run = <A>(frame: Frame, statement: Effect.Effect<A, SqlError>) => Effect.Effect<A, StoreError.StoreError>

/**
 * libsql 0.4 does not reset a statement that found the database locked. From then on its connection takes every write
 * and commits none, without a word. So it is made to wait for locks itself, and not trusted any more if that fails.
 */
const poisons = (error: SqlError): boolean => isLocked(error) && causeOf(error)?.name === "LibsqlError"

// By what views of the same client have in common.
const distrusted = new WeakSet<SqlClient["reserve"]>()

export const runner = (sql: SqlClient): Run => {
  // Every time, because clients open new connections on their own. With EXTRA, what is committed stays committed when the
  // power goes; inside a transaction of somebody else it cannot be set, and is up to them.
  const ready = sql.onDialectOrElse({
    sqlite: () =>
      Effect.zipRight(
        sql.unsafe("PRAGMA busy_timeout = 20000"),
        Effect.ignore(sql.unsafe("PRAGMA synchronous = EXTRA"))
      ),
    orElse: () => Effect.void
  })
  return (frame, statement) =>
    Effect.suspend(() =>
      distrusted.has(sql.reserve)
        ? new StoreError.StoreError({
          ...frame,
          reason: "unavailable",
          detail: "the connection found the database locked for 20 seconds, and would lose writes now; open it again"
        })
        : Effect.zipRight(ready, statement).pipe(
          Effect.tapError((error) => poisons(error) ? Effect.sync(() => distrusted.add(sql.reserve)) : Effect.void),
          Effect.retry({ schedule: patience, while: (error) => isBusy(error) && !poisons(error) }),
          Effect.mapError((error) =>
            new StoreError.StoreError({
              ...frame,
              reason: isFull(error) ? "full" : "unavailable",
              detail: textOf(error),
              cause: error
            })
          )
        )
    )
}
