import { assert, describe, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { distance, nearest } from "../src/internal/nearest.ts"

describe("nearest", () => {
  it("counts letters added, dropped, changed and swapped", () => {
    assert.deepStrictEqual(
      [["", ""], ["abc", "abc"], ["abc", "abxc"], ["abc", "ac"], ["abc", "axc"], ["abc", "acb"], ["", "abc"]].map(
        ([from, to]) => distance(from!, to!)
      ),
      [0, 0, 1, 1, 1, 1, 3]
    )
  })

  it("is the same in both directions, and no more than all of the letters", () => {
    const words = FastCheck.stringOf(FastCheck.constantFrom(..."abc"), { maxLength: 8 })
    FastCheck.assert(FastCheck.property(words, words, (from, to) => {
      const far = distance(from, to)
      return far === distance(to, from) && far <= Math.max(from.length, to.length) && (far === 0) === (from === to)
    }))
  })

  it("gives the nearest first, whatever their case, and nothing that is far", () => {
    const names = ["openai", "anthropic", "google", "openai-chat", "demo"]

    assert.deepStrictEqual(nearest("opnai", names), ["openai"])
    assert.deepStrictEqual(nearest("OPENAI", names), ["openai", "openai-chat"])
    assert.deepStrictEqual(nearest("goggle", names), ["google"])
    assert.deepStrictEqual(nearest("mistral", names), [])
    assert.deepStrictEqual(nearest("", names), [])
  })
})
