/**
 * Where whole sessions are kept: one text per session, in memory, under the keys of a store, or in files.
 */
import type { PlatformError } from "@effect/platform/Error"
import type { FileSystem } from "@effect/platform/FileSystem"
import type { KeyValueStore } from "@effect/platform/KeyValueStore"
import type { Path } from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { StoreError } from "../StoreError.ts"
import { digestOf } from "./journalDigest.ts"
import { durable } from "./journalFiles.ts"
import { idOfName, nameOf } from "./names.ts"
import * as Record from "./sessionStoreRecord.ts"

/** A text and where it is. */
export interface Found {
  readonly text: string
  readonly location: string
  /** What the place says; it counts more than the text, which may have been copied there from an older version. */
  readonly version?: number
}

/** Asks for the operation in whose name it fails. */
export interface Places {
  readonly read: (operation: string, id: string) => Effect.Effect<Found | undefined, StoreError>
  /**
   * Puts a text in the place of the version `base`, 0 being none. When another version is stored, gives that one, and
   * nothing was written.
   */
  readonly write: (
    operation: string,
    id: string,
    base: number,
    text: string
  ) => Effect.Effect<number | undefined, StoreError>
  readonly remove: (operation: string, id: string) => Effect.Effect<void, StoreError>
  /** Ids of what is stored, or was until just now, in any order. */
  readonly ids: (operation: string) => Effect.Effect<ReadonlyArray<string>, StoreError>
}

export const memoryPlaces = (): Places => {
  const stored = new Map<string, { readonly version: number; readonly text: string }>()
  return {
    read: (_, id) =>
      Effect.sync(() => {
        const found = stored.get(id)
        return found === undefined ? undefined : { text: found.text, location: "memory" }
      }),
    write: (_, id, base, text) =>
      Effect.sync(() => {
        const version = stored.get(id)?.version ?? 0
        if (version !== base) return version
        stored.set(id, { version: base + 1, text })
        return undefined
      }),
    remove: (_, id) => Effect.sync(() => void stored.delete(id)),
    ids: () => Effect.sync(() => [...stored.keys()])
  }
}

const Index = Schema.parseJson(Schema.Array(Schema.String))
const readIndex = Schema.decode(Index)
const printIndex = Schema.encodeSync(Index)

const indexKey = "sessions"
// Some stores keep their keys as files, whose names end at 255 characters.
const keyOf = (id: string): string =>
  encodeURIComponent(id).length <= 200 ? `session/${id}` : `long-session/${digestOf(id, null)}`

/**
 * A store cannot list its keys, so there is an index of ids. It is written before the first text of a session and after
 * the last, so that a crash leaves an id too many at most.
 */
export const keyValuePlaces = (store: KeyValueStore): Places => {
  // The store cannot compare and set, so writes queue up: one process at a time may use it.
  const turn = Effect.unsafeMakeSemaphore(1).withPermits(1)

  const get = (operation: string, key: string, id?: string) =>
    Effect.mapError(store.get(key), unavailable({ operation, location: key, ...(id === undefined ? {} : { id }) }))

  const ids = Effect.fnUntraced(function*(operation: string) {
    const index = yield* get(operation, indexKey)
    return Option.isNone(index)
      ? []
      : yield* Effect.mapError(readIndex(index.value), Record.corrupt({ operation, location: indexKey }))
  })

  const setIndex = (frame: Record.Frame, all: ReadonlyArray<string>) =>
    Effect.mapError(store.set(indexKey, printIndex(all)), unavailable({ ...frame, location: indexKey }))

  const write = Effect.fnUntraced(function*(operation: string, id: string, base: number, text: string) {
    const location = keyOf(id)
    const frame = { operation, id, location }
    const before = yield* get(operation, location, id)
    const version = Option.isNone(before) ? 0 : (yield* Record.decode(frame, before.value)).session.version
    if (version !== base) return version
    if (base === 0) {
      const all = yield* ids(operation)
      if (!all.includes(id)) yield* setIndex(frame, [...all, id])
    }
    yield* Effect.mapError(store.set(location, text), unavailable(frame))
    return undefined
  })

  const remove = Effect.fnUntraced(function*(operation: string, id: string) {
    const location = keyOf(id)
    const frame = { operation, id, location }
    // Files complain when they are asked to remove what is not there.
    if (yield* Effect.mapError(store.has(location), unavailable(frame))) {
      yield* Effect.mapError(store.remove(location), unavailable(frame))
    }
    const all = yield* ids(operation)
    if (all.includes(id)) yield* setIndex(frame, all.filter((other) => other !== id))
  })

  return {
    read: (operation, id) =>
      Effect.map(
        get(operation, keyOf(id), id),
        Option.match({ onNone: () => undefined, onSome: (text) => ({ text, location: keyOf(id) }) })
      ),
    write: (operation, id, base, text) => turn(Effect.uninterruptible(write(operation, id, base, text))),
    remove: (operation, id) => turn(Effect.uninterruptible(remove(operation, id))),
    ids
  }
}

const unavailable = (frame: Record.Frame) => (error: PlatformError): StoreError =>
  isFull(error)
    ? Record.fail(frame, "full", error.message, error)
    : Record.fail(frame, "unavailable", error.message, error)

const isFull = (error: PlatformError): boolean =>
  /\b(ENOSPC|EDQUOT|EFBIG)\b/.test(`${error.message} ${String(error.cause)}`)

// Enough that a slow writer finds the version after its own still taken, and a person the last ones before a damaged one.
const kept = 4

/** What the files of a directory are called, and who made it. */
export interface Kind {
  readonly suffix: string
  readonly operation: string
}

const sessions: Kind = { suffix: ".session", operation: "SessionStore.layerFileSystem" }

/**
 * A directory per session, a file per version. A new version is a new file, which is there as a whole or not at all, and
 * of two that want to be the same version, one is told: by the file system, so it holds between processes too.
 */
export const filePlaces = Effect.fnUntraced(function*(
  directory: string,
  fs: FileSystem,
  path: Path,
  kind: Kind = sessions
) {
  const files = yield* durable(fs, path)
  const { suffix } = kind
  const { targetOf, versionsOf } = numbered(suffix)
  const folderOf = (id: string): string => path.join(directory, nameOf(id))
  const fileOf = (id: string, version: number): string => path.join(folderOf(id), `${version}${suffix}`)

  const namesOf = (operation: string, id: string) =>
    Effect.mapError(files.list(folderOf(id)), unavailable({ operation, id, location: folderOf(id) }))

  const read = (operation: string, id: string, attempts = 3): Effect.Effect<Found | undefined, StoreError> =>
    Effect.gen(function*() {
      const newest = Math.max(0, ...versionsOf(yield* namesOf(operation, id)))
      if (newest === 0) return undefined
      const location = fileOf(id, newest)
      const text = yield* Effect.mapError(files.read(location), unavailable({ operation, id, location }))
      if (Option.isSome(text)) return { text: text.value, location, version: newest }
      // It went between the two looks: there is a newer one, or none.
      return attempts > 1 ? yield* read(operation, id, attempts - 1) : undefined
    })

  const drop = (operation: string, id: string, names: ReadonlyArray<string>) =>
    Effect.mapError(
      files.remove(folderOf(id), names.map((name) => path.join(folderOf(id), name))),
      unavailable({ operation, id, location: folderOf(id) })
    )

  const write = Effect.fnUntraced(function*(operation: string, id: string, base: number, text: string) {
    const before = Math.max(0, ...versionsOf(yield* namesOf(operation, id)))
    if (before !== base) return before
    const location = fileOf(id, base + 1)
    const frame = { operation, id, location }
    const create = files.create(location, text)
    const isOurs = yield* Effect.catchIf(
      create,
      isMissing,
      () => Effect.zipRight(fs.makeDirectory(folderOf(id), { recursive: true }), create)
    ).pipe(
      Effect.mapError(unavailable(frame))
    )
    const names = yield* namesOf(operation, id)
    const versions = versionsOf(names)
    const newest = Math.max(0, ...versions)
    if (!isOurs) return newest
    // A writer that slept while others went on may find its place free again, because it was cleared.
    if ((base > 0 && !versions.includes(base)) || newest - kept > base) {
      yield* drop(operation, id, [`${base + 1}${suffix}`])
      return newest === base + 1 ? 0 : newest
    }
    // What is left over from writers that died can only be older than this version. Other files are somebody else's.
    const old = names.filter((name) => {
      const target = targetOf(name)
      return target > 0 && target <= (name.endsWith(".tmp") ? base + 1 : base + 1 - kept)
    })
    yield* Effect.ignore(drop(operation, id, old))
    return undefined
  })

  /** Oldest first, so that what a crash leaves is still the newest; again until nothing came in between. */
  const remove = (operation: string, id: string): Effect.Effect<void, StoreError> =>
    Effect.flatMap(namesOf(operation, id), (names) => {
      const own = names.filter((name) => targetOf(name) > 0).sort((a, b) => targetOf(a) - targetOf(b))
      return own.length === 0 ? Effect.void : Effect.zipRight(drop(operation, id, own), remove(operation, id))
    })

  const ids = Effect.fnUntraced(function*(operation: string) {
    const names = yield* Effect.mapError(files.list(directory), unavailable({ operation, location: directory }))
    const found = yield* Effect.forEach(names, (name) => idOf(operation, name), { concurrency: 16 })
    return found.filter((id) => id !== undefined)
  })

  /** The id is in the name, unless it was too long for one. */
  const idOf = (operation: string, name: string): Effect.Effect<string | undefined, StoreError> =>
    name.includes("%-") ? idInside(operation, path.join(directory, name)) : Effect.succeed(idOfName(name))

  const idInside = Effect.fnUntraced(function*(operation: string, folder: string) {
    const names = yield* Effect.mapError(files.list(folder), unavailable({ operation, location: folder }))
    const newest = Math.max(0, ...versionsOf(names))
    if (newest === 0) return undefined
    const location = path.join(folder, `${newest}${suffix}`)
    const text = yield* Effect.mapError(files.read(location), unavailable({ operation, location }))
    return Option.getOrUndefined(Option.flatMap(text, readId))?.session.id
  })

  yield* Effect.mapError(
    fs.makeDirectory(directory, { recursive: true }),
    unavailable({ operation: kind.operation, location: directory })
  )
  const places: Places = {
    read,
    write: (operation, id, base, text) => Effect.uninterruptible(write(operation, id, base, text)),
    remove: (operation, id) => Effect.uninterruptible(remove(operation, id)),
    ids
  }
  return places
})

const readId = Schema.decodeOption(Schema.parseJson(Schema.Struct({ session: Schema.Struct({ id: Schema.String }) })))

const isMissing = (error: PlatformError): boolean => error._tag === "SystemError" && error.reason === "NotFound"

const named = /^(\d+)(\.[a-z]+)(?:\.[^.]+\.tmp)?$/

const numbered = (suffix: string) => {
  /** The version a file is of, or was going to be; 0 for what is no file of this store. */
  const targetOf = (name: string): number => {
    const [, version, kind] = named.exec(name) ?? []
    return kind === suffix ? Number(version) : 0
  }
  const versionsOf = (names: ReadonlyArray<string>): ReadonlyArray<number> =>
    names.filter((name) => name.endsWith(suffix)).map(targetOf)
  return { targetOf, versionsOf }
}
