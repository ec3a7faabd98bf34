/**
 * Why a turn failed, in one sentence, and what to do about it.
 */
import type { AdapterError, Reason } from "@allm/core/AdapterError"
import type { EncodingFailed } from "@allm/core/ToolError"
import type { TurnError } from "../conversation.ts"

/** One sentence, with advice. */
export const explain = (error: TurnError | EncodingFailed): string => {
  switch (error._tag) {
    case "AdapterError":
      return explainAdapter(error)
    case "UnknownTool":
      return `The model called a tool that does not exist: ${error.toolName}.`
    case "LeaseHeld":
      return `Somebody else works on this session (${error.holder}); wait until that is over, or /new begins another.`
    case "LeaseLost":
      return "Somebody else took this session over; /resume goes on from what is stored."
    case "NotSaved":
    case "StoreError":
    case "JournalError":
      return `The session could not be stored: ${error.message}`
    default:
      return error.message
  }
}

const advice: { readonly [R in Reason]: string } = {
  authentication_failed: "Check the key, or choose another model with --model.",
  rate_limited: "Wait a moment and try again.",
  invalid_request: "Choose another model with --model, or begin anew with /new.",
  provider_unavailable: "Try again in a moment.",
  context_length_exceeded: "Begin anew with /new.",
  content_filter: "Say it in another way.",
  timeout: "Try again.",
  network_error: "Check the connection and try again.",
  malformed_response: "Try again, or choose another model with --model.",
  unsupported_feature: "Choose another model with --model.",
  no_scripted_response: "Begin anew with /new.",
  unknown: "Try again."
}

const explainAdapter = (error: AdapterError): string =>
  `${sentence(error.message.replace(/^model call failed/, "The model call failed"))} ${advice[error.reason]}`

/** What a provider says may go on for pages. */
const sentence = (text: string): string => {
  const line = text.replace(/\s+/g, " ").trim()
  const short = line.length > 300 ? `${line.slice(0, 299)}…` : line
  return /[.!?…]$/.test(short) ? short : `${short}.`
}
