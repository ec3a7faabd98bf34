import { Message, SessionStore } from "@allm/core"
import { SqlSessionStore } from "@allm/sql"
import { SqlClient } from "@effect/sql"
import { PgClient } from "@effect/sql-pg"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { execPath } from "node:process"
import { fileURLToPath } from "node:url"
import { programOf, translate } from "../../../scripts/programs.mjs"
import { directory, sqliteFile } from "./places.ts"
import { start } from "./postgres.ts"

const server = await start()
afterAll(() => typeof server === "string" ? undefined : server.stop())

const cache = fileURLToPath(new URL("../../../node_modules/.cache/sql-driver", import.meta.url))
beforeAll(() => translate([fileURLToPath(new URL("driver.ts", import.meta.url))], cache))
const driver = programOf("driver.ts", cache)
const ids = Array.from({ length: 200 }, (_, n) => `s${n}`)
const names = ["p0", "p1", "p2", "p3"]

/** Every session is driven by two of the processes. */
const sessionsOf = (index: number) => ids.filter((_, n) => n % 4 === index || (n + 1) % 4 === index)
const driversOf = (id: string) => names.filter((_, index) => sessionsOf(index).includes(id))

const lines = (file: string): ReadonlyArray<string> =>
  existsSync(file) ? readFileSync(file, "utf8").split("\n").filter((line) => line !== "") : []

/** What was said, and everything that followed from it. */
const turnsOf = (messages: ReadonlyArray<Message.Message>) => {
  const turns: Array<Array<Message.Message>> = []
  for (const message of messages) {
    if (message.role === "user") turns.push([message])
    else turns.at(-1)?.push(message)
  }
  return turns
}

interface End {
  readonly code: number | null
  readonly signal: string | null
  readonly errors: string
}

/** Runs a process to its end, or to its death when it has left some traces. */
const run = (database: string, name: string, traces: string, sessions: ReadonlyArray<string>, lifetime = Infinity) =>
  Effect.async<End>((resume) => {
    const child = spawn(
      execPath,
      [driver, database, name, traces, ...sessions],
      { stdio: ["ignore", "ignore", "pipe"] }
    )
    let errors = ""
    child.stderr.setEncoding("utf8").on("data", (text: string) => errors += text)
    const watching = setInterval(() => {
      if (lines(traces).filter((line) => line.endsWith(` ${name}`)).length >= lifetime) child.kill("SIGKILL")
    }, 5)
    child.on("close", (code, signal) => {
      clearInterval(watching)
      resume(Effect.succeed({ code, signal, errors }))
    })
  })

const load = (database: string, client: Layer.Layer<SqlClient.SqlClient>, folder: string) =>
  Effect.gen(function*() {
    const traces = join(folder, "traces")
    const [victim, ...ends] = yield* Effect.all([
      run(database, "victim", traces, ids.slice(0, 20), 3),
      ...names.map((name, index) => run(database, name, traces, sessionsOf(index)))
    ], { concurrency: "unbounded" })
    assert.deepStrictEqual(ends.map(({ code, errors }) => [code, errors]), names.map(() => [0, ""]))
    assert.strictEqual(victim?.signal, "SIGKILL")

    const paid = lines(traces)
    const sessions = yield* Effect.flatMap(SessionStore.SessionStore, (store) => Effect.forEach(ids, store.load)).pipe(
      Effect.provide(Layer.provide(SqlSessionStore.layer, client))
    )
    let ofTheDead = 0
    for (const { id, status, thread } of sessions) {
      const turns = turnsOf(thread.messages)
      const whoms = turns.map(([said]) => Message.toText(said!))
      assert.deepStrictEqual(whoms.filter((whom) => whom !== "victim").sort(), driversOf(id), id)
      assert.strictEqual(status, "completed", id)
      for (const turn of turns) {
        const whom = Message.toText(turn[0]!)
        const isOfTheDead = whom === "victim"
        const times = paid.filter((line) => line === `${id} ${whom}`).length
        const place = `${id} ${whom}`
        if (isOfTheDead) ofTheDead++
        // Who died before the model answered may have been talked over.
        if (isOfTheDead && turn.length === 1) {
          assert.strictEqual(times, 0, place)
          continue
        }
        assert.deepStrictEqual(turn.map(({ role }) => role), ["user", "assistant", "tool", "assistant"], place)
        const [, , result] = turn
        if (isOfTheDead && result?.role === "tool" && result.isError) {
          assert.isAtMost(times, 1, place)
        } else {
          assert.strictEqual(Message.toText(result!), `paid ${whom}`, place)
          assert.strictEqual(times, 1, place)
        }
      }
    }
    // Otherwise nobody had anything to take over.
    assert.isAbove(ofTheDead, 0)
  })

describe("200 sessions driven at once by four processes, and by a fifth that is killed", () => {
  const law = "nothing is lost, nothing runs twice, each comes to its end"

  it.scopedLive(`on one SQLite file: ${law}`, () =>
    Effect.gen(function*() {
      const folder = yield* directory
      const file = join(folder, "a.db")
      const client = sqliteFile(file)
      // As anybody would who has several processes; the file remembers.
      yield* Effect.provide(
        Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe("PRAGMA journal_mode = WAL")),
        client
      )
      yield* load(file, client, folder)
    }), 180_000)

  if (typeof server === "string") {
    it.skip(`on one PostgreSQL: ${server}`, () => {})
    return
  }
  const { port } = server

  it.scopedLive(`on one PostgreSQL: ${law}`, () =>
    Effect.gen(function*() {
      const client = PgClient.layer({ host: "127.0.0.1", port, username: "allm", database: "postgres" })
      yield* load(`postgres:${port}/postgres`, Layer.orDie(client), yield* directory)
    }), 180_000)
})
