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
import type { Cells, Key } from "../ToolJournal.ts"
import { durable } from "./journalFiles.ts"
import { nameOf, shortNameOf } from "./names.ts"

/** How a store can fail. */
export type StoreFailure = PlatformError | ParseError

export const memoryCells = (): Cells => {
  const sessions = new Map<string, Map<string, string>>()
  const locate = ({ sessionId, toolCallId }: Key): string => JSON.stringify([sessionId, toolCallId])
  const textOf = ({ sessionId, toolCallId }: Key): string | undefined => sessions.get(sessionId)?.get(toolCallId)
  const set = ({ sessionId, toolCallId }: Key, text: string): void => {
    let session = sessions.get(sessionId)
    if (session === undefined) sessions.set(sessionId, session = new Map())
    session.set(toolCallId, text)
  }
  return {
    locate,
    read: (key) => Effect.sync(() => textOf(key)),
    create: (key, text) =>
      Effect.sync(() => {
        const known = textOf(key)
        if (known === undefined) set(key, text)
        return known
      }),
    replace: (key, text) => Effect.sync(() => set(key, text)),
    list: (sessionId) =>
      Effect.sync(() =>
        Array.from(sessions.get(sessionId) ?? [], ([toolCallId, text]) => ({
          location: locate({ sessionId, toolCallId }),
          text
        }))
      ),
    remove: (sessionId, toolCallIds) =>
      Effect.sync(() => {
        const session = sessions.get(sessionId)
        for (const toolCallId of toolCallIds) session?.delete(toolCallId)
        if (session?.size === 0) sessions.delete(sessionId)
      })
  }
}

const Index = Schema.parseJson(Schema.Array(Schema.String))
const readIndex = Schema.decode(Index)
const printIndex = Schema.encodeSync(Index)

/** A store cannot list its keys, so each session has an index, written before the entry it names. */
export const keyValueCells = (store: KeyValueStore): Cells<StoreFailure> => {
  const locks = new Locks()
  const locate = ({ sessionId, toolCallId }: Key): string => `${shortNameOf(sessionId)}/${shortNameOf(toolCallId)}`
  const textAt = (place: string) => Effect.map(store.get(place), Option.getOrUndefined)
  const placesOf = (sessionId: string): Effect.Effect<ReadonlyArray<string>, StoreFailure> =>
    Effect.flatMap(
      store.get(shortNameOf(sessionId)),
      Option.match({ onNone: () => Effect.succeed([]), onSome: readIndex })
    )
  // Files complain when they are asked to remove what is not there.
  const drop = (place: string) => Effect.flatMap(store.has(place), (has) => has ? store.remove(place) : Effect.void)
  const create = Effect.fnUntraced(function*(key: Key, text: string) {
    const place = locate(key)
    const known = yield* textAt(place)
    if (known !== undefined) return known
    const places = yield* placesOf(key.sessionId)
    if (!places.includes(place)) yield* store.set(shortNameOf(key.sessionId), printIndex([...places, place]))
    yield* store.set(place, text)
    return undefined
  })
  const remove = Effect.fnUntraced(function*(sessionId: string, gone: ReadonlyArray<string>) {
    yield* Effect.forEach(gone, drop, { discard: true })
    const left = (yield* placesOf(sessionId)).filter((place) => !gone.includes(place))
    yield* left.length === 0
      ? drop(shortNameOf(sessionId))
      : store.set(shortNameOf(sessionId), printIndex(left))
  })
  return {
    locate,
    read: (key) => textAt(locate(key)),
    create: (key, text) => locks.hold(key.sessionId, create(key, text)),
    replace: (key, text) => store.set(locate(key), text),
    list: (sessionId) => Effect.flatMap(placesOf(sessionId), (places) => textsAt(places, textAt)),
    remove: (sessionId, toolCallIds) =>
      locks.hold(sessionId, remove(sessionId, toolCallIds.map((toolCallId) => locate({ sessionId, toolCallId }))))
  }
}

/** What is at these places still. */
const textsAt = <E>(
  places: ReadonlyArray<string>,
  textAt: (place: string) => Effect.Effect<string | undefined, E>
) =>
  Effect.map(
    Effect.forEach(places, (location) => Effect.map(textAt(location), (text) => ({ location, text }))),
    (found) => found.flatMap(({ location, text }) => text === undefined ? [] : [{ location, text }])
  )

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
  const textAt = (file: string) => Effect.map(files.read(file), Option.getOrUndefined)
  const create = (key: Key, text: string): Effect.Effect<string | undefined, PlatformError> =>
    Effect.gen(function*() {
      const file = locate(key)
      // Looked for first, so that what is known is found on a full disk too.
      const known = yield* textAt(file)
      if (known !== undefined || (yield* files.create(file, text))) return known
      // Somebody was faster.
      return yield* create(key, text)
    })
  const cells: Cells<PlatformError> = {
    locate,
    read: (key) => textAt(locate(key)),
    create,
    replace: (key, text) => files.replace(locate(key), text),
    list: (sessionId) => {
      const folder = folderOf(sessionId)
      return Effect.flatMap(
        files.list(folder),
        (names) =>
          textsAt(names.filter((name) => name.endsWith(".json")).map((name) => path.join(folder, name)), textAt)
      )
    },
    remove: (sessionId, toolCallIds) => {
      const folder = folderOf(sessionId)
      return Effect.flatMap(files.list(folder), (names) =>
        files.remove(folder, [
          ...toolCallIds.map((toolCallId) => locate({ sessionId, toolCallId })),
          ...names.filter(files.isLeftover).map((name) => path.join(folder, name))
        ]))
    }
  }
  return cells
})
