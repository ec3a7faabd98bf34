/**
 * Runs a batch of tool calls: bounded, timed, and with exactly one message per call, whatever the tools do.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { Event, ToolEvent } from "./Event.ts"
import type { Halt, PendingApproval, Question } from "./Halt.ts"
import type { Approval } from "./internal/course.ts"
import { Fold } from "./internal/fold.ts"
import { type Sink, streamed } from "./internal/handover.ts"
import * as Issues from "./internal/issues.ts"
import { firstUnknown, resolve, runBatch } from "./internal/runBatch.ts"
import { runIssues } from "./internal/runOptions.ts"
import type { ToolMessage } from "./Message.ts"
import type { OnToolError } from "./OnToolError.ts"
import type * as Tool from "./Tool.ts"
import type { ToolCall } from "./ToolCall.ts"
import type { ToolError } from "./ToolError.ts"
import type { ToolJournal } from "./ToolJournal.ts"
import type { ToolOutcome } from "./ToolResult.ts"
import { UnknownTool } from "./UnknownTool.ts"
import type { ValidationError } from "./ValidationError.ts"

export {
  /**
   * A call names a tool that is not there. Nothing ran.
   *
   * @since 0.1.0
   * @category errors
   */
  UnknownTool
}

/**
 * What a person decided about a call that needs approval.
 *
 * @since 0.1.0
 * @category models
 */
export type ApprovalDecision = Approval

/**
 * How a batch is run: its limits, its error policy, and what handlers get to see.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options<T extends Tool.Any = Tool.Any, R = never> {
  /** What happens when a call fails. Default `"continue"`: the model is told. */
  readonly onToolError?: OnToolError<Tool.Failure<T>, R> | undefined
  /** The hard limit of each call whose tool has none of its own. Default 30 seconds. */
  readonly toolTimeout?: Duration.DurationInput | undefined
  /** How many calls run at once. */
  readonly concurrency?: number | "unbounded" | undefined
  /** What becomes of the other calls when one halts. Default `"drain"`. */
  readonly siblings?: "drain" | "interrupt" | { readonly drainFor: Duration.DurationInput } | undefined
  /** Whether a call of an unknown tool fails the batch or is fed back to the model. Default `"fail"`. */
  readonly unknownTool?: "fail" | "feedback" | undefined
  /** Handed to every handler. */
  readonly context?: { readonly [key: string]: unknown } | undefined
  readonly sessionId?: string | undefined
  readonly requestId?: string | undefined
  readonly engine?: unknown
  /** Decisions about calls that need approval, by call id. */
  readonly approvals?: { readonly [toolCallId: string]: ApprovalDecision } | undefined
  /** Notes calls down, so that a crash loses no result. Goes with `sessionId`; default is the one in the context, if any. */
  readonly journal?: typeof ToolJournal.Service | undefined
  /** Longer arguments are refused. Default 1 MiB of characters. */
  readonly maxArgumentsLength?: number | undefined
}

/**
 * How one call ended.
 *
 * @since 0.1.0
 * @category models
 */
export interface CallResult<A = unknown, E = unknown> {
  readonly toolCall: ToolCall
  readonly result: ToolOutcome<A> | ToolError<E>
}

/**
 * What a batch came to. Every call has exactly one message, in the order of the calls, except those that wait: manual ones
 * and those that need approval, which are listed instead.
 *
 * @since 0.1.0
 * @category models
 */
export interface RunResult<A = unknown, E = unknown> {
  readonly messages: ReadonlyArray<ToolMessage>
  readonly halt: Halt | undefined
  readonly questions: ReadonlyArray<Question>
  readonly approvals: ReadonlyArray<PendingApproval>
  readonly manualToolCalls: ReadonlyArray<ToolCall>
  readonly outcomes: ReadonlyArray<CallResult<A, E>>
}

/**
 * Runs the calls a model made and gives back their messages.
 *
 * @example
 * ```ts
 * import { Tool, ToolCall, ToolRunner } from "@allm/core"
 * import { Effect, Schema } from "effect"
 *
 * const divide = Tool.make("divide", {
 *   description: "Divides a by b",
 *   parameters: { a: Schema.Number, b: Schema.Number },
 *   handler: ({ a, b }) => b === 0 ? Effect.fail("division by zero") : Effect.succeed(a / b)
 * })
 *
 * const { messages } = Effect.runSync(
 *   ToolRunner.run(
 *     [
 *       ToolCall.make({ id: "c0", name: "divide", arguments: { a: 6, b: 3 } }),
 *       ToolCall.make({ id: "c1", name: "divide", arguments: { a: 6, b: 0 } }),
 *       ToolCall.make({ id: "c2", name: "divide", arguments: { a: "six" } })
 *     ],
 *     [divide]
 *   )
 * )
 *
 * assert.strictEqual(messages[0]?.content, "2")
 * assert.strictEqual(messages[1]?.content, "{\"error\":\"division by zero\"}")
 * assert.match(messages[2]?.content ?? "", /invalid_arguments/)
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const run = <const T extends ReadonlyArray<Tool.Any>, R = never>(
  calls: ReadonlyArray<ToolCall>,
  tools: T,
  options?: Options<T[number], R>
): Effect.Effect<
  RunResult<Tool.Success<T[number]>, Tool.Failure<T[number]>>,
  UnknownTool | ValidationError,
  Tool.Requirements<T[number]> | R
> => execute(calls, tools, options as Options | undefined, undefined)

/**
 * Runs the calls and tells what happens while it happens. Whoever stops reading stops the tools.
 *
 * @example
 * ```ts
 * import { Tool, ToolCall, ToolRunner } from "@allm/core"
 * import { Effect, Stream } from "effect"
 *
 * const ping = Tool.make("ping", { description: "Answers", handler: () => "pong" })
 * const calls = [ToolCall.make({ id: "c0", name: "ping", arguments: {} })]
 *
 * const tags = await ToolRunner.stream(calls, [ping]).pipe(
 *   Stream.map((event) => event._tag),
 *   Stream.runCollect,
 *   Effect.runPromise
 * )
 *
 * assert.deepStrictEqual(Array.from(tags), ["ToolExecutionStarted", "ToolExecutionCompleted", "ToolResultEncoded"])
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const stream = <const T extends ReadonlyArray<Tool.Any>, R = never>(
  calls: ReadonlyArray<ToolCall>,
  tools: T,
  options?: Options<T[number], R>
): Stream.Stream<ToolEvent, UnknownTool | ValidationError, Tool.Requirements<T[number]> | R> =>
  streamed<ToolEvent, UnknownTool | ValidationError, never>((sink) =>
    execute(calls, tools, options as Options | undefined, sink)
  )

/**
 * Folds the events of a batch into its result, also of one that was cut short: `run` is the fold of `stream`.
 *
 * @example
 * ```ts
 * import { Tool, ToolCall, ToolRunner } from "@allm/core"
 * import { Effect, Stream } from "effect"
 *
 * const ping = Tool.make("ping", { description: "Answers", handler: () => "pong" })
 * const calls = [ToolCall.make({ id: "c0", name: "ping", arguments: {} })]
 *
 * const events = await Effect.runPromise(Stream.runCollect(ToolRunner.stream(calls, [ping])))
 * const { messages } = ToolRunner.fold(calls, events)
 *
 * assert.strictEqual(messages[0]?.content, "pong")
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const fold = (calls: ReadonlyArray<ToolCall>, events: Iterable<Event>): RunResult => {
  const state = new Fold(calls)
  for (const event of events) state.add(event as ToolEvent)
  return state.result()
}

const execute = (
  calls: ReadonlyArray<ToolCall>,
  tools: ReadonlyArray<Tool.Any>,
  options: Options = {},
  sink: Sink<ToolEvent> | undefined
): Effect.Effect<RunResult, UnknownTool | ValidationError> =>
  Effect.suspend((): Effect.Effect<RunResult, UnknownTool | ValidationError> => {
    const checked = Issues.toEither("invalid_options", runIssues(calls, tools, options), undefined)
    if (checked._tag === "Left") return checked.left
    const byName = new Map(tools.map((tool) => [tool.name, tool]))
    const unknown = options.unknownTool === "feedback" ? undefined : firstUnknown(calls, byName)
    return unknown ?? runBatch(calls, byName, {
      ...resolve(options),
      shared: {
        context: options.context ?? {},
        sessionId: options.sessionId,
        requestId: options.requestId,
        engine: options.engine
      },
      journal: options.journal
    }, sink)
  })
