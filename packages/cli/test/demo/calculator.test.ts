import { assert, describe, it } from "@effect/vitest"
import { Either, FastCheck } from "effect"
import { evaluate, names, print } from "../../src/internal/demo/calculator.ts"

const value = (text: string): string =>
  Either.match(evaluate(text), {
    onLeft: ({ detail, position }) => `${position}: ${detail}`,
    onRight: print
  })

describe("calculator", () => {
  for (
    const [expression, expected] of [
      ["2 * (3 + 4)^2", "98"],
      ["2 + 3 * 4", "14"],
      ["(2 + 3) * 4", "20"],
      ["10 - 4 - 3", "3"],
      ["100 / 10 / 5", "2"],
      ["2 ^ 3 ^ 2", "512"],
      ["-2^2", "-4"],
      ["(-2)^2", "4"],
      ["2^-1", "0.5"],
      ["--3", "3"],
      ["- -+-3", "-3"],
      ["2 ** 10", "1024"],
      ["17 % 5", "2"],
      ["-17 % 5", "-2"],
      ["0.1 + 0.2", "0.3"],
      [".5 + 1.", "1.5"],
      ["1e3 + 1_000", "2000"],
      ["6 × 7 ÷ 2 − 1", "20"],
      ["sqrt(16) + ABS(-3)", "7"],
      ["max(1, 2, 3) - min(4, 5)", "-1"],
      ["round(pi * 100) / 100", "3.14"],
      ["log(1000) + ln(e)", "4"]
    ] as const
  ) {
    it(`${expression} is ${expected}`, () => {
      assert.strictEqual(value(expression), expected)
    })
  }

  for (
    const [expression, problem] of [
      ["", "1: a number is missing at the end"],
      ["2 +", "4: a number is missing at the end"],
      ["2 * (3 + 4", "11: \")\" is missing at the end"],
      ["2 3", "3: expected an operator, found \"3\""],
      ["(2))", "4: expected an operator, found \")\""],
      ["2 + * 3", "5: expected a number, found \"*\""],
      ["1 / 0", "3: division by zero"],
      ["1 % (2 - 2)", "3: remainder by zero"],
      ["(-8)^0.5", "5: the power has no value there, or one that is too large"],
      ["sqrt(-1)", "1: sqrt has no value there"],
      ["ln(0)", "1: ln has no value there"],
      ["sqrt(1, 2)", "1: sqrt takes one number, not 2"],
      ["sqrt 4", "6: expected \"(\" after sqrt, found \"4\""],
      ["9^999", "2: the power has no value there, or one that is too large"],
      ["1e308 * 10", "7: the result is too large"],
      ["2 & 3", "3: \"&\" has no meaning here"],
      ["2 + 🎉", "5: \"🎉\" has no meaning here"],
      ["process.exit(1)", "8: \".\" has no meaning here"],
      ["globalThis", `1: "globalthis" is unknown; there are ${names.join(", ")}`],
      ["constructor(1)", `1: "constructor" is unknown; there are ${names.join(", ")}`]
    ] as const
  ) {
    it(`${JSON.stringify(expression)} has no value, at ${problem}`, () => {
      assert.strictEqual(value(expression), problem)
    })
  }

  it("refuses what is too long or nested too deeply, without an end of the stack", () => {
    assert.strictEqual(value("1+".repeat(600)), "1001: it is longer than 1000 characters")
    assert.include(value("(".repeat(900)), "nested too deeply")
    assert.include(value("2^".repeat(400) + "2"), "nested too deeply")
    assert.strictEqual(value("-".repeat(900) + "1"), "1")
  })

  interface Sum {
    readonly text: string
    readonly value: number
  }

  const sums = FastCheck.letrec<{ sum: Sum }>((tie) => ({
    sum: FastCheck.oneof(
      { maxDepth: 5, depthSize: "small" },
      FastCheck.integer({ min: 0, max: 1000 }).map((value) => ({ text: String(value), value })),
      FastCheck.tuple(tie("sum"), FastCheck.constantFrom("+", "-", "*"), tie("sum")).map(([left, sign, right]) => ({
        text: `(${left.text}) ${sign} (${right.text})`,
        value: sign === "+"
          ? left.value + right.value
          : sign === "-"
          ? left.value - right.value
          : left.value * right.value
      })),
      tie("sum").map(({ text, value }) => ({ text: `-(${text})`, value: -value }))
    )
  })).sum

  it("gives what was put together, whatever it was", () => {
    FastCheck.assert(FastCheck.property(sums, ({ text, value }) => {
      const found = evaluate(text)
      if (text.length > 1000) return Either.isLeft(found)
      return Either.isRight(found) && (found.right === value || Math.abs(found.right - value) === 0)
    }))
  })

  it("binds the way JavaScript does, powers of signs aside", () => {
    const signs = FastCheck.constantFrom("+", "-", "*", "/", "%")
    const numbers = FastCheck.integer({ min: 1, max: 99 })
    const chains = FastCheck.tuple(numbers, FastCheck.array(FastCheck.tuple(signs, numbers), { maxLength: 8 }))
    FastCheck.assert(FastCheck.property(chains, ([first, rest]) => {
      const text = [first, ...rest.flat()].join(" ")
      const expected = Number(new Function(`return ${text}`)())
      const found = evaluate(text)
      return Either.isRight(found) ? found.right === expected : /by zero|too large/.test(found.left.detail)
    }))
  })

  it("says of any text what it is worth, or where it is wrong", () => {
    const near = FastCheck.stringOf(FastCheck.constantFrom(..."0123456789.+-*/%^(), eEpi√π\u0000"))
    FastCheck.assert(FastCheck.property(FastCheck.oneof(near, FastCheck.fullUnicodeString()), (text) => {
      const found = evaluate(text)
      return Either.isRight(found)
        ? Number.isFinite(found.right)
        : found.left.detail !== "" && found.left.position >= 1 && found.left.position <= text.length + 1
    }))
  })
})
