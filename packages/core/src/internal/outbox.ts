/**
 * Events on their way to a consumer: handed over in the order they came, all that have gathered at once, and never faster
 * than the consumer takes them.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"

// Events that may wait for a slow consumer.
const room = 64

export class Outbox<Event> {
  private readonly emit: (events: ReadonlyArray<Event>) => Effect.Effect<void>
  private readonly fork: (effect: Effect.Effect<void>) => Fiber.RuntimeFiber<void>
  private readonly onHandedOver: () => void
  private waiting: Array<Event> = []
  private emission: Fiber.RuntimeFiber<void> | undefined
  private readonly waitingForRoom: Array<() => void> = []

  constructor(options: {
    readonly emit: (events: ReadonlyArray<Event>) => Effect.Effect<void>
    readonly fork: (effect: Effect.Effect<void>) => Fiber.RuntimeFiber<void>
    readonly onHandedOver: () => void
  }) {
    this.emit = options.emit
    this.fork = options.fork
    this.onHandedOver = options.onHandedOver
  }

  get isFull(): boolean {
    return this.waiting.length >= room
  }

  /** Everything was taken. */
  get isEmpty(): boolean {
    return this.waiting.length === 0 && this.emission === undefined
  }

  push(event: Event): void {
    this.waiting.push(event)
  }

  /** Hands over what has gathered, unless the consumer still has its hands full. */
  flush(): void {
    while (this.emission === undefined && this.waiting.length > 0) {
      const events = this.waiting
      this.waiting = []
      const fiber = this.fork(this.emit(events))
      if (fiber.unsafePoll() === null) {
        this.emission = fiber
        fiber.addObserver(this.handedOver)
      } else {
        this.letIn()
      }
    }
  }

  /** Waits until there is room again. */
  readonly room: Effect.Effect<void> = Effect.async((resume) => {
    this.waitingForRoom.push(() => resume(Effect.void))
  })

  /** Forgets everything; nothing is handed over from here on. */
  close(): void {
    this.waiting = []
    this.emission?.unsafeInterruptAsFork(FiberId.none)
  }

  private readonly handedOver = (): void => {
    this.emission = undefined
    this.letIn()
    this.onHandedOver()
  }

  private letIn(): void {
    for (const proceed of this.waitingForRoom.splice(0)) proceed()
  }
}
