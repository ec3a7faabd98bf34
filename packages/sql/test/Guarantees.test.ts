/**
 * What the README says about files, SQLite and PostgreSQL, put to the test by processes that end, die and compete.
 */
import { Message, Session, SessionStore } from "@allm/core"
import { SqlClient } from "@effect/sql"
import { PgClient } from "@effect/sql-pg"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { programOf, translate } from "../../../scripts/programs.mjs"
import { layer, type Place } from "./guarantees.ts"
import { directory } from "./places.ts"
import { start } from "./postgres.ts"

const server = await start()
afterAll(() => typeof server === "string" ? undefined : server.stop())

const cache = fileURLToPath(new URL("../../../node_modules/.cache/sql-guarantees", import.meta.url))
beforeAll(() => translate([fileURLToPath(new URL("guarantees.ts", import.meta.url))], cache))
const program = programOf("guarantees.ts", cache)

interface End {
  readonly signal: string | undefined
  readonly output: string
  readonly problems: string
}

const spawn = (place: Place, ...args: ReadonlyArray<string>) =>
  Effect.async<End>((resume) => {
    execFile(
      process.execPath,
      [program, JSON.stringify(place), ...args],
      (error, output, problems) =>
        resume(Effect.succeed({ signal: error?.signal, output, problems: error?.signal ? "" : problems }))
    )
  })

const database = (port: number) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe("CREATE DATABASE guarantees")).pipe(
    Effect.provide(PgClient.layer({ host: "127.0.0.1", port, username: "allm", database: "postgres" })),
    Effect.orDie,
    Effect.as({ port, database: "guarantees" })
  )

const places: ReadonlyArray<readonly [string, string | ((path: string) => Effect.Effect<Place>)]> = [
  ["files", (path) => Effect.succeed({ files: path })],
  ["SQLite", (path) => Effect.succeed({ sqlite: join(path, "a.db") })],
  ["PostgreSQL", typeof server === "string" ? server : () => database(server.port)]
]

for (const [name, make] of places) {
  if (typeof make === "string") {
    it.skip(`what is kept in ${name}: ${make}`, () => {})
    continue
  }

  describe(`what is kept in ${name}`, () => {
    it.scopedLive(
      "outlives processes that are killed in the middle of a batch, and serves several at once",
      () =>
        Effect.gen(function*() {
          const path = yield* directory
          const place = yield* make(path)

          const first = yield* spawn(place, path, "run", "put")
          const second = yield* spawn(place, path, "run", "mail")
          const third = yield* spawn(place, path, "run", "")
          const traces = readFileSync(join(path, "traces"), "utf8").trim().split("\n")
          const session = yield* Session.validate(JSON.parse(third.output))

          assert.deepStrictEqual([first.signal, second.signal], ["SIGKILL", "SIGKILL"])
          assert.strictEqual(third.problems, "")
          // What ended did not run again; of what was in doubt, only that which may.
          assert.deepStrictEqual(traces, ["pay", "put", "put", "mail"])
          assert.strictEqual(session.status, "completed")
          assert.deepStrictEqual(session.thread.messages.map(Message.toText), [
            "Go",
            "",
            "pay done",
            "put done",
            "{\"error\":\"tool error (mail): outcome_unknown\"}",
            "All done"
          ])

          const ids = ["s0", "s1", "s2"]
          const stored = yield* Effect.gen(function*() {
            const store = yield* SessionStore.SessionStore
            yield* Effect.forEach(ids, (id) => store.save(Session.make({ id })))
            const ends = yield* Effect.forEach([1, 2, 3], () => spawn(place, path, "add", "15"), {
              concurrency: "unbounded"
            })
            assert.deepStrictEqual(ends.map(({ problems }) => problems), ["", "", ""])
            return yield* Effect.forEach(ids, store.load)
          }).pipe(Effect.provide(layer(place)))
          const added = stored.map(({ thread }) => thread.messages.map(Message.toText))

          // All of 15 messages of each of three processes, each once.
          assert.deepStrictEqual(added.map((texts) => new Set(texts).size), [15, 15, 15])
          assert.strictEqual(added.flat().length, 45)
        }),
      120_000
    )
  })
}
