/**
 * What both protocols write alike.
 */
import { AdapterError } from "@allm/core/AdapterError"
import { type ImagePart, type Message, toText } from "@allm/core/Message"
import type { ResponseFormat } from "@allm/core/Request"
import type { Declaration } from "@allm/core/Tool"
import type { ToolCall } from "@allm/core/ToolCall"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Either from "effect/Either"
import type { Fields } from "./lenient.ts"
import { fieldsOf } from "./lenient.ts"
import { strictSchema } from "./strictSchema.ts"

/** Where requests go. */
export interface Endpoint {
  readonly baseUrl: string
  readonly headers?: { readonly [name: string]: string } | undefined
  readonly apiVersion?: string | undefined
}

export type Written<A> = Either.Either<A, AdapterError>

export const unsupported = (provider: string, detail: string): AdapterError =>
  new AdapterError({ reason: "unsupported_feature", provider, detail })

/** A request with its body as JSON. */
export const post = (
  provider: string,
  { apiVersion, baseUrl, headers = {} }: Endpoint,
  path: string,
  body: Fields
): Written<HttpClientRequest.HttpClientRequest> =>
  Either.map(
    Either.try({
      try: () => JSON.stringify(body),
      catch: (cause) =>
        new AdapterError({
          reason: "invalid_request",
          provider,
          detail: `the request is not JSON: ${cause instanceof Error ? cause.message : String(cause)}`
        })
    }),
    (text) => {
      const request = HttpClientRequest.post(`${baseUrl.replace(/\/+$/, "")}${path}`).pipe(
        HttpClientRequest.setHeaders(headers),
        HttpClientRequest.bodyText(text, "application/json")
      )
      return apiVersion === undefined ? request : HttpClientRequest.setUrlParam(request, "api-version", apiVersion)
    }
  )

/**
 * A body with what the caller wants to say to this provider. The caller's word stands, but for a list of tools, which is
 * added to the tools of the request, and for `grouped` objects, which are merged. `null` leaves a field out.
 */
export const withOptions = (body: Fields, options: Fields, grouped: ReadonlyArray<string>): Fields => {
  const merged: Record<string, unknown> = { ...body }
  for (const [key, value] of Object.entries(options)) {
    const own = merged[key]
    merged[key] = key === "tools" && Array.isArray(own) && Array.isArray(value)
      ? [...own, ...value]
      : grouped.includes(key) && fieldsOf(own) !== undefined && fieldsOf(value) !== undefined
      ? { ...own as Fields, ...value as Fields }
      : value
  }
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== undefined && value !== null))
}

/** The text of a call's arguments. What the model wrote wrongly is not repeated: many servers parse it. */
export const argumentsText = (call: ToolCall): string =>
  call.arguments === undefined
    ? "{}"
    : call.rawArguments === undefined || call.rawArguments.trim() === ""
    ? JSON.stringify(call.arguments)
    : call.rawArguments

export const imageUrl = (provider: string, { source }: ImagePart): Written<string> => {
  if (source.type === "url") return Either.right(source.url)
  return source.mediaType.startsWith("image/")
    ? Either.right(`data:${source.mediaType};base64,${source.data}`)
    : Either.left(unsupported(provider, `${source.mediaType} is no image; only images can be sent besides text`))
}

/** The text of a message that can hold nothing else. */
export const textOnly = (provider: string, message: Message): Written<string> =>
  typeof message.content === "string" || message.content.every((part) => part.type === "text")
    ? Either.right(toText(message))
    : Either.left(
      unsupported(provider, `a message of role ${message.role} cannot hold images here; put them into a user message`)
    )

export interface Enforced {
  readonly schema: Fields
  readonly strict: boolean
}

/** The schema of an answer, enforced where that is possible. */
export const answerSchema = (format: Extract<ResponseFormat, { readonly type: "json_schema" }>): Enforced & {
  readonly name: string
} => {
  const strict = format.strict ? strictSchema(format.schema, { nullable: true }) : undefined
  return {
    name: format.name.replaceAll(/[^\w-]+/g, "_").slice(0, 64) || "response",
    schema: strict ?? format.schema,
    strict: strict !== undefined
  }
}

/** The schema of a tool. A property that may be left out stays so: its handler does not expect `null`. */
export const toolSchema = (tool: Declaration, wantsStrict: boolean): Enforced => {
  const strict = wantsStrict ? strictSchema(tool.inputSchema, { nullable: false }) : undefined
  return { schema: strict ?? tool.inputSchema, strict: strict !== undefined }
}

/** Every item, or the first refusal. */
export const each = <A, B>(
  items: ReadonlyArray<A>,
  write: (item: A) => Written<ReadonlyArray<B>>
): Written<ReadonlyArray<B>> => {
  const written: Array<B> = []
  for (const item of items) {
    const one = write(item)
    if (Either.isLeft(one)) return Either.left(one.left)
    written.push(...one.right)
  }
  return Either.right(written)
}
