/**
 * Running a batch with everything about it decided: what `ToolRunner` and the loop have in common.
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { ToolEvent } from "../Event.ts"
import type { Any } from "../Tool.ts"
import type { ToolCall } from "../ToolCall.ts"
import { ToolExecutor } from "../ToolExecutor.ts"
import { ToolJournal } from "../ToolJournal.ts"
import { ToolResultEncoder } from "../ToolResultEncoder.ts"
import type { Options, RunResult } from "../ToolRunner.ts"
import { UnknownTool } from "../UnknownTool.ts"
import { Batch, type Plan } from "./batch.ts"
import { CallFibers } from "./callFibers.ts"
import type * as Flow from "./flow.ts"
import { Ground } from "./flow.ts"
import type { Fold } from "./fold.ts"
import type { Sink } from "./handover.ts"
import { CallJournal } from "./journal.ts"
import { Telemetry } from "./telemetry.ts"
import type { Shared } from "./toolContext.ts"
import { positiveDuration } from "./toolOptions.ts"

/** The options of a run with their defaults, checked before. */
export interface Resolved
  extends Pick<Plan, "onToolError" | "toolTimeout" | "siblings" | "approvals" | "maxArgumentsLength">
{
  readonly concurrency: number | undefined
}

/** What all batches of a chat have in common. */
export interface Settings extends Resolved {
  readonly shared: Shared
  /** The services a tool was given when its engine was built. */
  readonly environmentOf?: Plan["environmentOf"]
  /** Services that count unless the caller has them too. */
  readonly fallback?: Context.Context<never> | undefined
  /** Counts before one in the context. */
  readonly journal?: typeof ToolJournal.Service | undefined
}

/** What only this batch has. */
export interface Terms {
  /** How many calls may run; the rest is answered without running. */
  readonly allowance: Plan["allowance"]
  /** How long the batch as a whole may take, in milliseconds; what still runs then is stopped. */
  readonly limit: Plan["limit"]
}

const noTerms: Terms = { allowance: undefined, limit: undefined }

const defaultTimeout = Duration.seconds(30)
const defaultMaxArgumentsLength = 1_048_576

export const resolve = (options: Options): Resolved => ({
  onToolError: options.onToolError ?? "continue",
  toolTimeout: options.toolTimeout === undefined ? defaultTimeout : positiveDuration(options.toolTimeout)!,
  concurrency: options.concurrency === "unbounded" ? Infinity : options.concurrency,
  siblings: options.siblings === undefined || typeof options.siblings === "string"
    ? options.siblings ?? "drain"
    : { drainFor: Duration.decode(options.siblings.drainFor) },
  approvals: new Map(Object.entries(options.approvals ?? {})),
  maxArgumentsLength: options.maxArgumentsLength ?? defaultMaxArgumentsLength
})

const defaultConcurrency = (calls: number): number => {
  const cores: unknown = (globalThis as { navigator?: { hardwareConcurrency?: unknown } }).navigator
    ?.hardwareConcurrency
  return Math.max(1, Math.min(calls, typeof cores === "number" ? 2 * cores : 16))
}

export const firstUnknown = (
  calls: ReadonlyArray<ToolCall>,
  tools: ReadonlyMap<string, Any>
): UnknownTool | undefined => {
  const unknown = calls.find((call) => !tools.has(call.name))
  return unknown &&
    new UnknownTool({ toolName: unknown.name, toolCallId: unknown.id, available: [...tools.keys()] })
}

const journalOf = (
  sessionId: string,
  settings: Settings,
  context: Context.Context<never>
): CallJournal | undefined => {
  const journal = settings.journal ?? context.unsafeMap.get(ToolJournal.key) as typeof ToolJournal.Service | undefined
  return journal === undefined ? undefined : new CallJournal(journal, sessionId)
}

/** A batch as an Effect of its own. */
export const runBatch = (
  calls: ReadonlyArray<ToolCall>,
  tools: ReadonlyMap<string, Any>,
  settings: Settings,
  sink: Sink<ToolEvent> | undefined
): Effect.Effect<RunResult> => Effect.map(runFold(calls, tools, settings, sink), (fold) => fold.result())

/** Like `runBatch`, with everything the batch came to. */
export const runFold = (
  calls: ReadonlyArray<ToolCall>,
  tools: ReadonlyMap<string, Any>,
  settings: Settings,
  sink: Sink<ToolEvent> | undefined
): Effect.Effect<Fold> =>
  Effect.withFiberRuntime((fiber, { runtimeFlags }) =>
    new Ground(fiber, runtimeFlags).run(batch(calls, tools, settings, noTerms, sink))
  )

/** A batch as part of a flow, with everything it came to. */
export const batch = (
  calls: ReadonlyArray<ToolCall>,
  tools: ReadonlyMap<string, Any>,
  settings: Settings,
  { allowance, limit }: Terms,
  sink: Sink<ToolEvent> | undefined
): Flow.Flow<Fold, never> =>
(ground, ok) => {
  const { shared } = settings
  const context = ground.contextOver(settings.fallback)
  const fibers = new CallFibers(ground, context, shared)
  const plan: Plan = {
    calls,
    tools,
    executor: Context.get(context, ToolExecutor),
    encoder: Context.get(context, ToolResultEncoder),
    onToolError: settings.onToolError,
    toolTimeout: settings.toolTimeout,
    concurrency: settings.concurrency ?? defaultConcurrency(calls.length),
    siblings: settings.siblings,
    shared,
    approvals: settings.approvals,
    maxArgumentsLength: settings.maxArgumentsLength,
    clock: ground.clock,
    journal: shared.sessionId === undefined ? undefined : journalOf(shared.sessionId, settings, context),
    telemetry: new Telemetry(ground, context, shared, fibers.fork),
    fibers,
    deadlines: ground.deadlines,
    allowance,
    limit,
    environmentOf: settings.environmentOf,
    sink
  }
  ground.wait<Batch>((proceed) => {
    const running = new Batch(plan, () => proceed(running))
    running.start()
    return () => running.cancel()
  }, ({ fold }) => {
    ground.adopt(fibers.changed)
    ok(fold)
  })
}
