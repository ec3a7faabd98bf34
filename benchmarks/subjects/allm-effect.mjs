// The same batch when the tool returns an Effect that succeeds at once instead of a promise.
import * as Effect from "effect/Effect"
import { batchOf, fibers, makeEcho } from "./allm.mjs"

export const create = ({ echoNow }) => ({
  batch: batchOf(makeEcho((input) => Effect.succeed(echoNow(input)))),
  fibers
})
