/**
 * The counts of the API in the terms of the library.
 */
import type { Usage } from "@allm/core"
import { isObject, type JsonObject, objectOf } from "./json.ts"

/** Counts are cumulative: what comes later stands, what comes as null was not counted again. */
export const laterCounts = (before: JsonObject, given: unknown): JsonObject =>
  isObject(given)
    ? { ...before, ...Object.fromEntries(Object.entries(given).filter(([, count]) => count !== null)) }
    : before

/**
 * Anthropic counts apart what it read from its cache and what it wrote there; here the input is all of it, and those two
 * are parts of it.
 */
export const usageOf = (counts: JsonObject): Usage.Usage | undefined => {
  const input = count(counts["input_tokens"])
  const output = count(counts["output_tokens"])
  if (input === undefined && output === undefined) return undefined
  const read = count(counts["cache_read_input_tokens"])
  const written = count(counts["cache_creation_input_tokens"])
  const thought = count(objectOf(counts["output_tokens_details"])["thinking_tokens"])
  const inputTokens = input === undefined ? undefined : input + (read ?? 0) + (written ?? 0)
  const extra = extraCounts(counts)
  return {
    ...(inputTokens === undefined ? {} : { inputTokens }),
    ...(output === undefined ? {} : { outputTokens: output }),
    ...(inputTokens === undefined || output === undefined ? {} : { totalTokens: inputTokens + output }),
    ...(read === undefined ? {} : { cachedInputTokens: read }),
    ...(written === undefined ? {} : { cacheWriteInputTokens: written }),
    ...(thought === undefined ? {} : { reasoningTokens: thought }),
    ...(Object.keys(extra).length === 0 ? {} : { extra })
  }
}

const count = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined

/** How long what was written is kept, and how often tools ran at Anthropic: what is not zero, by the names of the API. */
const extraCounts = (counts: JsonObject): JsonObject => {
  const details = [objectOf(counts["cache_creation"]), objectOf(counts["server_tool_use"])]
  return Object.fromEntries(details.flatMap(Object.entries).filter(([, value]) => (count(value) ?? 0) > 0))
}
