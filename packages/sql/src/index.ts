/**
 * Sessions in SQLite and PostgreSQL.
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
 * Sessions in a database: a save writes what is new, however long the conversation is.
 *
 * @since 0.1.0
 */
export * as SqlSessionStore from "./SqlSessionStore.ts"
