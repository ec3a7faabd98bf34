import { existsSync, readdirSync } from "node:fs"
import type { TestProjectConfiguration } from "vitest/config"

const directory = new URL("./packages/", import.meta.url)

// One project per package, named like its folder: `vitest --project core`.
const packages = readdirSync(directory)
  .filter((name) => existsSync(new URL(`${name}/package.json`, directory)))
  .map((name): TestProjectConfiguration => ({
    extends: true,
    test: { name, include: [`packages/${name}/test/**/*.test.ts`] }
  }))

// These start a process per test, so they get more time. One of the examples is a test itself.
const processes = ["examples", "docs", "scripts"].map((name): TestProjectConfiguration => ({
  extends: true,
  test: { name, include: [`${name}/{src,test}/**/*.test.ts`], testTimeout: 60_000, hookTimeout: 60_000 }
}))

const projects: Array<TestProjectConfiguration> = [...packages, ...processes]

export default projects
