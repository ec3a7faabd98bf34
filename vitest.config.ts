import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"
import projects from "./vitest.workspace.ts"

// Packages resolve to their `src`, so tests need no build. The others are Vite's own, which a list of ours replaces.
const conditions = ["@allm/source", "module", "node", "development|production"]

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    projects,
    // Loading Effect anew for every file takes longer than the tests. Keep test modules free of mutable state.
    isolate: false,
    // For `describe.concurrent`, which only the tests that start processes use.
    maxConcurrency: availableParallelism(),
    // One less than there are processors is the default: on two of them, half of the time nothing would be done.
    maxWorkers: availableParallelism(),
    coverage: {
      provider: "v8",
      include: ["packages/*/src/**/*.ts"],
      // Without it an untested one-line function counts as covered.
      experimentalAstAwareRemapping: true
    }
  }
})
