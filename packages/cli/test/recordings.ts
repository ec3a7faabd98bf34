/** Turns of a scripted model, recorded in a directory of their own, on the clock of the test. */
import { type Engine, type Event, SessionLease, SessionRunner, SessionStore, ToolJournal } from "@allm/core"
import { FileSystem } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { Duration, Effect, Fiber, Layer, Stream, TestClock } from "effect"
import { layerFileSystem, Traces } from "../src/internal/trace.ts"

/** Traces in a directory that goes away with the layer. */
export const TemporaryTraces = Layer.unwrapScoped(
  Effect.map(
    Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectoryScoped()),
    (directory) => layerFileSystem(`${directory}/traces`)
  )
).pipe(Layer.provideMerge(NodeContext.layer))

const Stores = Layer.mergeAll(SessionStore.layerMemory, SessionLease.layerMemory, ToolJournal.layerMemory)

export const World = Layer.mergeAll(
  SessionRunner.layer().pipe(Layer.provideMerge(Stores)),
  TemporaryTraces
)

type Services = SessionRunner.SessionRunner | Engine.Engine | Traces

/** A turn, recorded. */
export const recorded = <E>(
  turn: { readonly input?: string; readonly model?: string },
  events: Stream.Stream<Event.Event, E, Services>,
  sessionId = "s1"
): Stream.Stream<Event.Event, E, Services> =>
  Stream.unwrap(
    Effect.map(Traces, (traces) => traces.record(sessionId, { ...turn, model: turn.model ?? "demo" }, events))
  )

export const say = (text: string, sessionId = "s1") =>
  recorded({ input: text }, SessionRunner.streamStart(sessionId, text), sessionId)

export const reply = (text: string, sessionId = "s1") =>
  recorded({ input: text }, SessionRunner.streamReply(sessionId, text), sessionId)

export const goOn = (sessionId = "s1") => recorded({}, SessionRunner.streamContinue(sessionId), sessionId)

/** Runs an effect while the time passes. */
export const over = (duration: Duration.DurationInput) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.fork(effect)
    // In small steps: what a handler does after its sleep is to happen then, and not at the end.
    const steps = Math.ceil(Duration.toMillis(duration) / 100)
    for (let step = 0; step < steps; step++) yield* TestClock.adjust("100 millis")
    return yield* Fiber.join(fiber)
  })

export const read = (sessionId = "s1") => Effect.flatMap(Traces, (traces) => traces.read(sessionId))
