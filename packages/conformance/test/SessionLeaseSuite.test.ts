import { SessionLeaseSuite } from "@allm/conformance"
import { SessionLease } from "@allm/core"
import { FileSystem } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { Effect, Layer } from "effect"

SessionLeaseSuite.run("SessionLease.layerMemory", Effect.succeed(SessionLease.layerMemory), { alone: true })

SessionLeaseSuite.run(
  "SessionLease.layerFileSystem",
  Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectoryScoped()).pipe(
    Effect.map((directory) => Layer.provide(SessionLease.layerFileSystem(directory), NodeContext.layer)),
    Effect.provide(NodeContext.layer),
    Effect.orDie
  )
)
