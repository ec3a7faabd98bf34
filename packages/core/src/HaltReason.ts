/**
 * Why a run or a chat ended.
 *
 * @since 0.1.0
 */

/**
 * The reasons that belong to the library. A handler that halts with one of them is refused, so that a reason always says
 * what really happened.
 *
 * @since 0.1.0
 * @category models
 */
export const reserved = [
  "completed",
  "max_turns",
  "halt_when",
  "ask_user",
  "tool_error",
  "manual_tool_calls",
  "approval",
  "max_tool_calls",
  "max_tokens",
  "max_duration",
  "repeated_call",
  "error",
  "cancelled"
] as const

/**
 * A reason that only the library may give.
 *
 * @since 0.1.0
 * @category models
 */
export type Reserved = typeof reserved[number]

/**
 * A reserved reason, or one of a tool's own.
 *
 * @since 0.1.0
 * @category models
 */
export type HaltReason = Reserved | (string & {})

/**
 * Tells whether a reason belongs to the library.
 *
 * @example
 * ```ts
 * import { HaltReason } from "@allm/core"
 *
 * assert.strictEqual(HaltReason.isReserved("max_turns"), true)
 * assert.strictEqual(HaltReason.isReserved("plan_submitted"), false)
 * ```
 *
 * @since 0.1.0
 * @category guards
 */
export const isReserved = (reason: string): reason is Reserved => (reserved as ReadonlyArray<string>).includes(reason)
