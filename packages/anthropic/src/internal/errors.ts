/**
 * What Anthropic's errors mean, in the body of a refusal or in the middle of a stream.
 */
import { type AdapterError, HttpAdapter } from "@allm/core"
import { isObject, objectOf, textOf } from "./json.ts"
import { provider } from "./transcript.ts"

const reasons: ReadonlyMap<string, AdapterError.Reason> = new Map([
  ["overloaded_error", "provider_unavailable"],
  ["api_error", "provider_unavailable"],
  ["timeout_error", "timeout"],
  ["rate_limit_error", "rate_limited"],
  ["authentication_error", "authentication_failed"],
  ["permission_error", "authentication_failed"],
  ["billing_error", "authentication_failed"],
  ["request_too_large", "context_length_exceeded"],
  ["not_found_error", "invalid_request"]
])

const tooLong = /prompt is too long|exceeds? (the )?context|context (limit|window)/i
const filtered = /content filtering policy|usage policy/i

const reasonOf = (type: string, message: string): AdapterError.Reason | undefined => {
  if (type !== "invalid_request_error") return reasons.get(type)
  return tooLong.test(message)
    ? "context_length_exceeded"
    : filtered.test(message)
    ? "content_filter"
    : "invalid_request"
}

export const told = (body: unknown): HttpAdapter.Told => {
  const { error, request_id: requestId } = objectOf(body)
  const { message, type } = objectOf(error)
  return {
    reason: reasonOf(textOf(type), textOf(message)),
    requestId: typeof requestId === "string" ? requestId : undefined
  }
}

/** The error that a frame or an answer tells of, if it does. */
export const errorIn = (data: unknown): AdapterError.AdapterError | undefined =>
  isObject(data) && (data["type"] === "error" || isObject(data["error"]))
    ? HttpAdapter.errorOf(provider, data, undefined, told(data))
    : undefined
