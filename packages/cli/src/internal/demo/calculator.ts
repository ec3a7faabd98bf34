/**
 * Arithmetic as people write it, read and worked out without running any of it as code.
 */
import * as Either from "effect/Either"

/** Why an expression has no value, and where: `position` counts characters from 1. */
export interface Problem {
  readonly detail: string
  readonly position: number
}

type Token =
  | { readonly kind: "number"; readonly value: number; readonly at: number; readonly text: string }
  | { readonly kind: "name" | "sign" | "end"; readonly at: number; readonly text: string }

const constants: ReadonlyMap<string, number> = new Map([
  ["pi", Math.PI],
  ["π", Math.PI],
  ["tau", 2 * Math.PI],
  ["e", Math.E]
])

/** What a function does, and how many arguments it takes at least and at most. */
interface Function {
  readonly apply: (...values: ReadonlyArray<number>) => number
  readonly least: number
  readonly most: number
}

const one = (apply: (value: number) => number): Function => ({ apply: (value) => apply(value!), least: 1, most: 1 })
const several = (apply: (...values: ReadonlyArray<number>) => number): Function => ({ apply, least: 1, most: 100 })

const functions: ReadonlyMap<string, Function> = new Map([
  ["sqrt", one(Math.sqrt)],
  ["abs", one(Math.abs)],
  ["round", one(Math.round)],
  ["floor", one(Math.floor)],
  ["ceil", one(Math.ceil)],
  ["sin", one(Math.sin)],
  ["cos", one(Math.cos)],
  ["tan", one(Math.tan)],
  ["exp", one(Math.exp)],
  ["ln", one(Math.log)],
  ["log", one(Math.log10)],
  ["min", several(Math.min)],
  ["max", several(Math.max)]
])

/** The names an expression may use. */
export const names: ReadonlyArray<string> = [...constants.keys(), ...functions.keys()]

const signs: ReadonlyMap<string, string> = new Map([["×", "*"], ["·", "*"], ["÷", "/"], ["−", "-"], ["**", "^"]])

const spaces = /\s+/y
const numbers = /(?:\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y
const words = /[\p{L}][\p{L}\d]*/uy
const marks = /\*\*|[-+*/%^(),×·÷−]/y

const problem = (detail: string, at: number): Problem => ({ detail, position: at + 1 })

const tokenize = (text: string): Either.Either<ReadonlyArray<Token>, Problem> => {
  const tokens: Array<Token> = []
  let at = 0
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at
    const found = pattern.exec(text)?.[0]
    if (found !== undefined) at += found.length
    return found
  }
  while (at < text.length) {
    if (take(spaces) !== undefined) continue
    const start = at
    const digits = take(numbers)
    if (digits !== undefined) {
      tokens.push({ kind: "number", value: Number(digits.replaceAll("_", "")), at: start, text: digits })
      continue
    }
    const name = take(words)
    const sign = name === undefined ? take(marks) : undefined
    if (name !== undefined) tokens.push({ kind: "name", at: start, text: name.toLowerCase() })
    else if (sign !== undefined) tokens.push({ kind: "sign", at: start, text: signs.get(sign) ?? sign })
    else return Either.left(problem(`${quoted(text, at)} has no meaning here`, at))
  }
  tokens.push({ kind: "end", at, text: "" })
  return Either.right(tokens)
}

const quoted = (text: string, at: number): string => JSON.stringify(String.fromCodePoint(text.codePointAt(at)!))

// Deep enough for any person, and far from the end of the stack.
const deepest = 100

type Value = Either.Either<number, Problem>

/** Reads by precedence: sums, products, signs, powers, and what stands alone. A power binds to the right. */
class Reader {
  private next = 0
  private depth = 0
  private readonly tokens: ReadonlyArray<Token>

  constructor(tokens: ReadonlyArray<Token>) {
    this.tokens = tokens
  }

  private get token(): Token {
    return this.tokens[this.next]!
  }

  private takes(...texts: ReadonlyArray<string>): Token | undefined {
    const token = this.token
    if (token.kind !== "sign" || !texts.includes(token.text)) return undefined
    this.next++
    return token
  }

  all(): Value {
    return Either.flatMap(
      this.sum(),
      (value) => this.token.kind === "end" ? Either.right(value) : Either.left(this.unexpected("an operator"))
    )
  }

  private unexpected(wanted: string): Problem {
    const { at, kind, text } = this.token
    return problem(
      kind === "end" ? `${wanted} is missing at the end` : `expected ${wanted}, found ${JSON.stringify(text)}`,
      at
    )
  }

  private chain(part: () => Value, ...texts: ReadonlyArray<string>): Value {
    let left = part()
    while (Either.isRight(left)) {
      const sign = this.takes(...texts)
      if (sign === undefined) return left
      const value = left.right
      left = Either.flatMap(part(), (right) => operate(sign, value, right))
    }
    return left
  }

  private sum(): Value {
    if (++this.depth > deepest) return Either.left(problem("it is nested too deeply", this.token.at))
    const value = this.chain(() => this.product(), "+", "-")
    this.depth--
    return value
  }

  private product(): Value {
    return this.chain(() => this.signed(), "*", "/", "%")
  }

  /** A sign binds less than a power, so that -2^2 is -4. */
  private signed(): Value {
    let factor = 1
    let sign = this.takes("-", "+")
    while (sign !== undefined) {
      if (sign.text === "-") factor = -factor
      sign = this.takes("-", "+")
    }
    return Either.map(this.power(), (value) => factor * value)
  }

  private power(): Value {
    return Either.flatMap(this.atom(), (base): Value => {
      const sign = this.takes("^")
      if (sign === undefined) return Either.right(base)
      if (++this.depth > deepest) return Either.left(problem("it is nested too deeply", sign.at))
      const value = Either.flatMap(this.signed(), (exponent) => operate(sign, base, exponent))
      this.depth--
      return value
    })
  }

  private atom(): Value {
    const token = this.token
    if (token.kind === "number") {
      this.next++
      return Either.right(token.value)
    }
    if (token.kind === "name") return this.name(token)
    return this.takes("(") === undefined
      ? Either.left(this.unexpected("a number"))
      : Either.flatMap(this.sum(), (value) => Either.map(this.closed(), () => value))
  }

  private closed(): Either.Either<void, Problem> {
    return this.takes(")") === undefined ? Either.left(this.unexpected("\")\"")) : Either.right(undefined)
  }

  private name(token: Token): Value {
    this.next++
    const constant = constants.get(token.text)
    if (constant !== undefined) return Either.right(constant)
    const known = functions.get(token.text)
    if (known === undefined) {
      return Either.left(problem(`${JSON.stringify(token.text)} is unknown; there are ${names.join(", ")}`, token.at))
    }
    if (this.takes("(") === undefined) return Either.left(this.unexpected(`"(" after ${token.text}`))
    return Either.flatMap(this.values(), (values) => {
      if (values.length > known.most) {
        return Either.left(problem(`${token.text} takes one number, not ${values.length}`, token.at))
      }
      return finite(known.apply(...values), `${token.text} has no value there`, token.at)
    })
  }

  private values(): Either.Either<ReadonlyArray<number>, Problem> {
    const values: Array<number> = []
    do {
      const value = this.sum()
      if (Either.isLeft(value)) return Either.left(value.left)
      values.push(value.right)
    } while (this.takes(",") !== undefined)
    return Either.map(this.closed(), () => values)
  }
}

const operate = (sign: Token, left: number, right: number): Value => {
  switch (sign.text) {
    case "+":
      return finite(left + right, tooLarge, sign.at)
    case "-":
      return finite(left - right, tooLarge, sign.at)
    case "*":
      return finite(left * right, tooLarge, sign.at)
    case "/":
      return right === 0 ? Either.left(problem("division by zero", sign.at)) : finite(left / right, tooLarge, sign.at)
    case "%":
      return right === 0 ? Either.left(problem("remainder by zero", sign.at)) : Either.right(left % right)
    default:
      return finite(left ** right, "the power has no value there, or one that is too large", sign.at)
  }
}

const tooLarge = "the result is too large"

const finite = (value: number, detail: string, at: number): Value =>
  Number.isFinite(value) ? Either.right(value) : Either.left(problem(detail, at))

const longest = 1000

/** Works an expression out: `+ - * / % ^`, parentheses, signs, a few constants and functions. */
export const evaluate = (text: string): Either.Either<number, Problem> =>
  text.length > longest
    ? Either.left(problem(`it is longer than ${longest} characters`, longest))
    : Either.flatMap(tokenize(text), (tokens) => new Reader(tokens).all())

/** A number as a person would write it: 0.1 + 0.2 is 0.3. */
export const print = (value: number): string => String(Number(value.toPrecision(12)))
