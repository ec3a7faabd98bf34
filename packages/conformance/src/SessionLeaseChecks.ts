/**
 * What every place for the leases of sessions has to do, as checks.
 *
 * @since 0.1.0
 */
import { SessionLease, type StoreError } from "@allm/core"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Check, Options as CheckOptions } from "./Check.ts"
import { check, each, ensure, type Problem, render, same } from "./internal/check.ts"

type Leases = SessionLease.Service

/**
 * A new place for leases. Its layer is built twice, for two processes that share the place, unless there can be only one.
 *
 * @since 0.1.0
 * @category models
 */
export type Subject<E = never> = Effect.Effect<Layer.Layer<SessionLease.SessionLease, E>, E, Scope.Scope>

/**
 * What is special about a place for leases.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options extends CheckOptions {
  /** The place belongs to one process: the two of a check are the same one. */
  readonly alone?: boolean | undefined
}

/**
 * The checks of leases. Each makes a new place.
 *
 * @example
 * ```ts
 * import * as Check from "@allm/conformance/Check"
 * import * as SessionLeaseChecks from "@allm/conformance/SessionLeaseChecks"
 * import { SessionLease } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const checks = SessionLeaseChecks.make(Effect.succeed(SessionLease.layerMemory), { alone: true })
 *
 * Effect.runPromise(Check.violations(checks)).then((violations) => assert.deepStrictEqual(violations, []))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <E>(subject: Subject<E>, options: Options = {}): ReadonlyArray<Check> => {
  const opened = (layer: Layer.Layer<SessionLease.SessionLease, E>) =>
    Effect.mapBoth(Layer.build(Layer.fresh(layer)), {
      onFailure: (error): Problem => `the layer cannot be built: ${render(error)}`,
      onSuccess: Context.get(SessionLease.SessionLease)
    })
  const promise = (
    name: string,
    body: (one: Leases, other: Leases) => Effect.Effect<void, Problem, Scope.Scope>
  ): Check =>
    check(
      name,
      Effect.gen(function*() {
        const layer = yield* Effect.mapError(subject, (error): Problem => `there is no place: ${render(error)}`)
        const one = yield* opened(layer)
        yield* body(one, options.alone === true ? one : yield* opened(layer))
      }),
      options
    )

  return [
    promise(
      "gives a session to one holder, and tells the next who has it and until when",
      (one, other) =>
        Effect.gen(function*() {
          const lease = yield* at(1000, acquire(one, "s1", "a"))
          yield* same("the lease", [lease.sessionId, lease.holder, lease.expiresAt], ["s1", "a", 2000])
          yield* same("from whom it was taken", lease.takenFrom, undefined)
          const held = ["LeaseHeld", "s1", "a", 2000]
          yield* same("what the next is told", yield* at(1999, refusal(other.acquire("s1", own))), held)
          yield* same("what the holder is told", yield* at(1999, refusal(one.acquire("s1", own))), held)
        })
    ),

    promise("gives one of many that want a session at once", (one, other) =>
      Effect.gen(function*() {
        const { losers, winners } = yield* at(1000, rush(one, other))
        yield* same("the number of winners", winners.length, 1)
        yield* each(losers, (told) => same("what another is told", told, ["LeaseHeld", "s1", winners[0]?.holder, 2000]))
      })),

    promise(
      "gives a session again that was given back, and says that nobody lost it",
      (one, other) =>
        Effect.gen(function*() {
          const first = yield* at(1000, acquire(one, "s1", "a"))
          yield* at(1100, expected(one.release(first)))
          const second = yield* at(1100, acquire(other, "s1", "b"))
          yield* same("from whom it was taken", second.takenFrom, undefined)
          yield* ensure(second.token > first.token, () => `token ${second.token} came after ${first.token}`)
        })
    ),

    promise(
      "lets a lease be taken over when it has run out, not before, and says from whom",
      (one, other) =>
        Effect.gen(function*() {
          const first = yield* at(1000, acquire(one, "s1", "a"))
          const early = yield* at(1999, refusal(other.acquire("s1", own)))
          yield* same("what one is told who comes too early", early, ["LeaseHeld", "s1", "a", 2000])
          const second = yield* at(2000, acquire(other, "s1", "b"))
          yield* same("from whom it was taken", second.takenFrom, "a")
          yield* ensure(second.token > first.token, () => `token ${second.token} came after ${first.token}`)
        })
    ),

    promise("lets one of many take over", (one, other) =>
      Effect.gen(function*() {
        yield* at(1000, acquire(one, "s1", "a"))
        const { losers, winners } = yield* at(5000, rush(one, other))
        yield* same("the number of winners", winners.length, 1)
        yield* each(losers, (told) => same("what another is told", told, ["LeaseHeld", "s1", winners[0]?.holder, 6000]))
      })),

    promise("makes a renewed lease last longer", (one, other) =>
      Effect.gen(function*() {
        const lease = yield* at(1000, acquire(one, "s1", "a"))
        const renewed = yield* at(1900, expected(one.renew(lease)))
        yield* same("the renewed lease", [renewed.token, renewed.expiresAt], [lease.token, 2900])
        yield* at(2899, expected(one.check(renewed)))
        const held = yield* at(2899, refusal(other.acquire("s1", own)))
        yield* same("what another is told", held, ["LeaseHeld", "s1", "a", 2900])
        yield* at(2900, acquire(other, "s1", "b"))
      })),

    promise("neither renews nor confirms a lease that has run out", (one) =>
      Effect.gen(function*() {
        const lease = yield* at(1000, acquire(one, "s1", "a"))
        yield* each([refusal(one.renew(lease)), refusal(one.check(lease))], (told) =>
          Effect.flatMap(at(2000, told), (told) =>
            same("what the holder is told", told, ["LeaseLost", "s1", "expired", lease.token, undefined])))
      })),

    promise("tells one who was taken over, and leaves the new holder alone", (one, other) =>
      Effect.gen(function*() {
        const first = yield* at(1000, acquire(one, "s1", "a"))
        const second = yield* at(2000, acquire(other, "s1", "b"))
        yield* each([refusal(one.renew(first)), refusal(one.check(first))], (told) =>
          Effect.flatMap(at(2100, told), (told) =>
            same("what the old holder is told", told, ["LeaseLost", "s1", "taken", first.token, "b"])))
        yield* at(2100, expected(one.release(first)))
        yield* at(2100, expected(other.check(second)))
        yield* at(2100, expected(other.renew(second)))
      })),

    promise("gives back once, and nothing afterwards", (one) =>
      Effect.gen(function*() {
        const lease = yield* at(1000, acquire(one, "s1", "a"))
        yield* at(1000, expected(one.release(lease)))
        yield* at(1000, expected(one.release(lease)))
        yield* each([refusal(one.renew(lease)), refusal(one.check(lease))], (told) =>
          Effect.flatMap(at(1000, told), (told) =>
            same("what the holder is told", told, ["LeaseLost", "s1", "released", lease.token, undefined])))
      })),

    promise("never gives the same token twice", (one, other) =>
      Effect.gen(function*() {
        const tokens: Array<number> = []
        for (let turn = 0; turn < 8; turn++) {
          const leases = turn % 2 === 0 ? one : other
          const lease = yield* at(turn * 2000, acquire(leases, "s1", "a"))
          tokens.push(lease.token)
          if (turn % 3 === 0) yield* at(turn * 2000, expected(leases.release(lease)))
        }
        yield* same("the tokens in their order", tokens, [...new Set(tokens)].sort((a, b) => a - b))
      })),

    promise("keeps sessions apart, whatever their ids", (one, other) =>
      Effect.gen(function*() {
        const ids = ["s1", "S1", "s/1", "s%2f1", "..", "ü", "👋", " ", "a'b\"c", `${"long ".repeat(60)}1`]
        const leases = yield* Effect.forEach(ids, (id) => at(1000, acquire(one, id, "a")))
        yield* each(leases, (lease) => at(1500, expected(other.check(lease))))
        yield* at(1500, expected(one.release(leases[0]!)))
        yield* each(leases.slice(1), (lease) => at(1500, expected(other.check(lease))))
      })),

    promise(
      "refuses an id that no store can keep",
      (one) =>
        each(
          ["", "a\u0000b", "\ud800", "x".repeat(513)],
          (id) =>
            Effect.flatMap(refusal(one.acquire(id, own)), (told) =>
              same(`what is told about ${render(id)}`, told, ["StoreError", "invalid_id"]))
        )
    )
  ]
}

const own: SessionLease.AcquireOptions = { holder: "b", duration: 1000 }

const acquire = (leases: Leases, id: string, holder: string) =>
  expected(leases.acquire(id, { holder, duration: "1 second" }))

/** Twelve at once. */
const rush = (one: Leases, other: Leases) =>
  Effect.map(
    Effect.forEach(
      Array.from({ length: 12 }, (_, n) => n),
      (n) => Effect.either((n % 2 === 0 ? one : other).acquire("s1", { holder: String(n), duration: 1000 })),
      { concurrency: "unbounded" }
    ),
    (ends) => ({
      winners: ends.flatMap((end) => Either.isRight(end) ? [end.right] : []),
      losers: ends.flatMap((end) => Either.isLeft(end) ? [tell(end.left)] : [])
    })
  )

const expected = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, Problem> =>
  Effect.mapError(effect, (error) => `it failed: ${render(error)}`)

type Refusal = SessionLease.LeaseHeld | SessionLease.LeaseLost | StoreError.StoreError

const refusal = (effect: Effect.Effect<unknown, Refusal>): Effect.Effect<ReadonlyArray<unknown>, Problem> =>
  Effect.flatMap(
    Effect.either(effect),
    (end) => Either.isLeft(end) ? Effect.succeed(tell(end.left)) : Effect.fail(`it succeeded with ${render(end.right)}`)
  )

const tell = (error: Refusal): ReadonlyArray<unknown> => {
  switch (error._tag) {
    case "LeaseHeld":
      return [error._tag, error.sessionId, error.holder, error.until]
    case "LeaseLost":
      return [error._tag, error.sessionId, error.reason, error.token, error.takenBy]
    case "StoreError":
      return [error._tag, error.reason]
  }
}

/** Lets it be a moment; whoever waits still waits by the clock of the machine. */
const at = <A, E, R>(millis: number, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.clock, (clock) => Effect.withClock(effect, still(clock, millis)))

const still = (clock: Clock.Clock, millis: number): Clock.Clock => ({
  [Clock.ClockTypeId]: Clock.ClockTypeId,
  currentTimeMillis: Effect.succeed(millis),
  unsafeCurrentTimeMillis: () => millis,
  currentTimeNanos: clock.currentTimeNanos,
  unsafeCurrentTimeNanos: () => clock.unsafeCurrentTimeNanos(),
  sleep: (duration) => clock.sleep(duration)
})
