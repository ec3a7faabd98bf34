/**
 * Conversations: messages of ours as a prompt of theirs, and back.
 */
import { Message } from "@allm/core"
import * as Prompt from "@effect/ai/Prompt"
import * as Either from "effect/Either"
import * as Assistant from "./assistant.ts"
import { compact, parse, print } from "./json.ts"
import { keep, keptOf, type Options, optionsOf, ownOf, type Place, someOptions, toolCall, withoutOwn } from "./kept.ts"
import { filePlace, fromFile, toFile } from "./media.ts"

/** Something in a conversation that theirs cannot hold. */
export interface Unfit {
  /** The message it stands in. */
  readonly index: number
  readonly problem: string
}

/** Writes a conversation of ours as theirs. Tools that are `renamed` have another name there. */
export const toPrompt = (
  messages: ReadonlyArray<Message.Message>,
  renamed: ReadonlyMap<string, string> = new Map()
): Either.Either<Prompt.Prompt, Unfit> =>
  Either.gen(function*() {
    const written: Array<Prompt.Message> = []
    const names = new Map<string, string>()
    let results: Array<Prompt.ToolResultPart> = []
    for (const [index, message] of messages.entries()) {
      if (message.role === "tool") {
        // The results of one turn stand in one message.
        results.push(resultPart(message, names.get(message.toolCallId)))
        const { messageOptions } = keptOf(message)
        if (messages[index + 1]?.role === "tool" && messageOptions === undefined) continue
        written.push(Prompt.makeMessage("tool", { content: results, ...compact({ options: messageOptions }) }))
        results = []
        continue
      }
      const calls = message.role === "assistant" ? message.toolCalls : []
      for (const { id, name } of calls) names.set(id, renamed.get(name) ?? name)
      written.push(yield* Either.mapLeft(writtenAs(message, renamed), (problem) => ({ index, problem })))
    }
    return Prompt.fromMessages(written)
  })

const writtenAs = (
  message: Exclude<Message.Message, Message.ToolMessage>,
  renamed: ReadonlyMap<string, string>
): Either.Either<Prompt.Message, string> => {
  switch (message.role) {
    case "system":
      return systemMessage(message)
    case "user":
      return userMessage(message)
    case "assistant":
      return Assistant.toPrompt(message, renamed)
  }
}

const systemMessage = (message: Message.SystemMessage): Either.Either<Prompt.Message, string> =>
  typeof message.content === "string" || message.content.every((part) => part.type === "text")
    ? Either.right(Prompt.makeMessage("system", {
      content: Message.toText(message),
      options: optionsOf(message, keptOf(message).options)
    }))
    : Either.left("a system message is text; put the image into a user message")

const userMessage = (message: Message.UserMessage): Either.Either<Prompt.Message, string> =>
  Either.gen(function*() {
    const kept = keptOf(message)
    const parts = typeof message.content === "string" ? [Message.text(message.content)] : message.content
    // What is kept of parts belongs to them as long as nobody has added or taken one.
    const places = kept.parts?.length === parts.length ? kept.parts : []
    const content: Array<Prompt.UserMessagePart> = []
    for (const [index, part] of parts.entries()) {
      const place = places[index]
      if (part.type === "text") {
        content.push(
          Prompt.makePart("text", { text: part.text, options: place?.type === "text" ? place.options : undefined })
        )
      } else {
        content.push(yield* toFile(part, place?.type === "file" ? place : undefined))
      }
    }
    return Prompt.makeMessage("user", { content, options: optionsOf(message, kept.options) })
  })

const resultPart = (message: Message.ToolMessage, name: string | undefined): Prompt.ToolResultPart =>
  Prompt.makePart("tool-result", {
    id: message.toolCallId,
    name: name ?? "unknown",
    isFailure: message.isError,
    result: resultOf(message.content),
    providerExecuted: false,
    options: optionsOf(message, keptOf(message).options)
  })

const squeezed = (text: string): string => text.replaceAll(/\s+/g, "")

// Their providers print results as JSON, so text that is JSON would be printed twice. Text that JSON would change stays.
export const resultOf = (content: string): unknown => {
  const parsed = parse(content)
  return Either.isRight(parsed) && typeof parsed.right !== "string" &&
      squeezed(print(parsed.right) ?? "") === squeezed(content)
    ? parsed.right
    : content
}

/** Reads a conversation of theirs as ours. */
export const fromPrompt = (prompt: Prompt.Prompt): ReadonlyArray<Message.Message> =>
  prompt.content.flatMap((message): ReadonlyArray<Message.Message> => {
    switch (message.role) {
      case "system":
        return [Message.system(message.content, envelopeOf(message.options))]
      case "user":
        return [fromUser(message)]
      case "assistant":
        return [fromAssistant(message)]
      case "tool":
        return message.content.map((part, index) =>
          fromResult(part, index === message.content.length - 1 ? message.options : undefined)
        )
    }
  })

const envelopeOf = (
  options: Options,
  parts?: ReadonlyArray<Place> | undefined
): { readonly name?: string | undefined; readonly metadata: { readonly [key: string]: unknown } } => {
  const { metadata = {}, name } = ownOf(options)
  return { name, metadata: keep(metadata, compact({ options: someOptions(withoutOwn(options)), parts })) }
}

const fromUser = ({ content, options }: Prompt.UserMessage): Message.UserMessage => {
  const [first] = content
  const places = content.map((part): Place =>
    part.type === "text"
      ? compact({ type: "text" as const, length: part.text.length, options: someOptions(part.options) })
      : filePlace(part, part.options)
  )
  const hasExtras = places.some((place) => Object.keys(place).some((key) => key !== "type" && key !== "length"))
  return Message.user(
    content.length === 1 && first?.type === "text"
      ? first.text
      : content.map((part) => part.type === "text" ? Message.text(part.text) : fromFile(part, part.options)),
    envelopeOf(options, hasExtras ? places : undefined)
  )
}

const fromAssistant = ({ content, options }: Prompt.AssistantMessage): Message.AssistantMessage => {
  const { metadata = {}, name } = ownOf(options)
  return Assistant.fromPieces(content.map(pieceOf), { name, metadata, options: withoutOwn(options) })
}

const pieceOf = (part: Prompt.AssistantMessagePart): Assistant.Piece => {
  switch (part.type) {
    case "text":
    case "reasoning":
      return { type: part.type, text: part.text, options: part.options }
    case "file":
      return { type: "file", file: part, options: part.options }
    case "tool-call":
      return part.providerExecuted
        ? compact({
          type: "provider-call" as const,
          id: part.id,
          name: part.name,
          params: part.params,
          options: someOptions(part.options)
        })
        : { type: "call", call: toolCall(part, part.options) }
    case "tool-result":
      return compact({
        type: "provider-result" as const,
        id: part.id,
        name: part.name,
        result: part.result,
        isFailure: part.isFailure,
        options: someOptions(part.options)
      })
  }
}

const fromResult = (part: Prompt.ToolResultPart, messageOptions: Options | undefined): Message.ToolMessage => {
  const kept = compact({ options: someOptions(withoutOwn(part.options)), messageOptions: someOptions(messageOptions) })
  return Message.tool(part.id, typeof part.result === "string" ? part.result : print(part.result) ?? "null", {
    isError: part.isFailure,
    metadata: keep(ownOf(part.options).metadata ?? {}, kept)
  })
}
