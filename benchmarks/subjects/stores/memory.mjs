import * as SessionStore from "@allm/core/SessionStore"
import * as ToolJournal from "@allm/core/ToolJournal"
import { journaled, sessions } from "./bench.mjs"

export const create = (work) => ({
  ...sessions({ store: SessionStore.layerMemory, isReopened: false }),
  ...journaled(work, ToolJournal.layerMemory)
})
