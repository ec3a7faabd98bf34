import type { Session, ToolCall } from "@allm/core"
import { SqlClient } from "@effect/sql"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { build } from "esbuild"
import { spawn } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { execPath } from "node:process"
import { fileURLToPath } from "node:url"
import { calls, isReplayable, stores, work } from "./crash.ts"
import { directory, sqliteFile } from "./places.ts"

interface Death {
  readonly signal: string | null
  readonly output: string
}

const start = (program: string, args: ReadonlyArray<string>) =>
  Effect.async<Death>((resume) => {
    const child = spawn(execPath, [program, ...args], { stdio: ["ignore", "pipe", "inherit"] })
    let output = ""
    child.stdout.on("data", (chunk: Buffer) => output += chunk.toString())
    child.on("close", (_code, signal) => resume(Effect.succeed({ signal, output })))
  })

/** One file starts faster than many. It is beside the packages it cannot hold, which have code of the machine. */
const bundled = Effect.acquireRelease(
  Effect.promise(async () => {
    const program = fileURLToPath(new URL(`../node_modules/.cache/crash-${process.pid}.mjs`, import.meta.url))
    await build({
      entryPoints: [fileURLToPath(new URL("crash.ts", import.meta.url))],
      outfile: program,
      bundle: true,
      platform: "node",
      format: "esm",
      conditions: ["@allm/source"],
      external: ["@libsql/*", "libsql"],
      banner: { js: "import { createRequire } from \"node:module\"; const require = createRequire(import.meta.url)" },
      logLevel: "error"
    })
    return program
  }),
  (program) => Effect.sync(() => rmSync(program, { force: true }))
)

const lines = (file: string): ReadonlyArray<string> =>
  existsSync(file) ? readFileSync(file, "utf8").split("\n").filter((line) => line !== "") : []

/** What the journal says was settled when the process died, by call. */
const settledIn = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* sql`SELECT name FROM sqlite_master WHERE name = 'allm_tool_calls'`
  if (tables.length === 0) return new Map<string, string>()
  const rows = yield* sql<{ entry: string }>`SELECT entry FROM allm_tool_calls WHERE settled = 1`
  return new Map(rows.map(({ entry }) => {
    const { outcome, toolCallId } = JSON.parse(entry)
    return [toolCallId as string, outcome.content as string]
  }))
})

const inFile = <A, E>(path: string, effect: Effect.Effect<A, E, SqlClient.SqlClient>) =>
  Effect.provide(effect, sqliteFile(join(path, "a.db")))

const resumed = (path: string) => inFile(path, Effect.provide(work(path, Effect.void), stores))

const countOf = (traces: ReadonlyArray<string>, call: ToolCall.ToolCall) =>
  traces.filter((trace) => trace === `${call.name} s/${call.id}`).length

/** The request, the calls, one message for each of them in their order, and the model's last word. */
const assertValid = ({ status, thread }: Session.Session) => {
  assert.strictEqual(status, "completed")
  assert.deepStrictEqual(
    thread.messages.map((message) => message.role === "tool" ? message.toolCallId : message.role),
    ["user", "assistant", ...calls.map(({ id }) => id), "assistant"]
  )
  assert.strictEqual(thread.messages.at(-1)?.content, "All done")
}

describe("A session in SQLite, in a process that is killed", () => {
  it.scopedLive(
    "at any durable step loses no settled result, runs no call twice that must not be, and comes to its end",
    () =>
      Effect.gen(function*() {
        const program = yield* bundled
        const place = yield* directory
        const whole = join(place, "whole")
        mkdirSync(whole)
        const steps = Number((yield* start(program, [whole])).output)
        // Tables, the first save, and of each call: before and after it is prepared, runs and is settled.
        assert.isAbove(steps, 5 * 2 * 3)

        let settledSomewhere = 0
        let unknownSomewhere = 0
        yield* Effect.forEach(
          Array.from({ length: steps }, (_, index) => index + 1),
          Effect.fnUntraced(function*(n) {
            const path = join(place, String(n))
            mkdirSync(path)
            const death = yield* start(program, [path, String(n)])
            assert.strictEqual(death.signal, "SIGKILL", `survived step ${n}`)
            const before = lines(join(path, "traces"))
            const settled = yield* inFile(path, settledIn)

            const session = yield* resumed(path)
            const after = lines(join(path, "traces"))
            const again = yield* resumed(path)

            assertValid(session)
            assert.deepStrictEqual(again, session)
            assert.deepStrictEqual(lines(join(path, "traces")), after)
            assert.strictEqual((yield* inFile(path, settledIn)).size, 0)
            calls.forEach((call, index) => {
              const message = session.thread.messages[2 + index]
              const isUnknown = String(message?.content).includes("outcome_unknown")
              const ran = countOf(after, call)
              if (settled.has(call.id)) {
                settledSomewhere++
                assert.strictEqual(message?.content, settled.get(call.id))
                assert.strictEqual(ran, countOf(before, call))
              }
              if (isUnknown) unknownSomewhere++
              else assert.strictEqual(message?.content, `${call.name} done`)
              if (isReplayable(call.name)) {
                assert.isFalse(isUnknown)
                assert.isAtLeast(ran, 1)
              } else {
                assert.isAtMost(ran, 1, `${call.name} ran twice when killed at step ${n}`)
                assert.isTrue(isUnknown || ran === 1)
              }
            })
          }),
          { concurrency: Math.max(2, availableParallelism()), discard: true }
        )
        // Otherwise nothing of the above was put to the test.
        assert.isAbove(settledSomewhere, 0)
        assert.isAbove(unknownSomewhere, 0)
      }),
    90_000
  )
})
