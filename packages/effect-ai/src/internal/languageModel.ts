/**
 * An adapter as a language model of theirs.
 */
import { Adapter, AdapterError, Request } from "@allm/core"
import * as AiError from "@effect/ai/AiError"
import * as LanguageModel from "@effect/ai/LanguageModel"
import type * as Prompt from "@effect/ai/Prompt"
import type * as Response from "@effect/ai/Response"
import { addGenAIAnnotations } from "@effect/ai/Telemetry"
import * as Tool from "@effect/ai/Tool"
import * as Chunk from "effect/Chunk"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Stream from "effect/Stream"
import { toAiError } from "./errors.ts"
import { compact, projectObject } from "./json.ts"
import { fromPrompt } from "./prompt.ts"
import { collapse, Speech } from "./speech.ts"
import { declarationOf } from "./tools.ts"

/** What goes with every request. */
export interface Defaults {
  readonly model?: string | undefined
  readonly temperature?: number | undefined
  readonly maxTokens?: number | undefined
  readonly params?: { readonly [key: string]: unknown } | undefined
}

export const make = (adapter: Adapter.Service, defaults: Defaults): Effect.Effect<LanguageModel.Service> =>
  LanguageModel.make({
    generateText: (options) =>
      Effect.gen(function*() {
        const request = yield* requestOf(options, defaults, "generateText")
        annotateRequest(adapter, request, options)
        const speech = yield* begun(adapter)
        const generate = adapter.generate(request, (events) =>
          Effect.sync(() => {
            for (const event of events) speech.add(event)
          }))
        yield* Effect.mapError(generate, (error) => toAiError(error, "generateText"))
        const problem = speech.error ?? unfinished(adapter, speech)
        if (problem !== undefined) return yield* toAiError(problem, "generateText")
        const parts = collapse(speech.taken())
        for (const part of parts) annotateResponse(part, options)
        return parts
      }),
    streamText: (options) =>
      Stream.unwrap(Effect.gen(function*() {
        const request = yield* requestOf(options, defaults, "streamText")
        annotateRequest(adapter, request, options)
        const parts = said(adapter, request, yield* begun(adapter), (part) => annotateResponse(part, options))
        return Stream.mapError(parts, (error) => toAiError(error, "streamText"))
      }))
  })

const begun = (adapter: Adapter.Service): Effect.Effect<Speech> =>
  Effect.map(DateTime.now, (now) => new Speech(adapter.name, DateTime.formatIso(now)))

/** The parts of an answer as they come. One that stops short fails. */
const said = (
  adapter: Adapter.Service,
  request: Request.Request,
  speech: Speech,
  onPart: (part: Response.StreamPartEncoded) => void
): Stream.Stream<Response.StreamPartEncoded, AdapterError.AdapterError> => {
  const parts = Adapter.stream(request).pipe(
    Stream.provideService(Adapter.Adapter, adapter),
    Stream.mapChunks((events) => {
      for (const event of events) speech.add(event)
      const taken = speech.taken()
      taken.forEach(onPart)
      return Chunk.unsafeFromArray(taken)
    })
  )
  const end = Stream.suspend(() => {
    const problem = speech.error === undefined ? unfinished(adapter, speech) : undefined
    return problem === undefined ? Stream.empty : Stream.fail(problem)
  })
  return Stream.concat(parts, end)
}

const unfinished = (adapter: Adapter.Service, speech: Speech): AdapterError.AdapterError | undefined =>
  speech.isFinished
    ? undefined
    : new AdapterError.AdapterError({
      reason: "malformed_response",
      provider: adapter.name,
      detail: "the adapter ended without MessageCompleted"
    })

type Method = "generateText" | "streamText"

/** What theirs asks, as a request of ours. */
const requestOf = (
  options: LanguageModel.ProviderOptions,
  defaults: Defaults,
  method: Method
): Effect.Effect<Request.Request, AiError.AiError> => {
  const refused = (description: string, cause?: unknown): AiError.AiError =>
    new AiError.MalformedInput({ module: "@allm/effect-ai", method, description, ...compact({ cause }) })
  return Effect.gen(function*() {
    const problem = providerTool(options.tools) ?? foreignFile(options.prompt)
    if (problem !== undefined) return yield* refused(problem)
    const written = yield* Effect.try({
      try: () => ({
        ...compact({
          model: defaults.model,
          temperature: defaults.temperature,
          maxTokens: defaults.maxTokens,
          options: defaults.params,
          toolChoice: options.tools.length === 0 ? undefined : toolChoiceOf(options.toolChoice),
          responseFormat: formatOf(options.responseFormat)
        }),
        messages: fromPrompt(options.prompt),
        tools: options.tools.map(declarationOf)
      }),
      catch: (cause) => refused(wordsOf(cause), cause)
    })
    return yield* Either.mapLeft(Request.validate(written), (error) => refused(error.message, error))
  })
}

const providerTool = (tools: ReadonlyArray<Tool.Any>): string | undefined => {
  const defined = tools.find((tool) => Tool.isProviderDefined(tool))
  return defined === undefined
    ? undefined
    : `the tool ${JSON.stringify(defined.name)} is defined by a provider of @effect/ai; an adapter does not know it`
}

const foreignFile = (prompt: Prompt.Prompt): string | undefined => {
  for (const message of prompt.content) {
    if (message.role !== "user") continue
    for (const part of message.content) {
      if (part.type === "file" && !part.mediaType.startsWith("image/")) {
        return `an adapter takes text and images, but no file of type ${JSON.stringify(part.mediaType)}`
      }
    }
  }
  return undefined
}

// Theirs offers only the tools that are named in `oneOf`.
const toolChoiceOf = (choice: LanguageModel.ToolChoice<string>): Request.ToolChoice => {
  if (typeof choice === "string") return choice
  return "tool" in choice ? { tool: choice.tool } : choice.mode ?? "auto"
}

const notInNames = /[^A-Za-z0-9_-]+/g

const formatOf = (
  format: LanguageModel.ProviderOptions["responseFormat"]
): Request.ResponseFormat | undefined =>
  format.type === "text"
    ? undefined
    : {
      type: "json_schema",
      name: format.objectName.replace(notInNames, "_").slice(0, 64),
      schema: projectObject(Tool.getJsonSchemaFromSchemaAst(format.schema.ast)),
      strict: true
    }

const wordsOf = (cause: unknown): string => cause instanceof Error ? cause.message : String(cause)

const annotateRequest = (
  adapter: Adapter.Service,
  { maxTokens, model, temperature }: Request.Request,
  { span }: LanguageModel.ProviderOptions
): void =>
  addGenAIAnnotations(span, {
    system: adapter.name,
    operation: { name: "chat" },
    request: { model, temperature, maxTokens }
  })

const annotateResponse = (
  part: Response.StreamPartEncoded | Response.PartEncoded,
  { span }: LanguageModel.ProviderOptions
): void => {
  if (part.type === "response-metadata") addGenAIAnnotations(span, { response: { id: part.id, model: part.modelId } })
  if (part.type === "finish") {
    const { inputTokens, outputTokens } = part.usage
    addGenAIAnnotations(span, { response: { finishReasons: [part.reason] }, usage: { inputTokens, outputTokens } })
  }
}
