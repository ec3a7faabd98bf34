import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, assert, describe, it } from "vitest"
import { marker, withLists } from "../llms.mjs"

const root = mkdtempSync(join(tmpdir(), "allm-llms-"))
const write = (path: string, text: string) => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}

write(
  "docs/README.md",
  "1. [Tools](guide/01-tools.md): declare them.\n\n| [one](../examples/src/01-one.ts) | an idea |\n"
)
write("docs/guide/01-tools.md", "# Tools\n\nText.\n")
write("docs/how-to/stop.md", "# Stop\n\nHow to [stop](../guide/01-tools.md). And more.\n")
write("docs/reference/core/Tool.md", "# Tool\n")
write("docs/plans.md", "# Plans\n\n| a |\n\nPlans of ours. More.\n")
write("examples/src/01-one.ts", "")
write("examples/src/01-one.test.ts", "")
write("packages/core/README.md", "# @allm/core\n")
write("packages/core/package.json", JSON.stringify({ name: "@allm/core", description: "The core" }))

const packages = [{ directory: "core", name: "@allm/core", modules: [{ name: "Tool", description: "Tools. More." }] }]

describe("withLists", () => {
  afterAll(() => rmSync(root, { recursive: true }))

  it("lists every page, program, package and module, and keeps what stands before", () => {
    assert.strictEqual(
      withLists(`# Title\n\n${marker}\n\nold`, root, packages),
      `# Title

${marker}

## Guide

- [Tools](docs/guide/01-tools.md): declare them.

## How to

- [Stop](docs/how-to/stop.md): How to stop.

## More pages

- [Plans](docs/plans.md): Plans of ours.

## Examples

- [01-one.ts](examples/src/01-one.ts): an idea

## Packages

- [@allm/core](packages/core/README.md): The core

## Reference of @allm/core

- [Tool](docs/reference/core/Tool.md): Tools.
`
    )
  })

  it("refuses a text without the line that the lists follow", () => {
    assert.throws(() => withLists("# Title\n", root, packages), /has no line/)
  })
})
