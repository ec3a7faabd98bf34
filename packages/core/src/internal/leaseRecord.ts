/**
 * A lease as a text.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { State } from "../SessionLease.ts"
import type { StoreError } from "../StoreError.ts"
import { isPlainObject } from "./json.ts"
import { corrupt, fail, type Frame, notEncodable } from "./sessionStoreRecord.ts"

const format = 1

const LeaseRecord = Schema.Struct({
  format: Schema.Literal(format),
  sessionId: Schema.String,
  token: Schema.Int,
  holder: Schema.String,
  expiresAt: Schema.Finite
})

const print = Schema.encode(Schema.parseJson(LeaseRecord))
const parse = Schema.decode(Schema.parseJson())
const readRecord = Schema.decodeUnknown(LeaseRecord)

export const encode = (frame: Frame, state: State): Effect.Effect<string, StoreError> =>
  Effect.mapError(print({ format, ...state }), notEncodable(frame))

export const decode = Effect.fnUntraced(function*(frame: Frame, text: string) {
  const json: unknown = yield* Effect.mapError(parse(text), corrupt(frame))
  if (isPlainObject(json) && typeof json["format"] === "number" && json["format"] > format) {
    return yield* fail(frame, "newer_format", `it has format ${json["format"]}, this version reads up to ${format}`)
  }
  const record = yield* Effect.mapError(readRecord(json), corrupt(frame))
  // A file that was copied under another name is not about that other session.
  return record.sessionId === frame.id ? record : yield* fail(frame, "corrupt", `it is about ${record.sessionId}`)
})
