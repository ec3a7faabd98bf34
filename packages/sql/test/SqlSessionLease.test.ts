import { SessionLeaseSuite } from "@allm/conformance"
import { SessionLease } from "@allm/core"
import { SqlSessionLease } from "@allm/sql"
import { SqlClient } from "@effect/sql"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { places } from "./places.ts"

const { all, stop } = await places()
afterAll(stop)

for (const { make, name } of all) {
  if (typeof make === "string") {
    it.skip(`SqlSessionLease on ${name}: ${make}`, () => {})
    continue
  }

  SessionLeaseSuite.run(
    `SqlSessionLease on ${name}`,
    Effect.map(make, (client) => Layer.provide(SqlSessionLease.layer, client)),
    { limit: "20 seconds" }
  )

  describe(`SqlSessionLease on ${name}`, () => {
    it.scopedLive("fails with the place when there is no table", () =>
      Effect.gen(function*() {
        const context = yield* Layer.build(Layer.provideMerge(SqlSessionLease.layer, yield* make))
        const [leases, sql] = yield* Effect.provide(
          Effect.all([SessionLease.SessionLease, SqlClient.SqlClient]),
          context
        )
        yield* sql.unsafe("DROP TABLE allm_leases")
        const error = yield* Effect.flip(leases.acquire("s1", { holder: "a", duration: "1 second" }))

        assert.deepInclude(error, { _tag: "StoreError", reason: "unavailable", id: "s1", location: "allm_leases" })
      }))
  })
}
