/**
 * What a session is told to do, read and checked, before anything happens.
 */
import * as Effect from "effect/Effect"
import type { ChatError } from "../Allm.ts"
import type { ChatResult } from "../ChatResult.ts"
import type { Engine } from "../Engine.ts"
import type { Content, Message, UserMessage } from "../Message.ts"
import type { Input, Options, Outcome, Session, Turn } from "../Session.ts"
import type { SessionError } from "../SessionError.ts"
import type { Thread } from "../Thread.ts"
import type { ValidationError } from "../ValidationError.ts"
import { idOr, isSession, readMessage, readThread } from "./sessionInput.ts"
import * as Loop from "./sessionLoop.ts"
import type { Drive } from "./sessionRules.ts"
import { makeTurn } from "./sessionStream.ts"

type Order = Effect.Effect<Loop.Prepared, SessionError | ValidationError>

export const driven = (
  session: Session,
  operation: Drive,
  message: Message | undefined,
  options: unknown
): Order => Loop.prepare({ session, operation, message, options: (options ?? {}) as Loop.DriveOptions })

export const started = (input: Input, options: unknown): Order => {
  if (isSession(input)) return driven(input, "start", undefined, options)
  const { sessionId } = (options ?? {}) as Options
  return Effect.flatMap(
    readThread(input),
    (thread) => Effect.flatMap(idOr(sessionId), (id) => driven(fresh(id, thread), "start", undefined, options))
  )
}

const fresh = (id: string, thread: Thread): Session => ({
  id,
  thread,
  status: "idle",
  pendingToolCalls: [],
  pendingQuestions: [],
  pendingApprovals: [],
  unknownOutcomes: [],
  usage: {},
  context: {},
  metadata: {},
  version: 0
})

export const replied = (session: Session, text: Content | UserMessage, options: unknown): Order =>
  Effect.flatMap(readMessage(text), (message) => driven(session, "reply", message, options))

/** Carries an order out. */
export const chat = (order: Order): Effect.Effect<Outcome<ChatResult>, ChatError | SessionError, Engine> =>
  Effect.flatMap(order, (prepared) => Loop.driveChat(prepared, undefined))

/** Carries an order out, as it happens. */
export const chatTurn = (prepare: Order): Turn<ChatResult, ChatError | SessionError, Engine> =>
  makeTurn(prepare, Loop.driveChat, (fold, terms) => fold.toChat(terms))
