/**
 * The course of one call: approval, arguments, handler, encoding, and the policy when something failed.
 *
 * Every method ends by handing the call on or by finishing it, exactly once.
 */
import * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Schedule from "effect/Schedule"
import type { ToolEvent } from "../Event.ts"
import { isReserved } from "../HaltReason.ts"
import * as OnToolError from "../OnToolError.ts"
import type { Any } from "../Tool.ts"
import type { ToolCall } from "../ToolCall.ts"
import * as ToolError from "../ToolError.ts"
import { handlers, type Service as Executor } from "../ToolExecutor.ts"
import type { StoredOutcome } from "../ToolJournal.ts"
import * as ToolResult from "../ToolResult.ts"
import { json as jsonEncoder, type Service as Encoder } from "../ToolResultEncoder.ts"
import type { Call } from "./call.ts"
import { type CallJournal, type Completed, type Ending, fromStored, revive, toStored } from "./journal.ts"
import { describe, findNonJson, formatPath, isLongerThan } from "./json.ts"
import { fromCause, type Ids, isThenable, outcomeProblem, settle, unchecked } from "./lift.ts"
import { type Declared, forModel, undeclared } from "./projection.ts"
import type { Telemetry } from "./telemetry.ts"
import { compiledOf } from "./tool.ts"

export type Approval = { readonly _tag: "Approved" } | { readonly _tag: "Denied"; readonly reason?: string | undefined }

/** What every call of a batch is run by. */
export interface Rules {
  readonly tools: ReadonlyMap<string, Any>
  readonly executor: Executor
  readonly encoder: Encoder
  readonly onToolError: "continue" | "halt" | ((call: ToolCall, error: ToolError.ToolError) => unknown)
  readonly approvals: ReadonlyMap<string, Approval>
  readonly toolTimeout: Duration.Duration
  readonly maxArgumentsLength: number
  readonly telemetry: Telemetry
  /** Where calls are noted down before they start and after they ended. */
  readonly journal: CallJournal | undefined
}

/** What a call needs from its batch. */
export interface Host {
  /** Runs a piece of the call in a fiber of its own and goes on with how it ended, unless the call is over by then. */
  readonly stage: <A, E>(call: Call, effect: Effect.Effect<A, E>, next: (exit: Exit.Exit<A, E>) => void) => void
  /** Waits for a promise. Interruption does not: the signal was aborted, more cannot be done to a promise. */
  readonly await: (
    call: Call,
    promise: PromiseLike<unknown>,
    next: (exit: Exit.Exit<unknown, never>) => void
  ) => void
  /** Notes down how the call ended: nothing stops this but a limit of its own. */
  readonly record: (
    call: Call,
    effect: Effect.Effect<void, unknown>,
    next: (exit: Exit.Exit<void, unknown>) => void
  ) => void
  readonly push: (event: ToolEvent) => void
  /** The call is over; these are its last events. */
  readonly finish: (call: Call, completed: Completed | undefined, last: Ending) => void
  /** The batch is to end. */
  readonly halt: () => void
}

export class Course {
  private readonly rules: Rules
  private readonly host: Host

  constructor(rules: Rules, host: Host) {
    this.rules = rules
    this.host = host
  }

  /** Its turn has come. */
  begin(call: Call): void {
    const { fault, tool, toolCall } = call
    const approval = this.rules.approvals.get(toolCall.id)
    if (tool !== undefined && fault === undefined && !isDecided(approval) && tool.needsApproval !== false) {
      return this.gate(call, tool)
    }
    this.started(call)
    const refusal = fault ?? this.refusal(call, approval)
    if (refusal !== undefined) return this.failed(call, refusal)
    this.execute(call, tool!)
  }

  private started(call: Call): void {
    const { id: toolCallId, name: toolName } = call.toolCall
    this.rules.telemetry.start(call)
    this.host.push(
      "arguments" in call.toolCall
        ? { _tag: "ToolExecutionStarted", toolName, toolCallId, arguments: call.toolCall.arguments }
        : { _tag: "ToolExecutionStarted", toolName, toolCallId }
    )
  }

  /** Why the call must not reach the executor. */
  private refusal(call: Call, approval: Approval | undefined): ToolError.ToolError | undefined {
    const { toolCall } = call
    if (call.tool === undefined) {
      const known = [...this.rules.tools.keys()].map((name) => JSON.stringify(name)).join(", ")
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
    const limit = this.rules.maxArgumentsLength
    const isTooLong = toolCall.rawArguments === undefined
      ? isLongerThan(toolCall.arguments, limit)
      : toolCall.rawArguments.length > limit
    if (isTooLong) {
      return invalidArguments(
        call.ids,
        `arguments are longer than ${limit} characters or nested too deep; send less at a time`
      )
    }
    if (!("arguments" in toolCall)) {
      const text = toolCall.rawArguments ?? ""
      const parsed = Either.try({
        try: () => findNonJson(JSON.parse(text)),
        catch: (error) => error instanceof Error ? error.message : String(error)
      })
      const problem = Either.merge(Either.mapBoth(parsed, {
        onLeft: (message) => `arguments are not valid JSON: ${message}`,
        onRight: (found) =>
          found === undefined ? "arguments are missing" : `arguments at ${formatPath(found.path)}: ${found.problem}`
      }))
      return invalidArguments(call.ids, problem)
    }
  }

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
    this.host.stage(call, asked, (exit) => {
      if (call.stopped) return this.skip(call)
      // Only a clear "no" lets the call through.
      if (!Exit.isSuccess(exit) || exit.value !== false) {
        if (Exit.isSuccess(exit)) disown(exit.value)
        return this.pending(call)
      }
      call.stage = "run"
      this.started(call)
      const refusal = this.refusal(call, undefined)
      if (refusal !== undefined) return this.failed(call, refusal)
      this.execute(call, tool)
    })
  }

  /** Waits for a person. */
  pending(call: Call): void {
    this.host.finish(call, undefined, { _tag: "ToolHalt", ...call.ids, reason: "approval", isError: false })
    this.host.halt()
  }

  private execute(call: Call, tool: Any): void {
    const { journal } = this.rules
    if (journal === undefined) this.perform(call, tool)
    else this.prepare(call, tool, journal)
  }

  /** Notes the call down before it can have an effect, or answers it with what was noted of it. */
  private prepare(call: Call, tool: Any, journal: CallJournal, detail?: string): void {
    const decoded = compiledOf(tool).decode(call.toolCall.arguments)
    if (Either.isEither(decoded) && Either.isLeft(decoded)) {
      // Never reaches the handler: there is nothing to note.
      return call.stopped ? this.skip(call, detail) : this.perform(call, tool)
    }
    call.stage = "prepare"
    this.host.stage(call, journal.prepare(call.toolCall), (exit) => {
      call.stage = "run"
      if (Exit.isFailure(exit)) {
        return call.stopped ? this.skip(call, detail) : this.failed(call, notNoted(call.ids, exit.cause))
      }
      const prepared = exit.value
      switch (prepared?._tag) {
        case "Settled":
          return this.replay(call, tool, prepared.entry)
        case "New":
          call.isNoted = true
          return call.stopped ? this.skip(call, detail) : this.perform(call, tool)
        case "InDoubt":
          call.isNoted = true
          if (tool.replay === "never") return this.failed(call, new ToolError.OutcomeUnknown(call.ids))
          return call.stopped ? this.interrupted(call) : this.perform(call, tool)
        default:
          return this.failed(call, notNoted(call.ids, Cause.die(`the journal gave ${describe(prepared)}`)))
      }
    })
  }

  private replay(call: Call, tool: Any, stored: StoredOutcome): void {
    const end = (outcome: StoredOutcome): void => this.end(call, ...fromStored(call.ids, outcome))
    const revived = revive(tool, stored)
    if (Effect.isEffect(revived)) {
      this.host.stage(call, revived, (exit) => end(Exit.isSuccess(exit) ? exit.value : stored))
    } else {
      end(revived)
    }
  }

  /** The call has ended; where there is a journal, that is noted before anyone hears of it. */
  private finish(call: Call, completed: Completed, last: Ending): void {
    if (!call.isNoted) return this.end(call, completed, last)
    call.isNoted = false
    // The result stands, however long the journal takes and whatever becomes of the siblings.
    call.stage = "policy"
    const settled = Effect.suspend(() =>
      this.rules.journal!.settle(call.toolCall.id, toStored(call.tool!, completed, last))
    )
    this.host.record(call, settled, () => this.end(call, completed, last))
  }

  private end(call: Call, completed: Completed, last: Ending): void {
    this.host.finish(call, completed, last)
    if (last._tag !== "ToolResultEncoded") this.host.halt()
  }

  private perform(call: Call, tool: Any): void {
    const { context, toolCall } = call
    if (this.rules.executor === handlers && tool.retry === undefined && tool.handler !== undefined) {
      const decoded = compiledOf(tool).decode(toolCall.arguments)
      if (Either.isEither(decoded)) return this.invoke(call, tool, decoded)
    }
    let effect = Effect.suspend(() =>
      this.rules.executor.execute(tool, toolCall.arguments, context) as Effect.Effect<ToolResult.ToolOutcome, unknown>
    )
    if (tool.retry !== undefined) {
      effect = Effect.catchAllDefect(effect, (defect) => Effect.fail(fromCause(call.ids, Cause.die(defect))))
      effect = repeated(effect as Effect.Effect<ToolResult.ToolOutcome, ToolError.ToolError>, tool.retry)
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
      this.host.await(call, returned, (exit) => this.returned(call, tool, exit))
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
    else this.host.stage(call, outcome, (exit) => this.executed(call, tool, exit))
  }

  private executed(call: Call, tool: Any, exit: Exit.Exit<ToolResult.ToolOutcome, unknown>): void {
    if (Exit.isSuccess(exit)) {
      const problem = outcomeProblem(exit.value)
      return problem === undefined
        ? this.succeeded(call, tool, exit.value)
        : this.failed(call, new ToolError.InvalidReturn({ ...call.ids, detail: problem }))
    }
    if (call.stopped && Cause.isInterrupted(exit.cause)) return this.interrupted(call)
    const failure = Option.map(Cause.failureOption(exit.cause), Cause.originalError)
    if (Option.isNone(failure)) return this.failed(call, fromCause(call.ids, exit.cause))
    this.failed(
      call,
      ToolError.isToolError(failure.value)
        ? failure.value
        : invalidReturn(
          call.ids,
          "an executor fails with a ToolError; this one failed with something else",
          exit.cause
        )
    )
  }

  /** Runs the handler's own work, inside the call's span. */
  private run<A, E>(call: Call, effect: Effect.Effect<A, E>, next: (exit: Exit.Exit<A, E>) => void): void {
    this.host.stage(call, call.span === undefined ? effect : Effect.withParentSpan(effect, call.span), next)
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
        return this.finish(
          call,
          { _tag: "ToolExecutionCompleted", ...call.ids, result: outcome },
          { _tag: "AskUserRequested", ...call.ids, question, options }
        )
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
        return this.encode(call, result, (content) =>
          this.finish(
            call,
            { _tag: "ToolExecutionCompleted", ...call.ids, result: outcome },
            { _tag: "ToolHalt", ...call.ids, reason, result, content, isError: false }
          ))
      }
    }
  }

  // For executors that do not encode by themselves.
  private encodeBySchema(
    call: Call,
    outcome: ToolResult.Ok,
    encoded: Either.Either<unknown, string> | Effect.Effect<Either.Either<unknown, string>>
  ): void {
    this.host.stage(
      call,
      Effect.suspend(() => Either.isEither(encoded) ? Effect.succeed(encoded) : encoded),
      (exit) => {
        if (Exit.isSuccess(exit) && Either.isRight(exit.value)) {
          return this.encode(call, exit.value.right, (content) => this.answered(call, outcome, content))
        }
        this.failed(
          call,
          new ToolError.InvalidReturn({ ...call.ids, detail: "the value does not fit the success schema" })
        )
      }
    )
  }

  private answered(call: Call, outcome: ToolResult.ToolOutcome, content: string): void {
    const { id: toolCallId, name: toolName } = call.toolCall
    this.finish(
      call,
      { _tag: "ToolExecutionCompleted", toolName, toolCallId, result: outcome },
      { _tag: "ToolResultEncoded", toolName, toolCallId, content, isError: false }
    )
  }

  private encode(
    call: Call,
    value: unknown,
    onText: (content: string) => void,
    onError: (error: ToolError.EncodingFailed) => void = (error) => this.failed(call, error)
  ): void {
    const { encoder } = this.rules
    const read = (exit: Exit.Exit<unknown, unknown>): void => {
      call.encoding = false
      if (Exit.isSuccess(exit) && typeof exit.value === "string") onText(exit.value)
      else onError(encodingFailed(call.ids, exit))
    }
    // The default encoder is pure: what it returns is an Exit already.
    const pure = encoder.encode === jsonEncoder.encode ? encoder.encode(value) : undefined
    if (pure !== undefined && Exit.isExit(pure)) return read(pure)
    call.encoding = true
    this.host.stage(call, Effect.suspend(() => encoder.encode(value)), read)
  }

  /** The text of a failure always exists: what the encoder cannot say is said in plain JSON. */
  private encodeError(call: Call, error: ToolError.ToolError, onText: (content: string) => void): void {
    if (error._tag === "HandlerFailed" && call.tool?.failure !== undefined) {
      return this.bySchema(call, call.tool, error.failure, (declared) => this.tell(call, error, declared, onText))
    }
    this.tell(call, error, undeclared, onText)
  }

  /** Asks the schema of the declared failures, which may take as long as a call. */
  private bySchema(call: Call, tool: Any, failure: unknown, next: (declared: Declared) => void): void {
    const asked = Either.try(() => compiledOf(tool).encodeFailure!(failure))
    if (Either.isLeft(asked)) return next(undefined)
    if (Either.isEither(asked.right)) return next(asked.right)
    const limited = Effect.timeout(Effect.disconnect(asked.right), tool.timeout ?? this.rules.toolTimeout)
    this.host.stage(call, limited, (exit) => next(Exit.isSuccess(exit) ? exit.value : undefined))
  }

  private tell(
    call: Call,
    error: ToolError.ToolError,
    declared: Declared,
    onText: (content: string) => void
  ): void {
    const projected = forModel(error, declared, this.rules.encoder.exposeDefects === true)
    const plainly = (): void =>
      onText(JSON.stringify({ error: typeof projected.error === "string" ? projected.error : error.reason }))
    // An encoder that took too long is not asked again.
    if (call.encoding) plainly()
    else this.encode(call, projected, onText, plainly)
  }

  failed(call: Call, error: ToolError.ToolError): void {
    call.stage = "policy"
    this.rules.telemetry.failed(call.toolCall, error)
    const { onToolError } = this.rules
    if (onToolError === "continue") return this.reported(call, error)
    if (onToolError === "halt") return this.halting(call, error)
    const decided = Effect.suspend(() => {
      const decision = onToolError(call.toolCall, error)
      return Effect.isEffect(decision) ? decision as Effect.Effect<unknown, unknown> : Effect.succeed(decision)
    })
    this.host.stage(call, decided, (exit) => this.decided(call, error, exit))
  }

  private decided(call: Call, error: ToolError.ToolError, exit: Exit.Exit<unknown, unknown>): void {
    if (Exit.isFailure(exit)) {
      if (call.stopped && Cause.isInterruptedOnly(exit.cause)) return this.interrupted(call)
      return this.halting(call, invalidReturn(call.ids, "the onToolError function failed", exit.cause))
    }
    const decision = exit.value
    if (!OnToolError.isDecision(decision)) {
      disown(decision)
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
    this.encodeError(call, error, (content) =>
      this.finish(
        call,
        { _tag: "ToolExecutionCompleted", ...call.ids, result: error },
        { _tag: "ToolHalt", ...call.ids, reason: "tool_error", error, content, isError: true }
      ))
  }

  /** Stopped because a sibling halted. */
  interrupted(call: Call): void {
    call.stage = "policy"
    this.reported(call, new ToolError.Interrupted(call.ids))
  }

  /** Something of the user's threw where nothing may. */
  crashed(call: Call, thrown: unknown): void {
    const cause = Cause.die(thrown)
    if (call.stage !== "policy") return this.failed(call, fromCause(call.ids, cause))
    this.halting(call, invalidReturn(call.ids, "the onToolError function failed", cause))
  }

  /** Will not be started: a sibling halted, or there is no budget left. What was noted of it counts all the same. */
  drop(call: Call, detail?: string): void {
    const { journal } = this.rules
    if (journal === undefined || call.tool === undefined) return this.skip(call, detail)
    call.stopped = true
    this.prepare(call, call.tool, journal, detail)
  }

  /** Never started. */
  private skip(call: Call, detail?: string): void {
    call.stage = "policy"
    this.reported(call, new ToolError.Skipped({ ...call.ids, ...(detail === undefined ? {} : { detail }) }))
  }
}

const isDecided = (approval: Approval | undefined): boolean =>
  approval?._tag === "Approved" || approval?._tag === "Denied"

// A promise where none belongs: its rejection must not end the process.
const disown = (value: unknown): void => {
  if (isThenable(value)) Promise.resolve(value).then(undefined, () => {})
}

const invalidArguments = (ids: Ids, message: string): ToolError.InvalidArguments =>
  new ToolError.InvalidArguments({ ...ids, issues: [{ path: [], message }] })

const notNoted = (ids: Ids, cause: Cause.Cause<unknown>): ToolError.Skipped =>
  new ToolError.Skipped({ ...ids, detail: "not started because the journal could not note it", cause }, unchecked)

const invalidReturn = (ids: Ids, detail: string, cause: Cause.Cause<unknown>): ToolError.InvalidReturn =>
  new ToolError.InvalidReturn({ ...ids, detail, cause }, unchecked)

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
    ? new ToolError.EncodingFailed({ ...failure, ...ids }, unchecked)
    : new ToolError.EncodingFailed({ ...ids, path: [], detail: "the encoder failed", cause: exit.cause }, unchecked)
}

/** Runs a handler again as its schedule says, and tells operators each time it does. */
const repeated = (
  attempt: Effect.Effect<ToolResult.ToolOutcome, ToolError.ToolError>,
  schedule: Schedule.Schedule<unknown, ToolError.ToolError>
): Effect.Effect<ToolResult.ToolOutcome, ToolError.ToolError> =>
  Effect.suspend(() => {
    let last: ToolError.ToolError | undefined
    const again = Effect.suspend(() =>
      last === undefined ? attempt : Effect.zipRight(Effect.logDebug("tool call repeated", last.message), attempt)
    )
    const noted = Effect.tapError(again, (error) =>
      Effect.sync(() => {
        last = error
      }))
    return Effect.retry(noted, { schedule, while: isTransient })
  })

// Running a handler again can help when it said no or crashed; wrong arguments stay wrong.
const isTransient = (error: ToolError.ToolError): boolean =>
  error._tag === "HandlerFailed" || error._tag === "HandlerRaised" || error._tag === "HandlerExit"
