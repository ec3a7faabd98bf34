import { Usage } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { FastCheck } from "effect"

// Whole numbers, for which addition is exact; the laws are about which counts are there.
const count = FastCheck.nat({ max: 1_000_000 })

const usage: FastCheck.Arbitrary<Usage.Usage> = FastCheck.record({
  inputTokens: count,
  outputTokens: count,
  totalTokens: count,
  cachedInputTokens: count,
  cacheWriteInputTokens: count,
  reasoningTokens: count,
  inputCost: count,
  outputCost: count,
  totalCost: count,
  extra: FastCheck.dictionary(FastCheck.constantFrom("a", "b", "c"), count, { noNullPrototype: true })
}, { requiredKeys: [], noNullPrototype: true })

describe("Usage", () => {
  describe("add", () => {
    it("adds count to count", () => {
      const one = {
        inputTokens: 1,
        outputTokens: 2,
        totalTokens: 3,
        cachedInputTokens: 4,
        cacheWriteInputTokens: 5,
        reasoningTokens: 6,
        inputCost: 7,
        outputCost: 8,
        totalCost: 9
      }

      assert.deepStrictEqual(Usage.add(one, one), {
        inputTokens: 2,
        outputTokens: 4,
        totalTokens: 6,
        cachedInputTokens: 8,
        cacheWriteInputTokens: 10,
        reasoningTokens: 12,
        inputCost: 14,
        outputCost: 16,
        totalCost: 18
      })
    })

    it("takes a count that one side does not know from the other", () => {
      assert.deepStrictEqual(Usage.add({ reasoningTokens: 2 }, { totalCost: 0.5 }), {
        reasoningTokens: 2,
        totalCost: 0.5
      })
    })

    it("computes a total that was not told, so that no tokens get lost", () => {
      const told = { inputTokens: 1, outputTokens: 2, totalTokens: 5 }

      assert.deepStrictEqual(Usage.add({ inputTokens: 10, outputTokens: 5 }, told), {
        inputTokens: 11,
        outputTokens: 7,
        totalTokens: 20
      })
    })

    it("knows no count that nobody told", () => {
      assert.deepStrictEqual(Usage.add(Usage.empty, Usage.empty), {})
    })

    it("keeps a zero that was told", () => {
      assert.deepStrictEqual(Usage.add({ cachedInputTokens: 0 }, {}), { cachedInputTokens: 0 })
    })

    it("reads the same in a pipe", () => {
      assert.deepStrictEqual(Usage.add({ inputTokens: 1 })({ inputTokens: 2 }), { inputTokens: 3 })
    })

    it("adds the numbers of extra and lets the newer value of anything else stand", () => {
      assert.deepStrictEqual(
        Usage.add({ extra: { searches: 1, tier: "slow", old: true } }, {
          extra: { searches: 2, tier: "fast", new: 1 }
        }),
        { extra: { searches: 3, tier: "fast", old: true, new: 1 } }
      )
    })

    it("keeps every key of extra, __proto__ too", () => {
      const sum = Usage.add({ extra: { a: 1 } }, { extra: JSON.parse("{\"__proto__\":{\"b\":2}}") })

      assert.strictEqual(JSON.stringify(sum), "{\"extra\":{\"a\":1,\"__proto__\":{\"b\":2}}}")
    })

    it.prop("leaves both sides as they were", [usage, usage], ([a, b]) => {
      const before = JSON.stringify([a, b])
      Usage.add(a, b)

      assert.strictEqual(JSON.stringify([a, b]), before)
    })

    it("counts the same in whatever order a run's usages are put together", () => {
      const [a, b, c] = [{ outputTokens: 2 }, { inputTokens: 1 }, { inputTokens: 4, totalTokens: 9 }]

      assert.deepStrictEqual(Usage.add(Usage.add(a, b), c), { inputTokens: 5, outputTokens: 2, totalTokens: 12 })
      assert.deepStrictEqual(Usage.add(a, Usage.add(b, c)), { inputTokens: 5, outputTokens: 2, totalTokens: 12 })
    })

    it.prop("is associative", [usage, usage, usage], ([a, b, c]) => {
      assert.deepStrictEqual(Usage.add(Usage.add(a, b), c), Usage.add(a, Usage.add(b, c)))
    }, { fastCheck: { numRuns: 500 } })

    it.prop("is commutative", [usage, usage], ([a, b]) => {
      assert.deepStrictEqual(Usage.add(a, b), Usage.add(b, a))
    })

    it.prop("changes nothing when nothing is added", [usage], ([a]) => {
      assert.deepStrictEqual(Usage.add(a, Usage.empty), a)
      assert.deepStrictEqual(Usage.add(Usage.empty, a), a)
    })

    it.prop("has a total of all tokens when both sides know theirs", [count, count, count, count], ([a, b, c, d]) => {
      const sum = Usage.add({ inputTokens: a, outputTokens: b }, {
        inputTokens: c,
        outputTokens: d,
        totalTokens: c + d
      })

      assert.strictEqual(Usage.totalTokens(sum), a + b + c + d)
    })
  })

  describe("totalTokens", () => {
    it("is the total that was told", () => {
      assert.strictEqual(Usage.totalTokens({ inputTokens: 1, outputTokens: 2, totalTokens: 5 }), 5)
    })

    it("is input and output together when no total was told", () => {
      assert.strictEqual(Usage.totalTokens({ inputTokens: 1, outputTokens: 2 }), 3)
    })

    it("is unknown when one of the two is", () => {
      assert.strictEqual(Usage.totalTokens({ inputTokens: 1 }), undefined)
      assert.strictEqual(Usage.totalTokens({ outputTokens: 1 }), undefined)
      assert.strictEqual(Usage.totalTokens(Usage.empty), undefined)
    })
  })
})
