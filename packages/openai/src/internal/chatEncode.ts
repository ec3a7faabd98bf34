/**
 * Writing requests for Chat Completions.
 */
import type { AssistantMessage, Message, Part } from "@allm/core/Message"
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
import { type Fields, fieldsOf, textOf } from "./lenient.ts"

export interface ChatOptions {
  readonly provider: string
  readonly maxTokensField: "max_tokens" | "max_completion_tokens"
  readonly strictTools: boolean
}

export const chatBody = (request: Request, options: ChatOptions): Written<Fields> =>
  Either.map(each(request.messages, (message) => messageOf(message, options.provider)), (messages) => {
    const { maxTokens, model, responseFormat, temperature, toolChoice, tools } = request
    const isStreamed = request.options["stream"] !== false
    const given = request.options["tools"]
    const hasTools = tools.length > 0 || (Array.isArray(given) && given.length > 0)
    return withOptions(
      {
        model,
        messages,
        tools: tools.length === 0 ? undefined : tools.map((tool) => toolOf(tool, options.strictTools)),
        tool_choice: hasTools ? choiceOf(toolChoice) : undefined,
        response_format: formatOf(responseFormat),
        temperature,
        [options.maxTokensField]: maxTokens,
        stream: true,
        stream_options: isStreamed ? { include_usage: true } : undefined
      },
      request.options,
      ["stream_options"]
    )
  })

const messageOf = (message: Message, provider: string): Written<ReadonlyArray<Fields>> => {
  switch (message.role) {
    case "system":
      return Either.map(textOnly(provider, message), (content) => [{ role: "system", content, ...named(message) }])
    case "user":
      return typeof message.content === "string"
        ? Either.right([{ role: "user", content: message.content, ...named(message) }])
        : Either.map(each(message.content, (part) => partOf(part, provider)), (content) => [
          { role: "user", content, ...named(message) }
        ])
    case "assistant":
      return assistantOf(message, provider)
    case "tool":
      return Either.right([{ role: "tool", tool_call_id: message.toolCallId, content: message.content }])
  }
}

const named = ({ name }: { readonly name?: string }): Fields => name === undefined ? {} : { name }

const partOf = (part: Part, provider: string): Written<ReadonlyArray<Fields>> =>
  part.type === "text"
    ? Either.right([{ type: "text", text: part.text }])
    : Either.map(imageUrl(provider, part), (url) => [{
      type: "image_url",
      image_url: part.detail === undefined ? { url } : { url, detail: part.detail }
    }])

const assistantOf = (message: AssistantMessage, provider: string): Written<ReadonlyArray<Fields>> =>
  Either.map(textOnly(provider, message), (text) => {
    const calls = message.toolCalls
    // As when a turn ended in an error: there is nothing to repeat.
    if (text === "" && calls.length === 0) return []
    return [{
      role: "assistant",
      content: text === "" ? null : text,
      ...named(message),
      ...stateOf(message, provider),
      ...(calls.length === 0 ? {} : { tool_calls: calls.map((call) => callOf(call, provider)) })
    }]
  })

/**
 * The reasoning that led to calls goes back with them: DeepSeek, Kimi and others refuse the results without it. Reasoning
 * that led to a text does not: nobody needs it, and some refuse it.
 */
const stateOf = (message: AssistantMessage, provider: string): Fields => {
  const state = fieldsOf(message.metadata[provider])
  const reasoning = fieldsOf(state?.["reasoning"])
  const field = textOf(reasoning?.["field"])
  const details = state?.["reasoningDetails"]
  return {
    ...(message.toolCalls.length > 0 && (field === "reasoning_content" || field === "reasoning")
      ? { [field]: textOf(reasoning?.["text"]) }
      : {}),
    ...(Array.isArray(details) ? { reasoning_details: details } : {})
  }
}

const callOf = (call: ToolCall, provider: string): Fields => ({
  id: call.id,
  type: "function",
  function: { name: call.name, arguments: argumentsText(call) },
  ...fieldsOf(call.metadata[provider])
})

const toolOf = (tool: Declaration, wantsStrict: boolean): Fields => {
  const { schema, strict } = toolSchema(tool, wantsStrict)
  return {
    type: "function",
    function: {
      name: tool.name,
      description: tool.description,
      parameters: schema,
      // Many servers do not know the word.
      ...(strict ? { strict } : {})
    }
  }
}

const choiceOf = (choice: ToolChoice | undefined): unknown =>
  typeof choice === "object" ? { type: "function", function: { name: choice.tool } } : choice

const formatOf = (format: ResponseFormat | undefined): Fields | undefined => {
  if (format === undefined || format.type === "text") return undefined
  return format.type === "json_object" ? format : { type: "json_schema", json_schema: answerSchema(format) }
}
