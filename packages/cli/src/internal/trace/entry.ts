/**
 * One line of a trace: something that happened in a turn, and when.
 */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"

const Text = Schema.optionalWith(Schema.String, { exact: true })
const Count = Schema.optionalWith(Schema.Finite, { exact: true })

// `turn` tells the lines of two processes apart that write to the same trace.
const common = { at: Schema.Finite, turn: Schema.String }
const ofCall = { ...common, toolCallId: Schema.String, toolName: Schema.String }

/** Somebody said something, or let the session go on. */
export const TurnBegan = Schema.TaggedStruct("TurnBegan", { ...common, input: Text, model: Schema.String })

/** The first sign of an answer. The model was asked when the turn or the step before was over. */
export const ModelStarted = Schema.TaggedStruct("ModelStarted", { ...common, model: Text })

/** The first piece of text, of thoughts or of a call. */
export const ModelSpoke = Schema.TaggedStruct("ModelSpoke", {
  ...common,
  first: Schema.Literal("text", "reasoning", "call")
})

/** What a model call used up. */
export const Tokens = Schema.Struct({
  inputTokens: Count,
  outputTokens: Count,
  totalTokens: Count,
  cachedInputTokens: Count,
  reasoningTokens: Count,
  totalCost: Count
})

export interface Tokens extends Schema.Schema.Type<typeof Tokens> {}

/** The answer is complete. Lengths are characters. */
export const ModelEnded = Schema.TaggedStruct("ModelEnded", {
  ...common,
  finishReason: Text,
  textLength: Schema.Finite,
  reasoningLength: Schema.Finite,
  calls: Schema.Finite,
  usage: Schema.optionalWith(Tokens, { exact: true })
})

/** Something went wrong in the middle of an answer. */
export const ModelFailed = Schema.TaggedStruct("ModelFailed", { ...common, message: Schema.String })

/** The model made a call; `arguments` is the beginning of their text. */
export const ToolAsked = Schema.TaggedStruct("ToolAsked", { ...ofCall, arguments: Text })

export const ToolStarted = Schema.TaggedStruct("ToolStarted", ofCall)

export const ToolProgressed = Schema.TaggedStruct("ToolProgressed", { ...ofCall, value: Schema.String })

/** A call ended; `outcome` is the tag of its result or of its error, `replaced` that of an error nobody is told of. */
export const ToolEnded = Schema.TaggedStruct("ToolEnded", {
  ...ofCall,
  outcome: Schema.String,
  message: Text,
  limitMillis: Count,
  abandoned: Schema.optionalWith(Schema.Boolean, { exact: true }),
  replaced: Text,
  /** How often it told of its progress, also where that was too often to be noted. */
  progress: Count
})

/** The model's message of a call is ready. */
export const ToolAnswered = Schema.TaggedStruct("ToolAnswered", {
  ...ofCall,
  length: Schema.Finite,
  isError: Schema.Boolean
})

export const QuestionAsked = Schema.TaggedStruct("QuestionAsked", { ...ofCall, question: Schema.String })

/** A call ends the run. With the reason `approval`, it waits for a person and has not started. */
export const ToolHalted = Schema.TaggedStruct("ToolHalted", { ...ofCall, reason: Schema.String })

/** A call that somebody else is to run. */
export const ManualCall = Schema.TaggedStruct("ManualCall", ofCall)

export const StepEnded = Schema.TaggedStruct("StepEnded", { ...common, halt: Text })

export const ChatEnded = Schema.TaggedStruct("ChatEnded", { ...common, reason: Schema.String, message: Text })

/** A line of the log. */
export const Logged = Schema.TaggedStruct("Logged", {
  ...common,
  level: Schema.String,
  message: Schema.String,
  toolCallId: Text,
  toolName: Text
})

/** Always the last line of a turn, unless the process died. */
export const TurnEnded = Schema.TaggedStruct("TurnEnded", {
  ...common,
  outcome: Schema.Literal("completed", "interrupted", "failed"),
  /** The tag of what failed, and what it says. */
  error: Text,
  message: Text
})

export const Entry = Schema.Union(
  TurnBegan,
  ModelStarted,
  ModelSpoke,
  ModelEnded,
  ModelFailed,
  ToolAsked,
  ToolStarted,
  ToolProgressed,
  ToolEnded,
  ToolAnswered,
  QuestionAsked,
  ToolHalted,
  ManualCall,
  StepEnded,
  ChatEnded,
  Logged,
  TurnEnded
)

export type Entry = typeof Entry.Type

/** What was read of a trace. */
export interface Recording {
  readonly entries: ReadonlyArray<Entry>
  /** Lines that a later version wrote. */
  readonly unknown: number
  /** Lines that were not written to their end. */
  readonly torn: number
}

const Line = Schema.parseJson(Entry)
const encode = Schema.encodeEither(Line)
const decode = Schema.decodeUnknownEither(Entry)
const parse = Schema.decodeEither(Schema.parseJson())

/** Entries as lines, each with its end. What has no line is left out. */
export const print = (entries: ReadonlyArray<Entry>): string =>
  entries.map((entry) => Either.match(encode(entry), { onLeft: () => "", onRight: (line) => `${line}\n` })).join("")

/** Reads what it can: the last line of a process that died is torn, and later versions write lines of other kinds. */
export const read = (text: string): Recording => {
  const entries: Array<Entry> = []
  let unknown = 0
  let torn = 0
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue
    const parsed = parse(line)
    if (Either.isLeft(parsed)) {
      torn++
      continue
    }
    const entry = decode(parsed.right)
    if (Either.isRight(entry)) entries.push(entry.right)
    else unknown++
  }
  return { entries, unknown, torn }
}
