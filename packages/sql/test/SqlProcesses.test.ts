import { Message, SessionStore } from "@allm/core"
import { SqlSessionStore } from "@allm/sql"
import { LibsqlClient } from "@effect/sql-libsql"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { programOf, translate } from "../../../scripts/programs.mjs"

const cache = fileURLToPath(new URL("../../../node_modules/.cache/sql-writer", import.meta.url))
beforeAll(() => translate([fileURLToPath(new URL("writer.ts", import.meta.url))], cache))
const writer = programOf("writer.ts", cache)

const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "allm-sql-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

describe("SqlSessionStore", () => {
  // What was acknowledged has to be there, also when processes find the file locked by each other.
  it.scopedLive("loses no message of three processes that write to one SQLite file", () =>
    Effect.gen(function*() {
      const file = join(yield* directory, "a.db")
      yield* Effect.forEach([1, 2, 3], () =>
        Effect.promise(() => promisify(execFile)(process.execPath, [writer, file, "50"])), { concurrency: "unbounded" })
      const messages = yield* Effect.flatMap(SessionStore.SessionStore, (store) =>
        Effect.forEach(["s0", "s1", "s2", "s3", "s4"], (id) =>
          Effect.map(store.load(id), ({ thread }) =>
            thread.messages.map(Message.toText)))).pipe(
          Effect.provide(Layer.provide(SqlSessionStore.layer, LibsqlClient.layer({ url: `file:${file}` })))
        )

      assert.deepStrictEqual(
        messages.map((texts) =>
          new Set(texts).size
        ),
        [30, 30, 30, 30, 30]
      )
      assert.strictEqual(messages.flat().length, 150)
    }), 60_000)
})
