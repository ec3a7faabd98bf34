import { Message, SessionStore } from "@allm/core"
import { SqlSessionStore } from "@allm/sql"
import { SqlClient } from "@effect/sql"
import { LibsqlClient } from "@effect/sql-libsql"
import { PgClient } from "@effect/sql-pg"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { execPath } from "node:process"
import { fileURLToPath } from "node:url"
import { directory } from "./places.ts"
import { start } from "./postgres.ts"

const server = await start()
afterAll(() => typeof server === "string" ? undefined : server.stop())

const driver = fileURLToPath(new URL("./driver.ts", import.meta.url))
const ids = Array.from({ length: 200 }, (_, n) => `s${n}`)
const names = ["p0", "p1", "p2", "p3"]

/** Every session is driven by two of the processes. */
const sessionsOf = (index: number) => ids.filter((_, n) => n % 4 === index || (n + 1) % 4 === index)
const driversOf = (id: string) => names.filter((_, index) => sessionsOf(index).includes(id))

const lines = (file: string): ReadonlyArray<string> =>
  existsSync(file) ? readFileSync(file, "utf8").split("\n").filter((line) => line !== "") : []

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
      ["--conditions=@allm/source", "--import", "tsx", driver, database, name, traces, ...sessions],
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
    for (const session of sessions) {
      const { messages } = session.thread
      const said = messages.filter(({ role }) => role === "user").map(Message.toText)
      const drivers = driversOf(session.id)
      assert.deepStrictEqual(said.filter((text) => text !== "victim").sort(), drivers, session.id)
      assert.strictEqual(session.status, "completed", session.id)
      // One after the other, each turn as a whole.
      assert.deepStrictEqual(
        messages.map(({ role }) => role),
        said.flatMap(() => ["user", "assistant", "tool", "assistant"]),
        session.id
      )
      messages.forEach((message, n) => {
        if (message.role !== "tool") return
        const whom = Message.toText(messages[n - 2]!)
        const times = paid.filter((line) => line === `${session.id} ${whom}`).length
        if (whom === "victim") {
          ofTheDead++
          assert.isAtMost(times, 1, `${session.id} ${whom}`)
          assert.isTrue(times === 1 || message.isError, `${session.id} ${whom}`)
        } else {
          assert.strictEqual(Message.toText(message), `paid ${whom}`, session.id)
          assert.strictEqual(times, 1, `${session.id} ${whom}`)
        }
      })
    }
    // Otherwise nobody had anything to take over.
    assert.isAbove(ofTheDead, 0)
  })

describe("200 sessions driven at once by four processes, and by a fifth that is killed", () => {
  it.scopedLive(
    "on one SQLite file: nothing is lost, nothing runs twice, each comes to its end",
    () =>
      Effect.gen(function*() {
        const folder = yield* directory
        const file = join(folder, "a.db")
        yield* load(file, LibsqlClient.layer({ url: `file:${file}` }), folder)
      }),
    120_000
  )

  it.scopedLive(
    "on one PostgreSQL: nothing is lost, nothing runs twice, each comes to its end",
    (context) =>
      Effect.gen(function*() {
        if (typeof server === "string") return context.skip(server)
        const folder = yield* directory
        const client = Layer.orDie(
          PgClient.layer({ host: "127.0.0.1", port: server.port, username: "allm", database: "postgres" })
        )
        yield* load(`postgres:${server.port}/postgres`, client, folder)
      }),
    120_000
  )
})
