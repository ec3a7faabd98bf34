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
import * as Schema from "effect/Schema"
import { fileCells, keyValueCells, memoryCells } from "./internal/journalCells.ts"
import * as Entry from "./internal/journalEntry.ts"
import * as Names from "./internal/names.ts"

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
 * How a call ended, as it stands in a journal.
 *
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
 * A place for the entries of a journal: one text per call. What a method did is durable when it succeeds, and when it
 * fails or is cut off, each call still has its text from before or the new one, whole.
 *
 * @since 0.1.0
 * @category models
 */
export interface Cells<out E = never> {
  /** Where the text of a call is, in words for people: the file, the key, the row. No two calls have the same place. */
  readonly locate: (key: Key) => string
  readonly read: (key: Key) => Effect.Effect<string | undefined, E>
  /** Puts a text where there is none, or gives the one that is there. Of several at once only one puts its own. */
  readonly create: (key: Key, text: string) => Effect.Effect<string | undefined, E>
  /** Puts a text in the place of another. */
  readonly replace: (key: Key, text: string) => Effect.Effect<void, E>
  /** All texts of a session, with their places. */
  readonly list: (
    sessionId: string
  ) => Effect.Effect<ReadonlyArray<{ readonly location: string; readonly text: string }>, E>
  /** Removes texts of a session that were put by `replace`; it is no failure when one is gone. */
  readonly remove: (sessionId: string, toolCallIds: ReadonlyArray<string>) => Effect.Effect<void, E>
}

/**
 * Builds a journal in memory, for tests and for runs that are resumed in the same process. It holds the same texts as the
 * durable ones, so values come back as they would from a file.
 *
 * @example
 * ```ts
 * import { Tool, ToolCall, ToolJournal, ToolRunner } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const ping = Tool.make("ping", { description: "Answers", handler: () => "pong" })
 * const call = ToolCall.make({ id: "c0", name: "ping", arguments: {} })
 *
 * const program = Effect.gen(function*() {
 *   const first = yield* ToolRunner.run([call], [ping], { sessionId: "s1" })
 *   // The journal knows the answer: the tool does not run again.
 *   const again = yield* ToolRunner.run([call], [ping], { sessionId: "s1" })
 *   return [first.messages[0]?.content, again.messages[0]?.content]
 * }).pipe(Effect.provide(ToolJournal.layerMemory))
 *
 * assert.deepStrictEqual(Effect.runSync(program), ["pong", "pong"])
 * ```
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
 * @example
 * ```ts
 * import { ToolJournal } from "@allm/core"
 * import { FileSystem } from "@effect/platform"
 * import { NodeContext } from "@effect/platform-node"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const files = yield* FileSystem.FileSystem
 *   const directory = yield* files.makeTempDirectoryScoped()
 *   return yield* Effect.flatMap(ToolJournal.ToolJournal, (journal) =>
 *     journal.prepare({ sessionId: "s1", toolCallId: "c0" }, { toolName: "pay", digest: "d" })
 *   ).pipe(Effect.provide(ToolJournal.layerFileSystem(directory)))
 * }).pipe(Effect.scoped, Effect.provide(NodeContext.layer))
 *
 * assert.strictEqual((await Effect.runPromise(program))._tag, "New")
 * ```
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

/**
 * A name for an id that every store can keep, whatever the id: different for different ids, at most 180 characters, each
 * of them a small letter, a digit, `_`, `-` or `%`.
 *
 * @example
 * ```ts
 * import { ToolJournal } from "@allm/core"
 *
 * assert.strictEqual(ToolJournal.nameOf("call_7"), "call_7")
 * assert.strictEqual(ToolJournal.nameOf("../é"), "%2e%2e%2f%c3%a9")
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const nameOf = (id: string): string => Names.nameOf(id)

type Operation = JournalError["operation"]

/** Where an operation is, to be told when it fails. */
interface Scene {
  readonly operation: Operation
  readonly sessionId: string
  readonly toolCallId?: string
  readonly location?: string
}

/**
 * Makes a journal that keeps its entries in a place of your own.
 *
 * @example
 * ```ts
 * import { ToolJournal } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const texts = new Map<string, string>()
 * const journal = ToolJournal.fromCells({
 *   locate: ({ toolCallId }) => toolCallId,
 *   read: ({ toolCallId }) => Effect.sync(() => texts.get(toolCallId)),
 *   create: ({ toolCallId }, text) =>
 *     Effect.sync(() => {
 *       const before = texts.get(toolCallId)
 *       if (before === undefined) texts.set(toolCallId, text)
 *       return before
 *     }),
 *   replace: ({ toolCallId }, text) => Effect.sync(() => void texts.set(toolCallId, text)),
 *   list: () => Effect.sync(() => Array.from(texts, ([location, text]) => ({ location, text }))),
 *   remove: (_sessionId, ids) => Effect.sync(() => ids.forEach((id) => texts.delete(id)))
 * })
 * const key = { sessionId: "s1", toolCallId: "c0" }
 * const prepare = journal.prepare(key, { toolName: "pay", digest: "d" })
 *
 * assert.strictEqual(Effect.runSync(prepare)._tag, "New")
 * assert.strictEqual(Effect.runSync(prepare)._tag, "InDoubt")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromCells = <E>(cells: Cells<E>): Context.Tag.Service<ToolJournal> => {
  const reach = <A>(scene: Scene, effect: Effect.Effect<A, E>): Effect.Effect<A, JournalError> =>
    Effect.mapError(
      effect,
      (cause) => new JournalError({ ...scene, reason: "unavailable", detail: failureOf(cause), cause })
    )

  const sceneOf = (operation: Operation, key: Key): Scene => ({ operation, ...key, location: cells.locate(key) })

  const parse = (scene: Scene, text: string): Either.Either<Entry.Entry, JournalError> =>
    Either.mapLeft(Entry.parse(text), (problem) => new JournalError({ ...scene, ...problem })).pipe(
      // What was copied to another place is not about the call of that place.
      Either.filterOrLeft(
        (entry) => cells.locate(entry) === scene.location,
        () => new JournalError({ ...scene, reason: "mismatch", detail: "the entry is about a call of another id" })
      )
    )

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
    const text = yield* print(scene, { ...key, toolName: asked.toolName, digest: asked.digest })
    const known = yield* reach(scene, cells.create(key, text))
    if (known === undefined) return { _tag: "New" } as const
    return yield* Either.flatMap(parse(scene, known), (entry) => found(scene, asked, entry))
  })

  const settle = Effect.fnUntraced(function*({ sessionId, toolCallId }: Key, outcome: StoredOutcome) {
    const key: Key = { sessionId, toolCallId }
    const scene = sceneOf("settle", key)
    const known = yield* reach(scene, cells.read(key))
    if (known === undefined) {
      return yield* new JournalError({ ...scene, reason: "not_prepared", detail: "there is no entry of the call" })
    }
    const { digest, toolName } = yield* parse(scene, known)
    const text = yield* print(scene, { ...key, toolName, digest, outcome })
    yield* reach(scene, cells.replace(key, text))
  })

  const compact = Effect.fnUntraced(function*(sessionId: string) {
    const scene: Scene = { operation: "compact", sessionId }
    const settled: Array<string> = []
    let unreadable: JournalError | undefined
    for (const { location, text } of yield* reach(scene, cells.list(sessionId))) {
      const entry = parse({ ...scene, location }, text)
      if (Either.isLeft(entry)) unreadable ??= entry.left
      else if (entry.right.outcome !== undefined) settled.push(entry.right.toolCallId)
    }
    yield* reach(scene, cells.remove(sessionId, settled))
    if (unreadable !== undefined) return yield* unreadable
  })

  return ToolJournal.of({ prepare, settle, compact })
}

const failureOf = (cause: unknown): string =>
  cause instanceof Error && cause.message !== "" ? `the store failed: ${cause.message}` : "the store failed"
