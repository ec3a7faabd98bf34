/**
 * One conversation with an agent in a stored session: saying something, going on, and what waits for a person.
 */
import type { ChatError } from "@allm/core/Allm"
import type { Engine } from "@allm/core/Engine"
import type { Event } from "@allm/core/Event"
import type { Question } from "@allm/core/Halt"
import * as Message from "@allm/core/Message"
import { make, type PendingApproval, type Session } from "@allm/core/Session"
import type { SessionError } from "@allm/core/SessionError"
import * as SessionRunner from "@allm/core/SessionRunner"
import { SessionStore } from "@allm/core/SessionStore"
import * as Thread from "@allm/core/Thread"
import type { ToolCall } from "@allm/core/ToolCall"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Traces } from "./trace.ts"

export interface Conversation {
  readonly sessionId: string
  /** The system message of a session that is new. */
  readonly instructions: string | undefined
  /** The label of the model, for the trace. */
  readonly model: string
  /** The module of the agent; the embedded one has none. Kept in a new session, which goes on with the same agent. */
  readonly agent?: string | undefined
}

/** Whatever can end a turn. */
export type TurnError = ChatError | SessionError | SessionRunner.RunnerError

export type Turn = Stream.Stream<Event, TurnError, SessionRunner.SessionRunner | SessionStore | Engine | Traces>

/** Says something in a stored session, or starts it when there is none. */
export const say = (conversation: Conversation, text: string): Turn => {
  const { agent, instructions, sessionId } = conversation
  const messages = [...(instructions === undefined ? [] : [Message.system(instructions)]), Message.user(text)]
  const metadata = agent === undefined ? {} : { agent }
  const start = SessionRunner.streamStart(sessionId, make({ id: sessionId, thread: Thread.make(messages), metadata }))
  const reply = Stream.unwrap(Effect.as(outOfError(sessionId), SessionRunner.streamReply(sessionId, text)))
  return recorded(conversation, text, Stream.catchTag(reply, "NotFound", () => start))
}

/** Goes on where the session stands: calls that were decided or cut off run first, then the model is asked. */
export const goOn = (conversation: Conversation): Turn =>
  recorded(
    conversation,
    undefined,
    Stream.unwrap(Effect.as(outOfError(conversation.sessionId), SessionRunner.streamContinue(conversation.sessionId)))
  )

/** A model that failed keeps nobody from asking it again. An outcome in doubt does. */
const outOfError = (sessionId: string): Effect.Effect<void, TurnError, SessionStore | SessionRunner.SessionRunner> =>
  Effect.flatMap(
    SessionStore,
    (store) =>
      Effect.flatMap(
        store.load(sessionId),
        (session) =>
          session.status === "error" && session.unknownOutcomes.length === 0
            ? Effect.asVoid(SessionRunner.recover(sessionId))
            : Effect.void
      )
  )

const recorded = <E, R>(
  { model, sessionId }: Conversation,
  input: string | undefined,
  events: Stream.Stream<Event, E, R>
): Stream.Stream<Event, E, R | Traces> =>
  Stream.unwrap(
    Effect.map(
      Traces,
      (traces) => traces.record(sessionId, { model, ...(input === undefined ? {} : { input }) }, events)
    )
  )

/** Something that only a person can say. */
export type Waiting =
  | { readonly _tag: "Question"; readonly question: Question }
  | { readonly _tag: "Approval"; readonly approval: PendingApproval }
  | { readonly _tag: "ManualCall"; readonly toolCall: ToolCall }
  /** Nobody knows whether the call took effect. */
  | { readonly _tag: "UnknownOutcome"; readonly toolCall: ToolCall }

/** What a session waits for, in the order in which it can be answered. */
export const waiting = (session: Session): ReadonlyArray<Waiting> =>
  // In its error a session takes nothing but what became of these calls.
  session.unknownOutcomes.length > 0
    ? session.unknownOutcomes.map((toolCall) => ({ _tag: "UnknownOutcome", toolCall }))
    : [
      ...session.pendingQuestions.map((question) => ({ _tag: "Question", question } as const)),
      ...session.pendingApprovals
        .filter(({ decision }) => decision === undefined)
        .map((approval) => ({ _tag: "Approval", approval } as const)),
      ...session.pendingToolCalls.map((toolCall) => ({ _tag: "ManualCall", toolCall } as const))
    ]

/** Whether the model still owes an answer: after a crash, an interruption, a failure, or once everything is answered. */
export const isUnfinished = (session: Session): boolean => {
  if (session.status === "error") return session.unknownOutcomes.length === 0
  const last = session.thread.messages.at(-1)
  return session.status === "idle" && last !== undefined && (last.role !== "assistant" || last.toolCalls.length > 0)
}

/** Whether there is something that the model has not answered, also when the last turn was ended by a limit. */
export const canGoOn = (session: Session): boolean =>
  isUnfinished(session) || session.status === "completed" && session.thread.messages.at(-1)?.role === "tool"

/** Whether calls of the last turn have yet to run: nothing can be said before. */
export const isCutOff = (session: Session): boolean => {
  if (session.status !== "idle") return false
  const { messages } = session.thread
  let last = messages.length - 1
  while (messages[last]?.role === "tool") last--
  const asked = messages[last]
  return asked?.role === "assistant" && messages.length - 1 - last < asked.toolCalls.length
}

const wordsOf = (message: Message.Message): string =>
  typeof message.content === "string"
    ? message.content
    : message.content.map((part) => part.type === "text" ? part.text : "").join(" ")

/** What a session is called: the title it was given, else what was said first. */
export const titleOf = (session: Session): string => {
  const { title } = session.metadata
  if (typeof title === "string" && title !== "") return title
  const first = session.thread.messages.find(({ role }) => role === "user")
  return first === undefined ? "" : wordsOf(first).replace(/\s+/g, " ").trim()
}

/** The last thing said by each, in the order in which it was said. */
export const lastWords = (
  session: Session
): ReadonlyArray<{ readonly role: "user" | "assistant"; readonly text: string }> => {
  const said = session.thread.messages.flatMap((message) =>
    (message.role === "user" || message.role === "assistant") && wordsOf(message).trim() !== ""
      ? [{ role: message.role, text: wordsOf(message).trim() }]
      : []
  )
  const start = said.map(({ role }) => role).lastIndexOf("user")
  return start < 0 ? said.slice(-1) : [said[start]!, ...said.slice(start + 1).slice(-1)]
}
