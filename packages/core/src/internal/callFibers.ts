/**
 * Forking the fibers of a batch, and joining what they did to FiberRefs.
 *
 * These fibers are roots, so nothing of what a child gets from its parent comes by itself: they start with the caller's
 * FiberRefs, and what a call that succeeded changed is given back, as when any fiber is joined.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import * as HashMap from "effect/HashMap"
import * as Runtime from "effect/Runtime"
import { ToolContext } from "../ToolContext.ts"
import type { Call } from "./call.ts"
import type { Ground } from "./flow.ts"
import type { Shared } from "./toolContext.ts"

export class CallFibers {
  private readonly runtime: Runtime.Runtime<never>
  private readonly shared: Shared
  /** What calls that succeeded changed for good. */
  readonly changed: Array<FiberRefs.FiberRefs> = []
  private sharedAnnotations: HashMap.HashMap<string, unknown> | undefined

  constructor(ground: Ground, context: Context.Context<never>, shared: Shared) {
    this.shared = shared
    this.runtime = Runtime.make({ context, fiberRefs: ground.fiberRefs, runtimeFlags: ground.runtimeFlags })
  }

  /** For the batch's own work. */
  readonly fork = <A, E>(effect: Effect.Effect<A, E>): Fiber.RuntimeFiber<A, E> => Runtime.runFork(this.runtime, effect)

  /** For work of a call: it finds the call's context, and its log lines carry the call's ids. */
  forkCall<A, E>(
    call: Call,
    effect: Effect.Effect<A, E>,
    environment: Context.Context<never> | undefined
  ): Fiber.RuntimeFiber<A, E> {
    const { context } = this.runtime
    const services = environment === undefined ? context : Context.merge(context, environment)
    const runtime = Runtime.make({
      ...this.runtime,
      context: Context.add(services, ToolContext, call.context) as Context.Context<never>
    })
    return Runtime.runFork(runtime, effect, {
      updateRefs: (refs, fiberId) => call.initialRefs = this.annotate(refs, fiberId, call)
    })
  }

  private annotate(refs: FiberRefs.FiberRefs, fiberId: FiberId.Runtime, call: Call): FiberRefs.FiberRefs {
    const { id, name } = call.toolCall
    return FiberRefs.updateAs(refs, {
      fiberId,
      fiberRef: FiberRef.currentLogAnnotations,
      value: HashMap.set(HashMap.set(this.annotations, "toolName", name), "toolCallId", id)
    })
  }

  private get annotations(): HashMap.HashMap<string, unknown> {
    if (this.sharedAnnotations === undefined) {
      const { requestId, sessionId } = this.shared
      let annotations = FiberRefs.getOrDefault(this.runtime.fiberRefs, FiberRef.currentLogAnnotations)
      if (sessionId !== undefined) annotations = HashMap.set(annotations, "sessionId", sessionId)
      if (requestId !== undefined) annotations = HashMap.set(annotations, "requestId", requestId)
      this.sharedAnnotations = annotations
    }
    return this.sharedAnnotations
  }

  /** A call's fiber succeeded: keeps what it changed. */
  succeeded(call: Call, fiber: Fiber.RuntimeFiber<unknown, unknown>): void {
    const before = call.initialRefs!
    const after = fiber.getFiberRefs()
    if (after === before) return
    // Something provided for the length of the call and taken back leaves a new map with the old values.
    const changes = [...after.locals].filter(([ref, stack]) => before.locals.get(ref)?.[0][1] !== stack[0][1])
    if (changes.length === 0) return
    const changed = FiberRefs.unsafeMake(new Map(changes))
    this.changed.push(
      changed.locals.has(FiberRef.currentLogAnnotations) ? this.withoutIds(changed, fiber.id()) : changed
    )
  }

  private withoutIds(refs: FiberRefs.FiberRefs, fiberId: FiberId.Runtime): FiberRefs.FiberRefs {
    const own = FiberRefs.getOrDefault(this.runtime.fiberRefs, FiberRef.currentLogAnnotations)
    let value = FiberRefs.getOrDefault(refs, FiberRef.currentLogAnnotations)
    for (const key of ["toolName", "toolCallId", "sessionId", "requestId"]) {
      const before = HashMap.get(own, key)
      value = before._tag === "Some" ? HashMap.set(value, key, before.value) : HashMap.remove(value, key)
    }
    return FiberRefs.updateAs(refs, { fiberId, fiberRef: FiberRef.currentLogAnnotations, value })
  }
}
