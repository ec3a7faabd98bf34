/**
 * Reading Chat Completions, as OpenAI writes them and as the many servers do that are nearly compatible.
 */
import type { AdapterError } from "@allm/core/AdapterError"
import type { Decoded, Decoder } from "@allm/core/HttpAdapter"
import type { FinishReason } from "@allm/core/Response"
import { Answer, type Block, type Call } from "./answer.ts"
import { brokenOff, failureIn, namelessCall } from "./failure.ts"
import { compact, type Fields, fieldsOf, listOf, numberOf, objectsOf, textOf } from "./lenient.ts"
import { usageOf } from "./usage.ts"

const finishReasons: { readonly [reason: string]: FinishReason } = {
  stop: "stop",
  eos: "stop",
  end_turn: "stop",
  stop_sequence: "stop",
  length: "length",
  max_tokens: "length",
  model_length: "length",
  tool_calls: "tool_calls",
  function_call: "tool_calls",
  content_filter: "content_filter",
  refusal: "content_filter",
  error: "error"
}

/** A call whose name may still be to come. */
interface Draft {
  readonly index: number | undefined
  id: string
  name: string
  /** Arguments that came before the name. */
  early: string
  call: Call | undefined
  extra: Fields
}

/** What a server writes its reasoning under, and wants to find it under. */
type ReasoningField = "reasoning_content" | "reasoning"

export class ChatDecoder implements Decoder {
  private readonly provider: string
  private readonly answer: Answer
  private readonly text: Block
  private readonly drafts: Array<Draft> = []
  private finishReason = ""
  private hasBegun = false
  private isRefused = false
  private isOver = false
  private usage: unknown
  private reasoningField: ReasoningField | undefined
  private readonly reasoningDetails: Array<Fields> = []
  private about: Fields = {}

  constructor(provider: string, seed: string) {
    this.provider = provider
    this.answer = new Answer(provider, seed)
    this.text = this.answer.open("text")
  }

  frame = (data: unknown, event?: string): Decoded => {
    const chunk = fieldsOf(data)
    if (chunk === undefined) return []
    const error = this.errorIn(chunk, event)
    if (error !== undefined) return error
    this.chunk(chunk)
    return this.answer.taken()
  }

  body = (data: unknown): Decoded => {
    const read = this.frame(data)
    if (!Array.isArray(read) || !this.isOver && !this.answer.isSpeaking) return read
    const end = this.end(true)
    return Array.isArray(end) ? [...read, ...end] : end
  }

  // Without a word that the answer is over it was cut off, and what is missing cannot be known.
  end = (isDone: boolean): Decoded => {
    if (!this.isOver && !(isDone && this.answer.isSpeaking)) {
      return this.hasBegun && !this.answer.isSpeaking ? brokenOff(this.provider) : []
    }
    if (this.drafts.some((draft) => draft.name === "")) return namelessCall(this.provider)
    this.closeCalls()
    this.answer.end({
      finishReason: this.isRefused ? "content_filter" : finishReasons[this.finishReason.toLowerCase()] ??
        (this.finishReason === "" ? "stop" : "other"),
      rawFinishReason: this.finishReason,
      usage: usageOf(this.usage),
      metadata: this.about,
      state: this.state()
    })
    return this.answer.taken()
  }

  private errorIn(chunk: Fields, event: string | undefined): AdapterError | undefined {
    const isError = event === "error" || chunk["object"] === "error" ||
      (chunk["error"] !== undefined && chunk["error"] !== null)
    return isError ? failureIn(this.provider, chunk) : undefined
  }

  private chunk(chunk: Fields): void {
    const { answer } = this
    if (answer.id === "") answer.id = textOf(chunk["id"])
    if (answer.model === "") answer.model = textOf(chunk["model"])
    this.usage = chunk["usage"] ?? fieldsOf(chunk["x_groq"])?.["usage"] ?? this.usage
    const choice = firstChoice(chunk["choices"])
    if (choice === undefined) return
    this.hasBegun = true
    // The last chunk of some servers repeats the whole message; it counts when nothing was said before.
    const message = answer.isSpeaking ? undefined : fieldsOf(choice["message"])
    const delta = fieldsOf(choice["delta"]) ?? message
    if (delta !== undefined) this.delta(delta, delta === message)
    const finishReason = choice["finish_reason"]
    if (typeof finishReason === "string" && finishReason !== "") {
      this.finishReason = finishReason
      this.isOver = true
      this.about = compact({
        serviceTier: chunk["service_tier"],
        systemFingerprint: chunk["system_fingerprint"],
        nativeFinishReason: choice["native_finish_reason"],
        annotations: delta?.["annotations"]
      })
    }
  }

  private delta(delta: Fields, isWhole: boolean): void {
    const { content } = delta
    if (typeof content === "string") {
      if (content !== "") this.answer.say(this.text, content)
    } else if (Array.isArray(content)) this.parts(content)
    this.reasoning(delta)
    if (delta["tool_calls"] !== undefined) {
      // In one piece, each of them is a call of its own.
      objectsOf(delta["tool_calls"]).forEach((part, at) => this.toolCall(part, isWhole ? at : numberOf(part["index"])))
    }
    const refusal = textOf(delta["refusal"])
    if (refusal !== "") {
      this.isRefused = true
      this.answer.say(this.text, refusal)
    }
  }

  /** Mistral writes its text and its thoughts as parts. */
  private parts(parts: ReadonlyArray<unknown>): void {
    for (const part of objectsOf(parts)) {
      if (part["type"] === "thinking") {
        const { thinking } = part
        this.answer.think(
          typeof thinking === "string" ? thinking : objectsOf(thinking).map((piece) => textOf(piece["text"])).join("")
        )
      } else this.answer.say(this.text, textOf(part["text"]))
    }
  }

  private reasoning(delta: Fields): void {
    const field: ReasoningField = textOf(delta["reasoning_content"]) === "" ? "reasoning" : "reasoning_content"
    const thought = textOf(delta[field])
    if (thought !== "") {
      this.reasoningField ??= field
      this.answer.think(thought)
    }
    for (const detail of objectsOf(delta["reasoning_details"])) this.reasoningDetail(detail)
  }

  /** OpenRouter wants its details back in one piece each, but tells them in many. */
  private reasoningDetail(detail: Fields): void {
    const last = this.reasoningDetails.at(-1)
    if (last === undefined || last["type"] !== detail["type"] || last["index"] !== detail["index"]) {
      this.reasoningDetails.push(detail)
      return
    }
    const joined: Record<string, unknown> = { ...last, ...compact(detail) }
    for (const key of ["text", "summary", "data"]) {
      if (typeof last[key] === "string") joined[key] = last[key] + textOf(detail[key])
    }
    this.reasoningDetails[this.reasoningDetails.length - 1] = joined
  }

  private toolCall(part: Fields, index: number | undefined): void {
    const called = fieldsOf(part["function"]) ?? {}
    const id = textOf(part["id"])
    const name = textOf(called["name"])
    const args = argumentsOf(called["arguments"])
    const draft = this.draftOf(index, id, name, args)
    if (isRepeated(draft, name, args)) return
    if (draft.id === "") draft.id = id
    if (draft.name === "") draft.name = name
    // Gemini's compatible endpoint keeps the signature of its thoughts here.
    const extra = fieldsOf(part["extra_content"])
    if (extra !== undefined) draft.extra = { ...draft.extra, extra_content: extra }
    if (draft.call === undefined && draft.name !== "") {
      draft.call = this.answer.call(draft.id, draft.name)
      this.answer.extend(draft.call, draft.early)
    }
    if (draft.call === undefined) draft.early += args
    else this.answer.extend(draft.call, args)
  }

  /**
   * The call a piece belongs to. Pieces are meant to be told apart by `index`, but there are servers that leave it out, or
   * write 0 for every call; some repeat the id with every piece, some only begin with it, some have none.
   */
  private draftOf(index: number | undefined, id: string, name: string, args: string): Draft {
    const found = index === undefined
      ? this.drafts.find((draft) => id !== "" && draft.id === id) ?? (id === "" ? this.drafts.at(-1) : undefined)
      : this.drafts.filter((draft) => draft.index === index).at(-1)
    if (found !== undefined && !isAnother(found, id, name, args)) return found
    const draft: Draft = { index, id: "", name: "", early: "", call: undefined, extra: {} }
    this.drafts.push(draft)
    return draft
  }

  private closeCalls(): void {
    for (const { call, extra } of this.drafts) {
      if (call !== undefined) this.answer.close(call, "", Object.keys(extra).length === 0 ? undefined : extra)
    }
  }

  private state(): Fields | undefined {
    const { reasoning } = this.answer
    const details = this.reasoningDetails
    if (this.reasoningField === undefined && details.length === 0) return undefined
    return {
      ...(this.reasoningField === undefined ? {} : { reasoning: { field: this.reasoningField, text: reasoning } }),
      ...(details.length === 0 ? {} : { reasoningDetails: details })
    }
  }
}

const argumentsSoFar = ({ call, early }: Draft): string => call?.raw ?? early

/** Whether a piece begins another call than the one it seems to belong to. */
const isAnother = (draft: Draft, id: string, name: string, args: string): boolean =>
  (id !== "" && draft.id !== "" && id !== draft.id) ||
  (name !== "" && draft.name !== "" && args.trim() !== "" && args !== argumentsSoFar(draft) &&
    isWhole(argumentsSoFar(draft)))

/** Whether a piece tells the whole call once more. */
const isRepeated = (draft: Draft, name: string, args: string): boolean =>
  name !== "" && name === draft.name && args !== "" && args === argumentsSoFar(draft) && isWhole(args)

const isWhole = (text: string): boolean => {
  try {
    return typeof JSON.parse(text) === "object"
  } catch {
    return false
  }
}

// Mostly text, but some servers write the object itself.
const argumentsOf = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value)

/** The first answer: others are only given when asked for. */
const firstChoice = (choices: unknown): Fields | undefined => {
  for (const choice of listOf(choices)) {
    const fields = fieldsOf(choice)
    if (fields !== undefined && (numberOf(fields["index"]) ?? 0) === 0) return fields
  }
  return undefined
}
