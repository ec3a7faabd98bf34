/**
 * One answer of a provider, read frame by frame.
 */
import type { AdapterError, Reason } from "../AdapterError.ts"
import type { AdapterEvent } from "../Event.ts"
import type { Decoded, Decoder } from "../HttpAdapter.ts"
import { type SseFrame, SseReader } from "./sse.ts"

export interface Problem {
  readonly reason: Reason
  readonly detail: string
}

export class HttpReading {
  error: AdapterError | undefined
  unreadable = 0
  private readonly decoder: Decoder
  private readonly withRaw: boolean
  private readonly maxFrameLength: number
  private readonly sse: SseReader
  private events: Array<AdapterEvent> = []
  private hasSpoken = false
  private isComplete = false

  constructor(decoder: Decoder, maxFrameLength: number, withRaw: boolean) {
    this.decoder = decoder
    this.withRaw = withRaw
    this.maxFrameLength = maxFrameLength
    this.sse = new SseReader((frame) => this.frame(frame), maxFrameLength)
  }

  /** Nothing that follows counts. */
  get isOver(): boolean {
    return this.isComplete || this.error !== undefined || this.sse.isTooLong
  }

  feed(bytes: Uint8Array): void {
    this.sse.feed(bytes)
  }

  /** The body is at its end. */
  end(): void {
    if (!this.isOver) this.sse.end()
    if (!this.isOver) this.decode(() => this.decoder.end(false))
  }

  body(text: string): void {
    this.data(text, this.decoder.body)
  }

  /** The events since the last time. */
  taken(): ReadonlyArray<AdapterEvent> {
    const { events } = this
    if (events.length > 0) this.events = []
    return events
  }

  /** Why the answer is none, if it is none. */
  get problem(): Problem | undefined {
    if (this.isComplete) return undefined
    if (this.sse.isTooLong) {
      return { reason: "malformed_response", detail: `a frame is longer than ${this.maxFrameLength} characters` }
    }
    return this.hasSpoken
      ? { reason: "network_error", detail: "the answer broke off" }
      : { reason: "malformed_response", detail: "the provider sent nothing that can be read as its protocol" }
  }

  private frame({ data, event }: SseFrame): void {
    if (this.isOver) return
    if (data.trim() === "[DONE]") return this.decode(() => this.decoder.end(true))
    this.data(data, (value) => this.decoder.frame(value, event))
  }

  private data(text: string, read: (value: unknown) => Decoded): void {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      this.unreadable++
      return
    }
    if (this.withRaw) this.events.push({ _tag: "RawChunk", chunk: value })
    this.decode(() => read(value))
  }

  private decode(read: () => Decoded): void {
    let decoded: Decoded
    try {
      decoded = read()
    } catch {
      this.unreadable++
      return
    }
    if (!Array.isArray(decoded)) {
      this.error = decoded as AdapterError
      return
    }
    for (const event of decoded as ReadonlyArray<AdapterEvent>) {
      this.events.push(event)
      this.hasSpoken = true
      if (event._tag === "MessageCompleted") this.isComplete = true
    }
  }
}
