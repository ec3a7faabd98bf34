/**
 * One answer of an adapter in their words: events in, parts out.
 */
import { type AdapterError, type Event, Message, type ToolCall } from "@allm/core"
import type * as Response from "@effect/ai/Response"
import { fromErrorPart } from "./errors.ts"
import { ownMetadata, toReason, toUsage } from "./finish.ts"
import { compact, isEmpty } from "./json.ts"
import { callOptions } from "./kept.ts"

type MessageCompleted = Extract<Event.AdapterEvent, { readonly _tag: "MessageCompleted" }>

/** The block that is being said: theirs come one after the other. */
interface Open {
  readonly kind: "text" | "reasoning"
  readonly key: string
  readonly id: string
}

export class Speech {
  private readonly provider: string
  private readonly timestamp: string
  private out: Array<Response.StreamPartEncoded> = []
  private open: Open | undefined
  private blocks = 0
  private readonly texts = new Map<string, string>()
  private readonly raws = new Map<string, string>()
  private readonly completed = new Set<string>()
  private hasStarted = false
  /** The model said that it is done. */
  isFinished = false
  error: AdapterError.AdapterError | undefined

  constructor(provider: string, timestamp: string) {
    this.provider = provider
    this.timestamp = timestamp
  }

  /** The parts since the last time. */
  taken(): Array<Response.StreamPartEncoded> {
    const { out } = this
    this.out = []
    return out
  }

  add(event: Event.AdapterEvent): void {
    if (event._tag !== "MessageStarted" && event._tag !== "RawChunk") this.start(undefined, undefined)
    switch (event._tag) {
      case "MessageStarted":
        this.start(event.id, event.model)
        return
      case "TextDelta":
        this.say("text", event.id ?? "", event.delta)
        return
      case "TextCompleted":
        this.completeText(event.id ?? "", event.text)
        return
      case "ReasoningDelta":
        this.say("reasoning", event.id ?? "", event.delta)
        return
      case "ToolCallStarted":
        this.call(event.toolCallId, event.toolName)
        return
      case "ToolCallDelta":
        this.argue(event.toolCallId, event.delta)
        return
      case "ToolCallCompleted":
        this.complete(event.toolCall)
        return
      case "MessageCompleted":
        this.finish(event)
        return
      case "ErrorOccurred":
        this.error = fromErrorPart(this.provider, event.error)
        this.out.push({ type: "error", error: event.error })
        return
      case "RawChunk":
        return
    }
  }

  private start(id: string | undefined, modelId: string | undefined): void {
    if (this.hasStarted) return
    this.hasStarted = true
    this.out.push({ type: "response-metadata", ...compact({ id, modelId }), timestamp: this.timestamp })
  }

  private say(kind: Open["kind"], key: string, delta: string): void {
    if (this.open?.kind !== kind || this.open.key !== key) {
      this.close()
      this.open = { kind, key, id: `${kind}_${this.blocks++}` }
      this.out.push({ type: `${kind}-start`, id: this.open.id })
    }
    if (kind === "text") this.texts.set(key, (this.texts.get(key) ?? "") + delta)
    this.out.push({ type: `${kind}-delta`, id: this.open.id, delta })
  }

  private close(): void {
    if (this.open !== undefined) this.out.push({ type: `${this.open.kind}-end`, id: this.open.id })
    this.open = undefined
  }

  // The whole stands above its deltas, but what was said cannot be taken back.
  private completeText(key: string, text: string): void {
    const said = this.texts.get(key) ?? ""
    if (text.length > said.length && text.startsWith(said)) this.say("text", key, text.slice(said.length))
    if (this.open?.kind === "text" && this.open.key === key) this.close()
  }

  private call(id: string, name: string): void {
    if (this.raws.has(id)) return
    this.close()
    this.raws.set(id, "")
    this.out.push({ type: "tool-params-start", id, name })
  }

  private argue(id: string, delta: string): void {
    const raw = this.raws.get(id)
    if (raw === undefined) return
    this.raws.set(id, raw + delta)
    this.out.push({ type: "tool-params-delta", id, delta })
  }

  private complete(call: ToolCall.ToolCall): void {
    if (this.completed.has(call.id)) return
    this.completed.add(call.id)
    this.call(call.id, call.name)
    if (this.raws.get(call.id) === "") this.argue(call.id, call.rawArguments ?? JSON.stringify(call.arguments ?? {}))
    const metadata = callOptions(call)
    this.out.push(
      { type: "tool-params-end", id: call.id },
      {
        type: "tool-call",
        id: call.id,
        name: call.name,
        // Arguments that are not JSON fit no schema of theirs: they are refused there as they are everywhere.
        params: call.arguments ?? call.rawArguments ?? "",
        ...(isEmpty(metadata) ? {} : { metadata })
      }
    )
  }

  private finish(event: MessageCompleted): void {
    const { message, metadata } = event
    if (message !== undefined) this.sayWhole(message)
    this.close()
    this.isFinished = true
    this.out.push({
      type: "finish",
      reason: toReason(event.finishReason ?? (this.error === undefined ? undefined : "error"), event.rawFinishReason),
      usage: toUsage(event.usage ?? {}),
      metadata: ownMetadata({
        finishReason: event.finishReason,
        rawFinishReason: event.rawFinishReason,
        usage: event.usage,
        metadata: isEmpty(metadata) ? undefined : metadata,
        name: message?.name,
        message: message === undefined || isEmpty(message.metadata) ? undefined : message.metadata
      })
    })
  }

  /** An answer in one piece may come as its message alone. */
  private sayWhole(message: Message.AssistantMessage): void {
    const text = Message.toText(message)
    if (this.texts.size === 0 && text !== "") this.say("text", "", text)
    if (this.raws.size === 0) { for (const call of message.toolCalls) this.complete(call) }
    if (typeof message.content === "string") return
    for (const part of message.content) {
      if (part.type === "image" && part.source.type === "base64") {
        this.close()
        this.out.push({ type: "file", mediaType: part.source.mediaType, data: part.source.data })
      }
    }
  }
}

type Block = { readonly type: "text" | "reasoning"; text: string }

/** An answer in one piece: every block with the whole of its text. */
export const collapse = (parts: ReadonlyArray<Response.StreamPartEncoded>): Array<Response.PartEncoded> => {
  const whole: Array<Response.PartEncoded> = []
  const open = new Map<string, Block>()
  for (const part of parts) {
    switch (part.type) {
      case "text-start":
      case "reasoning-start": {
        const block: Block = { type: part.type === "text-start" ? "text" : "reasoning", text: "" }
        open.set(part.id, block)
        whole.push(block)
        break
      }
      case "text-delta":
      case "reasoning-delta": {
        const block = open.get(part.id)
        if (block !== undefined) block.text += part.delta
        break
      }
      case "text-end":
      case "reasoning-end":
      case "tool-params-start":
      case "tool-params-delta":
      case "tool-params-end":
      case "error":
        break
      default:
        whole.push(part)
    }
  }
  return whole
}
