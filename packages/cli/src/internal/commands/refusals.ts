/**
 * What commands refuse.
 */
import * as Effect from "effect/Effect"
import type { AgentError } from "../agent.ts"
import { failed, type Refused, wrongUse } from "../exit.ts"
import type { ModelError } from "../models.ts"

/** A model or an agent that cannot be had: for `Effect.catchTags`. */
export const refusals = {
  ModelError: (error: ModelError): Refused => wrongUse(error.message),
  AgentError: (error: AgentError): Refused => error.isWrongUse ? wrongUse(error.message) : failed(error.message)
}

/** The words of somebody who says something; those that look like an option were meant to be one. */
export const spoken = (words: ReadonlyArray<string>, command: string): Effect.Effect<string, Refused> => {
  const option = words.find((word) => /^--?[a-z]\S*$/i.test(word))
  return option === undefined
    ? Effect.succeed(words.join(" ").trim())
    : wrongUse(`There is no option ${option}. See them with: allm ${command} --help`)
}
