/**
 * Reading the Responses API: its stream of events, or one response in one piece.
 */
import { AdapterError } from "@allm/core/AdapterError"
import type { Decoded, Decoder } from "@allm/core/HttpAdapter"
import type { FinishReason } from "@allm/core/Response"
import { Answer, type Block, type Call } from "./answer.ts"
import { brokenOff, failureIn, namelessCall } from "./failure.ts"
import { compact, type Fields, fieldsOf, objectsOf, textOf } from "./lenient.ts"
import { type Kept, stateOf } from "./responsesState.ts"
import { usageOf } from "./usage.ts"

/** One item of the output. */
interface Item {
  fields: Fields
  readonly blocks: Map<unknown, Block>
  call: Call | undefined
  /** Arguments that came before the name. */
  early: string
  /** Which parts of its reasoning were told. */
  readonly thoughts: Set<string>
}

export class ResponsesDecoder implements Decoder {
  private readonly provider: string
  private readonly answer: Answer
  private readonly items = new Map<unknown, Item>()
  private readonly annotations: Array<Fields> = []
  private hasBegun = false
  private isRefused = false
  private isStored = true
  private isEnded = false
  // Most deltas belong where the last one did.
  private block: Block | undefined
  private blockItem: unknown
  private blockPart: unknown

  constructor(provider: string, seed: string) {
    this.provider = provider
    this.answer = new Answer(provider, seed)
  }

  frame = (data: unknown, event?: string): Decoded => {
    const fields = fieldsOf(data)
    if (fields === undefined || this.isEnded) return []
    const error = this.event(fields, typeof fields["type"] === "string" ? fields["type"] : event)
    return error ?? this.answer.taken()
  }

  body = (data: unknown): Decoded => {
    const response = fieldsOf(data)
    if (response === undefined) return []
    const error = response["error"] === undefined || response["error"] === null
      ? this.finished(response)
      : failureIn(this.provider, response)
    return error ?? this.answer.taken()
  }

  end = (isDone: boolean): Decoded => {
    if (this.isEnded) return []
    if (isDone && this.answer.isSpeaking) return this.close({}) ?? this.answer.taken()
    return this.hasBegun && !this.answer.isSpeaking ? brokenOff(this.provider) : []
  }

  private event(event: Fields, type: string | undefined): AdapterError | undefined {
    switch (type) {
      case "response.output_text.delta":
        this.answer.say(this.blockOf(event), textOf(event["delta"]))
        return
      case "response.output_text.done":
        this.answer.complete(this.blockOf(event), textOf(event["text"]))
        return
      case "response.refusal.delta":
        this.isRefused = true
        this.answer.say(this.blockOf(event), textOf(event["delta"]))
        return
      case "response.refusal.done":
        this.isRefused = true
        this.answer.complete(this.blockOf(event), textOf(event["refusal"]))
        return
      case "response.output_text.annotation.added": {
        const annotation = fieldsOf(event["annotation"])
        if (annotation !== undefined) this.annotations.push(annotation)
        return
      }
      case "response.reasoning_summary_text.delta":
        this.think(event, `summary ${event["summary_index"]}`, textOf(event["delta"]))
        return
      case "response.reasoning_text.delta":
        this.think(event, `content ${event["content_index"]}`, textOf(event["delta"]))
        return
      case "response.function_call_arguments.delta":
        this.extend(this.itemOf(event), textOf(event["delta"]))
        return
      case "response.output_item.added":
        this.added(this.itemOf(event), fieldsOf(event["item"]) ?? {})
        return
      case "response.output_item.done":
        this.done(this.itemOf(event), fieldsOf(event["item"]) ?? {})
        return
      case "response.created":
      case "response.in_progress":
      case "response.queued":
        this.about(fieldsOf(event["response"]) ?? {})
        return
      case "response.completed":
      case "response.incomplete":
      case "response.done":
        return this.finished(fieldsOf(event["response"]) ?? {})
      case "response.failed":
      case "response.error":
      case "error":
        return failureIn(this.provider, fieldsOf(event["response"]) ?? event)
      case undefined:
        // Proxies in between have no types.
        return fieldsOf(event["error"]) === undefined ? undefined : failureIn(this.provider, event)
    }
  }

  private about(response: Fields): void {
    this.hasBegun = true
    this.answer.id ||= textOf(response["id"])
    this.answer.model ||= textOf(response["model"])
    if (response["store"] === false) this.isStored = false
  }

  /** Servers that give no index tell items apart by their ids. */
  private itemOf(event: Fields): Item {
    const key = event["output_index"] ?? event["item_id"] ?? fieldsOf(event["item"])?.["id"]
    return this.itemAt(key)
  }

  private itemAt(key: unknown): Item {
    let item = this.items.get(key)
    if (item === undefined) {
      this.hasBegun = true
      this.items.set(
        key,
        item = { fields: {}, blocks: new Map(), call: undefined, early: "", thoughts: new Set() }
      )
    }
    return item
  }

  private blockOf(event: Fields): Block {
    const key = event["output_index"] ?? event["item_id"]
    const part = event["content_index"] ?? 0
    if (this.block !== undefined && key === this.blockItem && part === this.blockPart) return this.block
    this.blockItem = key
    this.blockPart = part
    return this.block = this.blockAt(this.itemAt(key), part, textOf(event["item_id"]))
  }

  private blockAt(item: Item, part: unknown, itemId: string): Block {
    let block = item.blocks.get(part)
    if (block === undefined) {
      const id = itemId || textOf(item.fields["id"]) || `text_${this.answer.blocks.length}`
      item.blocks.set(part, block = this.answer.open(item.blocks.size === 0 ? id : `${id}_${String(part)}`))
    }
    return block
  }

  private think(event: Fields, part: string, delta: string): void {
    this.thought(this.itemOf(event), part, delta)
  }

  private thought(item: Item, part: string, delta: string): void {
    if (delta === "") return
    // The parts of a summary are paragraphs.
    if (!item.thoughts.has(part) && this.answer.reasoning !== "") this.answer.think("\n\n")
    item.thoughts.add(part)
    this.answer.think(delta)
  }

  private added(item: Item, fields: Fields): void {
    if (fields["type"] !== undefined) item.fields = fields
    if (item.fields["type"] === "function_call") this.start(item)
  }

  private start(item: Item): void {
    const name = textOf(item.fields["name"])
    if (item.call !== undefined || name === "") return
    item.call = this.answer.call(textOf(item.fields["call_id"]) || textOf(item.fields["id"]), name)
    this.answer.extend(item.call, item.early)
  }

  private extend(item: Item, delta: string): void {
    if (item.call === undefined) item.early += delta
    else this.answer.extend(item.call, delta)
  }

  /** An item is told as a whole: what its deltas left out is said now. */
  private done(item: Item, fields: Fields): void {
    this.added(item, fields)
    switch (item.fields["type"]) {
      case "message":
        objectsOf(fields["content"]).forEach((part, at) => this.part(item, part, at))
        return
      case "function_call":
        if (item.call !== undefined) this.answer.close(item.call, textOf(fields["arguments"]))
        return
      case "reasoning":
        for (const kind of ["summary", "content"]) {
          objectsOf(fields[kind]).forEach((part, at) => {
            if (!item.thoughts.has(`${kind} ${at}`)) this.thought(item, `${kind} ${at}`, textOf(part["text"]))
          })
        }
    }
  }

  private part(item: Item, part: Fields, at: number): void {
    const isRefusal = part["type"] === "refusal"
    if (isRefusal) this.isRefused = true
    const block = this.blockAt(item, at, textOf(item.fields["id"]))
    this.answer.complete(block, textOf(isRefusal ? part["refusal"] : part["text"]))
    // Where they were not told one by one.
    if (this.annotations.length === 0) this.annotations.push(...objectsOf(part["annotations"]))
  }

  private finished(response: Fields): AdapterError | undefined {
    const status = textOf(response["status"])
    if (status === "failed" || status === "cancelled") return failureIn(this.provider, response)
    if (status === "queued" || status === "in_progress") {
      return new AdapterError({
        reason: "unsupported_feature",
        provider: this.provider,
        detail: `the response is not ready (${status}); leave out \`background\``
      })
    }
    if (!Array.isArray(response["output"]) && !this.answer.isSpeaking && status === "") return undefined
    this.about(response)
    objectsOf(response["output"]).forEach((fields, at) => this.done(this.finalItem(fields, at), fields))
    return this.close(response)
  }

  /** The item as the stream knew it: by its id, or by its index where the stream had no ids. */
  private finalItem(fields: Fields, at: number): Item {
    const { call_id: callId, id, type } = fields
    for (const item of this.items.values()) {
      const isSame = id === undefined
        ? typeof callId === "string" && item.fields["call_id"] === callId && item.fields["type"] === type
        : item.fields["id"] === id
      if (isSame) return item
    }
    // Known from its deltas alone.
    const unnamed = this.items.get(id) ?? this.items.get(at) ?? this.items.get(undefined)
    return unnamed !== undefined && unnamed.fields["id"] === undefined ? unnamed : this.itemAt(`final ${at}`)
  }

  private close(response: Fields): AdapterError | undefined {
    for (const { call, fields } of this.items.values()) {
      if (fields["type"] === "function_call" && call === undefined) return namelessCall(this.provider)
    }
    this.isEnded = true
    const reason = textOf(fieldsOf(response["incomplete_details"])?.["reason"])
    this.answer.end({
      finishReason: this.isRefused ? "content_filter" : finishReasonOf(textOf(response["status"]), reason),
      rawFinishReason: reason || textOf(response["status"]),
      usage: usageOf(response["usage"]),
      metadata: compact({
        serviceTier: response["service_tier"],
        annotations: this.annotations.length === 0 ? undefined : this.annotations
      }),
      state: stateOf(this.kept(), this.isStored)
    })
    return undefined
  }

  private kept(): ReadonlyArray<Kept> {
    return [...this.items.values()].filter(({ fields }) => fields["type"] !== undefined).map((item) => ({
      item: item.fields,
      text: [...item.blocks.values()].map((block) => block.text).join(""),
      ...(item.call === undefined ? {} : { callId: item.call.id })
    }))
  }
}

const finishReasonOf = (status: string, reason: string): FinishReason => {
  if (status !== "incomplete") return "stop"
  if (reason === "max_output_tokens" || reason === "max_tokens") return "length"
  return reason === "content_filter" ? "content_filter" : "other"
}
