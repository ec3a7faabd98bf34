import { transform } from "esbuild"
import { execFile } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, beforeAll, describe, it } from "vitest"
import { programOf, translate } from "../../scripts/programs.mjs"
import { anchors, lead, links, parse } from "./markdown.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const read = (page: string) => readFileSync(join(root, page), "utf8")

const pages = [
  "README.md",
  "llms.txt",
  ...readdirSync(join(root, "packages")).map((name) => `packages/${name}/README.md`),
  ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md"))
    .map((file) => `docs/${file}`)
].filter((page) => existsSync(join(root, page)))

/** Written from the doc comments, whose examples docgen compiles and runs. */
const isReference = (page: string) => page.startsWith("docs/reference/")

const fences = pages.filter((page) => !isReference(page)).flatMap((page) => {
  const text = read(page)
  const { blocks } = parse(text)
  // What a block prints, where the page says so.
  const printed = (index: number) => {
    const next = blocks[index + 1]
    return next !== undefined && lead(text, next.line) === "It prints:" ? next.code : undefined
  }
  return blocks.map((block, index) => ({ ...block, page, printed: printed(index) }))
})
const blocks = fences
  .filter((block) => block.info === "ts")
  .map((block) => ({
    ...block,
    name: `${block.page}:${block.line}`,
    file: `${block.page.replaceAll("/", "-")}-${block.line}.ts`
  }))

// Inside the repository, so that the blocks find the packages they import.
const cache = join(root, "node_modules/.cache/docs-blocks")

const programs = join(cache, "programs")
const kept = join(cache, "kept")
// An empty key is none: nothing here calls a real model.
const noKeys = { OPENAI_API_KEY: "", ANTHROPIC_API_KEY: "", GOOGLE_API_KEY: "", GEMINI_API_KEY: "" }
const env = { ...process.env, ...noKeys, ALLM_MODEL: undefined, TMPDIR: kept, TEMP: kept }

const node = (args: ReadonlyArray<string>) =>
  new Promise<{ readonly failed: boolean; readonly output: string }>((resolve) =>
    // A hanging block is killed before its test gives up on it. What blocks keep, none finds again in the next run.
    execFile(process.execPath, args, { cwd: root, timeout: 50_000, env }, (error, stdout, stderr) =>
      resolve({ failed: error !== null, output: `${stdout}${stderr}` }))
  )

/** Compiles all blocks in one go and gives the errors by file; the key "" holds those of no block. */
const compile = async (): Promise<Map<string, Array<string>>> => {
  const errors = new Map<string, Array<string>>()
  const add = (file: string, message: string) => errors.set(file, [...errors.get(file) ?? [], message])
  if (blocks.length === 0) return errors

  const tsc = join(root, "node_modules/typescript/bin/tsc")
  const { failed, output } = await node([tsc, "--pretty", "false", "-p", cache])
  // A message starts with its place; further lines of it are indented or have none.
  for (const message of output.split(/\n(?=\S+\(\d+,\d+\): )/)) {
    const [, path, line, rest] = /^(\S+)\((\d+),\d+\): (error[^]*)$/.exec(message.trim()) ?? []
    const block = path && blocks.find(({ file }) => join(root, path) === join(cache, file))
    if (block) add(block.file, `${block.page}:${block.line + Number(line) - 1} ${rest}`)
    else if (failed && !message.includes(": warning ")) add("", message)
  }
  return errors
}

describe("code blocks", () => {
  let errors = new Map<string, Array<string>>()

  beforeAll(async () => {
    rmSync(cache, { recursive: true, force: true })
    mkdirSync(kept, { recursive: true })
    for (const { code, file } of blocks) writeFileSync(join(cache, file), code)
    // Below node_modules the `type` of the root package.json does not apply.
    writeFileSync(join(cache, "package.json"), JSON.stringify({ type: "module" }))
    writeFileSync(
      join(cache, "tsconfig.json"),
      JSON.stringify({
        extends: relative(cache, join(root, "tsconfig.json")),
        files: blocks.map(({ file }) => file),
        compilerOptions: {
          composite: false,
          declarationMap: false,
          noEmit: true,
          // Code at the edge, as in the overrides of the root, whose globs do not reach below node_modules.
          plugins: [{
            name: "@effect/language-service",
            diagnosticSeverity: {
              anyUnknownInErrorContext: "off",
              asyncFunction: "off",
              deterministicKeys: "off",
              globalDate: "off",
              globalErrorInEffectFailure: "off",
              multipleEffectProvide: "off",
              runEffectInsideEffect: "off",
              schemaSyncInEffect: "off"
            }
          }]
        }
      })
    )
    errors = await compile()
    await translate(blocks.map(({ file }) => join(cache, file)), programs)
  })

  it("compile without an error outside of them", () => {
    assert.deepStrictEqual(errors.get("") ?? [], [])
  })

  it("in TypeScript are all checked: their fence says ts and nothing else", () => {
    const unchecked = fences.filter(({ info }) => /^(ts|tsx|mts|typescript)\b/i.test(info) && info !== "ts")
    assert.deepStrictEqual(unchecked.map(({ info, line, page }) => `${page}:${line} ${info}`), [])
  })

  it("of the reference are none that look as if they were run here", () => {
    const run = pages.filter(isReference).filter((page) => parse(read(page)).blocks.some(({ info }) => info === "ts"))
    assert.deepStrictEqual(run, [])
  })

  it("of the first page are JavaScript too", async () => {
    const first = blocks.filter(({ page }) => page === "docs/guide/00-getting-started.md")
    assert.isNotEmpty(first)
    for (const { code } of first) await transform(code, { loader: "js" })
  })

  describe.concurrent("run", () => {
    for (const { file, name, printed } of blocks) {
      it(name, async () => {
        assert.deepStrictEqual(errors.get(file) ?? [], [])
        const { failed, output } = await node([programOf(file, programs)])
        assert.isFalse(failed, output)
        if (printed !== undefined) assert.strictEqual(output, printed)
      })
    }
  })
})

describe("install commands", () => {
  it("name the major version of effect: the newest is another one", () => {
    const bare = pages.flatMap((page) =>
      parse(read(page)).blocks.flatMap(({ code, line }) =>
        /^npm install\b.*\seffect(?!\S)/m.test(code) ? [`${page}:${line}`] : []
      )
    )
    assert.deepStrictEqual(bare, [])
  })
})

describe("links", () => {
  for (const page of pages) {
    it(`of ${page} lead somewhere`, () => {
      const dead = links(read(page)).filter((link) => {
        if (/^[a-z][a-z0-9+.-]*:/i.test(link)) return false
        const [path, anchor] = decodeURI(link).split("#")
        const target = path === "" ? page : join(dirname(page), path)
        if (!existsSync(join(root, target))) return true
        // An anchor of a source file, such as a line, cannot be checked.
        return anchor !== undefined && target.endsWith(".md") && !anchors(read(target)).has(anchor)
      })
      assert.deepStrictEqual(dead, [])
    })
  }
})
