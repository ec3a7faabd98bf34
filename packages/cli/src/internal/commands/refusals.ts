/**
 * What commands do about a model or an agent that cannot be had: for `Effect.catchTags`.
 */
import type { AgentError } from "../agent.ts"
import { failed, type Refused, wrongUse } from "../exit.ts"
import type { ModelError } from "../models.ts"

export const refusals = {
  ModelError: (error: ModelError): Refused => wrongUse(error.message),
  AgentError: (error: AgentError): Refused => error.isWrongUse ? wrongUse(error.message) : failed(error.message)
}
