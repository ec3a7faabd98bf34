/**
 * Where sessions are kept between requests, processes and crashes.
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as KeyValueStore from "@effect/platform/KeyValueStore"
import * as Path from "@effect/platform/Path"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { filePlaces, keyValuePlaces, memoryPlaces, type Places } from "./internal/sessionStorePlaces.ts"
import * as Record from "./internal/sessionStoreRecord.ts"
import type { Session } from "./Session.ts"
import type { StoreError } from "./StoreError.ts"

/**
 * Somebody else saved the session first, or deleted it. Nothing was written: load it again, and decide what of the own
 * work still counts.
 *
 * @since 0.1.0
 * @category errors
 */
export class Conflict extends Schema.TaggedError<Conflict>("@allm/core/SessionStore/Conflict")("Conflict", {
  sessionId: Schema.String,
  /** The version that was to be replaced; 0 for a session that was to be new. */
  expectedVersion: Schema.Int,
  /** The version that is stored; 0 when there is none. */
  storedVersion: Schema.Int
}) {
  override get message(): string {
    return `session ${JSON.stringify(this.sessionId)} ${this.detail}; load it again`
  }

  /** What happened to the session, without what to do about it. */
  get detail(): string {
    const stored = this.storedVersion === 0 ? "it is not stored" : `version ${this.storedVersion} is stored`
    const expected = this.expectedVersion === 0 ? "to be new" : `saved on top of version ${this.expectedVersion}`
    return `was ${expected}, but ${stored}`
  }
}

/**
 * No session is stored under this id.
 *
 * @since 0.1.0
 * @category errors
 */
export class NotFound extends Schema.TaggedError<NotFound>("@allm/core/SessionStore/NotFound")("NotFound", {
  sessionId: Schema.String
}) {
  override get message(): string {
    return `session ${JSON.stringify(this.sessionId)} is not stored`
  }
}

/**
 * What a page tells about a session; `updatedAt` is milliseconds of the Clock at its last save.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Summary = Record.Summary

/**
 * What a list tells of a session.
 *
 * @since 0.1.0
 * @category models
 */
export interface Summary extends Schema.Schema.Type<typeof Summary> {}

/**
 * Some of the sessions, in the order of their ids.
 *
 * @since 0.1.0
 * @category models
 */
export interface Page {
  readonly sessions: ReadonlyArray<Summary>
  /** One error for each session of the page that is stored but cannot be read. */
  readonly unreadable: ReadonlyArray<StoreError>
  /** Leads to the next page; absent on the last. */
  readonly cursor: string | undefined
}

/**
 * Which page of the sessions to list.
 *
 * @since 0.1.0
 * @category models
 */
export interface ListOptions {
  /** That of the page before. */
  readonly cursor?: string | undefined
  /** How many at most, 1 to 1000. Default 50. */
  readonly limit?: number | undefined
}

/**
 * Keeps sessions by id, with optimistic versions: of two saves on top of the same version, one fails with `Conflict`.
 *
 * @since 0.1.0
 * @category services
 */
export class SessionStore extends Context.Tag("@allm/core/SessionStore")<SessionStore, {
  /**
   * Puts a session in the place of the version it was loaded with, and gives it with its new one. When it succeeds, it
   * is stored as durably as the store can; when it fails, what was stored is still there.
   */
  readonly save: (session: Session) => Effect.Effect<Session, Conflict | StoreError>
  readonly load: (id: string) => Effect.Effect<Session, NotFound | StoreError>
  /** Every session that is stored all the while is on exactly one page, whatever is saved in between. */
  readonly list: (options?: ListOptions) => Effect.Effect<Page, StoreError>
  /** Forgets a session, also one that cannot be read. It is no failure when there is none. */
  readonly delete: (id: string) => Effect.Effect<void, StoreError>
}>() {}

/**
 * The methods of a session store, as an implementation has them.
 *
 * @since 0.1.0
 * @category models
 */
export type Service = Context.Tag.Service<SessionStore>

/**
 * Keeps sessions in memory, for tests and for processes that need not survive. It holds the same texts as the durable
 * ones, so values come back as they would from a file.
 *
 * @example
 * ```ts
 * import { SessionStore, Thread } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const store = yield* SessionStore.SessionStore
 *   const saved = yield* store.save({
 *     id: "s1",
 *     thread: Thread.empty,
 *     status: "idle",
 *     pendingToolCalls: [],
 *     pendingQuestions: [],
 *     pendingApprovals: [],
 *     unknownOutcomes: [],
 *     usage: {},
 *     context: {},
 *     metadata: {},
 *     version: 0
 *   })
 *   yield* store.save(saved)
 *   return yield* Effect.flip(store.save(saved))
 * })
 *
 * assert.strictEqual(
 *   Effect.runSync(Effect.provide(program, SessionStore.layerMemory)).message,
 *   "session \"s1\" was saved on top of version 1, but version 2 is stored; load it again"
 * )
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory: Layer.Layer<SessionStore> = Layer.sync(SessionStore, () => fromPlaces(memoryPlaces()))

/**
 * Keeps sessions in a `KeyValueStore`, as durably as that is. One process at a time may use it: such a store cannot
 * compare before it writes, so versions only hold within a process.
 *
 * @example
 * ```ts
 * import { Session, SessionStore } from "@allm/core"
 * import { KeyValueStore } from "@effect/platform"
 * import { Effect, Layer } from "effect"
 *
 * const Sessions = Layer.provide(SessionStore.layerKeyValueStore, KeyValueStore.layerMemory)
 *
 * const program = Effect.gen(function*() {
 *   const store = yield* SessionStore.SessionStore
 *   yield* store.save(Session.make({ id: "s1" }))
 *   return yield* store.load("s1")
 * }).pipe(Effect.provide(Sessions))
 *
 * assert.strictEqual(Effect.runSync(program).version, 1)
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerKeyValueStore: Layer.Layer<SessionStore, never, KeyValueStore.KeyValueStore> = Layer.effect(
  SessionStore,
  Effect.map(KeyValueStore.KeyValueStore, (store) => fromPlaces(keyValuePlaces(store)))
)

/**
 * Keeps sessions in files below a directory that is made when missing. Several processes may use it at once.
 *
 * Every version is a file of its own, `<id>/<version>.session`, flushed to the disk before it takes its place: a crash
 * leaves the version before or the new one, never half of one. The last four versions stay, so when the newest is damaged
 * by other means, `load` fails with a `StoreError` that names it, and the ones before are beside it; no other session is
 * touched. A deleted session leaves its directory, empty.
 *
 * @example
 * ```ts
 * import { Session, SessionStore } from "@allm/core"
 * import { FileSystem } from "@effect/platform"
 * import { NodeContext } from "@effect/platform-node"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const files = yield* FileSystem.FileSystem
 *   const directory = yield* files.makeTempDirectoryScoped()
 *   return yield* Effect.flatMap(SessionStore.SessionStore, (store) =>
 *     store.save(Session.make({ id: "s1" }))
 *   ).pipe(Effect.provide(SessionStore.layerFileSystem(directory)))
 * }).pipe(Effect.scoped, Effect.provide(NodeContext.layer))
 *
 * assert.strictEqual((await Effect.runPromise(program)).version, 1)
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerFileSystem = (
  directory: string
): Layer.Layer<SessionStore, StoreError, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    SessionStore,
    Effect.gen(function*() {
      return fromPlaces(yield* filePlaces(directory, yield* FileSystem.FileSystem, yield* Path.Path))
    })
  )

const fromPlaces = (places: Places): Service => {
  const save = Effect.fn("SessionStore.save")(function*(session: Session) {
    const operation = "SessionStore.save"
    yield* Record.checkId(operation, session.id)
    const saved = { ...session, version: session.version + 1 }
    const now = yield* Clock.currentTimeMillis
    const text = yield* Record.encode({ operation, id: session.id }, saved, now)
    const storedVersion = yield* places.write(operation, session.id, session.version, text)
    return storedVersion === undefined ? saved : yield* new Conflict({
      sessionId: session.id,
      expectedVersion: session.version,
      storedVersion
    })
  })

  const find = Effect.fnUntraced(function*(operation: string, id: string) {
    const found = yield* places.read(operation, id)
    if (found === undefined) return undefined
    const record = yield* Record.decode({ operation, id, location: found.location }, found.text)
    const version = found.version ?? record.session.version
    return version === record.session.version ? record : { ...record, session: { ...record.session, version } }
  })

  const load = Effect.fn("SessionStore.load")(function*(id: string) {
    yield* Record.checkId("SessionStore.load", id)
    const found = yield* find("SessionStore.load", id)
    return found === undefined ? yield* new NotFound({ sessionId: id }) : found.session
  })

  const list = Effect.fn("SessionStore.list")(function*(options: ListOptions = {}) {
    const operation = "SessionStore.list"
    // Whole, or the last page would never come; what is no number counts as 1.
    const limit = Math.max(1, Math.min(Math.floor(options.limit ?? 50) || 1, 1000))
    const after = yield* Record.idOfCursor(operation, options.cursor)
    const left = (yield* places.ids(operation))
      .filter((id) => Record.compareIds(id, after) > 0)
      .sort(Record.compareIds)
    const sessions: Array<Summary> = []
    const unreadable: Array<StoreError> = []
    let taken = 0
    // Ids without a session take no place on the page.
    while (taken < left.length && sessions.length + unreadable.length < limit) {
      const next = left.slice(taken, taken + limit - sessions.length - unreadable.length)
      taken += next.length
      const found = yield* Effect.forEach(next, (id) => Effect.either(find(operation, id)), { concurrency: 16 })
      for (const one of found) {
        if (one._tag === "Left") unreadable.push(one.left)
        else if (one.right !== undefined) sessions.push(Record.summaryOf(one.right))
      }
    }
    return { sessions, unreadable, cursor: taken < left.length ? Record.cursorOf(left[taken - 1]!) : undefined }
  })

  const remove = Effect.fn("SessionStore.delete")(function*(id: string) {
    yield* Record.checkId("SessionStore.delete", id)
    yield* places.remove("SessionStore.delete", id)
  })

  return SessionStore.of({ save, load, list, delete: remove })
}
