/**
 * The model side: what turns a request into events.
 *
 * @since 0.1.0
 */
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { AdapterError } from "./AdapterError.ts"
import type { AdapterEvent, Event } from "./Event.ts"
import { emitInto, iterated, promised } from "./internal/emit.ts"
import { streamed } from "./internal/handover.ts"
import type { Request } from "./Request.ts"

/**
 * Takes events as they come. Waits when someone reads them slowly.
 *
 * @since 0.1.0
 * @category models
 */
export type Emit = (events: ReadonlyArray<AdapterEvent>) => Effect.Effect<void>

/**
 * What a model can do. What is not said is assumed to work.
 *
 * @since 0.1.0
 * @category models
 */
export interface Capabilities {
  readonly tools?: boolean | undefined
  readonly images?: boolean | undefined
  /** Answers that follow a JSON Schema. */
  readonly structuredOutput?: boolean | undefined
}

/**
 * An adapter: one method that asks the model and emits what it says, ending with `MessageCompleted`.
 *
 * Failing before the first event lets the call be repeated; failing later keeps what came so far.
 *
 * @since 0.1.0
 * @category models
 */
export interface Service {
  /** The provider's name, for errors and spans. */
  readonly name: string
  readonly capabilities: Capabilities
  /** Asks the model and emits what it says, as it says it. */
  readonly generate: (request: Request, emit: Emit) => Effect.Effect<void, AdapterError>
}

/**
 * The adapter in use.
 *
 * @since 0.1.0
 * @category services
 */
export class Adapter extends Context.Tag("@allm/core/Adapter")<Adapter, Service>() {}

/**
 * How an adapter presents itself. It is called `custom` unless it is named.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly name?: string | undefined
  readonly capabilities?: Capabilities | undefined
}

/**
 * Makes an adapter from an Effect that emits.
 *
 * @example
 * ```ts
 * import { Adapter, Allm, Engine } from "@allm/core"
 * import { Effect, Layer } from "effect"
 *
 * const parrot = Adapter.make((request, emit) =>
 *   emit([
 *     { _tag: "TextDelta", delta: `You said ${request.messages.length} things.` },
 *     { _tag: "MessageCompleted", finishReason: "stop", metadata: {} }
 *   ])
 * )
 *
 * const program = Effect.map(Allm.generate("Hello"), (response) => response.outputText).pipe(
 *   Effect.provide(Engine.layer().pipe(Layer.provide(Adapter.layer(parrot))))
 * )
 *
 * assert.strictEqual(Effect.runSync(program), "You said 1 things.")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (generate: Service["generate"], options?: Options): Service => ({
  name: options?.name ?? "custom",
  capabilities: options?.capabilities ?? {},
  generate
})

/**
 * Makes an adapter from a function that gives a Stream.
 *
 * @example
 * ```ts
 * import { Adapter, Allm, Engine, Message } from "@allm/core"
 * import { Effect, Layer, Stream } from "effect"
 *
 * const parrot = Adapter.fromStream((request) =>
 *   Stream.make(
 *     { _tag: "TextDelta" as const, delta: Message.toText(request.messages[0]!) },
 *     { _tag: "MessageCompleted" as const, finishReason: "stop" as const, metadata: {} }
 *   )
 * )
 *
 * const program = Effect.map(Allm.generate("Hello"), (response) => response.outputText).pipe(
 *   Effect.provide(Engine.layer().pipe(Layer.provide(Adapter.layer(parrot))))
 * )
 *
 * assert.strictEqual(Effect.runSync(program), "Hello")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromStream = (
  stream: (request: Request) => Stream.Stream<AdapterEvent, AdapterError>,
  options?: Options
): Service =>
  make(
    (request, emit) => Stream.runForEachChunk(stream(request), (chunk) => emit(Chunk.toReadonlyArray(chunk))),
    options
  )

/**
 * Makes an adapter from a function that gives a promise of all its events. `onError` names what it was rejected with; the
 * `signal` aborts when the answer is no longer wanted.
 *
 * @example
 * ```ts
 * import { Adapter, AdapterError, Allm, Engine } from "@allm/core"
 * import { Effect, Layer } from "effect"
 *
 * const clock = Adapter.fromPromise(
 *   async () => [
 *     { _tag: "TextDelta", delta: "Noon." },
 *     { _tag: "MessageCompleted", finishReason: "stop", metadata: {} }
 *   ],
 *   (cause) => new AdapterError.AdapterError({ reason: "unknown", cause })
 * )
 *
 * const program = Effect.map(Allm.generate("What time is it?"), (response) => response.outputText).pipe(
 *   Effect.provide(Engine.layer().pipe(Layer.provide(Adapter.layer(clock))))
 * )
 *
 * assert.strictEqual(await Effect.runPromise(program), "Noon.")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromPromise = (
  ask: (request: Request, context: { readonly signal: AbortSignal }) => PromiseLike<ReadonlyArray<AdapterEvent>>,
  onError: (error: unknown) => AdapterError,
  options?: Options
): Service => make(promised(ask, onError), options)

/**
 * Makes an adapter from a function that gives an async iterable of reads, each with the events it held. What comes within
 * one turn of the event loop is emitted at once. `onError` names what iterating threw.
 *
 * @example
 * ```ts
 * import { Adapter, AdapterError, Allm, Engine, Event } from "@allm/core"
 * import { Effect, Layer } from "effect"
 *
 * const asked = async function*(): AsyncIterable<ReadonlyArray<Event.AdapterEvent>> {
 *   yield [{ _tag: "TextDelta", delta: "No" }]
 *   yield [{ _tag: "TextDelta", delta: "on." }, { _tag: "MessageCompleted", finishReason: "stop", metadata: {} }]
 * }
 * const onError = (cause: unknown) => new AdapterError.AdapterError({ reason: "unknown", cause })
 * const clock = Adapter.fromAsyncIterable(asked, onError)
 *
 * const program = Effect.map(Allm.generate("What time is it?"), (response) => response.outputText).pipe(
 *   Effect.provide(Engine.layer().pipe(Layer.provide(Adapter.layer(clock))))
 * )
 *
 * assert.strictEqual(await Effect.runPromise(program), "Noon.")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromAsyncIterable = (
  iterate: (request: Request, signal: AbortSignal) => AsyncIterable<ReadonlyArray<AdapterEvent>>,
  onError: (error: unknown) => AdapterError,
  options?: Options
): Service => make(iterated(iterate, onError), options)

/**
 * Asks the adapter in use, without any of the loop's care, and gives its events as a Stream.
 *
 * @example
 * ```ts
 * import { Adapter, Fake, Message, Request } from "@allm/core"
 * import { Effect, Option, Stream } from "effect"
 *
 * const program = Adapter.stream(Request.make({ messages: [Message.user("Hi")] })).pipe(
 *   Stream.filterMap((event) => event._tag === "TextDelta" ? Option.some(event.delta) : Option.none()),
 *   Stream.mkString,
 *   Effect.provide(Fake.layer({ script: [Fake.text("Hel"), Fake.text("lo"), Fake.finish("stop")] }))
 * )
 *
 * assert.strictEqual(await Effect.runPromise(program), "Hello")
 * ```
 *
 * @since 0.1.0
 * @category running
 */
export const stream = (request: Request): Stream.Stream<AdapterEvent, AdapterError, Adapter> =>
  streamed<AdapterEvent, AdapterError, Adapter>((sink) =>
    Effect.flatMap(Adapter, (adapter) => adapter.generate(request, emitInto(sink)))
  )

/**
 * Provides an adapter.
 *
 * @example
 * ```ts
 * import { Adapter, Allm, Engine } from "@allm/core"
 * import { Effect, Layer } from "effect"
 *
 * const silent = Adapter.make((_request, emit) =>
 *   emit([{ _tag: "MessageCompleted", finishReason: "stop", metadata: {} }])
 * )
 *
 * const program = Effect.map(Allm.generate("Hello"), (response) => response.finishReason).pipe(
 *   Effect.provide(Engine.layer().pipe(Layer.provide(Adapter.layer(silent))))
 * )
 *
 * assert.strictEqual(Effect.runSync(program), "stop")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (service: Service): Layer.Layer<Adapter> => Layer.succeed(Adapter, service)

/**
 * Tells whether an event comes from a model, not from tools or the loop.
 *
 * @example
 * ```ts
 * import { Adapter } from "@allm/core"
 *
 * assert.strictEqual(Adapter.isAdapterEvent({ _tag: "TextDelta", delta: "Hel" }), true)
 * assert.strictEqual(Adapter.isAdapterEvent({ _tag: "ManualToolCalls", toolCalls: [] }), false)
 * ```
 *
 * @since 0.1.0
 * @category guards
 */
export const isAdapterEvent = (event: Event): event is AdapterEvent =>
  // What comes from outside may be anything.
  adapterTags.has((event as Event | null | undefined)?._tag)

const adapterTags: ReadonlySet<string | undefined> = new Set<AdapterEvent["_tag"]>([
  "MessageStarted",
  "TextDelta",
  "TextCompleted",
  "ReasoningDelta",
  "ToolCallStarted",
  "ToolCallDelta",
  "ToolCallCompleted",
  "MessageCompleted",
  "RawChunk",
  "ErrorOccurred"
])
