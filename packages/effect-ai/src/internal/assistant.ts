/**
 * A message of a model: its pieces in order, as theirs holds them, and the same as ours holds it.
 */
import { Message, type ToolCall } from "@allm/core"
import * as Prompt from "@effect/ai/Prompt"
import * as Either from "effect/Either"
import { compact, type JsonObject } from "./json.ts"
import {
  callOptions,
  keep,
  type Kept,
  keptOf,
  type Options,
  optionsOf,
  paramsOf,
  type Place,
  someOptions
} from "./kept.ts"
import { type FileLike, filePlace, fromFile, toFile } from "./media.ts"

/** One piece of what a model said. */
export type Piece =
  | { readonly type: "text"; readonly text: string; readonly options: Options }
  | { readonly type: "file"; readonly file: FileLike; readonly options: Options }
  | { readonly type: "reasoning"; readonly text: string; readonly options: Options }
  | { readonly type: "call"; readonly call: ToolCall.ToolCall }
  | ProviderPiece

type ProviderPiece = Extract<Place, { readonly type: "provider-call" | "provider-result" }>

interface Envelope {
  readonly name?: string | undefined
  readonly metadata: JsonObject
  readonly options?: Options | undefined
}

/** Puts pieces together as a message of ours. */
export const fromPieces = (pieces: ReadonlyArray<Piece>, envelope: Envelope): Message.AssistantMessage => {
  const texts = pieces.flatMap((piece) => piece.type === "text" ? [piece.text] : [])
  const files = pieces.flatMap((piece) => piece.type === "file" ? [fromFile(piece.file, piece.options)] : [])
  const kept: Kept = compact({
    options: someOptions(envelope.options),
    parts: isPlain(pieces) ? undefined : pieces.map(placeOf)
  })
  return Message.assistant(
    files.length === 0 ? texts.join("") : [...texts.map(Message.text), ...files],
    {
      toolCalls: pieces.flatMap((piece) => piece.type === "call" ? [piece.call] : []),
      name: envelope.name,
      metadata: keep(envelope.metadata, kept)
    }
  )
}

// A text and then calls need no word about their order.
const isPlain = (pieces: ReadonlyArray<Piece>): boolean =>
  pieces.every((piece, index) =>
    piece.type === "call" || (piece.type === "text" && index === 0 && someOptions(piece.options) === undefined)
  )

const placeOf = (piece: Piece): Place => {
  switch (piece.type) {
    case "text":
      return compact({ type: piece.type, length: piece.text.length, options: someOptions(piece.options) })
    case "file":
      return filePlace(piece.file, piece.options)
    case "reasoning":
      return compact({ type: piece.type, text: piece.text, options: someOptions(piece.options) })
    case "call":
      return { type: piece.type, id: piece.call.id }
    case "provider-call":
    case "provider-result":
      return piece
  }
}

/** Writes a message of ours as theirs. The left side says what theirs cannot hold. */
export const toPrompt = (
  message: Message.AssistantMessage,
  renamed: ReadonlyMap<string, string>
): Either.Either<Prompt.AssistantMessage, string> =>
  Either.gen(function*() {
    const kept = keptOf(message)
    const texts = textsOf(message, kept.parts)
    const images = typeof message.content === "string"
      ? []
      : message.content.filter((part) => part.type === "image")
    const calls = new Map(message.toolCalls.map((call) => [call.id, call]))
    const content: Array<Prompt.AssistantMessagePart> = []
    for (const place of kept.parts ?? plainPlaces(message)) {
      switch (place.type) {
        case "text": {
          // Some providers refuse a text without text.
          const text = texts.shift() ?? ""
          if (text !== "") content.push(Prompt.makePart("text", { text, options: place.options }))
          break
        }
        case "file": {
          const image = images.shift()
          if (image !== undefined) content.push(yield* toFile(image, place))
          break
        }
        case "reasoning":
          content.push(Prompt.makePart("reasoning", { text: place.text, options: place.options }))
          break
        case "call": {
          const call = calls.get(place.id)
          if (calls.delete(place.id) && call !== undefined) content.push(callPart(call, renamed))
          break
        }
        case "provider-call": {
          const { id, name, options, params } = place
          content.push(Prompt.makePart("tool-call", { id, name, params, providerExecuted: true, options }))
          break
        }
        case "provider-result": {
          const { id, isFailure, name, options, result } = place
          content.push(Prompt.makePart("tool-result", { id, name, isFailure, result, providerExecuted: true, options }))
          break
        }
      }
    }
    // What was said or called besides stands last.
    for (const text of texts) if (text !== "") content.push(Prompt.makePart("text", { text }))
    for (const image of images) content.push(yield* toFile(image, undefined))
    for (const call of calls.values()) content.push(callPart(call, renamed))
    return Prompt.makeMessage("assistant", { content, options: optionsOf(message, kept.options) })
  })

const callPart = (call: ToolCall.ToolCall, renamed: ReadonlyMap<string, string>): Prompt.ToolCallPart =>
  Prompt.makePart("tool-call", {
    id: call.id,
    name: renamed.get(call.name) ?? call.name,
    params: paramsOf(call),
    providerExecuted: false,
    options: callOptions(call)
  })

const plainPlaces = (message: Message.AssistantMessage): ReadonlyArray<Place> => [
  ...(typeof message.content === "string" ? [message.content] : message.content).map((part): Place =>
    typeof part === "object" && part.type === "image" ? { type: "file" } : { type: "text", length: 0 }
  ),
  ...message.toolCalls.map(({ id }): Place => ({ type: "call", id }))
]

/** The texts of a message, cut as they were said; whole when someone has changed them since. */
const textsOf = (message: Message.AssistantMessage, places: Kept["parts"]): Array<string> => {
  const said = typeof message.content === "string"
    ? message.content === "" ? [] : [message.content]
    : message.content.flatMap((part) => part.type === "text" ? [part.text] : [])
  if (places === undefined) return said
  const lengths = places.flatMap((place) => place.type === "text" ? [place.length] : [])
  const whole = said.join("")
  if (lengths.reduce((sum, length) => sum + length, 0) !== whole.length) return whole === "" ? [] : [whole]
  let end = 0
  return lengths.map((length) => whole.slice(end, end += length))
}
