/**
 * A directory that is gone after the test.
 */
import { Effect } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "allm-conformance-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)
