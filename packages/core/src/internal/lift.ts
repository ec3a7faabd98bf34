/**
 * Lifting a handler into an Effect, and reading its end: whatever it does, exactly one outcome or one `ToolError`.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { Any } from "../Tool.ts"
import type { ToolCall } from "../ToolCall.ts"
import { type Service, ToolContext } from "../ToolContext.ts"
import * as ToolError from "../ToolError.ts"
import * as ToolResult from "../ToolResult.ts"
import { describe, isPlainObject } from "./json.ts"
import { compiledOf } from "./tool.ts"
import { ContextImpl } from "./toolContext.ts"

// What tools need is erased in here; the public signatures carry it.
type Outcome = Effect.Effect<ToolResult.ToolOutcome, ToolError.ToolError>

export interface Ids {
  readonly toolName: string
  readonly toolCallId: string
}

export const idsOf = (tool: Any, call: ToolCall): Ids => ({ toolName: tool.name, toolCallId: call.id })

export type Handler = (params: never, context: Service) => unknown

/** Decodes the arguments, calls the handler and reads what became of it. */
export const invoke = (tool: Any, handler: Handler, args: unknown, context: Service): Outcome => {
  const decoded = compiledOf(tool).decode(args)
  return Either.isEither(decoded)
    ? invokeDecoded(tool, handler, decoded, context)
    : Effect.flatMap(decoded, (result) => invokeDecoded(tool, handler, result, context))
}

const invokeDecoded = (
  tool: Any,
  handler: Handler,
  decoded: Either.Either<unknown, ReadonlyArray<ToolError.ArgumentIssue>>,
  context: Service
): Outcome => {
  const ids = idsOf(tool, context.toolCall)
  if (Either.isLeft(decoded)) return Exit.fail(new ToolError.InvalidArguments({ ...ids, issues: decoded.left }))
  return Effect.matchCauseEffect(
    Effect.suspend(() => lift(handler(decoded.right as never, context), context)),
    {
      onFailure: (cause) => Effect.fail(fromCause(ids, cause)),
      onSuccess: (value) => settle(tool, ids, value)
    }
  )
}

export const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  (typeof value === "object" || typeof value === "function") && value !== null && "then" in value &&
  typeof value.then === "function"

const lift = (returned: unknown, context: Service): Effect.Effect<unknown, unknown> => {
  if (Effect.isEffect(returned)) {
    const effect = returned as Effect.Effect<unknown, unknown>
    const provided = Effect.provideService(effect, ToolContext, context)
    return context instanceof ContextImpl && !context.managed
      ? Effect.onInterrupt(provided, () => Effect.sync(() => context.abort()))
      : provided
  }
  return isThenable(returned) ? fromPromise(returned, context) : Effect.succeed(returned)
}

const fromPromise = (returned: PromiseLike<unknown>, context: Service): Effect.Effect<unknown> =>
  Effect.async((resume) => {
    // Adoption by a real promise tames thenables that throw, settle twice, or call back synchronously.
    Promise.resolve(returned).then(
      (value) => resume(Effect.succeed(value)),
      (reason: unknown) => resume(Effect.die(reason))
    )
    return Effect.sync(() => {
      // A context of someone else's making has a signal of its own.
      if (context instanceof ContextImpl) context.abort()
    })
  })

/**
 * A cause may hold several things. As everywhere in Effect a reported failure outranks a defect, a defect outranks an
 * interruption; the whole cause is kept.
 */
export const fromCause = (ids: Ids, cause: Cause.Cause<unknown>): ToolError.ToolError => {
  const failure = Cause.failureOption(cause)
  if (Option.isSome(failure)) return new ToolError.HandlerFailed({ ...ids, failure: failure.value, cause })
  return Cause.defects(cause).length > 0
    ? new ToolError.HandlerRaised({ ...ids, cause })
    : new ToolError.HandlerExit({ ...ids, cause })
}

/** Reads what a handler gave. An Exit already, unless the success schema needs an Effect. */
export const settle = (tool: Any, ids: Ids, value: unknown): Outcome => {
  if (isLeftover(value)) {
    return invalidReturn(ids, "the handler gave an Effect inside its result; return the Effect itself")
  }
  if (!ToolResult.isToolResult(value)) return succeed(tool, ids, value)
  switch (value._tag) {
    case "Ok":
      return succeed(tool, ids, value.value)
    case "Failure":
      return Exit.fail(new ToolError.HandlerFailed({ ...ids, failure: value.reason, cause: Cause.fail(value.reason) }))
    default: {
      const malformed = malformation(value)
      return malformed === undefined ? Exit.succeed(value) : invalidReturn(ids, malformed)
    }
  }
}

// An Option or an Either is data too, and has a JSON form.
const isLeftover = (value: unknown): boolean =>
  Effect.isEffect(value) && !Option.isOption(value) && !Either.isEither(value)

const invalidReturn = (ids: Ids, detail: string): Exit.Exit<never, ToolError.InvalidReturn> =>
  Exit.fail(new ToolError.InvalidReturn({ ...ids, detail }))

const succeed = (tool: Any, ids: Ids, value: unknown): Outcome => {
  const encode = compiledOf(tool).encodeSuccess
  if (encode === undefined) return Exit.succeed(ToolResult.ok(value))
  const read = (encoded: Either.Either<unknown, string>): Outcome =>
    Either.isRight(encoded)
      ? Exit.succeed<ToolResult.ToolOutcome>({ _tag: "Ok", value, encoded: encoded.right })
      : invalidReturn(ids, `the value does not fit the success schema (see ${encoded.left})`)
  const encoded = encode(value)
  return Either.isEither(encoded) ? read(encoded) : Effect.flatMap(encoded, read)
}

const malformation = (value: ToolResult.ToolOutcome): string | undefined => {
  switch (value._tag) {
    case "Ok":
      return undefined
    case "AskUser":
      if (typeof value.question !== "string") return `a question is a string, not ${describe(value.question)}`
      return isPlainObject(value.options)
        ? undefined
        : `a question's options are an object, not ${describe(value.options)}`
    case "Halt":
      return typeof value.reason === "string" && value.reason !== ""
        ? undefined
        : `a halt reason is a non-empty string, not ${describe(value.reason)}`
  }
}

/** What a custom executor may hand back, which the types promise and plain JavaScript may break. */
export const outcomeProblem = (value: unknown): string | undefined => {
  const tag: unknown = typeof value === "object" && value !== null ? (value as { _tag?: unknown })._tag : undefined
  return tag === "Ok" || tag === "AskUser" || tag === "Halt"
    ? malformation(value as ToolResult.ToolOutcome)
    : `an executor succeeds with a ToolOutcome, not ${describe(value)}; write ToolResult.ok(value)`
}
