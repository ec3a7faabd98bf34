// What a person gets who follows the first page: packs every package, looks at what is in it, and in an empty folder runs the
// install command and the program that the pages show, in plain Node and in TypeScript.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { manifestOf, modulesOf, packages, root, run, sum } from "./run.mjs"

const typescript = "typescript@5.9"

/** The compilations in which the program must be without error, with the types of every dependency checked. */
const compilers = [
  { name: "NodeNext", module: "NodeNext", moduleResolution: "NodeNext" },
  { name: "Bundler", module: "ESNext", moduleResolution: "Bundler" }
]

/** Packs, looks, installs and runs. Every check counts as a test. */
export async function consume() {
  const folder = mkdtempSync(join(tmpdir(), "allm-consume-"))
  try {
    const tarballs = new Map()
    for (const directory of packages) tarballs.set(manifestOf(directory).name, await pack(directory, folder))
    const contents = [...tarballs.values()].map(({ directory, files, manifest }) =>
      report(`${manifest.name}: content of the tarball`, tarballProblems(files, manifest, modulesOf(directory)))
    )
    const shown = programs()
    const found = report("the pages show a program to start with", shown.length === 0 ? ["no page has one"] : [])
    const runs = []
    for (const [index, group] of byCommand(shown).entries()) {
      runs.push(await follow(group, tarballs, join(folder, `user-${index}`)))
    }
    return sum([...contents, found, ...runs, await command(tarballs, join(folder, "command"))])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The programs of a page that says how to install: the first TypeScript after each `npm install @allm/core …`. */
export function programsOf(page) {
  const blocks = [...page.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(([, info, code]) => ({ info, code }))
  return blocks.flatMap(({ code, info }, index) => {
    const command = info === "sh" ? /^npm install (@allm\/core\b.*)$/m.exec(code)?.[1] : undefined
    const program = blocks.slice(index).find((block) => block.info === "ts")
    return command === undefined || program === undefined ? [] : [{ specs: command.split(/\s+/), code: program.code }]
  })
}

/** What is missing in a tarball or has no place there, given the paths of its files and the manifest in it. */
export function tarballProblems(files, manifest, modules) {
  const needed = [
    "package.json",
    "README.md",
    "LICENSE",
    ...["index", ...modules].flatMap((name) => [`dist/${name}.js`, `dist/${name}.d.ts`, `src/${name}.ts`]),
    ...Object.values(manifest.bin ?? {}).map((path) => path.replace(/^\.\//, ""))
  ]
  const isFit = (file) => /^(dist|src)\/|^(package\.json|README\.md|LICENSE|CHANGELOG\.md)$/.test(file)
  const isStray = (file) => /\.tsbuildinfo$|(^|\/)(test|fixtures|node_modules)\/|\.test\./.test(file)
  const dependencies = { ...manifest.dependencies, ...manifest.peerDependencies, ...manifest.optionalDependencies }
  return [
    ...needed.filter((file) => !files.includes(file)).map((file) => `${file} is missing`),
    ...files.filter((file) => !isFit(file) || isStray(file)).map((file) => `${file} has no place there`),
    ...Object.entries(dependencies)
      .filter(([, range]) => /^(workspace|file|link|portal):|^[./]/.test(range))
      .map(([name, range]) => `${name} is asked for as ${range}, which nobody else can install`)
  ]
}

function programs() {
  const pages = [
    "packages/core/README.md",
    "README.md",
    ...readdirSync(join(root, "docs/guide")).filter((file) => file.endsWith(".md")).map((file) => `docs/guide/${file}`)
  ]
  return pages.flatMap((page) =>
    programsOf(readFileSync(join(root, page), "utf8")).map((program) => ({ page, ...program }))
  )
}

/** The programs of each install command together: what takes the time is done once for all of them. */
function byCommand(programs) {
  const groups = new Map()
  for (const { specs, ...program } of programs) {
    const key = specs.join(" ")
    groups.set(key, { specs, programs: [...groups.get(key)?.programs ?? [], program] })
  }
  return [...groups.values()]
}

async function pack(directory, folder) {
  const { code, output } = await run("npm", ["pack", "--json", "--loglevel=error", "--pack-destination", folder], {
    cwd: directory,
    quiet: true
  })
  if (code !== 0) throw new Error(`npm pack of ${basename(directory)} failed: ${output}`)
  const [{ filename, files }] = JSON.parse(output.slice(output.search(/^\[/m)))
  return {
    directory,
    // Older versions of npm tell the name with its scope.
    tarball: join(folder, filename.replace(/^@/, "").replace("/", "-")),
    files: files.map(({ path }) => path),
    manifest: manifestOf(directory)
  }
}

/** Does what the pages say: install, then run each program, from JavaScript and from TypeScript. */
async function follow({ programs, specs }, tarballs, cwd) {
  console.log(`\nnpm install ${specs.join(" ")}`)
  const installed = await install([...specs, typescript], tarballs, cwd)
  if (installed.failed > 0) return installed

  const results = [installed, await loadAll(specs, tarballs, cwd)]
  for (const [index, { code, page }] of programs.entries()) {
    const lines = code.split("\n").filter((line) => line.trim() !== "").length
    results.push(report(`${page}: an agent in under 20 lines`, lines < 20 ? [] : [`it has ${lines}`]))
    writeFileSync(join(cwd, `agent-${index}.mjs`), code)
    results.push(await step(`${page}: runs in Node`, process.execPath, [`agent-${index}.mjs`], cwd))
  }
  results.push(...await Promise.all(compilers.map((compiler) => compileAndRun(programs, compiler, cwd))))
  return sum(results)
}

async function loadAll(specs, tarballs, cwd) {
  const imports = specs.filter((name) => tarballs.has(name)).flatMap((name) =>
    modulesOf(tarballs.get(name).directory).map((module) => `import "${name}/${module}"`)
  )
  writeFileSync(join(cwd, "everything.mjs"), imports.join("\n"))
  return step(`all ${imports.length} modules load in Node`, process.execPath, ["everything.mjs"], cwd)
}

async function compileAndRun(programs, { name, ...options }, cwd) {
  const source = join(cwd, name)
  const files = programs.map((_, index) => `agent-${index}.ts`)
  const compilerOptions = { ...options, target: "ES2022", strict: true, skipLibCheck: false, outDir: "out" }
  mkdirSync(source)
  writeFileSync(join(source, "package.json"), JSON.stringify({ type: "module" }))
  writeFileSync(join(source, "tsconfig.json"), JSON.stringify({ files, compilerOptions }))
  for (const [index, { code }] of programs.entries()) writeFileSync(join(source, files[index]), code)

  const tsc = join(cwd, "node_modules/typescript/bin/tsc")
  const compiled = await step(`${typescript}, ${name}, skipLibCheck: false`, process.execPath, [tsc, "-p", "."], source)
  const results = [compiled]
  for (const [index, { page }] of programs.entries()) {
    results.push(await step(`${page}: runs as compiled, ${name}`, process.execPath, [`out/agent-${index}.js`], source))
  }
  return sum(results)
}

/** Whether the commands of a package start, once there is one. */
async function command(tarballs, cwd) {
  const withBin = [...tarballs.values()].filter(({ files, manifest }) =>
    Object.values(manifest.bin ?? {}).some((path) => files.includes(path.replace(/^\.\//, "")))
  )
  const results = []
  for (const { manifest } of withBin) {
    const own = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }).filter((name) =>
      tarballs.has(name)
    )
    console.log(`\n${manifest.name}: npm install`)
    const installed = await install([manifest.name, ...own, "effect@3"], tarballs, cwd)
    results.push(installed)
    if (installed.failed > 0) continue
    for (const name of Object.keys(manifest.bin)) {
      const { code, output } = await run("npm", ["exec", "--offline", "--", name, "--version"], { cwd, quiet: true })
      const isRight = code === 0 && output.includes(manifest.version)
      results.push(report(`npx ${name} --version`, isRight ? [] : [`it should say ${manifest.version}`, output]))
      results.push(await converse(name, cwd))
    }
  }
  return sum(results)
}

/** What the command answers when there is no key: its embedded model works out a sum, with a real tool. */
async function converse(name, cwd) {
  const asked = [
    "exec",
    "--offline",
    "--",
    name,
    "run",
    "demo",
    "How much is 2 * (3 + 4)^2?",
    "--home",
    join(cwd, "home")
  ]
  const { code, output } = await run("npm", asked, { cwd, quiet: true, env: { NODE_OPTIONS: "", ALLM_MODEL: "demo" } })
  const isRight = code === 0 && output.includes("98")
  return report(`npx ${name} run demo answers`, isRight ? [] : ["it should say 98", output])
}

/** Installs by name as a user would; our own packages come from their tarballs. */
async function install(specs, tarballs, cwd) {
  mkdirSync(cwd)
  const args = specs.map((spec) => tarballs.get(spec)?.tarball ?? spec)
  const options = ["--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"]
  return step("installs", "npm", ["install", ...options, ...args], cwd)
}

async function step(name, tool, args, cwd) {
  // A user has none of our conditions.
  const { code, output } = await run(tool, args, { cwd, quiet: true, env: { NODE_OPTIONS: "" } })
  return report(name, code === 0 ? [] : [output.trim()])
}

function report(name, problems) {
  console.log(`${problems.length === 0 ? "ok  " : "FAIL"} ${name}`)
  for (const problem of problems) console.log(`     ${problem}`)
  return problems.length === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 }
}
