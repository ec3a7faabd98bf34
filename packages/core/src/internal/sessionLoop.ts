/**
 * Driving a session: first the calls its last turn left open, then the loop. The only file about sessions that knows the
 * insides of the loop.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Random from "effect/Random"
import type { ChatError, Options as AllmOptions } from "../Allm.ts"
import type { ChatResult } from "../ChatResult.ts"
import { Engine } from "../Engine.ts"
import type { Event } from "../Event.ts"
import type { Halt } from "../Halt.ts"
import type * as Message from "../Message.ts"
import { make as makeResponse } from "../Response.ts"
import type { Outcome, Session } from "../Session.ts"
import type { SessionError } from "../SessionError.ts"
import type { StepResult } from "../StepResult.ts"
import type { ToolCall } from "../ToolCall.ts"
import type { UnknownTool } from "../UnknownTool.ts"
import { ValidationError } from "../ValidationError.ts"
import { resolve } from "./callSettings.ts"
import { naturalEnding, withQuestion as withQuestions } from "./ending.ts"
import { sessionCallIssues } from "./engineOptions.ts"
import { summarize } from "./errorSummary.ts"
import type { Sink } from "./handover.ts"
import * as Issues from "./issues.ts"
import type { Checkpoint } from "./modelCall.ts"
import { withChat } from "./openChat.ts"
import { firstUnknown, runFold } from "./runBatch.ts"
import * as Caller from "./sessionCaller.ts"
import { applyChat, applyProgress, applyStep, type Terms } from "./sessionProjection.ts"
import { decisionOf, type Drive, driveRefusal } from "./sessionRules.ts"
import { readSession } from "./sessionShape.ts"
import { lastAsked, openCalls, putAnswers, withQuestion } from "./sessionThread.ts"
import { positiveDuration } from "./toolOptions.ts"

/** The options of the loop, and what only sessions have. */
export interface DriveOptions extends AllmOptions {
  readonly approvalTimeout?: Duration.DurationInput | undefined
}

export interface Order {
  readonly caller: Caller.Caller
  readonly session: Session
  readonly operation: Drive
  readonly message: Message.Message | undefined
  readonly options: DriveOptions
}

/** An order that can be carried out. */
export interface Prepared {
  /** With what the person said; nothing else has happened to it. */
  readonly session: Session
  readonly open: ReadonlyArray<ToolCall>
  readonly options: AllmOptions
  readonly requestId: string
  readonly approvalTimeout: number
  /** Has to succeed before the model is asked and before calls are run. */
  readonly checkpoint?: ((session: Session) => Effect.Effect<void>) | undefined
}

export const defaultApprovalTimeout = Duration.toMillis("24 hours")

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

/** 22 letters, as many as 16 random bytes have in base64. */
export const makeId: Effect.Effect<string> = Effect.map(
  Effect.replicateEffect(Random.nextIntBetween(0, letters.length), 22),
  (digits) => digits.map((digit) => letters[digit]).join("")
)

/** Refuses what the session or the options do not allow, before anything happens. */
export const prepare = (order: Order): Effect.Effect<Prepared, SessionError | ValidationError> =>
  Effect.flatMap(Clock.currentTimeMillis, (now): Effect.Effect<Prepared, SessionError | ValidationError> => {
    const { caller, message, operation, session } = order
    const shaped = readSession(Caller.nameOf(caller), session)
    if (Either.isLeft(shaped)) return shaped.left
    const refusal = driveRefusal(caller, session, operation, now)
    if (refusal !== undefined) return refusal
    const checked = Issues.toEither("invalid_options", sessionCallIssues(caller, order.options), undefined)
    if (Either.isLeft(checked)) return checked.left
    if (message === undefined && session.thread.messages.length === 0) return emptyRefusal(caller, operation)
    const { approvalTimeout, ...options } = order.options
    return Effect.map(
      options.requestId === undefined ? makeId : Effect.succeed(options.requestId),
      (requestId): Prepared => ({
        session: message === undefined ? session : withMessage(session, message),
        open: openCalls(session),
        options: {
          ...options,
          context: { ...session.context, ...options.context },
          sessionId: options.sessionId ?? session.id,
          requestId
        },
        requestId,
        approvalTimeout: approvalTimeout === undefined
          ? defaultApprovalTimeout
          : Duration.toMillis(positiveDuration(approvalTimeout)!)
      })
    )
  })

const emptyRefusal = (caller: Caller.Caller, operation: Drive): ValidationError => {
  // One that is to be stored cannot be replied to yet.
  const isNew = operation === "start" && caller.module === "SessionRunner"
  const instead = isNew ? Caller.instead(caller, caller.operation, "text") : Caller.reply(caller)
  return new ValidationError({
    reason: "invalid_thread",
    issues: [Issues.issue(["thread", "messages"], "empty", `there is nothing to answer; use ${instead}`)]
  })
}

const withMessage = (session: Session, message: Message.Message): Session => {
  const thread = withQuestion(session)
  return {
    ...session,
    thread: { ...thread, messages: thread.messages.concat(message) },
    pendingQuestions: [],
    status: "idle"
  }
}

/** The checkpoint of a session as that of its chat. The session itself is given as long as nothing has happened to it. */
const checkpointOf = ({ checkpoint, session }: Prepared): Checkpoint | undefined =>
  checkpoint === undefined ? undefined : (progress) =>
    Effect.suspend(() => {
      const isUntouched = progress.thread.messages.length === session.thread.messages.length
      return checkpoint(isUntouched ? session : applyProgress(session, progress))
    })

export const termsOf = ({ approvalTimeout }: Prepared): Effect.Effect<Terms> =>
  Effect.map(Clock.currentTimeMillis, (now) => ({ now, approvalTimeout }))

export const driveChat = (
  prepared: Prepared,
  sink: Sink<Event> | undefined
): Effect.Effect<Outcome<ChatResult>, ChatError, Engine> => {
  const result = prepared.open.length === 0
    ? withChat(prepared.session.thread, prepared.options, sink, (chat) => chat.chat(), checkpointOf(prepared))
    : resumeChat(prepared, sink)
  return Effect.flatMap(
    result,
    (result) =>
      Effect.map(termsOf(prepared), (terms) => ({ session: applyChat(prepared.session, result, terms), result }))
  )
}

export const driveStep = (
  prepared: Prepared,
  sink: Sink<Event> | undefined
): Effect.Effect<Outcome<StepResult>, ChatError, Engine> => {
  const result = prepared.open.length === 0
    ? withChat(prepared.session.thread, prepared.options, sink, (chat) => chat.step(), checkpointOf(prepared))
    : Effect.map(finishTurn(prepared, sink), ({ step }) => step)
  return Effect.flatMap(
    result,
    (result) =>
      Effect.map(termsOf(prepared), (terms) => ({ session: applyStep(prepared.session, result, terms), result }))
  )
}

/** A turn whose calls have now run. */
interface Resumed {
  readonly step: StepResult
  readonly halts: ReadonlyArray<Halt>
}

/** Runs the calls that the last turn left open; the model is not asked. */
const finishTurn = (
  prepared: Prepared,
  sink: Sink<Event> | undefined
): Effect.Effect<Resumed, UnknownTool | ValidationError, Engine> =>
  Effect.contextWithEffect((
    services: Context.Context<Engine>
  ): Effect.Effect<Resumed, UnknownTool | ValidationError> => {
    const { open, requestId, session } = prepared
    const settings = resolve(
      Context.get(services, Engine),
      { thread: session.thread, request: undefined },
      { ...prepared.options, approvals: decisionsOf(session, open) },
      requestId,
      services as Context.Context<never>
    )
    if (Either.isLeft(settings)) return settings.left
    const { mode, run, tools, unknownTool } = settings.right
    // In this mode all calls are the caller's, except those somebody has already decided about.
    const own = mode === "manual" ? open.filter(({ id }) => run.approvals.has(id)) : open
    const manual = mode === "manual" ? open.filter(({ id }) => !run.approvals.has(id)) : []
    const unknown = unknownTool === "feedback" ? undefined : firstUnknown(own, tools)
    if (unknown !== undefined) return unknown
    return Effect.map(runFold(own, tools, run, sink), (fold) => {
      const result = fold.result()
      const message = lastAsked(session.thread)!
      const inDoubt = result.outcomes.flatMap(({ result, toolCall }) =>
        result._tag === "OutcomeUnknown" ? [toolCall.id] : []
      )
      const step: StepResult = {
        thread: putAnswers(session.thread, result.messages),
        // What the model said in this turn, when it was asked. Its tokens were counted then.
        response: makeResponse({
          requestId,
          message,
          toolCalls: message.toolCalls,
          finishReason: "tool_calls"
        }),
        toolResults: result.messages,
        done: result.halt !== undefined,
        ...(result.halt === undefined ? {} : { halt: result.halt }),
        pendingQuestions: result.questions,
        pendingApprovals: result.approvals,
        manualToolCalls: [...result.manualToolCalls, ...manual],
        metadata: { resumed: true, ...(inDoubt.length === 0 ? {} : { outcomesUnknown: inDoubt }) }
      }
      sink?.push({ _tag: "StepCompleted", result: step })
      return { step, halts: fold.halts }
    })
  })

/** What was decided about the calls that are to run, and about no others. */
const decisionsOf = (session: Session, open: ReadonlyArray<ToolCall>): NonNullable<AllmOptions["approvals"]> =>
  Object.fromEntries(
    open.flatMap((call) => {
      const decision = decisionOf(session, call)
      if (decision === undefined) return []
      return [[call.id, decision._tag === "Approved" ? { _tag: "Approved" as const } : decision]]
    })
  )

/** The open calls, and then the loop. What the calls did is never lost: a failure after them is told in the result. */
const resumeChat = (
  prepared: Prepared,
  sink: Sink<Event> | undefined
): Effect.Effect<ChatResult, ChatError, Engine> =>
  Effect.flatMap(finishTurn(prepared, sink), ({ halts, step }) => {
    const complete = (result: ChatResult): ChatResult => {
      sink?.push({ _tag: "ChatCompleted", result })
      return result
    }
    const ending = naturalEnding({ step, halts, error: undefined }, "auto", 0)
    if (ending !== undefined) {
      const thread = ending.reason === "ask_user" ? withQuestions(step.thread, step) : step.thread
      return Effect.succeed(complete({ ...endedBy(step, ending.reason, ending.metadata), thread }))
    }
    // The end of the loop is told below, with the turn that was finished before it.
    const inner: Sink<Event> | undefined = sink === undefined ? undefined : {
      push: (event) => event._tag === "ChatCompleted" ? undefined : sink.push(event),
      get hasRoom() {
        return sink.hasRoom
      },
      onRoom: (proceed) => sink.onRoom(proceed)
    }
    const rest = withChat(step.thread, prepared.options, inner, (chat) => chat.chat(), checkpointOf(prepared))
    return Effect.matchEffect(rest, {
      onSuccess: (result) => Effect.sync(() => complete(following(step, result))),
      onFailure: (error) =>
        error._tag === "CallbackFailed"
          ? Effect.fail(error)
          : Effect.sync(() =>
            complete({
              ...endedBy(step, "error", { error: summarize(error) }),
              ...(error._tag === "ValidationError" ? {} : { error })
            })
          )
    })
  })

const endedBy = (step: StepResult, haltedReason: string, metadata: ChatResult["metadata"]): ChatResult => ({
  thread: step.thread,
  finalResponse: step.response,
  steps: [step],
  haltedReason,
  pendingQuestions: step.pendingQuestions,
  pendingApprovals: step.pendingApprovals,
  manualToolCalls: step.manualToolCalls,
  usage: {},
  metadata
})

const counted = ["manualTurnIndex", "haltWhenStepIndex"] as const

/** The result of a chat that went on after a turn was finished. */
const following = (step: StepResult, result: ChatResult): ChatResult => {
  const metadata = { ...result.metadata }
  for (const key of counted) {
    const index = metadata[key]
    if (typeof index === "number") metadata[key] = index + 1
  }
  return { ...result, steps: [step, ...result.steps], metadata }
}
