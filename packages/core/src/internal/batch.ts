/**
 * One batch of calls, run to its end: the only implementation, behind `run` and behind `stream`.
 *
 * Every call is one fiber of its own on the caller's runtime, or none when its handler needs none, observed by callbacks
 * inside a single `Effect.async`. Such fibers are nobody's children, so what Effect does for children is done here: they are interrupted with the caller, they
 * see and give back its FiberRefs, and their defects are caught.
 */
import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import type { ToolEvent } from "../Event.ts"
import { isReserved } from "../HaltReason.ts"
import * as OnToolError from "../OnToolError.ts"
import type { Any } from "../Tool.ts"
import type { ToolCall } from "../ToolCall.ts"
import * as ToolError from "../ToolError.ts"
import { handlers, type Service as Executor } from "../ToolExecutor.ts"
import * as ToolResult from "../ToolResult.ts"
import { json as jsonEncoder, type Service as Encoder } from "../ToolResultEncoder.ts"
import { Call } from "./call.ts"
import type { CallFibers } from "./callFibers.ts"
import { Fold } from "./fold.ts"
import { describe, isLongerThan } from "./json.ts"
import { fromCause, type Ids, isThenable, outcomeProblem, settle } from "./lift.ts"
import { Order } from "./order.ts"
import { Outbox } from "./outbox.ts"
import { forModel } from "./projection.ts"
import type { Telemetry } from "./telemetry.ts"
import { Timekeeper } from "./timekeeper.ts"
import { compiledOf } from "./tool.ts"
import type { Shared } from "./toolContext.ts"

export type Approval = { readonly _tag: "Approved" } | { readonly _tag: "Denied"; readonly reason?: string | undefined }

export type Siblings = "drain" | "interrupt" | { readonly drainFor: Duration.Duration }

export interface Plan {
  readonly calls: ReadonlyArray<ToolCall>
  readonly tools: ReadonlyMap<string, Any>
  readonly executor: Executor
  readonly encoder: Encoder
  readonly onToolError: "continue" | "halt" | ((call: ToolCall, error: ToolError.ToolError) => unknown)
  readonly toolTimeout: Duration.Duration
  readonly concurrency: number
  readonly siblings: Siblings
  readonly shared: Shared
  readonly approvals: ReadonlyMap<string, Approval>
  readonly maxArgumentsLength: number
  readonly clock: Clock.Clock
  readonly telemetry: Telemetry
  readonly fibers: CallFibers
  /** Where events go besides the fold; back-pressured. */
  readonly emit: ((events: ReadonlyArray<ToolEvent>) => Effect.Effect<void>) | undefined
}

// Calls that may end synchronously in one turn before other fibers get theirs.
const burst = 512

export class Batch {
  readonly fold: Fold
  private readonly plan: Plan
  private readonly order: Order<Call>
  private readonly running = new Set<Call>()
  private readonly timekeeper: Timekeeper<Call | DrainLimit>
  private readonly outbox: Outbox<ToolEvent> | undefined
  private readonly resume: (effect: Effect.Effect<void>) => void
  private left: number
  private pumping = false
  private halted = false
  private closed = false
  private onIdle: (() => void) | undefined

  constructor(plan: Plan, resume: (effect: Effect.Effect<void>) => void) {
    this.plan = plan
    this.resume = resume
    this.fold = new Fold(plan.calls)
    this.outbox = plan.emit === undefined
      ? undefined
      : new Outbox({ emit: plan.emit, fork: plan.fibers.fork, onHandedOver: this.pump })
    const automatic: Array<Call> = []
    const manual: Array<ToolCall> = []
    for (const toolCall of plan.calls) {
      const tool = plan.tools.get(toolCall.name)
      if (tool?.manual === true) manual.push(toolCall)
      else automatic.push(new Call(toolCall, tool, plan.shared, this.progress))
    }
    this.left = automatic.length
    this.order = new Order(automatic, plan.concurrency)
    this.timekeeper = new Timekeeper<Call | DrainLimit>({
      clock: plan.clock,
      fork: plan.fibers.fork,
      onDue: (entry) => entry instanceof Call ? this.expire(entry) : this.stopSiblings(),
      onOverdue: (entry) => {
        if (entry instanceof Call) this.abandon(entry)
      }
    })
    if (manual.length > 0) this.push({ _tag: "ManualToolCalls", toolCalls: manual })
  }

  start(): void {
    this.pump()
  }

  /** Interrupts everything and waits until it is over, or past its deadline. Nothing is emitted from here on. */
  cancel(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.closed = true
      this.outbox?.close()
      this.order.drop()
      for (const call of this.running) this.interrupt(call)
      return Effect.uninterruptible(
        Effect.async<void>((resume) => {
          this.onIdle = () => resume(Effect.sync(() => this.timekeeper.stop()))
          this.checkIdle()
        })
      )
    })
  }

  private checkIdle(): void {
    if (this.running.size === 0) this.onIdle?.()
  }

  // --- starting -------------------------------------------------------------------------------------------------------

  private readonly pump = (): void => {
    if (this.pumping || this.closed) return
    this.pumping = true
    for (let started = 0; this.hasRoom(); started++) {
      if (started === burst) {
        this.plan.fibers.fork(Effect.zipRight(Effect.yieldNow(), Effect.sync(this.pump)))
        break
      }
      const call = this.order.next()
      if (call === undefined) break
      this.begin(call)
    }
    this.pumping = false
    this.flush()
  }

  private begin(call: Call): void {
    call.admitted = true
    call.startedAt = this.plan.clock.unsafeCurrentTimeNanos()
    this.running.add(call)
    const { fault, tool, toolCall } = call
    const approval = this.plan.approvals.get(toolCall.id)
    if (tool !== undefined && fault === undefined && approval === undefined && tool.needsApproval !== false) {
      return this.gate(call, tool)
    }
    this.started(call)
    const refusal = fault ?? this.refusal(call, approval)
    if (refusal !== undefined) return this.failed(call, refusal)
    this.execute(call, tool!)
  }

  private started(call: Call): void {
    const { id: toolCallId, name: toolName } = call.toolCall
    this.plan.telemetry.start(call)
    this.push(
      "arguments" in call.toolCall
        ? { _tag: "ToolExecutionStarted", toolName, toolCallId, arguments: call.toolCall.arguments }
        : { _tag: "ToolExecutionStarted", toolName, toolCallId }
    )
  }

  /** Why the call must not reach the executor. */
  private refusal(call: Call, approval: Approval | undefined): ToolError.ToolError | undefined {
    const { toolCall } = call
    if (call.tool === undefined) {
      const known = [...this.plan.tools.keys()].map((name) => JSON.stringify(name)).join(", ")
      return new ToolError.NotFound({
        ...call.ids,
        detail: known === "" ? "there are no tools" : `there is no such tool; the tools are ${known}`
      })
    }
    if (approval?._tag === "Denied") {
      return new ToolError.Denied({
        ...call.ids,
        ...(approval.reason === undefined ? {} : { detail: approval.reason })
      })
    }
    const limit = this.plan.maxArgumentsLength
    const isTooLong = toolCall.rawArguments === undefined
      ? isLongerThan(toolCall.arguments, limit)
      : toolCall.rawArguments.length > limit
    if (isTooLong) {
      return invalidArguments(call.ids, `arguments are longer than ${limit} characters; send less at a time`)
    }
    if (!("arguments" in toolCall)) {
      const text = toolCall.rawArguments ?? ""
      const parsed = Either.try({
        try: (): unknown => JSON.parse(text),
        catch: (error) => error instanceof Error ? error.message : String(error)
      })
      return invalidArguments(
        call.ids,
        Either.isLeft(parsed) ? `arguments are not valid JSON: ${parsed.left}` : "arguments are missing"
      )
    }
  }

  // --- approval -------------------------------------------------------------------------------------------------------

  private gate(call: Call, tool: Any): void {
    const predicate = tool.needsApproval
    if (typeof predicate !== "function") return this.pending(call)
    call.stage = "gate"
    const asked = Effect.suspend(() => {
      const decoded = compiledOf(tool).decode(call.toolCall.arguments)
      const ask = (params: Either.Either<unknown, unknown>): Effect.Effect<unknown, unknown> => {
        // Arguments that do not decode never reach the handler: there is nothing to consent to.
        if (Either.isLeft(params)) return Effect.succeed(false)
        const answer = predicate(params.right as never, call.context)
        return Effect.isEffect(answer) ? answer as Effect.Effect<unknown, unknown> : Effect.succeed(answer)
      }
      return Either.isEither(decoded) ? ask(decoded) : Effect.flatMap(decoded, ask)
    })
    this.stage(call, asked, (exit) => {
      if (call.stopped) return this.skip(call)
      // Only a clear "no" lets the call through.
      if (!Exit.isSuccess(exit) || exit.value !== false) return this.pending(call)
      call.stage = "run"
      this.started(call)
      const refusal = this.refusal(call, undefined)
      if (refusal !== undefined) return this.failed(call, refusal)
      this.execute(call, tool)
    })
  }

  private pending(call: Call): void {
    this.finish(call, undefined, { _tag: "ToolHalt", ...call.ids, reason: "approval", isError: false })
    this.halt()
  }

  // --- running --------------------------------------------------------------------------------------------------------

  private execute(call: Call, tool: Any): void {
    const { context, toolCall } = call
    if (this.plan.executor === handlers && tool.retry === undefined && tool.handler !== undefined) {
      const decoded = compiledOf(tool).decode(toolCall.arguments)
      if (Either.isEither(decoded)) return this.invoke(call, tool, decoded)
    }
    let effect = Effect.suspend(() =>
      this.plan.executor.execute(tool, toolCall.arguments, context) as Effect.Effect<ToolResult.ToolOutcome, unknown>
    )
    if (tool.retry !== undefined) {
      effect = Effect.retry(effect as Effect.Effect<ToolResult.ToolOutcome, ToolError.ToolError>, {
        schedule: tool.retry,
        while: isTransient
      })
    }
    this.run(call, effect, (exit) => this.executed(call, tool, exit))
  }

  /**
   * What the default executor does, without a fiber where none is needed: a plain value is there at once, and a promise
   * can be waited for by a callback. Only an Effect needs a fiber.
   */
  private invoke(
    call: Call,
    tool: Any,
    decoded: Either.Either<unknown, ReadonlyArray<ToolError.ArgumentIssue>>
  ): void {
    if (Either.isLeft(decoded)) {
      return this.failed(call, new ToolError.InvalidArguments({ ...call.ids, issues: decoded.left }))
    }
    let returned: unknown
    try {
      returned = tool.handler!(decoded.right as never, call.context)
    } catch (thrown) {
      return this.failed(call, fromCause(call.ids, Cause.die(thrown)))
    }
    if (Effect.isEffect(returned)) {
      this.run(call, returned as Effect.Effect<unknown, unknown>, (exit) => this.returned(call, tool, exit))
    } else if (isThenable(returned)) {
      this.await(call, returned, (exit) => this.returned(call, tool, exit))
    } else {
      this.settled(call, tool, returned)
    }
  }

  private returned(call: Call, tool: Any, exit: Exit.Exit<unknown, unknown>): void {
    if (Exit.isSuccess(exit)) return this.settled(call, tool, exit.value)
    if (call.stopped && Cause.isInterrupted(exit.cause)) return this.interrupted(call)
    this.failed(call, fromCause(call.ids, exit.cause))
  }

  private settled(call: Call, tool: Any, value: unknown): void {
    const outcome = settle(tool, call.ids, value)
    if (Exit.isExit(outcome)) this.executed(call, tool, outcome as Exit.Exit<ToolResult.ToolOutcome, unknown>)
    else this.stage(call, outcome, (exit) => this.executed(call, tool, exit))
  }

  private executed(call: Call, tool: Any, exit: Exit.Exit<ToolResult.ToolOutcome, unknown>): void {
    if (Exit.isSuccess(exit)) {
      const problem = outcomeProblem(exit.value)
      return problem === undefined
        ? this.succeeded(call, tool, exit.value)
        : this.failed(call, new ToolError.InvalidReturn({ ...call.ids, detail: problem }))
    }
    if (call.stopped && Cause.isInterrupted(exit.cause)) return this.interrupted(call)
    const failure = Cause.failureOption(exit.cause)
    if (Option.isNone(failure)) return this.failed(call, fromCause(call.ids, exit.cause))
    this.failed(
      call,
      ToolError.isToolError(failure.value)
        ? failure.value
        : new ToolError.InvalidReturn({
          ...call.ids,
          detail: "an executor fails with a ToolError; this one failed with something else",
          cause: exit.cause
        })
    )
  }

  /** Runs the handler's own work, inside the call's span. */
  private run<A, E>(call: Call, effect: Effect.Effect<A, E>, next: (exit: Exit.Exit<A, E>) => void): void {
    this.stage(call, call.span === undefined ? effect : Effect.withParentSpan(effect, call.span), next)
  }

  /** Runs a piece of the call in a fiber of its own and goes on with how it ended, unless the call is over by then. */
  private stage<A, E>(call: Call, effect: Effect.Effect<A, E>, next: (exit: Exit.Exit<A, E>) => void): void {
    const { fibers } = this.plan
    const fiber = fibers.forkCall(call, effect)
    const early = fiber.unsafePoll()
    if (early !== null) {
      if (Exit.isSuccess(early)) fibers.succeeded(call, fiber)
      return next(early)
    }
    call.fiber = fiber
    this.limit(call)
    fiber.addObserver((exit) => {
      if (call.isSettled) return
      if (Exit.isSuccess(exit) && !this.closed && !call.expired) fibers.succeeded(call, fiber)
      this.goOn(call, exit, next)
    })
  }

  /** Waits for a promise. Interruption does not: the signal was aborted, more cannot be done to a promise. */
  private await(call: Call, promise: PromiseLike<unknown>, next: (exit: Exit.Exit<unknown, never>) => void): void {
    const waiter = (exit: Exit.Exit<unknown, never>): void => {
      if (call.waiter !== waiter) return
      call.waiter = undefined
      this.goOn(call, exit, next)
    }
    call.waiter = waiter
    this.limit(call)
    // Adoption by a real promise tames thenables that throw, settle twice, or call back synchronously.
    Promise.resolve(promise).then(
      (value) => waiter(Exit.succeed(value)),
      (reason: unknown) => waiter(Exit.die(reason))
    )
  }

  private limit(call: Call): void {
    if (call.deadline === Infinity && call.stage !== "policy") {
      this.timekeeper.add(call, Duration.toMillis(call.tool?.timeout ?? this.plan.toolTimeout), call.startedAt)
    }
  }

  private goOn<A, E>(call: Call, exit: Exit.Exit<A, E>, next: (exit: Exit.Exit<A, E>) => void): void {
    call.fiber = undefined
    if (this.closed) return this.forget(call)
    if (call.expired) return this.timedOut(call, false)
    next(exit)
    this.pump()
  }

  /** The batch was cancelled and the call is over. */
  private forget(call: Call): void {
    call.isSettled = true
    this.running.delete(call)
    this.checkIdle()
  }

  private succeeded(call: Call, tool: Any, outcome: ToolResult.ToolOutcome): void {
    switch (outcome._tag) {
      case "Ok": {
        if ("encoded" in outcome) {
          return this.encode(call, outcome.encoded, (content) => this.answered(call, outcome, content))
        }
        const encode = tool.success === undefined ? undefined : compiledOf(tool).encodeSuccess
        if (encode === undefined) {
          return this.encode(call, outcome.value, (content) => this.answered(call, outcome, content))
        }
        return this.encodeBySchema(call, outcome, encode(outcome.value))
      }
      case "AskUser": {
        const { options, question } = outcome
        this.finish(
          call,
          { _tag: "ToolExecutionCompleted", ...call.ids, result: outcome },
          { _tag: "AskUserRequested", ...call.ids, question, options }
        )
        return this.halt()
      }
      case "Halt": {
        const { reason, result } = outcome
        if (isReserved(reason)) {
          return this.failed(
            call,
            new ToolError.InvalidReturn({
              ...call.ids,
              detail: `the halt reason ${JSON.stringify(reason)} is reserved; choose another`,
              reservedHaltReason: reason
            })
          )
        }
        return this.encode(call, result, (content) => {
          this.finish(
            call,
            { _tag: "ToolExecutionCompleted", ...call.ids, result: outcome },
            { _tag: "ToolHalt", ...call.ids, reason, result, content, isError: false }
          )
          this.halt()
        })
      }
    }
  }

  // For executors that do not encode by themselves.
  private encodeBySchema(
    call: Call,
    outcome: ToolResult.Ok,
    encoded: Either.Either<unknown, string> | Effect.Effect<Either.Either<unknown, string>>
  ): void {
    this.stage(call, Effect.suspend(() => Either.isEither(encoded) ? Effect.succeed(encoded) : encoded), (exit) => {
      if (Exit.isSuccess(exit) && Either.isRight(exit.value)) {
        return this.encode(call, exit.value.right, (content) => this.answered(call, outcome, content))
      }
      this.failed(
        call,
        new ToolError.InvalidReturn({ ...call.ids, detail: "the value does not fit the success schema" })
      )
    })
  }

  private answered(call: Call, outcome: ToolResult.ToolOutcome, content: string): void {
    const { id: toolCallId, name: toolName } = call.toolCall
    this.finish(
      call,
      { _tag: "ToolExecutionCompleted", toolName, toolCallId, result: outcome },
      { _tag: "ToolResultEncoded", toolName, toolCallId, content, isError: false }
    )
  }

  // --- encoding -------------------------------------------------------------------------------------------------------

  private encode(
    call: Call,
    value: unknown,
    onText: (content: string) => void,
    onError: (error: ToolError.EncodingFailed) => void = (error) => this.failed(call, error)
  ): void {
    const { encoder } = this.plan
    const read = (exit: Exit.Exit<unknown, unknown>): void =>
      Exit.isSuccess(exit) && typeof exit.value === "string"
        ? onText(exit.value)
        : onError(encodingFailed(call.ids, exit))
    // The default encoder is pure: what it returns is an Exit already.
    const pure = encoder.encode === jsonEncoder.encode ? encoder.encode(value) : undefined
    if (pure !== undefined && Exit.isExit(pure)) return read(pure)
    this.stage(call, Effect.suspend(() => encoder.encode(value)), read)
  }

  /** The text of a failure always exists: what the encoder cannot say is said in plain JSON. */
  private encodeError(call: Call, error: ToolError.ToolError, onText: (content: string) => void): void {
    const projected = forModel(call.tool, error, this.plan.encoder.exposeDefects === true)
    this.encode(
      call,
      projected,
      onText,
      () => onText(JSON.stringify({ error: typeof projected.error === "string" ? projected.error : error.reason }))
    )
  }

  // --- failing --------------------------------------------------------------------------------------------------------

  private failed(call: Call, error: ToolError.ToolError): void {
    call.stage = "policy"
    this.plan.telemetry.failed(call.toolCall, error)
    const { onToolError } = this.plan
    if (onToolError === "continue") return this.reported(call, error)
    if (onToolError === "halt") return this.halting(call, error)
    const decided = Effect.suspend(() => {
      const decision = onToolError(call.toolCall, error)
      return Effect.isEffect(decision) ? decision as Effect.Effect<unknown, unknown> : Effect.succeed(decision)
    })
    this.stage(call, decided, (exit) => this.decided(call, error, exit))
  }

  private decided(call: Call, error: ToolError.ToolError, exit: Exit.Exit<unknown, unknown>): void {
    if (Exit.isFailure(exit)) {
      if (call.stopped && Cause.isInterruptedOnly(exit.cause)) return this.interrupted(call)
      return this.halting(
        call,
        new ToolError.InvalidReturn({ ...call.ids, detail: "the onToolError function failed", cause: exit.cause })
      )
    }
    const decision = exit.value
    if (!OnToolError.isDecision(decision)) {
      return this.halting(
        call,
        new ToolError.InvalidReturn({
          ...call.ids,
          detail: `the onToolError function returned ${
            describe(decision)
          }; write OnToolError.continue(), .continueWith(value) or .halt`
        })
      )
    }
    if (decision === "continue" || (decision !== "halt" && decision._tag === "Continue")) {
      return this.reported(call, error)
    }
    if (decision === "halt" || decision._tag === "Halt") return this.halting(call, error)
    const result = ToolResult.ok(decision.value)
    this.encode(
      call,
      decision.value,
      (content) =>
        this.finish(
          call,
          { _tag: "ToolExecutionCompleted", ...call.ids, result, replaced: error },
          { _tag: "ToolResultEncoded", ...call.ids, content, isError: false }
        ),
      // The function had its say: it is not asked about its own answer.
      (unencodable) => this.halting(call, unencodable)
    )
  }

  private reported(call: Call, error: ToolError.ToolError): void {
    this.encodeError(call, error, (content) =>
      this.finish(
        call,
        { _tag: "ToolExecutionCompleted", ...call.ids, result: error },
        { _tag: "ToolResultEncoded", ...call.ids, content, isError: true }
      ))
  }

  private halting(call: Call, error: ToolError.ToolError): void {
    this.encodeError(call, error, (content) => {
      this.finish(
        call,
        { _tag: "ToolExecutionCompleted", ...call.ids, result: error },
        { _tag: "ToolHalt", ...call.ids, reason: "tool_error", error, content, isError: true }
      )
      this.halt()
    })
  }

  private interrupted(call: Call): void {
    call.stage = "policy"
    this.reported(call, new ToolError.Interrupted(call.ids))
  }

  // --- limits ---------------------------------------------------------------------------------------------------------

  private expire(call: Call): void {
    if (call.isSettled || call.stage === "policy") return
    call.expired = true
    this.interrupt(call)
  }

  private abandon(call: Call): void {
    if (call.isSettled || call.stage === "policy") return
    this.plan.telemetry.abandoned(call.toolCall)
    if (this.closed) return this.forget(call)
    this.timedOut(call, true)
  }

  private timedOut(call: Call, abandoned: boolean): void {
    call.fiber = undefined
    call.expired = false
    if (call.stage === "gate") {
      this.pending(call)
    } else if (call.stopped) {
      this.interrupted(call)
    } else {
      const limitMillis = Duration.toMillis(call.tool?.timeout ?? this.plan.toolTimeout)
      this.failed(call, new ToolError.Timeout({ ...call.ids, limitMillis, abandoned }))
    }
    this.pump()
  }

  private interrupt(call: Call): void {
    call.context.abort()
    call.waiter?.(Exit.interrupt(FiberId.none))
    call.fiber?.unsafeInterruptAsFork(FiberId.none)
  }

  // --- ending ---------------------------------------------------------------------------------------------------------

  private halt(): void {
    if (this.halted || this.closed) return
    this.halted = true
    const { siblings } = this.plan
    if (siblings === "interrupt") this.stopSiblings()
    else if (siblings !== "drain") {
      const now = this.plan.clock.unsafeCurrentTimeNanos()
      this.timekeeper.add(new DrainLimit(), Duration.toMillis(siblings.drainFor), now)
    }
  }

  private stopSiblings(): void {
    for (const call of this.order.drop()) this.skip(call)
    for (const call of this.running) {
      if (call.stage === "policy") continue
      call.stopped = true
      this.interrupt(call)
    }
    this.pump()
  }

  private skip(call: Call): void {
    call.stage = "policy"
    this.running.add(call)
    this.reported(call, new ToolError.Skipped(call.ids))
  }

  private finish(call: Call, completed: Completed | undefined, last: ToolEvent): void {
    call.isSettled = true
    call.fiber = undefined
    this.running.delete(call)
    if (call.admitted) this.order.release(call)
    this.plan.telemetry.end(call, completed?.result)
    if (completed !== undefined) this.push(completed)
    this.push(last)
    this.left--
  }

  // --- events ---------------------------------------------------------------------------------------------------------

  private readonly progress = (call: Call, value: unknown): Effect.Effect<void> => {
    // An abandoned handler may go on reporting; nobody listens any more.
    if (this.closed || call.isSettled || call.expired) return Effect.void
    this.push({ _tag: "ToolProgress", ...call.ids, value })
    const { outbox } = this
    if (outbox === undefined) return Effect.void
    if (!this.pumping) outbox.flush()
    return outbox.isFull ? outbox.room : Effect.void
  }

  private push(event: ToolEvent): void {
    this.fold.add(event)
    this.outbox?.push(event)
  }

  /** No call is started that a slow consumer could not hear of. */
  private hasRoom(): boolean {
    if (this.outbox === undefined || !this.outbox.isFull) return true
    this.outbox.flush()
    return !this.outbox.isFull
  }

  private flush(): void {
    if (this.closed) return
    this.outbox?.flush()
    if (this.left === 0 && (this.outbox === undefined || this.outbox.isEmpty)) this.complete()
  }

  private complete(): void {
    this.closed = true
    this.timekeeper.stop()
    this.resume(Effect.void)
  }
}

type Completed = Extract<ToolEvent, { readonly _tag: "ToolExecutionCompleted" }>

/** When the siblings of a halted call are to be stopped. */
class DrainLimit {
  deadline = Infinity
  isSettled = false
}

const invalidArguments = (ids: Ids, message: string): ToolError.InvalidArguments =>
  new ToolError.InvalidArguments({ ...ids, issues: [{ path: [], message }] })

const encodingFailed = (ids: Ids, exit: Exit.Exit<unknown, unknown>): ToolError.EncodingFailed => {
  if (Exit.isSuccess(exit)) {
    return new ToolError.EncodingFailed({
      ...ids,
      path: [],
      detail: `the encoder gave ${describe(exit.value)}, not text`
    })
  }
  const failure = Option.getOrUndefined(Cause.failureOption(exit.cause))
  return failure instanceof ToolError.EncodingFailed
    ? new ToolError.EncodingFailed({ ...failure, ...ids })
    : new ToolError.EncodingFailed({ ...ids, path: [], detail: "the encoder failed", cause: exit.cause })
}

// Running a handler again can help when it said no or crashed; wrong arguments stay wrong.
const isTransient = (error: ToolError.ToolError): boolean =>
  error._tag === "HandlerFailed" || error._tag === "HandlerRaised" || error._tag === "HandlerExit"
