import { assert, describe, it } from "@effect/vitest"
import { FastCheck } from "effect"
import * as Style from "../../src/internal/terminal/style.ts"

describe("line", () => {
  it("cuts to the columns a terminal gives, wide characters and emoji included", () => {
    const pieces = [{ text: "日本", style: "bold" as const }, { text: " 👩‍👩‍👧 family" }]

    assert.strictEqual(Style.line(pieces, { width: 14, colour: false }), "日本 👩‍👩‍👧 family")
    assert.strictEqual(Style.line(pieces, { width: 8, colour: false }), "日本 👩‍👩‍👧…")
    assert.strictEqual(Style.line(pieces, { width: 7, colour: false }), "日本 …")
    assert.strictEqual(Style.line(pieces, { width: 4, colour: false }), "日…")
    assert.strictEqual(Style.line(pieces, { width: 0, colour: false }), "")
  })

  it("lets nothing through that a terminal would obey", () => {
    const text = "a\u001b[2Jb\u001b]0;title\u0007c\u009bd\r\ne\u202ef\tg\u0000h"

    assert.strictEqual(Style.line([{ text }], { width: 80, colour: true }), "abcd ef gh")
  })

  it("is never wider than it may be", () => {
    FastCheck.assert(FastCheck.property(
      FastCheck.array(FastCheck.string({ unit: "grapheme" })),
      FastCheck.integer({ min: 0, max: 30 }),
      (texts, width) => {
        const line = Style.line(texts.map((text) => ({ text, style: "red" })), { width, colour: true })
        assert.isAtMost(Style.widthOf(Style.unpainted(line)), width)
      }
    ))
  })
})

describe("wrap", () => {
  it("breaks at spaces, words that are too long anywhere, and keeps line breaks", () => {
    assert.deepStrictEqual(Style.wrap("one two three\n\nfourfivesix", 7), ["one two", "three", "", "fourfiv", "esix"])
  })

  it("breaks scripts without spaces between characters", () => {
    assert.deepStrictEqual(Style.wrap("Hi 日本語の文章", 8), ["Hi 日本", "語の文章"])
  })

  it("gives up no character when the window is narrower than one", () => {
    assert.deepStrictEqual(Style.wrap("日本", 1), ["日", "本"])
  })

  it("fits every line, and loses nothing but spaces", () => {
    FastCheck.assert(FastCheck.property(
      FastCheck.string({ unit: "grapheme-ascii", maxLength: 200 }),
      FastCheck.integer({ min: 2, max: 30 }),
      (text, width) => {
        const lines = Style.wrap(text, width)
        for (const line of lines) assert.isAtMost(Style.widthOf(line), width)
        assert.strictEqual(lines.join("").replace(/ /g, ""), Style.clean(text).replace(/[ \n]/g, ""))
      }
    ))
  })
})

describe("takeLines", () => {
  it("breaks text that comes in pieces where it breaks the whole of it", () => {
    FastCheck.assert(FastCheck.property(
      FastCheck.array(FastCheck.constantFrom("a", "bcd", " ", "\n", "日本", "long-word-", "e f ")),
      FastCheck.integer({ min: 4, max: 12 }),
      (pieces, width) => {
        let rest = ""
        const lines: Array<string> = []
        for (const piece of pieces) {
          const taken = Style.takeLines(rest + piece, width)
          lines.push(...taken.lines)
          rest = taken.rest
          assert.isFalse(rest.includes("\n"))
          assert.isAtMost(Style.widthOf(rest.trimEnd()), width)
        }
        assert.strictEqual([...lines, rest].join("").replace(/ /g, ""), pieces.join("").replace(/[ \n]/g, ""))
      }
    ))
  })
})

describe("duration", () => {
  it("counts tenths of seconds, then seconds, then minutes", () => {
    assert.deepStrictEqual(
      [0, 49, 50, 99_940, 99_960, 3_599_000, 3_600_000, 7_260_000].map(Style.duration),
      ["0.0 s", "0.0 s", "0.1 s", "99.9 s", "1 min 40 s", "59 min 59 s", "1 h 0 min", "2 h 1 min"]
    )
  })
})

describe("count", () => {
  it("has a plural", () => {
    assert.deepStrictEqual([0, 1, 2].map((number) => Style.count(number, "call")), ["0 calls", "1 call", "2 calls"])
  })
})
