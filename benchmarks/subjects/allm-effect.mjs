// The same batch when the tool returns an Effect that succeeds at once instead of a promise.
import * as Effect from "effect/Effect"
import { makeEcho, subjectOf } from "./allm.mjs"

export const create = ({ echoNow }) => subjectOf(makeEcho((input) => Effect.succeed(echoNow(input))))
