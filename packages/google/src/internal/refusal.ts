/**
 * What Gemini says about an error beyond its status: the wait it asks for, and what a bad request really was.
 */
import { type AdapterError, HttpAdapter } from "@allm/core"
import * as Duration from "effect/Duration"
import { name } from "./pieces.ts"
import { countOf, listOf, objectOf, textOf, type Wire } from "./wire.ts"

const reasons: { readonly [status: string]: AdapterError.Reason } = {
  ABORTED: "provider_unavailable",
  DEADLINE_EXCEEDED: "timeout",
  INTERNAL: "provider_unavailable",
  PERMISSION_DENIED: "authentication_failed",
  RESOURCE_EXHAUSTED: "rate_limited",
  UNAUTHENTICATED: "authentication_failed",
  UNAVAILABLE: "provider_unavailable",
  UNIMPLEMENTED: "unsupported_feature"
}

/** A key that is wrong is a bad request to Gemini. */
const keyProblems: ReadonlySet<string | undefined> = new Set(["API_KEY_INVALID", "API_KEY_EXPIRED"])

/** Older models answer in a form or call functions, not both. */
const formOrFunctions = /function calling with a response mime type/i

export const told = (body: unknown): HttpAdapter.Told => {
  const error = errorIn(body)
  if (error === undefined) return {}
  const details = listOf(error["details"])
  const retryAfter = durationOf(detail(details, "RetryInfo")?.["retryDelay"])
  const message = textOf(error["message"])
  if (message !== undefined && formOrFunctions.test(message)) {
    return {
      reason: "unsupported_feature",
      detail: `${message} Set structuredFinalize: true, so that the form is asked for after the tools.`
    }
  }
  const isKeyProblem = keyProblems.has(textOf(detail(details, "ErrorInfo")?.["reason"])) ||
    (message !== undefined && /api key not valid/i.test(message))
  return {
    reason: isKeyProblem ? "authentication_failed" : reasons[textOf(error["status"]) ?? ""],
    retryAfter
  }
}

/** The error that stands in the place of an answer. */
export const errorOf = (body: unknown): AdapterError.AdapterError => {
  const code = countOf(errorIn(body)?.["code"])
  return HttpAdapter.errorOf(name, body, code, told(body))
}

/** Without server-sent events, errors come in a list, too. */
const errorIn = (body: unknown): Wire | undefined => objectOf(objectOf(Array.isArray(body) ? body[0] : body)?.["error"])

const detail = (details: ReadonlyArray<unknown>, type: string): Wire | undefined =>
  details.map(objectOf).find((one) => textOf(one?.["@type"])?.endsWith(`google.rpc.${type}`) === true)

/** `"34.4s"`, or seconds and nanoseconds apart. */
const durationOf = (value: unknown): Duration.Duration | undefined => {
  const text = textOf(value)
  const seconds = text !== undefined
    ? Number(/^(\d+(?:\.\d+)?)s$/.exec(text)?.[1] ?? NaN)
    : Number(objectOf(value)?.["seconds"] ?? NaN) + Number(objectOf(value)?.["nanos"] ?? 0) / 1e9
  return Number.isFinite(seconds) && seconds >= 0 ? Duration.millis(Math.round(seconds * 1000)) : undefined
}
