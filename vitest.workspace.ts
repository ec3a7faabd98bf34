import { readdirSync } from "node:fs"
import type { TestProjectConfiguration } from "vitest/config"

// One project per package, named like its folder: `vitest --project core`.
const packages = readdirSync(new URL("./packages", import.meta.url)).map((name): TestProjectConfiguration => ({
  extends: true,
  test: { name, include: [`packages/${name}/test/**/*.test.ts`] }
}))

// These start a process per test, so they get more time.
const processes = ["examples", "docs", "scripts"].map((name): TestProjectConfiguration => ({
  extends: true,
  test: { name, include: [`${name}/test/**/*.test.ts`], testTimeout: 60_000, hookTimeout: 60_000 }
}))

const projects: Array<TestProjectConfiguration> = [...packages, ...processes]

export default projects
