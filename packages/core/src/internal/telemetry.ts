/**
 * Spans, metrics and log lines of tool calls. Spans are only made when a tracer listens.
 */
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DefaultServices from "effect/DefaultServices"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as MetricLabel from "effect/MetricLabel"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import type { ToolEvent } from "../Event.ts"
import { abandonedFibers, CaptureContent, toolCalls, toolDuration, toolErrors } from "../Telemetry.ts"
import type { ToolCall } from "../ToolCall.ts"
import { isToolError, type ToolError } from "../ToolError.ts"
import { toJsonOrStandIn } from "./json.ts"
import type { Shared } from "./toolContext.ts"

export interface CallTrace {
  readonly toolCall: ToolCall
  readonly startedAt: bigint
  readonly span: Tracer.Span | undefined
  readonly inside: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
}

const nativeTracer = Context.get(DefaultServices.liveServices, Tracer.Tracer)

export class Telemetry {
  private readonly parent: Fiber.RuntimeFiber<unknown, unknown>
  private readonly clock: Clock.Clock
  private readonly shared: Shared
  private readonly fork: (effect: Effect.Effect<void>) => unknown
  private readonly tracer: Tracer.Tracer | undefined
  private readonly capture: boolean
  // Labels are compared by content on every update: one per tool and kind is enough.
  private readonly labels = new Map<string, ReadonlyArray<MetricLabel.MetricLabel>>()

  constructor(
    parent: Fiber.RuntimeFiber<unknown, unknown>,
    clock: Clock.Clock,
    shared: Shared,
    fork: (effect: Effect.Effect<void>) => unknown
  ) {
    this.parent = parent
    this.clock = clock
    this.shared = shared
    this.fork = fork
    const listening = parent.currentTracer !== nativeTracer && parent.getFiberRef(FiberRef.currentTracerEnabled)
    this.tracer = listening ? parent.currentTracer : undefined
    this.capture = listening && Context.get(parent.currentContext, CaptureContent)
  }

  start(toolCall: ToolCall): CallTrace {
    const startedAt = this.clock.unsafeCurrentTimeNanos()
    if (this.tracer === undefined) return { toolCall, startedAt, span: undefined, inside: (effect) => effect }
    const span = this.tracer.span(
      "allm.tool",
      Context.getOption(this.parent.currentContext, Tracer.ParentSpan),
      Context.empty(),
      [],
      startedAt,
      "internal"
    )
    span.attribute("gen_ai.operation.name", "execute_tool")
    span.attribute("gen_ai.tool.type", "function")
    span.attribute("gen_ai.tool.name", toolCall.name)
    span.attribute("gen_ai.tool.call.id", toolCall.id)
    if (this.shared.sessionId !== undefined) span.attribute("gen_ai.conversation.id", this.shared.sessionId)
    if (this.shared.requestId !== undefined) span.attribute("allm.request.id", this.shared.requestId)
    if (this.capture) span.attribute("gen_ai.tool.call.arguments", JSON.stringify(toolCall.arguments))
    return { toolCall, startedAt, span, inside: (effect) => Effect.withParentSpan(effect, span) }
  }

  end(trace: CallTrace, events: ReadonlyArray<ToolEvent>): void {
    const endedAt = this.clock.unsafeCurrentTimeNanos()
    const completed = events.find((event) => event._tag === "ToolExecutionCompleted")
    const result = completed?.result
    const { name } = trace.toolCall
    const outcome = result === undefined ? "approval" : result._tag
    toolCalls.unsafeUpdate(1, this.label(`${name} ${outcome}`, { tool: name, outcome }))
    toolDuration.unsafeUpdate(Number(endedAt - trace.startedAt) / 1_000_000, this.label(name, { tool: name }))
    const { span } = trace
    if (span === undefined) return
    if (this.capture && result !== undefined) {
      span.attribute("gen_ai.tool.call.result", JSON.stringify(toJsonOrStandIn(result)))
    }
    if (isToolError(result)) {
      span.attribute("error.type", result.reason)
      span.end(endedAt, result.cause === undefined ? Exit.fail(result) : Exit.failCause(result.cause))
    } else {
      span.end(endedAt, Exit.void)
    }
  }

  failed(toolCall: ToolCall, error: ToolError): void {
    toolErrors.unsafeUpdate(1, this.label(`error ${error._tag}`, { tag: error._tag }))
    const crashed = error._tag === "HandlerRaised" || error._tag === "HandlerExit"
    const line = crashed
      ? Effect.logWarning(error.message, ...Option.toArray(Option.fromNullable(error.cause)))
      : Effect.logDebug(error.message, ...Option.toArray(Option.fromNullable(error.cause)))
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

  private label(key: string, labels: { readonly [name: string]: string }): ReadonlyArray<MetricLabel.MetricLabel> {
    let made = this.labels.get(key)
    if (made === undefined) {
      made = Object.entries(labels).map(([name, value]) => MetricLabel.make(name, value))
      this.labels.set(key, made)
    }
    return made
  }
}
