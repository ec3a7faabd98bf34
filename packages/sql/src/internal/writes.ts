/**
 * How a writer finds out whether it was the one that wrote.
 */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"

/**
 * Whether a statement changed a row, as the driver tells it; nothing when it does not tell. Not by RETURNING, whose rows
 * some drivers hand out before the statement is committed.
 */
export const changed = (result: unknown): boolean | undefined => {
  const counts = result as { readonly [name: string]: unknown } | null | undefined
  const count = ["rowsAffected", "rowCount", "changes"].map((name) => counts?.[name]).find((value) =>
    value !== undefined
  )
  return typeof count === "number" || typeof count === "bigint" ? count > 0 : undefined
}

/** No two writes have the same. */
export const randomToken: Effect.Effect<string> = Effect.map(
  Effect.all([Random.nextIntBetween(0, 2 ** 48), Random.nextIntBetween(0, 2 ** 48)]),
  (numbers) => numbers.map((number) => number.toString(36)).join("-")
)
