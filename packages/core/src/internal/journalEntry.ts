/**
 * The text of one entry of a journal.
 */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { ToolError } from "../ToolError.ts"
import { ToolOutcome } from "../ToolResult.ts"
import { parseErrorInWords } from "./issues.ts"

export const StoredOutcome = Schema.Struct({
  result: Schema.Union(ToolOutcome, ToolError),
  /** What the call's message says. */
  content: Schema.String,
  isError: Schema.Boolean,
  /** The policy ended the run at this failure. */
  halts: Schema.optionalWith(Schema.Boolean, { default: () => false }),
  /** The failure in whose place the policy put the result. */
  replaced: Schema.optionalWith(ToolError, { exact: true })
}).annotations({ identifier: "StoredOutcome" })

const version = 1

const Entry = Schema.Struct({
  version: Schema.Literal(version),
  sessionId: Schema.String,
  toolCallId: Schema.String,
  toolName: Schema.String,
  digest: Schema.String,
  /** Absent until the call is settled. */
  outcome: Schema.optionalWith(StoredOutcome, { exact: true })
})

export interface Entry extends Schema.Schema.Type<typeof Entry> {}

export interface Problem {
  readonly reason: "corrupt" | "unsupported_version"
  readonly detail: string
}

const decodeEntry = Schema.decodeUnknownEither(Entry)
const encodeEntry = Schema.encodeEither(Schema.parseJson(Entry))

/** The values of an outcome take their JSON form on the way, whatever they are. */
export const print = (entry: Omit<Entry, "version">): Either.Either<string, string> =>
  Either.mapLeft(encodeEntry({ version, ...entry }), (error) => `it cannot be noted: ${parseErrorInWords(error)}`)

export const parse = (text: string): Either.Either<Entry, Problem> =>
  Either.try({
    try: (): unknown => JSON.parse(text),
    catch: (): Problem => ({ reason: "corrupt", detail: "the entry is not JSON" })
  }).pipe(
    Either.filterOrLeft((json) => !isFromTheFuture(json), (): Problem => ({
      reason: "unsupported_version",
      detail: `the entry was written by a later version of the library; this one reads version ${version}`
    })),
    Either.flatMap((json) =>
      Either.mapLeft(decodeEntry(json), (error): Problem => ({
        reason: "corrupt",
        detail: `the entry does not have the form of one: ${parseErrorInWords(error)}`
      }))
    )
  )

const isFromTheFuture = (json: unknown): boolean =>
  typeof json === "object" && json !== null && "version" in json && typeof json.version === "number" &&
  json.version > version
