/**
 * Errors that these servers tell in words: in the body of a refusal, or inside a stream that began well.
 */
import { AdapterError, type Reason } from "@allm/core/AdapterError"
import { errorOf, type Told } from "@allm/core/HttpAdapter"
import * as Duration from "effect/Duration"
import { type Fields, fieldsOf, numberOf } from "./lenient.ts"

/** In a stream there is no status, so the code has to say it. */
const reasons: ReadonlyArray<readonly [pattern: RegExp, reason: Reason]> = [
  [/context.?length|too.?long/, "context_length_exceeded"],
  [/content.?filter|policy/, "content_filter"],
  [/rate.?limit|quota|too.?many|throttl|exhausted/, "rate_limited"],
  [/api.?key|auth|permission|forbidden|country/, "authentication_failed"],
  [/timeout|timed.?out/, "timeout"],
  [/overload|unavailable|server|internal|capacity|insufficient_system_resource/, "provider_unavailable"],
  [/invalid|not.?found|unsupported|bad.?request|missing|failed_to_download|empty_image/, "invalid_request"]
]

const reasonOf = (words: string): Reason | undefined => reasons.find(([pattern]) => pattern.test(words))?.[1]

/** The object that holds what is said: most servers wrap it. */
const errorIn = (body: unknown): Fields | undefined => {
  const fields = fieldsOf(body)
  return fieldsOf(fields?.["error"]) ?? fields
}

const wait = /try again in (\d+(?:\.\d+)?)\s*(ms|s|m)\b/i
const units = { ms: 1, s: 1_000, m: 60_000 }

/** "Please try again in 1.2s": some say it only in the sentence. */
const waitIn = (sentence: unknown): Duration.Duration | undefined => {
  const [, amount, unit] = wait.exec(typeof sentence === "string" ? sentence : "") ?? []
  return amount === undefined || unit === undefined
    ? undefined
    : Duration.millis(Number(amount) * units[unit.toLowerCase() as keyof typeof units])
}

/** What the body of a refusal says beyond its status. */
export const told = (body: unknown, status: number | undefined): Told => {
  const error = errorIn(body)
  const retryAfter = status === 429 ? waitIn(error?.["message"]) : undefined
  return retryAfter === undefined ? {} : { retryAfter }
}

/** An error told inside an answer. Some servers write a status where others write a code. */
export const failureIn = (provider: string, body: unknown): AdapterError => {
  const error = errorIn(body) ?? {}
  const status = statusOf(error["code"]) ?? statusOf(error["status"]) ?? statusOf(error["status_code"])
  if (status !== undefined) return errorOf(provider, body, status, told(body, status))
  const plain = errorOf(provider, body)
  // The sentence of a bad request may say more than its code.
  if (plain.reason !== "unknown") return plain
  const reason = reasonOf(["code", "type", "status"].map((key) => String(error[key] ?? "")).join(" ").toLowerCase())
  if (reason === undefined) return plain
  const retryAfter = reason === "rate_limited" ? waitIn(error["message"]) : undefined
  return errorOf(provider, body, undefined, retryAfter === undefined ? { reason } : { reason, retryAfter })
}

const statusOf = (value: unknown): number | undefined => {
  const number = numberOf(typeof value === "string" && /^\d{3}$/.test(value) ? Number(value) : value)
  return number !== undefined && number >= 400 && number < 600 ? number : undefined
}

/** A call that names no tool cannot be run, and must not be passed over either. */
export const namelessCall = (provider: string): AdapterError =>
  new AdapterError({ reason: "malformed_response", provider, detail: "the model made a tool call without a name" })

/** An answer that had begun, but not yet said anything: it may be asked for again. */
export const brokenOff = (provider: string): AdapterError =>
  new AdapterError({ reason: "network_error", provider, detail: "the answer broke off before it said anything" })
