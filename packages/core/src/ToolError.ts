/**
 * Every way a tool call can go wrong, as a closed union of tagged errors.
 *
 * `HandlerFailed` is what a handler reported; every other tag is what happened to it.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { formatPath, Opaque, printOrStandIn } from "./internal/json.ts"

const constant = <const L extends string>(literal: L) =>
  Schema.Literal(literal).pipe(
    Schema.optional,
    Schema.withDefaults({ constructor: () => literal, decoding: () => literal })
  )

const ids = {
  toolName: Schema.optionalWith(Schema.String, { exact: true }),
  toolCallId: Schema.optionalWith(Schema.String, { exact: true })
}

// Schema.Defect, but it also takes what JSON.stringify chokes on.
const Thrown: Schema.Schema<unknown> = Schema.transform(Schema.Defect, Schema.Unknown, {
  strict: true,
  decode: (defect) => defect,
  encode: (thrown) => typeof thrown === "object" && !(thrown instanceof Error) ? printOrStandIn(thrown) : thrown
})

const KeptCause = Schema.optionalWith(Schema.Cause({ error: Opaque, defect: Thrown }), { exact: true })

const byExecutor = <const R extends string>(reason: R) => ({
  ...ids,
  reason: constant(reason),
  origin: constant("executor"),
  cause: KeptCause
})

const sentence = (error: { readonly toolName?: string; readonly reason: string }, detail?: string): string => {
  const head = error.toolName === undefined ? "tool error" : `tool error (${error.toolName})`
  return `${head}: ${error.reason}${detail === undefined ? "" : `: ${detail}`}`
}

/**
 * The handler reported a failure: `failure` holds it untouched.
 *
 * @since 0.1.0
 * @category errors
 */
export class HandlerFailed
  extends Schema.TaggedError<HandlerFailed>("@allm/core/ToolError/HandlerFailed")("HandlerFailed", {
    ...ids,
    reason: constant("handler_failed"),
    origin: constant("handler"),
    failure: Opaque,
    cause: KeptCause
  })
{
  override get message(): string {
    return sentence(this)
  }
}

/**
 * The handler threw, its promise was rejected, or its effect died. The cause is for operators.
 *
 * @since 0.1.0
 * @category errors
 */
export class HandlerRaised extends Schema.TaggedError<HandlerRaised>("@allm/core/ToolError/HandlerRaised")(
  "HandlerRaised",
  byExecutor("handler_raised")
) {
  override get message(): string {
    return sentence(this)
  }
}

/**
 * The handler interrupted itself, or its fiber ended without a result.
 *
 * @since 0.1.0
 * @category errors
 */
export class HandlerExit extends Schema.TaggedError<HandlerExit>("@allm/core/ToolError/HandlerExit")(
  "HandlerExit",
  byExecutor("handler_exit")
) {
  override get message(): string {
    return sentence(this)
  }
}

/**
 * The call was over its limit. `abandoned` tells whether its fiber could not be stopped in time.
 *
 * @since 0.1.0
 * @category errors
 */
export class Timeout extends Schema.TaggedError<Timeout>("@allm/core/ToolError/Timeout")("Timeout", {
  ...byExecutor("timeout"),
  limitMillis: Schema.optionalWith(Schema.Finite, { exact: true }),
  abandoned: Schema.optionalWith(Schema.Boolean, { exact: true })
}) {
  override get message(): string {
    return sentence(this)
  }
}

/**
 * One thing that is wrong with the arguments, in words a model can act on.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ArgumentIssue = Schema.Struct({
  path: Schema.Array(Schema.Union(Schema.String, Schema.Finite)),
  message: Schema.String
})

/**
 * One thing that is wrong with the arguments of a call, and where.
 *
 * @since 0.1.0
 * @category models
 */
export interface ArgumentIssue extends Schema.Schema.Type<typeof ArgumentIssue> {}

/**
 * The arguments did not parse or decode; the handler was not called. The issues go to the model in full.
 *
 * @since 0.1.0
 * @category errors
 */
export class InvalidArguments extends Schema.TaggedError<InvalidArguments>("@allm/core/ToolError/InvalidArguments")(
  "InvalidArguments",
  { ...byExecutor("invalid_arguments"), issues: Schema.Array(ArgumentIssue) }
) {
  override get message(): string {
    return sentence(this, this.issues.map((issue) => `${formatPath(issue.path)}: ${issue.message}`).join("; "))
  }
}

/**
 * What came back is not a result: a value its `success` schema refuses, a malformed `ToolResult`, a halt reason that
 * belongs to the library, or an error policy that misbehaved. `detail` says which, without showing the value.
 *
 * @since 0.1.0
 * @category errors
 */
export class InvalidReturn extends Schema.TaggedError<InvalidReturn>("@allm/core/ToolError/InvalidReturn")(
  "InvalidReturn",
  {
    ...byExecutor("invalid_return"),
    detail: Schema.String,
    reservedHaltReason: Schema.optionalWith(Schema.String, { exact: true })
  }
) {
  override get message(): string {
    return sentence(this, this.detail)
  }
}

/**
 * The result has no text form. `path` leads to the part that has none.
 *
 * @since 0.1.0
 * @category errors
 */
export class EncodingFailed extends Schema.TaggedError<EncodingFailed>("@allm/core/ToolError/EncodingFailed")(
  "EncodingFailed",
  {
    ...byExecutor("encoding_failed"),
    path: Schema.Array(Schema.Union(Schema.String, Schema.Finite)),
    detail: Schema.String
  }
) {
  override get message(): string {
    return sentence(this, `at ${formatPath(this.path)} ${this.detail}`)
  }
}

/**
 * Nothing can run the call: the tool has no handler, or (when unknown names are fed back) there is no such tool.
 *
 * @since 0.1.0
 * @category errors
 */
export class NotFound extends Schema.TaggedError<NotFound>("@allm/core/ToolError/NotFound")("NotFound", {
  ...byExecutor("not_found"),
  detail: Schema.String,
  /** What the programmer can do about it; the model is not told. */
  remedy: Schema.optionalWith(Schema.String, { exact: true })
}) {
  override get message(): string {
    return sentence(this, this.remedy === undefined ? this.detail : `${this.detail}; ${this.remedy}`)
  }
}

/**
 * A person refused the call.
 *
 * @since 0.1.0
 * @category errors
 */
export class Denied extends Schema.TaggedError<Denied>("@allm/core/ToolError/Denied")("Denied", {
  ...byExecutor("denied"),
  detail: Schema.optionalWith(Schema.String, { exact: true })
}) {
  override get message(): string {
    return sentence(this, this.detail)
  }
}

/**
 * The process died while the call ran, so nobody knows whether it took effect.
 *
 * @since 0.1.0
 * @category errors
 */
export class OutcomeUnknown extends Schema.TaggedError<OutcomeUnknown>("@allm/core/ToolError/OutcomeUnknown")(
  "OutcomeUnknown",
  byExecutor("outcome_unknown")
) {
  override get message(): string {
    return sentence(this)
  }
}

/**
 * The call was running when a sibling halted the batch, and was stopped. It may have taken effect.
 *
 * @since 0.1.0
 * @category errors
 */
export class Interrupted extends Schema.TaggedError<Interrupted>("@allm/core/ToolError/Interrupted")(
  "Interrupted",
  byExecutor("interrupted")
) {
  override get message(): string {
    return sentence(this)
  }
}

/**
 * The call was never started: a sibling halted the batch, or a budget was used up. It certainly took no effect.
 *
 * @since 0.1.0
 * @category errors
 */
export class Skipped extends Schema.TaggedError<Skipped>("@allm/core/ToolError/Skipped")("Skipped", {
  ...byExecutor("skipped"),
  detail: Schema.optionalWith(Schema.String, { exact: true })
}) {
  override get message(): string {
    return sentence(this, this.detail)
  }
}

/**
 * The union as a Schema: errors go to JSON and back; causes become readable data on the way.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ToolError = Schema.Union(
  HandlerFailed,
  HandlerRaised,
  HandlerExit,
  Timeout,
  InvalidArguments,
  InvalidReturn,
  EncodingFailed,
  NotFound,
  Denied,
  OutcomeUnknown,
  Interrupted,
  Skipped
)

/**
 * Every way a call can go wrong. `E` is what its handler may report.
 *
 * @since 0.1.0
 * @category models
 */
export type ToolError<E = unknown> =
  | (HandlerFailed & { readonly failure: E })
  | Exclude<typeof ToolError.Type, HandlerFailed>

const tags: ReadonlySet<string> = new Set(ToolError.members.map((member) => member._tag))

/**
 * Tells whether a value is a `ToolError`.
 *
 * @example
 * ```ts
 * import { ToolError } from "@allm/core"
 *
 * const error = new ToolError.Timeout({ toolName: "echo" })
 *
 * assert.strictEqual(ToolError.isToolError(error), true)
 * assert.strictEqual(error.message, "tool error (echo): timeout")
 * assert.strictEqual(ToolError.isToolError(new Error("tool error")), false)
 * ```
 *
 * @since 0.1.0
 * @category guards
 */
export const isToolError = (value: unknown): value is ToolError =>
  value instanceof Error && Predicate.hasProperty(value, "_tag") && tags.has(value._tag as string) &&
  Predicate.hasProperty(value, "origin")
