import { Message, Session, SessionStore, StoreError, ToolJournal, ToolResult } from "@allm/core"
import { SqlSessionStore, SqlToolJournal } from "@allm/sql"
import { SqlClient } from "@effect/sql"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Fault, type Moment } from "./faulty.ts"
import { type Client, places } from "./places.ts"

const { all, stop } = await places()
afterAll(stop)

const saying = (session: Session.Session, ...texts: ReadonlyArray<string>): Session.Session => ({
  ...session,
  thread: { ...session.thread, messages: texts.map((text) => Message.user(text)) }
})

const asked = { toolName: "pay", digest: "d0" }

const paid: ToolJournal.StoredOutcome = {
  result: ToolResult.ok({ receipt: 7 }),
  content: "{\"receipt\":7}",
  isError: false,
  halts: false
}

const c0 = { sessionId: "s", toolCallId: "c0" }
const c1 = { sessionId: "s", toolCallId: "c1" }

const stores = Layer.merge(SqlSessionStore.layer, SqlToolJournal.layer)

/** As another process would, with nothing remembered. */
const opened = (client: Client) =>
  Effect.map(Layer.build(Layer.provideMerge(stores, client)), (context) => ({
    store: Context.get(context, SessionStore.SessionStore),
    journal: Context.get(context, ToolJournal.ToolJournal),
    sql: Context.get(context, SqlClient.SqlClient)
  }))

const reasonOf = (error: SessionStore.Conflict | SessionStore.NotFound | StoreError.StoreError) =>
  error._tag === "StoreError" ? error.reason : error._tag

const dumped = (sql: SqlClient.SqlClient) =>
  Effect.all([
    sql`SELECT * FROM allm_sessions ORDER BY id`,
    sql`SELECT * FROM allm_messages ORDER BY session_id, epoch, position`,
    sql`SELECT * FROM allm_tool_calls ORDER BY session_name, call_name`
  ]).pipe(Effect.map((tables) => JSON.stringify(tables)))

/** How to lose a value, and whether the list notices too, which does not read whole sessions. */
const damages: ReadonlyArray<readonly [name: string, table: string, column: string, damage: (text: string) => string]> =
  [
    ["an empty head", "allm_sessions", "head", () => ""],
    ["a torn head", "allm_sessions", "head", (text) => text.slice(0, text.length / 2)],
    ["a head that is no session", "allm_sessions", "head", () => "[1]"],
    ["a head with an unknown status", "allm_sessions", "head", (text) => text.replace("idle", "asleep")],
    ["a torn tail", "allm_sessions", "tail", (text) => text.slice(0, -3)],
    ["a tail that holds no message", "allm_sessions", "tail", () => "[{}]"],
    ["a torn layout", "allm_sessions", "layout", (text) => text.slice(1)],
    ["a layout of other messages", "allm_sessions", "layout", (text) => text.replace("\"flushed\":2", "\"flushed\":3")],
    ["a torn message", "allm_messages", "body", (text) => text.slice(0, 10)],
    ["a message of no role", "allm_messages", "body", (text) => text.replace("user", "ghost")]
  ]

for (const { database, make, name } of all) {
  if (typeof make === "string") {
    it.skip(`Faults on ${name}: ${make}`, () => {})
    continue
  }

  describe(`Faults on ${name}`, { timeout: 30_000 }, () => {
    it.scopedLive.each(damages)(
      "tells of %s, leaves it as it is, and has the session back when the text is back",
      ([_name, table, column, damage]) =>
        Effect.gen(function*() {
          const client = yield* make
          const { sql, store } = yield* opened(client)
          const first = yield* store.save(saying(Session.make({ id: "s" }), "a", "b"))
          const saved = yield* store.save(saying(first, "a", "b", "c"))
          const other = yield* store.save(Session.make({ id: "other" }))
          const where = table === "allm_sessions" ? "id = 's'" : "session_id = 's' AND position = 1"
          const [row] = yield* sql.unsafe<{ text: string }>(`SELECT ${column} AS text FROM ${table} WHERE ${where}`)
          const damaged = damage(row!.text)
          assert.notStrictEqual(damaged, row!.text)
          const put = (text: string) =>
            sql`UPDATE ${sql(table)} SET ${sql.update({ [column]: text })} WHERE ${sql.literal(where)}`
          yield* put(damaged)
          const before = yield* dumped(sql)

          const next = yield* opened(client)
          const loaded = yield* Effect.flip(next.store.load("s"))
          const refused = yield* Effect.flip(next.store.save(saved))

          assert.deepStrictEqual([loaded, refused].map(reasonOf), ["corrupt", "corrupt"])
          assert.include(loaded.message, "\"s\"")
          assert.include(loaded.message, "allm_sessions")
          assert.strictEqual(yield* dumped(sql), before)
          assert.deepStrictEqual(yield* next.store.load("other"), other)

          yield* put(row!.text)
          assert.deepStrictEqual(yield* next.store.load("s"), saved)
        })
    )

    it.scopedLive("tells of messages that are gone, and of a session whose row was damaged in the list", () =>
      Effect.gen(function*() {
        const client = yield* make
        const { sql, store } = yield* opened(client)
        const first = yield* store.save(saying(Session.make({ id: "s" }), "a", "b"))
        yield* store.save(saying(first, "a", "b", "c"))
        yield* store.save(Session.make({ id: "t" }))
        yield* sql`DELETE FROM allm_messages WHERE position = 1`
        yield* sql`UPDATE allm_sessions SET status = 'asleep' WHERE id = 't'`
        const next = yield* opened(client)
        const loaded = yield* Effect.flip(next.store.load("s"))
        const page = yield* next.store.list()

        assert.strictEqual(reasonOf(loaded), "corrupt")
        assert.deepStrictEqual(page.sessions.map(({ id }) => id), ["s"])
        assert.deepStrictEqual(page.unreadable.map(({ id, reason }) => [id, reason]), [["t", "corrupt"]])
        yield* next.store.delete("s")
        assert.strictEqual(reasonOf(yield* Effect.flip(next.store.load("s"))), "NotFound")
      }))

    it.scopedLive("leaves what a newer version wrote, in either store", () =>
      Effect.gen(function*() {
        const client = yield* make
        const { journal, sql, store } = yield* opened(client)
        const saved = yield* store.save(Session.make({ id: "s" }))
        yield* journal.prepare(c0, asked)
        yield* journal.settle(c0, paid)
        // Another save, by a newer version, has another token.
        yield* sql`UPDATE allm_sessions SET format = 2, head = 'from tomorrow', version = 2, token = 'tomorrow'`
        const [row] = yield* sql<{ entry: string }>`SELECT entry FROM allm_tool_calls`
        yield* sql`UPDATE allm_tool_calls SET entry = ${row!.entry.replace("\"version\":1", "\"version\":2")}`
        const before = yield* dumped(sql)
        const next = yield* opened(client)
        const errors = yield* Effect.forEach(
          [store.load("s"), next.store.load("s"), next.store.save({ ...saved, version: 2 }), store.save(saved)],
          (operation: Effect.Effect<unknown, Parameters<typeof reasonOf>[0]>) => Effect.flip(operation)
        )
        const page = yield* store.list()
        const noted = yield* Effect.forEach(
          [journal.prepare(c0, asked), journal.settle(c0, paid), journal.compact("s")],
          (operation: Effect.Effect<unknown, ToolJournal.JournalError>) => Effect.flip(operation)
        )

        assert.deepStrictEqual(errors.map(reasonOf), ["newer_format", "newer_format", "newer_format", "Conflict"])
        assert.deepStrictEqual(page.unreadable.map(({ reason }) => reason), ["newer_format"])
        assert.deepStrictEqual(noted.map(({ reason }) => reason), Array.from(noted, () => "unsupported_version"))
        assert.strictEqual(yield* dumped(sql), before)
      }))

    it.scopedLive("tells of a damaged entry of the journal, and lets the other calls be", () =>
      Effect.gen(function*() {
        const { journal, sql } = yield* opened(yield* make)
        for (const key of [c0, c1]) {
          yield* journal.prepare(key, asked)
          yield* journal.settle(key, paid)
        }
        const [row] = yield* sql<{ entry: string }>`SELECT entry FROM allm_tool_calls WHERE call_name = 'c0'`
        const put = (entry: string) => sql`UPDATE allm_tool_calls SET entry = ${entry} WHERE call_name = 'c0'`
        const texts = [["", "corrupt"], [row!.entry.slice(0, 30), "corrupt"], [
          row!.entry.replace("\"c0\"", "\"c9\""),
          "mismatch"
        ]] as const
        for (const [text, reason] of texts) {
          yield* put(text)
          const prepared = yield* Effect.flip(journal.prepare(c0, asked))
          const settled = yield* Effect.flip(journal.settle(c0, paid))
          assert.deepStrictEqual([prepared.reason, settled.reason], [reason, reason])
          assert.strictEqual(prepared.location, "allm_tool_calls (s, c0)")
          assert.strictEqual((yield* journal.prepare(c1, asked))._tag, "Settled")
        }
        const compacted = yield* Effect.flip(journal.compact("s"))
        assert.strictEqual(compacted.reason, "mismatch")
        assert.strictEqual((yield* journal.prepare(c1, asked))._tag, "New")

        yield* put(row!.entry)
        assert.strictEqual((yield* journal.prepare(c0, asked))._tag, "Settled")
      }))

    const moments: ReadonlyArray<Moment> = ["before", "after"]

    it.scopedLive.each(moments)(
      "has one whole version of a session when any statement of a save is lost %s the database has it",
      (moment) =>
        Effect.gen(function*() {
          const { client, faulty } = yield* database
          const fault = new Fault()
          const clean = yield* opened(client)
          const { store } = yield* opened(yield* faulty(fault))
          let n = 1
          let failures = 0
          do {
            const id = `s${n}`
            const first = yield* clean.store.save(saying(Session.make({ id }), "a", "b"))
            const saved = yield* clean.store.save(saying(first, "a", "b", "c"))
            const next = saying({ ...saved, status: "completed" }, "a", "b", "x", "d")
            fault.arm(n, moment)
            const result = yield* Effect.either(store.save(next))
            fault.disarm()

            const found = yield* (yield* opened(client)).store.load(id)
            if (result._tag === "Right") assert.deepStrictEqual(found, result.right)
            else {
              failures++
              assert.strictEqual(result.left instanceof StoreError.StoreError && result.left.reason, "unavailable")
              assert.deepStrictEqual(found, found.version === 2 ? saved : { ...next, version: 3 })
              if (moment === "before") assert.strictEqual(found.version, 2)
            }
            // It goes on where it is, with what it finds.
            assert.deepStrictEqual(yield* store.load(id), found)
            const again = yield* store.save(saying(found, "a", "z"))
            assert.deepStrictEqual(yield* (yield* opened(client)).store.load(id), again)
            n++
          } while (fault.happened)
          // The row, the rows of messages that move, and the new version.
          assert.isAtLeast(failures, 3)
        })
    )

    it.scopedLive.each(moments)(
      "starts no call it does not know to be noted, when any statement of the journal is lost %s the database has it",
      (moment) =>
        Effect.gen(function*() {
          const { client, faulty } = yield* database
          const fault = new Fault()
          const clean = yield* opened(client)
          const { journal } = yield* opened(yield* faulty(fault))
          const operations: ReadonlyArray<{
            readonly name: ToolJournal.JournalError["operation"]
            readonly run: (key: ToolJournal.Key) => Effect.Effect<unknown, ToolJournal.JournalError>
            readonly ends: ReadonlyArray<ToolJournal.Prepared["_tag"]>
          }> = [
            { name: "prepare", run: (key) => journal.prepare(key, asked), ends: ["New", "InDoubt"] },
            {
              name: "settle",
              run: (key) => Effect.zipRight(clean.journal.prepare(key, asked), journal.settle(key, paid)),
              ends: ["InDoubt", "Settled"]
            },
            {
              name: "compact",
              run: (key) =>
                Effect.all([
                  clean.journal.prepare(key, asked),
                  clean.journal.settle(key, paid),
                  journal.compact(key.sessionId)
                ]),
              ends: ["Settled", "New"]
            }
          ]
          for (const { ends, name, run } of operations) {
            let n = 1
            let failures = 0
            do {
              const key = { sessionId: `${name} ${n}`, toolCallId: "c0" }
              fault.arm(n, moment)
              const result = yield* Effect.either(run(key))
              fault.disarm()
              const { _tag } = yield* clean.journal.prepare(key, asked)
              if (result._tag === "Left") {
                failures++
                assert.deepInclude(result.left, { _tag: "JournalError", reason: "unavailable", operation: name })
                assert.include(ends, _tag)
                if (moment === "before") assert.strictEqual(_tag, ends[0])
              } else {
                assert.strictEqual(_tag, ends[1])
              }
              n++
            } while (fault.happened)
            assert.isAtLeast(failures, 1, name)
          }
        })
    )

    it.scopedLive("tells a full disk, has what it had, and goes on when there is room", () =>
      Effect.gen(function*() {
        const { journal, sql, store } = yield* opened(yield* make)
        const saved = yield* store.save(saying(Session.make({ id: "s" }), "a"))
        yield* journal.prepare(c0, asked)
        const { free } = yield* fill(sql)
        const long = "long ".repeat(20_000)
        const full = yield* Effect.flip(Effect.asVoid(store.save(saying(saved, "a", long))))
        const unsettled = yield* Effect.flip(journal.settle(c0, { ...paid, content: long }))
        const unprepared = yield* Effect.flip(journal.prepare({ ...c1, toolCallId: "c1" }, { ...asked, digest: long }))
        const found = yield* store.load("s")
        yield* free

        assert.strictEqual(reasonOf(full), "full")
        assert.deepStrictEqual([unsettled.reason, unprepared.reason], ["unavailable", "unavailable"])
        assert.match(unsettled.message, /full/)
        assert.deepStrictEqual(found, saved)
        assert.strictEqual((yield* journal.prepare(c0, asked))._tag, "InDoubt")
        assert.strictEqual((yield* journal.prepare(c1, asked))._tag, "New")
        const after = yield* store.save(saying(saved, "a", long))
        assert.deepStrictEqual(yield* store.load("s"), after)
      }))
  })
}

/** Uses up the room, and gives it back. SQLite has a limit of pages; a server is made to say that its disk is full. */
const fill = (sql: SqlClient.SqlClient): Effect.Effect<{ readonly free: Effect.Effect<unknown, unknown> }, unknown> =>
  sql.onDialectOrElse({
    sqlite: () =>
      Effect.gen(function*() {
        const [row] = yield* sql.unsafe<{ page_count: number }>("PRAGMA page_count")
        yield* sql.unsafe(`PRAGMA max_page_count = ${row!.page_count}`)
        return { free: sql.unsafe("PRAGMA max_page_count = 1000000") }
      }),
    orElse: () =>
      Effect.gen(function*() {
        yield* sql.unsafe(
          "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " +
            "RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$"
        )
        const tables = ["allm_sessions", "allm_messages", "allm_tool_calls"]
        for (const table of tables) {
          yield* sql.unsafe(
            `CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION refuse()`
          )
        }
        return { free: Effect.forEach(tables, (table) => sql.unsafe(`DROP TRIGGER full_disk ON ${table}`)) }
      })
  })
