/**
 * Statements that stand alone, tried again when the database is busy. No transactions: a client may lose its connection
 * for good when it cannot begin one, and each statement here leaves the tables in order.
 */
import { StoreError } from "@allm/core"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"

const textOf = (error: SqlError): string => {
  const cause = error.cause as { readonly code?: unknown; readonly message?: unknown } | undefined
  return `${String(error.message)}: ${String(cause?.code ?? "")} ${String(cause?.message ?? cause ?? "")}`.trim()
}

// Locked tables of SQLite; deadlocks, failed serialization and two that make the same table in PostgreSQL.
const isBusy = (error: SqlError): boolean =>
  /SQLITE_BUSY|SQLITE_LOCKED|database is locked|\b40001\b|\b40P01\b|pg_type_typname_nsp_index|tuple concurrently/.test(
    textOf(error)
  )

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

export const run = <A>(frame: Frame, statement: Effect.Effect<A, SqlError>): Effect.Effect<A, StoreError.StoreError> =>
  statement.pipe(
    Effect.retry({ schedule: patience, while: isBusy }),
    Effect.mapError((error) =>
      new StoreError.StoreError({
        ...frame,
        reason: isFull(error) ? "full" : "unavailable",
        detail: textOf(error),
        cause: error
      })
    )
  )
