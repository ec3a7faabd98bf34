/**
 * What a provider's refusal means: its status, its headers, and whatever its body says.
 */
import type * as Headers from "@effect/platform/Headers"
import * as Duration from "effect/Duration"
import type { Reason } from "../AdapterError.ts"
import { isPlainObject } from "./json.ts"

const reasons: { readonly [status: number]: Reason } = {
  401: "authentication_failed",
  403: "authentication_failed",
  408: "timeout",
  409: "provider_unavailable",
  413: "context_length_exceeded",
  425: "provider_unavailable",
  429: "rate_limited"
}

export const reasonOfStatus = (status: number): Reason =>
  reasons[status] ?? (status >= 500 ? "provider_unavailable" : status >= 400 ? "invalid_request" : "unknown")

const tooLong =
  /context.?length|context window|maximum context|prompt is too long|too many (input )?tokens|input token count.{0,40}exceeds/i

const filtered = /content.?(filter|policy)/i

/** What the texts of a refusal give away beyond its status: a bad request is often one of these two. */
export const reasonOfText = (text: string): Reason | undefined =>
  tooLong.test(text) ? "context_length_exceeded" : filtered.test(text) ? "content_filter" : undefined

const longestDetail = 1_000

/** The sentence in a body. All providers put it in about the same place. */
export const detailOf = (body: unknown): string | undefined => {
  if (typeof body === "string") return body.trim() === "" ? undefined : body.trim().slice(0, longestDetail)
  if (Array.isArray(body)) return detailOf(body[0])
  if (!isPlainObject(body)) return undefined
  for (const key of ["error", "message", "detail", "errors"]) {
    const detail = detailOf(body[key])
    if (detail !== undefined) return detail
  }
  return undefined
}

/** The short words by which providers name an error: `code`, `type`, `status`. */
export const codesOf = (body: unknown): ReadonlyArray<string> => {
  if (Array.isArray(body)) return codesOf(body[0])
  if (!isPlainObject(body)) return []
  const own = ["code", "type", "status"].flatMap((key) => typeof body[key] === "string" ? [body[key]] : [])
  return [...codesOf(body["error"]), ...own]
}

/** How long to wait: in milliseconds, in seconds, or until a date. */
export const retryAfterOf = (headers: Headers.Headers, now: number): Duration.Duration | undefined => {
  const millis = numberOf(headers["retry-after-ms"])
  if (millis !== undefined) return Duration.millis(millis)
  const header = headers["retry-after"]
  const seconds = numberOf(header)
  if (seconds !== undefined) return Duration.seconds(seconds)
  const date = header === undefined ? NaN : Date.parse(header)
  return Number.isNaN(date) ? undefined : Duration.millis(Math.max(0, date - now))
}

const numberOf = (text: string | undefined): number | undefined => {
  const number = text === undefined || text.trim() === "" ? NaN : Number(text)
  return Number.isFinite(number) && number >= 0 ? number : undefined
}

const requestIdHeaders = ["x-request-id", "request-id", "x-goog-request-id", "apim-request-id", "cf-ray"]

export const requestIdOf = (headers: Headers.Headers): string | undefined => {
  for (const name of requestIdHeaders) if (headers[name] !== undefined) return headers[name]
  return undefined
}
