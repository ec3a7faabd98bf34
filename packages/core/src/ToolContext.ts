/**
 * What a handler knows about the call it serves: as its second argument, and as a service.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { ContextImpl } from "./internal/toolContext.ts"
import type { ToolCall } from "./ToolCall.ts"

/**
 * The context of one call: a handler's second argument, and what `yield* ToolContext.ToolContext` gives.
 *
 * @example
 * ```ts
 * import { Tool, ToolCall, ToolContext, ToolRunner } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const whoAmI = Tool.make("who_am_i", {
 *   description: "Tells the id of this very call",
 *   handler: () => Effect.map(ToolContext.ToolContext, (context) => context.toolCall.id)
 * })
 *
 * const run = ToolRunner.run([ToolCall.make({ id: "c0", name: "who_am_i", arguments: {} })], [whoAmI])
 *
 * assert.strictEqual(Effect.runSync(run).messages[0]?.content, "c0")
 * ```
 *
 * @since 0.1.0
 * @category models
 */
export interface Service {
  /** What the caller of the run passed along; `{}` when nothing. */
  readonly context: { readonly [key: string]: unknown }
  /** The session the call belongs to, when there is one. */
  readonly sessionId: string | undefined
  /** The same for everything one chat does. */
  readonly requestId: string | undefined
  /** The call as the model made it. */
  readonly toolCall: ToolCall
  /** The engine that drives the loop, `undefined` when `ToolRunner` is used on its own. */
  readonly engine: unknown
  /** Aborted when the call is interrupted or over its limit. */
  readonly signal: AbortSignal
  /** The same for every attempt at this call, also in another process. */
  readonly idempotencyKey: string
  /** Emits a `ToolProgress` event. */
  readonly progress: (value: unknown) => Effect.Effect<void>
  /** Like `progress`, at once: for plain and async handlers. */
  readonly unsafeProgress: (value: unknown) => void
}

/**
 * The context as a service: an Effect anywhere inside a handler can ask for it, and no run has to provide it.
 *
 * @since 0.1.0
 * @category services
 */
export class ToolContext extends Context.Tag("@allm/core/ToolContext")<ToolContext, Service>() {}

/**
 * Makes a context by hand, to run an executor without a runner.
 *
 * @example
 * ```ts
 * import { Tool, ToolCall, ToolContext, ToolExecutor } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const toolCall = ToolCall.make({ id: "c0", name: "greet", arguments: {} })
 * const context = ToolContext.make({ toolCall, context: { userId: "u7" } })
 * const greet = Tool.make("greet", {
 *   description: "Greets whoever asks",
 *   handler: (_params, { context }) => `Hello ${String(context["userId"])}`
 * })
 *
 * const outcome = Effect.runSync(ToolExecutor.handlers.execute(greet, {}, context))
 *
 * assert.strictEqual(outcome._tag === "Ok" && outcome.value, "Hello u7")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: {
  readonly toolCall: ToolCall
  readonly context?: { readonly [key: string]: unknown } | undefined
  readonly sessionId?: string | undefined
  readonly requestId?: string | undefined
  readonly engine?: unknown
  readonly onProgress?: ((value: unknown) => void) | undefined
}): Service =>
  new ContextImpl(
    options.toolCall,
    {
      context: options.context ?? {},
      sessionId: options.sessionId,
      requestId: options.requestId,
      engine: options.engine
    },
    {
      report: (value) => {
        options.onProgress?.(value)
        return Effect.void
      }
    },
    false
  )
