/**
 * Sessions as texts, the same in every store that keeps them whole.
 */
import * as Effect from "effect/Effect"
import type * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { Session, Status } from "../Session.ts"
import { StoreError } from "../StoreError.ts"
import { parseErrorInWords } from "./issues.ts"
import { describe, isPlainObject } from "./json.ts"

/** Raised whenever older code could not read what newer code writes. */
export const format = 1

/** What was asked for, of what, and where it is kept: the frame of every error. */
export interface Frame {
  readonly operation: string
  readonly id?: string
  readonly location?: string
}

export const fail = (
  frame: Frame,
  reason: StoreError["reason"],
  detail: string,
  cause?: unknown
): StoreError => new StoreError({ ...frame, reason, detail, ...(cause === undefined ? {} : { cause }) })

const Record = Schema.Struct({ format: Schema.Literal(format), updatedAt: Schema.Finite, session: Session })

export interface Record extends Schema.Schema.Type<typeof Record> {}

const Text = Schema.parseJson()
const print = Schema.encode(Schema.parseJson(Record))
const parse = Schema.decode(Text)
const read = Schema.decodeUnknown(Record)

export const notEncodable = (frame: Frame) => (error: ParseResult.ParseError): StoreError =>
  fail(frame, "not_encodable", parseErrorInWords(error))

export const corrupt = (frame: Frame) => (error: ParseResult.ParseError): StoreError =>
  fail(frame, "corrupt", `it was left as it is: ${parseErrorInWords(error)}`)

export const encode = (frame: Frame, session: Session, updatedAt: number): Effect.Effect<string, StoreError> =>
  Effect.mapError(print({ format, updatedAt, session }), notEncodable(frame))

export const newer = (frame: Frame, found: number): StoreError =>
  fail(frame, "newer_format", `it has format ${found}, this version reads up to ${format}; it was left as it is`)

/** Reads a text that `encode` printed. */
export const decode = Effect.fnUntraced(function*(frame: Frame, text: string) {
  const json: unknown = yield* Effect.mapError(parse(text), corrupt(frame))
  if (isPlainObject(json) && typeof json["format"] === "number" && json["format"] > format) {
    return yield* newer(frame, json["format"])
  }
  const record = yield* Effect.mapError(read(json), corrupt(frame))
  // A file that was copied under another name is not that other session.
  return record.session.id === frame.id ? record : yield* fail(frame, "corrupt", `it holds ${record.session.id}`)
})

// What every store can keep: a column, a key, the name of a file.
const longest = 512

export const checkId = (operation: string, id: unknown): Effect.Effect<void, StoreError> => {
  const problem = typeof id !== "string"
    ? `an id is text, not ${describe(id)}`
    : id === ""
    ? "an id has at least one character"
    : id.length > longest
    ? `an id has at most ${longest} characters, not ${id.length}`
    : id.includes("\0") || /\p{Surrogate}/u.test(id)
    ? "an id is well-formed text without the character U+0000"
    : undefined
  return problem === undefined
    ? Effect.void
    : fail({ operation, ...(typeof id === "string" ? { id } : {}) }, "invalid_id", problem)
}

/** The order of code points, which is the order of bytes in UTF-8, and so that of databases. */
export const compareIds = (left: string, right: string): number => {
  const length = Math.min(left.length, right.length)
  for (let i = 0; i < length; i++) {
    const a = left.charCodeAt(i)
    const b = right.charCodeAt(i)
    // Of two different units, surrogates stand for higher code points than any unit that is none.
    if (a !== b) return isSurrogate(a) === isSurrogate(b) ? a - b : isSurrogate(a) ? 1 : -1
  }
  return left.length - right.length
}

const isSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdfff

/** A cursor is the last id of its page, marked so that no other text passes for one. */
export const cursorOf = (id: string): string => `after:${id}`

export const idOfCursor = (operation: string, cursor: string | undefined): Effect.Effect<string, StoreError> =>
  cursor === undefined
    ? Effect.succeed("")
    : typeof cursor === "string" && cursor.startsWith("after:") && cursor.length > "after:".length
    ? Effect.succeed(cursor.slice("after:".length))
    : fail({ operation }, "invalid_cursor", `${JSON.stringify(cursor)} is no cursor of this store`)

/** What a page tells about a session. */
export const Summary = Schema.Struct({
  id: Schema.String,
  version: Schema.Int,
  status: Status,
  updatedAt: Schema.Finite
}).annotations({ identifier: "SessionStore.Summary" })

export interface Summary extends Schema.Schema.Type<typeof Summary> {}

export const summaryOf = ({ session, updatedAt }: Record): Summary => ({
  id: session.id,
  version: session.version,
  status: session.status,
  updatedAt
})
