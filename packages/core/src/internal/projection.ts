/**
 * What the model reads about a failure. The other channel, to operators, carries everything; this one carries what a tool
 * declared, what it plainly said, and what the model can correct. Never what a crash said.
 */
import * as Cause from "effect/Cause"
import * as Either from "effect/Either"
import type { HandlerFailed, ToolError } from "../ToolError.ts"
import { findNonJson, formatPath } from "./json.ts"

/**
 * What the schema of a tool's declared failures made of a failure: its form, a left side when it is not declared, or
 * nothing when the schema could not tell. Without a schema nothing is declared.
 */
export type Declared = Either.Either<unknown, unknown> | undefined

export const undeclared: Declared = Either.left(undefined)

/** The value to encode as the message of a failed call. */
export const forModel = (
  error: ToolError,
  declared: Declared,
  exposeDefects: boolean
): { readonly error: unknown } => {
  const defect = exposeDefects && error.cause !== undefined ? { cause: pretty(error.cause) } : {}
  switch (error._tag) {
    case "HandlerFailed":
      return { error: reported(error, declared), ...defect }
    case "InvalidArguments":
      return { error: plain(error), issues: error.issues } as { readonly error: unknown }
    case "EncodingFailed":
      return { error: `${plain(error)} at ${formatPath(error.path)}: ${error.detail}`, ...defect }
    case "InvalidReturn":
    case "NotFound":
      return { error: `${plain(error)}: ${error.detail}`, ...defect }
    case "Denied":
      return { error: error.detail === undefined ? plain(error) : `${plain(error)}: ${error.detail}` }
    case "Interrupted":
      return { error: `${plain(error)}: stopped because the turn was ended; it may have taken effect` }
    case "Skipped":
      return { error: `${plain(error)}: ${error.detail ?? "not started because the turn was ended"}` }
    default:
      return { error: plain(error), ...defect }
  }
}

const plain = (error: ToolError): string =>
  error.toolName === undefined ? `tool error: ${error.reason}` : `tool error (${error.toolName}): ${error.reason}`

// Some causes cannot be printed: a bigint, a getter that throws.
const pretty = (cause: Cause.Cause<unknown>): string =>
  Either.getOrElse(Either.try(() => Cause.pretty(cause)), () => "a cause that cannot be printed")

const reported = (error: HandlerFailed, declared: Declared): unknown => {
  if (declared === undefined) return plain(error)
  if (Either.isRight(declared)) return declared.right
  // Undeclared: text and plain data were meant to be read. Anything with behaviour of its own may say too much, and so may
  // a getter that throws.
  const isData = Either.getOrElse(Either.try(() => findNonJson(error.failure) === undefined), () => false)
  return isData ? error.failure : plain(error)
}
