import type { ToolCall } from "@allm/core"
import { NodeContext } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { build } from "esbuild"
import { spawn } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { availableParallelism, tmpdir } from "node:os"
import { join } from "node:path"
import { execPath } from "node:process"
import { fileURLToPath } from "node:url"
import { batch, calls, isReplayable, journalIn } from "./JournalCrash.ts"

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

const workplace = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "journal-"))),
  (directory) => Effect.sync(() => rmSync(directory, { recursive: true }))
)

const lines = (file: string): ReadonlyArray<string> =>
  existsSync(file) ? readFileSync(file, "utf8").split("\n").filter((line) => line !== "") : []

/** What the journal says was settled when the process died, by call. */
const settledIn = (directory: string): ReadonlyMap<string, string> => {
  const folder = join(directory, "journal", "s")
  const entries = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")) : []
  return new Map(
    entries.map((name) => JSON.parse(readFileSync(join(folder, name), "utf8"))).filter((entry) => "outcome" in entry)
      .map((entry) => [entry.toolCallId, entry.outcome.content])
  )
}

const resumed = (directory: string) =>
  batch(directory, Effect.void).pipe(
    Effect.provide(journalIn(directory).pipe(Layer.provide(NodeContext.layer)))
  )

const countOf = (traces: ReadonlyArray<string>, call: ToolCall.ToolCall) =>
  traces.filter((trace) => trace === `${call.name} s/${call.id}`).length

describe("ToolJournal, a process that is killed", () => {
  it.scopedLive(
    "at any durable step loses no settled result and runs no call twice that must not be",
    () =>
      Effect.gen(function*() {
        const place = yield* workplace
        const program = join(place, "program.mjs")
        yield* Effect.promise(() =>
          build({
            entryPoints: [fileURLToPath(new URL("JournalCrash.ts", import.meta.url))],
            outfile: program,
            bundle: true,
            platform: "node",
            format: "esm",
            conditions: ["@allm/source"],
            banner: {
              js: "import { createRequire } from \"node:module\"; const require = createRequire(import.meta.url)"
            },
            logLevel: "error"
          })
        )
        const whole = join(place, "whole")
        mkdirSync(whole)
        const steps = Number((yield* start(program, [whole])).output)
        assert.isAbove(steps, 5 * 2 * 5)

        let settledSomewhere = 0
        let unknownSomewhere = 0
        yield* Effect.forEach(
          Array.from({ length: steps + 10 }, (_, index) => index + 1),
          Effect.fnUntraced(function*(n) {
            const directory = join(place, String(n))
            mkdirSync(directory)
            const death = yield* start(program, [directory, String(n)])
            // Calls race to make the directory, so some runs have a few steps more than others.
            assert.isTrue(death.signal === "SIGKILL" || Number(death.output) < n, `survived step ${n}`)
            const before = lines(join(directory, "traces"))
            const settled = settledIn(directory)

            const result = yield* resumed(directory)
            const after = lines(join(directory, "traces"))
            const again = yield* resumed(directory)

            assert.deepStrictEqual(result.messages.map(({ toolCallId }) => toolCallId), calls.map(({ id }) => id))
            assert.deepStrictEqual(again.messages, result.messages)
            assert.deepStrictEqual(lines(join(directory, "traces")), after)
            calls.forEach((call, index) => {
              const content = result.messages[index]?.content
              const ran = countOf(after, call)
              const unknown = result.outcomes[index]?.result._tag === "OutcomeUnknown"
              if (settled.has(call.id)) {
                settledSomewhere++
                assert.strictEqual(content, settled.get(call.id))
                assert.strictEqual(ran, countOf(before, call))
              }
              if (unknown) unknownSomewhere++
              else assert.strictEqual(content, `${call.name} done`)
              if (isReplayable(call.name)) {
                assert.isFalse(unknown)
                assert.isAtLeast(ran, 1)
              } else {
                assert.isAtMost(ran, 1, `${call.name} ran twice when killed at step ${n}`)
                assert.isTrue(unknown || ran === 1)
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
