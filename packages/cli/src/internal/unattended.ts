/**
 * A turn that nobody attends: the answer, or the events, go to the output; everything else is told beside it.
 */
import type { ChatResult } from "@allm/core/ChatResult"
import type { Engine } from "@allm/core/Engine"
import * as Event from "@allm/core/Event"
import type { SessionRunner } from "@allm/core/SessionRunner"
import { type NotFound, SessionStore } from "@allm/core/SessionStore"
import type { StoreError } from "@allm/core/StoreError"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as CallRows from "./chat/callRows.ts"
import { type Notes, withNotes } from "./chat/notes.ts"
import { type Turn, type TurnError, type Waiting, waiting } from "./conversation.ts"
import { codes, Exit, failed, type Refused } from "./exit.ts"
import { type BrokenPipe, jsonLine, print, type Service, Stdio, tell } from "./stdio.ts"
import * as Style from "./terminal/style.ts"
import type { Traces } from "./trace.ts"

/** Where the events of a turn go. */
interface Sink {
  readonly add: (event: Event.Event, now: number) => Effect.Effect<void, BrokenPipe>
  /** The turn is over, also when it failed. */
  readonly end: Effect.Effect<void, BrokenPipe>
}

const eventLine = jsonLine(Event.Event)

const asJson: Sink = {
  add: (event) => Effect.flatMap(eventLine(event), (line) => print(line)),
  end: Effect.void
}

/**
 * The answer goes to the output, the calls beside it. What is said before calls is no part of the answer, which only shows
 * when they come: so a person sees it as it comes, and a file gets it when it is known to be the answer.
 */
const asText = ({ isSeen, out }: Service): Sink => {
  const startedAt = new Map<string, number>()
  let kept = ""
  let isInLine = false

  const take = (): string => {
    const text = kept + (isInLine ? "\n" : "")
    kept = ""
    isInLine = false
    return text
  }
  const answered = Effect.suspend(() => out(take()))
  const aside = Effect.suspend(() => {
    const text = take()
    return isSeen ? out(text) : text.trim() === "" ? Effect.void : tell(text.trimEnd())
  })
  const said = (delta: string): Effect.Effect<void, BrokenPipe> => {
    const text = isSeen ? Style.clean(delta) : delta
    if (text !== "") isInLine = !text.endsWith("\n")
    if (isSeen) return out(text)
    kept += text
    return Effect.void
  }

  return {
    add: (event, now) => {
      switch (event._tag) {
        case "TextDelta":
          return said(event.delta)
        case "ToolCallStarted":
          return aside
        case "ToolExecutionStarted":
          startedAt.set(event.toolCallId, now)
          return Effect.void
        case "ToolExecutionCompleted": {
          const millis = now - (startedAt.get(event.toolCallId) ?? now)
          return tell(...CallRows.plain(event, Style.duration(millis)))
        }
        case "StepCompleted":
          return event.result.response.toolCalls.length > 0 ? aside : answered
        default:
          return Effect.void
      }
    },
    end: answered
  }
}

export interface Options {
  readonly sessionId: string
  readonly json: boolean
}

/**
 * Plays a turn to its end, and ends the command as the turn did. When nobody reads the output any more, or the command is
 * interrupted, the turn is interrupted, and what it did is in the session.
 */
export const play = (
  turn: Turn,
  options: Options
): Effect.Effect<void, Exit | Refused, SessionRunner | SessionStore | Engine | Traces> =>
  withNotes((notes) => played(turn, options, notes)).pipe(
    // Only whoever reads the events can have stopped reading.
    Effect.catchTag("BrokenPipe", () => new Exit({ code: codes.interrupted })),
    Effect.mapError((error) => refusal(error, options.sessionId))
  )

const played = Effect.fnUntraced(function*(turn: Turn, { json, sessionId }: Options, notes: Notes) {
  const sink = json ? asJson : asText(yield* Stdio)
  const began = yield* Clock.currentTimeMillis
  const noted = Effect.suspend(() => tell(...notes.take().map((note) => `note: ${Style.inOneLine(note)}`)))
  let result: ChatResult | undefined
  yield* Stream.runForEach(turn, (event) => {
    if (event._tag === "ChatCompleted") result = event.result
    return Effect.zipRight(noted, Effect.flatMap(Clock.currentTimeMillis, (now) => sink.add(event, now)))
  }).pipe(
    Effect.ensuring(Effect.zipRight(Effect.ignore(sink.end), noted)),
    Effect.onInterrupt(() => tell(`interrupted; ${resume(sessionId)}`))
  )
  if (result === undefined) return
  yield* tell(summary(sessionId, result, (yield* Clock.currentTimeMillis) - began))
  yield* ended(sessionId, result)
})

const refusal = (error: TurnError | Exit | Refused, sessionId: string): Exit | Refused => {
  switch (error._tag) {
    case "Exit":
    case "Refused":
      return error
    case "SessionError":
      return failed(`session ${sessionId} has something left to do first; ${resume(sessionId)}`)
    default:
      return failed(`${error.message}\n${resume(sessionId)}`)
  }
}

const resume = (sessionId: string): string => `go on with: allm sessions resume ${sessionId}`

const summary = (sessionId: string, { steps, usage }: ChatResult, millis: number): string => {
  const calls = steps.reduce((sum, { response }) => sum + response.toolCalls.length, 0)
  const tokens = (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)
  return [
    `session ${sessionId}`,
    ...(calls === 0 ? [] : [Style.count(calls, "call")]),
    ...(tokens === 0 ? [] : [Style.count(tokens, "token")]),
    Style.duration(millis)
  ].join(", ")
}

const reasons: { readonly [reason: string]: string } = {
  max_turns: "the limit of turns was reached before the model was done",
  max_tool_calls: "the limit of tool calls was reached",
  max_tokens: "the limit of tokens was reached",
  max_duration: "the limit of time was reached",
  repeated_call: "the model repeated the same call",
  tool_error: "a tool failed, and this agent stops then"
}

/** How a turn ended decides how the command ends. */
const ended = (
  sessionId: string,
  { error, haltedReason }: ChatResult
): Effect.Effect<void, Exit | Refused | NotFound | StoreError, SessionStore> =>
  Effect.gen(function*() {
    if (haltedReason === "error") return yield* failed(`${error?.message ?? "the model failed"}\n${resume(sessionId)}`)
    const reason = reasons[haltedReason]
    if (reason !== undefined) return yield* failed(`${reason}; ${resume(sessionId)}`)
    yield* waits(sessionId)
  })

/** Ends the command when somebody has to say something first. */
export const waits = (sessionId: string): Effect.Effect<void, Exit | NotFound | StoreError, SessionStore> =>
  Effect.flatMap(open(sessionId), (all) => all.length === 0 ? Effect.void : stopped(sessionId, all))

/** Ends the command when a session waits for something that is not said in words. */
export const waitsForMore = (sessionId: string): Effect.Effect<void, Exit | NotFound | StoreError, SessionStore> =>
  Effect.flatMap(
    open(sessionId),
    (all) => all.every(({ _tag }) => _tag === "Question") ? Effect.void : stopped(sessionId, all)
  )

const open = (sessionId: string): Effect.Effect<ReadonlyArray<Waiting>, NotFound | StoreError, SessionStore> =>
  Effect.flatMap(SessionStore, (store) => Effect.map(store.load(sessionId), waiting))

const stopped = (sessionId: string, all: ReadonlyArray<Waiting>): Effect.Effect<never, Exit> =>
  Effect.zipRight(tell(...all.map(inWords), resume(sessionId)), new Exit({ code: codes.waits }))

/** What waits for a person, in a line. */
export const inWords = (one: Waiting): string => {
  switch (one._tag) {
    case "Question":
      return `waits for an answer: ${Style.inOneLine(one.question.question)}${choicesOf(one.question.options)}`
    case "Approval":
      return `waits for consent: ${callInWords(one.approval.toolCall)}`
    case "ManualCall":
      return `waits for a result: ${callInWords(one.toolCall)}`
    case "UnknownOutcome":
      return `nobody knows whether it took effect: ${callInWords(one.toolCall)}`
  }
}

const choicesOf = ({ choices }: { readonly [key: string]: unknown }): string =>
  Array.isArray(choices) && choices.length > 0 ? ` (${Style.inOneLine(choices.join(", "))})` : ""

const callInWords = (call: Parameters<typeof CallRows.argumentsOf>[0]): string =>
  Style.cut(`${call.name} ${CallRows.argumentsOf(call)}`, 200)
