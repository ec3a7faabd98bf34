/**
 * Errors of theirs as errors of adapters, and back.
 */
import { AdapterError, HttpAdapter } from "@allm/core"
import * as AiError from "@effect/ai/AiError"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import { compact, isObject, parse, print } from "./json.ts"

/** Where an error of theirs came from ours, that one. */
const origins = new WeakMap<object, AdapterError.AdapterError>()

/** Reads any failure of their model. */
export const fromFailure = (provider: string, failure: unknown): Effect.Effect<AdapterError.AdapterError> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    // Inside a span Effect fails with a proxy; what was failed with is behind it.
    const error: unknown = Cause.originalError(failure)
    const origin = isObject(error) ? origins.get(error) : undefined
    if (origin !== undefined) return origin
    return AiError.isAiError(error)
      ? fromAiError(provider, error, now)
      : new AdapterError.AdapterError({ reason: "unknown", provider, detail: wordsOf(error), cause: error })
  })

const fromAiError = (provider: string, error: AiError.AiError, now: number): AdapterError.AdapterError => {
  switch (error._tag) {
    case "HttpRequestError":
      // What it holds of the request may hold the key: only its words go on.
      return new AdapterError.AdapterError({
        reason: error.reason === "Transport" ? isTimeout(error.cause) ? "timeout" : "network_error" : "invalid_request",
        provider,
        detail: [error.description ?? "the request to the provider failed", ...causesOf(error.cause)].join(": ")
      })
    case "HttpResponseError":
      return fromResponse(provider, error, now)
    case "MalformedInput":
      return new AdapterError.AdapterError({
        reason: /unsupported|not supported|unknown provider-defined tool/i.test(error.description ?? "")
          ? "unsupported_feature"
          : "invalid_request",
        provider,
        detail: wordsOf(error),
        cause: error
      })
    case "MalformedOutput":
      return new AdapterError.AdapterError({
        reason: "malformed_response",
        provider,
        // What it says of a schema is for operators: they find it in the cause.
        detail: error.description ?? "@effect/ai cannot read the answer",
        cause: error
      })
    case "UnknownError":
      return isObject(error.cause) && isAdapterError(error.cause)
        ? error.cause
        : new AdapterError.AdapterError({ reason: "unknown", provider, detail: wordsOf(error), cause: error })
  }
}

const isAdapterError = (value: unknown): value is AdapterError.AdapterError =>
  value instanceof AdapterError.AdapterError

const fromResponse = (
  provider: string,
  { body, description, reason, response }: AiError.HttpResponseError,
  now: number
): AdapterError.AdapterError => {
  const told = compact({
    retryAfter: retryAfterOf(response.headers, body, now),
    requestId: requestIdOf(response.headers)
  })
  return reason === "StatusCode"
    ? HttpAdapter.errorOf(provider, bodyOf(body), response.status, told)
    : new AdapterError.AdapterError({
      reason: "malformed_response",
      provider,
      status: response.status,
      detail: description ?? (reason === "EmptyBody" ? "the answer is empty" : "the answer cannot be read"),
      ...compact({ requestId: told.requestId })
    })
}

const bodyOf = (body: string | undefined): unknown =>
  body === undefined ? undefined : Either.getOrElse(parse(body), () => body)

type Headers = { readonly [name: string]: string | undefined }

const retryAfterOf = (headers: Headers, body: string | undefined, now: number): Duration.Duration | undefined => {
  const millis = numberOf(headers["retry-after-ms"])
  if (millis !== undefined) return Duration.millis(millis)
  const header = headers["retry-after"]
  // Google says it in the body.
  const seconds = numberOf(header) ?? numberOf(/"retryDelay":\s*"([\d.]+)s"/.exec(body ?? "")?.[1])
  if (seconds !== undefined) return Duration.seconds(seconds)
  const date = header === undefined ? NaN : Date.parse(header)
  return Number.isNaN(date) ? undefined : Duration.millis(Math.max(0, date - now))
}

const numberOf = (text: string | undefined): number | undefined => {
  const number = text === undefined || text.trim() === "" ? NaN : Number(text)
  return Number.isFinite(number) && number >= 0 ? number : undefined
}

const requestIdOf = (headers: Headers): string | undefined =>
  headers["x-request-id"] ?? headers["request-id"] ?? headers["x-goog-request-id"] ?? headers["x-amzn-requestid"]

const causesOf = (error: unknown): ReadonlyArray<string> => {
  const texts: Array<string> = []
  for (let cause = error; isObject(cause) && texts.length < 4; cause = cause["cause"]) {
    const text = cause["description"] ?? cause["message"]
    if (typeof text === "string" && text !== "" && !texts.includes(text)) texts.push(text)
  }
  return texts.slice(1)
}

const isTimeout = (error: unknown): boolean => {
  for (let cause = error, depth = 0; isObject(cause) && depth < 4; cause = cause["cause"], depth++) {
    if (cause["_tag"] === "TimeoutException" || cause["name"] === "TimeoutError" || cause["code"] === "ETIMEDOUT") {
      return true
    }
  }
  return false
}

const wordsOf = (error: unknown): string => {
  if (!isObject(error)) return typeof error === "string" ? error : "the model failed without a word"
  const { cause, description, message } = error
  const head = typeof description === "string" ? description : typeof message === "string" ? message : ""
  const tail = isObject(cause) && typeof cause["message"] === "string" ? cause["message"] : ""
  return [head, tail].filter((text) => text !== "").join(": ").slice(0, 1_000) || "the model failed without a word"
}

/** Reads the error that a stream tells of in one of its parts. */
export const fromErrorPart = (provider: string, error: unknown): AdapterError.AdapterError => {
  if (isAdapterError(error)) return error
  const body = isObject(error) || Array.isArray(error) ? parse(print(error) ?? "null") : Either.right(error)
  const read = HttpAdapter.errorOf(provider, Either.getOrElse(body, () => undefined))
  if (read.reason !== "unknown") return read
  const words = `${codeOf(error)} ${read.detail ?? ""}`
  const [, reason = read.reason] = codes.find(([pattern]) => pattern.test(words)) ?? []
  return new AdapterError.AdapterError({ ...read, reason })
}

const codeOf = (error: unknown): string => {
  if (!isObject(error)) return typeof error === "string" ? error : ""
  const own = ["code", "type", "status"].flatMap((key) => typeof error[key] === "string" ? [error[key]] : [])
  return [...own, ...(isObject(error["error"]) ? [codeOf(error["error"])] : [])].join(" ")
}

const codes: ReadonlyArray<readonly [RegExp, AdapterError.Reason]> = [
  [/rate.?limit|quota|resource_exhausted|too many requests/i, "rate_limited"],
  [/overloaded|unavailable|server.?error|api_error|internal/i, "provider_unavailable"],
  [/authentication|permission|api.?key|unauthorized/i, "authentication_failed"],
  [/timeout|timed out/i, "timeout"],
  [/invalid.?request|not_found/i, "invalid_request"]
]

const statuses: { readonly [R in AdapterError.Reason]?: number } = {
  rate_limited: 429,
  authentication_failed: 401,
  provider_unavailable: 503
}

/** Tells an error of ours in their words. Read back, it is the same error. */
export const toAiError = (failure: AdapterError.AdapterError, method: string): AiError.AiError => {
  const error = Cause.originalError(failure)
  const told = toldAs(error, { module: "@allm/effect-ai", method, description: error.message })
  origins.set(told, error)
  return told
}

const toldAs = (
  error: AdapterError.AdapterError,
  common: { readonly module: string; readonly method: string; readonly description: string }
): AiError.AiError => {
  const status = error.status ?? statuses[error.reason]
  if (status !== undefined) {
    return new AiError.HttpResponseError({
      ...common,
      reason: error.reason === "malformed_response" ? "Decode" : "StatusCode",
      request: requestOf(error),
      response: {
        status,
        headers: compact({
          "retry-after": error.retryAfter === undefined ? undefined : String(Duration.toSeconds(error.retryAfter)),
          "x-request-id": error.requestId
        })
      },
      body: error.detail
    })
  }
  switch (error.reason) {
    case "network_error":
    case "timeout":
      return new AiError.HttpRequestError({ ...common, reason: "Transport", request: requestOf(error), cause: error })
    case "invalid_request":
    case "unsupported_feature":
    case "context_length_exceeded":
      return new AiError.MalformedInput({ ...common, cause: error })
    case "malformed_response":
      return new AiError.MalformedOutput({ ...common, cause: error })
    default:
      return new AiError.UnknownError({ ...common, cause: error })
  }
}

// An adapter does not say where it sends its requests.
const requestOf = ({ provider }: AdapterError.AdapterError): typeof AiError.HttpRequestDetails.Type => ({
  method: "POST",
  url: `allm:${provider ?? "adapter"}`,
  urlParams: [],
  hash: Option.none(),
  headers: {}
})
