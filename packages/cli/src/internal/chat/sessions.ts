/**
 * What the commands of a chat do with stored sessions.
 */
import type { Session } from "@allm/core/Session"
import * as SessionRunner from "@allm/core/SessionRunner"
import { SessionStore } from "@allm/core/SessionStore"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { titleOf, waiting } from "../conversation.ts"
import * as SessionIds from "../sessionIds.ts"
import * as Style from "../terminal/style.ts"
import { dim, say, Terminal } from "../terminal/terminal.ts"
import * as Tell from "./tell.ts"

/** A session, if it is stored by now. */
export const find = (sessionId: string) =>
  Effect.flatMap(
    SessionStore,
    (store) => Effect.catchTag(Effect.asSome(store.load(sessionId)), "NotFound", () => Effect.succeedNone)
  )

/** Gives the session a title, where one is asked for, and tells how to come back to it. */
export const save = (sessionId: string, title: string, comeBack: (sessionId: string) => string) =>
  Effect.gen(function*() {
    if (Option.isNone(yield* find(sessionId))) {
      return yield* say(dim("Nothing has been said yet, so there is nothing to save."))
    }
    if (title !== "") {
      yield* SessionRunner.modify(
        sessionId,
        (session) =>
          Effect.succeed({ session: { ...session, metadata: { ...session.metadata, title } }, result: undefined })
      )
    }
    yield* say(
      dim(`Saved${title === "" ? "" : ` as "${Style.inOneLine(title)}"`}: ${sessionId}. To come back:`),
      ...Tell.command(comeBack(sessionId))
    )
  })

/** The session of an id, or of as much of its beginning as no other has. */
export const named = (asked: string) =>
  Effect.asSome(SessionIds.find(asked)).pipe(
    Effect.catchTag("Refused", ({ message }) => Effect.as(say({ text: message, style: "red" }), Option.none<string>()))
  )

const most = 9

/** Asks which of the latest sessions is meant. */
export const choose = (current: string) =>
  Effect.gen(function*() {
    const terminal = yield* Terminal
    const store = yield* SessionStore
    const { sessions } = yield* SessionIds.all
    const latest = sessions.filter(({ id }) => id !== current).sort((a, b) => b.updatedAt - a.updatedAt).slice(0, most)
    if (latest.length === 0) {
      yield* say(dim("There is no other session."))
      return Option.none<string>()
    }
    const now = yield* Clock.currentTimeMillis
    const loaded = yield* Effect.forEach(latest, ({ id }) => store.load(id))
    yield* say(
      "",
      ...loaded.map((session, index) => ({
        text: `${index + 1}  ${Style.cut(titleOf(session) || session.id, 60)}${
          asideOf(session, now - latest[index]!.updatedAt)
        }`,
        indent: 2
      }))
    )
    const input = yield* terminal.readLine({ text: "which one › ", kind: "answer" })
    if (input._tag !== "Line" || input.text.trim() === "") return Option.none<string>()
    const chosen = latest[Number(input.text.trim()) - 1]
    return chosen === undefined ? yield* named(input.text.trim()) : Option.some(chosen.id)
  })

const asideOf = (session: Session, age: number): string =>
  `  (${session.id}, ${ago(age)}${waiting(session).length > 0 ? ", waits for you" : ""})`

const ago = (millis: number): string => {
  const minutes = Math.floor(millis / 60_000)
  if (minutes < 1) return "just now"
  if (minutes < 60) return `${minutes} min ago`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ago` : `${Math.floor(hours / 24)} days ago`
}
