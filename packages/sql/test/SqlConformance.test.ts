import { SessionStoreSuite, ToolJournalSuite } from "@allm/conformance"
import { SqlSessionStore, SqlToolJournal } from "@allm/sql"
import { afterAll, it } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { places } from "./places.ts"

const { all, stop } = await places()
const scope = Effect.runSync(Scope.make())
afterAll(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void))
  await stop()
})

const options = { live: true, limit: "30 seconds" } as const

for (const { make, name } of all) {
  if (typeof make === "string") {
    it.skip(`SqlSessionStore and SqlToolJournal on ${name}: ${make}`, () => {})
    continue
  }
  // One database for all checks, which need no empty one.
  const client = await Effect.runPromise(Scope.extend(make, scope))

  SessionStoreSuite.run(`SqlSessionStore on ${name}`, {
    place: Effect.succeed(Layer.provide(SqlSessionStore.layer, client)),
    shared: true
  }, options)

  ToolJournalSuite.run(`SqlToolJournal on ${name}`, {
    place: Effect.succeed(Layer.provide(SqlToolJournal.layer, client)),
    shared: true
  }, options)
}
