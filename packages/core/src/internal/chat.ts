/**
 * The loop: one implementation behind `generate`, `step` and `chat`, and behind their streams.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import type { AdapterError } from "../AdapterError.ts"
import { CallbackFailed } from "../CallbackFailed.ts"
import type { ChatResult } from "../ChatResult.ts"
import type { StepChanges } from "../Engine.ts"
import * as Message from "../Message.ts"
import type { Request, ResponseFormat } from "../Request.ts"
import { make as makeResponse, type Response } from "../Response.ts"
import type { StepResult } from "../StepResult.ts"
import type { Thread } from "../Thread.ts"
import type { UnknownTool } from "../UnknownTool.ts"
import * as Usage from "../Usage.ts"
import type { ValidationError } from "../ValidationError.ts"
import type { CallSettings } from "./callSettings.ts"
import {
  breach,
  canonical,
  type Ending,
  isBreach,
  naturalEnding,
  type Turn,
  withMetadata,
  withQuestion
} from "./ending.ts"
import { changeIssues } from "./engineOptions.ts"
import { summarize } from "./errorSummary.ts"
import * as Flow from "./flow.ts"
import type { Ground } from "./flow.ts"
import type { Fold } from "./fold.ts"
import { inWords } from "./issues.ts"
import { describe, isPlainObject } from "./json.ts"
import { type Answer, askModel, EventCallbackFailure, type Surroundings, tokensOf } from "./modelCall.ts"
import { batch, firstUnknown } from "./runBatch.ts"
import { asksForTools, makeStep } from "./stepResult.ts"
import { traced } from "./trace.ts"

export type Failure = AdapterError | UnknownTool | ValidationError | CallbackFailed

/** How a step differs from the settings of its chat. */
interface Variant {
  /** The last word: no tools are offered, and none are run. */
  readonly isFinal: boolean
  readonly responseFormat: ResponseFormat | undefined
}

interface Ended {
  readonly ending: Ending
  readonly error: AdapterError | UnknownTool | undefined
}

const noChanges: StepChanges = {}

export class Chat {
  private readonly surroundings: Surroundings
  private readonly ground: Ground
  private readonly call: CallSettings
  private readonly steps: Array<StepResult> = []
  private readonly startedAt: bigint
  private thread: Thread
  private usage: Usage.Usage = Usage.empty
  private ranCalls = 0
  private repeats: Map<string, number> | undefined

  constructor(surroundings: Surroundings, ground: Ground, thread: Thread) {
    this.surroundings = surroundings
    this.ground = ground
    this.call = surroundings.call
    this.thread = thread
    this.startedAt = surroundings.clock.unsafeCurrentTimeNanos()
  }

  // --- one model call -------------------------------------------------------------------------------------------------

  generate(): Effect.Effect<Response, Failure> {
    const request = this.request(this.thread, noChanges, { isFinal: false, responseFormat: this.call.responseFormat })
    return this.ground.run(Flow.map(this.ask(request), ({ response }) => response))
  }

  private ask(
    request: Request,
    isFinal = false
  ): Flow.Flow<Answer, Failure> {
    return Flow.mapError<Answer, AdapterError | EventCallbackFailure, Failure>(
      askModel(this.surroundings, request, {
        // The last word is what is left to say when the time is over.
        limit: isFinal ? Infinity : this.timeLeft(),
        isFinal
      }),
      (error) => error instanceof EventCallbackFailure ? this.callbackFailed("onEvent", "failed", error.cause) : error
    )
  }

  private request(thread: Thread, changes: StepChanges, variant: Variant): Request {
    const { base, declarations } = this.call
    if (changes === noChanges && !variant.isFinal && variant.responseFormat === undefined) {
      return { ...base, messages: thread.messages, tools: declarations }
    }
    const { toolChoice: ownChoice, ...rest } = base
    const toolChoice = changes.toolChoice ?? ownChoice
    const { activeTools } = changes
    return {
      ...rest,
      messages: changes.messages ?? thread.messages,
      tools: variant.isFinal
        ? []
        : activeTools === undefined
        ? declarations
        : declarations.filter((tool) => activeTools.includes(tool.name)),
      ...(toolChoice === undefined || variant.isFinal ? {} : { toolChoice }),
      ...(variant.responseFormat === undefined ? {} : { responseFormat: variant.responseFormat }),
      ...(changes.model === undefined ? {} : { model: changes.model }),
      ...(changes.temperature === undefined ? {} : { temperature: changes.temperature }),
      ...(changes.maxTokens === undefined ? {} : { maxTokens: changes.maxTokens })
    }
  }

  // --- one turn -------------------------------------------------------------------------------------------------------

  step(): Effect.Effect<StepResult, Failure> {
    const turn = this.turn({ isFinal: false, responseFormat: this.call.responseFormat })
    return this.ground.run(Flow.map(turn, ({ step }) => step))
  }

  private turn(variant: Variant): Flow.Flow<Turn, Failure> {
    const { call, requestId } = this.surroundings
    return traced(() => this.takeTurn(variant), () => ({
      name: "allm.step",
      before: {
        "allm.step.index": this.steps.length,
        "allm.request.id": requestId,
        "gen_ai.conversation.id": call.run.shared.sessionId
      },
      after: ({ step }) => ({ "allm.step.tool_calls": step.toolResults.length, "allm.halt.reason": step.halt?.reason })
    }))
  }

  private takeTurn(variant: Variant): Flow.Flow<Turn, Failure> {
    const before = this.thread
    if (this.call.prepareStep === undefined) return this.takeTurnWith(before, noChanges, variant)
    return Flow.flatMap(this.prepare(before), (changes) => this.takeTurnWith(before, changes, variant))
  }

  private takeTurnWith(before: Thread, changes: StepChanges, variant: Variant): Flow.Flow<Turn, Failure> {
    const { mode, unknownTool } = this.call
    const tools = this.activeTools(changes)
    const { isFinal } = variant
    const asked = this.safely(() => before, () => this.ask(this.request(before, changes, variant), isFinal))
    return Flow.flatMap(asked, ({ error, response }) => {
      this.usage = Usage.add(this.usage, response.usage)
      if (isFinal || mode === "manual" || !asksForTools(response) || response.toolCalls.length === 0) {
        return this.finishTurn(before, response, undefined, error)
      }
      const unknown = unknownTool === "feedback" ? undefined : firstUnknown(response.toolCalls, tools)
      if (unknown !== undefined) return Flow.fail(unknown)
      return this.safely(
        () => makeStep(before, response, undefined, mode).thread,
        () => Flow.flatMap(this.runTools(response, tools), (fold) => this.finishTurn(before, response, fold, error))
      )
    })
  }

  /** Goes on when what was done so far is safe. */
  private safely<A, E>(thread: () => Thread, next: () => Flow.Flow<A, E>): Flow.Flow<A, E> {
    const { checkpoint } = this.surroundings
    if (checkpoint === undefined) return next()
    return Flow.flatMap(Flow.exitOf(checkpoint({ thread: thread(), usage: this.usage })), (exit) => {
      // It cannot fail, and what is not safe must not be built upon.
      if (Exit.isFailure(exit)) throw Cause.squash(exit.cause)
      return next()
    })
  }

  private activeTools({ activeTools }: StepChanges): CallSettings["tools"] {
    const { tools } = this.call
    return activeTools === undefined ? tools : new Map([...tools].filter(([name]) => activeTools.includes(name)))
  }

  private runTools(response: Response, tools: CallSettings["tools"]): Flow.Flow<Fold, never> {
    const { budget, run } = this.call
    const { sink } = this.surroundings
    const left = budget.maxToolCalls - this.ranCalls
    const timeLeft = this.timeLeft()
    this.count(response)
    return batch(response.toolCalls, tools, run, {
      limit: timeLeft === Infinity ? undefined : timeLeft,
      allowance: left < response.toolCalls.length
        ? { calls: left, detail: `the budget of ${budget.maxToolCalls} tool calls is used up` }
        : undefined
    }, sink)
  }

  private finishTurn(
    before: Thread,
    response: Response,
    fold: Fold | undefined,
    error: AdapterError | undefined
  ): Flow.Flow<Turn, never> {
    const step = makeStep(before, response, fold?.result(), this.call.mode)
    this.thread = step.thread
    this.steps.push(step)
    this.surroundings.sink?.push({ _tag: "StepCompleted", result: step })
    return Flow.succeed({ step, halts: fold?.halts ?? [], error })
  }

  private prepare(thread: Thread): Flow.Flow<StepChanges, Failure> {
    const info = { stepIndex: this.steps.length, thread, steps: this.steps.slice() }
    return Flow.flatMap(
      this.consult("prepareStep", () => this.call.prepareStep!(info)),
      (changes) => {
        if (changes === undefined) return Flow.succeed({})
        if (!isPlainObject(changes)) {
          return Flow.fail(this.callbackFailed("prepareStep", `gave ${describe(changes)} instead of changes`))
        }
        const found = changeIssues(changes, this.call.tools)
        return found.length === 0
          ? Flow.succeed(changes as StepChanges)
          : Flow.fail(this.callbackFailed("prepareStep", `gave changes that cannot be made: ${inWords(found)}`))
      }
    )
  }

  /** Calls a function of the caller's. */
  private consult(callback: "haltWhen" | "prepareStep", ask: () => unknown): Flow.Flow<unknown, CallbackFailed> {
    return Flow.suspend(() => {
      const asked = Either.try({ try: ask, catch: (defect) => Cause.die(defect) })
      if (Either.isLeft(asked)) return Flow.fail(this.callbackFailed(callback, "failed", asked.left))
      const answer = asked.right
      if (!Effect.isEffect(answer)) return Flow.succeed(answer)
      return Flow.flatMap(
        Flow.exitOf(answer as Effect.Effect<unknown, unknown>),
        (exit): Flow.Flow<unknown, CallbackFailed> =>
          Exit.isSuccess(exit)
            ? Flow.succeed(exit.value)
            : Flow.fail(this.callbackFailed(callback, "failed", exit.cause))
      )
    })
  }

  private callbackFailed(
    callback: CallbackFailed["callback"],
    detail: string,
    cause?: Cause.Cause<unknown>
  ): CallbackFailed {
    return new CallbackFailed({
      callback,
      detail,
      result: this.result({ reason: "error", metadata: {} }),
      ...(cause === undefined ? {} : { cause })
    }, { disableValidation: true })
  }

  // --- the loop -------------------------------------------------------------------------------------------------------

  chat(): Effect.Effect<ChatResult, Failure> {
    return this.ground.run(this.traced())
  }

  private traced(): Flow.Flow<ChatResult, Failure> {
    const { call, requestId } = this.surroundings
    return traced(() => this.loop(), () => ({
      name: "allm.chat",
      before: {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": call.engine.adapter.name,
        "gen_ai.request.model": call.base.model,
        "gen_ai.conversation.id": call.run.shared.sessionId,
        "allm.request.id": requestId
      },
      after: (result) => ({
        "allm.halted_reason": result.haltedReason,
        "allm.steps": result.steps.length,
        "gen_ai.usage.input_tokens": result.usage.inputTokens,
        "gen_ai.usage.output_tokens": result.usage.outputTokens
      })
    }))
  }

  /**
   * A chat whose answer must have a form. With tools around, many models only keep to it in a pass of its own. `check` says
   * what is wrong with an answer; `correct` lets the model mend it once, as one more turn of the same chat.
   */
  object<A, E extends { readonly message: string }, R>(
    check: (result: ChatResult) => Effect.Effect<A, E, R>,
    correction: ((error: E) => string) | undefined
  ): Effect.Effect<A, Failure | E, R> {
    const { call, ...rest } = this.surroundings
    const isTwoPass = call.structuredFinalize ?? call.declarations.length > 0
    const chat = new Chat({ ...rest, call: { ...call, structuredFinalize: isTwoPass } }, this.ground, this.thread)
    return Effect.flatMap(chat.chat(), (result) =>
      correction === undefined || result.haltedReason !== "completed"
        ? check(result)
        : Effect.catchAll(check(result), (error) => Effect.flatMap(chat.mend(correction(error), result), check)))
  }

  private mend(nudge: string, result: ChatResult): Effect.Effect<ChatResult, Failure> {
    return this.ground.run(
      Flow.flatMap(
        this.lastTurn(nudge, this.call.responseFormat),
        (last): Flow.Flow<ChatResult, Failure> =>
          Either.isLeft(last)
            ? Flow.fail(last.left)
            : Flow.succeed(this.result({ reason: result.haltedReason, metadata: result.metadata }))
      )
    )
  }

  private loop(): Flow.Flow<ChatResult, Failure> {
    const { call } = this
    const isTwoPass = call.structuredFinalize === true
    const variant: Variant = { isFinal: false, responseFormat: isTwoPass ? undefined : call.responseFormat }
    return Flow.flatMap(this.turns(variant), ({ ending, error }) => {
      if (isTwoPass) return this.finalize(ending, error)
      if (call.softLanding !== undefined && isBreach(ending.reason)) return this.land(ending, call.softLanding)
      return this.complete(ending, error)
    })
  }

  /** Turn after turn, until one of them ends the chat. A failure of the first is the chat's; later ones end it. */
  private turns(variant: Variant): Flow.Flow<Ended, Failure> {
    return Flow.loop(() =>
      Flow.match<Turn, Failure, Ended | undefined, Failure>(this.turn(variant), {
        onFailure: (error) => this.failedTurn(error),
        onSuccess: (turn) =>
          Flow.map(this.endingOf(turn), (ending) => ending === undefined ? undefined : { ending, error: turn.error })
      })
    )
  }

  private failedTurn(error: Failure): Flow.Flow<Ended, Failure> {
    if (error._tag === "CallbackFailed" || error._tag === "ValidationError") return Flow.fail(error)
    if (error._tag === "AdapterError" && error.reason === "timeout" && this.timeLeft() <= 0) {
      return Flow.succeed({ ending: breach("max_duration", this.call.budget.maxDuration), error: undefined })
    }
    if (this.steps.length === 0) return Flow.fail(error)
    return Flow.succeed({ ending: { reason: "error", metadata: { error: summarize(error) } }, error })
  }

  private endingOf(turn: Turn): Flow.Flow<Ending | undefined, Failure> {
    const natural = this.isOutOfTime(turn)
      ? breach("max_duration", this.call.budget.maxDuration)
      : naturalEnding(turn, this.call.mode, this.steps.length - 1)
    if (natural !== undefined || this.call.haltWhen === undefined) {
      return Flow.succeed(natural ?? this.exhaustion())
    }
    const { haltWhen } = this.call
    return Flow.map(this.consult("haltWhen", () => haltWhen(turn.step)), (halts): Ending | undefined =>
      halts
        ? { reason: "halt_when", metadata: { haltWhenStepIndex: this.steps.length - 1 } }
        : this.exhaustion())
  }

  /** Why the chat may not go on although it could. */
  private exhaustion(): Ending | undefined {
    const { budget, maxTurns } = this.call
    if (this.ranCalls >= budget.maxToolCalls) return breach("max_tool_calls", budget.maxToolCalls)
    if (tokensOf(this.usage) >= budget.maxTokens) return breach("max_tokens", budget.maxTokens)
    if (this.timeLeft() <= 0) return breach("max_duration", budget.maxDuration)
    for (const count of this.repeats?.values() ?? []) {
      if (count >= budget.maxRepeatedCalls) return breach("repeated_call", budget.maxRepeatedCalls)
    }
    return this.steps.length >= maxTurns ? { reason: "max_turns", metadata: { maxTurns } } : undefined
  }

  /** The model was cut off because the chat has no time left. */
  private isOutOfTime({ error }: Turn): boolean {
    return error?.reason === "timeout" && this.timeLeft() <= 0
  }

  private timeLeft(): number {
    const { maxDuration } = this.call.budget
    if (maxDuration === Infinity) return Infinity
    const elapsed = Number(this.surroundings.clock.unsafeCurrentTimeNanos() - this.startedAt) / 1_000_000
    return Math.max(0, maxDuration - elapsed)
  }

  private count(response: Response): void {
    this.ranCalls += response.toolCalls.length
    if (this.call.budget.maxRepeatedCalls === Infinity) return
    this.repeats ??= new Map()
    for (const { arguments: args, name, rawArguments } of response.toolCalls) {
      const key = `${name} ${args === undefined ? rawArguments : canonical(args)}`
      this.repeats.set(key, (this.repeats.get(key) ?? 0) + 1)
    }
  }

  // --- the last word --------------------------------------------------------------------------------------------------

  private finalize(ending: Ending, error: AdapterError | UnknownTool | undefined): Flow.Flow<ChatResult, Failure> {
    const first = { pass1Halted: ending.reason, pass1Response: this.steps.at(-1)?.response ?? null }
    const lands = this.call.softLanding !== undefined && isBreach(ending.reason)
    const isOver = !lands && ending.reason !== "completed" && ending.reason !== "max_turns" &&
      ending.reason !== "halt_when"
    if (isOver) return this.complete(withMetadata(ending, { structuredFinalize: first }), error)
    return Flow.flatMap(this.lastTurn(this.call.finalizeNudge, this.call.responseFormat), (last) => {
      if (Either.isRight(last)) {
        const { error: late, step } = last.right
        const reason = step.response.finishReason === "error" ? "error" : "completed"
        const failure = late === undefined ? {} : { error: summarize(late) }
        return this.complete({ reason, metadata: { ...failure, structuredFinalize: first } }, late)
      }
      const summary = summarize(last.left)
      return this.complete({
        reason: "error",
        metadata: { error: summary, structuredFinalize: { ...first, pass2Error: summary } }
      }, last.left)
    })
  }

  private land(ending: Ending, nudge: string): Flow.Flow<ChatResult, Failure> {
    return Flow.flatMap(this.lastTurn(nudge, this.call.responseFormat), (last) => {
      const error = Either.isRight(last) ? last.right.error : last.left
      const softLanding = error === undefined ? { landed: true } : { landed: false, error: summarize(error) }
      return this.complete(withMetadata(ending, { softLanding }), undefined)
    })
  }

  /** One more model call, without tools. Its failure is told, not thrown: the chat so far is worth more. */
  private lastTurn(
    nudge: string,
    responseFormat: ResponseFormat | undefined
  ): Flow.Flow<Either.Either<Turn, AdapterError | UnknownTool>, Failure> {
    return Flow.suspend(() => {
      if (nudge !== "") {
        const message = Message.user(nudge)
        this.thread = { ...this.thread, messages: this.thread.messages.concat(message) }
      }
      return Flow.match<Turn, Failure, Either.Either<Turn, AdapterError | UnknownTool>, Failure>(
        this.turn({ isFinal: true, responseFormat }),
        {
          onFailure: (error) =>
            error._tag === "AdapterError" || error._tag === "UnknownTool"
              ? Flow.succeed(Either.left(error))
              : Flow.fail(error),
          onSuccess: (turn) => Flow.succeed(Either.right(turn))
        }
      )
    })
  }

  private complete(ending: Ending, error: AdapterError | UnknownTool | undefined): Flow.Flow<ChatResult, never> {
    return Flow.suspend(() => {
      const result = this.result(ending, ending.reason === "error" ? error : undefined)
      this.surroundings.sink?.push({ _tag: "ChatCompleted", result })
      return Flow.succeed(result)
    })
  }

  private result(ending: Ending, error?: AdapterError | UnknownTool): ChatResult {
    const last = this.steps.at(-1)
    return {
      thread: ending.reason === "ask_user" ? withQuestion(this.thread, last!) : this.thread,
      finalResponse: last?.response ?? makeResponse({ requestId: this.surroundings.requestId }),
      steps: this.steps.slice(),
      haltedReason: ending.reason,
      pendingQuestions: last?.pendingQuestions ?? [],
      pendingApprovals: last?.pendingApprovals ?? [],
      manualToolCalls: last?.manualToolCalls ?? [],
      usage: this.usage,
      ...(error === undefined ? {} : { error }),
      metadata: ending.metadata
    }
  }
}
