/**
 * Sessions as people name them: by an id, or as much of its beginning as no other has.
 */
import { SessionStore, type Summary } from "@allm/core/SessionStore"
import type { StoreError } from "@allm/core/StoreError"
import * as Effect from "effect/Effect"
import { type Refused, wrongUse } from "./exit.ts"
import { nearest } from "./nearest.ts"

/** All that is stored. */
export interface Stored {
  readonly sessions: ReadonlyArray<Summary>
  readonly unreadable: ReadonlyArray<StoreError>
}

/** Every session of the store, in the order of their ids. */
export const all: Effect.Effect<Stored, StoreError, SessionStore> = Effect.gen(function*() {
  const store = yield* SessionStore
  const sessions: Array<Summary> = []
  const unreadable: Array<StoreError> = []
  let cursor: string | undefined
  do {
    const page = yield* store.list({ cursor, limit: 1000 })
    sessions.push(...page.sessions)
    unreadable.push(...page.unreadable)
    cursor = page.cursor
  } while (cursor !== undefined)
  return { sessions, unreadable }
})

/** The id of the session that is meant, also of one that cannot be read. */
export const find = (asked: string): Effect.Effect<string, Refused | StoreError, SessionStore> =>
  Effect.gen(function*() {
    const { load } = yield* SessionStore
    const isStored = yield* load(asked).pipe(
      Effect.as(true),
      Effect.catchTag("NotFound", () => Effect.succeed(false)),
      Effect.catchIf(({ reason }) => reason === "corrupt" || reason === "newer_format", () => Effect.succeed(true)),
      Effect.catchIf(({ reason }) => reason === "invalid_id", () => Effect.succeed(false))
    )
    if (isStored) return asked
    const { sessions, unreadable } = yield* all
    const ids = [...sessions.map(({ id }) => id), ...unreadable.flatMap(({ id }) => id ?? [])]
    const matching = asked === "" ? [] : ids.filter((id) => id.startsWith(asked))
    if (matching.length === 1) return matching[0]!
    return yield* wrongUse(matching.length === 0 ? unknown(asked, ids) : ambiguous(asked, matching))
  })

const mostShown = 5

const ambiguous = (asked: string, ids: ReadonlyArray<string>): string => {
  const more = ids.length > mostShown ? ` and ${ids.length - mostShown} more` : ""
  return `${ids.length} sessions begin with ${JSON.stringify(asked)}: ${ids.slice(-mostShown).join(", ")}${more}. ` +
    "Write more of the id."
}

const unknown = (asked: string, ids: ReadonlyArray<string>): string => {
  const near = nearest(asked, ids)
  const advice = ids.length === 0
    ? "None is stored here."
    : near.length > 0
    ? `The nearest: ${near.join(", ")}.`
    : "See them with: allm sessions"
  return `There is no session ${JSON.stringify(asked)}. ${advice}`
}
