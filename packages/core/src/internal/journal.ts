/**
 * The journal as the calls of a batch see it, and the way between what happened and what is noted of it.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import type { ToolEvent } from "../Event.ts"
import type { Any } from "../Tool.ts"
import type { ToolCall } from "../ToolCall.ts"
import * as ToolError from "../ToolError.ts"
import type { JournalError, Prepared, StoredOutcome, ToolJournal } from "../ToolJournal.ts"
import { awaitingUser } from "./fold.ts"
import { digestOf } from "./journalDigest.ts"
import { type Ids, unchecked } from "./lift.ts"
import { compiledOf } from "./tool.ts"

export type Completed = Extract<ToolEvent, { readonly _tag: "ToolExecutionCompleted" }>

/** The last event of a call. */
export type Ending = Extract<
  ToolEvent,
  { readonly _tag: "ToolResultEncoded" | "AskUserRequested" | "ToolHalt" }
>

/** The journal of one session. A service that throws fails its call, as one that fails. */
export class CallJournal {
  private readonly journal: typeof ToolJournal.Service
  private readonly sessionId: string

  constructor(journal: typeof ToolJournal.Service, sessionId: string) {
    this.journal = journal
    this.sessionId = sessionId
  }

  prepare({ arguments: args, id: toolCallId, name: toolName }: ToolCall): Effect.Effect<Prepared, JournalError> {
    return Effect.suspend(() =>
      this.journal.prepare({ sessionId: this.sessionId, toolCallId }, { toolName, digest: digestOf(toolName, args) })
    )
  }

  settle(toolCallId: string, outcome: StoredOutcome): Effect.Effect<void, JournalError> {
    return Effect.suspend(() => this.journal.settle({ sessionId: this.sessionId, toolCallId }, outcome))
  }
}

/** What is noted of a call that ended with these events. */
export const toStored = (tool: Any, completed: Completed, ending: Ending): StoredOutcome => ({
  result: isReported(completed.result) ? withForm(tool, completed.result) : completed.result,
  content: ending._tag === "AskUserRequested" ? awaitingUser : ending.content ?? "",
  isError: ending._tag !== "AskUserRequested" && ending.isError,
  halts: ending._tag === "ToolHalt",
  ...(completed.replaced === undefined ? {} : { replaced: completed.replaced })
})

/** The events a call with this note ends with. */
export const fromStored = (
  ids: Ids,
  { content, halts, isError, replaced, result }: StoredOutcome
): readonly [Completed, Ending] => {
  const completed: Completed = {
    _tag: "ToolExecutionCompleted",
    ...ids,
    result,
    ...(replaced === undefined ? {} : { replaced })
  }
  if (result._tag === "AskUser") {
    return [completed, { _tag: "AskUserRequested", ...ids, question: result.question, options: result.options }]
  }
  if (result._tag === "Halt") {
    const { reason, result: value } = result
    return [completed, { _tag: "ToolHalt", ...ids, reason, result: value, content, isError }]
  }
  return halts && result._tag !== "Ok"
    ? [completed, { _tag: "ToolHalt", ...ids, reason: "tool_error", error: result, content, isError }]
    : [completed, { _tag: "ToolResultEncoded", ...ids, content, isError }]
}

const isReported = (result: Completed["result"]): result is ToolError.HandlerFailed => result._tag === "HandlerFailed"

// A declared failure is noted in the form its schema gives it, from which the schema can bring it back.
const withForm = (tool: Any, error: ToolError.HandlerFailed): ToolError.HandlerFailed => {
  if (tool.failure === undefined) return error
  const form = Either.try(() => compiledOf(tool).encodeFailure!(error.failure))
  return Either.isRight(form) && Either.isEither(form.right) && Either.isRight(form.right)
    ? new ToolError.HandlerFailed({ ...error, failure: form.right.right }, unchecked)
    : error
}

/** A noted outcome with its value as the tool's schema has it. What the schema no longer knows stays plain data. */
export const revive = (tool: Any, stored: StoredOutcome): StoredOutcome | Effect.Effect<StoredOutcome> => {
  const { result } = stored
  const decode = (schema: Schema.Schema.Any, form: unknown, put: (value: unknown) => Completed["result"]) =>
    Schema.decodeUnknown(schema as Schema.Schema<unknown>)(form).pipe(
      Effect.map((value): StoredOutcome => ({ ...stored, result: put(value) })),
      Effect.catchAllCause(() => Effect.succeed(stored))
    )
  if (result._tag === "Ok" && tool.success !== undefined && "encoded" in result) {
    return decode(tool.success, result.encoded, (value) => ({ ...result, value }))
  }
  if (result._tag === "HandlerFailed" && tool.failure !== undefined) {
    return decode(
      tool.failure,
      result.failure,
      (failure) => new ToolError.HandlerFailed({ ...result, failure }, unchecked)
    )
  }
  return stored
}
