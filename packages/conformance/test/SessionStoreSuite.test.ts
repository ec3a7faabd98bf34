import { SessionStoreSuite } from "@allm/conformance"
import { SessionStore } from "@allm/core"
import { KeyValueStore } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { directory } from "./directory.ts"

SessionStoreSuite.run("SessionStore.layerMemory", SessionStore.layerMemory)

SessionStoreSuite.run(
  "SessionStore.layerKeyValueStore",
  Layer.provide(SessionStore.layerKeyValueStore, KeyValueStore.layerMemory)
)

SessionStoreSuite.run("SessionStore.layerKeyValueStore in files", {
  place: Effect.map(directory, (path) =>
    SessionStore.layerKeyValueStore.pipe(
      Layer.provide(KeyValueStore.layerFileSystem(path)),
      Layer.provide(NodeContext.layer)
    ))
}, { live: true, limit: "20 seconds" })

SessionStoreSuite.run("SessionStore.layerFileSystem", {
  place: Effect.map(directory, (path) => Layer.provide(SessionStore.layerFileSystem(path), NodeContext.layer)),
  shared: true
}, { live: true, limit: "20 seconds" })
