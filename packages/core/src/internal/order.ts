/**
 * Who may start next: a bound on how many run at once, calls that must be alone, and calls that share a key.
 */

/** `true`: alone in the batch. A string: never beside another with the same key. */
export type Exclusion = boolean | string

/** What is ordered. */
export interface Ordered {
  readonly exclusion: Exclusion
}

export class Order<C extends Ordered> {
  private readonly queue: ReadonlyArray<C>
  private readonly concurrency: number
  private cursor = 0
  private running = 0
  private alone = false
  // Calls that wait for a key, by key; a key is held as long as it is in here.
  private readonly waiting = new Map<string, Array<C>>()
  private parked = 0
  private readonly ready: Array<C> = []

  constructor(queue: ReadonlyArray<C>, concurrency: number) {
    this.queue = queue
    this.concurrency = concurrency
  }

  /** The next call that may start now; it counts as running from here on. */
  next(): C | undefined {
    if (this.alone || this.running >= this.concurrency) return undefined
    const call = this.ready.shift() ?? this.advance()
    if (call !== undefined) this.running++
    return call
  }

  // A call that must be alone is a barrier: what stands before it ends first, what stands behind it starts after.
  private advance(): C | undefined {
    while (this.cursor < this.queue.length) {
      const call = this.queue[this.cursor]!
      const { exclusion } = call
      if (exclusion === true) {
        if (this.running > 0 || this.parked > 0) return undefined
        this.cursor++
        this.alone = true
        return call
      }
      this.cursor++
      if (exclusion === false) return call
      const behind = this.waiting.get(exclusion)
      if (behind === undefined) {
        this.waiting.set(exclusion, [])
        return call
      }
      behind.push(call)
      this.parked++
    }
  }

  /** The call has ended. */
  release(call: C): void {
    this.running--
    const { exclusion } = call
    if (exclusion === false) return
    if (exclusion === true) {
      this.alone = false
      return
    }
    const next = this.waiting.get(exclusion)?.shift()
    if (next === undefined) {
      this.waiting.delete(exclusion)
    } else {
      this.parked--
      this.ready.push(next)
    }
  }

  /** Takes out everything that has not started. */
  drop(): ReadonlyArray<C> {
    const dropped = [...this.ready, ...[...this.waiting.values()].flat(), ...this.queue.slice(this.cursor)]
    this.ready.length = 0
    for (const behind of this.waiting.values()) behind.length = 0
    this.parked = 0
    this.cursor = this.queue.length
    return dropped
  }
}
