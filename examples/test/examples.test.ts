import { execFile } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert, describe, it } from "vitest"

const examples = fileURLToPath(new URL("..", import.meta.url))
const names = readdirSync(join(examples, "src"))
  .filter((file) => /^\d\d-.*\.ts$/.test(file))
  .map((file) => file.slice(0, -".ts".length))

// Exactly what a reader types; a non-zero exit rejects with what the example wrote to stderr.
const run = async (name: string) => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--conditions=@allm/source", "--import", "tsx", `src/${name}.ts`],
    // Colours would depend on the terminal. A hanging example is killed before the test gives up on it.
    { cwd: examples, env: { ...process.env, FORCE_COLOR: undefined, NO_COLOR: "1" }, timeout: 50_000 }
  )
  return stdout
}

describe.concurrent("examples", () => {
  it("are there", () => {
    assert.notDeepEqual(names, [])
  })

  for (const name of names) {
    it(`${name} prints expected/${name}.txt`, async () => {
      const expected = readFileSync(join(examples, "expected", `${name}.txt`), "utf8")
      assert.strictEqual(await run(name), expected)
    })
  }

  it("expected/ has no file without an example", () => {
    const expected = readdirSync(join(examples, "expected")).map((file) => file.slice(0, -".txt".length))
    assert.deepStrictEqual(expected.filter((name) => !names.includes(name)), [])
  })
})
