// What the scripts share: the packages, and the tools they run.
import { spawn } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"

/** The folder of the repository. */
export const root = fileURLToPath(new URL("..", import.meta.url))

// Some tools colour their output even when it goes to a file.
const colours = process.stdout.isTTY ? {} : { NO_COLOR: "1" }

/** The folders of the packages. */
export const packages = readdirSync(join(root, "packages"))
  .map((name) => join(root, "packages", name))
  .filter((directory) => existsSync(join(directory, "package.json")))

/** The manifest of a package. */
export function manifestOf(directory) {
  return JSON.parse(readFileSync(join(directory, "package.json"), "utf8"))
}

/** The modules of a package that can be imported by name, without `index.ts`. */
export function modulesOf(directory) {
  const { exports } = manifestOf(directory)
  return readdirSync(join(directory, "src"))
    .filter((file) => file.endsWith(".ts") && file !== "index.ts")
    .map((file) => file.slice(0, -".ts".length))
    .filter((name) => exports[`./${name}`] !== null)
}

/** Runs a tool of `node_modules/.bin`. Its output is shown live, or with `quiet` returned only; `capture` does both. */
export function run(tool, args, { capture = false, cwd = root, env = {}, quiet = false } = {}) {
  return new Promise((resolve) => {
    const child = spawn(tool, args, {
      cwd,
      stdio: ["ignore", capture || quiet ? "pipe" : "inherit", quiet ? "pipe" : "inherit"],
      env: { ...process.env, ...colours, ...env, PATH: join(root, "node_modules/.bin") + delimiter + process.env.PATH }
    })
    let output = ""
    const read = (chunk) => {
      output += chunk
      if (!quiet) process.stdout.write(chunk)
    }
    child.stdout?.setEncoding("utf8").on("data", read)
    child.stderr?.setEncoding("utf8").on("data", read)
    child.on("error", (error) => {
      console.error(String(error))
      resolve({ code: 1, output })
    })
    child.on("close", (code) => resolve({ code: code ?? 1, output }))
  })
}

/** A command that is no test: it counts only when it fails. With `quiet` it is heard only then, too. */
export async function command(tool, args, options) {
  const { code, output } = await run(tool, args, options)
  if (code !== 0 && options?.quiet) console.log(output)
  return { passed: 0, failed: code === 0 ? 0 : 1 }
}

/**
 * The results in the order of the items, which are taken two at a time: the tools leave half of a machine unused, and some
 * take half a gigabyte.
 */
export async function inPairs(items, check) {
  const results = []
  const queue = items.entries()
  const work = async () => {
    for (const [index, item] of queue) results[index] = await check(item)
  }
  await Promise.all([work(), work()])
  return results
}

/** The sum of counts. */
export function sum(counts) {
  return counts.reduce((a, b) => ({ passed: a.passed + b.passed, failed: a.failed + b.failed }), {
    passed: 0,
    failed: 0
  })
}
