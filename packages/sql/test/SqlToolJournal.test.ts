import { ToolJournal, ToolResult } from "@allm/core"
import { Migrations, SqlToolJournal } from "@allm/sql"
import { SqlClient } from "@effect/sql"
import { LibsqlClient } from "@effect/sql-libsql"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { createClient } from "@libsql/client"
import { Context, Effect, Layer } from "effect"
import { join } from "node:path"
import { type Client, directory, places } from "./places.ts"

const { all, stop } = await places()
afterAll(stop)

const asked = { toolName: "pay", digest: "d0" }

const paid: ToolJournal.StoredOutcome = {
  result: ToolResult.ok({ receipt: 7 }),
  content: "{\"receipt\":7}",
  isError: false,
  halts: false
}

const key = (toolCallId: string) => ({ sessionId: "s", toolCallId })

/** As another process would. */
const opened = (client: Client) =>
  Layer.build(Layer.provideMerge(SqlToolJournal.layer, client)).pipe(
    Effect.map((context) => ({
      journal: Context.get(context, ToolJournal.ToolJournal),
      sql: Context.get(context, SqlClient.SqlClient)
    }))
  )

const tagOf = ({ _tag }: ToolJournal.Prepared) => _tag

for (const { make, name } of all) {
  if (typeof make === "string") {
    it.skip(`SqlToolJournal on ${name}: ${make}`, () => {})
    continue
  }

  describe(`SqlToolJournal on ${name}`, { timeout: 30_000 }, () => {
    it.scopedLive("tells one of several processes that a call is new", () =>
      Effect.gen(function*() {
        const client = yield* make
        const journals = yield* Effect.forEach([1, 2, 3], () => Effect.map(opened(client), ({ journal }) => journal))
        for (let call = 0; call < 10; call++) {
          const known = yield* Effect.forEach(
            [...journals, ...journals],
            (journal) => journal.prepare(key(`c${call}`), asked),
            { concurrency: "unbounded" }
          )
          assert.deepStrictEqual(known.map(tagOf).sort(), [...Array.from({ length: 5 }, () => "InDoubt"), "New"])
        }
      }))

    it.scopedLive("is read by the next process", () =>
      Effect.gen(function*() {
        const client = yield* make
        yield* Effect.scoped(Effect.gen(function*() {
          const { journal } = yield* opened(client)
          yield* journal.prepare(key("c0"), asked)
          yield* journal.prepare(key("c1"), asked)
          yield* journal.settle(key("c1"), paid)
        }))
        const { journal } = yield* opened(client)
        const known = yield* Effect.forEach(["c0", "c1", "c2"], (id) => journal.prepare(key(id), asked))

        assert.deepStrictEqual(known.map(tagOf), ["InDoubt", "Settled", "New"])
      }))

    it.scopedLive("forgets more settled calls than fit in one statement, and keeps those in doubt", () =>
      Effect.gen(function*() {
        const { journal, sql } = yield* opened(yield* make)
        yield* journal.prepare(key("template"), asked)
        yield* journal.settle(key("template"), paid)
        yield* journal.prepare(key("open"), asked)
        const [row] = yield* sql<{ entry: string }>`SELECT entry FROM allm_tool_calls WHERE call_name = 'template'`
        const rows = Array.from({ length: 900 }, (_, index) => ({
          session_name: "s",
          call_name: `c${index}`,
          token: "t",
          settled: 1,
          entry: row!.entry.replace("\"template\"", `"c${index}"`)
        }))
        yield* sql`INSERT INTO allm_tool_calls ${sql.insert(rows)}`
        yield* journal.compact("s")
        const left = yield* sql<{ call_name: string }>`SELECT call_name FROM allm_tool_calls`

        assert.deepStrictEqual(left.map(({ call_name }) => call_name), ["open"])
      }))

    it.scopedLive("leaves a call that was forgotten and prepared anew while it compacts", () =>
      Effect.gen(function*() {
        const { journal, sql } = yield* opened(yield* make)
        yield* journal.prepare(key("c0"), asked)
        yield* journal.settle(key("c0"), paid)
        // As if another process had done so after this one read the settled entry.
        yield* sql`UPDATE allm_tool_calls SET settled = 0`
        yield* journal.compact("s")

        assert.strictEqual((yield* journal.prepare(key("c0"), asked))._tag, "Settled")
      }))

    it.scopedLive("is made by many processes at once", () =>
      Effect.gen(function*() {
        for (let round = 0; round < 5; round++) {
          const client = yield* make
          const journals = yield* Effect.forEach([1, 2, 3, 4, 5, 6], () => opened(client), { concurrency: "unbounded" })
          const known = yield* Effect.forEach(journals, ({ journal }) => journal.prepare(key("c0"), asked))
          assert.deepStrictEqual(known.map(tagOf).filter((tag) => tag === "New"), ["New"])
        }
      }))

    it.scopedLive("makes its table beside those of earlier steps, once, and leaves those of a newer version", () =>
      Effect.gen(function*() {
        const client = yield* make
        const { sql } = yield* opened(client)
        yield* opened(client)
        yield* sql`DELETE FROM allm_migrations WHERE id = 3`
        yield* sql.unsafe("DROP TABLE allm_tool_calls")
        const { journal } = yield* opened(client)
        assert.strictEqual((yield* journal.prepare(key("c0"), asked))._tag, "New")

        yield* sql`INSERT INTO allm_migrations (id, name) VALUES (99, 'tomorrow')`
        const error = yield* Effect.flip(Effect.provide(Migrations.migrate, client))
        assert.strictEqual(error.reason, "newer_format")
      }))
  })
}

describe("SqlToolJournal", { timeout: 30_000 }, () => {
  it.scopedLive("knows its own row when the driver does not tell how many it wrote", () =>
    Effect.gen(function*() {
      const client = createClient({ url: `file:${join(yield* directory, "a.db")}` })
      yield* Effect.addFinalizer(() => Effect.sync(() => client.close()))
      const silent = new Proxy(client, {
        get: (target, name) =>
          name === "execute"
            ? async (statement: { sql: string; args: Array<string> }) => {
              const { rows } = await target.execute(statement)
              return { rows }
            }
            : Reflect.get(target, name)
      })
      const { journal } = yield* opened(LibsqlClient.layer({ liveClient: silent }))
      const first = yield* journal.prepare(key("c0"), asked)
      const second = yield* journal.prepare(key("c0"), asked)
      yield* journal.settle(key("c0"), paid)
      const third = yield* journal.prepare(key("c0"), asked)

      assert.deepStrictEqual([first, second, third].map(tagOf), ["New", "InDoubt", "Settled"])
    }))

  it.scopedLive("has every commit on the disk before it goes on, whatever the client was set to", () =>
    Effect.gen(function*() {
      const client = LibsqlClient.layer({ url: `file:${join(yield* directory, "a.db")}` })
      const { journal, sql } = yield* opened(client)
      yield* sql.unsafe("PRAGMA synchronous = OFF")
      yield* journal.prepare(key("c0"), asked)
      const [set] = yield* sql.unsafe<{ synchronous: number }>("PRAGMA synchronous")

      // 3 is EXTRA.
      assert.strictEqual(set?.synchronous, 3)
    }))
})
