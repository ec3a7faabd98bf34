/**
 * One call of a model: repeated while nothing has come, limited in time, folded into a response.
 */
import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import { AdapterError } from "../AdapterError.ts"
import type { AdapterEvent, Event } from "../Event.ts"
import type { Request } from "../Request.ts"
import type { Response } from "../Response.ts"
import type { Thread } from "../Thread.ts"
import * as Usage from "../Usage.ts"
import type { CallSettings } from "./callSettings.ts"
import { directOf, type Emit, emitTo, intakeOf, withRaw } from "./emit.ts"
import * as Flow from "./flow.ts"
import { guarded, inFiber, type Start } from "./guarded.ts"
import { roomIn, type Sink } from "./handover.ts"
import * as Metrics from "./modelMetrics.ts"
import { ResponseFold } from "./responseFold.ts"
import { traced } from "./trace.ts"

/** What a call shares with the rest of its chat. */
export interface Surroundings {
  readonly call: CallSettings
  readonly requestId: string
  readonly clock: Clock.Clock
  readonly sink: Sink<Event> | undefined
  readonly checkpoint: Checkpoint | undefined
}

/** What a chat has come to before it asks the model, or before it runs the calls of an answer. */
export interface Progress {
  readonly thread: Thread
  readonly usage: Usage.Usage
}

/** The chat goes on when this has succeeded. Whoever wants it to stop instead interrupts the chat. */
export type Checkpoint = (progress: Progress) => Effect.Effect<void>

/** A function of the caller's failed inside the adapter's own code; thrown through it as a defect. */
export class EventCallbackFailure {
  readonly cause: Cause.Cause<unknown>
  constructor(cause: Cause.Cause<unknown>) {
    this.cause = cause
  }
}

export interface Answer {
  readonly response: Response
  /** What went wrong after the first event. */
  readonly error: AdapterError | undefined
}

export interface Terms {
  /** What is left of the chat's time, in milliseconds. */
  readonly limit: number
  /** Nobody is going to answer tool calls any more: the model is not heard when it makes some. */
  readonly isFinal: boolean
}

/** Asks the model. Fails only when nothing came; what was cut off is kept, with the error. */
export const askModel = (
  surroundings: Surroundings,
  request: Request,
  terms: Terms
): Flow.Flow<Answer, AdapterError | EventCallbackFailure> => {
  const { adapter } = surroundings.call.engine
  return traced(() => new ModelCall(surroundings, request, terms).attempt(), () => ({
    name: "allm.generate",
    kind: "client",
    before: {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": adapter.name,
      "gen_ai.request.model": request.model,
      "gen_ai.request.temperature": request.temperature,
      "gen_ai.request.max_tokens": request.maxTokens,
      "gen_ai.conversation.id": surroundings.call.run.shared.sessionId,
      "allm.request.id": surroundings.requestId
    },
    after: ({ response }) => ({
      "gen_ai.response.id": response.id,
      "gen_ai.response.model": response.model,
      "gen_ai.response.finish_reasons": response.finishReason === undefined ? undefined : [response.finishReason],
      "gen_ai.usage.input_tokens": response.usage.inputTokens,
      "gen_ai.usage.output_tokens": response.usage.outputTokens
    }),
    // An answer that broke off is kept, but its span has failed.
    failureOf: ({ error }) => error
  }))
}

const rawChunk: AdapterEvent = { _tag: "RawChunk", chunk: undefined }

type Asked = Flow.Flow<Answer, AdapterError | EventCallbackFailure>

class ModelCall {
  private readonly surroundings: Surroundings
  private readonly request: Request
  private readonly terms: Terms
  private readonly fold = new ResponseFold()
  private readonly startedAt: bigint
  private lastEventAt: bigint
  private strays = 0
  // Counts attempts and their ends: a fiber that was left behind speaks for an earlier number.
  private turn = 0
  private driver: Schedule.ScheduleDriver<unknown, AdapterError> | undefined

  constructor(surroundings: Surroundings, request: Request, terms: Terms) {
    this.surroundings = surroundings
    this.request = request
    this.terms = terms
    this.startedAt = surroundings.clock.unsafeCurrentTimeNanos()
    this.lastEventAt = this.startedAt
  }

  attempt(): Asked {
    const { call, clock } = this.surroundings
    this.lastEventAt = clock.unsafeCurrentTimeNanos()
    const total = Math.min(call.requestTimeout, this.timeLeft())
    const emit = withRaw(this.emit(++this.turn), call.isForwarded(rawChunk))
    return Flow.flatMap(
      guarded(this.asked(emit), { total, idle: call.idleTimeout, lastSign: this.lastSign }),
      (ended) => {
        this.turn++
        if (typeof ended !== "string") return Exit.isSuccess(ended) ? this.ended() : this.failed(ended.cause)
        return this.refused(this.error("timeout", {
          detail: ended === "total"
            ? `the model call took longer than ${total} ms`
            : `nothing came from the model for ${call.idleTimeout} ms`
        }))
      }
    )
  }

  private asked(emit: Emit): Start<void, AdapterError> {
    const { adapter } = this.surroundings.call.engine
    const direct = directOf(adapter.generate)
    const intake = intakeOf(emit)
    return direct === undefined || intake === undefined
      ? inFiber(Effect.suspend(() => adapter.generate(this.request, emit)))
      : (_, ended) => {
        const stop = direct(this.request, intake, ended)
        return () => {
          stop()
          ended(Exit.interrupt(FiberId.none))
        }
      }
  }

  private timeLeft(): number {
    if (this.terms.limit === Infinity) return Infinity
    const elapsed = this.surroundings.clock.unsafeCurrentTimeNanos() - this.startedAt
    return Math.max(0, this.terms.limit - Number(elapsed) / 1_000_000)
  }

  /** A reader that takes its time is not a model that is silent. */
  private readonly lastSign = (): bigint => {
    const { clock, sink } = this.surroundings
    if (sink !== undefined && !sink.hasRoom) this.lastEventAt = clock.unsafeCurrentTimeNanos()
    return this.lastEventAt
  }

  private accept(events: ReadonlyArray<AdapterEvent>, turn: number): void {
    if (turn !== this.turn) return
    const { call, clock } = this.surroundings
    if (call.idleTimeout !== Infinity) this.lastEventAt = clock.unsafeCurrentTimeNanos()
    for (let i = 0; i < events.length; i++) {
      const event = events[i]!
      if (!this.terms.isFinal) this.take(event)
      else if (!callTags.has(event?._tag)) this.take(withoutCalls(event))
    }
  }

  private take(event: AdapterEvent): void {
    const { call, sink } = this.surroundings
    // An adapter cannot speak for the tools or the loop.
    if (!this.fold.add(event)) this.strays++
    else if (sink !== undefined && call.isForwarded(event)) sink.push(event)
  }

  private emit(turn: number): Emit {
    const { call, sink } = this.surroundings
    const { onEvent } = call
    const accept = (events: ReadonlyArray<AdapterEvent>): void => this.accept(events, turn)
    if (onEvent === undefined) return emitTo({ accept, sink })
    const tell = (event: AdapterEvent): Effect.Effect<void> =>
      Effect.suspend(() => {
        const told = turn === this.turn ? onEvent(event) : undefined
        return Effect.isEffect(told) ? told as Effect.Effect<void, unknown> : Effect.void
      }).pipe(Effect.catchAllCause((cause) =>
        Cause.isInterruptedOnly(cause) ? Effect.interrupt : Effect.die(new EventCallbackFailure(cause))
      ))
    return (events) =>
      Effect.forEach(events, tell, { discard: true }).pipe(
        Effect.zipRight(Effect.suspend(() => {
          accept(events)
          return sink === undefined ? Effect.void : roomIn(sink)
        }))
      )
  }

  private failed(cause: Cause.Cause<AdapterError>): Asked {
    if (Cause.isInterruptedOnly(cause)) {
      return this.settle(this.error("unknown", { detail: "the adapter interrupted itself" }))
    }
    for (const defect of Cause.defects(cause)) {
      if (defect instanceof EventCallbackFailure) return Flow.fail(defect)
    }
    const failure = Option.getOrUndefined(Cause.failureOption(cause))
    return this.refused(
      failure instanceof AdapterError
        ? failure
        : this.error("unknown", { detail: "the adapter crashed", cause: failure ?? Cause.squash(cause) })
    )
  }

  /** Asks again, as long as nothing came and it may help. */
  private refused(error: AdapterError): Asked {
    const { retry } = this.surroundings.call
    if (this.fold.hasStarted || retry === undefined || !error.isRetryable || this.timeLeft() <= 0) {
      return this.settle(error)
    }
    return Flow.flatMap(Flow.exitOf(this.pause(error, retry)), (exit) => {
      if (Exit.isSuccess(exit)) return this.attempt()
      const late = Option.getOrUndefined(Cause.failureOption(exit.cause))
      // The schedule gives up with nothing to say.
      return this.settle(late instanceof AdapterError ? late : error)
    })
  }

  private pause(
    error: AdapterError,
    retry: Schedule.Schedule<unknown, AdapterError>
  ): Effect.Effect<void, AdapterError | Option.Option<never>> {
    const driver = this.driver === undefined ? Schedule.driver(retry) : Effect.succeed(this.driver)
    const next = Effect.flatMap(driver, (started) => {
      this.driver = started
      return Effect.mapError(started.next(error), () => Option.none())
    })
    const left = this.timeLeft()
    const paused = left === Infinity ? next : Effect.timeoutFail(next, {
      duration: left,
      onTimeout: () => this.error("timeout", { detail: `no time is left to repeat it: ${error.message}` })
    })
    return Effect.zipRight(paused, Effect.logDebug("model call repeated", error.message))
  }

  private ended(): Asked {
    const { problem } = this.fold
    return problem === undefined || this.fold.error !== undefined
      ? this.settle(undefined)
      : this.refused(this.error("malformed_response", { detail: problem }))
  }

  private settle(error: AdapterError | undefined): Asked {
    const { call, clock, requestId } = this.surroundings
    const { adapter } = call.engine
    if (error !== undefined && this.fold.hasStarted) this.take({ _tag: "ErrorOccurred", error })
    const known = error ?? (this.fold.error instanceof AdapterError ? this.fold.error : undefined)
    const response = this.fold.response(requestId)
    Metrics.record(adapter.name, clock.unsafeCurrentTimeNanos() - this.startedAt, response.usage, known)
    const settled = error !== undefined && !this.fold.hasStarted
      ? Flow.fail(error)
      : Flow.succeed({ response, error: known })
    if (this.strays === 0) return settled
    const line = Effect.logWarning(
      `the adapter ${adapter.name} emitted ${this.strays} events that are not a model's; left out`
    )
    return Flow.flatMap(Flow.exitOf(line), () => settled)
  }

  private error(
    reason: AdapterError["reason"],
    fields: { readonly detail: string; readonly cause?: unknown }
  ): AdapterError {
    return new AdapterError({ reason, provider: this.surroundings.call.engine.adapter.name, ...fields })
  }
}

const callTags: ReadonlySet<string | undefined> = new Set(["ToolCallStarted", "ToolCallDelta", "ToolCallCompleted"])

const withoutCalls = (event: AdapterEvent): AdapterEvent =>
  event?._tag === "MessageCompleted" && event.message !== undefined
    ? { ...event, message: { ...event.message, toolCalls: [] } }
    : event

/** The sum of what is known of the tokens. */
export const tokensOf = (usage: Usage.Usage): number =>
  Usage.totalTokens(usage) ?? usage.inputTokens ?? usage.outputTokens ?? 0
