import {
  AdapterSuite,
  SessionStoreSuite,
  ToolExecutorSuite,
  ToolJournalSuite,
  ToolResultEncoderSuite
} from "@allm/conformance"
import { Fake, SessionStore, ToolExecutor, ToolJournal, ToolResultEncoder } from "@allm/core"
import { assert, it } from "@effect/vitest"
import { readFileSync } from "node:fs"

ToolResultEncoderSuite.run("my encoder", ToolResultEncoder.layerJson())

ToolExecutorSuite.run("my executor", (handlers) => ToolExecutor.layerHandlers(handlers))

SessionStoreSuite.run("my store", SessionStore.layerMemory)

ToolJournalSuite.run("my journal", ToolJournal.layerMemory)

AdapterSuite.run("my adapter", {
  scenarios: {
    text: (pieces) => Fake.layer({ respond: () => [...pieces.map(Fake.text), Fake.finish("stop")] })
  }
})

it("stands in the README as it is run here", () => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8")
  const quoted = /```js\n[^]*?\n\n([^]*?)```/.exec(read("../README.md"))?.[1]

  assert.isTrue(quoted !== undefined && read("./Readme.test.ts").includes(quoted))
})
