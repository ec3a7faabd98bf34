/**
 * An answer of Gemini, read chunk by chunk.
 */
import {
  AdapterError,
  type Event,
  type HttpAdapter,
  type Message,
  type Request,
  type Response,
  type ToolCall,
  type Usage
} from "@allm/core"
import { OpenCall } from "./openCall.ts"
import { metadataOf, name, type Piece } from "./pieces.ts"
import { errorOf } from "./refusal.ts"
import { countOf, listOf, objectOf, textOf, type Wire } from "./wire.ts"

type Out = Array<Event.AdapterEvent>

const finishReasons: { readonly [reason: string]: Response.FinishReason } = {
  STOP: "stop",
  FUNCTION_CALL: "tool_calls",
  MAX_TOKENS: "length",
  SAFETY: "content_filter",
  RECITATION: "content_filter",
  BLOCKLIST: "content_filter",
  PROHIBITED_CONTENT: "content_filter",
  SPII: "content_filter",
  MODEL_ARMOR: "content_filter",
  IMAGE_SAFETY: "content_filter",
  IMAGE_PROHIBITED_CONTENT: "content_filter",
  IMAGE_RECITATION: "content_filter",
  MALFORMED_FUNCTION_CALL: "error",
  MALFORMED_RESPONSE: "error",
  UNEXPECTED_TOOL_CALL: "error",
  TOO_MANY_TOOL_CALLS: "error",
  MISSING_THOUGHT_SIGNATURE: "error"
}

export class Decoder implements HttpAdapter.Decoder {
  private readonly request: Request.Request
  /** Something came that is an answer. */
  private hasBegun = false
  private isAnnounced = false
  private responseId: string | undefined
  private model: string | undefined
  private text = ""
  private readonly images: Array<{ readonly at: number; readonly image: Message.ImagePart }> = []
  private readonly calls: Array<ToolCall.ToolCall> = []
  private open: OpenCall | undefined
  private ids: Set<string> | undefined
  private readonly pieces: Array<Piece> = []
  private usage: Wire | undefined
  private rawFinishReason: string | undefined
  private isBlocked = false
  private told: { [key: string]: unknown } | undefined

  constructor(request: Request.Request) {
    this.request = request
  }

  readonly frame = (data: unknown): HttpAdapter.Decoded => {
    const chunk = objectOf(data)
    if (chunk === undefined) return []
    if ((chunk["error"] ?? undefined) !== undefined) return errorOf(chunk)
    const out: Out = []
    this.chunk(chunk, out)
    return this.announced(out)
  }

  /** The whole answer, or, when server-sent events were not asked for, the list of its chunks. */
  readonly body = (body: unknown): HttpAdapter.Decoded => {
    const out: Out = []
    for (const chunk of Array.isArray(body) ? body : [body]) {
      const decoded = this.frame(chunk)
      if (!isEvents(decoded)) return decoded
      out.push(...decoded)
    }
    const end = this.end(false)
    return isEvents(end) ? [...out, ...end] : end
  }

  /** Chunks may follow the one with the reason, so the answer is complete only now. */
  readonly end = (isDone: boolean): HttpAdapter.Decoded => {
    if (!this.hasBegun) return []
    if (this.rawFinishReason === undefined && !isDone) return this.isAnnounced ? [] : brokenOff
    const out: Out = []
    const reason = this.finishReason()
    this.close(reason !== "length" && reason !== "error", out)
    if (reason === "error") out.push({ _tag: "ErrorOccurred", error: this.failure() })
    const usage = this.usage === undefined ? undefined : usageOf(this.usage)
    out.push({
      _tag: "MessageCompleted",
      message: this.message(),
      finishReason: reason,
      ...(this.rawFinishReason === undefined ? {} : { rawFinishReason: this.rawFinishReason }),
      ...(usage === undefined ? {} : { usage }),
      metadata: this.told === undefined ? {} : { [name]: this.told }
    })
    return this.announced(out)
  }

  /**
   * The beginning is told with what comes after it: an error that comes first is one before the answer, so the call can be
   * repeated.
   */
  private announced(out: Out): Out {
    if (this.isAnnounced || out.length === 0) return out
    this.isAnnounced = true
    const { model, responseId: id } = this
    return [
      { _tag: "MessageStarted", ...(id === undefined ? {} : { id }), ...(model === undefined ? {} : { model }) },
      ...out
    ]
  }

  private chunk(chunk: Wire, out: Out): void {
    const candidate = firstOf(chunk["candidates"])
    const feedback = objectOf(chunk["promptFeedback"])
    if (!this.isAnnounced && (candidate !== undefined || feedback !== undefined)) this.begin(chunk)
    const usage = objectOf(chunk["usageMetadata"])
    // Early chunks may say something about the traffic and nothing about tokens.
    if (usage !== undefined && (this.usage === undefined || usage["promptTokenCount"] !== undefined)) this.usage = usage
    if (candidate !== undefined) this.candidate(candidate, out)
    const blockReason = textOf(feedback?.["blockReason"])
    if (feedback !== undefined) this.tell("promptFeedback", feedback)
    if (blockReason !== undefined) {
      this.isBlocked = true
      this.rawFinishReason = blockReason
    }
  }

  private begin(chunk: Wire): void {
    this.hasBegun = true
    this.responseId ??= textOf(chunk["responseId"])
    this.model ??= textOf(chunk["modelVersion"])
  }

  private candidate(candidate: Wire, out: Out): void {
    for (const key in candidate) {
      switch (key) {
        case "content": {
          const parts = objectOf(candidate[key])?.["parts"]
          if (Array.isArray(parts)) { for (const part of parts) this.part(objectOf(part), out) }
          break
        }
        case "finishReason":
          this.rawFinishReason = textOf(candidate[key]) ?? this.rawFinishReason
          break
        case "index":
        case "tokenCount":
          break
        default:
          this.tell(key, candidate[key])
      }
    }
  }

  /** What else was said of the answer, such as where it was looked up. */
  private tell(key: string, value: unknown): void {
    this.told ??= {}
    this.told[key] = value
  }

  private part(part: Wire | undefined, out: Out): void {
    if (part === undefined) return
    const signature = textOf(part["thoughtSignature"])
    const { functionCall, inlineData, text } = part
    if (typeof text === "string") {
      if (part["thought"] === true) {
        if (text !== "") out.push({ _tag: "ReasoningDelta", delta: text })
        if (signature !== undefined) this.pieces.push({ part })
        return
      }
      if (text !== "") out.push({ _tag: "TextDelta", delta: text })
      this.text += text
      return this.textPiece(text.length, signature)
    }
    const call = objectOf(functionCall)
    if (call !== undefined) return this.call(call, signature, out)
    const image = part["thought"] === true ? undefined : imageOf(inlineData)
    if (image !== undefined) {
      this.images.push({ at: this.text.length, image })
      this.pieces.push({ image: true, ...signed(signature) })
    } else if (part["thought"] !== true || signature !== undefined) this.pieces.push({ part })
  }

  /** A part with a signature must not be merged with its neighbours. */
  private textPiece(length: number, signature: string | undefined): void {
    const last = this.pieces[this.pieces.length - 1]
    if (signature !== undefined) this.pieces.push({ text: length, signature })
    else if (last !== undefined && "text" in last && last.signature === undefined) last.text += length
    else if (length > 0) this.pieces.push({ text: length })
  }

  private call(wire: Wire, signature: string | undefined, out: Out): void {
    const toolName = textOf(wire["name"])
    if (toolName !== undefined && toolName !== "") {
      this.close(true, out)
      const given = textOf(wire["id"])
      const id = this.idFor(given)
      this.open = new OpenCall(id, toolName)
      this.pieces.push({ call: id, ...(given === undefined ? {} : { id: given }) })
      out.push({ _tag: "ToolCallStarted", toolCallId: id, toolName })
    }
    if (this.open === undefined) return
    this.open.add(wire)
    const piece = this.pieces[this.pieces.length - 1]
    if (signature !== undefined && piece !== undefined && "call" in piece) piece.signature ??= signature
    if (wire["willContinue"] !== true) this.close(true, out)
  }

  private close(isWhole: boolean, out: Out): void {
    if (this.open === undefined) return
    const toolCall = this.open.close(isWhole)
    this.open = undefined
    this.calls.push(toolCall)
    out.push({ _tag: "ToolCallCompleted", toolCall })
  }

  /**
   * The id of a call within the conversation. Gemini often gives none, and some servers give the name of the function, so
   * one is made of what does not change when the same answer is read again.
   */
  private idFor(given: string | undefined): string {
    this.ids ??= new Set(
      this.request.messages.flatMap((message) =>
        message.role === "assistant" ? message.toolCalls.map(({ id }) => id) : []
      )
    )
    const { ids, responseId } = this
    let id = given ?? ""
    let number = responseId === undefined || responseId === "" ? ids.size : this.calls.length
    const stem = responseId === undefined || responseId === ""
      ? "call"
      : `call_${responseId.replaceAll(/[^\w-]/g, "_")}`
    while (id === "" || ids.has(id)) id = `${stem}_${number++}`
    ids.add(id)
    return id
  }

  private finishReason(): Response.FinishReason {
    if (this.isBlocked) return "content_filter"
    const known = this.rawFinishReason === undefined ? "stop" : finishReasons[this.rawFinishReason] ?? "other"
    const hasCalls = this.calls.length > 0 || this.open !== undefined
    if (hasCalls && (known === "stop" || known === "other")) return "tool_calls"
    return known === "tool_calls" && !hasCalls ? "stop" : known
  }

  private failure(): AdapterError.AdapterError {
    const said = textOf(this.told?.["finishMessage"])
    return new AdapterError.AdapterError({
      reason: "malformed_response",
      provider: name,
      detail: `the answer ended with ${this.rawFinishReason}${said === undefined ? "" : `: ${said}`}`
    })
  }

  private message(): Message.AssistantMessage {
    return {
      role: "assistant",
      content: this.images.length === 0 ? this.text : this.content(),
      toolCalls: this.calls,
      metadata: metadataOf(this.pieces)
    }
  }

  private content(): ReadonlyArray<Message.Part> {
    const parts: Array<Message.Part> = []
    let from = 0
    const textTo = (to: number): void => {
      if (to > from) parts.push({ type: "text", text: this.text.slice(from, to) })
      from = to
    }
    for (const { at, image } of this.images) {
      textTo(at)
      parts.push(image)
    }
    textTo(this.text.length)
    return parts
  }
}

const isEvents = (decoded: HttpAdapter.Decoded): decoded is ReadonlyArray<Event.AdapterEvent> => Array.isArray(decoded)

const brokenOff = new AdapterError.AdapterError({
  reason: "network_error",
  provider: name,
  detail: "the answer broke off"
})

/** Of several candidates the first is the answer. */
const firstOf = (candidates: unknown): Wire | undefined => {
  const list = listOf(candidates)
  const first = objectOf(list[0])
  return first === undefined || (first["index"] ?? 0) === 0
    ? first
    : list.map(objectOf).find((one) => one?.["index"] === 0)
}

const signed = (signature: string | undefined): { readonly signature?: string } =>
  signature === undefined ? {} : { signature }

const imageOf = (inlineData: unknown): Message.ImagePart | undefined => {
  const blob = objectOf(inlineData)
  const mediaType = textOf(blob?.["mimeType"])
  const data = textOf(blob?.["data"])
  return mediaType !== undefined && data !== undefined && mediaType.startsWith("image/")
    ? { type: "image", source: { type: "base64", mediaType, data } }
    : undefined
}

/** Gemini counts thoughts apart from the answer; here they are output, as with everybody else. */
const usageOf = (usage: Wire): Usage.Usage => {
  const reasoningTokens = countOf(usage["thoughtsTokenCount"])
  const answerTokens = countOf(usage["candidatesTokenCount"])
  const promptTokens = countOf(usage["promptTokenCount"])
  const toolUseTokens = countOf(usage["toolUsePromptTokenCount"])
  return counted({
    inputTokens: sum(promptTokens, toolUseTokens),
    outputTokens: sum(answerTokens, reasoningTokens),
    totalTokens: countOf(usage["totalTokenCount"]),
    cachedInputTokens: countOf(usage["cachedContentTokenCount"]),
    reasoningTokens
  })
}

const sum = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0)

const counted = (counts: { readonly [K in keyof Usage.Usage]: Usage.Usage[K] | undefined }): Usage.Usage =>
  Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== undefined))
