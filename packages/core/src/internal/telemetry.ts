/**
 * Spans, metrics and log lines of tool calls. Spans are only made when a tracer listens.
 */
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as MetricLabel from "effect/MetricLabel"
import * as Option from "effect/Option"
import { abandonedFibers, CaptureContent, toolCalls, toolDuration, toolErrors } from "../Telemetry.ts"
import type { Any } from "../Tool.ts"
import type { ToolCall } from "../ToolCall.ts"
import { InvalidArguments, isToolError, type ToolError } from "../ToolError.ts"
import type { ToolOutcome } from "../ToolResult.ts"
import type { Call } from "./call.ts"
import type { Ground } from "./flow.ts"
import { printOrStandIn } from "./json.ts"
import type { Shared } from "./toolContext.ts"
import type { Spans } from "./trace.ts"

export class Telemetry {
  private readonly clock: Clock.Clock
  private readonly shared: Shared
  private readonly fork: (effect: Effect.Effect<void>) => unknown
  private readonly spans: Spans | undefined
  private readonly capture: boolean

  constructor(
    ground: Ground,
    context: Context.Context<never>,
    shared: Shared,
    fork: (effect: Effect.Effect<void>) => unknown
  ) {
    this.clock = ground.clock
    this.shared = shared
    this.fork = fork
    this.spans = ground.spans
    this.capture = ground.spans !== undefined && Context.get(context, CaptureContent)
  }

  start(call: Call): void {
    if (this.spans === undefined) return
    const { toolCall } = call
    const span = this.spans.make("allm.tool", "internal", call.startedAt)
    span.attribute("gen_ai.operation.name", "execute_tool")
    span.attribute("gen_ai.tool.type", "function")
    span.attribute("gen_ai.tool.name", toolCall.name)
    span.attribute("gen_ai.tool.call.id", toolCall.id)
    if (this.shared.sessionId !== undefined) span.attribute("gen_ai.conversation.id", this.shared.sessionId)
    if (this.shared.requestId !== undefined) span.attribute("allm.request.id", this.shared.requestId)
    if (this.capture) {
      const text = "arguments" in toolCall ? JSON.stringify(toolCall.arguments) : toolCall.rawArguments ?? ""
      span.attribute("gen_ai.tool.call.arguments", text)
    }
    call.span = span
  }

  end(call: Call, result: ToolOutcome | ToolError | undefined): void {
    const endedAt = this.clock.unsafeCurrentTimeNanos()
    const labels = labelsOf(call.tool)
    toolCalls.unsafeUpdate(1, labels.outcome(result === undefined ? "approval" : result._tag))
    toolDuration.unsafeUpdate(Number(endedAt - call.startedAt) / 1_000_000, labels.tool)
    const { span } = call
    if (span === undefined) return
    if (this.capture && result !== undefined) {
      const value = result._tag === "Ok" ? result.encoded ?? result.value : result
      span.attribute("gen_ai.tool.call.result", printOrStandIn(value))
    }
    if (isToolError(result)) {
      span.attribute("error.type", result.reason)
      span.end(endedAt, result.cause === undefined ? Exit.fail(withoutContent(result)) : Exit.failCause(result.cause))
    } else {
      span.end(endedAt, Exit.void)
    }
  }

  /** The caller was interrupted. */
  cancelled(call: Call): void {
    call.span?.end(this.clock.unsafeCurrentTimeNanos(), Exit.interrupt(FiberId.none))
  }

  failed(toolCall: ToolCall, error: ToolError): void {
    toolErrors.unsafeUpdate(1, tagLabel(error._tag))
    // What the model sent may be quoted in the message, and no argument goes into a log by itself.
    const { message } = withoutContent(error)
    const crashed = error._tag === "HandlerRaised" || error._tag === "HandlerExit"
    const line = crashed
      ? Effect.logWarning(message, ...Option.toArray(Option.fromNullable(error.cause)))
      : Effect.logDebug(message, ...Option.toArray(Option.fromNullable(error.cause)))
    this.log(toolCall, line)
  }

  abandoned(toolCall: ToolCall): void {
    abandonedFibers.unsafeUpdate(1, [])
    this.log(
      toolCall,
      Effect.logWarning(`tool ${toolCall.name} did not stop when interrupted; its fiber was left behind`)
    )
  }

  private log(toolCall: ToolCall, line: Effect.Effect<void>): void {
    this.fork(Effect.annotateLogs(line, {
      toolName: toolCall.name,
      toolCallId: toolCall.id,
      ...(this.shared.sessionId === undefined ? {} : { sessionId: this.shared.sessionId }),
      ...(this.shared.requestId === undefined ? {} : { requestId: this.shared.requestId })
    }))
  }
}

// A metric finds its state by the identity of its labels: they are made once per tool, and live as long as it does.
class Labels {
  readonly tool: ReadonlyArray<MetricLabel.MetricLabel>
  private readonly outcomes = new Map<string, ReadonlyArray<MetricLabel.MetricLabel>>()

  constructor(toolName: string) {
    this.tool = [MetricLabel.make("tool", toolName)]
  }

  outcome(outcome: string): ReadonlyArray<MetricLabel.MetricLabel> {
    let labels = this.outcomes.get(outcome)
    if (labels === undefined) {
      this.outcomes.set(outcome, labels = [...this.tool, MetricLabel.make("outcome", outcome)])
    }
    return labels
  }
}

// The issues quote what the model sent, and no argument goes into a span by itself.
const withoutContent = (error: ToolError): ToolError =>
  error._tag === "InvalidArguments" ? new InvalidArguments({ ...error, issues: [] }) : error

const labels = new WeakMap<object, Labels>()

// The name of a tool that does not exist is the model's invention, and could be any number of names.
const labelsOfUnknown = new Labels("unknown")

const labelsOf = (tool: Any | undefined): Labels => {
  if (tool === undefined) return labelsOfUnknown
  let made = labels.get(tool)
  if (made === undefined) labels.set(tool, made = new Labels(tool.name))
  return made
}

const tagLabels = new Map<string, ReadonlyArray<MetricLabel.MetricLabel>>()

const tagLabel = (tag: ToolError["_tag"]): ReadonlyArray<MetricLabel.MetricLabel> => {
  let made = tagLabels.get(tag)
  if (made === undefined) tagLabels.set(tag, made = [MetricLabel.make("tag", tag)])
  return made
}
