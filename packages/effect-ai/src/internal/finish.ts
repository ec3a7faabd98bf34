/**
 * How an answer ends: reasons and tokens, as theirs tells them and as ours does.
 */
import type { Response, Usage } from "@allm/core"
import type * as TheirResponse from "@effect/ai/Response"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { compact, isObject, type JsonObject } from "./json.ts"

const reasons: { readonly [reason: string]: Response.FinishReason } = {
  "stop": "stop",
  "length": "length",
  "content-filter": "content_filter",
  "tool-calls": "tool_calls",
  "error": "error",
  "pause": "other",
  "other": "other"
}

/** Some providers say `stop` where the model waits for its calls. */
export const fromReason = (reason: string, hasCalls: boolean): Response.FinishReason => {
  const known = reasons[reason] ?? "other"
  return hasCalls && (known === "stop" || known === "other") ? "tool_calls" : known
}

export const toReason = (
  reason: Response.FinishReason | undefined,
  raw: string | undefined
): TheirResponse.FinishReason => {
  switch (reason) {
    case undefined:
      return "unknown"
    case "content_filter":
      return "content-filter"
    case "tool_calls":
      return "tool-calls"
    case "other":
      return raw === "pause" || raw === "pause_turn" ? "pause" : "other"
    default:
      return reason
  }
}

const counts = ["inputTokens", "outputTokens", "totalTokens", "reasoningTokens", "cachedInputTokens"] as const

export const fromUsage = (usage: unknown): Usage.Usage =>
  isObject(usage)
    ? compact(Object.fromEntries(
      counts.map((count) => [count, Number.isFinite(usage[count]) ? usage[count] as number : undefined])
    ))
    : {}

export const toUsage = (usage: Usage.Usage): typeof TheirResponse.Usage.Encoded => ({
  inputTokens: usage.inputTokens,
  outputTokens: usage.outputTokens,
  totalTokens: usage.totalTokens ??
    (usage.inputTokens === undefined || usage.outputTokens === undefined
      ? undefined
      : usage.inputTokens + usage.outputTokens),
  reasoningTokens: usage.reasoningTokens,
  cachedInputTokens: usage.cachedInputTokens
})

const Text = Schema.optionalWith(Schema.String, { exact: true })
const Data = Schema.optionalWith(Schema.Record({ key: Schema.String, value: Schema.Unknown }), { exact: true })

/** The end of an answer of ours, for whoever reads it back. */
const Own = Schema.Struct({
  finishReason: Text,
  rawFinishReason: Text,
  usage: Data,
  metadata: Data,
  name: Text,
  message: Data
})

interface Own {
  readonly finishReason?: Response.FinishReason
  readonly rawFinishReason?: string
  readonly usage?: Usage.Usage
  readonly metadata?: JsonObject
  /** The name and the metadata of the message. */
  readonly name?: string
  readonly message?: JsonObject
}

const decodeOwn = Schema.decodeUnknownOption(Own)

export const ownOf = (metadata: unknown): Own | undefined =>
  isObject(metadata) ? Option.getOrUndefined(decodeOwn(metadata["allm"])) as Own | undefined : undefined

export const ownMetadata = (
  own: { readonly [K in keyof Own]: Own[K] | undefined }
): TheirResponse.ProviderMetadata => ({
  allm: compact(own)
})
