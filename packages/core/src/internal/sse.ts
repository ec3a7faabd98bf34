/**
 * Server-sent events, from bytes in any cut.
 */
import { createParser, type EventSourceParser } from "eventsource-parser"

export interface SseFrame {
  readonly event?: string | undefined
  readonly data: string
}

export class SseReader {
  /** A frame grew beyond all measure; nothing is read any more. */
  isTooLong = false
  private readonly decoder = new TextDecoder()
  private readonly parser: EventSourceParser

  constructor(onFrame: (frame: SseFrame) => void, maxFrameLength: number) {
    this.parser = createParser({
      onEvent: onFrame,
      // Lines that are not of the format are left out, as the format demands.
      onError: (error) => {
        if (error.type === "max-buffer-size-exceeded") this.isTooLong = true
      },
      maxBufferSize: maxFrameLength
    })
  }

  feed(bytes: Uint8Array): void {
    if (!this.isTooLong) this.parser.feed(this.decoder.decode(bytes, { stream: true }))
  }

  /** Some servers forget the empty line after their last frame. */
  end(): void {
    if (!this.isTooLong) this.parser.feed(`${this.decoder.decode()}\n\n`)
  }
}
