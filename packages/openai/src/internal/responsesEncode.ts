/**
 * Writing requests for the Responses API.
 */
import type { Message, Part } from "@allm/core/Message"
import type { Request, ResponseFormat, ToolChoice } from "@allm/core/Request"
import type { Declaration } from "@allm/core/Tool"
import type { ToolCall } from "@allm/core/ToolCall"
import * as Either from "effect/Either"
import {
  answerSchema,
  argumentsText,
  each,
  imageUrl,
  textOnly,
  toolSchema,
  withOptions,
  type Written
} from "./encode.ts"
import type { Fields } from "./lenient.ts"
import { itemsOf } from "./responsesState.ts"

export interface ResponsesOptions {
  readonly provider: string
  readonly strictTools: boolean
  readonly isStateless: boolean
}

export const responsesBody = (request: Request, options: ResponsesOptions): Written<Fields> =>
  Either.map(each(request.messages, (message) => inputOf(message, options.provider)), (input) => {
    const { maxTokens, model, responseFormat, temperature, toolChoice, tools } = request
    const given = request.options["tools"]
    const hasTools = tools.length > 0 || (Array.isArray(given) && given.length > 0)
    return withOptions(
      {
        model,
        input,
        tools: tools.length === 0 ? undefined : tools.map((tool) => toolOf(tool, options.strictTools)),
        tool_choice: hasTools ? choiceOf(toolChoice) : undefined,
        text: formatOf(responseFormat),
        temperature,
        max_output_tokens: maxTokens,
        ...(options.isStateless ? { store: false, include: ["reasoning.encrypted_content"] } : {}),
        stream: true
      },
      request.options,
      ["text"]
    )
  })

const inputOf = (message: Message, provider: string): Written<ReadonlyArray<Fields>> => {
  switch (message.role) {
    case "system":
      return Either.map(textOnly(provider, message), (content) => [{ role: "system", content }])
    case "user":
      return typeof message.content === "string"
        ? Either.right([{ role: "user", content: message.content }])
        : Either.map(each(message.content, (part) => partOf(part, provider)), (content) => [{ role: "user", content }])
    case "assistant":
      return Either.map(textOnly(provider, message), (text) =>
        itemsOf(message, provider, callOf) ?? [
          // Without text or calls, as when a turn ended in an error, there is nothing to repeat.
          ...(text === "" ? [] : [{ role: "assistant", content: text }]),
          ...message.toolCalls.map(callOf)
        ])
    case "tool":
      return Either.right([{ type: "function_call_output", call_id: message.toolCallId, output: message.content }])
  }
}

const partOf = (part: Part, provider: string): Written<ReadonlyArray<Fields>> =>
  part.type === "text"
    ? Either.right([{ type: "input_text", text: part.text }])
    : Either.map(imageUrl(provider, part), (url) => [
      { type: "input_image", image_url: url, detail: part.detail ?? "auto" }
    ])

const callOf = (call: ToolCall): Fields => ({
  type: "function_call",
  call_id: call.id,
  name: call.name,
  arguments: argumentsText(call)
})

// Without a word about it, this protocol takes every schema for a strict one.
const toolOf = (tool: Declaration, wantsStrict: boolean): Fields => {
  const { schema, strict } = toolSchema(tool, wantsStrict)
  return { type: "function", name: tool.name, description: tool.description, parameters: schema, strict }
}

const choiceOf = (choice: ToolChoice | undefined): unknown =>
  typeof choice === "object" ? { type: "function", name: choice.tool } : choice

const formatOf = (format: ResponseFormat | undefined): Fields | undefined => {
  if (format === undefined || format.type === "text") return undefined
  return { format: format.type === "json_object" ? format : { type: "json_schema", ...answerSchema(format) } }
}
