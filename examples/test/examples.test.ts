import { execFile } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { programOf, translate } from "../../scripts/programs.mjs"

const examples = fileURLToPath(new URL("..", import.meta.url))
const names = readdirSync(join(examples, "src")).map((file) => file.slice(0, -".ts".length))
// One with a test beside it is run by that.
const programs = names.filter((name) => !name.endsWith(".test") && !names.includes(`${name}.test`))

// What examples keep, they keep in the directory for temporary files; each run of the tests has a new one.
const directory = mkdtempSync(join(tmpdir(), "allm-examples-"))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const translated = fileURLToPath(new URL("../../node_modules/.cache/examples", import.meta.url))
beforeAll(() => translate(programs.map((name) => join(examples, `src/${name}.ts`)), translated))

// A non-zero exit rejects with what the example wrote to stderr. That a reader can start them is tested with the scripts.
const run = async (name: string) => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [programOf(`${name}.ts`, translated)],
    // Colours would depend on the terminal. A hanging example is killed before the test gives up on it.
    {
      cwd: examples,
      env: {
        ...process.env,
        ALLM_MODEL: undefined,
        FORCE_COLOR: undefined,
        NO_COLOR: "1",
        TMPDIR: directory,
        TEMP: directory
      },
      timeout: 110_000
    }
  )
  return stdout
}

describe.concurrent("examples", () => {
  for (const name of programs) {
    // What a first process leaves behind, the second one finds.
    const files = [`${name}.txt`, `${name}.again.txt`].filter((file) => existsSync(join(examples, "expected", file)))

    it(`${name} prints ${files.map((file) => `expected/${file}`).join(", then ")}`, async () => {
      assert.include(files, `${name}.txt`)
      for (const file of files) {
        const expected = readFileSync(join(examples, "expected", file), "utf8")
        assert.strictEqual(await run(name), expected)
      }
    }, 120_000)
  }

  it("expected/ has no file without an example", () => {
    const expected = readdirSync(join(examples, "expected")).map((file) => file.replace(/(\.again)?\.txt$/, ""))
    assert.deepStrictEqual(expected.filter((name) => !programs.includes(name)), [])
  })
})
