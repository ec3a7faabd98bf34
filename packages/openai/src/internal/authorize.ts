/**
 * Where the key goes.
 */
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Redacted from "effect/Redacted"

export type KeyHeader = "authorization" | "api-key"

export const authorize =
  (header: KeyHeader) =>
  (request: HttpClientRequest.HttpClientRequest, apiKey: Redacted.Redacted): HttpClientRequest.HttpClientRequest =>
    header === "api-key"
      ? HttpClientRequest.setHeader(request, "api-key", Redacted.value(apiKey))
      : HttpClientRequest.bearerToken(request, apiKey)
