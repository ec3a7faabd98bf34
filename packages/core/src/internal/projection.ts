/**
 * What the model reads about a failure. The other channel, to operators, carries everything; this one carries what a tool
 * declared, what it plainly said, and what the model can correct. Never what a crash said.
 */
import * as Cause from "effect/Cause"
import * as Either from "effect/Either"
import type { Any } from "../Tool.ts"
import type { HandlerFailed, ToolError } from "../ToolError.ts"
import { findNonJson, formatPath } from "./json.ts"
import { compiledOf } from "./tool.ts"

/** The value to encode as the message of a failed call. */
export const forModel = (
  tool: Any | undefined,
  error: ToolError,
  exposeDefects: boolean
): { readonly error: unknown } => {
  const defect = exposeDefects && error.cause !== undefined ? { cause: Cause.pretty(error.cause) } : {}
  switch (error._tag) {
    case "HandlerFailed":
      return { error: reported(tool, error), ...defect }
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
      return { error: `${plain(error)}: stopped because another call ended the turn; it may have taken effect` }
    case "Skipped":
      return { error: `${plain(error)}: ${error.detail ?? "not started because another call ended the turn"}` }
    default:
      return { error: plain(error), ...defect }
  }
}

const plain = (error: ToolError): string =>
  error.toolName === undefined ? `tool error: ${error.reason}` : `tool error (${error.toolName}): ${error.reason}`

const reported = (tool: Any | undefined, error: HandlerFailed): unknown =>
  // A schema or a getter that throws says nothing the model should read.
  Either.getOrElse(Either.try(() => readable(tool, error)), () => plain(error))

const readable = (tool: Any | undefined, error: HandlerFailed): unknown => {
  const encode = tool === undefined ? undefined : compiledOf(tool).encodeFailure
  const declared = encode?.(error.failure)
  if (declared !== undefined && Either.isEither(declared) && Either.isRight(declared)) return declared.right
  // Undeclared: text and plain data were meant to be read. Anything with behaviour of its own may say too much.
  return findNonJson(error.failure) === undefined ? error.failure : plain(error)
}
