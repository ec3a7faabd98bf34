// `npm run docs` writes docs/reference and the lists of llms.txt from the doc comments, after it has compiled and run their
// examples. The check of the same name writes nothing, and fails where something is not as it would be written.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { countDocgen } from "./counts.mjs"
import { coverage } from "./coverage.mjs"
import { parsePage } from "./docgen.mjs"
import { withLists } from "./llms.mjs"
import { renderReference } from "./reference.mjs"
import { inPairs, manifestOf, modulesOf, packages, root, run, sum } from "./run.mjs"

const reference = join(root, "docs/reference")
const llms = join(root, "llms.txt")

/** Runs every example, counts what is documented, and checks or writes the pages. */
export async function docs({ write }) {
  const documented = packages.filter((directory) => existsSync(join(directory, "docgen.json")))
  const examples = await inPairs(documented, docgen)
  const counts = sum(examples)
  // Without the pages of docgen there is nothing to look at.
  if (examples.some(({ failed }) => failed > 0)) return counts

  const read = documented.map(readPackage)
  const covered = reportCoverage(read)
  const pages = wantedPages(read)
  return sum([counts, covered, write ? writePages(pages) : comparePages(pages)])
}

/** Type-checks and executes every @example. The condition lets an example import a sibling package from its source. */
async function docgen(cwd) {
  const start = performance.now()
  const env = { NODE_OPTIONS: "--conditions=@allm/source" }
  const { code, output } = await run("docgen", [], { cwd, env, quiet: true })
  const counts = countDocgen(output, code)
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  if (code !== 0) console.log(output)
  else console.log(`${basename(cwd).padEnd(12)} ${counts.passed} examples compiled and run in ${seconds} s`)

  // docgen overlooks the examples of classes and of fields; better none than one that nobody runs.
  const written =
    ["index", ...modulesOf(cwd)].flatMap((name) =>
      readFileSync(join(cwd, "src", `${name}.ts`), "utf8").match(/^\s*\* @example\b/gm) ?? []
    ).length
  if (code !== 0 || written === counts.passed) return counts
  console.log(`${written} @example in src, only ${counts.passed} were run. Move them to a function or a constant.`)
  return { ...counts, failed: 1 }
}

function readPackage(directory) {
  const modules = ["index", ...modulesOf(directory)].map((name) => ({
    ...parsePage(readFileSync(join(directory, "docs/modules", `${name}.ts.md`), "utf8")),
    source: readFileSync(join(directory, "src", `${name}.ts`), "utf8")
  }))
  return { directory: basename(directory), name: manifestOf(directory).name, modules }
}

function reportCoverage(read) {
  const all = read.flatMap(({ modules, name }) => modules.map((module) => ({ name, ...coverage(module) })))
  const problems = all.flatMap(({ name, problems }) => problems.map((problem) => `${name} ${problem}`))
  const count = (key) => all.reduce((total, module) => total + module[key], 0)
  console.log(`documented ${count("documented")} of ${count("total")} exports`)
  for (const problem of problems) console.log(`  ${problem}`)
  return { passed: 0, failed: problems.length }
}

/** What has to stand in each file, by its path. */
function wantedPages(read) {
  // The core is what a reader looks for.
  const isCore = ({ directory }) => directory === "core"
  const shown = [...read.filter(isCore), ...read.filter((each) => !isCore(each))]
    .map((each) => ({ ...each, modules: each.modules.filter(({ name }) => name !== "index") }))
  const pages = new Map([...renderReference(shown)].map(([path, text]) => [join(reference, path), text]))
  return pages.set(llms, withLists(readFileSync(llms, "utf8"), root, shown))
}

function writePages(pages) {
  rmSync(reference, { recursive: true, force: true })
  for (const [file, text] of pages) {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  console.log(`${pages.size} pages written`)
  return { passed: 0, failed: 0 }
}

function comparePages(pages) {
  const stale = [
    ...[...pages].filter(([file, text]) => !existsSync(file) || readFileSync(file, "utf8") !== text).map(([file]) =>
      file
    ),
    ...filesOf(reference).filter((file) => !pages.has(file))
  ]
  if (stale.length === 0) return { passed: 0, failed: 0 }
  console.log("Not as the sources have it; run npm run docs:")
  for (const file of stale) console.log(`  ${file.slice(root.length)}`)
  return { passed: 0, failed: 1 }
}

function filesOf(directory) {
  if (!existsSync(directory)) return []
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { failed, passed } = await docs({ write: true })
  console.log(`\n${passed} passed, ${failed} failed`)
  process.exitCode = failed === 0 ? 0 : 1
}
