/**
 * A request as Gemini wants it.
 */
import { AdapterError, Message, type Request, type ToolCall } from "@allm/core"
import * as Either from "effect/Either"
import { name, type Piece, piecesOf } from "./pieces.ts"
import { takesNothing, toGemini } from "./schema.ts"
import { listOf, objectOf, type Wire } from "./wire.ts"

type Part = { readonly [key: string]: unknown }

interface Content {
  readonly role: "user" | "model"
  readonly parts: Array<Part>
}

/** The path of the model, and the body. */
export interface Encoded {
  readonly model: string
  readonly body: Wire
}

export const encode = (request: Request.Request): Either.Either<Encoded, AdapterError.AdapterError> =>
  Either.gen(function*() {
    const { messages, options } = request
    if (request.model === undefined || request.model === "") {
      return yield* refuse("invalid_request", "no model is named; write model: \"gemini-…\"")
    }
    const contents = yield* contentsOf(messages, needsSignatures(request.model))
    if (contents.length === 0) {
      return yield* refuse("invalid_request", "Gemini wants a message to answer; add Message.user(\"…\")")
    }
    const { toolChoice } = request
    if (!hasTools(request) && (toolChoice === "required" || typeof toolChoice === "object")) {
      return yield* refuse("invalid_request", "a tool has to be called, but there are none; add tools or no toolChoice")
    }
    const system = messages.filter((message) => message.role === "system")
    if (system.some(({ content }) => typeof content !== "string" && content.some(({ type }) => type !== "text"))) {
      return yield* refuse("unsupported_feature", "a system message holds text only; put the image into a user message")
    }
    const instructions = system.flatMap((message) => textPart(Message.toText(message)))
    const tools = [...functionsOf(request), ...listOf(options["tools"])]
    return {
      model: pathOf(request.model),
      body: {
        contents,
        ...(instructions.length === 0 ? {} : { systemInstruction: { parts: instructions } }),
        ...options,
        // These are made of several settings, so what is given is added to the rest.
        ...(tools.length === 0 ? {} : { tools }),
        ...merged("toolConfig", toolConfigOf(request), options),
        ...merged("generationConfig", generationConfigOf(request), options)
      }
    }
  })

export const refuse = (reason: AdapterError.Reason, detail: string): Either.Either<never, AdapterError.AdapterError> =>
  Either.left(new AdapterError.AdapterError({ reason, provider: name, detail }))

const merged = (key: string, own: Wire, options: Wire): Wire => {
  const given = options[key]
  if (given !== undefined && objectOf(given) === undefined) return { [key]: given }
  const all = { ...own, ...objectOf(given) }
  return Object.keys(all).length === 0 ? {} : { [key]: all }
}

const pathOf = (model: string): string =>
  (model.includes("/") ? model : `models/${model}`).split("/").map(encodeURIComponent).join("/")

/** From the third generation on, a call in the history without the signature of its thought is refused. */
const needsSignatures = (model: string): boolean => {
  const [, generation] = /(?:^|\/)gemini-(?:(\d+)|.*-latest$)/.exec(model) ?? [undefined, "0"]
  return generation === undefined || Number(generation) >= 3
}

const generationConfigOf = ({ maxTokens, responseFormat, temperature }: Request.Request): Wire => ({
  ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
  ...(temperature === undefined ? {} : { temperature }),
  ...(responseFormat === undefined || responseFormat.type === "text" ? {} : { responseMimeType: "application/json" }),
  ...(responseFormat?.type === "json_schema" ? { responseJsonSchema: toGemini(responseFormat.schema) } : {})
})

const functionsOf = ({ tools }: Request.Request): ReadonlyArray<Wire> => {
  const functionDeclarations = tools.map(({ description, inputSchema, name }) => ({
    name,
    description,
    ...(takesNothing(inputSchema) ? {} : { parametersJsonSchema: toGemini(inputSchema) })
  }))
  return functionDeclarations.length === 0 ? [] : [{ functionDeclarations }]
}

/** Some may be given as Gemini writes them. */
const hasTools = ({ options, tools }: Request.Request): boolean =>
  tools.length > 0 || listOf(options["tools"]).length > 0

const toolConfigOf = (request: Request.Request): Wire => {
  const { toolChoice } = request
  if (toolChoice === undefined || !hasTools(request)) return {}
  const functionCallingConfig = typeof toolChoice === "object"
    ? { mode: "ANY", allowedFunctionNames: [toolChoice.tool] }
    : { mode: { auto: "AUTO", none: "NONE", required: "ANY" }[toolChoice] }
  return { functionCallingConfig }
}

/** What a tool message has to say about its call. */
interface Answered {
  readonly name: string
  readonly id: string | undefined
}

/** Messages one after the other of one kind are one content: a batch of results has to be. */
const contentsOf = (
  messages: Request.Request["messages"],
  withSignatures: boolean
): Either.Either<ReadonlyArray<Content>, AdapterError.AdapterError> =>
  Either.gen(function*() {
    const contents: Array<Content> = []
    const calls = new Map<string, Answered>()
    let last: Message.Message["role"] | undefined
    for (const message of messages) {
      // Gemini has one place for what the system says, wherever in the thread it was said.
      if (message.role === "system") continue
      const parts = message.role === "user"
        ? message.content === "" ? [] : userParts(message.content)
        : message.role === "assistant"
        ? modelParts(message, calls, withSignatures)
        : [yield* resultPart(message, calls)]
      if (parts.length === 0) continue
      if (last === message.role) contents[contents.length - 1]!.parts.push(...parts)
      else contents.push({ role: message.role === "assistant" ? "model" : "user", parts: [...parts] })
      last = message.role
    }
    return contents
  })

const userParts = (content: Message.Content): ReadonlyArray<Part> =>
  typeof content === "string" ?
    textPart(content) :
    content.flatMap((part) => part.type === "text" ? textPart(part.text) : [imagePart(part)])

/** An empty text is no part. */
const textPart = (text: string): ReadonlyArray<Part> => text === "" ? [] : [{ text }]

const resultPart = (
  message: Message.ToolMessage,
  calls: ReadonlyMap<string, Answered>
): Either.Either<Part, AdapterError.AdapterError> => {
  const call = calls.get(message.toolCallId)
  if (call === undefined) {
    const id = JSON.stringify(message.toolCallId)
    return refuse("invalid_request", `a tool message answers the call ${id}, which no message before it makes`)
  }
  return Either.right({
    functionResponse: {
      ...(call.id === undefined ? {} : { id: call.id }),
      name: call.name,
      // As text: Gemini gives some JSON a meaning of its own.
      response: message.isError ? { error: message.content } : { output: message.content }
    }
  })
}

const extensions: { readonly [extension: string]: string } = {
  avif: "image/avif",
  gif: "image/gif",
  heic: "image/heic",
  heif: "image/heif",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  png: "image/png",
  webp: "image/webp"
}

const imagePart = ({ source }: Message.ImagePart): Part => {
  if (source.type === "base64") return { inlineData: { mimeType: source.mediaType, data: source.data } }
  const [, mimeTypeOfData, data] = /^data:([^;,]+);base64,(.*)$/s.exec(source.url) ?? []
  if (mimeTypeOfData !== undefined) return { inlineData: { mimeType: mimeTypeOfData, data } }
  const [, extension] = /\.(\w+)(?:[?#]|$)/.exec(source.url.slice(source.url.lastIndexOf("/"))) ?? []
  const mimeType = extensions[extension?.toLowerCase() ?? ""]
  return { fileData: { ...(mimeType === undefined ? {} : { mimeType }), fileUri: source.url } }
}

/** Says to Gemini that a call has no signature because another model made it. */
const foreign = "skip_thought_signature_validator"

const modelParts = (
  message: Message.AssistantMessage,
  calls: Map<string, Answered>,
  withSignatures: boolean
): ReadonlyArray<Part> => {
  const pieces = piecesOf(message) ?? message.toolCalls.map(({ id }): Piece => ({ call: id, id }))
  for (const call of message.toolCalls) calls.set(call.id, { name: call.name, id: undefined })
  for (const piece of pieces) {
    const call = "call" in piece ? calls.get(piece.call) : undefined
    if (call !== undefined && "call" in piece) calls.set(piece.call, { name: call.name, id: piece.id })
  }
  const parts = putTogether(message, pieces)
  const first = parts.findIndex((part) => part["functionCall"] !== undefined)
  const unsigned = withSignatures ? parts[first] : undefined
  return unsigned === undefined || unsigned["thoughtSignature"] !== undefined
    ? parts
    : parts.map((part) => part === unsigned ? { ...part, thoughtSignature: foreign } : part)
}

/** The parts of an answer as they came, as far as the message still has them; what it has besides follows. */
const putTogether = (message: Message.AssistantMessage, pieces: ReadonlyArray<Piece>): ReadonlyArray<Part> => {
  const text = Message.toText(message)
  const length = pieces.reduce((sum, piece) => "text" in piece ? sum + piece.text : sum, 0)
  const images = typeof message.content === "string" ? [] : message.content.filter((part) => part.type === "image")
  const calls = new Map(message.toolCalls.map((call) => [call.id, call]))
  // A text that is another one now has no signature.
  const isSame = length === text.length
  const parts: Array<Part> = isSame ? [] : [...textPart(text)]
  let from = 0
  for (const piece of pieces) {
    if ("text" in piece) {
      if (isSame && (piece.text > 0 || piece.signature !== undefined)) {
        parts.push({ text: text.slice(from, from + piece.text), ...signed(piece.signature) })
      }
      from += piece.text
    } else if ("call" in piece) {
      const call = calls.get(piece.call)
      if (call !== undefined) parts.push({ ...callPart(call, piece.id), ...signed(piece.signature) })
      calls.delete(piece.call)
    } else if ("image" in piece) {
      const image = images.shift()
      if (image !== undefined) parts.push({ ...imagePart(image), ...signed(piece.signature) })
    } else parts.push(piece.part)
  }
  return [...parts, ...images.map(imagePart), ...[...calls.values()].map((call) => callPart(call, undefined))]
}

const signed = (signature: string | undefined): Part => signature === undefined ? {} : { thoughtSignature: signature }

/** Arguments that are no object cannot be said; the answer to the call tells what was wrong with them. */
const callPart = (call: ToolCall.ToolCall, id: string | undefined): Part => ({
  functionCall: { ...(id === undefined ? {} : { id }), name: call.name, args: objectOf(call.arguments) ?? {} }
})
