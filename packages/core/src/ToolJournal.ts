/**
 * What survives the death of a process in the middle of a batch: each call is noted down before it starts and after it
 * ended, so that on resume finished calls are answered from their notes and nobody runs them again.
 *
 * A run uses the journal it is given by the `journal` option, or finds in its context, when it has a `sessionId`.
 *
 * @since 0.1.0
 */
import type { PlatformError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as KeyValueStore from "@effect/platform/KeyValueStore"
import * as Path from "@effect/platform/Path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { type Cells, fileCells, keyValueCells, memoryCells, type StoreFailure } from "./internal/journalCells.ts"
import * as Entry from "./internal/journalEntry.ts"

/**
 * The journal could not do its work: it is out of reach (`unavailable`), an entry cannot be read (`corrupt`) or was written
 * by a later version (`unsupported_version`), an entry is about another call (`mismatch`), or a call was to be settled that
 * was never prepared (`not_prepared`). `location` names the file or key. No entry is ever changed because of it.
 *
 * @since 0.1.0
 * @category errors
 */
export class JournalError extends Schema.TaggedError<JournalError>("@allm/core/ToolJournal/JournalError")(
  "JournalError",
  {
    reason: Schema.Literal("unavailable", "corrupt", "unsupported_version", "mismatch", "not_prepared"),
    operation: Schema.Literal("prepare", "settle", "compact"),
    sessionId: Schema.String,
    toolCallId: Schema.optionalWith(Schema.String, { exact: true }),
    location: Schema.optionalWith(Schema.String, { exact: true }),
    detail: Schema.String,
    cause: Schema.optionalWith(Schema.Defect, { exact: true })
  }
) {
  override get message(): string {
    const call = this.toolCallId === undefined ? "" : `, call ${JSON.stringify(this.toolCallId)}`
    const place = this.location === undefined ? "" : ` (${this.location})`
    return `journal error: ${this.reason} in ${this.operation} of session ${JSON.stringify(this.sessionId)}${call}: ` +
      `${this.detail}${place}`
  }
}

/**
 * Which call of which session.
 *
 * @since 0.1.0
 * @category models
 */
export interface Key {
  readonly sessionId: string
  readonly toolCallId: string
}

/**
 * What a call asks for. The digest tells the same tool and arguments from others under the same id.
 *
 * @since 0.1.0
 * @category models
 */
export interface Asked {
  readonly toolName: string
  readonly digest: string
}

/**
 * How a call ended and what the model was told: enough to answer it again without running it.
 *
 * @since 0.1.0
 * @category schemas
 */
export const StoredOutcome = Entry.StoredOutcome

/**
 * @since 0.1.0
 * @category models
 */
export interface StoredOutcome extends Schema.Schema.Type<typeof StoredOutcome> {}

/**
 * What is known of a call when its turn comes: nothing, so it may start; that it started once and nobody knows how it
 * ended; or how it ended.
 *
 * @since 0.1.0
 * @category models
 */
export type Prepared =
  | { readonly _tag: "New" }
  | { readonly _tag: "InDoubt" }
  | { readonly _tag: "Settled"; readonly entry: StoredOutcome }

/**
 * Notes calls down before they start and after they ended. What a method did is durable when it succeeds, as far as the
 * store goes.
 *
 * @since 0.1.0
 * @category services
 */
export class ToolJournal extends Context.Tag("@allm/core/ToolJournal")<ToolJournal, {
  /** Notes that a call is about to start, unless something is known of it already. Of two at once only one gets `New`. */
  readonly prepare: (key: Key, asked: Asked) => Effect.Effect<Prepared, JournalError>
  /** Notes how a prepared call ended, in place of what was noted before. */
  readonly settle: (key: Key, outcome: StoredOutcome) => Effect.Effect<void, JournalError>
  /**
   * Forgets the settled calls of a session, once their results are safe elsewhere. Calls in doubt stay, and so does what
   * cannot be read: the rest is forgotten, then the operation fails with the first of those.
   */
  readonly compact: (sessionId: string) => Effect.Effect<void, JournalError>
}>() {}

/**
 * Builds a journal in memory, for tests and for runs that are resumed in the same process. It holds the same texts as the
 * durable ones, so values come back as they would from a file.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory: Layer.Layer<ToolJournal> = Layer.sync(
  ToolJournal,
  () => fromCells(memoryCells())
)

/**
 * Keeps the journal in a `KeyValueStore`, and is as durable as that is. One process at a time may work on a session.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerKeyValueStore: Layer.Layer<ToolJournal, never, KeyValueStore.KeyValueStore> = Layer.effect(
  ToolJournal,
  Effect.map(KeyValueStore.KeyValueStore, (store) => fromCells(keyValueCells(KeyValueStore.prefix(store, "journal/"))))
)

/**
 * Keeps the journal in files, one per call, below a directory that is made when missing.
 *
 * Every write goes to a file of its own, which is flushed to the disk before it takes its place, and the directory after:
 * a crash leaves the old entry or the new one. A damaged entry concerns its own call only.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerFileSystem = (
  directory: string
): Layer.Layer<ToolJournal, PlatformError, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    ToolJournal,
    Effect.gen(function*() {
      const cells = yield* fileCells(directory, yield* FileSystem.FileSystem, yield* Path.Path)
      return fromCells(cells)
    })
  )

type Operation = JournalError["operation"]

/** Where an operation is, to be told when it fails. */
interface Scene {
  readonly operation: Operation
  readonly sessionId: string
  readonly toolCallId?: string
  readonly location?: string
}

const fromCells = (cells: Cells): Context.Tag.Service<ToolJournal> => {
  const reach = <A>(scene: Scene, effect: Effect.Effect<A, StoreFailure>): Effect.Effect<A, JournalError> =>
    Effect.mapError(
      effect,
      (cause) => new JournalError({ ...scene, reason: "unavailable", detail: "the store failed", cause })
    )

  const sceneOf = (operation: Operation, { sessionId, toolCallId }: Key): Scene & { readonly location: string } => ({
    operation,
    sessionId,
    toolCallId,
    location: cells.locate({ sessionId, toolCallId })
  })

  const parse = (scene: Scene, text: string): Either.Either<Entry.Entry, JournalError> =>
    Either.mapLeft(Entry.parse(text), (problem) => new JournalError({ ...scene, ...problem }))

  const read = Effect.fnUntraced(function*(scene: Scene & { readonly location: string }, key: Key) {
    const text = yield* reach(scene, cells.read(scene.location))
    if (Option.isNone(text)) return
    const entry = yield* parse(scene, text.value)
    if (entry.sessionId === key.sessionId && entry.toolCallId === key.toolCallId) return entry
    return yield* new JournalError({ ...scene, reason: "mismatch", detail: "the entry is about a call of another id" })
  })

  const print = (scene: Scene, entry: Omit<Entry.Entry, "version">): Either.Either<string, JournalError> =>
    Either.mapLeft(Entry.print(entry), (detail) => new JournalError({ ...scene, reason: "unavailable", detail }))

  const found = (scene: Scene, asked: Asked, { digest, outcome, toolName }: Entry.Entry) => {
    if (digest !== asked.digest || toolName !== asked.toolName) {
      return Either.left(
        new JournalError({
          ...scene,
          reason: "mismatch",
          detail: `the entry is about a call of ${JSON.stringify(toolName)} with other arguments; ids are used once`
        })
      )
    }
    return Either.right<Prepared>(outcome === undefined ? { _tag: "InDoubt" } : { _tag: "Settled", entry: outcome })
  }

  const prepare = Effect.fnUntraced(function*({ sessionId, toolCallId }: Key, asked: Asked) {
    const key: Key = { sessionId, toolCallId }
    const scene = sceneOf("prepare", key)
    const known = yield* read(scene, key)
    if (known !== undefined) return yield* found(scene, asked, known)
    const text = yield* print(scene, { ...key, toolName: asked.toolName, digest: asked.digest })
    const isNew = yield* reach(scene, cells.create(key, text))
    // Someone was faster: whatever they are doing, this caller knows nothing of it.
    return isNew ? { _tag: "New" } as const : { _tag: "InDoubt" } as const
  })

  const settle = Effect.fnUntraced(function*({ sessionId, toolCallId }: Key, outcome: StoredOutcome) {
    const key: Key = { sessionId, toolCallId }
    const scene = sceneOf("settle", key)
    const known = yield* read(scene, key)
    if (known === undefined) {
      return yield* new JournalError({ ...scene, reason: "not_prepared", detail: "there is no entry of the call" })
    }
    const { digest, toolName } = known
    const text = yield* print(scene, { ...key, toolName, digest, outcome })
    yield* reach(scene, cells.replace(key, text))
  })

  const compact = Effect.fnUntraced(function*(sessionId: string) {
    const scene: Scene = { operation: "compact", sessionId }
    const settled: Array<string> = []
    let unreadable: JournalError | undefined
    for (const location of yield* reach(scene, cells.list(sessionId))) {
      const text = yield* reach({ ...scene, location }, cells.read(location))
      if (Option.isNone(text)) continue
      const entry = parse({ ...scene, location }, text.value)
      if (Either.isLeft(entry)) unreadable ??= entry.left
      else if (entry.right.outcome !== undefined) settled.push(location)
    }
    yield* reach(scene, cells.remove(sessionId, settled))
    if (unreadable !== undefined) return yield* unreadable
  })

  return ToolJournal.of({ prepare, settle, compact })
}
