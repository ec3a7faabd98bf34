/**
 * Lifting a handler into an Effect, and reading its end: whatever it does, exactly one outcome or one `ToolError`.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import type { Any } from "../Tool.ts"
import type { ToolCall } from "../ToolCall.ts"
import { type Service, ToolContext } from "../ToolContext.ts"
import * as ToolError from "../ToolError.ts"
import * as ToolResult from "../ToolResult.ts"
import { describe, findNonJson, formatPath, isPlainObject, show } from "./json.ts"
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

// The call itself, the span around it and the scope it runs in.
const ofTheCall = Context.pick(ToolContext, Tracer.ParentSpan, Scope.Scope)

/** A handler that finds these services rather than those of its caller, but for what belongs to the call. */
export const withServices = (handler: Handler, services: Context.Context<never>): Handler => (params, context) => {
  const returned = handler(params, context)
  return Effect.isEffect(returned)
    ? Effect.mapInputContext(
      returned as Effect.Effect<unknown, unknown>,
      (current: Context.Context<never>) => Context.mergeAll(current, services, ofTheCall(current))
    )
    : returned
}

/** Decodes the arguments, calls the handler and reads what became of it. */
export const invoke = (tool: Any, handler: Handler, args: unknown, context: Service): Outcome => {
  const ids = idsOf(tool, context.toolCall)
  const outcome = Effect.suspend(() => {
    const decoded = compiledOf(tool).decode(args)
    return Either.isEither(decoded)
      ? invokeDecoded(tool, handler, decoded, context)
      : Effect.flatMap(decoded, (result) => invokeDecoded(tool, handler, result, context))
  })
  // The schemas of a tool are code of the user's like its handler, and may throw or die as well.
  return Effect.catchAllCause(outcome, (cause) =>
    Exit.fail(Either.match(Cause.failureOrCause(cause), {
      onLeft: (error) => error,
      onRight: (crash) => fromCause(ids, crash)
    })))
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
      onFailure: (cause) => Exit.fail(fromCause(ids, cause)),
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

/** Checking a cause takes a stack as deep as it is, and programs make them as large as they like: the types suffice. */
export const unchecked = { disableValidation: true } as const

/**
 * A cause may hold several things. As everywhere in Effect a reported failure outranks a defect, a defect outranks an
 * interruption; the whole cause is kept.
 */
export const fromCause = (ids: Ids, cause: Cause.Cause<unknown>): ToolError.ToolError => {
  const failure = Cause.failureOption(cause)
  if (Option.isSome(failure)) {
    // Inside a span Effect fails with a proxy that remembers it; what was reported is behind it.
    return new ToolError.HandlerFailed({ ...ids, failure: Cause.originalError(failure.value), cause }, unchecked)
  }
  return Cause.defects(cause).length > 0
    ? new ToolError.HandlerRaised({ ...ids, cause }, unchecked)
    : new ToolError.HandlerExit({ ...ids, cause }, unchecked)
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
      return typeof value.question === "string"
        ? optionsProblem(value.options)
        : `a question is a string, not ${describe(value.question)}`
    case "Halt":
      return typeof value.reason === "string" && value.reason !== ""
        ? undefined
        : `a halt reason is a non-empty string, not ${describe(value.reason)}`
    default:
      return `there is no result of the kind ${show((value as { readonly _tag: unknown })._tag)}`
  }
}

// A question waits as plain data, perhaps in a store.
const optionsProblem = (options: unknown): string | undefined => {
  if (!isPlainObject(options)) return `a question's options are an object, not ${describe(options)}`
  const found = findNonJson(options)
  return found === undefined
    ? undefined
    : `a question's options are JSON, but at ${formatPath(found.path)} ${found.problem}`
}

/** What a custom executor may hand back, which the types promise and plain JavaScript may break. */
export const outcomeProblem = (value: unknown): string | undefined => {
  const tag: unknown = typeof value === "object" && value !== null ? (value as { _tag?: unknown })._tag : undefined
  return tag === "Ok" || tag === "AskUser" || tag === "Halt"
    ? malformation(value as ToolResult.ToolOutcome)
    : `an executor succeeds with a ToolOutcome, not ${describe(value)}; write ToolResult.ok(value)`
}
