/**
 * Models that have to write every field write `null` for what they would rather leave out.
 */
import type { Issue } from "../ValidationError.ts"
import { isPlainObject } from "./json.ts"

/** A copy of the value without the nulls that are at fault. Undefined when none is. */
export const withoutNulls = (value: unknown, issues: ReadonlyArray<Issue>): unknown => {
  const copy = structuredClone(value)
  let hasChanged = false
  for (const { path } of issues) {
    const key = path.at(-1)
    const owner = path.slice(0, -1).reduce(memberOf, copy)
    if (typeof key !== "string" || !isPlainObject(owner) || owner[key] !== null) continue
    delete owner[key]
    hasChanged = true
  }
  return hasChanged ? copy : undefined
}

const memberOf = (owner: unknown, key: PropertyKey): unknown =>
  typeof owner === "object" && owner !== null ? (owner as Record<PropertyKey, unknown>)[key] : undefined
