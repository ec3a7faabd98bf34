/**
 * A request as the API wants it.
 */
import { AdapterError, type Request, type Tool } from "@allm/core"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Either from "effect/Either"
import type { Config } from "../Anthropic.ts"
import { type AnswerForm, answerForm, thinks } from "./answerForm.ts"
import { inputSchema } from "./answerSchema.ts"
import { type JsonObject, merge, objectOf } from "./json.ts"
import { defaultMaxTokens } from "./models.ts"
import { cacheControlOf, ownMetadata, provider, Transcript, type Turn } from "./transcript.ts"

const refusal = (
  reason: "unsupported_feature" | "invalid_request",
  detail: string
): Either.Either<never, AdapterError.AdapterError> =>
  Either.left(new AdapterError.AdapterError({ reason, provider, detail }))

const defaultBaseUrl = "https://api.anthropic.com"

const endpoint = (baseUrl: string): string => {
  const base = baseUrl.replace(/\/+$/, "")
  return /\/v\d+$/.test(base) ? `${base}/messages` : `${base}/v1/messages`
}

export const modelOf = (config: Config, request: Request.Request): string => request.model ?? config.model ?? ""

export const formOf = (config: Config, request: Request.Request): Either.Either<AnswerForm, string> =>
  answerForm(request, modelOf(config, request), config.structuredOutput, (config.serverTools ?? []).length > 0)

export const encode = (
  config: Config,
  request: Request.Request
): Either.Either<HttpClientRequest.HttpClientRequest, AdapterError.AdapterError> =>
  Either.flatMap(bodyOf(config, request), (body) =>
    Either.mapLeft(
      Either.try(() =>
        HttpClientRequest.post(endpoint(config.baseUrl ?? defaultBaseUrl), {
          headers: {
            "anthropic-version": config.version ?? "2023-06-01",
            ...(config.betas === undefined || config.betas.length === 0
              ? {}
              : { "anthropic-beta": config.betas.join(",") }),
            ...config.headers
          }
        }).pipe(HttpClientRequest.bodyUnsafeJson(body))
      ),
      () =>
        new AdapterError.AdapterError({
          reason: "invalid_request",
          provider,
          detail: "the request cannot be written as JSON; write only JSON into its params"
        })
    ))

const bodyOf = (config: Config, request: Request.Request): Either.Either<JsonObject, AdapterError.AdapterError> => {
  const model = modelOf(config, request)
  const { maxTokens, options, temperature } = request
  if (model === "" && options["model"] === undefined) {
    return refusal("invalid_request", "no model is named; write a model such as \"claude-sonnet-5\"")
  }
  if (temperature !== undefined && temperature > 1) {
    return refusal("unsupported_feature", `the temperature goes up to 1, not to ${temperature}`)
  }
  const form = formOf(config, request)
  if (Either.isLeft(form)) return refusal("unsupported_feature", form.left)
  const transcript = new Transcript(request.messages)
  if (transcript.problem !== undefined) return refusal("unsupported_feature", transcript.problem)
  const { turns } = transcript
  if (turns.length === 0) {
    return refusal("invalid_request", "nobody has said anything yet; add Message.user(\"…\") with some text")
  }
  return Either.map(toolsOf(config, request, form.right, turns), (tools) =>
    merge({
      model,
      max_tokens: maxTokens ?? maxTokensFor(model, options),
      ...(temperature === undefined ? {} : { temperature }),
      ...(transcript.system.length === 0 ? {} : { system: transcript.system }),
      messages: turns,
      ...tools,
      ...(form.right.via === "schema"
        ? { output_config: { format: { type: "json_schema", schema: form.right.schema } } }
        : {}),
      ...cached(cacheControlOf(config.cacheControl)),
      stream: true
    }, options))
}

const cached = (control: JsonObject | undefined): JsonObject => control === undefined ? {} : { cache_control: control }

/** What a model thinks counts too, so there has to be room for more than that. */
const maxTokensFor = (model: string, options: JsonObject): number => {
  const budget = objectOf(options["thinking"])["budget_tokens"]
  const usual = defaultMaxTokens(model)
  return typeof budget === "number" && budget >= usual ? budget + usual : usual
}

const toolsOf = (
  config: Config,
  request: Request.Request,
  form: AnswerForm,
  turns: ReadonlyArray<Turn>
): Either.Either<JsonObject, AdapterError.AdapterError> => {
  const { toolChoice, tools } = request
  if (tools.length === 0 && (toolChoice === "required" || typeof toolChoice === "object")) {
    return refusal("invalid_request", "a tool has to be called, but there are none; add tools or leave out toolChoice")
  }
  const serverTools = config.serverTools ?? []
  const given = [...tools.map(declared), ...serverTools, ...(form.via === "tool" ? [answerTool(form)] : [])]
  const choice = choiceOf(request, form)
  if (given.length > 0) return Either.right({ tools: given, ...(choice === undefined ? {} : { tool_choice: choice }) })
  // Whoever has called tools must know them, also when no more calls are wanted.
  const used = usedTools(turns)
  return Either.right(used.length === 0 ? {} : { tools: used, tool_choice: { type: "none" } })
}

const declared = ({ description, inputSchema: schema, metadata, name }: Tool.Declaration): JsonObject => {
  const { cacheControl, ...own } = ownMetadata(metadata)
  return {
    name,
    ...(description === "" ? {} : { description }),
    input_schema: inputSchema(schema) ?? schema,
    ...own,
    ...cached(cacheControlOf(cacheControl))
  }
}

const answerTool = ({ name, schema }: AnswerForm & { readonly via: "tool" }): JsonObject => ({
  name,
  description: "Takes your answer. Call it once, with the whole of it, instead of writing the answer as text.",
  input_schema: schema
})

const choiceOf = ({ options, toolChoice }: Request.Request, form: AnswerForm): JsonObject | undefined => {
  if (form.via === "tool") {
    if (form.isForced) return { type: "tool", name: form.name }
    return { type: thinks(options) ? "auto" : "any" }
  }
  if (toolChoice === undefined) return undefined
  if (typeof toolChoice === "object") return { type: "tool", name: toolChoice.tool }
  return { type: toolChoice === "required" ? "any" : toolChoice }
}

const usedTools = (turns: ReadonlyArray<Turn>): ReadonlyArray<JsonObject> => {
  const names = new Set(
    turns.flatMap(({ content }) => content.flatMap((block) => block.type === "tool_use" ? [block["name"]] : []))
  )
  return Array.from(names, (name) => ({
    name,
    description: "Was used earlier in this conversation, and is not available any more.",
    input_schema: { type: "object" }
  }))
}
