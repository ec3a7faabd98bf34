import * as SessionStore from "@allm/core/SessionStore"
import * as ToolJournal from "@allm/core/ToolJournal"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Layer from "effect/Layer"
import { join } from "node:path"
import { directoryVariable } from "../../lib/store-places.mjs"
import { journaled, sessions } from "./bench.mjs"

export const create = (work) => {
  const directory = process.env[directoryVariable]
  return {
    ...sessions({ client: NodeContext.layer, store: SessionStore.layerFileSystem(join(directory, "sessions")) }),
    ...journaled(work, Layer.provide(ToolJournal.layerFileSystem(join(directory, "journal")), NodeContext.layer))
  }
}
