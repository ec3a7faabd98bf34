/**
 * Runs a batch of tool calls: bounded, timed, and with exactly one message per call, whatever the tools do.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Mailbox from "effect/Mailbox"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { Event, ToolEvent } from "./Event.ts"
import type { Halt, PendingApproval, Question } from "./Halt.ts"
import { Batch, type Plan } from "./internal/batch.ts"
import { CallFibers } from "./internal/callFibers.ts"
import type { Approval } from "./internal/course.ts"
import { Fold } from "./internal/fold.ts"
import * as Issues from "./internal/issues.ts"
import { runIssues } from "./internal/runOptions.ts"
import { Telemetry } from "./internal/telemetry.ts"
import { positiveDuration } from "./internal/toolOptions.ts"
import type { ToolMessage } from "./Message.ts"
import type { OnToolError } from "./OnToolError.ts"
import type * as Tool from "./Tool.ts"
import type { ToolCall } from "./ToolCall.ts"
import type { ToolError } from "./ToolError.ts"
import * as ToolExecutor from "./ToolExecutor.ts"
import type { ToolOutcome } from "./ToolResult.ts"
import * as ToolResultEncoder from "./ToolResultEncoder.ts"
import type { ValidationError } from "./ValidationError.ts"

/**
 * A call names a tool that is not there. Nothing ran.
 *
 * @since 0.1.0
 * @category errors
 */
export class UnknownTool extends Schema.TaggedError<UnknownTool>("@allm/core/ToolRunner/UnknownTool")("UnknownTool", {
  toolName: Schema.String,
  toolCallId: Schema.String,
  available: Schema.Array(Schema.String)
}) {
  override get message(): string {
    const names = this.available.length === 0 ? "there are none" : `there are ${this.available.join(", ")}`
    return `no tool is named ${JSON.stringify(this.toolName)}; ${names}. ` +
      "Add it to the tools, or let the model correct itself with unknownTool: \"feedback\""
  }
}

/**
 * What a person decided about a call that needs approval.
 *
 * @since 0.1.0
 * @category models
 */
export type ApprovalDecision = Approval

/**
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
 * @since 0.1.0
 * @category running
 */
export const stream = <const T extends ReadonlyArray<Tool.Any>, R = never>(
  calls: ReadonlyArray<ToolCall>,
  tools: T,
  options?: Options<T[number], R>
): Stream.Stream<ToolEvent, UnknownTool | ValidationError, Tool.Requirements<T[number]> | R> =>
  Stream.unwrapScoped(Effect.gen(function*() {
    const mailbox = yield* Mailbox.make<ToolEvent, UnknownTool | ValidationError>({ capacity: 16 })
    yield* execute(calls, tools, options as Options | undefined, (events) => Effect.asVoid(mailbox.offerAll(events)))
      .pipe(
        Mailbox.into(mailbox),
        Effect.forkScoped
      )
    return Mailbox.toStream(mailbox)
  }))

/**
 * Folds the events of a batch into its result, also of one that was cut short: `run` is the fold of `stream`.
 *
 * @since 0.1.0
 * @category combinators
 */
export const fold = (calls: ReadonlyArray<ToolCall>, events: Iterable<Event>): RunResult => {
  const state = new Fold(calls)
  for (const event of events) state.add(event as ToolEvent)
  return state.result()
}

const defaultTimeout = Duration.seconds(30)
const defaultMaxArgumentsLength = 1_048_576

const defaultConcurrency = (calls: number): number => {
  const cores: unknown = (globalThis as { navigator?: { hardwareConcurrency?: unknown } }).navigator
    ?.hardwareConcurrency
  return Math.max(1, Math.min(calls, typeof cores === "number" ? 2 * cores : 16))
}

const toLimit = (siblings: NonNullable<Options["siblings"]>): Plan["siblings"] =>
  typeof siblings === "string" ? siblings : { drainFor: Duration.decode(siblings.drainFor) }

const execute = (
  calls: ReadonlyArray<ToolCall>,
  tools: ReadonlyArray<Tool.Any>,
  options: Options = {},
  emit: Plan["emit"]
): Effect.Effect<RunResult, UnknownTool | ValidationError> =>
  Effect.withFiberRuntime((parent, status) => {
    const checked = Issues.toEither("invalid_options", runIssues(calls, tools, options), undefined)
    if (checked._tag === "Left") return checked.left
    const byName = new Map(tools.map((tool) => [tool.name, tool]))
    const unknown = options.unknownTool === "feedback" ? undefined : calls.find((call) => !byName.has(call.name))
    if (unknown !== undefined) {
      return new UnknownTool({ toolName: unknown.name, toolCallId: unknown.id, available: [...byName.keys()] })
    }
    const context = parent.currentContext
    const clock = Context.get(parent.currentDefaultServices, Clock.Clock)
    const shared = {
      context: options.context ?? {},
      sessionId: options.sessionId,
      requestId: options.requestId,
      engine: options.engine
    }
    const fibers = new CallFibers(parent, status.runtimeFlags, shared)
    const plan: Plan = {
      calls,
      tools: byName,
      executor: Context.get(context, ToolExecutor.ToolExecutor),
      encoder: Context.get(context, ToolResultEncoder.ToolResultEncoder),
      onToolError: options.onToolError ?? "continue",
      toolTimeout: options.toolTimeout === undefined ? defaultTimeout : positiveDuration(options.toolTimeout)!,
      concurrency: options.concurrency === "unbounded"
        ? Infinity
        : options.concurrency ?? defaultConcurrency(calls.length),
      siblings: toLimit(options.siblings ?? "drain"),
      shared,
      approvals: new Map(Object.entries(options.approvals ?? {})),
      maxArgumentsLength: options.maxArgumentsLength ?? defaultMaxArgumentsLength,
      clock,
      telemetry: new Telemetry(parent, clock, shared, fibers.fork),
      fibers,
      emit
    }
    let batch: Batch
    return Effect.async<void>((resume) => {
      batch = new Batch(plan, resume)
      batch.start()
      return batch.cancel()
    }).pipe(Effect.flatMap(() => Effect.as(fibers.join(), batch.fold.result())))
  })
