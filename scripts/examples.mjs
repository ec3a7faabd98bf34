// What there is in `examples/src`, and how one is run: by `npm run example`, and on every provider by `npm run live`.
import { spawn } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const source = (name) => join(root, `examples/src/${name}.ts`)
const testOf = (name) => join(root, `examples/src/${name}.test.ts`)

/** The names of the examples, in order. */
export const examples = readdirSync(join(root, "examples/src"))
  .filter((file) => /^\d\d-.*\.ts$/.test(file) && !file.endsWith(".test.ts"))
  .map((file) => file.slice(0, -".ts".length))

/** Those that stay scripted: their clock is moved by hand, and stands still while a real model thinks. */
export const scripted = ["11-timeouts", "28-testing"]

/** The first sentence of the comment that an example begins with. */
export const ideaOf = (name) => {
  const [, comment] = /^\/\*\*([^]*?)\*\//.exec(readFileSync(source(name), "utf8")) ?? []
  const [idea] = (comment ?? "").replace(/^ *\* ?/gm, "").trim().split(/(?<=\.)\s/)
  return idea.replaceAll("\n", " ")
}

/** The examples that a number, a name or a part of one means. */
export const find = (text) => {
  const exact = examples.filter((name) => [name, `${name}.ts`, name.slice(3)].includes(text))
  if (exact.length > 0) return exact
  return /^\d+$/.test(text)
    ? examples.filter((name) => Number(name.slice(0, 2)) === Number(text))
    : examples.filter((name) => name.includes(text.toLowerCase()))
}

/** Runs an example, on the model that ALLM_MODEL names if any, and gives its exit code. */
export const run = (name, { args = [], env = {}, timeout, signal, stdin = "inherit" } = {}) => {
  const hook = scripted.includes(name) ? [] : ["--import", join(root, "examples/live/hook.mjs")]
  const command = existsSync(testOf(name))
    ? [join(root, "node_modules/vitest/vitest.mjs"), "run", "--project", "examples", testOf(name)]
    : ["--conditions=@allm/source", "--import", "tsx", ...hook, source(name), ...args]
  return new Promise((resolve) => {
    const child = spawn(process.execPath, command, {
      cwd: root,
      stdio: [stdin, "inherit", "inherit"],
      env: { ...process.env, ...env },
      timeout,
      signal
    })
    child.on("error", (error) => {
      if (!signal?.aborted) console.error(String(error))
      resolve(1)
    })
    child.on("close", (code) => resolve(code ?? 1))
  })
}
