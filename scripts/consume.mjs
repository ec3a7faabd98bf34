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
    for (const [index, program] of shown.entries()) {
      runs.push(await follow(program, tarballs, join(folder, `user-${index}`)))
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
  const all = pages.flatMap((page) =>
    programsOf(readFileSync(join(root, page), "utf8")).map((program) => ({ page, ...program }))
  )
  // Pages may show the same one.
  const key = ({ code, specs }) => `${specs.join(" ")}\n${code}`
  return all.filter((program, index) => all.findIndex((other) => key(other) === key(program)) === index)
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

/** Does what a page says: install, then run the program, from JavaScript and from TypeScript. */
async function follow({ code, page, specs }, tarballs, cwd) {
  console.log(`\n${page}: npm install ${specs.join(" ")}`)
  const installed = await install([...specs, typescript], tarballs, cwd)
  if (installed.failed > 0) return installed

  const lines = code.split("\n").filter((line) => line.trim() !== "").length
  const size = report(`${page}: an agent in under 20 lines`, lines < 20 ? [] : [`it has ${lines}`])
  writeFileSync(join(cwd, "agent.mjs"), code)
  const everything = specs.filter((name) => tarballs.has(name)).flatMap((name) =>
    modulesOf(tarballs.get(name).directory).map((module) => `import "${name}/${module}"`)
  )
  writeFileSync(join(cwd, "everything.mjs"), everything.join("\n"))
  const results = [
    installed,
    size,
    await step(`${page}: runs in Node`, process.execPath, ["agent.mjs"], cwd),
    await step(`${page}: ${everything.length} modules load in Node`, process.execPath, ["everything.mjs"], cwd)
  ]
  for (const compiler of compilers) results.push(...await compileAndRun(page, code, compiler, cwd))
  return sum(results)
}

async function compileAndRun(page, code, { name, ...options }, cwd) {
  const source = join(cwd, name)
  mkdirSync(source)
  writeFileSync(join(source, "package.json"), JSON.stringify({ type: "module" }))
  writeFileSync(join(source, "agent.ts"), code)
  const compilerOptions = { ...options, target: "ES2022", strict: true, skipLibCheck: false, outDir: "out" }
  writeFileSync(join(source, "tsconfig.json"), JSON.stringify({ files: ["agent.ts"], compilerOptions }))
  const tsc = join(cwd, "node_modules/typescript/bin/tsc")
  return [
    await step(`${page}: ${typescript}, ${name}, skipLibCheck: false`, process.execPath, [tsc, "-p", "."], source),
    await step(`${page}: runs as compiled for ${name}`, process.execPath, ["out/agent.js"], source)
  ]
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
    }
  }
  return sum(results)
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
