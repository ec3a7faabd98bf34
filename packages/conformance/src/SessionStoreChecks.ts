/**
 * What every session store has to do, as checks.
 *
 * @since 0.1.0
 */
import { type Session, SessionStore, StoreError } from "@allm/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import type { Check, Options, Place } from "./Check.ts"
import { type Body, each, ensure, type Problem, render, same } from "./internal/check.ts"
import { badIds, ids, said, samples, saying, session, sorted } from "./internal/sessionSamples.ts"
import { fromText, type Open, refuse, settle, StoreBench, succeed, told } from "./internal/storeBench.ts"

type Store = SessionStore.Service

type Checked = Effect.Effect<void, Problem>

/**
 * A store under test: a layer, or a place whose layer can be built again to see what outlives a process.
 *
 * @since 0.1.0
 * @category models
 */
export type Subject<E = never> =
  | Layer.Layer<SessionStore.SessionStore, E>
  | Place<SessionStore.SessionStore, E>

/**
 * The checks of a session store. Each builds the layer anew and uses ids of its own, so the store need not be empty.
 *
 * @example
 * ```ts
 * import * as Check from "@allm/conformance/Check"
 * import * as SessionStoreChecks from "@allm/conformance/SessionStoreChecks"
 * import { SessionStore } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const checks = SessionStoreChecks.make(SessionStore.layerMemory)
 *
 * Effect.runPromise(Check.violations(checks)).then((violations) => assert.deepStrictEqual(violations, []))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <E>(subject: Subject<E>, options?: Options): ReadonlyArray<Check> => {
  const bench = new StoreBench(SessionStore.SessionStore, subject, options)
  return [
    bench.one("gives back what was saved, every field of it", fidelity),
    bench.one("gives a saved session its next version, and leaves the value it was given", versions),
    bench.one("follows a thread that grows, changes and shrinks", threads),
    bench.one("keeps sessions apart, whatever their ids", apart),
    bench.one("refuses ids that not every store can keep", refusesIds),
    bench.one("refuses what JSON cannot hold, and keeps what it has", refusesValues),
    bench.one("tells a session that is not stored", missing),
    bench.one("refuses a save on top of another version, and tells the stored one", conflicts),
    bench.one("lets one of many saves at once win", race),
    bench.one("loses none of many sessions that are saved at once", crowd),
    bench.one("leaves a whole version when a save is interrupted", interrupted),
    bench.one("forgets a deleted session and nothing else, and does not mind doing it twice", deletes),
    bench.one("lists every session once, in the order of the ids, page by page", pages),
    bench.one("tells of each listed session what is stored", summaries),
    bench.one("takes any limit for one from 1 to 1000", limits),
    bench.one("lists what is stored all the while once, whatever is written in between", stability),
    bench.one("refuses a cursor that it did not give", cursors),
    bench.later("has what was saved when it is opened again", reopened),
    bench.together("lets one of several that have it open win", contested)
  ]
}

const loadSame = (store: Store, expected: Session.Session): Checked =>
  Effect.flatMap(
    succeed(`loading ${render(expected.id)}`, store.load(expected.id)),
    (loaded) => same(`what is loaded of ${render(expected.id)}`, fromText(loaded), fromText(expected))
  )

const save = (store: Store, value: Session.Session): Effect.Effect<Session.Session, Problem> =>
  succeed(`saving ${render(value.id)}`, store.save(value))

const isNotFound = (store: Store, id: string): Checked =>
  Effect.flatMap(refuse(`loading ${render(id)}`, store.load(id)), (error) =>
    error._tag === "NotFound"
      ? same("the id of NotFound", error.sessionId, id)
      : Effect.fail(`loading ${render(id)} failed with ${told(error)}, not with NotFound`))

const hasReason = <E>(
  what: string,
  operation: Effect.Effect<unknown, E>,
  reason: StoreError.StoreError["reason"]
): Checked =>
  Effect.flatMap(refuse(what, operation), (error) =>
    ensure(
      error instanceof StoreError.StoreError && error.reason === reason,
      () => `${what} failed with ${told(error)}, not with a StoreError of reason ${reason}`
    ))

const isConflict = (store: Store, value: Session.Session, storedVersion: number): Checked =>
  Effect.flatMap(
    refuse(`a save on top of version ${value.version}`, store.save(value)),
    (error) =>
      error._tag === "Conflict"
        ? same("the conflict", [error.sessionId, error.expectedVersion, error.storedVersion], [
          value.id,
          value.version,
          storedVersion
        ])
        : Effect.fail(`a save on top of version ${value.version} failed with ${told(error)}, not with Conflict`)
  )

/** Every page, from the first to the last. */
const listed = (
  store: Store,
  prefix: string,
  limit: number,
  between: (page: number) => Checked = () => Effect.void
): Effect.Effect<ReadonlyArray<SessionStore.Summary>, Problem> =>
  Effect.gen(function*() {
    const found: Array<SessionStore.Summary> = []
    let cursor: string | undefined
    let page = 0
    do {
      const { cursor: next, sessions, unreadable } = yield* succeed("a list", store.list({ cursor, limit }))
      yield* ensure(sessions.length + unreadable.length <= limit, () => `a page of ${limit} has ${sessions.length}`)
      yield* ensure(next === undefined || next !== cursor, () => `the cursor ${render(next)} leads to its own page`)
      found.push(...sessions)
      cursor = next
      if (cursor !== undefined) yield* between(++page)
    } while (cursor !== undefined)
    return found.filter(({ id }) => id.startsWith(prefix))
  })

const idsOf = (sessions: ReadonlyArray<{ readonly id: string }>): ReadonlyArray<string> => sessions.map(({ id }) => id)

const fidelity = (store: Store, prefix: string): Checked =>
  each(samples(prefix), (sample) => Effect.zipRight(save(store, sample), loadSame(store, { ...sample, version: 1 })))

const versions = (store: Store, prefix: string): Checked =>
  Effect.gen(function*() {
    const first = session(`${prefix}s`)
    const before = render(first)
    const saved = yield* save(store, first)
    yield* same("the value that was saved", render(first), before)
    yield* same("the session that a save gives", saved, { ...first, version: 1 })
    const again = yield* save(store, { ...saved, status: "completed" })
    yield* same("the second", again, { ...first, status: "completed", version: 2 })
    yield* loadSame(store, again)
  })

const threads = (store: Store, prefix: string): Checked =>
  Effect.gen(function*() {
    let last = session(`${prefix}s`)
    for (const texts of ["a", "ab", "abcd", "abcxe", "ay", "ayz", "q", "", "r", "ra"].map((text) => text.split(""))) {
      last = yield* save(store, saying(last, texts))
      yield* same("the thread that a save gives", said(last), texts)
      yield* loadSame(store, last)
    }
    // As after a round trip over a wire: equal, and not the same values.
    const copy = fromText(last) as Session.Session
    yield* save(store, { ...copy, thread: { ...copy.thread, messages: copy.thread.messages.slice(0, 1) } })
    yield* same("the thread", said(yield* succeed("loading", store.load(last.id))), ["r"])
  })

const apart = (store: Store, prefix: string): Checked =>
  Effect.gen(function*() {
    const all = ids(prefix)
    yield* each(all, (id) => save(store, session(id, { metadata: { id } })))
    yield* each(all, (id) => loadSame(store, session(id, { metadata: { id }, version: 1 })))
    const [gone, ...rest] = all
    yield* succeed("deleting", store.delete(gone!))
    yield* isNotFound(store, gone!)
    yield* each(rest, (id) => loadSame(store, session(id, { metadata: { id }, version: 1 })))
  })

const refusesIds = (store: Store): Checked =>
  each(badIds, (id) =>
    Effect.all([
      hasReason(`saving ${render(id)}`, store.save(session(id)), "invalid_id"),
      hasReason(`loading ${render(id)}`, store.load(id), "invalid_id"),
      hasReason(`deleting ${render(id)}`, store.delete(id), "invalid_id")
    ]))

const refusesValues = (store: Store, prefix: string): Checked =>
  Effect.gen(function*() {
    const saved = yield* save(store, session(`${prefix}s`))
    yield* each(
      [{ rate: NaN }, { rate: Infinity }, { at: new Map() }, { big: 1n }, { run: () => 1 }],
      (context) => hasReason(`saving ${render(context)}`, store.save({ ...saved, context }), "not_encodable")
    )
    yield* loadSame(store, saved)
    yield* hasReason("saving a new one", store.save(session(`${prefix}n`, { metadata: { n: NaN } })), "not_encodable")
    yield* isNotFound(store, `${prefix}n`)
  })

const missing = (store: Store, prefix: string): Checked =>
  Effect.zipRight(
    isNotFound(store, `${prefix}never`),
    Effect.zipRight(save(store, session(`${prefix}s`)), isNotFound(store, `${prefix}S`))
  )

const conflicts = (store: Store, prefix: string): Checked =>
  Effect.gen(function*() {
    const first = yield* save(store, session(`${prefix}s`))
    const second = yield* save(store, { ...first, status: "completed" })
    yield* isConflict(store, { ...first, metadata: { late: true } }, 2)
    yield* isConflict(store, session(`${prefix}s`), 2)
    yield* isConflict(store, { ...first, version: 3 }, 2)
    yield* isConflict(store, session(`${prefix}never`, { version: 1 }), 0)
    yield* loadSame(store, second)
    yield* isNotFound(store, `${prefix}never`)
  })

const writers = ["a", "b", "c", "d", "e"]

/** Exactly one may have won, the rest have to know the version of the winner. */
const oneWins = (
  results: ReadonlyArray<Either.Either<Session.Session, SessionStore.Conflict | StoreError.StoreError>>,
  version: number
): Effect.Effect<Session.Session, Problem> =>
  Effect.gen(function*() {
    const won = results.flatMap((result) => Either.isRight(result) ? [result.right] : [])
    yield* ensure(won.length === 1, () => `${won.length} of ${results.length} saves on top of one version succeeded`)
    yield* each(results, (result) =>
      Either.isRight(result)
        ? Effect.void
        : ensure(
          result.left._tag === "Conflict" && result.left.storedVersion === version,
          () => `a save that lost failed with ${told(result.left)}`
        ))
    return won[0]!
  })

const race = (store: Store, prefix: string): Checked =>
  each([0, 1], (version) =>
    Effect.gen(function*() {
      const id = `${prefix}${version}`
      const base = version === 0 ? session(id) : yield* save(store, session(id))
      const results = yield* Effect.forEach(
        writers,
        (text) => settle("a save", store.save(saying(base, [...said(base), text]))),
        { concurrency: "unbounded" }
      )
      yield* loadSame(store, yield* oneWins(results, version + 1))
    }))

const crowd = (store: Store, prefix: string): Checked =>
  Effect.gen(function*() {
    const all = Array.from({ length: 20 }, (_, index) => session(`${prefix}${index}`))
    const saved = yield* Effect.forEach(all, (one) => save(store, one), { concurrency: "unbounded" })
    const again = yield* Effect.forEach(saved, (one) => save(store, saying(one, [one.id])), {
      concurrency: "unbounded"
    })
    yield* each(again, (one) => loadSame(store, one))
    yield* same("the list", idsOf(yield* listed(store, prefix, 1000)), sorted(idsOf(all)))
  })

const interrupted = (store: Store, prefix: string): Checked =>
  Effect.gen(function*() {
    let last = yield* save(store, saying(session(`${prefix}s`), ["0"]))
    for (let turn = 0; turn < 20; turn++) {
      const next = saying({ ...last, metadata: { turn } }, [...said(last), `${turn}`])
      const fiber = yield* Effect.fork(store.save(next))
      // A little later every time.
      yield* each(Array.from({ length: turn }), () => Effect.yieldNow())
      yield* Fiber.interrupt(fiber)
      const found = yield* succeed("loading after an interrupted save", store.load(last.id))
      const expected = found.version === last.version ? last : { ...next, version: last.version + 1 }
      yield* same("what is stored after an interrupted save", fromText(found), fromText(expected))
      last = found
    }
    yield* loadSame(store, yield* save(store, { ...last, status: "completed" }))
  })

const deletes = (store: Store, prefix: string): Checked =>
  Effect.gen(function*() {
    const [id, other] = [`${prefix}s`, `${prefix}s2`]
    const first = yield* save(store, saying(session(id), ["a"]))
    const saved = yield* save(store, saying(first, ["a", "b", "c"]))
    const kept = yield* save(store, session(other))
    yield* succeed("deleting", store.delete(id))
    yield* succeed("deleting what is gone", store.delete(id))
    yield* succeed("deleting what never was", store.delete(`${prefix}never`))
    yield* isNotFound(store, id)
    yield* loadSame(store, kept)
    yield* same("the list", idsOf(yield* listed(store, prefix, 1000)), [other])
    yield* isConflict(store, saved, 0)
    const anew = yield* save(store, saying(session(id), ["z"]))
    yield* same("the version of one that is made anew", anew.version, 1)
    yield* loadSame(store, yield* save(store, saying(anew, ["z", "y"])))
  })

const pages = (store: Store, prefix: string): Checked =>
  Effect.gen(function*() {
    const all = ids(prefix)
    yield* each([...all].reverse(), (id) => save(store, session(id)))
    yield* each([1, 2, all.length, 1000], (limit) =>
      Effect.flatMap(
        listed(store, prefix, limit),
        (found) => same(`the list in pages of ${limit}`, idsOf(found), sorted(all))
      ))
  })

const summaries = (store: Store, prefix: string): Checked =>
  Effect.gen(function*() {
    const before = yield* Clock.currentTimeMillis
    const all = samples(prefix)
    yield* each(all, (sample) => save(store, sample))
    const [changed] = all
    yield* save(store, { ...changed!, version: 1, status: "completed" })
    const after = yield* Clock.currentTimeMillis
    const expected = all.map(({ id, status }) =>
      id === changed!.id ? { id, status: "completed", version: 2 } : { id, status, version: 1 }
    )
    const found = yield* listed(store, prefix, 1000)
    yield* each(expected, (one) =>
      same(
        "a summary",
        found.filter(({ id }) => id === one.id).map(({ id, status, version }) => ({ id, status, version })),
        [one]
      ))
    yield* each(found, ({ updatedAt }) =>
      ensure(
        updatedAt >= before && updatedAt <= after,
        () => `updatedAt is ${updatedAt}, not from ${before} to ${after}`
      ))
  })

const limits = (store: Store, prefix: string): Checked =>
  Effect.gen(function*() {
    yield* each(["a", "b"], (id) => save(store, session(`${prefix}${id}`)))
    yield* each([0, -3, 0.5, 1.5, NaN], (limit) =>
      Effect.flatMap(
        succeed(`a list with the limit ${limit}`, store.list({ limit })),
        ({ cursor, sessions, unreadable }) =>
          ensure(
            sessions.length + unreadable.length === 1 && cursor !== undefined,
            () => `the page with the limit ${limit} has ${sessions.length} sessions`
          )
      ))
    yield* each([1e9, Infinity, undefined], (limit) =>
      Effect.flatMap(
        succeed(`a list with the limit ${limit}`, store.list({ limit })),
        ({ sessions, unreadable }) =>
          ensure(
            sessions.length + unreadable.length >= 2 && sessions.length + unreadable.length <= 1000,
            () => `the page with the limit ${limit} has ${sessions.length} sessions`
          )
      ))
  })

const stability = (store: Store, prefix: string): Checked =>
  Effect.gen(function*() {
    const kept = ["b", "d", "f", "h", "j"].map((id) => `${prefix}${id}`)
    const doomed = ["a", "c", "i"].map((id) => `${prefix}${id}`)
    const saved = yield* Effect.forEach([...kept, ...doomed], (id) => save(store, session(id)))
    let turn = 0
    const found = yield* listed(store, prefix, 2, () =>
      Effect.gen(function*() {
        // Some go, some come before and behind the page, and the rest is saved again.
        const gone = doomed[turn]
        if (gone !== undefined) yield* succeed("deleting", store.delete(gone))
        yield* save(store, session(`${prefix}${"0Ae"[turn % 3]}${turn}`))
        for (const [index, one] of saved.slice(0, kept.length).entries()) {
          saved[index] = yield* save(store, { ...one, metadata: { turn } })
        }
        turn++
      }).pipe(Effect.when(() => turn < 6)))
    const all = idsOf(found)
    yield* same("those that were there all the while", all.filter((id) => kept.includes(id)), kept)
    yield* ensure(new Set(all).size === all.length, () => `the list has some twice: ${all.join(", ")}`)
  })

const cursors = (store: Store, prefix: string): Checked =>
  Effect.zipRight(
    save(store, session(`${prefix}s`)),
    each(["", "no cursor of any store", `${prefix}s`], (cursor) =>
      hasReason(`a list with the cursor ${render(cursor)}`, store.list({ cursor }), "invalid_cursor"))
  )

const reopened = (open: Open<Store>, prefix: string): Body =>
  Effect.gen(function*() {
    const saved = yield* Effect.scoped(Effect.flatMap(open, (store) =>
      Effect.gen(function*() {
        const first = yield* Effect.forEach(samples(prefix), (sample) => save(store, sample))
        // Some twice, so that there is something old and something new of them.
        return yield* Effect.forEach(first, (one, index) =>
          index % 2 === 0
            ? Effect.succeed(one)
            : save(store, saying(one, [...said(one), "and more"])))
      })))
    const store = yield* open
    yield* each(saved, (one) => loadSame(store, one))
    yield* same("the list", idsOf(yield* listed(store, prefix, 3)), sorted(idsOf(saved)))
    yield* isConflict(store, { ...saved[0]!, version: 0 }, saved[0]!.version)
    yield* loadSame(store, yield* save(store, { ...saved[1]!, status: "idle" }))
  })

const contested = (open: Open<Store>, prefix: string): Body =>
  Effect.gen(function*() {
    const stores = yield* Effect.all([open, open, open])
    let last = yield* save(stores[0], session(`${prefix}s`))
    for (let turn = 0; turn < 6; turn++) {
      const results = yield* Effect.forEach(
        stores,
        (store, index) => settle("a save", store.save(saying(last, [...said(last), `${turn} ${index}`]))),
        { concurrency: "unbounded" }
      )
      last = yield* oneWins(results, last.version + 1)
      yield* each(stores, (store) => loadSame(store, last))
    }
    yield* succeed("deleting", stores[1].delete(last.id))
    yield* isConflict(stores[0], last, 0)
    const anew = yield* save(stores[2], session(last.id))
    yield* loadSame(stores[0], anew)
  })
