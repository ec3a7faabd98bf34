/**
 * An answer as it grows: whatever the protocol, it becomes the same events in a legal order.
 */
import type { AdapterEvent } from "@allm/core/Event"
import type { FinishReason } from "@allm/core/Response"
import * as ToolCall from "@allm/core/ToolCall"
import type { Usage } from "@allm/core/Usage"
import type { Fields } from "./lenient.ts"

/** A text under construction. */
export interface Block {
  /** Only told apart where there are several: the first one has none. */
  readonly id: string | undefined
  text: string
  isComplete: boolean
}

/** A call under construction. */
export interface Call {
  readonly id: string
  readonly name: string
  raw: string
  completed: ToolCall.ToolCall | undefined
}

export interface End {
  readonly finishReason: FinishReason
  readonly rawFinishReason: string | undefined
  readonly usage: Usage | undefined
  /** What is told about the answer. */
  readonly metadata: Fields
  /** What the provider wants to see again with the next request. */
  readonly state: Fields | undefined
}

export class Answer {
  /** The provider's name for this answer, as soon as it is known. */
  id = ""
  model = ""
  readonly blocks: Array<Block> = []
  readonly calls: Array<Call> = []
  reasoning = ""
  private readonly provider: string
  private readonly seed: string
  private hasBegun = false
  private events: Array<AdapterEvent> = []

  /** `seed` makes the ids of calls for answers that name neither their calls nor themselves. */
  constructor(provider: string, seed: string) {
    this.provider = provider
    this.seed = seed
  }

  /** Whether there was anything of an answer yet. */
  get isSpeaking(): boolean {
    return this.hasBegun
  }

  /** The events since the last time. */
  taken(): ReadonlyArray<AdapterEvent> {
    const { events } = this
    if (events.length > 0) this.events = []
    return events
  }

  // Not before there is something to say: up to then the whole call may be repeated.
  private begin(): void {
    this.hasBegun = true
    this.events.push({
      _tag: "MessageStarted",
      ...(this.id === "" ? {} : { id: this.id }),
      ...(this.model === "" ? {} : { model: this.model })
    })
  }

  open(id: string): Block {
    const block = { id: this.blocks.length === 0 ? undefined : id, text: "", isComplete: false }
    this.blocks.push(block)
    return block
  }

  say(block: Block, delta: string): void {
    if (delta === "" || block.isComplete) return
    if (!this.hasBegun) this.begin()
    block.text += delta
    this.events.push(
      block.id === undefined ? { _tag: "TextDelta", delta } : { _tag: "TextDelta", id: block.id, delta }
    )
  }

  /** The text is complete. `whole` is all of it, where the provider tells it again: what was left out is said now. */
  complete(block: Block, whole = ""): void {
    if (block.isComplete) return
    if (whole.startsWith(block.text)) this.say(block, whole.slice(block.text.length))
    if (whole !== "") block.text = whole
    block.isComplete = true
    if (block.text === "") return
    const { id, text } = block
    this.events.push(id === undefined ? { _tag: "TextCompleted", text } : { _tag: "TextCompleted", id, text })
  }

  think(delta: string): void {
    if (delta === "") return
    if (!this.hasBegun) this.begin()
    this.reasoning += delta
    this.events.push({ _tag: "ReasoningDelta", delta })
  }

  /** A call begins. Its id is the provider's, unless there is none or another call has it already. */
  call(id: string, name: string): Call {
    if (!this.hasBegun) this.begin()
    const at = this.calls.length
    const isTaken = (candidate: string): boolean => this.calls.some((call) => call.id === candidate)
    const call: Call = {
      id: id === "" ? `call_${shorten(this.id) || this.seed}_${at}` : isTaken(id) ? `${id}_${at}` : id,
      name,
      raw: "",
      completed: undefined
    }
    this.calls.push(call)
    this.events.push({ _tag: "ToolCallStarted", toolCallId: call.id, toolName: name })
    return call
  }

  extend(call: Call, delta: string): void {
    if (delta === "" || call.completed !== undefined) return
    call.raw += delta
    this.events.push({ _tag: "ToolCallDelta", toolCallId: call.id, delta })
  }

  /** The call is complete. `whole` are all of its arguments, where the provider tells them again. */
  close(call: Call, whole = "", metadata?: Fields): void {
    if (call.completed !== undefined) return
    if (whole.startsWith(call.raw)) this.extend(call, whole.slice(call.raw.length))
    if (whole !== "") call.raw = whole
    const toolCall = ToolCall.fromRaw({
      id: call.id,
      name: call.name,
      rawArguments: call.raw,
      metadata: metadata === undefined ? {} : { [this.provider]: metadata }
    })
    call.completed = toolCall
    this.events.push({ _tag: "ToolCallCompleted", toolCall })
  }

  /** Nothing follows. */
  end({ finishReason, metadata, rawFinishReason, state, usage }: End): void {
    if (!this.hasBegun) this.begin()
    for (const block of this.blocks) this.complete(block)
    for (const call of this.calls) this.close(call)
    this.events.push({
      _tag: "MessageCompleted",
      ...(state === undefined ? {} : {
        message: {
          role: "assistant",
          content: this.blocks.map((block) => block.text).join(""),
          toolCalls: this.calls.flatMap((call) => call.completed ?? []),
          metadata: { [this.provider]: state }
        }
      }),
      finishReason: finishReason === "stop" && this.calls.length > 0 ? "tool_calls" : finishReason,
      ...(rawFinishReason === undefined || rawFinishReason === "" ? {} : { rawFinishReason }),
      ...(usage === undefined ? {} : { usage }),
      metadata: Object.keys(metadata).length === 0 ? {} : { [this.provider]: metadata }
    })
  }
}

/** Providers are strict about the ids of calls: few letters, and not many of them. */
const shorten = (id: string): string => id.replaceAll(/[^\w-]/g, "").slice(-24)
