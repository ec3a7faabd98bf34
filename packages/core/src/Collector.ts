/**
 * Folding events back into results: a stream to its end, or as far as it came.
 *
 * @since 0.1.0
 */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Stream from "effect/Stream"
import { isAdapterEvent } from "./Adapter.ts"
import { AdapterError } from "./AdapterError.ts"
import type { ChatResult } from "./ChatResult.ts"
import type { Event, ToolEvent } from "./Event.ts"
import { summarize } from "./internal/errorSummary.ts"
import { Fold } from "./internal/fold.ts"
import * as Issues from "./internal/issues.ts"
import { ResponseFold } from "./internal/responseFold.ts"
import { makeStep } from "./internal/stepResult.ts"
import type { Response } from "./Response.ts"
import type { StepResult } from "./StepResult.ts"
import type { Thread } from "./Thread.ts"
import * as Usage from "./Usage.ts"
import type { ValidationError } from "./ValidationError.ts"

/**
 * What events have come to so far. It changes as events are added: one collector belongs to one stream.
 *
 * @since 0.1.0
 * @category models
 */
export interface Collector {
  readonly "~@allm/core/Collector": State
}

/**
 * What a collector has to know that no event tells.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** What the conversation was before the first event; without it there is a response, but no step and no chat. */
  readonly thread?: Thread | undefined
  readonly mode?: "auto" | "manual" | undefined
  readonly requestId?: string | undefined
}

interface State {
  readonly options: Options
  readonly steps: Array<StepResult>
  thread: Thread | undefined
  response: ResponseFold
  tools: Fold | undefined
  lastStep: StepResult | undefined
  chat: ChatResult | undefined
  usage: Usage.Usage
  /** Something came since the last step. */
  isOpen: boolean
  error: unknown
}

/**
 * Makes a collector that has seen nothing.
 *
 * @example
 * ```ts
 * import { Collector, Message, Thread } from "@allm/core"
 * import { Either } from "effect"
 *
 * const thread = Thread.make([Message.user("Hi")])
 *
 * assert.strictEqual(Either.isRight(Collector.toChatResult(Collector.make({ thread }))), true)
 * // Without what was said before, there is a response, but no chat.
 * assert.strictEqual(Either.isLeft(Collector.toChatResult(Collector.make())), true)
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options = {}): Collector => ({
  "~@allm/core/Collector": {
    options,
    steps: [],
    thread: options.thread,
    response: new ResponseFold(),
    tools: undefined,
    lastStep: undefined,
    chat: undefined,
    usage: Usage.empty,
    isOpen: false,
    error: undefined
  }
})

/**
 * Adds an event. Total: what it does not know, it leaves out.
 *
 * @example
 * ```ts
 * import { Collector } from "@allm/core"
 *
 * const collector = Collector.make()
 * Collector.add(collector, { _tag: "TextDelta", delta: "Hel" })
 * Collector.add(collector, { _tag: "TextDelta", delta: "lo" })
 *
 * assert.strictEqual(Collector.toResponse(collector).outputText, "Hello")
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const add = (self: Collector, event: Event): Collector => {
  const state = self["~@allm/core/Collector"]
  if (typeof event !== "object" || event === null) return self
  switch (event._tag) {
    case "StepCompleted":
      closeStep(state, event.result)
      return self
    case "ChatCompleted":
      state.chat = event.result
      return self
    default:
      if (isAdapterEvent(event)) addToResponse(state, event)
      else if (isToolEvent(event)) addToTools(state, event)
      return self
  }
}

const toolTags: ReadonlySet<string> = new Set<ToolEvent["_tag"]>([
  "ToolExecutionStarted",
  "ToolProgress",
  "ToolExecutionCompleted",
  "ToolResultEncoded",
  "AskUserRequested",
  "ToolHalt",
  "ManualToolCalls"
])

const isToolEvent = (event: Event): event is ToolEvent => toolTags.has(event._tag)

const addToResponse = (state: State, event: Extract<Event, Parameters<ResponseFold["add"]>[0]>): void => {
  state.isOpen = true
  state.response.add(event)
  if (event._tag === "ErrorOccurred") state.error = event.error
}

const addToTools = (state: State, event: ToolEvent): void => {
  state.isOpen = true
  // The calls are known by now: tools only run when the model is done.
  state.tools ??= new Fold(state.response.response(state.options.requestId).toolCalls)
  state.tools.add(event)
}

const closeStep = (state: State, step: StepResult): void => {
  state.steps.push(step)
  state.lastStep = step
  state.thread = step.thread
  state.usage = Usage.add(state.usage, step.response.usage)
  state.response = new ResponseFold()
  state.tools = undefined
  state.isOpen = false
}

/**
 * The response so far: of the step under way, else of the last one. There always is one.
 *
 * @example
 * ```ts
 * import { Allm, Collector, Fake } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const program = Collector.collect(Allm.streamGenerate("Hi")).pipe(
 *   Effect.map(Collector.toResponse),
 *   Effect.provide(Fake.engine({ script: [Fake.text("Hello"), Fake.finish("stop")] }))
 * )
 *
 * assert.strictEqual((await Effect.runPromise(program)).outputText, "Hello")
 * ```
 *
 * @since 0.1.0
 * @category decoding
 */
export const toResponse = (self: Collector): Response => {
  const state = self["~@allm/core/Collector"]
  return state.isOpen || state.lastStep === undefined
    ? state.response.response(state.options.requestId)
    : state.lastStep.response
}

/**
 * The step so far: the last one that was completed, unless another is under way.
 *
 * @example
 * ```ts
 * import { Allm, Collector, Fake, Message, Thread } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const thread = Thread.make([Message.user("Hi")])
 *
 * const program = Collector.collect(Allm.streamStep(thread), { thread }).pipe(
 *   Effect.flatMap(Collector.toStepResult),
 *   Effect.provide(Fake.engine({ script: [Fake.text("Hello"), Fake.finish("stop")] }))
 * )
 *
 * const step = await Effect.runPromise(program)
 *
 * assert.strictEqual(step.done, true)
 * assert.strictEqual(step.thread.messages.length, 2)
 * ```
 *
 * @since 0.1.0
 * @category decoding
 */
export const toStepResult = (self: Collector): Either.Either<StepResult, ValidationError> => {
  const state = self["~@allm/core/Collector"]
  if (!state.isOpen && state.lastStep !== undefined) return Either.right(state.lastStep)
  return Either.map(
    threadOf(state),
    (thread) => makeStep(thread, toResponse(self), state.tools?.result(), state.options.mode ?? "auto")
  )
}

/**
 * The chat so far. One that was cut off is `cancelled`, or an `error` if there was one; never `completed`.
 *
 * @example
 * ```ts
 * import { Allm, Collector, Fake, Message, Thread } from "@allm/core"
 * import { Effect, Either, Stream } from "effect"
 *
 * const thread = Thread.make([Message.user("Tell me a story")])
 *
 * const program = Allm.stream(thread).pipe(
 *   Stream.take(2),
 *   Stream.runFold(Collector.make({ thread }), Collector.add),
 *   Effect.provide(Fake.engine({ script: [Fake.text("Once"), Fake.text(" upon"), Fake.finish("stop")] }))
 * )
 *
 * const result = Either.getOrThrow(Collector.toChatResult(await Effect.runPromise(program)))
 *
 * assert.strictEqual(result.haltedReason, "cancelled")
 * assert.strictEqual(result.finalResponse.outputText, "Once")
 * ```
 *
 * @since 0.1.0
 * @category decoding
 */
export const toChatResult = (self: Collector): Either.Either<ChatResult, ValidationError> => {
  const state = self["~@allm/core/Collector"]
  if (state.chat !== undefined) return Either.right(state.chat)
  return Either.map(threadOf(state), (thread): ChatResult => {
    const finalResponse = toResponse(self)
    const isError = state.error !== undefined
    return {
      // Half a turn is in the response; history only holds whole ones.
      thread,
      finalResponse,
      steps: state.steps.slice(),
      haltedReason: isError ? "error" : "cancelled",
      pendingQuestions: [],
      pendingApprovals: [],
      manualToolCalls: [],
      usage: state.isOpen ? Usage.add(state.usage, finalResponse.usage) : state.usage,
      ...(state.error instanceof AdapterError ? { error: state.error } : {}),
      metadata: isError ? { error: summarize(state.error) } : {}
    }
  })
}

const threadOf = (state: State): Either.Either<Thread, ValidationError> =>
  state.thread === undefined
    ? Issues.toEither("invalid_thread", [
      Issues.issue(
        ["thread"],
        "required",
        "the events do not tell what was said before them; write Collector.make({ thread }), or use toResponse"
      )
    ], nothing)
    : Either.right(state.thread)

const nothing: Thread = { messages: [], metadata: {} }

/**
 * Collects a stream to its end.
 *
 * @example
 * ```ts
 * import { Allm, Collector, Fake } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.map(Collector.collect(Allm.stream("Hi")), Collector.toResponse).pipe(
 *   Effect.provide(Fake.engine({ script: [Fake.text("Hel"), Fake.text("lo"), Fake.finish("stop")] }))
 * )
 *
 * assert.strictEqual((await Effect.runPromise(program)).outputText, "Hello")
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const collect = <E, R>(
  stream: Stream.Stream<Event, E, R>,
  options?: Options
): Effect.Effect<Collector, E, R> =>
  Effect.suspend(() => {
    const collector = make(options)
    return Effect.as(
      Stream.runForEachChunk(stream, (chunk) =>
        Effect.sync(() => {
          for (const event of Chunk.toReadonlyArray(chunk)) add(collector, event)
        })),
      collector
    )
  })
