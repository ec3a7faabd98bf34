/**
 * Tokens and costs, as both protocols and the many servers that speak them tell them.
 */
import type { Usage } from "@allm/core/Usage"
import { compact, type Fields, fieldsOf, numberOf } from "./lenient.ts"

/** What is read by name; every other number is kept in `extra`. */
const known = new Set([
  "prompt_tokens",
  "completion_tokens",
  "input_tokens",
  "output_tokens",
  "total_tokens",
  "cost"
])

export const usageOf = (value: unknown): Usage | undefined => {
  const told = fieldsOf(value)
  if (told === undefined) return undefined
  const input = fieldsOf(told["input_tokens_details"] ?? told["prompt_tokens_details"]) ?? {}
  const output = fieldsOf(told["output_tokens_details"] ?? told["completion_tokens_details"]) ?? {}
  const costs = fieldsOf(told["cost_details"]) ?? {}
  return compact({
    inputTokens: numberOf(told["input_tokens"] ?? told["prompt_tokens"]),
    outputTokens: numberOf(told["output_tokens"] ?? told["completion_tokens"]),
    totalTokens: numberOf(told["total_tokens"]),
    // DeepSeek also counts them under a name of its own, and only there in older versions.
    cachedInputTokens: numberOf(input["cached_tokens"] ?? told["prompt_cache_hit_tokens"]),
    cacheWriteInputTokens: numberOf(input["cache_write_tokens"]),
    reasoningTokens: numberOf(output["reasoning_tokens"]),
    inputCost: numberOf(costs["upstream_inference_prompt_cost"]),
    outputCost: numberOf(costs["upstream_inference_completions_cost"]),
    totalCost: numberOf(told["cost"]),
    extra: extraOf(told)
  })
}

const extraOf = (told: Fields): Fields | undefined => {
  const extra = Object.entries(told).filter(([key, value]) => !known.has(key) && numberOf(value) !== undefined)
  return extra.length === 0 ? undefined : Object.fromEntries(extra)
}
