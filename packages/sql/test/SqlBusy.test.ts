import { Session, SessionStore, ToolJournal } from "@allm/core"
import { SqlSessionStore, SqlToolJournal } from "@allm/sql"
import { LibsqlClient } from "@effect/sql-libsql"
import { assert, describe, it } from "@effect/vitest"
import { type Client as Libsql, createClient, type InStatement } from "@libsql/client"
import { Context, Effect, Layer, String } from "effect"
import { join } from "node:path"
import { type Client, directory, sqliteFile } from "./places.ts"

const stores = Layer.merge(SqlSessionStore.layer, SqlToolJournal.layer)

const opened = (client: Client) =>
  Effect.map(Layer.build(Layer.provide(stores, client)), (context) => ({
    store: Context.get(context, SessionStore.SessionStore),
    journal: Context.get(context, ToolJournal.ToolJournal)
  }))

const connected = (file: string) =>
  Effect.acquireRelease(
    Effect.sync(() => createClient({ url: `file:${file}` })),
    (client) => Effect.sync(() => client.close())
  )

/** Nobody wants to wait for 20 seconds. */
const impatient = (client: Libsql): Libsql =>
  new Proxy(client, {
    get: (target, name) =>
      name === "execute"
        ? (statement: InStatement) =>
          target.execute(
            typeof statement === "object" && statement.sql.includes("busy_timeout")
              ? "PRAGMA busy_timeout = 50"
              : statement
          )
        : Reflect.get(target, name)
  })

const key = { sessionId: "s", toolCallId: "c0" }
const asked = { toolName: "pay", digest: "d0" }

/** Names are changed on their way by some clients, whose statements of this package go around that. */
const names = { transformQueryNames: String.camelToSnake, transformResultNames: String.snakeToCamel }

describe("A client of libsql that found its file locked", { timeout: 30_000 }, () => {
  it.scopedLive.each([["plain", {}], ["that changes names", names]] as const)(
    "is not used any more, because it would lose what it is given: %s",
    ([_name, options]) =>
      Effect.gen(function*() {
        const file = join(yield* directory, "a.db")
        const client = impatient(yield* connected(file))
        const { journal, store } = yield* opened(LibsqlClient.layer({ ...options, liveClient: client }))
        const saved = yield* store.save(Session.make({ id: "s" }))

        const holder = yield* connected(file)
        const transaction = yield* Effect.promise(() => holder.transaction("write"))
        const locked = yield* Effect.flip(Effect.asVoid(store.save({ ...saved, status: "completed" })))
        yield* Effect.promise(() => transaction.commit())
        assert.strictEqual(locked._tag === "StoreError" && locked.reason, "unavailable")
        assert.match(locked.message, /locked/)

        // The file is free now. What follows would seem to succeed.
        const refused = yield* Effect.flip(Effect.asVoid(store.save({ ...saved, status: "completed" })))
        const unread = yield* Effect.flip(Effect.asVoid(store.load("s")))
        const unnoted = yield* Effect.flip(Effect.asVoid(journal.prepare(key, asked)))
        assert.match(refused.message, /open it again/)
        assert.match(unread.message, /open it again/)
        assert.strictEqual(unnoted.reason, "unavailable")
        assert.match(unnoted.message, /open it again/)

        const again = yield* opened(sqliteFile(file))
        assert.deepStrictEqual(yield* again.store.load("s"), saved)
        const next = yield* again.store.save({ ...saved, status: "completed" })
        assert.strictEqual((yield* again.journal.prepare(key, asked))._tag, "New")
        assert.deepStrictEqual(yield* (yield* opened(sqliteFile(file))).store.load("s"), next)
      })
  )

  it.scopedLive("is still used when it got its turn in time", () =>
    Effect.gen(function*() {
      const file = join(yield* directory, "a.db")
      const clients = yield* Effect.forEach([1, 2], () => opened(sqliteFile(file)))
      const saved = yield* Effect.forEach(
        Array.from({ length: 30 }, (_, index) => index),
        (index) => clients[index % 2]!.store.save(Session.make({ id: `s${index}` })),
        { concurrency: "unbounded" }
      )
      const { store } = yield* opened(sqliteFile(file))

      assert.deepStrictEqual(yield* Effect.forEach(saved, ({ id }) => store.load(id)), saved)
    }))
})
