/**
 * The metrics of model calls.
 */
import * as MetricLabel from "effect/MetricLabel"
import type { AdapterError } from "../AdapterError.ts"
import { modelCalls, modelDuration, modelErrors, tokens } from "../Telemetry.ts"
import type { Usage } from "../Usage.ts"

type Labels = ReadonlyArray<MetricLabel.MetricLabel>

// A metric finds its state by the identity of its labels: they are made once per provider.
class ProviderLabels {
  readonly provider: Labels
  readonly input: Labels
  readonly output: Labels
  private readonly reasons = new Map<string, Labels>()

  constructor(provider: string) {
    this.provider = [MetricLabel.make("provider", provider)]
    this.input = [...this.provider, MetricLabel.make("kind", "input")]
    this.output = [...this.provider, MetricLabel.make("kind", "output")]
  }

  reason(reason: string): Labels {
    let labels = this.reasons.get(reason)
    if (labels === undefined) this.reasons.set(reason, labels = [...this.provider, MetricLabel.make("reason", reason)])
    return labels
  }
}

const known = new Map<string, ProviderLabels>()

const labelsOf = (provider: string): ProviderLabels => {
  let labels = known.get(provider)
  if (labels === undefined) known.set(provider, labels = new ProviderLabels(provider))
  return labels
}

export const record = (provider: string, nanos: bigint, usage: Usage, error: AdapterError | undefined): void => {
  const labels = labelsOf(provider)
  modelCalls.unsafeUpdate(1, labels.provider)
  modelDuration.unsafeUpdate(Number(nanos) / 1_000_000, labels.provider)
  if (error !== undefined) modelErrors.unsafeUpdate(1, labels.reason(error.reason))
  if (usage.inputTokens !== undefined) tokens.unsafeUpdate(usage.inputTokens, labels.input)
  if (usage.outputTokens !== undefined) tokens.unsafeUpdate(usage.outputTokens, labels.output)
}
