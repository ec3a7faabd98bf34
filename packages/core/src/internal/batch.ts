/**
 * One batch of calls, run to its end: the only implementation, behind `run` and behind `stream`.
 *
 * Every call is one fiber of its own on the caller's runtime, or none when its handler needs none, observed by callbacks
 * inside a single `Effect.async`. Such fibers are nobody's children, so what Effect does for children is done here: they are interrupted with the caller, they
 * see and give back its FiberRefs, and their defects are caught.
 */
import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import type { ToolEvent } from "../Event.ts"
import type { Any } from "../Tool.ts"
import type { ToolCall } from "../ToolCall.ts"
import * as ToolError from "../ToolError.ts"
import { Call, type Owner } from "./call.ts"
import type { CallFibers } from "./callFibers.ts"
import { Course, type Host, type Rules } from "./course.ts"
import { Fold } from "./fold.ts"
import { roomIn, type Sink } from "./handover.ts"
import type { Completed, Ending } from "./journal.ts"
import { Order } from "./order.ts"
import type { Deadlines, Timed } from "./timekeeper.ts"
import type { Shared } from "./toolContext.ts"

export type Siblings = "drain" | "interrupt" | { readonly drainFor: Duration.Duration }

export interface Plan extends Rules {
  readonly calls: ReadonlyArray<ToolCall>
  readonly concurrency: number
  readonly siblings: Siblings
  readonly shared: Shared
  readonly clock: Clock.Clock
  readonly fibers: CallFibers
  readonly deadlines: Deadlines
  /** How long the batch as a whole may take, in milliseconds; what still runs then is stopped. */
  readonly limit: number | undefined
  /** How many calls may run, and what the others are told. */
  readonly allowance: { readonly calls: number; readonly detail: string } | undefined
  /** The services a tool was given when its engine was built, to be used before the caller's. */
  readonly environmentOf: ((tool: Any) => Context.Context<never> | undefined) | undefined
  /** Where events go besides the fold. */
  readonly sink: Sink<ToolEvent> | undefined
}

// Calls that may end synchronously in one turn before other fibers get theirs.
const burst = 512

export class Batch implements Host, Owner {
  readonly fold: Fold
  private readonly plan: Plan
  private readonly course: Course
  private readonly order: Order<Call>
  private readonly surplus: ReadonlyArray<Call>
  private readonly running = new Set<Call>()
  private isWaitingForRoom = false
  private readonly onDone: () => void
  private left: number
  private pumping = false
  private halted = false
  private closed = false
  private onIdle: (() => void) | undefined

  constructor(plan: Plan, onDone: () => void) {
    this.plan = plan
    this.onDone = onDone
    this.fold = new Fold(plan.calls)
    const automatic: Array<Call> = []
    const manual: Array<ToolCall> = []
    for (const toolCall of plan.calls) {
      const tool = plan.tools.get(toolCall.name)
      if (tool?.manual === true) manual.push(toolCall)
      else automatic.push(new Call(toolCall, tool, plan.shared, this))
    }
    this.course = new Course(plan, this)
    this.left = automatic.length
    this.surplus = plan.allowance === undefined ? [] : automatic.splice(plan.allowance.calls)
    this.order = new Order(automatic, plan.concurrency)
    if (manual.length > 0) this.push({ _tag: "ManualToolCalls", toolCalls: manual })
  }

  get isOver(): boolean {
    return this.closed
  }

  start(): void {
    if (this.plan.limit !== undefined) this.stopAfter(this.plan.limit, true)
    for (const call of this.surplus) {
      this.admit(call)
      this.attempt(call, () => this.course.drop(call, this.plan.allowance!.detail))
    }
    this.pump()
  }

  /** Interrupts everything and waits until it is over, or past its deadline. Nothing is emitted from here on. */
  cancel(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.closed = true
      this.order.drop()
      for (const call of this.running) this.interrupt(call)
      return Effect.uninterruptible(
        Effect.async<void>((resume) => {
          this.onIdle = () => resume(Effect.void)
          this.checkIdle()
        })
      )
    })
  }

  private checkIdle(): void {
    if (this.running.size === 0) this.onIdle?.()
  }

  private readonly pump = (): void => {
    if (this.pumping || this.closed) return
    this.pumping = true
    for (let started = 0; this.hasRoom(); started++) {
      if (started === burst) {
        this.plan.fibers.fork(Effect.zipRight(Effect.yieldNow(), Effect.sync(this.pump)))
        break
      }
      const call = this.order.next()
      if (call === undefined) break
      call.admitted = true
      this.admit(call)
      this.attempt(call, () => this.course.begin(call))
    }
    this.pumping = false
    if (this.left === 0) this.complete()
  }

  private admit(call: Call): void {
    call.startedAt = this.plan.clock.unsafeCurrentTimeNanos()
    this.running.add(call)
  }

  stage<A, E>(call: Call, effect: Effect.Effect<A, E>, next: (exit: Exit.Exit<A, E>) => void): void {
    const { fibers } = this.plan
    const environment = call.tool === undefined ? undefined : this.plan.environmentOf?.(call.tool)
    const fiber = fibers.forkCall(call, effect, environment)
    const early = fiber.unsafePoll()
    if (early !== null) {
      if (Exit.isSuccess(early)) fibers.succeeded(call, fiber)
      return next(early)
    }
    call.fiber = fiber
    this.limit(call)
    fiber.addObserver((exit) => {
      // A fiber that was left behind has nothing more to say, also while its call is not yet over.
      if (call.fiber !== fiber) return
      if (Exit.isSuccess(exit) && !this.closed && !call.expired) fibers.succeeded(call, fiber)
      this.goOn(call, exit, next)
    })
  }

  await(call: Call, promise: PromiseLike<unknown>, next: (exit: Exit.Exit<unknown, never>) => void): void {
    const waiter = (exit: Exit.Exit<unknown, never>): void => {
      if (call.waiter !== waiter) return
      call.waiter = undefined
      this.goOn(call, exit, next)
    }
    call.waiter = waiter
    this.limit(call)
    // Adoption by a real promise tames thenables that throw, settle twice, or call back synchronously.
    Promise.resolve(promise).then(
      (value) => waiter(Exit.succeed(value)),
      (reason: unknown) => waiter(Exit.die(reason))
    )
  }

  record(call: Call, effect: Effect.Effect<void, unknown>, next: (exit: Exit.Exit<void, unknown>) => void): void {
    const { clock, deadlines, fibers, toolTimeout } = this.plan
    const fiber = fibers.forkCall(call, Effect.uninterruptible(Effect.tapErrorCause(effect, notRecorded)), undefined)
    const early = fiber.unsafePoll()
    if (early !== null) return next(early)
    call.fiber = fiber
    const over = (exit: Exit.Exit<void, unknown>): void => {
      if (call.fiber === fiber) this.goOn(call, exit, next)
    }
    fiber.addObserver(over)
    const late = (): void => {
      fibers.forkCall(call, notRecorded(Cause.die("the journal took too long")), undefined)
      over(Exit.void)
    }
    deadlines.add(new RecordLimit(call, late), Duration.toMillis(toolTimeout), clock.unsafeCurrentTimeNanos())
  }

  private limit(call: Call): void {
    if (call.deadline === Infinity && call.stage !== "policy") {
      this.plan.deadlines.add(call, Duration.toMillis(call.tool?.timeout ?? this.plan.toolTimeout), call.startedAt)
    }
  }

  private goOn<A, E>(call: Call, exit: Exit.Exit<A, E>, next: (exit: Exit.Exit<A, E>) => void): void {
    call.fiber = undefined
    if (this.closed) return this.forget(call)
    if (call.expired) return this.timedOut(call, false)
    this.attempt(call, () => next(exit))
    this.pump()
  }

  /** Schemas, getters and proxies of the user's run in here; what they throw is the call's, not the batch's. */
  private attempt(call: Call, work: () => void): void {
    try {
      work()
    } catch (thrown) {
      if (!call.isSettled) this.course.crashed(call, thrown)
    }
  }

  /** The batch was cancelled and the call is over. */
  private forget(call: Call): void {
    this.plan.telemetry.cancelled(call)
    call.isSettled = true
    this.running.delete(call)
    this.checkIdle()
  }

  expire(call: Call): void {
    if (call.isSettled || call.stage === "policy") return
    call.expired = true
    this.interrupt(call)
  }

  abandon(call: Call): void {
    if (call.isSettled || call.stage === "policy") return
    this.plan.telemetry.abandoned(call.toolCall)
    if (this.closed) return this.forget(call)
    this.timedOut(call, true)
  }

  abandonAll(): void {
    for (const call of this.running) this.abandon(call)
  }

  private timedOut(call: Call, abandoned: boolean): void {
    call.fiber = undefined
    call.expired = false
    if (call.stage === "gate") {
      this.course.pending(call)
    } else if (call.stopped) {
      this.course.interrupted(call)
    } else {
      const limitMillis = Duration.toMillis(call.tool?.timeout ?? this.plan.toolTimeout)
      this.course.failed(call, new ToolError.Timeout({ ...call.ids, limitMillis, abandoned }))
    }
    this.pump()
  }

  private interrupt(call: Call): void {
    call.context.abort()
    call.waiter?.(Exit.interrupt(FiberId.none))
    call.fiber?.unsafeInterruptAsFork(FiberId.none)
  }

  halt(): void {
    if (this.halted || this.closed) return
    this.halted = true
    const { siblings } = this.plan
    if (siblings === "interrupt") this.stopSiblings()
    else if (siblings !== "drain") this.stopAfter(Duration.toMillis(siblings.drainFor), false)
  }

  private stopAfter(limit: number, isHard: boolean): void {
    this.plan.deadlines.add(new StopLimit(this, isHard), limit, this.plan.clock.unsafeCurrentTimeNanos())
  }

  stopSiblings(): void {
    if (this.closed) return
    const running = [...this.running]
    for (const call of this.order.drop()) {
      this.admit(call)
      this.attempt(call, () => this.course.drop(call))
    }
    for (const call of running) {
      if (call.stage === "policy") continue
      call.stopped = true
      // What is being looked up may be a result.
      if (call.stage !== "prepare") this.interrupt(call)
    }
    this.pump()
  }

  finish(call: Call, completed: Completed | undefined, last: Ending): void {
    call.isSettled = true
    call.fiber = undefined
    this.running.delete(call)
    if (call.admitted) this.order.release(call)
    this.plan.telemetry.end(call, completed?.result)
    if (completed !== undefined) this.push(completed)
    this.push(last)
    this.left--
  }

  progress(call: Call, value: unknown): Effect.Effect<void> {
    // An abandoned handler may go on reporting; nobody listens any more.
    if (this.closed || call.isSettled || call.expired) return Effect.void
    this.push({ _tag: "ToolProgress", ...call.ids, value })
    const { sink } = this.plan
    return sink === undefined || sink.hasRoom ? Effect.void : roomIn(sink)
  }

  push(event: ToolEvent): void {
    this.fold.add(event)
    this.plan.sink?.push(event)
  }

  /** No call is started that a slow reader has no room to hear of. */
  private hasRoom(): boolean {
    const { sink } = this.plan
    if (sink === undefined || sink.hasRoom) return true
    if (!this.isWaitingForRoom) {
      this.isWaitingForRoom = true
      sink.onRoom(() => {
        this.isWaitingForRoom = false
        this.pump()
      })
    }
    return false
  }

  private complete(): void {
    this.closed = true
    this.onDone()
  }
}

const notRecorded = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.logError("the journal could not note how a call ended; after a crash its outcome would be unknown", cause)

/** How long a journal may take to note how a call ended, before the call goes on without it. */
class RecordLimit implements Timed {
  deadline = Infinity
  keptBy: Deadlines | undefined
  private readonly call: Call
  private readonly fiber: Call["fiber"]
  readonly abandon: () => void

  constructor(call: Call, abandon: () => void) {
    this.call = call
    this.fiber = call.fiber
    this.abandon = abandon
  }

  get isSettled(): boolean {
    return this.call.fiber !== this.fiber
  }

  expire(): void {}
}

/** When all that still runs is to be stopped. */
class StopLimit implements Timed {
  deadline = Infinity
  keptBy: Deadlines | undefined
  private readonly batch: Batch
  /** Also what does not stop is left behind, before its own limit. */
  private readonly isHard: boolean

  constructor(batch: Batch, isHard: boolean) {
    this.batch = batch
    this.isHard = isHard
  }

  get isSettled(): boolean {
    return this.batch.isOver
  }

  expire(): void {
    this.batch.stopSiblings()
  }

  abandon(): void {
    if (this.isHard) this.batch.abandonAll()
  }
}
