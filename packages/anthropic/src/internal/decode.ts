/**
 * The answer of the API, as the events it means.
 */
import { AdapterError, type Event, type HttpAdapter, type Response, ToolCall } from "@allm/core"
import { errorIn } from "./errors.ts"
import { isObject, type JsonObject, listOf, objectOf, parsed, textOf } from "./json.ts"
import { type Kept, provider } from "./transcript.ts"
import { laterCounts, usageOf } from "./usage.ts"

const none: ReadonlyArray<Event.AdapterEvent> = []

/** A piece of the answer, as far as it has come. */
interface Piece {
  /** `answer` is the call that holds the answer where one in a form was asked for; `other` is only kept. */
  readonly kind: "text" | "thoughts" | "call" | "answer" | "other"
  /** As it began, but for what grows. */
  readonly block: { [key: string]: unknown; readonly type: string }
  /** What tells the events of this piece from those of the others of its kind. */
  readonly id: string | undefined
  /** The text, the thoughts, or the text of the arguments. */
  text: string
  citations: Array<unknown> | undefined
  call: ToolCall.ToolCall | undefined
  isOver: boolean
}

/** `answerTool` is the tool by which the answer comes, if not as text. */
export const decoder = (answerTool: string | undefined): HttpAdapter.Decoder => {
  const reading = new Reading(answerTool)
  return {
    frame: (data) => isObject(data) ? reading.frame(data) : none,
    end: (isDone) => reading.end(isDone),
    body: (body) => reading.body(body)
  }
}

class Reading {
  private readonly answerTool: string | undefined
  private readonly pieces: Array<Piece> = []
  private readonly byIndex = new Map<unknown, Piece>()
  private id: string | undefined
  private model: string | undefined
  private hasBegun = false
  private isAnnounced = false
  private isComplete = false
  private stopReason: string | undefined
  private counts: JsonObject = {}
  private details: JsonObject = {}

  constructor(answerTool: string | undefined) {
    this.answerTool = answerTool
  }

  frame(data: JsonObject): HttpAdapter.Decoded {
    switch (data["type"]) {
      case "content_block_delta":
        return this.announced(this.delta(data["index"], data["delta"]))
      case "content_block_start":
        return this.announced(this.begin(data["index"], objectOf(data["content_block"])))
      case "content_block_stop": {
        const piece = this.byIndex.get(data["index"])
        return piece === undefined ? none : this.announced(this.finish(piece))
      }
      case "message_start":
        this.start(objectOf(data["message"]))
        return none
      case "message_delta":
        this.stop(objectOf(data["delta"]), data)
        return none
      case "message_stop":
        return this.complete()
      default:
        return errorIn(data) ?? none
    }
  }

  end(isDone: boolean): HttpAdapter.Decoded {
    if (this.isComplete) return none
    // Some servers forget their last frame, or end as those of other providers do.
    if (this.stopReason !== undefined || (isDone && this.pieces.length > 0)) return this.complete()
    return this.hasBegun && !this.isAnnounced
      ? new AdapterError.AdapterError({ reason: "network_error", provider, detail: "the answer broke off" })
      : none
  }

  body(body: unknown): HttpAdapter.Decoded {
    const error = errorIn(body)
    if (error !== undefined) return error
    if (!isObject(body) || !Array.isArray(body["content"])) return none
    this.start(body)
    let decoded = this.announced(none)
    for (const [index, block] of body["content"].entries()) {
      decoded = andThen(decoded, () => this.begin(index, objectOf(block)))
      decoded = andThen(decoded, () => this.finish(this.pieces[index]!))
    }
    this.stop(body, body)
    return andThen(decoded, () => this.complete())
  }

  // --- the message ----------------------------------------------------------------------------------------------------

  private start(message: JsonObject): void {
    // Some servers say it twice.
    this.id ??= textOf(message["id"]) || undefined
    this.model ??= textOf(message["model"]) || undefined
    this.counts = laterCounts(this.counts, message["usage"])
    this.hasBegun = true
  }

  /**
   * The beginning is told with what comes after it: an error that comes first, such as that of a provider which is
   * overloaded, then counts as one before the answer, and the call can be repeated.
   */
  private announced(decoded: HttpAdapter.Decoded): HttpAdapter.Decoded {
    if (this.isAnnounced || !isEvents(decoded)) return decoded
    this.isAnnounced = true
    if (!this.hasBegun) return decoded
    return [{
      _tag: "MessageStarted",
      ...(this.id === undefined ? {} : { id: this.id }),
      ...(this.model === undefined ? {} : { model: this.model })
    }, ...decoded]
  }

  private stop(delta: JsonObject, frame: JsonObject): void {
    if (typeof delta["stop_reason"] === "string") this.stopReason = delta["stop_reason"]
    this.counts = laterCounts(this.counts, frame["usage"])
    this.details = laterCounts(this.details, {
      stopSequence: delta["stop_sequence"] ?? null,
      stopDetails: delta["stop_details"] ?? null,
      container: delta["container"] ?? null,
      contextManagement: frame["context_management"] ?? null
    })
  }

  private complete(): HttpAdapter.Decoded {
    if (this.isComplete) return none
    this.isComplete = true
    const finished = this.pieces.reduce<HttpAdapter.Decoded>(
      (decoded, piece) => andThen(decoded, () => this.finish(piece)),
      none
    )
    return this.announced(andThen(finished, () => [...this.held(), this.completed()]))
  }

  private completed(): Event.AdapterEvent {
    const toolCalls = this.pieces.flatMap(({ call }) => call === undefined ? [] : [call])
    const content = this.said().map(({ text }) => text).join("")
    const kept = this.kept()
    const usage = usageOf(this.counts)
    const serviceTier = this.counts["service_tier"]
    const details = serviceTier === undefined ? this.details : { ...this.details, serviceTier }
    return {
      _tag: "MessageCompleted",
      message: {
        role: "assistant",
        content,
        toolCalls,
        metadata: kept === undefined ? {} : { [provider]: { content: kept } }
      },
      finishReason: this.finishReason(toolCalls.length > 0),
      ...(this.stopReason === undefined ? {} : { rawFinishReason: this.stopReason }),
      ...(usage === undefined ? {} : { usage }),
      metadata: Object.keys(details).length === 0 ? {} : { [provider]: details }
    }
  }

  private finishReason(hasCalls: boolean): Response.FinishReason {
    switch (this.stopReason) {
      case "max_tokens":
      case "model_context_window_exceeded":
        return "length"
      case "refusal":
        return "content_filter"
    }
    if (hasCalls) return "tool_calls"
    switch (this.stopReason) {
      case undefined:
      case "end_turn":
      case "stop_sequence":
      // The only call was the answer.
      // oxlint-disable-next-line no-fallthrough
      case "tool_use":
        return "stop"
      // A pause, among others: the loop goes on from here.
      default:
        return "other"
    }
  }

  /** The pieces that the answer's text consists of. */
  private said(): ReadonlyArray<Piece> {
    const answer = this.pieces.find(({ kind }) => kind === "answer")
    return answer === undefined ? this.pieces.filter(({ kind }) => kind === "text") : [answer]
  }

  /**
   * What has to come back as it was, in order, when there is more than text and calls. Texts and arguments stand in the
   * message itself; here only their places are kept.
   */
  private kept(): ReadonlyArray<Kept> | undefined {
    const said = this.said()
    const kept = this.pieces.flatMap((piece): ReadonlyArray<Kept> => {
      const { block, call, citations, kind, text } = piece
      switch (kind) {
        case "text":
        case "answer":
          return said.includes(piece)
            ? [{ type: "text", length: text.length, ...(citations === undefined ? {} : { citations }) }]
            : []
        case "thoughts":
          return [{ ...block, thinking: text }]
        case "call":
          return call === undefined ? [] : [{ type: "tool_use", id: call.id, ...callerOf(block) }]
        case "other":
          return [finishedBlock(piece)]
      }
    })
    return kept.every(isPlain) ? undefined : kept
  }

  // --- its pieces -----------------------------------------------------------------------------------------------------

  private begin(index: unknown, block: JsonObject): HttpAdapter.Decoded {
    const type = textOf(block["type"])
    const kind = this.kindOf(type, block)
    const ofKind = this.pieces.reduce((count, piece) => piece.kind === kind ? count + 1 : count, 0)
    const piece: Piece = {
      kind,
      block: { ...block, type },
      // Most answers have one text; only further ones need a name.
      id: ofKind === 0 ? undefined : String(this.pieces.length),
      text: "",
      citations: undefined,
      call: undefined,
      isOver: false
    }
    this.pieces.push(piece)
    this.byIndex.set(index, piece)
    switch (kind) {
      case "text":
        for (const citation of listOf(block["citations"])) this.cite(piece, citation)
        return this.grow(piece, textOf(block["text"]))
      case "thoughts":
        return this.grow(piece, textOf(block["thinking"]))
      case "call":
        return this.beginCall(piece)
      default:
        return none
    }
  }

  private kindOf(type: string, block: JsonObject): Piece["kind"] {
    switch (type) {
      case "text":
        return "text"
      case "thinking":
        return "thoughts"
      case "tool_use":
        return this.answerTool !== undefined && block["name"] === this.answerTool ? "answer" : "call"
      default:
        return "other"
    }
  }

  private beginCall(piece: Piece): HttpAdapter.Decoded {
    const { block } = piece
    const name = textOf(block["name"])
    if (name === "") {
      return new AdapterError.AdapterError({
        reason: "malformed_response",
        provider,
        detail: "a tool call names no tool"
      })
    }
    if (textOf(block["id"]) === "") block["id"] = `toolu_${this.id ?? "message"}_${this.pieces.length - 1}`
    return [{ _tag: "ToolCallStarted", toolCallId: textOf(block["id"]), toolName: name }]
  }

  private delta(index: unknown, delta: unknown): HttpAdapter.Decoded {
    if (!isObject(delta)) return none
    let piece = this.byIndex.get(index)
    if (piece === undefined) {
      const type = unannounced.get(delta["type"])
      if (type === undefined) return none
      this.begin(index, { type })
      piece = this.byIndex.get(index)!
    }
    switch (delta["type"]) {
      case "text_delta":
        return piece.kind === "text" ? this.grow(piece, textOf(delta["text"])) : none
      case "thinking_delta":
        return piece.kind === "thoughts" ? this.grow(piece, textOf(delta["thinking"])) : none
      case "input_json_delta":
        return piece.kind === "text" || piece.kind === "thoughts"
          ? none
          : this.grow(piece, textOf(delta["partial_json"]))
      case "citations_delta":
        this.cite(piece, delta["citation"])
        return none
      default:
        complement(piece.block, delta)
        return none
    }
  }

  private grow(piece: Piece, text: string): ReadonlyArray<Event.AdapterEvent> {
    if (text === "" || piece.isOver) return none
    if (piece.text === "") this.place(piece)
    piece.text += text
    switch (piece.kind) {
      case "text":
        return this.answerTool === undefined ? [delta("TextDelta", piece.id, text)] : none
      case "thoughts":
        return [delta("ReasoningDelta", piece.id, text)]
      case "call":
        return [{ _tag: "ToolCallDelta", toolCallId: textOf(piece.block["id"]), delta: text }]
      case "answer":
        return this.said()[0] === piece ? [{ _tag: "TextDelta", delta: text }] : none
      case "other":
        return none
    }
  }

  /** Texts stand in the order in which they are heard, should they ever be written side by side. */
  private place(piece: Piece): void {
    const isLate = piece.kind === "text" &&
      this.pieces.slice(this.pieces.indexOf(piece)).some(({ kind, text }) => kind === "text" && text !== "")
    if (isLate) this.pieces.push(...this.pieces.splice(this.pieces.indexOf(piece), 1))
  }

  // The API refuses to be given back what it adds to the place of a citation.
  private cite(piece: Piece, citation: unknown): void {
    if (!isObject(citation)) return
    const { file_id: _fileId, ...place } = citation
    piece.citations ??= []
    piece.citations.push(place)
  }

  private finish(piece: Piece): HttpAdapter.Decoded {
    if (piece.isOver) return none
    const rest = piece.kind === "call" || piece.kind === "answer" ? this.grow(piece, wholeInput(piece)) : none
    piece.isOver = true
    switch (piece.kind) {
      case "text":
        return this.answerTool === undefined ? completedText(piece) : none
      case "answer":
        return this.said()[0] === piece ? [...rest, { _tag: "TextCompleted", text: piece.text }] : none
      case "call":
        piece.call = ToolCall.fromRaw({
          id: textOf(piece.block["id"]),
          name: textOf(piece.block["name"]),
          rawArguments: piece.text
        })
        return [...rest, { _tag: "ToolCallCompleted", toolCall: piece.call }]
      default:
        return none
    }
  }

  /** Texts that came where a call was to hold the answer: they count if it did not come. */
  private held(): ReadonlyArray<Event.AdapterEvent> {
    if (this.answerTool === undefined) return none
    return this.said().flatMap((piece) =>
      piece.kind === "answer" || piece.text === ""
        ? []
        : [delta("TextDelta", piece.id, piece.text), ...completedText(piece)]
    )
  }
}

const isEvents = (decoded: HttpAdapter.Decoded): decoded is ReadonlyArray<Event.AdapterEvent> => Array.isArray(decoded)

/** One after the other, unless the first is an error. */
const andThen = (first: HttpAdapter.Decoded, next: () => HttpAdapter.Decoded): HttpAdapter.Decoded => {
  if (!isEvents(first)) return first
  const second = next()
  return isEvents(second) ? first.concat(second) : second
}

const delta = (
  _tag: "TextDelta" | "ReasoningDelta",
  id: string | undefined,
  text: string
): Event.AdapterEvent => id === undefined ? { _tag, delta: text } : { _tag, id, delta: text }

const completedText = ({ id, text }: Piece): ReadonlyArray<Event.AdapterEvent> =>
  text === "" ? none : [{ _tag: "TextCompleted", ...(id === undefined ? {} : { id }), text }]

/** What a delta belongs to when its piece was never begun. */
const unannounced: ReadonlyMap<unknown, string> = new Map([["text_delta", "text"], ["thinking_delta", "thinking"]])

// Signatures, and whatever else is to come: texts grow, all else is replaced.
const complement = (block: Record<string, unknown>, { type: _type, ...fields }: JsonObject): void => {
  for (const [key, value] of Object.entries(fields)) {
    const before = block[key]
    block[key] = typeof before === "string" && typeof value === "string" ? before + value : value
  }
}

/** The arguments, where they came with the beginning of the call rather than piece by piece. */
const wholeInput = ({ block, kind, text }: Piece): string => {
  if (text !== "") return ""
  const { input } = block
  if (isObject(input) ? Object.keys(input).length > 0 : input !== undefined && input !== null) {
    return JSON.stringify(input)
  }
  return kind === "answer" ? "{}" : ""
}

const finishedBlock = ({ block, text }: Piece): Kept => {
  const input = text === "" ? undefined : parsed(text)
  return input === undefined ? block : { ...block, input }
}

/** By whom the model was called to call, if it was not its own idea. */
const callerOf = ({ caller }: JsonObject): JsonObject =>
  isObject(caller) && caller["type"] !== "direct" ? { caller } : {}

const isPlain = (kept: Kept): boolean => {
  switch (kept.type) {
    case "text":
      return kept["citations"] === undefined
    case "tool_use":
      return kept["caller"] === undefined
    default:
      return false
  }
}
