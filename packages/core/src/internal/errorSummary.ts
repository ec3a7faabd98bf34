/**
 * An error as plain data, for the metadata of results that are stored.
 */
import * as Predicate from "effect/Predicate"
import { toJsonOrStandIn } from "./json.ts"

export const summarize = (error: unknown): unknown => {
  if (!(error instanceof Error)) return toJsonOrStandIn(error) ?? null
  return {
    _tag: Predicate.hasProperty(error, "_tag") ? String(error._tag) : error.name,
    ...(Predicate.hasProperty(error, "reason") ? { reason: String(error.reason) } : {}),
    message: error.message
  }
}
