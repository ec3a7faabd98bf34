import { assert, describe, it } from "vitest"
import { programsOf, tarballProblems } from "../consume.mjs"

describe("programsOf", () => {
  it("takes the first program after each command that installs the core", () => {
    const page =
      "```ts\nearlier\n```\n\n```sh\nnpm install @allm/core effect@3\n```\n\nThen:\n\n```ts\nfirst\n```\n\n```ts\nsecond\n```\n"
    assert.deepStrictEqual(programsOf(page), [{ specs: ["@allm/core", "effect@3"], code: "first\n" }])
  })

  it("takes none of a page that installs something else, or shows nothing", () => {
    assert.deepStrictEqual(programsOf("```sh\nnpm install && npm start\n```\n\n```ts\nfirst\n```\n"), [])
    assert.deepStrictEqual(programsOf("```sh\nnpm install @allm/core\n```\n"), [])
  })
})

describe("tarballProblems", () => {
  const files = ["package.json", "README.md", "LICENSE", "dist/index.js", "dist/index.d.ts", "src/index.ts"]

  it("finds nothing wrong with what is needed", () => {
    assert.deepStrictEqual(tarballProblems(files, { dependencies: { a: "^1.0.0" } }, []), [])
  })

  it("names what is missing", () => {
    const found = tarballProblems(files.slice(0, 2), { bin: { allm: "./dist/bin.js" } }, ["Tool"])
    assert.includeMembers(found, ["LICENSE is missing", "dist/Tool.d.ts is missing", "dist/bin.js is missing"])
  })

  it("names what has no place there", () => {
    const stray = ["tsconfig.json", "dist/.tsbuildinfo", "src/test/Tool.ts", "src/Tool.test.ts", "docs/index.md"]
    assert.deepStrictEqual(
      tarballProblems([...files, ...stray], {}, []),
      stray.map((file) => `${file} has no place there`)
    )
  })

  it("refuses dependencies that only exist here", () => {
    const manifest = { dependencies: { a: "workspace:*" }, peerDependencies: { b: "file:../b" } }
    assert.strictEqual(tarballProblems(files, manifest, []).length, 2)
  })
})
