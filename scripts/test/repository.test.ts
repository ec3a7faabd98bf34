import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { assert, describe, it } from "vitest"
import { createViteServer } from "vitest/node"

const root = fileURLToPath(new URL("../..", import.meta.url))
const packages = readdirSync(join(root, "packages"))
  .map((name) => join(root, "packages", name))
  .filter((directory) => existsSync(join(directory, "package.json")))

// From the name of each package to where its import has to lead.
const sources: ReadonlyArray<readonly [name: string, source: string]> = packages.map((directory) => [
  JSON.parse(readFileSync(join(directory, "package.json"), "utf8")).name,
  join(directory, "src/index.ts")
])

describe("repository", () => {
  it("runs examples from source, without a build", () => {
    for (const [name, source] of sources) {
      const resolve = `console.log(import.meta.resolve(${JSON.stringify(name)}))`
      const args = ["--conditions=@allm/source", "--input-type=module", "--eval", resolve]
      const found = execFileSync(process.execPath, args, { cwd: root, encoding: "utf8" })
      assert.strictEqual(found.trim(), pathToFileURL(source).href)
    }
  })

  it("runs tests from source, without a build", async () => {
    const server = await createViteServer({
      configFile: join(root, "vitest.config.ts"),
      server: { middlewareMode: true, ws: false, watch: null },
      optimizeDeps: { noDiscovery: true }
    })
    try {
      for (const [name, source] of sources) {
        const found = await server.pluginContainer.resolveId(name, join(root, "index.ts"), { ssr: true })
        assert.strictEqual(found?.id, source)
      }
    } finally {
      await server.close()
    }
  })

  it("installs from any registry: the lock file names none", () => {
    const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"))
    const named = Object.keys(packages).filter((key) => !packages[key].link && packages[key].resolved !== undefined)
    assert.deepStrictEqual(named, [])
  })
})
