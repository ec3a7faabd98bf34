/**
 * What a session is told to do, read and checked, before anything happens.
 */
import * as Effect from "effect/Effect"
import type { ChatError } from "../Allm.ts"
import type { ChatResult } from "../ChatResult.ts"
import type { Engine } from "../Engine.ts"
import type { Content, Message, UserMessage } from "../Message.ts"
import type { Input, Outcome, Session, Turn } from "../Session.ts"
import type { SessionError } from "../SessionError.ts"
import type { Thread } from "../Thread.ts"
import type { ValidationError } from "../ValidationError.ts"
import { type Caller, nameOf } from "./sessionCaller.ts"
import { idOr, readMessage, readThread } from "./sessionInput.ts"
import * as Loop from "./sessionLoop.ts"
import type { Drive } from "./sessionRules.ts"
import { isOutcome, isSession, readSession } from "./sessionShape.ts"
import { makeTurn } from "./sessionStream.ts"

type Order = Effect.Effect<Loop.Prepared, SessionError | ValidationError>

export const driven = (
  caller: Caller,
  session: Session,
  operation: Drive,
  message: Message | undefined,
  options: unknown
): Order => Loop.prepare({ caller, session, operation, message, options: (options ?? {}) as Loop.DriveOptions })

/** The session that a conversation begins with. */
export const opened = (
  caller: Caller,
  input: Input,
  sessionId: string | undefined
): Effect.Effect<Session, ValidationError> => {
  if (isOutcome(input)) return readSession(nameOf(caller), input)
  if (isSession(input)) return Effect.succeed(input)
  return Effect.flatMap(
    readThread(caller, input),
    (thread) => Effect.map(idOr(sessionId), (id) => fresh(id, thread))
  )
}

export const started = (
  caller: Caller,
  input: Input,
  options: { readonly sessionId?: string | undefined } | undefined
): Order =>
  Effect.flatMap(
    opened(caller, input, options?.sessionId),
    (session) => driven(caller, session, "start", undefined, options)
  )

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

export const replied = (
  caller: Caller,
  session: Session,
  text: Content | UserMessage,
  options: unknown
): Order => Effect.flatMap(readMessage(caller, text), (message) => driven(caller, session, "reply", message, options))

/** Carries an order out. */
export const chat = (order: Order): Effect.Effect<Outcome<ChatResult>, ChatError | SessionError, Engine> =>
  Effect.flatMap(order, (prepared) => Loop.driveChat(prepared, undefined))

/** Carries an order out, as it happens. */
export const chatTurn = (prepare: Order): Turn<ChatResult, ChatError | SessionError, Engine> =>
  makeTurn(prepare, Loop.driveChat, (fold, terms) => fold.toChat(terms))
