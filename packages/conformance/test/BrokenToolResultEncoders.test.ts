import { Check, ToolResultEncoderChecks } from "@allm/conformance"
import { ToolError, ToolResultEncoder } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"

type Encode = ToolResultEncoder.Service["encode"]

const { encode } = ToolResultEncoder.json

const strings = "leaves a string as it is"
const nothing = "writes null for undefined"
const json = "writes every other value as JSON that reads back the same"
const forms = "gives dates, maps, sets, URLs, errors, bytes and toJSON their usual form"
const paths = "fails with the path of what has no text"
const throwing = "fails, and does not crash, on what throws when it is read"
const secrets = "keeps what a value threw out of its failure"
const total = "gives one text or one EncodingFailed, whatever the value"
const pure = "gives the same value the same text, also at the same time"
const untouched = "leaves the value as it was"

const failed = (path: ReadonlyArray<string | number>, detail: string) =>
  Effect.fail(new ToolError.EncodingFailed({ path, detail }))

// A fault that nobody notices is no proof.
type Noticed = readonly [string, ...Array<string>]

/** What is wrong with an encoder, the encoder, and the checks that have to notice. */
const broken: ReadonlyArray<readonly [fault: string, encode: Encode, noticed: Noticed]> = [
  ["quotes strings", (value) => typeof value === "string" ? Effect.succeed(JSON.stringify(value)) : encode(value), [
    strings,
    json
  ]],
  ["trims strings", (value) => typeof value === "string" ? Effect.succeed(value.trim()) : encode(value), [strings]],
  ["says nothing for undefined", (value) => value === undefined ? Effect.succeed("") : encode(value), [nothing, total]],
  [
    "gives no text for undefined",
    (value) => value === undefined ? Effect.succeed(undefined as unknown as string) : encode(value),
    [nothing, total, pure]
  ],
  [
    "prints what it should encode",
    (value) => typeof value === "string" || value === undefined ? encode(value) : Effect.succeed(`[${typeof value}]`),
    [json, forms, paths, throwing, total]
  ],
  [
    "knows only JSON.stringify",
    (value) =>
      typeof value === "string"
        ? Effect.succeed(value)
        : Effect.sync(() => JSON.stringify(value) ?? "null"),
    [forms, paths, throwing, total, pure]
  ],
  ["crashes where it should fail", (value) => Effect.orDie(encode(value)), [paths, throwing, total, pure]],
  ["does not tell where", (value) => Effect.catchAll(encode(value), ({ detail }) => failed([], detail)), [paths]],
  [
    "stands in for what it cannot encode",
    (value) => Effect.orElseSucceed(encode(value), () => "\"[not encodable]\""),
    [paths, throwing]
  ],
  [
    "tells what a value threw",
    (value) => {
      // The only word a thrown error says.
      const thrown = Effect.flip(Effect.try(() => JSON.stringify(value)))
      return Effect.catchAll(
        encode(value),
        ({ path }) =>
          Effect.flatMap(
            Effect.orElseSucceed(thrown, () => new Error("no form")),
            (error) => failed(path, String(error instanceof Error && "cause" in error ? error.cause ?? error : error))
          )
      )
    },
    [secrets]
  ],
  [
    "counts",
    (() => {
      let count = 0
      return (value) => typeof value === "number" ? Effect.succeed(`${" ".repeat(count++)}${value}`) : encode(value)
    })(),
    [total, pure]
  ],
  [
    "turns lists around in place",
    (value) =>
      Effect.zipRight(
        Effect.ignore(Effect.try(() => Array.isArray(value) && value.reverse())),
        Effect.suspend(() => encode(value))
      ),
    [pure, untouched]
  ]
]

const noticedBy = (layer: Layer.Layer<ToolResultEncoder.ToolResultEncoder, string>) =>
  Effect.map(
    Check.violations(ToolResultEncoderChecks.make(layer), { concurrency: "unbounded" }),
    (violations) => violations.map((violation) => violation.check)
  )

describe("ToolResultEncoderChecks", () => {
  for (const [fault, encode, noticed] of broken) {
    it.effect(`notice an encoder that ${fault}`, () =>
      Effect.gen(function*() {
        const found = yield* noticedBy(ToolResultEncoder.layer({ encode }))

        assert.deepStrictEqual(found, [...noticed])
      }))
  }

  it.effect("notice a layer that cannot be built", () =>
    Effect.gen(function*() {
      const checks = ToolResultEncoderChecks.make(Layer.fail("no connection"))
      const violations = yield* Check.violations(checks)

      assert.strictEqual(violations.length, checks.length)
      assert.strictEqual(
        violations[0]?.message,
        "leaves a string as it is: the layer cannot be built: \"no connection\""
      )
    }))

  it.effect("are each needed by a fault", () =>
    Effect.sync(() => {
      const names = ToolResultEncoderChecks.make(ToolResultEncoder.layerJson()).map((check) => check.name)

      assert.deepStrictEqual(names.filter((name) => broken.every(([, , noticed]) => !noticed.includes(name))), [])
    }))
})
