// The batch without a journal.
import * as Layer from "effect/Layer"
import { journaled } from "./bench.mjs"

export const create = (work) => journaled(work, Layer.empty)
