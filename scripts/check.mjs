// Every check of the repository, in order. `npm test -- lint unit` runs only the named steps.
//
// A failing step does not stop the others. The last line is "N passed, N failed": it counts tests, and one failure
// for each command that failed without naming a test.
import { existsSync, readFileSync, rmSync } from "node:fs"
import { basename, join } from "node:path"
import { consume } from "./consume.mjs"
import { countTstyche, countVitest } from "./counts.mjs"
import { docs } from "./docs.mjs"
import { command, inPairs, modulesOf, packages, root, run, sum } from "./run.mjs"

const vitestReport = join(root, "node_modules/.cache/vitest.json")

const attwOptions = "--pack . --profile esm-only --format table-flipped --no-summary --no-color".split(" ")

const steps = {
  // From scratch: an incremental build keeps the output of deleted modules, and does not notice a deleted `dist`.
  build: () => {
    for (const cwd of packages) rmSync(join(cwd, "dist"), { recursive: true, force: true })
    return command("tsc", ["-b", "--force"])
  },

  lint: () => command("oxlint", ["--deny-warnings"]),

  format: () => command("dprint", ["check"]),

  unit: async () => {
    // A report of an earlier run must not speak for one that crashed.
    rmSync(vitestReport, { force: true })
    const { code } = await run("vitest", [
      "run",
      "--reporter=default",
      "--reporter=json",
      `--outputFile.json=${vitestReport}`
    ])
    return countVitest(existsSync(vitestReport) ? readFileSync(vitestReport, "utf8") : "", code)
  },

  // TypeScript 7 has no compiler API, so tstyche fetches the oldest compiler we support and proves that one.
  types: async () => {
    const { code, output } = await run("tstyche", ["--target", "5.9"], { capture: true })
    return countTstyche(output, code)
  },

  // Every @example, whether every export is documented, and whether the pages written from that are what they should be.
  docs: () => docs({ write: false }),

  // What would be published: does every runtime and compiler find it?
  publish: async () =>
    sum(
      await inPairs(packages, async (cwd) => {
        // attw does not expand the wildcard of an exports map, so it gets the modules by name.
        const entrypoints = [".", ...modulesOf(cwd)]
        const counts = sum([
          await command("publint", ["--strict"], { cwd, quiet: true }),
          await command("attw", [...attwOptions, "--entrypoints", ...entrypoints], { cwd, quiet: true })
        ])
        console.log(`${counts.failed === 0 ? "ok  " : "FAIL"} ${basename(cwd)}: publint, attw`)
        return counts
      })
    ),

  // And what a person gets who installs it: the first program, in an empty folder.
  consume
}

const asked = process.argv.slice(2)
const unknown = asked.filter((name) => !Object.hasOwn(steps, name))
if (unknown.length > 0) {
  console.error(`No step ${unknown.join(", ")}. Steps: ${Object.keys(steps).join(", ")}.`)
  process.exit(2)
}

const results = []
for (const name of asked.length > 0 ? asked : Object.keys(steps)) {
  console.log(`\n── ${name} ${"─".repeat(60 - name.length)}\n`)
  const start = performance.now()
  // A step that breaks on its own is a failed step, not the end of the run.
  const counts = await steps[name]().catch((error) => {
    console.error(error)
    return { passed: 0, failed: 1 }
  })
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  const summary = `${counts.failed === 0 ? "ok    " : "FAILED"} ${name.padEnd(8)} ${seconds.padStart(6)} s`
  console.log(`\n${summary}`)
  results.push({ ...counts, summary })
}

const total = sum(results)
console.log(`\n${"─".repeat(64)}\n`)
for (const { summary } of results) console.log(summary)
console.log(`\n${total.passed} passed, ${total.failed} failed`)
process.exitCode = total.failed === 0 ? 0 : 1
