/**
 * The four explicit results of a tool handler.
 *
 * A handler may return a bare value: that is `ok(value)`. The other three say something a value cannot.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { JsonObject, Opaque } from "./internal/json.ts"

/**
 * Marks the results made here, so that no value of a handler is taken for one.
 *
 * @since 0.1.0
 * @category models
 */
export const TypeId: unique symbol = Symbol.for("@allm/core/ToolResult")

/**
 * The type of the mark that results carry.
 *
 * @since 0.1.0
 * @category models
 */
export type TypeId = typeof TypeId

/**
 * A success. `encoded` is the value in the form of the tool's `success` schema, when it has one.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Ok = Schema.TaggedStruct("Ok", {
  value: Opaque,
  encoded: Schema.optionalWith(Opaque, { exact: true })
})

/**
 * A success, with its value as the handler gave it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Ok<out A = unknown> {
  readonly _tag: "Ok"
  readonly value: A
  readonly encoded?: unknown
}

/**
 * A failure the handler reports; the same as failing with `reason`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Failure<out E = unknown> {
  readonly [TypeId]: TypeId
  readonly _tag: "Failure"
  readonly reason: E
}

/**
 * A question to the person, which suspends the run.
 *
 * @since 0.1.0
 * @category schemas
 */
export const AskUser = Schema.TaggedStruct("AskUser", { question: Schema.String, options: JsonObject })

/**
 * A question to the person, as a call came to it.
 *
 * @since 0.1.0
 * @category models
 */
export interface AskUser extends Schema.Schema.Type<typeof AskUser> {}

/**
 * The end of the loop, with a reason of the tool's own and a result for the history.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Halt = Schema.TaggedStruct("Halt", { reason: Schema.String, result: Opaque })

/**
 * The end of the loop, as a call came to it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Halt extends Schema.Schema.Type<typeof Halt> {}

/**
 * How a call ended when nothing went wrong.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ToolOutcome = Schema.Union(Ok, AskUser, Halt)

/**
 * How a call ended when nothing went wrong: a value, a question or the end of the loop.
 *
 * @since 0.1.0
 * @category models
 */
export type ToolOutcome<A = unknown> = Ok<A> | AskUser | Halt

/**
 * What a handler may return instead of a bare value.
 *
 * @since 0.1.0
 * @category models
 */
export type ToolResult<A = unknown, E = unknown> =
  | (Ok<A> & { readonly [TypeId]: TypeId })
  | Failure<E>
  | (AskUser & { readonly [TypeId]: TypeId })
  | (Halt & { readonly [TypeId]: TypeId })

// The brand sits on the prototype: results compare and print as the plain data they are.
abstract class Branded {
  get [TypeId](): TypeId {
    return TypeId
  }
}

class OkImpl<A> extends Branded implements Ok<A> {
  readonly _tag = "Ok"
  readonly value: A
  constructor(value: A) {
    super()
    this.value = value
  }
}

class FailureImpl<E> extends Branded implements Failure<E> {
  readonly _tag = "Failure"
  readonly reason: E
  constructor(reason: E) {
    super()
    this.reason = reason
  }
}

class AskUserImpl extends Branded implements AskUser {
  readonly _tag = "AskUser"
  readonly question: string
  readonly options: { readonly [key: string]: unknown }
  constructor(question: string, options: { readonly [key: string]: unknown }) {
    super()
    this.question = question
    this.options = options
  }
}

class HaltImpl extends Branded implements Halt {
  readonly _tag = "Halt"
  readonly reason: string
  readonly result: unknown
  constructor(reason: string, result: unknown) {
    super()
    this.reason = reason
    this.result = result
  }
}

/**
 * Succeeds with a value, also with one that would otherwise be taken for an Effect, a promise or a result.
 *
 * @example
 * ```ts
 * import { ToolResult } from "@allm/core"
 *
 * assert.deepStrictEqual(ToolResult.ok({ degrees: 21 }).value, { degrees: 21 })
 * // As a bare value this promise would be awaited.
 * assert.ok(ToolResult.ok(Promise.resolve(1)).value instanceof Promise)
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const ok = <A>(value: A): Ok<A> & { readonly [TypeId]: TypeId } => new OkImpl(value)

/**
 * Reports a failure. Returning it and failing with `reason` are the same thing.
 *
 * @example
 * ```ts
 * import { ToolResult } from "@allm/core"
 *
 * assert.strictEqual(ToolResult.error("no such city").reason, "no such city")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const error = <E>(reason: E): Failure<E> => new FailureImpl(reason)

/**
 * Asks the person. The call's message says that an answer is awaited; siblings keep their results.
 *
 * @example
 * ```ts
 * import { ToolResult } from "@allm/core"
 *
 * const question = ToolResult.askUser("Which city?", { choices: ["Oslo", "Rome"] })
 *
 * assert.deepStrictEqual(question.options, { choices: ["Oslo", "Rome"] })
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const askUser = (
  question: string,
  options: { readonly [key: string]: unknown } = {}
): AskUser & { readonly [TypeId]: TypeId } => new AskUserImpl(question, options)

/**
 * Ends the loop after this turn. The result becomes the call's message, the reason the run's.
 *
 * @example
 * ```ts
 * import { Tool, ToolCall, ToolResult, ToolRunner } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const submit = Tool.make("submit_plan", {
 *   description: "Hands in the plan",
 *   handler: () => ToolResult.halt("plan_submitted", "thank you")
 * })
 *
 * const { halt, messages } = Effect.runSync(
 *   ToolRunner.run([ToolCall.make({ id: "c0", name: "submit_plan", arguments: {} })], [submit])
 * )
 *
 * assert.strictEqual(halt?.reason, "plan_submitted")
 * assert.strictEqual(messages[0]?.content, "thank you")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const halt = (reason: string, result: unknown): Halt & { readonly [TypeId]: TypeId } =>
  new HaltImpl(reason, result)

/**
 * Tells whether a value was made by one of the constructors here.
 *
 * @example
 * ```ts
 * import { ToolResult } from "@allm/core"
 *
 * assert.strictEqual(ToolResult.isToolResult(ToolResult.ok(1)), true)
 * assert.strictEqual(ToolResult.isToolResult({ _tag: "Ok", value: 1 }), false)
 * ```
 *
 * @since 0.1.0
 * @category guards
 */
export const isToolResult = (value: unknown): value is ToolResult => Predicate.hasProperty(value, TypeId)
