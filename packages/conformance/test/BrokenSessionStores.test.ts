import { Check, SessionStoreChecks } from "@allm/conformance"
import { type Session, SessionStore, StoreError } from "@allm/core"
import { KeyValueStore } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"

type Store = SessionStore.Service

const fields = "gives back what was saved, every field of it"
const versions = "gives a saved session its next version, and leaves the value it was given"
const threads = "follows a thread that grows, changes and shrinks"
const apart = "keeps sessions apart, whatever their ids"
const badIds = "refuses ids that not every store can keep"
const badValues = "refuses what JSON cannot hold, and keeps what it has"
const missing = "tells a session that is not stored"
const conflicts = "refuses a save on top of another version, and tells the stored one"
const race = "lets one of many saves at once win"
const crowd = "loses none of many sessions that are saved at once"
const interrupted = "leaves a whole version when a save is interrupted"
const deletes = "forgets a deleted session and nothing else, and does not mind doing it twice"
const pages = "lists every session once, in the order of the ids, page by page"
const summaries = "tells of each listed session what is stored"
const limits = "takes any limit for one from 1 to 1000"
const stability = "lists what is stored all the while once, whatever is written in between"
const cursors = "refuses a cursor that it did not give"
const reopened = "has what was saved when it is opened again"
const contested = "lets one of several that have it open win"

/** A good store in memory, and what is wrong with it. Opened again, it is the same. */
const broken = (wrong: (store: Store) => Partial<Store>) => {
  const make = Effect.map(Layer.build(SessionStore.layerMemory), (context) => {
    const store = Context.get(context, SessionStore.SessionStore)
    return Layer.succeed(SessionStore.SessionStore, { ...store, ...wrong(store) })
  })
  return { place: make, shared: true }
}

const unavailable = new StoreError.StoreError({ reason: "unavailable", operation: "test" })

const renamed = (rename: (id: string) => string) =>
  broken((store) => ({
    save: (session) =>
      Effect.map(store.save({ ...session, id: rename(session.id) }), (saved) => ({ ...saved, id: session.id })),
    load: (id) => Effect.map(store.load(rename(id)), (session) => ({ ...session, id })),
    delete: (id) => store.delete(rename(id))
  }))

const changing = (change: (session: Session.Session) => Session.Session) =>
  broken((store) => ({ load: (id) => Effect.map(store.load(id), change) }))

/** Looks first and writes later, with time for others in between. */
const careless = broken((store) => {
  const overwrite = (session: Session.Session): ReturnType<Store["save"]> =>
    Effect.catchTag(
      store.save(session),
      "Conflict",
      ({ storedVersion }) => overwrite({ ...session, version: storedVersion })
    )
  return {
    save: (session) =>
      Effect.gen(function*() {
        const stored = yield* Effect.option(store.load(session.id))
        const version = stored._tag === "Some" ? stored.value.version : 0
        yield* Effect.yieldNow()
        return yield* version === session.version ? overwrite(session) : store.save(session)
      })
  }
})

/** Writes the head of a session, and then its thread. */
const twoWrites = broken((store) => {
  const threads = new Map<string, Session.Session["thread"]>()
  return {
    save: (session) =>
      Effect.gen(function*() {
        const saved = yield* store.save(session)
        yield* Effect.yieldNow()
        threads.set(session.id, session.thread)
        return saved
      }),
    load: (id) => Effect.map(store.load(id), (session) => ({ ...session, thread: threads.get(id) ?? session.thread }))
  }
})

const offsets = broken((store) => ({
  list: ({ cursor, limit } = {}) =>
    Effect.gen(function*() {
      if (cursor !== undefined && !/^after:\d+$/.test(cursor)) {
        return yield* new StoreError.StoreError({ reason: "invalid_cursor", operation: "SessionStore.list" })
      }
      const from = cursor === undefined ? 0 : Number(cursor.slice("after:".length))
      const { sessions } = yield* store.list({ limit: 1000 })
      const to = from + Math.max(1, Math.min(Math.floor(limit ?? 50) || 1, 1000))
      return {
        sessions: sessions.slice(from, to),
        unreadable: [],
        cursor: to < sessions.length ? `after:${to}` : undefined
      }
    })
}))

const slowly = <A, E>(effect: Effect.Effect<A, E>) => Effect.zipLeft(effect, Effect.yieldNow())

/** Its versions hold in one process only, and it is opened by several. */
const unlocked = {
  shared: true,
  place: Effect.gen(function*() {
    const store = Context.get(yield* Layer.build(KeyValueStore.layerMemory), KeyValueStore.KeyValueStore)
    const slow = KeyValueStore.make({
      ...store,
      get: (key) => slowly(store.get(key)),
      set: (key, value) => slowly(store.set(key, value))
    })
    return Layer.provide(SessionStore.layerKeyValueStore, Layer.succeed(KeyValueStore.KeyValueStore, slow))
  })
}

const listing = (change: (page: SessionStore.Page) => SessionStore.Page) =>
  broken((store) => ({ list: (options) => Effect.map(store.list(options), change) }))

// A fault that nobody notices is no proof.
type Noticed = readonly [string, ...Array<string>]

/** What is wrong with a store, the store, and the checks that have to notice. */
const faults: ReadonlyArray<
  readonly [fault: string, store: SessionStoreChecks.Subject<StoreError.StoreError>, noticed: Noticed]
> = [
  ["forgets the context", changing((session) => ({ ...session, context: {} })), [fields, reopened]],
  ["forgets what is pending", changing((session) => ({ ...session, pendingApprovals: [] })), [fields, reopened]],
  ["cleans texts", changing((session) => JSON.parse(JSON.stringify(session).replaceAll("\\u0000", ""))), [
    fields,
    reopened
  ]],
  ["loses count", changing((session) => ({ ...session, version: 1 })), [
    versions,
    threads,
    conflicts,
    race,
    crowd,
    interrupted,
    deletes,
    reopened,
    contested
  ]],
  [
    "changes what it is given",
    broken((store) => ({
      save: (session) => Effect.map(store.save(session), (saved) => Object.assign(session, saved))
    })),
    [versions]
  ],
  [
    "only ever appends",
    broken((store) => ({
      save: (session) =>
        Effect.gen(function*() {
          const before = yield* Effect.option(store.load(session.id))
          const old = before._tag === "Some" ? before.value.thread.messages : []
          const messages = [...old, ...session.thread.messages.slice(old.length)]
          return yield* store.save({ ...session, thread: { ...session.thread, messages } })
        })
    })),
    [threads]
  ],
  ["takes small letters for capitals", renamed((id) => id.toLowerCase()), [apart, missing, pages]],
  ["trims ids", renamed((id) => id.trim()), [apart, pages]],
  ["normalizes ids", renamed((id) => id.normalize("NFC")), [apart, pages]],
  ["cuts ids off", renamed((id) => id.slice(0, 100)), [apart, badIds, pages]],
  [
    "looks for what cannot be there",
    broken((store) => ({
      load: (id) => id === "" ? new SessionStore.NotFound({ sessionId: id }) : store.load(id)
    })),
    [badIds]
  ],
  [
    "crashes where it should fail",
    broken((store) => ({
      save: (session) => Effect.catchTag(store.save(session), "StoreError", (error) => Effect.die(error))
    })),
    [badIds, badValues]
  ],
  [
    "leaves out what it cannot print",
    broken((store) => ({
      save: (session) =>
        Effect.catchTag(
          store.save(session),
          "StoreError",
          (error) => error.reason === "not_encodable" ? store.save({ ...session, context: {}, metadata: {} }) : error
        )
    })),
    [badValues]
  ],
  [
    "does not tell missing from broken",
    broken((store) => ({ load: (id) => Effect.catchTag(store.load(id), "NotFound", () => unavailable) })),
    [apart, badValues, missing, conflicts, deletes]
  ],
  [
    "lets the last one win",
    broken((store) => ({
      save: (session): ReturnType<Store["save"]> =>
        Effect.catchTag(
          store.save(session),
          "Conflict",
          ({ storedVersion }) => store.save({ ...session, version: storedVersion })
        )
    })),
    [conflicts, race, deletes, reopened, contested]
  ],
  [
    "does not tell the stored version",
    broken((store) => ({
      save: (session) =>
        Effect.catchTag(
          store.save(session),
          "Conflict",
          (error) => new SessionStore.Conflict({ ...error, storedVersion: error.expectedVersion })
        )
    })),
    [conflicts, race, deletes, reopened, contested]
  ],
  ["looks before it writes", careless, [race, contested]],
  [
    "can do one thing at a time",
    broken((store) => {
      let isBusy = false
      return {
        save: (session) =>
          Effect.suspend(() => {
            if (isBusy) return unavailable
            isBusy = true
            return Effect.ensuring(
              Effect.zipLeft(store.save(session), Effect.yieldNow()),
              Effect.sync(() => {
                isBusy = false
              })
            )
          })
      }
    }),
    [race, crowd, contested]
  ],
  ["writes in two steps", twoWrites, [interrupted]],
  ["keeps what is deleted", broken(() => ({ delete: () => Effect.void })), [apart, badIds, deletes, contested]],
  [
    "minds deleting twice",
    broken((store) => ({
      delete: (id) => Effect.zipRight(Effect.mapError(store.load(id), () => unavailable), store.delete(id))
    })),
    [badIds, deletes]
  ],
  [
    "deletes what has a similar name",
    broken((store) => ({
      delete: (id) =>
        Effect.gen(function*() {
          const { sessions } = yield* store.list({ limit: 1000 })
          const similar = sessions.filter((session) => session.id.startsWith(id))
          yield* Effect.forEach([id, ...similar.map((session) => session.id)], store.delete)
        })
    })),
    [apart, deletes]
  ],
  [
    "sorts by half characters",
    listing((page) => ({ ...page, sessions: [...page.sessions].sort((a, b) => a.id < b.id ? -1 : 1) })),
    [pages]
  ],
  ["has one page", listing((page) => ({ ...page, cursor: undefined })), [pages, limits, stability, reopened]],
  [
    "lists every session as idle",
    listing((page) => ({ ...page, sessions: page.sessions.map((one) => ({ ...one, status: "idle" })) })),
    [summaries]
  ],
  [
    "does not know when",
    listing((page) => ({ ...page, sessions: page.sessions.map((one) => ({ ...one, updatedAt: 0 })) })),
    [summaries]
  ],
  [
    "lists nothing when asked for nothing",
    broken((store) => ({
      list: (options) =>
        options?.limit === 0
          ? Effect.succeed({ sessions: [], unreadable: [], cursor: undefined })
          : store.list(options)
    })),
    [limits]
  ],
  ["counts to find its page", offsets, [stability]],
  [
    "starts again when it does not know a cursor",
    broken((store) => ({ list: (options) => Effect.catchAll(store.list(options), () => store.list()) })),
    [cursors]
  ],
  ["is empty when it is opened again", { place: Effect.succeed(SessionStore.layerMemory) }, [reopened]],
  ["holds versions in one process only", unlocked, [contested]]
]

const noticedBy = <E>(store: SessionStoreChecks.Subject<E>) =>
  Effect.map(
    Check.violations(SessionStoreChecks.make(store), { concurrency: "unbounded" }),
    (violations) => violations.map((violation) => violation.check)
  )

describe("SessionStoreChecks", () => {
  for (const [fault, store, noticed] of faults) {
    it.live(`notice a store that ${fault}`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* noticedBy(store), [...noticed])
      }))
  }

  it.live("find nothing wrong with a good store", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* noticedBy(broken(() => ({}))), [])
    }))

  it.live("notice a layer that cannot be built, and a place that cannot be made", () =>
    Effect.gen(function*() {
      const layer: Layer.Layer<SessionStore.SessionStore, string> = Layer.fail("no connection")
      const [unbuilt] = yield* Check.violations(SessionStoreChecks.make(layer))
      const [unmade] = yield* Check.violations(SessionStoreChecks.make({ place: Effect.fail("no disk") }))

      assert.strictEqual(unbuilt?.problem, "the layer cannot be built: \"no connection\"")
      assert.strictEqual(unmade?.problem, "the place cannot be made: \"no disk\"")
    }))

  it.effect("are each needed by a fault", () =>
    Effect.sync(() => {
      const names = SessionStoreChecks.make(SessionStore.layerMemory).map((check) => check.name)

      assert.deepStrictEqual(names.filter((name) => faults.every(([, , noticed]) => !noticed.includes(name))), [])
    }))
})
