/**
 * The metrics of model calls.
 */
import * as MetricLabel from "effect/MetricLabel"
import type { AdapterError } from "../AdapterError.ts"
import { modelCalls, modelDuration, modelErrors, tokens } from "../Telemetry.ts"
import type { Usage } from "../Usage.ts"

type Labels = ReadonlyArray<MetricLabel.MetricLabel>

// A metric finds its state by the identity of its labels.
const labels = new Map<string, Labels>()

const labelled = (name: string, value: string, more: Labels = []): Labels => {
  const key = `${more.map((label) => label.value).join(" ")} ${name} ${value}`
  let made = labels.get(key)
  if (made === undefined) labels.set(key, made = [...more, MetricLabel.make(name, value)])
  return made
}

export const record = (provider: string, nanos: bigint, usage: Usage, error: AdapterError | undefined): void => {
  const ofProvider = labelled("provider", provider)
  modelCalls.unsafeUpdate(1, ofProvider)
  modelDuration.unsafeUpdate(Number(nanos) / 1_000_000, ofProvider)
  if (error !== undefined) modelErrors.unsafeUpdate(1, labelled("reason", error.reason, ofProvider))
  if (usage.inputTokens !== undefined) tokens.unsafeUpdate(usage.inputTokens, labelled("kind", "input", ofProvider))
  if (usage.outputTokens !== undefined) tokens.unsafeUpdate(usage.outputTokens, labelled("kind", "output", ofProvider))
}
