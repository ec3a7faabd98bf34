// Every check of the repository, in order. `npm test -- lint unit` runs only the named steps.
//
// A failing step does not stop the others. The last line is "N passed, N failed": it counts tests, and one failure
// for each command that failed without naming a test.
import { spawn } from "node:child_process"
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { countDocgen, countTstyche, countVitest } from "./counts.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
const vitestReport = join(root, "node_modules/.cache/vitest.json")

const attwOptions = "--pack . --profile esm-only --format table-flipped --no-summary --no-color".split(" ")

// Some tools colour their output even when it goes to a file.
const colours = process.stdout.isTTY ? {} : { NO_COLOR: "1" }

const packages = readdirSync(join(root, "packages"))
  .map((name) => join(root, "packages", name))
  .filter((directory) => existsSync(join(directory, "package.json")))

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

  // Type-checks and executes every @example. The condition lets an example import a sibling package from its source.
  docs: () =>
    each(packages.filter((cwd) => existsSync(join(cwd, "docgen.json"))), async (cwd) => {
      const env = { NODE_OPTIONS: "--conditions=@allm/source" }
      const { code, output } = await run("docgen", [], { cwd, env, capture: true })
      const counts = countDocgen(output, code)
      // docgen overlooks the examples of classes and of fields; better none than one that nobody runs.
      const written = sourceModules(cwd).flatMap((file) =>
        readFileSync(join(cwd, "src", file), "utf8").match(/^\s*\* @example\b/gm) ?? []
      ).length
      if (code !== 0 || written === counts.passed) {
        return counts
      }
      console.log(`${written} @example in src, only ${counts.passed} were run. Move them to a function or a constant.`)
      return { ...counts, failed: 1 }
    }),

  // What would be published: does every runtime and compiler find it?
  publish: () =>
    each(packages, async (cwd) => {
      // attw does not expand the wildcard of an exports map, so it gets the modules by name.
      const modules = sourceModules(cwd).filter((file) => file !== "index.ts")
      const entrypoints = [".", ...modules.map((file) => file.slice(0, -".ts".length))]
      return sum([
        await command("publint", ["--strict"], { cwd }),
        await command("attw", [...attwOptions, "--entrypoints", ...entrypoints], { cwd })
      ])
    })
}

/** The public modules of a package. */
function sourceModules(directory) {
  return readdirSync(join(directory, "src")).filter((file) => file.endsWith(".ts"))
}

/** Runs a tool of `node_modules/.bin` with its output shown live; `capture` also returns the output. */
function run(tool, args, { capture = false, cwd = root, env = {} } = {}) {
  return new Promise((resolve) => {
    const child = spawn(tool, args, {
      cwd,
      stdio: ["ignore", capture ? "pipe" : "inherit", "inherit"],
      env: { ...process.env, ...colours, ...env, PATH: join(root, "node_modules/.bin") + delimiter + process.env.PATH }
    })
    let output = ""
    child.stdout?.setEncoding("utf8").on("data", (chunk) => {
      output += chunk
      process.stdout.write(chunk)
    })
    child.on("error", (error) => {
      console.error(String(error))
      resolve({ code: 1, output })
    })
    child.on("close", (code) => resolve({ code: code ?? 1, output }))
  })
}

/** A command that is no test: it counts only when it fails. */
async function command(tool, args, options) {
  const { code } = await run(tool, args, options)
  return { passed: 0, failed: code === 0 ? 0 : 1 }
}

/** One package after the other, so that their outputs do not mix. */
async function each(directories, check) {
  const counts = []
  for (const directory of directories) counts.push(await check(directory))
  return sum(counts)
}

function sum(counts) {
  return counts.reduce((a, b) => ({ passed: a.passed + b.passed, failed: a.failed + b.failed }), {
    passed: 0,
    failed: 0
  })
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
