/**
 * What every encoder of tool results has to do, as checks.
 *
 * @since 0.1.0
 */
import { ToolError, ToolResultEncoder } from "@allm/core"
import * as Cause from "effect/Cause"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Check, Options } from "./Check.ts"
import { check, each, ensure, type Problem, render, same } from "./internal/check.ts"

type Encoder = ToolResultEncoder.Service

/**
 * The checks of an encoder. Each builds the layer anew.
 *
 * @example
 * ```ts
 * import * as Check from "@allm/conformance/Check"
 * import * as ToolResultEncoderChecks from "@allm/conformance/ToolResultEncoderChecks"
 * import { ToolResultEncoder } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const checks = ToolResultEncoderChecks.make(ToolResultEncoder.layerJson())
 *
 * assert.deepStrictEqual(await Effect.runPromise(Check.violations(checks)), [])
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <E>(
  layer: Layer.Layer<ToolResultEncoder.ToolResultEncoder, E>,
  options?: Options
): ReadonlyArray<Check> => {
  const built: Effect.Effect<Encoder, Problem, Scope.Scope> = Effect.mapBoth(Layer.build(layer), {
    onFailure: (error) => `the layer cannot be built: ${render(error)}`,
    onSuccess: Context.get(ToolResultEncoder.ToolResultEncoder)
  })
  const promise = (name: string, body: (encoder: Encoder) => Effect.Effect<void, Problem>): Check =>
    check(name, Effect.flatMap(built, body), options)

  return [
    promise(
      "leaves a string as it is",
      (encoder) =>
        each(strings(), (text) => Effect.flatMap(textOf(encoder, text), (encoded) => same("the text", encoded, text)))
    ),

    promise(
      "writes null for undefined",
      (encoder) => Effect.flatMap(textOf(encoder, undefined), (encoded) => same("the text", encoded, "null"))
    ),

    promise(
      "writes every other value as JSON that reads back the same",
      (encoder) =>
        each(
          jsonValues(),
          (value) => Effect.flatMap(jsonOf(encoder, value), (read) => same("what reads back", read, value))
        )
    ),

    promise(
      "gives dates, maps, sets, URLs, errors, bytes and toJSON their usual form",
      (encoder) =>
        each(
          usualForms(),
          ([value, form]) =>
            Effect.flatMap(jsonOf(encoder, value), (read) => same(`the form of ${render(value)}`, read, form))
        )
    ),

    promise(
      "fails with the path of what has no text",
      (encoder) =>
        each(
          culprits(),
          ([kind, value, path]) =>
            Effect.flatMap(failureOf(encoder, value, kind), (error) => same(`the path of ${kind}`, error.path, path))
        )
    ),

    promise(
      "fails, and does not crash, on what throws when it is read",
      (encoder) => each(unreadable(), ([kind, value]) => failureOf(encoder, value, kind))
    ),

    promise("keeps what a value threw out of its failure", (encoder) =>
      each(unreadable(), ([kind, value]) =>
        // A crash is the business of another check.
        Effect.flatMap(Effect.either(settle(encoder, value)), (settled) => {
          const shown = Either.isRight(settled) ? told(settled.right) : ""
          return ensure(!shown.includes(secret), () => `the failure of ${kind} says ${shown}`)
        }))),

    promise(
      "gives one text or one EncodingFailed, whatever the value",
      (encoder) =>
        each(
          [...anything(), nested(50_000)],
          (value) =>
            Effect.flatMap(settle(encoder, value), (settled) =>
              Either.isLeft(settled) || typeof value === "string"
                ? Effect.void
                : ensure(isJson(settled.right), () => `${render(value)} became ${settled.right}, which is not JSON`))
        )
    ),

    promise("gives the same value the same text, also at the same time", (encoder) =>
      Effect.gen(function*() {
        const values = anything()
        const once = yield* Effect.forEach(values, (value) => settle(encoder, value))
        const again = yield* Effect.forEach(values, (value) => settle(encoder, value), { concurrency: "unbounded" })
        for (let i = 0; i < values.length; i++) {
          yield* same(`the second text of ${render(values[i])}`, told(again[i]!), told(once[i]!))
        }
      })),

    promise(
      "leaves the value as it was",
      (encoder) =>
        each([...jsonValues(), ...usualForms().map(([value]) => value)], (value) =>
          Effect.suspend(() => {
            const before = render(value)
            return Effect.zipRight(
              settle(encoder, value),
              Effect.suspend(() => same("the value", render(value), before))
            )
          }))
    )
  ]
}

type Settled = Either.Either<string, ToolError.EncodingFailed>

/** One text or one `EncodingFailed`; everything else is a problem. */
const settle = (encoder: Encoder, value: unknown): Effect.Effect<Settled, Problem> =>
  Effect.flatMap(Effect.exit(Effect.suspend(() => encoder.encode(value))), (exit): Effect.Effect<Settled, Problem> => {
    if (Exit.isSuccess(exit)) {
      return typeof exit.value === "string"
        ? Effect.succeed(Either.right(exit.value))
        : Effect.fail(`${render(value)} became ${render(exit.value)}, which is no text`)
    }
    const failures = Chunk.toReadonlyArray(Cause.failures(exit.cause))
    const [error] = failures
    return failures.length === 1 && Chunk.isEmpty(Cause.defects(exit.cause)) && isEncodingFailed(error)
      ? Effect.succeed(Either.left(error))
      : Effect.fail(`${render(value)} ended in ${Cause.pretty(exit.cause)}`)
  })

const isEncodingFailed = (error: unknown): error is ToolError.EncodingFailed =>
  ToolError.isToolError(error) && error._tag === "EncodingFailed"

const told = (settled: Settled): string =>
  Either.isRight(settled) ? `text ${settled.right}` : `failure ${settled.left.message}`

const textOf = (encoder: Encoder, value: unknown): Effect.Effect<string, Problem> =>
  Effect.flatMap(settle(encoder, value), (settled) =>
    Either.isRight(settled)
      ? Effect.succeed(settled.right)
      : Effect.fail(`${render(value)} is refused: ${settled.left.message}`))

const jsonOf = (encoder: Encoder, value: unknown): Effect.Effect<unknown, Problem> =>
  Effect.flatMap(textOf(encoder, value), (text) =>
    Either.mapLeft(
      // A string goes as it is, so it is its own text.
      Either.try((): unknown => typeof value === "string" ? text : JSON.parse(text)),
      () => `${render(value)} became ${text}, which is not JSON`
    ))

const failureOf = (encoder: Encoder, value: unknown, kind: string): Effect.Effect<ToolError.EncodingFailed, Problem> =>
  Effect.flatMap(settle(encoder, value), (settled) =>
    Either.isLeft(settled)
      ? Effect.succeed(settled.left)
      : Effect.fail(`${kind} became ${settled.right}`))

const isJson = (text: string): boolean => Either.isRight(Either.try((): unknown => JSON.parse(text)))

// The same samples on every run, made anew for every check: a broken encoder may change them.
const samples = <A>(arbitrary: FastCheck.Arbitrary<A>, numRuns = 100): ReadonlyArray<A> =>
  FastCheck.sample(arbitrary, { numRuns, seed: 1 })

const strings = (): ReadonlyArray<string> => [
  "",
  "null",
  "\"quoted\"",
  "{\"a\":1}",
  " line\nbreak\t",
  "Grüße 👋",
  "\ud800 alone",
  "\u0000",
  ...samples(FastCheck.string({ unit: "grapheme" }))
]

// -0 is the one JSON value that its own text does not keep.
const jsonValues = (): ReadonlyArray<unknown> => [
  null,
  0,
  false,
  [],
  {},
  { "": { "a b": [1, 2.5, -3e20] } },
  ...samples(FastCheck.jsonValue()).filter((value) => !render(value).includes("-0"))
]

const epoch = DateTime.toDate(DateTime.unsafeMake(0))

const usualForms = (): ReadonlyArray<readonly [value: unknown, form: unknown]> => [
  [epoch, "1970-01-01T00:00:00.000Z"],
  [{ at: [epoch] }, { at: ["1970-01-01T00:00:00.000Z"] }],
  [new Map([["a", 1]]), { a: 1 }],
  [new Set([1, 2]), [1, 2]],
  [new URL("https://allm.example/a?b=c"), "https://allm.example/a?b=c"],
  [new TypeError("no"), { name: "TypeError", message: "no" }],
  [new Uint8Array([1, 2, 255]), [1, 2, 255]],
  [{ toJSON: () => ({ is: "custom" }) }, { is: "custom" }]
]

const cycle = (): unknown => {
  const root: { a: Record<string, unknown> } = { a: {} }
  root.a["self"] = root
  return root
}

const culprits = (): ReadonlyArray<readonly [kind: string, value: unknown, path: ReadonlyArray<string | number>]> => [
  ["a bigint", 1n, []],
  ["a bigint inside", { totals: [1, 2n] }, ["totals", 1]],
  ["a function inside", { rows: [{ run: () => {} }] }, ["rows", 0, "run"]],
  ["a symbol inside", [Symbol.iterator], [0]],
  ["a cycle", cycle(), ["a", "self"]],
  ["a bigint in a map", new Map([["big", 1n]]), ["big"]]
]

const secret = "hunter2"

const throwing = (): never => {
  throw new Error(secret)
}

const unreadable = (): ReadonlyArray<readonly [kind: string, value: unknown]> => {
  const revoked = Proxy.revocable({}, {})
  revoked.revoke()
  return [
    ["a getter that throws", Object.defineProperty({}, "a", { enumerable: true, get: throwing })],
    ["a toJSON that throws", { toJSON: throwing }],
    ["a proxy that throws", { inside: new Proxy({}, { get: throwing, ownKeys: throwing }) }],
    ["a revoked proxy", revoked.proxy]
  ]
}

const anything = (): ReadonlyArray<unknown> => [
  NaN,
  Infinity,
  -0,
  Symbol.iterator,
  ...samples(FastCheck.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withTypedArray: true,
    withSparseArray: true,
    withNullPrototype: true,
    withObjectString: true
  }))
]

const nested = (depth: number): unknown => {
  let value: unknown = []
  for (let i = 0; i < depth; i++) value = [value]
  return value
}
