/**
 * What happens to the batch when a call fails.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { ToolCall } from "./ToolCall.ts"
import type { ToolError } from "./ToolError.ts"

/**
 * Marks the decisions made here.
 *
 * @since 0.1.0
 * @category models
 */
export const TypeId: unique symbol = Symbol.for("@allm/core/OnToolError")

/**
 * The type of the mark that decisions carry.
 *
 * @since 0.1.0
 * @category models
 */
export type TypeId = typeof TypeId

/**
 * What a policy function decides. The words of the plain policies mean the same here.
 *
 * @since 0.1.0
 * @category models
 */
export type Decision =
  | "continue"
  | "halt"
  | { readonly [TypeId]: TypeId; readonly _tag: "Continue" }
  | { readonly [TypeId]: TypeId; readonly _tag: "ContinueWith"; readonly value: unknown }
  | { readonly [TypeId]: TypeId; readonly _tag: "Halt" }

/**
 * A policy: `"continue"` tells the model, `"halt"` stops the loop, a function decides. It is asked once per failure; if it
 * throws, fails or returns something else, the batch halts with `InvalidReturn` and it is not asked again.
 *
 * @since 0.1.0
 * @category models
 */
export type OnToolError<E = unknown, R = never> =
  | "continue"
  | "halt"
  | ((call: ToolCall, error: ToolError<E>) => Decision | Effect.Effect<Decision, unknown, R>)

const continue_ = (): Decision => ({ [TypeId]: TypeId, _tag: "Continue" })

export {
  /**
   * Tells the model about the failure and goes on.
   *
   * The example of {@link continueWith} tells the model about every other failure.
   *
   * @since 0.1.0
   * @category constructors
   */
  continue_ as continue
}

/**
 * Goes on as if the tool had succeeded with `value`.
 *
 * @example
 * ```ts
 * import { OnToolError, Tool, ToolCall, ToolRunner } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const flaky = Tool.make("flaky", { description: "Fails", handler: () => Effect.fail("offline") })
 *
 * const { messages } = Effect.runSync(
 *   ToolRunner.run([ToolCall.make({ id: "c0", name: "flaky", arguments: {} })], [flaky], {
 *     onToolError: (_call, error) =>
 *       error._tag === "HandlerFailed" ? OnToolError.continueWith({ cached: true }) : OnToolError.continue()
 *   })
 * )
 *
 * assert.strictEqual(messages[0]?.content, "{\"cached\":true}")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const continueWith = (value: unknown): Decision => ({ [TypeId]: TypeId, _tag: "ContinueWith", value })

/**
 * Stops the loop after this batch, with reason `tool_error`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const halt: Decision = { [TypeId]: TypeId, _tag: "Halt" }

/**
 * Tells whether a value is a decision made here.
 *
 * @example
 * ```ts
 * import { OnToolError } from "@allm/core"
 *
 * assert.strictEqual(OnToolError.isDecision("continue"), true)
 * assert.strictEqual(OnToolError.isDecision(OnToolError.continueWith(0)), true)
 * assert.strictEqual(OnToolError.isDecision({ _tag: "Continue" }), false)
 * ```
 *
 * @since 0.1.0
 * @category guards
 */
export const isDecision = (value: unknown): value is Decision =>
  value === "continue" || value === "halt" ||
  (Predicate.hasProperty(value, TypeId) && Predicate.hasProperty(value, "_tag") && tags.has(value._tag))

const tags: ReadonlySet<unknown> = new Set(["Continue", "ContinueWith", "Halt"])
