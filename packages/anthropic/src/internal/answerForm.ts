/**
 * How an answer gets the form that was asked for: the API keeps it to a schema, or the model hands it to a tool.
 */
import type { Request } from "@allm/core"
import * as Either from "effect/Either"
import { answerSchema, inputSchema } from "./answerSchema.ts"
import { isObject, type JsonObject } from "./json.ts"
import { followsSchemas } from "./models.ts"

export type StructuredOutput = "native" | "tool"

export type AnswerForm =
  | { readonly via: "text" }
  | { readonly via: "schema"; readonly schema: JsonObject }
  | { readonly via: "tool"; readonly name: string; readonly schema: JsonObject; readonly isForced: boolean }

const text: AnswerForm = { via: "text" }

/** The left side says why it cannot be done. */
export const answerForm = (
  request: Request.Request,
  model: string,
  structuredOutput: StructuredOutput | undefined,
  hasServerTools: boolean
): Either.Either<AnswerForm, string> => {
  const format = request.responseFormat
  if (format === undefined || format.type === "text") return Either.right(text)
  if (format.type === "json_object") return Either.right(viaTool(request, { type: "object" }, hasServerTools))
  const isNative = (structuredOutput ?? (followsSchemas(model) ? "native" : "tool")) === "native"
  const schema = isNative && format.strict ? answerSchema(format.schema) : undefined
  if (schema !== undefined) return Either.right({ via: "schema", schema })
  const input = inputSchema(format.schema)
  return input === undefined
    ? Either.left("an answer in this form has to be an object; wrap its schema in one, such as { answer: … }")
    : Either.right(viaTool(request, input, hasServerTools))
}

const viaTool = (request: Request.Request, schema: JsonObject, hasServerTools: boolean): AnswerForm => {
  const { options, toolChoice, tools } = request
  const mayCall = hasServerTools || (tools.length > 0 && toolChoice !== "none")
  // What has to be a call is no answer.
  if (tools.length > 0 && (toolChoice === "required" || typeof toolChoice === "object")) return text
  return {
    via: "tool",
    name: unusedName(tools.map(({ name }) => name)),
    schema,
    isForced: !mayCall && !thinks(options)
  }
}

const unusedName = (names: ReadonlyArray<string>): string => {
  let name = "json"
  while (names.includes(name)) name += "_"
  return name
}

/** A model that thinks cannot be forced to call a tool. */
export const thinks = (options: JsonObject): boolean => {
  const { thinking } = options
  return isObject(thinking) && thinking["type"] !== undefined && thinking["type"] !== "disabled"
}
