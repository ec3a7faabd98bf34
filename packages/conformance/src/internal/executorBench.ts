/**
 * Runs one call of one tool on the executor under test, and reads how it ended.
 */
import { Tool, ToolCall, ToolContext, ToolError, ToolExecutor, type ToolResult } from "@allm/core"
import * as Cause from "effect/Cause"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Schedule from "effect/Schedule"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { type Problem, render } from "./check.ts"

export const toolName = "subject"

export interface Handlers {
  readonly [name: string]: (params: never, context: ToolContext.Service) => unknown
}

/** How a call ended. */
export type End = ToolResult.ToolOutcome | ToolError.ToolError

type Run = Effect.Effect<ToolResult.ToolOutcome, ToolError.ToolError>

export interface Situation<Params> {
  readonly handler: ((params: Params, context: ToolContext.Service) => unknown) | undefined
  readonly parameters?: Schema.Struct.Fields | undefined
  readonly success?: Schema.Schema.Any | undefined
  readonly retry?: Schedule.Schedule<unknown, ToolError.ToolError> | undefined
  readonly timeout?: Duration.DurationInput | undefined
  readonly args?: unknown
  readonly toolCall?: ToolCall.ToolCall | undefined
  readonly sessionId?: string | undefined
  readonly requestId?: string | undefined
  readonly context?: { readonly [key: string]: unknown } | undefined
  readonly onProgress?: ((value: unknown) => void) | undefined
}

interface Call {
  readonly args?: unknown
  readonly toolCall?: ToolCall.ToolCall | undefined
}

type Subject<E> =
  | Layer.Layer<ToolExecutor.ToolExecutor, E>
  | ((handlers: Handlers) => Layer.Layer<ToolExecutor.ToolExecutor, E>)

export class Bench<out E> {
  /** Whether tools bring their handler, or the executor has them by name. */
  readonly ownHandlers: boolean
  private readonly layer: (handlers: Handlers) => Layer.Layer<ToolExecutor.ToolExecutor, E>

  constructor(subject: Subject<E>) {
    this.ownHandlers = typeof subject !== "function"
    this.layer = typeof subject === "function" ? subject : () => subject
  }

  executor(handlers: Handlers): Effect.Effect<ToolExecutor.Service, Problem, Scope.Scope> {
    return Effect.mapBoth(Layer.build(this.layer(handlers)), {
      onFailure: (error) => `the layer cannot be built: ${render(error)}`,
      onSuccess: Context.get(ToolExecutor.ToolExecutor)
    })
  }

  /** One executor, and the calls it describes, not yet run. */
  runner<Params>(situation: Situation<Params>): Effect.Effect<(call: Call) => Run, Problem, Scope.Scope> {
    const { args: defaultArgs, handler, parameters, retry, success, timeout, toolCall: usualCall, ...rest } = situation
    const tool = Tool.make(toolName, {
      description: "Does what the check asks for",
      parameters,
      success,
      retry,
      timeout,
      handler: this.ownHandlers ? handler as ((params: unknown) => unknown) | undefined : undefined
      // Handlers of checks need nothing.
    }) as unknown as Tool.Tool<string, never, unknown, unknown, never>
    const byName: Handlers = handler === undefined ? {} : { [toolName]: handler as Handlers[string] }
    return Effect.map(this.executor(this.ownHandlers ? {} : byName), (executor) => (call): Run => {
      const { args = "args" in situation ? defaultArgs : {}, toolCall = usualCall ?? defaultCall } = call
      return executor.execute(tool, args, ToolContext.make({ toolCall, ...rest }))
    })
  }

  /** Describes one call and runs it. An executor that throws instead of describing is one that crashes. */
  execute<Params>(
    situation: Situation<Params>
  ): Effect.Effect<ToolResult.ToolOutcome, ToolError.ToolError | Problem, Scope.Scope> {
    return Effect.flatMap(this.runner(situation), (run) => run({}))
  }
}

const defaultCall = ToolCall.make({ id: "c0", name: toolName, arguments: {} })

export const endOf = (bench: Bench<unknown>, handler: () => unknown): Effect.Effect<End, Problem, Scope.Scope> =>
  settled(bench.execute({ handler }))

/** Exactly one outcome or one `ToolError`; everything else is a problem. */
export const settled = <R>(
  run: Effect.Effect<ToolResult.ToolOutcome, ToolError.ToolError | Problem, R>
): Effect.Effect<End, Problem, R> =>
  Effect.flatMap(Effect.exit(run), (exit): Effect.Effect<End, Problem> => {
    if (Exit.isSuccess(exit)) {
      return isOutcome(exit.value) ? Effect.succeed(exit.value) : Effect.fail(`it succeeded with ${render(exit.value)}`)
    }
    const failures = Chunk.toReadonlyArray(Cause.failures(exit.cause))
    const [error] = failures
    if (typeof error === "string") return Effect.fail(error)
    return failures.length === 1 && Chunk.isEmpty(Cause.defects(exit.cause)) && ToolError.isToolError(error)
      ? Effect.succeed(error)
      : Effect.fail(`it ended in ${Cause.pretty(exit.cause)}`)
  })

const isOutcome = (value: unknown): value is ToolResult.ToolOutcome =>
  typeof value === "object" && value !== null && "_tag" in value &&
  (value._tag === "Ok" || value._tag === "AskUser" || value._tag === "Halt")

/** Starts a call and waits until its handler says that it runs. */
export const begun = <A, R>(
  run: Effect.Effect<ToolResult.ToolOutcome, ToolError.ToolError | Problem, R>,
  started: Deferred.Deferred<A>
): Effect.Effect<readonly [fiber: Fiber.RuntimeFiber<End, Problem>, started: A], Problem, R> =>
  Effect.flatMap(Effect.fork(settled(run)), (fiber) =>
    Effect.raceFirst(
      Effect.map(Deferred.await(started), (value) => [fiber, value] as const),
      Effect.flatMap(Fiber.join(fiber), (end) => Effect.fail(`it ended in ${end._tag} before its handler ran`))
    ))

/** What is told of an end: data that also survives the way from another process. */
export const summary = (end: Pick<End, "_tag">): Record<string, unknown> => {
  const told: Record<string, unknown> = { _tag: end._tag }
  for (const key of ["value", "encoded", "question", "options", "reason", "result", "failure"]) {
    const value = (end as unknown as Record<string, unknown>)[key]
    if (value !== undefined && !(key === "reason" && "origin" in end)) told[key] = value
  }
  if ("origin" in end && "cause" in end && end.cause !== undefined && keepsCause.has(end._tag)) told["cause"] = true
  return told
}

const keepsCause: ReadonlySet<string> = new Set(["HandlerRaised", "HandlerExit"])
