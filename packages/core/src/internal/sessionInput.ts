/**
 * What a session may be started with and told.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Message from "../Message.ts"
import * as Thread from "../Thread.ts"
import type { ValidationError } from "../ValidationError.ts"
import { readInput } from "./input.ts"
import * as Issues from "./issues.ts"
import { show } from "./json.ts"
import * as Caller from "./sessionCaller.ts"
import { makeId } from "./sessionLoop.ts"

/** The thread of a conversation that begins. */
export const readThread = (caller: Caller.Caller, input: unknown): Either.Either<Thread.Thread, ValidationError> => {
  const refuse = (message: string) =>
    Issues.toEither("invalid_session", [Issues.issue([], "invalid_type", message)], Thread.empty)
  if (typeof input !== "string" && (typeof input !== "object" || input === null)) {
    const name = Caller.nameOf(caller)
    return refuse(
      caller.module === "Session"
        ? `${name} takes what is said first; write ${name}(text), not ${show(input)}`
        : `${name} takes an id and what is said first; write ${name}(id, text), not ${show(input)} for the text`
    )
  }
  return Either.flatMap(
    readInput(input),
    ({ request, thread }) =>
      request === undefined
        ? Either.right(thread)
        : refuse("a session starts with text, messages or a Thread; give the rest as options")
  )
}

/** What a person says. */
export const readMessage = (caller: Caller.Caller, input: unknown): Either.Either<Message.Message, ValidationError> => {
  if (input === undefined) {
    const nothing = `nothing is said; write ${Caller.reply(caller)}`
    return Issues.toEither("invalid_message", [Issues.issue([], "required", nothing)], Message.user(""))
  }
  const message = Message.validate(
    typeof input === "string" || Array.isArray(input) ? { role: "user", content: input } : input
  )
  return Either.flatMap(message, (message) =>
    Issues.toEither(
      "invalid_message",
      message.role === "user" ? [] : [
        Issues.issue(
          ["role"],
          "not_user",
          `a reply is the person's; write Message.user("…"), not ${show(message.role)}`
        )
      ],
      message
    ))
}

/** What is no id is told with the other options. */
export const idOr = (given: unknown): Effect.Effect<string> =>
  typeof given === "string" && given !== "" ? Effect.succeed(given) : makeId
