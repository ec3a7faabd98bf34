/**
 * What happened when in a session: kept beside it, line by line, for `allm replay`.
 */
import type { Event } from "@allm/core/Event"
import { nameOf } from "@allm/core/ToolJournal"
import type { PlatformError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Cause from "effect/Cause"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Mailbox from "effect/Mailbox"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Entries from "./trace/entry.ts"
import { listening } from "./trace/logs.ts"
import { Notes, short, textOf } from "./trace/notes.ts"

export type Entry = Entries.Entry

export type Recording = Entries.Recording

/** A trace could not be read or deleted. */
export class TraceError extends Schema.TaggedError<TraceError>("@allm/cli/internal/trace/TraceError")("TraceError", {
  sessionId: Schema.String,
  operation: Schema.Literal("read", "delete"),
  location: Schema.String,
  cause: Schema.Defect
}) {
  override get message(): string {
    return `cannot ${this.operation} the trace of session ${JSON.stringify(this.sessionId)} (${this.location}): ` +
      (this.cause instanceof Error ? this.cause.message : String(this.cause))
  }
}

/** What a turn begins with. */
export interface Turn {
  /** What was said; absent when the session just goes on. */
  readonly input?: string | undefined
  readonly model: string
}

export class Traces extends Context.Tag("@allm/cli/internal/trace/Traces")<Traces, {
  /**
   * Passes the events of a turn on and notes down what happened when, also when it is interrupted or fails. Log lines of
   * all levels are noted too. When nothing can be noted, a warning says so, once, and the events go on.
   */
  readonly record: <E, R>(
    sessionId: string,
    turn: Turn,
    events: Stream.Stream<Event, E, R>
  ) => Stream.Stream<Event, E, R>
  /** Nothing is in it when there is none. */
  readonly read: (sessionId: string) => Effect.Effect<Recording, TraceError>
  /** It is no failure when there is none. */
  readonly delete: (sessionId: string) => Effect.Effect<void, TraceError>
}>() {}

/**
 * Keeps traces in files below a directory, one per session, which are only ever appended to. Several processes may write
 * to the same one.
 */
export const layerFileSystem = (
  directory: string
): Layer.Layer<Traces, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    Traces,
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      let hasWarned = false

      const fileOf = (sessionId: string): string => path.join(directory, `${nameOf(sessionId)}.ndjson`)

      const warnOnce = (file: string) => (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
        Effect.suspend(() => {
          if (hasWarned || Cause.isInterruptedOnly(cause)) return Effect.void
          hasWarned = true
          return Effect.logWarning(`the trace ${file} cannot be written, so there will be no bars to replay`, cause)
        })

      const opened = (file: string) => {
        const open = fs.open(file, { flag: "a" })
        return Effect.catchIf(
          open,
          isMissing,
          () => Effect.zipRight(fs.makeDirectory(directory, { recursive: true }), open)
        )
      }

      /** Writes what has come in the meantime, until there is nothing more to come. */
      const write = (file: string, entries: Mailbox.ReadonlyMailbox<Entry>): Effect.Effect<void> =>
        Effect.flatMap(opened(file), (handle) => {
          // The last line of a process that died may have no end.
          let lead = "\n"
          const rest: Effect.Effect<void, PlatformError> = Effect.flatMap(entries.takeAll, ([taken, done]) => {
            const text = Entries.print(Chunk.toReadonlyArray(taken))
            // As one piece, so that the lines of several processes do not mix.
            const piece = bytes.encode(lead + text)
            if (text !== "") lead = ""
            const written = text === "" ? Effect.void : handle.writeAll(piece)
            return done ? written : Effect.zipRight(written, Effect.suspend(() => rest))
          })
          return rest
        }).pipe(Effect.scoped, Effect.catchAllCause(warnOnce(file)))

      return Traces.of({
        record: (sessionId, turn, events) => recorded(turn, events, (entries) => write(fileOf(sessionId), entries)),
        read: (sessionId) =>
          Effect.map(
            Effect.catchIf(fs.readFileString(fileOf(sessionId)), isMissing, () => Effect.succeed("")),
            Entries.read
          ).pipe(Effect.mapError((cause) =>
            new TraceError({ sessionId, operation: "read", location: fileOf(sessionId), cause })
          )),
        delete: (sessionId) =>
          Effect.catchIf(fs.remove(fileOf(sessionId)), isMissing, () =>
            Effect.void).pipe(
              Effect.mapError((cause) =>
                new TraceError({ sessionId, operation: "delete", location: fileOf(sessionId), cause })
              )
            )
      })
    })
  )

const bytes = new TextEncoder()

const isMissing = (error: PlatformError): boolean => error._tag === "SystemError" && error.reason === "NotFound"

// A disk that does not answer must not keep anyone from leaving.
const patience = "2 seconds"

type Ended = Pick<Extract<Entry, { readonly _tag: "TurnEnded" }>, "outcome" | "error" | "message">

/** Events are noted as they are handed on; `write` gets the notes and works beside. */
const recorded = <E, R>(
  { input, model }: Turn,
  events: Stream.Stream<Event, E, R>,
  write: (entries: Mailbox.ReadonlyMailbox<Entry>) => Effect.Effect<void>
): Stream.Stream<Event, E, R> =>
  Stream.unwrapScoped(
    Effect.gen(function*() {
      const turn = (yield* Random.nextIntBetween(0, 36 ** 8)).toString(36).padStart(8, "0")
      const clock = yield* Effect.clock
      const mailbox = yield* Mailbox.make<Entry>()
      // Whole milliseconds: random delays have fractions that nobody wants to read.
      const note = (entry: Entry): void => void mailbox.unsafeOffer({ ...entry, at: Math.floor(entry.at) })
      const notes = new Notes(turn)
      // Whoever stops reading stops the run.
      let ended: Ended = { outcome: "interrupted" }

      note({
        _tag: "TurnBegan",
        at: clock.unsafeCurrentTimeMillis(),
        turn,
        model,
        ...(input === undefined ? {} : { input: short(input, 1000) })
      })
      yield* Effect.acquireRelease(
        Effect.forkDaemon(Effect.interruptible(write(mailbox))),
        Effect.fnUntraced(function*(writer) {
          note({ _tag: "TurnEnded", at: clock.unsafeCurrentTimeMillis(), turn, ...ended })
          yield* mailbox.end
          yield* Effect.ignore(Effect.timeout(Effect.interruptible(Fiber.await(writer)), patience))
        })
      )

      const listen = yield* listening(({ at, level, message, toolCallId, toolName }) =>
        note({
          _tag: "Logged",
          at,
          turn,
          level,
          message,
          ...(toolCallId === undefined ? {} : { toolCallId }),
          ...(toolName === undefined ? {} : { toolName })
        })
      )
      // Pulled by hand, so that only what the events do is listened to, and not what is done with them.
      const pull = yield* Stream.toPull(events)
      return Stream.repeatEffectChunkOption(
        Effect.matchCauseEffect(listen(pull), {
          onFailure: (cause) => {
            ended = endOf(cause)
            return Effect.failCause(cause)
          },
          onSuccess: (events) => {
            const at = clock.unsafeCurrentTimeMillis()
            for (const event of events) for (const entry of notes.of(event, at)) note(entry)
            return Effect.succeed(events)
          }
        })
      )
    })
  )

const endOf = (cause: Cause.Cause<Option.Option<unknown>>): Ended => {
  const failure = Option.getOrUndefined(Cause.failureOption(cause))
  if (failure !== undefined && Option.isNone(failure)) return { outcome: "completed" }
  if (Cause.isInterruptedOnly(cause)) return { outcome: "interrupted" }
  const error = failure === undefined ? Cause.squash(cause) : Option.getOrUndefined(failure)
  return {
    outcome: "failed",
    ...(failure !== undefined && Predicate.hasProperty(error, "_tag") && typeof error._tag === "string"
      ? { error: error._tag }
      : {}),
    message: error instanceof Error ? short(error.message) : textOf(error)
  }
}
