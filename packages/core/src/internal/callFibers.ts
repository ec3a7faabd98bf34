/**
 * Forking the fibers of a batch, and joining what they did to FiberRefs.
 *
 * These fibers are roots, so nothing of what a child gets from its parent comes by itself: they start with the caller's
 * FiberRefs, and what a call that succeeded changed is given back, as when any fiber is joined.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import * as HashMap from "effect/HashMap"
import * as Runtime from "effect/Runtime"
import * as RuntimeFlags from "effect/RuntimeFlags"
import type { ToolCall } from "../ToolCall.ts"
import type { Shared } from "./toolContext.ts"

export class CallFibers {
  private readonly runtime: Runtime.Runtime<never>
  private readonly annotations: HashMap.HashMap<string, unknown>
  private readonly initial = new WeakMap<object, FiberRefs.FiberRefs>()
  private readonly changed: Array<FiberRefs.FiberRefs> = []

  constructor(parent: Fiber.RuntimeFiber<unknown, unknown>, flags: RuntimeFlags.RuntimeFlags, shared: Shared) {
    this.runtime = Runtime.make({
      context: parent.currentContext,
      fiberRefs: parent.getFiberRefs(),
      // Tools can be stopped even where the caller cannot.
      runtimeFlags: RuntimeFlags.enable(flags, RuntimeFlags.Interruption)
    })
    let annotations = parent.getFiberRef(FiberRef.currentLogAnnotations)
    if (shared.sessionId !== undefined) annotations = HashMap.set(annotations, "sessionId", shared.sessionId)
    if (shared.requestId !== undefined) annotations = HashMap.set(annotations, "requestId", shared.requestId)
    this.annotations = annotations
  }

  /** For the batch's own work. */
  readonly fork = <A, E>(effect: Effect.Effect<A, E>): Fiber.RuntimeFiber<A, E> => Runtime.runFork(this.runtime, effect)

  /** For work of a call: its log lines carry the call's ids. */
  forkCall<A, E>(toolCall: ToolCall, effect: Effect.Effect<A, E>): Fiber.RuntimeFiber<A, E> {
    let initial: FiberRefs.FiberRefs | undefined
    const fiber = Runtime.runFork(this.runtime, effect, {
      updateRefs: (refs, fiberId) => initial = this.annotate(refs, fiberId, toolCall)
    })
    this.initial.set(fiber, initial!)
    return fiber
  }

  private annotate(refs: FiberRefs.FiberRefs, fiberId: FiberId.Runtime, toolCall: ToolCall): FiberRefs.FiberRefs {
    return FiberRefs.updateAs(refs, {
      fiberId,
      fiberRef: FiberRef.currentLogAnnotations,
      value: HashMap.set(HashMap.set(this.annotations, "toolName", toolCall.name), "toolCallId", toolCall.id)
    })
  }

  /** A call's fiber succeeded: keeps what it changed. */
  succeeded(fiber: Fiber.RuntimeFiber<unknown, unknown>): void {
    const before = this.initial.get(fiber)!
    const after = fiber.getFiberRefs()
    if (after === before) return
    // Something provided for the length of the call and taken back leaves a new map with the old values.
    const changes = [...after.locals].filter(([ref, stack]) => before.locals.get(ref)?.[0][1] !== stack[0][1])
    if (changes.length > 0) this.changed.push(FiberRefs.unsafeMake(new Map(changes)))
  }

  /** Gives the changes to the fiber that runs this. */
  readonly join: Effect.Effect<void> = Effect.suspend(() =>
    this.changed.length === 0 ? Effect.void : Effect.forEach(this.changed, Effect.inheritFiberRefs, { discard: true })
  )
}
