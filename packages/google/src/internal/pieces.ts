/**
 * How an answer was put together, so that it goes back to Gemini exactly as it came: in these parts, in this order, with
 * these signatures. Texts, calls and images stand in the message itself; only their places are kept here.
 */
import type { Message } from "@allm/core"
import { listOf, objectOf, type Wire } from "./wire.ts"

export type Piece =
  /** The next so many characters of the text. */
  | { text: number; signature?: string }
  /** The call of this id, and the id Gemini itself gave it, if it gave one. */
  | { readonly call: string; readonly id?: string; signature?: string }
  /** The next image. */
  | { readonly image: true; readonly signature?: string }
  /** A part that only Gemini understands. */
  | { readonly part: Wire }

/** The name under which a provider's own things stand in metadata. */
export const name = "google"

/** A text alone says all there is to say. */
const isPlain = (pieces: ReadonlyArray<Piece>): boolean =>
  pieces.every((piece) => "text" in piece && piece.signature === undefined)

export const metadataOf = (pieces: ReadonlyArray<Piece>): { readonly [key: string]: unknown } =>
  isPlain(pieces) ? {} : { [name]: { parts: pieces } }

/** The pieces of a message of ours. What somebody else wrote there is left out. */
export const piecesOf = (message: Message.AssistantMessage): ReadonlyArray<Piece> | undefined => {
  const own = objectOf(message.metadata[name])
  return own === undefined ? undefined : listOf(own["parts"]).filter(isPiece)
}

const isPiece = (value: unknown): value is Piece => {
  const piece = objectOf(value)
  return piece !== undefined && isTextOrAbsent(piece["signature"]) && isTextOrAbsent(piece["id"]) && (
    typeof piece["text"] === "number" || typeof piece["call"] === "string" || piece["image"] === true ||
    objectOf(piece["part"]) !== undefined
  )
}

const isTextOrAbsent = (value: unknown): boolean => value === undefined || typeof value === "string"
