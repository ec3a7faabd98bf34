/**
 * One call of a batch, from its turn in the queue to its last event.
 */
import * as Cause from "effect/Cause"
import type * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type * as FiberRefs from "effect/FiberRefs"
import type * as Tracer from "effect/Tracer"
import type { Any } from "../Tool.ts"
import type { ToolCall } from "../ToolCall.ts"
import * as ToolError from "../ToolError.ts"
import type { Ids } from "./lift.ts"
import type { Exclusion } from "./order.ts"
import type { Deadlines, Timed } from "./timekeeper.ts"
import { compiledOf } from "./tool.ts"
import { ContextImpl, type Reporter, type Shared } from "./toolContext.ts"

/** Who a call belongs to. */
export interface Owner {
  readonly progress: (call: Call, value: unknown) => Effect.Effect<void>
  readonly expire: (call: Call) => void
  readonly abandon: (call: Call) => void
}

export class Call implements Reporter, Timed {
  readonly toolCall: ToolCall
  readonly tool: Any | undefined
  readonly context: ContextImpl
  private readonly owner: Owner
  deadline = Infinity
  keptBy: Deadlines | undefined
  isSettled = false
  /** Let in by the order, so it has to be let out. */
  admitted = false
  /** In nanoseconds of the clock, when its turn came. */
  startedAt = 0n
  /** What runs it now: a fiber, or a promise by who waits for it. */
  fiber: Fiber.RuntimeFiber<unknown, unknown> | undefined
  waiter: ((exit: Exit.Exit<unknown, never>) => void) | undefined
  /** What its fiber started with. */
  initialRefs: FiberRefs.FiberRefs | undefined
  /** Over its limit. */
  expired = false
  /** Told to stop because a sibling halted. */
  stopped = false
  stage: "gate" | "prepare" | "run" | "policy" = "run"
  /** Its result is with the encoder. */
  encoding = false
  /** The journal knows that it started, and not yet how it ended. */
  isNoted = false
  fault: ToolError.ToolError | undefined
  span: Tracer.Span | undefined
  private exclusive: Exclusion | undefined

  constructor(
    toolCall: ToolCall,
    tool: Any | undefined,
    shared: Shared,
    owner: Owner
  ) {
    this.toolCall = toolCall
    this.tool = tool
    this.owner = owner
    this.context = new ContextImpl(toolCall, shared, this, true)
  }

  get ids(): Ids {
    return { toolName: this.toolCall.name, toolCallId: this.toolCall.id }
  }

  report(value: unknown): Effect.Effect<void> {
    return this.owner.progress(this, value)
  }

  expire(): void {
    this.owner.expire(this)
  }

  abandon(): void {
    this.owner.abandon(this)
  }

  /** Computed once, when its turn comes. */
  get exclusion(): Exclusion {
    return this.exclusive ??= this.computeExclusion()
  }

  private computeExclusion(): Exclusion {
    const exclusive = this.tool?.exclusive ?? false
    if (typeof exclusive === "boolean") return exclusive
    const key = Either.try({
      try: () => {
        const decoded = compiledOf(this.tool!).decode(this.toolCall.arguments)
        // A schema that needs an Effect gives no key yet: alone is the safe answer.
        if (!Either.isEither(decoded)) return true
        return Either.isRight(decoded) && exclusive(decoded.right as never)
      },
      catch: (defect) => Cause.die(defect)
    })
    if (Either.isRight(key)) return key.right
    this.fault = new ToolError.HandlerRaised({ ...this.ids, cause: key.left })
    return false
  }
}
