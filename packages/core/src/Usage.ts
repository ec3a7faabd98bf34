/**
 * What a model call used up.
 *
 * @since 0.1.0
 */
import { dual } from "effect/Function"
import * as Schema from "effect/Schema"
import { JsonObject } from "./internal/json.ts"

const Count = Schema.optionalWith(Schema.Finite, { exact: true })

/**
 * Tokens and costs, as far as the provider told them. `extra` keeps what only one provider counts.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Usage = Schema.Struct({
  inputTokens: Count,
  outputTokens: Count,
  totalTokens: Count,
  cachedInputTokens: Count,
  cacheWriteInputTokens: Count,
  reasoningTokens: Count,
  inputCost: Count,
  outputCost: Count,
  totalCost: Count,
  extra: Schema.optionalWith(JsonObject, { exact: true })
}).annotations({ identifier: "Usage" })

/**
 * Tokens and costs. What the provider did not tell is absent, which is not 0.
 *
 * @since 0.1.0
 * @category models
 */
export interface Usage extends Schema.Schema.Type<typeof Usage> {}

/**
 * Nothing known.
 *
 * @since 0.1.0
 * @category constructors
 */
export const empty: Usage = {}

const counts = [
  "inputTokens",
  "outputTokens",
  "totalTokens",
  "cachedInputTokens",
  "cacheWriteInputTokens",
  "reasoningTokens",
  "inputCost",
  "outputCost",
  "totalCost"
] as const

/**
 * Sums two usages. A count that one side does not know is the other's; a total that was not told is computed first, so
 * that no tokens get lost in the sum.
 *
 * @example
 * ```ts
 * import { Usage } from "@allm/core"
 *
 * const sum = Usage.add({ inputTokens: 10, outputTokens: 5 }, { inputTokens: 1, outputTokens: 2, totalTokens: 3 })
 *
 * assert.deepStrictEqual(sum, { inputTokens: 11, outputTokens: 7, totalTokens: 18 })
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const add: {
  (that: Usage): (self: Usage) => Usage
  (self: Usage, that: Usage): Usage
} = dual(2, (self: Usage, that: Usage): Usage => {
  // Told totals stay told; without any, the sum's is computed when it is read.
  const told = self.totalTokens !== undefined || that.totalTokens !== undefined
  const left = told ? withTotal(self) : self
  const right = told ? withTotal(that) : that
  const sum: { -readonly [K in keyof Usage]: Usage[K] } = {}
  for (const count of counts) {
    const a = left[count]
    const b = right[count]
    if (a !== undefined || b !== undefined) sum[count] = (a ?? 0) + (b ?? 0)
  }
  const extra = addExtra(self.extra, that.extra)
  return extra === undefined ? sum : { ...sum, extra }
})

/**
 * All tokens: the total that was told, or input and output together when both are known.
 *
 * @example
 * ```ts
 * import { Usage } from "@allm/core"
 *
 * assert.strictEqual(Usage.totalTokens({ inputTokens: 8, outputTokens: 1 }), 9)
 * assert.strictEqual(Usage.totalTokens({ inputTokens: 8 }), undefined)
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const totalTokens = (self: Usage): number | undefined =>
  self.totalTokens ??
    (self.inputTokens !== undefined && self.outputTokens !== undefined
      ? self.inputTokens + self.outputTokens
      : undefined)

const withTotal = (usage: Usage): Usage => ({
  ...usage,
  totalTokens: usage.totalTokens ?? (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)
})

type Extra = Usage["extra"]

// Numbers add up; of anything else the newer value stands.
const addExtra = (left: Extra, right: Extra): Extra => {
  if (left === undefined || right === undefined) return left ?? right
  const sum = new Map(Object.entries(left))
  for (const [key, value] of Object.entries(right)) {
    const before = sum.get(key)
    sum.set(key, typeof before === "number" && typeof value === "number" ? before + value : value)
  }
  return Object.fromEntries(sum)
}
