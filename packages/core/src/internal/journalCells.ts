/**
 * Where the entries of a journal are kept: one text per call, in memory, under the keys of a store, or in files.
 */
import type { PlatformError } from "@effect/platform/Error"
import type { FileSystem } from "@effect/platform/FileSystem"
import type { KeyValueStore } from "@effect/platform/KeyValueStore"
import type { Path } from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ParseError } from "effect/ParseResult"
import * as Schema from "effect/Schema"
import type { Key } from "../ToolJournal.ts"
import { digestOf } from "./journalDigest.ts"
import { durable } from "./journalFiles.ts"

/** How a store can fail. */
export type StoreFailure = PlatformError | ParseError

export interface Cells<E = StoreFailure> {
  /** The place of a call's entry, also in words for people. */
  readonly locate: (key: Key) => string
  readonly read: (place: string) => Effect.Effect<Option.Option<string>, E>
  /** Puts a text where there is none, durably. Tells whether it did. */
  readonly create: (key: Key, text: string) => Effect.Effect<boolean, E>
  /** Puts a text in the place of another, durably and at once. */
  readonly replace: (key: Key, text: string) => Effect.Effect<void, E>
  /** The places of a session's entries. */
  readonly list: (sessionId: string) => Effect.Effect<ReadonlyArray<string>, E>
  readonly remove: (sessionId: string, places: ReadonlyArray<string>) => Effect.Effect<void, E>
}

export const memoryCells = (): Cells<never> => {
  const sessions = new Map<string, Map<string, string>>()
  const locate = ({ sessionId, toolCallId }: Key): string => JSON.stringify([sessionId, toolCallId])
  const all = new Map<string, string>()
  const set = (key: Key, text: string): void => {
    const place = locate(key)
    all.set(place, text)
    let session = sessions.get(key.sessionId)
    if (session === undefined) sessions.set(key.sessionId, session = new Map())
    session.set(place, key.toolCallId)
  }
  return {
    locate,
    read: (place) => Effect.sync(() => Option.fromNullable(all.get(place))),
    create: (key, text) =>
      Effect.sync(() => {
        if (all.has(locate(key))) return false
        set(key, text)
        return true
      }),
    replace: (key, text) => Effect.sync(() => set(key, text)),
    list: (sessionId) => Effect.sync(() => [...sessions.get(sessionId)?.keys() ?? []]),
    remove: (sessionId, places) =>
      Effect.sync(() => {
        const session = sessions.get(sessionId)
        for (const place of places) {
          all.delete(place)
          session?.delete(place)
        }
        if (session?.size === 0) sessions.delete(sessionId)
      })
  }
}

const Index = Schema.parseJson(Schema.Array(Schema.String))
const readIndex = Schema.decode(Index)
const printIndex = Schema.encodeSync(Index)

/** A store cannot list its keys, so each session has an index, written before the entry it names. */
export const keyValueCells = (store: KeyValueStore): Cells => {
  const locks = new Locks()
  const locate = ({ sessionId, toolCallId }: Key): string => `${nameOf(sessionId)}/${nameOf(toolCallId)}`
  const list = (sessionId: string): Effect.Effect<ReadonlyArray<string>, StoreFailure> =>
    Effect.flatMap(store.get(nameOf(sessionId)), Option.match({ onNone: () => Effect.succeed([]), onSome: readIndex }))
  const create = Effect.fnUntraced(function*(key: Key, text: string) {
    const place = locate(key)
    if (yield* store.has(place)) return false
    const places = yield* list(key.sessionId)
    if (!places.includes(place)) yield* store.set(nameOf(key.sessionId), printIndex([...places, place]))
    yield* store.set(place, text)
    return true
  })
  const remove = Effect.fnUntraced(function*(sessionId: string, places: ReadonlyArray<string>) {
    yield* Effect.forEach(places, (place) => store.remove(place), { discard: true })
    const left = (yield* list(sessionId)).filter((place) => !places.includes(place))
    yield* left.length === 0
      ? store.remove(nameOf(sessionId))
      : store.set(nameOf(sessionId), printIndex(left))
  })
  return {
    locate,
    read: store.get,
    list,
    create: (key, text) => locks.hold(key.sessionId, create(key, text)),
    replace: (key, text) => store.set(locate(key), text),
    remove: (sessionId, places) => locks.hold(sessionId, remove(sessionId, places))
  }
}

/** One piece of work at a time per session. */
class Locks {
  private readonly held = new Map<string, { readonly semaphore: Effect.Semaphore; users: number }>()

  hold<A, E>(sessionId: string, work: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      let lock = this.held.get(sessionId)
      if (lock === undefined) this.held.set(sessionId, lock = { semaphore: Effect.unsafeMakeSemaphore(1), users: 0 })
      const own = lock
      own.users++
      return Effect.ensuring(
        own.semaphore.withPermits(1)(work),
        Effect.sync(() => {
          own.users--
          if (own.users === 0) this.held.delete(sessionId)
        })
      )
    })
  }
}

/** A directory per session, a file per call. */
export const fileCells = Effect.fnUntraced(function*(directory: string, fs: FileSystem, path: Path) {
  const files = yield* durable(fs, path)
  yield* files.makeDirectory(directory)
  const folderOf = (sessionId: string): string => path.join(directory, nameOf(sessionId))
  const locate = ({ sessionId, toolCallId }: Key): string =>
    path.join(folderOf(sessionId), `${nameOf(toolCallId)}.json`)
  const cells: Cells<PlatformError> = {
    locate,
    read: files.read,
    create: (key, text) => files.create(locate(key), text),
    replace: (key, text) => files.replace(locate(key), text),
    list: (sessionId) =>
      Effect.map(
        files.list(folderOf(sessionId)),
        (names) => names.filter((name) => name.endsWith(".json")).map((name) => path.join(folderOf(sessionId), name))
      ),
    remove: (sessionId, places) => {
      const folder = folderOf(sessionId)
      return Effect.flatMap(files.list(folder), (names) =>
        files.remove(folder, [
          ...places,
          ...names.filter(files.isLeftover).map((name) => path.join(folder, name))
        ]))
    }
  }
  return cells
})

const bytes = new TextEncoder()

// Also on systems where upper and lower case are the same name, or a dot has a meaning.
const nameOf = (id: string): string => {
  const name = id.replaceAll(
    /[^a-z0-9_-]/gu,
    (character) => Array.from(bytes.encode(character), (byte) => `%${byte.toString(16).padStart(2, "0")}`).join("")
  )
  // Most systems end at 255 characters.
  return name.length === 0 ? "%" : name.length <= 180 ? name : `${name.slice(0, 100)}%-${digestOf(id, null)}`
}
