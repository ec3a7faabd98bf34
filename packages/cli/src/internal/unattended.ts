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
import * as HashMap from "effect/HashMap"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import * as Stream from "effect/Stream"
import * as CallRows from "./chat/callRows.ts"
import { type Turn, type Waiting, waiting } from "./conversation.ts"
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
  { json, sessionId }: Options
): Effect.Effect<void, Exit | Refused, SessionRunner | SessionStore | Engine | Traces> =>
  Effect.gen(function*() {
    const sink = json ? asJson : asText(yield* Stdio)
    const began = yield* Clock.currentTimeMillis
    let result: ChatResult | undefined
    yield* Stream.runForEach(turn, (event) => {
      if (event._tag === "ChatCompleted") result = event.result
      return Effect.flatMap(Clock.currentTimeMillis, (now) => sink.add(event, now))
    }).pipe(
      Effect.ensuring(Effect.ignore(sink.end)),
      Effect.onInterrupt(() => tell(`interrupted; ${resume(sessionId)}`))
    )
    if (result === undefined) return
    yield* tell(summary(sessionId, result, (yield* Clock.currentTimeMillis) - began))
    yield* ended(sessionId, result)
  }).pipe(
    // Only whoever reads the events can have stopped reading.
    Effect.catchTag("BrokenPipe", () => new Exit({ code: codes.interrupted })),
    Effect.mapError((error) =>
      error._tag === "Exit" || error._tag === "Refused" ? error : failed(`${error.message}\n${resume(sessionId)}`)
    ),
    withLogsBeside
  )

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
  Effect.gen(function*() {
    const store = yield* SessionStore
    const open = waiting(yield* store.load(sessionId))
    if (open.length === 0) return
    yield* tell(...open.map(inWords), resume(sessionId))
    return yield* new Exit({ code: codes.waits })
  })

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

/**
 * Keeps log lines out of the output. Those about calls are told as calls already; what else goes wrong is told beside it.
 */
const withLogsBeside = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const logger = Logger.make<unknown, void>(({ annotations, logLevel, message }) => {
      if (LogLevel.lessThan(logLevel, LogLevel.Warning) || HashMap.has(annotations, "toolCallId")) return
      const text = (Array.isArray(message) ? message : [message]).map(String).join(" ")
      process.stderr.write(`warning: ${Style.inOneLine(text)}\n`)
    })
    return Effect.provide(
      self,
      Layer.mergeAll(
        Logger.remove(Logger.defaultLogger),
        // The one that a runtime puts in its place.
        Logger.remove(Logger.prettyLoggerDefault),
        Logger.add(logger)
      )
    )
  })
