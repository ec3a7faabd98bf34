/**
 * A promise an implementation has to keep, as a value: it can be run by any test runner, or by none.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"

/**
 * A broken promise: which, and what happened instead.
 *
 * @since 0.1.0
 * @category errors
 */
export class Violation extends Schema.TaggedError<Violation>("@allm/conformance/Violation")("Violation", {
  check: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `${this.check}: ${this.problem}`
  }
}

/**
 * One promise. `effect` never dies: whatever an implementation does becomes a `Violation`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Check {
  readonly name: string
  /** What is missing to look into it; the effect then looks into nothing. */
  readonly skipped: string | undefined
  readonly effect: Effect.Effect<void, Violation>
}

/**
 * How checks are made.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** How long a check may take, in real time, before it counts as hanging. Default 3 seconds. */
  readonly limit?: Duration.DurationInput | undefined
}

/**
 * Where a service keeps things. Each build of its layer opens the place anew, as another process would, and finds what
 * was put there before.
 *
 * @since 0.1.0
 * @category models
 */
export interface Place<A, E = never> {
  /** Makes a place for one check. It may hold what other checks left there. */
  readonly place: Effect.Effect<Layer.Layer<A, E>, E, Scope.Scope>
  /** Whether several may have it open at the same time. Default false. */
  readonly shared?: boolean | undefined
}

/**
 * Runs checks, one after the other unless told otherwise, and gives every broken promise.
 *
 * @example
 * ```ts
 * import * as Check from "@allm/conformance/Check"
 * import * as ToolResultEncoderChecks from "@allm/conformance/ToolResultEncoderChecks"
 * import { ToolResultEncoder } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const shouting = ToolResultEncoder.layer({
 *   encode: (value) => Effect.map(ToolResultEncoder.json.encode(value), (text) => text.toUpperCase())
 * })
 * const program = Check.violations(ToolResultEncoderChecks.make(shouting))
 *
 * Effect.runPromise(program).then((violations) =>
 *   assert.strictEqual(violations[0]?.check, "leaves a string as it is")
 * )
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const violations = (
  checks: ReadonlyArray<Check>,
  options?: { readonly concurrency?: number | "unbounded" | undefined }
): Effect.Effect<ReadonlyArray<Violation>> =>
  Effect.map(
    Effect.forEach(checks, (check) => Effect.either(check.effect), { concurrency: options?.concurrency }),
    (results) => results.flatMap((result) => result._tag === "Left" ? [result.left] : [])
  )
