/**
 * Sessions, leases on them and journals of tool calls in SQLite and PostgreSQL.
 *
 * @since 0.1.0
 */

/**
 * The tables of this package, and how they come to be.
 *
 * @since 0.1.0
 */
export * as Migrations from "./Migrations.ts"

/**
 * Leases on sessions in a database: a row per session, each change of it one statement.
 *
 * @since 0.1.0
 */
export * as SqlSessionLease from "./SqlSessionLease.ts"

/**
 * Sessions in a database: a save writes what is new, however long the conversation is.
 *
 * @since 0.1.0
 */
export * as SqlSessionStore from "./SqlSessionStore.ts"

/**
 * A journal of tool calls in a database: a row per call, each change of it one statement.
 *
 * @since 0.1.0
 */
export * as SqlToolJournal from "./SqlToolJournal.ts"
