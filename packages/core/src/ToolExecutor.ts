/**
 * What runs one call of one tool, and turns every way it can end into exactly one outcome or `ToolError`.
 *
 * An executor never retries, never times out, looks nothing up and invents no ids: the runner does.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Handler, idsOf, invoke, withServices } from "./internal/lift.ts"
import type { Any, Requirements, ReturnRequirements } from "./Tool.ts"
import type * as ToolContext from "./ToolContext.ts"
import { NotFound, type ToolError } from "./ToolError.ts"
import type { ToolOutcome } from "./ToolResult.ts"

/**
 * An executor.
 *
 * @since 0.1.0
 * @category models
 */
export interface Service {
  /** Runs a call whose arguments are decoded. */
  readonly execute: <T extends Any>(
    tool: T,
    args: unknown,
    context: ToolContext.Service
  ) => Effect.Effect<ToolOutcome, ToolError, Requirements<T>>
}

const withHandler = (handlerOf: (tool: Any) => Handler | undefined): Service => ({
  execute: <T extends Any>(tool: T, args: unknown, context: ToolContext.Service) => {
    const handler = handlerOf(tool)
    return (handler === undefined
      ? Effect.fail(
        new NotFound({
          ...idsOf(tool, context.toolCall),
          detail: "the tool has no handler",
          remedy: "give it one, or provide ToolExecutor.layerHandlers"
        })
      )
      : invoke(tool, handler, args, context)) as Effect.Effect<ToolOutcome, ToolError, Requirements<T>>
  }
})

/**
 * Runs the tool's own handler.
 *
 * @example
 * ```ts
 * import { Tool, ToolCall, ToolContext, ToolExecutor } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const fragile = Tool.make("fragile", {
 *   description: "Throws",
 *   handler: (): string => {
 *     throw new Error("the disk is full")
 *   }
 * })
 * const toolCall = ToolCall.make({ id: "c0", name: "fragile", arguments: {} })
 *
 * const error = Effect.runSync(
 *   Effect.flip(ToolExecutor.handlers.execute(fragile, {}, ToolContext.make({ toolCall })))
 * )
 *
 * assert.strictEqual(error._tag, "HandlerRaised")
 * ```
 *
 * @since 0.1.0
 * @category services
 */
export const handlers: Service = withHandler((tool) => tool.handler)

/**
 * The executor in use: `handlers` unless a layer says otherwise.
 *
 * @since 0.1.0
 * @category references
 */
export class ToolExecutor extends Context.Reference<ToolExecutor>()<"@allm/core/ToolExecutor", Service>(
  "@allm/core/ToolExecutor",
  { defaultValue: () => handlers }
) {}

/**
 * Provides an executor of your own: remote, sandboxed, recorded.
 *
 * @example
 * ```ts
 * import { Tool, ToolCall, ToolExecutor, ToolResult, ToolRunner } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const dry = ToolExecutor.layer({
 *   execute: (tool) => Effect.succeed(ToolResult.ok(`${tool.name} would have run`))
 * })
 * const remove = Tool.make("remove", { description: "Removes everything", handler: () => "gone" })
 *
 * const { messages } = Effect.runSync(
 *   ToolRunner.run([ToolCall.make({ id: "c0", name: "remove", arguments: {} })], [remove]).pipe(Effect.provide(dry))
 * )
 *
 * assert.strictEqual(messages[0]?.content, "remove would have run")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (service: Service): Layer.Layer<ToolExecutor> => Layer.succeed(ToolExecutor, service)

type HandlersRequirements<H> = Exclude<
  { [K in keyof H]: H[K] extends (...args: never) => infer Ret ? ReturnRequirements<Ret> : never }[keyof H],
  ToolContext.ToolContext
>

/**
 * Provides handlers by tool name, for tools declared without one. A tool's own handler wins, and finds its services at the
 * call. What the handlers of the layer need is taken when the layer is built, whatever the caller of a run provides.
 *
 * @example
 * ```ts
 * import { Tool, ToolCall, ToolExecutor, ToolRunner } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const ping = Tool.make("ping", { description: "Answers" })
 *
 * const { messages } = Effect.runSync(
 *   ToolRunner.run([ToolCall.make({ id: "c0", name: "ping", arguments: {} })], [ping]).pipe(
 *     Effect.provide(ToolExecutor.layerHandlers({ ping: () => "pong" }))
 *   )
 * )
 *
 * assert.strictEqual(messages[0]?.content, "pong")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerHandlers = <H extends { readonly [name: string]: Handler }>(
  byName: H
): Layer.Layer<ToolExecutor, never, HandlersRequirements<H>> =>
  Layer.effect(
    ToolExecutor,
    Effect.map(Effect.context<HandlersRequirements<H>>(), (environment) => {
      const supplied = new Map(
        Object.entries(byName).map(([name, handler]) => [name, withServices(handler, environment)])
      )
      return withHandler((tool) => tool.handler ?? supplied.get(tool.name))
    })
  )
