/**
 * Who may work on a session: one at a time, across fibers and processes, and for a limited time, so that one who died does
 * not keep it for ever.
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Record from "./internal/leaseRecord.ts"
import { filePlaces, type Places } from "./internal/sessionStorePlaces.ts"
import { checkId, fail } from "./internal/sessionStoreRecord.ts"
import type { StoreError } from "./StoreError.ts"

const moment = (millis: number): string =>
  Option.match(DateTime.make(millis), { onNone: () => String(millis), onSome: DateTime.formatIso })

/**
 * Somebody else works on the session. `until` is when their lease runs out unless they renew it, in milliseconds of the
 * Clock.
 *
 * @since 0.1.0
 * @category errors
 */
export class LeaseHeld extends Schema.TaggedError<LeaseHeld>("@allm/core/SessionLease/LeaseHeld")("LeaseHeld", {
  sessionId: Schema.String,
  holder: Schema.String,
  until: Schema.Finite
}) {
  override get message(): string {
    return `session ${JSON.stringify(this.sessionId)} is held by ${JSON.stringify(this.holder)} ` +
      `until ${moment(this.until)}; try again then, or wait for it`
  }
}

/**
 * A lease is over although its holder did not give it back: it ran out before it was renewed (`expired`), and perhaps
 * somebody else has taken the session over (`taken`, by `takenBy`); or it was given back before (`released`).
 *
 * @since 0.1.0
 * @category errors
 */
export class LeaseLost extends Schema.TaggedError<LeaseLost>("@allm/core/SessionLease/LeaseLost")("LeaseLost", {
  reason: Schema.Literal("expired", "taken", "released"),
  sessionId: Schema.String,
  holder: Schema.String,
  token: Schema.Int,
  takenBy: Schema.optionalWith(Schema.String, { exact: true })
}) {
  override get message(): string {
    const why = this.reason === "taken"
      ? `taken over by ${JSON.stringify(this.takenBy ?? "another")}`
      : this.reason === "expired"
      ? "not renewed in time"
      : "given back"
    return `the lease ${this.token} of ${JSON.stringify(this.holder)} on session ${
      JSON.stringify(this.sessionId)
    } is over: ${why}; acquire it again, and load the session again`
  }
}

/**
 * The right to work on a session until `expiresAt`, in milliseconds of the Clock.
 *
 * @since 0.1.0
 * @category models
 */
export interface Lease {
  readonly sessionId: string
  /** Who holds it, in words for people. */
  readonly holder: string
  /** Higher than that of every earlier lease on the session, so that what comes late from an earlier one can be told. */
  readonly token: number
  readonly expiresAt: number
  /** For how long it is given and renewed, in milliseconds. */
  readonly duration: number
  /** Whose lease ran out before this one was given. Absent when the last one was given back. */
  readonly takenFrom?: string | undefined
}

/**
 * Who takes a lease, and for how long.
 *
 * @since 0.1.0
 * @category models
 */
export interface AcquireOptions {
  /** A name that tells people who it is. It need not be unique: of two with the same name, each has its own lease. */
  readonly holder: string
  readonly duration: Duration.DurationInput
}

/**
 * Gives out leases on sessions, one per session at a time. Times are those of the Clock, so the clocks of machines that
 * share leases must agree much better than a lease lasts.
 *
 * @since 0.1.0
 * @category services
 */
export class SessionLease extends Context.Tag("@allm/core/SessionLease")<SessionLease, {
  /** Takes a session that nobody holds, or whose holder's lease has run out. Does not wait. */
  readonly acquire: (sessionId: string, options: AcquireOptions) => Effect.Effect<Lease, LeaseHeld | StoreError>
  /** Lets a lease last for its duration again, from now on. One that ran out cannot be renewed. */
  readonly renew: (lease: Lease) => Effect.Effect<Lease, LeaseLost | StoreError>
  /** Gives a lease back. It is no failure when it is over already. */
  readonly release: (lease: Lease) => Effect.Effect<void, StoreError>
  /** Fails when the lease is over. */
  readonly check: (lease: Lease) => Effect.Effect<void, LeaseLost | StoreError>
}>() {}

/**
 * The methods of leases, as an implementation has them.
 *
 * @since 0.1.0
 * @category models
 */
export type Service = Context.Tag.Service<SessionLease>

/**
 * What is kept of a lease. One that was given back has run out at 0.
 *
 * @since 0.1.0
 * @category models
 */
export interface State {
  readonly sessionId: string
  readonly holder: string
  readonly token: number
  readonly expiresAt: number
}

/**
 * A place for leases: one state per session, never removed, each with a revision by which it can be told from the one
 * before. What `write` did is seen by every `read` that begins after it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Place<Revision> {
  readonly read: (sessionId: string) => Effect.Effect<readonly [State, Revision] | undefined, StoreError>
  /**
   * Puts a state in the place of that of the revision, or where there is none yet, and tells whether it did. Of several
   * that want to replace the same one, only one does.
   */
  readonly write: (state: State, replaced: Revision | undefined) => Effect.Effect<boolean, StoreError>
}

/**
 * Keeps leases in memory: for the fibers of one process.
 *
 * @example
 * ```ts
 * import { SessionLease } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const leases = yield* SessionLease.SessionLease
 *   const lease = yield* leases.acquire("s1", { holder: "web-1", duration: "30 seconds" })
 *   const held = yield* Effect.flip(leases.acquire("s1", { holder: "web-2", duration: "30 seconds" }))
 *   yield* leases.release(lease)
 *   yield* leases.acquire("s1", { holder: "web-2", duration: "30 seconds" })
 *   return held
 * })
 *
 * const held = Effect.runSync(Effect.provide(program, SessionLease.layerMemory))
 *
 * assert.strictEqual(held._tag === "LeaseHeld" && held.holder, "web-1")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory: Layer.Layer<SessionLease> = Layer.sync(SessionLease, () => {
  const held = new Map<string, Lease>()
  let token = 0

  const current = (lease: Lease, now: number): LeaseLost | undefined => {
    const known = held.get(lease.sessionId)
    if (known?.token !== lease.token) return lost(lease, known === undefined ? "released" : "taken", known?.holder)
    return known.expiresAt > now ? undefined : lost(lease, "expired")
  }

  return SessionLease.of({
    acquire: (sessionId, options) =>
      Effect.zipRight(
        checkId("SessionLease.acquire", sessionId),
        Effect.flatMap(Clock.currentTimeMillis, (now): Effect.Effect<Lease, LeaseHeld> => {
          const known = held.get(sessionId)
          if (known !== undefined && known.expiresAt > now) {
            return new LeaseHeld({ sessionId, holder: known.holder, until: known.expiresAt })
          }
          const lease = given(sessionId, options, ++token, now, known?.holder)
          held.set(sessionId, lease)
          return Effect.succeed(lease)
        })
      ),
    renew: (lease) =>
      Effect.flatMap(Clock.currentTimeMillis, (now): Effect.Effect<Lease, LeaseLost> => {
        const over = current(lease, now)
        if (over !== undefined) return over
        const renewed = { ...lease, expiresAt: expiryOf(now, lease.duration) }
        held.set(lease.sessionId, renewed)
        return Effect.succeed(renewed)
      }),
    release: (lease) =>
      Effect.sync(() => {
        if (held.get(lease.sessionId)?.token === lease.token) held.delete(lease.sessionId)
      }),
    check: (lease) =>
      Effect.flatMap(
        Clock.currentTimeMillis,
        (now): Effect.Effect<void, LeaseLost> => current(lease, now) ?? Effect.void
      )
  })
})

/**
 * Keeps leases in files below a directory that is made when missing: for the processes of one machine.
 *
 * Every change of a lease is a new file, `<id>/<number>.lease`, that only one process can make, and is there as a whole or
 * not at all. When it is damaged by other means, the session cannot be acquired: the `StoreError` names the file.
 *
 * @example
 * ```ts
 * import { SessionLease } from "@allm/core"
 * import { FileSystem } from "@effect/platform"
 * import { NodeContext } from "@effect/platform-node"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const files = yield* FileSystem.FileSystem
 *   const directory = yield* files.makeTempDirectoryScoped()
 *   return yield* Effect.flatMap(SessionLease.SessionLease, (leases) =>
 *     leases.acquire("s1", { holder: "web-1", duration: "30 seconds" })
 *   ).pipe(Effect.provide(SessionLease.layerFileSystem(directory)))
 * }).pipe(Effect.scoped, Effect.provide(NodeContext.layer))
 *
 * assert.strictEqual((await Effect.runPromise(program)).token, 1)
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerFileSystem = (
  directory: string
): Layer.Layer<SessionLease, StoreError, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    SessionLease,
    Effect.gen(function*() {
      const kind = { suffix: ".lease", operation: "SessionLease.layerFileSystem" }
      return fromFiles(yield* filePlaces(directory, yield* FileSystem.FileSystem, yield* Path.Path, kind))
    })
  )

const lost = (lease: Lease, reason: LeaseLost["reason"], takenBy?: string): LeaseLost =>
  new LeaseLost({
    reason,
    sessionId: lease.sessionId,
    holder: lease.holder,
    token: lease.token,
    ...(reason !== "taken" || takenBy === undefined ? {} : { takenBy })
  })

const given = (
  sessionId: string,
  options: AcquireOptions,
  token: number,
  now: number,
  takenFrom: string | undefined
): Lease => {
  const duration = Duration.toMillis(options.duration)
  return {
    sessionId,
    holder: options.holder,
    token,
    duration,
    expiresAt: expiryOf(now, duration),
    ...(takenFrom === undefined ? {} : { takenFrom })
  }
}

// The last moment a date can have: a lease without an end would outlive its holder.
const lastMoment = 8.64e15

const expiryOf = (now: number, duration: number): number => Math.min(now + Math.max(0, duration), lastMoment)

const released = 0

// Every lost attempt is somebody else's change, so many in a row are as good as a store that does not answer.
const patience = 100

/** Tries again as long as somebody else was faster. */
const persistently = <A, E>(
  operation: string,
  id: string,
  attempt: Effect.Effect<A | undefined, E>,
  attempts = patience
): Effect.Effect<A, E | StoreError> =>
  Effect.flatMap(attempt, (done): Effect.Effect<A, E | StoreError> => {
    if (done !== undefined) return Effect.succeed(done)
    return attempts > 1
      ? persistently(operation, id, attempt, attempts - 1)
      : fail({ operation, id }, "unavailable", `others changed the lease ${patience} times in a row`)
  })

/**
 * Makes leases in a place of your own.
 *
 * @example
 * ```ts
 * import { SessionLease } from "@allm/core"
 * import { Effect } from "effect"
 *
 * // A place of its own: one cell per session, told apart by a count.
 * const cells = new Map<string, readonly [SessionLease.State, number]>()
 * const leases = SessionLease.make<number>({
 *   read: (sessionId) => Effect.sync(() => cells.get(sessionId)),
 *   write: (state, replaced) =>
 *     Effect.sync(() => {
 *       if (cells.get(state.sessionId)?.[1] !== replaced) return false
 *       cells.set(state.sessionId, [state, (replaced ?? 0) + 1])
 *       return true
 *     })
 * })
 *
 * const lease = Effect.runSync(leases.acquire("s1", { holder: "web-1", duration: "30 seconds" }))
 *
 * assert.strictEqual(lease.holder, "web-1")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <Revision>(place: Place<Revision>): Service => {
  const tryToAcquire = Effect.fnUntraced(function*(sessionId: string, options: AcquireOptions) {
    const [state, revision] = (yield* place.read(sessionId)) ?? []
    const now = yield* Clock.currentTimeMillis
    if (state !== undefined && state.expiresAt > now) {
      return yield* new LeaseHeld({ sessionId, holder: state.holder, until: state.expiresAt })
    }
    const takenFrom = state?.expiresAt === released ? undefined : state?.holder
    const lease = given(sessionId, options, (state?.token ?? 0) + 1, now, takenFrom)
    return (yield* place.write(stateOf(lease), revision)) ? lease : undefined
  })

  /** What is kept of a lease that is not over. */
  const current = Effect.fnUntraced(function*(lease: Lease) {
    const [state, revision] = (yield* place.read(lease.sessionId)) ?? []
    const now = yield* Clock.currentTimeMillis
    if (state === undefined) return yield* lost(lease, "released")
    if (state.token !== lease.token) return yield* lost(lease, "taken", state.holder)
    if (state.expiresAt === released) return yield* lost(lease, "released")
    if (state.expiresAt <= now) return yield* lost(lease, "expired")
    return { revision, now }
  })

  /** Lets a lease that is not over run out at another time. */
  const change = (operation: string, lease: Lease, expiresAt: (now: number) => number) =>
    persistently(
      operation,
      lease.sessionId,
      Effect.gen(function*() {
        const { now, revision } = yield* current(lease)
        const changed = { ...lease, expiresAt: expiresAt(now) }
        return (yield* place.write(stateOf(changed), revision)) ? changed : undefined
      })
    )

  return SessionLease.of({
    acquire: Effect.fn("SessionLease.acquire")((sessionId: string, options: AcquireOptions) =>
      Effect.zipRight(
        checkId("SessionLease.acquire", sessionId),
        persistently("SessionLease.acquire", sessionId, tryToAcquire(sessionId, options))
      )
    ),
    renew: Effect.fn("SessionLease.renew")((lease: Lease) =>
      change("SessionLease.renew", lease, (now) => expiryOf(now, lease.duration))
    ),
    release: Effect.fn("SessionLease.release")((lease: Lease) =>
      change("SessionLease.release", lease, () => released).pipe(
        Effect.asVoid,
        Effect.catchTag("LeaseLost", () => Effect.void)
      )
    ),
    check: Effect.fn("SessionLease.check")((lease: Lease) => Effect.asVoid(current(lease)))
  })
}

const stateOf = ({ expiresAt, holder, sessionId, token }: Lease): State => ({ sessionId, holder, token, expiresAt })

const fromFiles = (files: Places): Service =>
  make<number>({
    read: (id) =>
      Effect.gen(function*() {
        const operation = "SessionLease.read"
        const found = yield* files.read(operation, id)
        if (found === undefined) return undefined
        const state = yield* Record.decode({ operation, id, location: found.location }, found.text)
        return [state, found.version!] as const
      }),
    write: (state, replaced = 0) =>
      Effect.gen(function*() {
        const operation = "SessionLease.write"
        const text = yield* Record.encode({ operation, id: state.sessionId }, state)
        return (yield* files.write(operation, state.sessionId, replaced, text)) === undefined
      })
  })
