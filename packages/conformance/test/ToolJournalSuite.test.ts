import { ToolJournalSuite } from "@allm/conformance"
import { ToolJournal } from "@allm/core"
import { KeyValueStore } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { directory } from "./directory.ts"

ToolJournalSuite.run("ToolJournal.layerMemory", ToolJournal.layerMemory)

ToolJournalSuite.run(
  "ToolJournal.layerKeyValueStore",
  Layer.provide(ToolJournal.layerKeyValueStore, KeyValueStore.layerMemory)
)

ToolJournalSuite.run("ToolJournal.layerKeyValueStore in files", {
  place: Effect.map(directory, (path) =>
    ToolJournal.layerKeyValueStore.pipe(
      Layer.provide(KeyValueStore.layerFileSystem(path)),
      Layer.provide(NodeContext.layer)
    ))
}, { live: true, limit: "20 seconds" })

ToolJournalSuite.run("ToolJournal.layerFileSystem", {
  place: Effect.map(directory, (path) => Layer.provide(ToolJournal.layerFileSystem(path), NodeContext.layer)),
  shared: true
}, { live: true, limit: "20 seconds" })
