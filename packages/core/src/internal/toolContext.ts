/**
 * The context handed to a handler. Everything that costs something is made when it is first read: most handlers look at
 * neither the signal nor the idempotency key.
 */
import * as Effect from "effect/Effect"
import type { ToolCall } from "../ToolCall.ts"
import type { Service } from "../ToolContext.ts"

/** What every call of a batch shares. */
export interface Shared {
  readonly context: { readonly [key: string]: unknown }
  readonly sessionId: string | undefined
  readonly requestId: string | undefined
  readonly engine: unknown
}

/** Who hears of a call's progress. */
export interface Reporter {
  readonly report: (value: unknown) => Effect.Effect<void>
}

export class ContextImpl implements Service {
  readonly toolCall: ToolCall
  /** Whoever runs the call aborts it too; an executor need not watch. */
  readonly managed: boolean
  private readonly shared: Shared
  private readonly reporter: Reporter
  private controller: AbortController | undefined
  private aborted = false

  constructor(toolCall: ToolCall, shared: Shared, reporter: Reporter, managed: boolean) {
    this.toolCall = toolCall
    this.managed = managed
    this.shared = shared
    this.reporter = reporter
  }

  get context(): { readonly [key: string]: unknown } {
    return this.shared.context
  }

  get sessionId(): string | undefined {
    return this.shared.sessionId
  }

  get requestId(): string | undefined {
    return this.shared.requestId
  }

  get engine(): unknown {
    return this.shared.engine
  }

  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController()
      if (this.aborted) this.controller.abort()
    }
    return this.controller.signal
  }

  get idempotencyKey(): string {
    const scope = this.shared.sessionId ?? this.shared.requestId
    return scope === undefined ? this.toolCall.id : `${scope}/${this.toolCall.id}`
  }

  // Functions of their own, so that a handler may take them out of the context.
  get progress(): (value: unknown) => Effect.Effect<void> {
    return (value) => Effect.suspend(() => this.reporter.report(value))
  }

  get unsafeProgress(): (value: unknown) => void {
    // Reported at once; only an Effect can wait for a slow consumer.
    return (value) => void this.reporter.report(value)
  }

  abort(): void {
    this.aborted = true
    this.controller?.abort()
  }
}
