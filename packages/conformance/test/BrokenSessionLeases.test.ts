import { Check, SessionLeaseChecks } from "@allm/conformance"
import { SessionLease } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"

type Leases = SessionLease.Service

const one = "gives a session to one holder, and tells the next who has it and until when"
const rush = "gives one of many that want a session at once"
const back = "gives a session again that was given back, and says that nobody lost it"
const over = "lets a lease be taken over when it has run out, not before, and says from whom"
const overRush = "lets one of many take over"
const longer = "makes a renewed lease last longer"
const late = "neither renews nor confirms a lease that has run out"
const taken = "tells one who was taken over, and leaves the new holder alone"
const once = "gives back once, and nothing afterwards"
const tokens = "never gives the same token twice"
const apart = "keeps sessions apart, whatever their ids"
const ids = "refuses an id that no store can keep"

// A fault that nobody notices is no proof.
type Noticed = readonly [string, ...Array<string>]

const anyway = Effect.orElseSucceed

/** What is wrong with the leases, how, and the checks that have to notice. */
const broken: ReadonlyArray<readonly [fault: string, breaks: (good: Leases) => Partial<Leases>, noticed: Noticed]> = [
  ["gives a session to everybody", (good) => {
    let token = 0
    return {
      acquire: (sessionId, { holder }) =>
        anyway(good.acquire(sessionId, { holder, duration: 1000 }), () => ({
          sessionId,
          holder,
          token: ++token,
          expiresAt: 2000,
          duration: 1000
        }))
    }
  }, [one, rush, over, overRush, longer, ids]],
  ["names itself as the holder", (good) => ({
    acquire: (sessionId, options) =>
      Effect.mapError(
        good.acquire(sessionId, options),
        (error) =>
          error._tag === "LeaseHeld"
            ? new SessionLease.LeaseHeld({ sessionId, holder: options.holder, until: error.until })
            : error
      )
  }), [one, rush, over, overRush, longer]],
  ["gives out half the time", (good) => ({
    acquire: (sessionId, { holder }) => good.acquire(sessionId, { holder, duration: 500 })
  }), [one, rush, over, overRush, longer, apart]],
  ["does not say from whom a lease was taken", (good) => ({
    acquire: (sessionId, options) =>
      Effect.map(good.acquire(sessionId, options), (lease) => ({ ...lease, takenFrom: undefined }))
  }), [over]],
  ["says that a lease was taken when it was given back", (good) => ({
    acquire: (sessionId, options) =>
      Effect.map(good.acquire(sessionId, options), (lease) => ({ ...lease, takenFrom: "somebody" }))
  }), [one, back, over]],
  ["keeps what is given back", () => ({ release: () => Effect.void }), [back, once]],
  ["forgets to renew", () => ({ renew: (lease) => Effect.succeed({ ...lease, expiresAt: lease.expiresAt + 900 }) }), [
    longer,
    late,
    taken,
    once
  ]],
  ["confirms every lease", () => ({ check: () => Effect.void }), [late, taken, once]],
  ["calls every loss an expiry", (good) => ({
    renew: (lease) =>
      Effect.mapError(
        good.renew(lease),
        (error) => error._tag === "LeaseLost" ? new SessionLease.LeaseLost({ ...error, reason: "expired" }) : error
      )
  }), [taken, once]],
  ["lets anybody release", (good) => ({
    release: (lease) =>
      Effect.forEach([0, 1, 2, 3], (more) => good.release({ ...lease, token: lease.token + more }), { discard: true })
  }), [taken]],
  ["counts tokens anew for every lease", (good) => ({
    acquire: (sessionId, options) => Effect.map(good.acquire(sessionId, options), (lease) => ({ ...lease, token: 1 }))
  }), [back, over, taken, tokens, apart]],
  ["does not tell capital letters from small ones", (good) => ({
    acquire: (sessionId, options) => good.acquire(sessionId.toLowerCase(), options)
  }), [apart]],
  ["takes every id", (good) => ({
    acquire: (sessionId, options) =>
      Effect.catchTag(
        good.acquire(sessionId, options),
        "StoreError",
        () => good.acquire(`other ${sessionId.length}`, options)
      )
  }), [ids]]
]

const noticedBy = (layer: Layer.Layer<SessionLease.SessionLease, string>) =>
  Effect.map(
    Check.violations(SessionLeaseChecks.make(Effect.succeed(layer), { alone: true }), { concurrency: "unbounded" }),
    (violations) => violations.map((violation) => violation.check)
  )

describe("SessionLeaseChecks", () => {
  for (const [fault, breaks, noticed] of broken) {
    it.effect(`notice a place that ${fault}`, () =>
      Effect.gen(function*() {
        const layer = Layer.effect(
          SessionLease.SessionLease,
          Effect.map(SessionLease.SessionLease, (good) => ({ ...good, ...breaks(good) }))
        )
        const found = yield* noticedBy(Layer.provide(layer, SessionLease.layerMemory))

        assert.deepStrictEqual(found, [...noticed])
      }))
  }

  it.effect("notice a layer that cannot be built", () =>
    Effect.gen(function*() {
      const checks = SessionLeaseChecks.make(Effect.succeed(Layer.fail("no connection")))
      const violations = yield* Check.violations(checks)

      assert.strictEqual(violations.length, checks.length)
      assert.strictEqual(violations[0]?.message, `${one}: the layer cannot be built: "no connection"`)
    }))

  it.effect("are each needed by a fault", () =>
    Effect.sync(() => {
      const names = SessionLeaseChecks.make(Effect.succeed(SessionLease.layerMemory)).map((check) => check.name)

      assert.deepStrictEqual(names.filter((name) => broken.every(([, , noticed]) => !noticed.includes(name))), [])
    }))
})
