import { Message, type Session, SessionStore } from "@allm/core"
import { SqlSessionStore } from "@allm/sql"
import { SqlClient } from "@effect/sql"
import { LibsqlClient } from "@effect/sql-libsql"
import { PgClient } from "@effect/sql-pg"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { start } from "./postgres.ts"

const session = (id: string, ...texts: ReadonlyArray<string>): Session.Session => ({
  id,
  thread: { messages: texts.map((text) => Message.user(text)), metadata: {} },
  status: "idle",
  pendingToolCalls: [],
  pendingQuestions: [],
  pendingApprovals: [],
  unknownOutcomes: [],
  usage: {},
  context: {},
  metadata: {},
  version: 0
})

const thread = (...texts: ReadonlyArray<string>) => ({
  messages: texts.map((text) => Message.user(text)),
  metadata: {}
})

type Open = Layer.Layer<SessionStore.SessionStore | SqlClient.SqlClient, unknown>

const server = await start()
afterAll(() => typeof server === "string" ? undefined : server.stop())

const sqlite = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "allm-sql-"))),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
  ),
  (directory): Open =>
    Layer.provideMerge(SqlSessionStore.layer, LibsqlClient.layer({ url: `file:${join(directory, "a.db")}` }))
)

let databases = 0

const connect = (port: number, database: string) =>
  PgClient.layer({ host: "127.0.0.1", port, username: "allm", database, maxConnections: 3 })

const postgres = (port: number) =>
  Effect.suspend(() => {
    const database = `test_${++databases}`
    return Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(`CREATE DATABASE ${database}`)).pipe(
      Effect.provide(connect(port, "postgres")),
      Effect.as<Open>(Layer.provideMerge(SqlSessionStore.layer, connect(port, database)))
    )
  })

const places: ReadonlyArray<readonly [string, Effect.Effect<Open, unknown, Scope.Scope> | string]> = [
  ["SQLite", sqlite],
  ["PostgreSQL", typeof server === "string" ? server : postgres(server.port)]
]

/** As another process would. */
const opened = (open: Open) => Layer.build(Layer.fresh(open))

for (const [name, place] of places) {
  if (typeof place === "string") {
    it.skip(`SqlSessionStore on ${name}: ${place}`, () => {})
    continue
  }
  const withFile = <A, E>(body: (open: Open) => Effect.Effect<A, E>) => Effect.scoped(Effect.flatMap(place, body))

  describe(`SqlSessionStore on ${name}`, () => {
    it.scopedLive("gives back threads that grow, change and shrink, also to another process", () =>
      withFile((open) =>
        Effect.scoped(Effect.gen(function*() {
          const one = yield* Effect.provide(SessionStore.SessionStore, yield* opened(open))
          const other = yield* Effect.provide(SessionStore.SessionStore, yield* opened(open))
          let last = yield* one.save(session("s1", "a"))
          const threads = [
            ["a", "b"],
            ["a", "b", "c", "d"],
            ["a", "b", "c", "x", "e"],
            ["a", "y"],
            ["a", "y", "z"],
            ["q"],
            [],
            ["r", "\u0000 \ud800"]
          ]
          for (const [turn, texts] of threads.entries()) {
            const store = turn % 2 === 0 ? one : other
            last = yield* store.save({ ...last, thread: thread(...texts) })
            assert.deepStrictEqual(yield* one.load("s1"), last)
            assert.deepStrictEqual(yield* other.load("s1"), last)
          }
          const fresh = yield* Effect.provide(SessionStore.SessionStore, yield* opened(open))
          assert.deepStrictEqual(yield* fresh.load("s1"), last)
        }))
      ))

    it.scopedLive("lets one of two processes win, also after the session was deleted and made anew", () =>
      withFile((open) =>
        Effect.scoped(Effect.gen(function*() {
          const one = yield* Effect.provide(SessionStore.SessionStore, yield* opened(open))
          const other = yield* Effect.provide(SessionStore.SessionStore, yield* opened(open))
          const base = yield* one.save(session("s1", "old"))
          yield* other.save({ ...base, status: "completed" })
          const conflict = yield* Effect.flip(one.save(base))
          assert.deepStrictEqual(
            conflict._tag === "Conflict" && [conflict.expectedVersion, conflict.storedVersion],
            [1, 2]
          )
          yield* other.delete("s1")
          yield* other.save(session("s1", "new"))
          const saved = yield* one.save({ ...base, thread: thread("new", "mine") })
          assert.deepStrictEqual(yield* other.load("s1"), saved)
        }))
      ))

    it.scopedLive("pages in the order of the ids", () =>
      withFile((open) =>
        Effect.scoped(Effect.gen(function*() {
          const store = yield* Effect.provide(SessionStore.SessionStore, yield* opened(open))
          yield* Effect.forEach(["b", "A", "👋", "a", "\uffff"], (id) => store.save(session(id)))
          const first = yield* store.list({ limit: 3 })
          const second = yield* store.list({ limit: 3, cursor: first.cursor })

          assert.deepStrictEqual(first.sessions.map(({ id }) => id), ["A", "a", "b"])
          assert.deepStrictEqual(second.sessions.map(({ id }) => id), ["\uffff", "👋"])
          assert.strictEqual(second.cursor, undefined)
        }))
      ))

    it.scopedLive("writes each message of a growing thread once to a row of its own", () =>
      withFile((open) =>
        Effect.scoped(Effect.gen(function*() {
          const context = yield* opened(open)
          const store = yield* Effect.provide(SessionStore.SessionStore, context)
          const sql = yield* Effect.provide(SqlClient.SqlClient, context)
          let last = yield* store.save(session("s1", "0"))
          for (let turn = 1; turn < 6; turn++) {
            last = yield* store.save({
              ...last,
              thread: { ...last.thread, messages: [...last.thread.messages, Message.user(`${turn}`)] }
            })
          }
          const rows = yield* sql<
            { position: number; body: string }
          >`SELECT position, body FROM allm_messages ORDER BY position`
          const [row] = yield* sql<{ tail: string }>`SELECT tail FROM allm_sessions`

          assert.deepStrictEqual(rows.map(({ body }) => (JSON.parse(body) as { content: string }).content), [
            "0",
            "1",
            "2",
            "3",
            "4"
          ])
          assert.deepStrictEqual((JSON.parse(row!.tail) as Array<{ content: string }>).map(({ content }) => content), [
            "5"
          ])
        }))
      ))
  })
}
