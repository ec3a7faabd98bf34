import { ToolError, ToolJournal, ToolResult } from "@allm/core"
import { Error as PlatformError, FileSystem, KeyValueStore, Path } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Effect, Layer, Schema } from "effect"

const c0 = { sessionId: "s", toolCallId: "c0" }
const c1 = { sessionId: "s", toolCallId: "c1" }
const asked = { toolName: "pay", digest: "d0" }

const paid: ToolJournal.StoredOutcome = {
  result: ToolResult.ok({ receipt: 7 }),
  content: "{\"receipt\":7}",
  isError: false,
  halts: false
}

const files = Layer.unwrapScoped(
  Effect.map(
    Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectoryScoped()),
    (directory) => ToolJournal.layerFileSystem(directory)
  )
).pipe(Layer.provide(NodeContext.layer), Layer.orDie)

const stores = [
  ["layerMemory", ToolJournal.layerMemory],
  ["layerKeyValueStore", Layer.provide(ToolJournal.layerKeyValueStore, KeyValueStore.layerMemory)],
  ["layerFileSystem", files]
] as const

const reasonOf = (error: ToolJournal.JournalError) => error.reason

describe.each(stores)("ToolJournal.%s", (_name, layer) => {
  it.effect("knows a call as new, in doubt, then settled", () =>
    Effect.gen(function*() {
      const journal = yield* ToolJournal.ToolJournal
      const first = yield* journal.prepare(c0, asked)
      const second = yield* journal.prepare(c0, asked)
      yield* journal.settle(c0, paid)
      const third = yield* journal.prepare(c0, asked)

      assert.deepStrictEqual(first, { _tag: "New" })
      assert.deepStrictEqual(second, { _tag: "InDoubt" })
      assert.deepStrictEqual(third, {
        _tag: "Settled",
        entry: { ...paid, result: { _tag: "Ok", value: { receipt: 7 } } }
      })
    }).pipe(Effect.provide(layer)))

  it.effect("keeps calls and sessions apart, whatever their ids", () =>
    Effect.gen(function*() {
      const journal = yield* ToolJournal.ToolJournal
      const ids = ["a", "A", "a/b", "a%2fb", "..", "", "é", "x".repeat(1_000), `${"x".repeat(999)}y`, "a\u0000", "con"]
      for (const sessionId of ids) {
        for (const toolCallId of ids) {
          assert.deepStrictEqual(yield* journal.prepare({ sessionId, toolCallId }, asked), { _tag: "New" })
        }
      }
      for (const sessionId of ids) {
        for (const toolCallId of ids) {
          yield* journal.settle({ sessionId, toolCallId }, { ...paid, content: `${sessionId}:${toolCallId}` })
        }
      }
      for (const sessionId of ids) {
        for (const toolCallId of ids) {
          const known = yield* journal.prepare({ sessionId, toolCallId }, asked)
          assert.strictEqual(known._tag === "Settled" && known.entry.content, `${sessionId}:${toolCallId}`)
        }
      }
    }).pipe(Effect.provide(layer)))

  it.effect("refuses an id that was used for something else, and leaves the entry", () =>
    Effect.gen(function*() {
      const journal = yield* ToolJournal.ToolJournal
      yield* journal.prepare(c0, asked)
      const otherArguments = yield* Effect.flip(journal.prepare(c0, { ...asked, digest: "d1" }))
      const otherTool = yield* Effect.flip(journal.prepare(c0, { ...asked, toolName: "refund" }))

      assert.strictEqual(otherArguments.reason, "mismatch")
      assert.strictEqual(otherTool.reason, "mismatch")
      assert.deepStrictEqual(yield* journal.prepare(c0, asked), { _tag: "InDoubt" })
    }).pipe(Effect.provide(layer)))

  it.effect("settles only what was prepared", () =>
    Effect.gen(function*() {
      const journal = yield* ToolJournal.ToolJournal
      const error = yield* Effect.flip(journal.settle(c0, paid))

      assert.deepInclude(error, {
        _tag: "JournalError",
        reason: "not_prepared",
        operation: "settle",
        sessionId: "s",
        toolCallId: "c0"
      })
      assert.deepStrictEqual(yield* journal.prepare(c0, asked), { _tag: "New" })
    }).pipe(Effect.provide(layer)))

  it.effect("takes the word of whoever settles last", () =>
    Effect.gen(function*() {
      const journal = yield* ToolJournal.ToolJournal
      const unknown = new ToolError.OutcomeUnknown({ toolName: "pay", toolCallId: "c0" })
      yield* journal.prepare(c0, asked)
      yield* journal.settle(c0, { result: unknown, content: "unknown", isError: true, halts: true })
      yield* journal.settle(c0, paid)
      const known = yield* journal.prepare(c0, asked)

      assert.strictEqual(known._tag === "Settled" && known.entry.content, paid.content)
    }).pipe(Effect.provide(layer)))

  it.effect("forgets the settled calls of a session and nothing else", () =>
    Effect.gen(function*() {
      const journal = yield* ToolJournal.ToolJournal
      const elsewhere = { sessionId: "s2", toolCallId: "c0" }
      for (const key of [c0, c1, elsewhere]) yield* journal.prepare(key, asked)
      for (const key of [c0, elsewhere]) yield* journal.settle(key, paid)
      yield* journal.compact("s")
      yield* journal.compact("never seen")

      assert.strictEqual((yield* journal.prepare(c0, asked))._tag, "New")
      assert.strictEqual((yield* journal.prepare(c1, asked))._tag, "InDoubt")
      assert.strictEqual((yield* journal.prepare(elsewhere, asked))._tag, "Settled")
    }).pipe(Effect.provide(layer)))

  it.effect("lets one of many start the same call", () =>
    Effect.gen(function*() {
      const journal = yield* ToolJournal.ToolJournal
      const known = yield* Effect.all(Array.from({ length: 20 }, () => journal.prepare(c0, asked)), {
        concurrency: "unbounded"
      })

      assert.strictEqual(known.filter((prepared) => prepared._tag === "New").length, 1)
      assert.strictEqual(known.filter((prepared) => prepared._tag === "InDoubt").length, 19)
    }).pipe(Effect.provide(layer)))

  it.effect("loses none of many calls of a session at once", () =>
    Effect.gen(function*() {
      const journal = yield* ToolJournal.ToolJournal
      const keys = Array.from({ length: 30 }, (_, index) => ({ sessionId: "s", toolCallId: `c${index}` }))
      const all = { concurrency: "unbounded", discard: true } as const
      yield* Effect.forEach(keys, (key) => journal.prepare(key, asked), all)
      yield* Effect.forEach(keys, (key) => journal.settle(key, { ...paid, content: key.toolCallId }), all)
      const known = yield* Effect.forEach(keys, (key) => journal.prepare(key, asked))

      assert.deepStrictEqual(
        known.map((prepared) => prepared._tag === "Settled" && prepared.entry.content),
        keys.map((key) => key.toolCallId)
      )
      yield* journal.compact("s")
      const after = yield* Effect.forEach(keys, (key) => journal.prepare(key, asked))
      assert.deepStrictEqual([...new Set(after.map((prepared) => prepared._tag))], ["New"])
    }).pipe(Effect.provide(layer)))

  it.effect("keeps results that are no JSON in a readable form", () =>
    Effect.gen(function*() {
      const journal = yield* ToolJournal.ToolJournal
      const cycle: { self?: unknown } = {}
      cycle.self = cycle
      const error = new ToolError.HandlerRaised({
        toolName: "pay",
        toolCallId: "c0",
        cause: Cause.die(new Error("boom", { cause: cycle }))
      })
      yield* journal.prepare(c0, asked)
      yield* journal.settle(c0, { result: error, content: "e", isError: true, halts: false })
      yield* journal.prepare(c1, asked)
      yield* journal.settle(c1, { ...paid, result: ToolResult.ok([1n, cycle, () => 1]) })
      const raised = yield* journal.prepare(c0, asked)
      const odd = yield* journal.prepare(c1, asked)

      assert.strictEqual(raised._tag === "Settled" && raised.entry.result._tag, "HandlerRaised")
      assert.strictEqual(odd._tag === "Settled" && odd.entry.result._tag, "Ok")
    }).pipe(Effect.provide(layer)))
})

describe("ToolJournal.StoredOutcome", () => {
  it.prop(
    "survives JSON",
    [Schema.Struct({ content: Schema.String, isError: Schema.Boolean, question: Schema.String })],
    ([{ content, isError, question }]) => {
      const outcome: ToolJournal.StoredOutcome = {
        result: ToolResult.askUser(question),
        content,
        isError,
        halts: true,
        replaced: new ToolError.Timeout({ limitMillis: 5 })
      }
      const text = JSON.stringify(Schema.encodeSync(ToolJournal.StoredOutcome)(outcome))
      const again = Schema.decodeUnknownSync(ToolJournal.StoredOutcome)(JSON.parse(text))

      assert.deepStrictEqual(again, { ...outcome, result: { _tag: "AskUser", question, options: {} } })
    }
  )
})

const scene = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const directory = yield* fs.makeTempDirectoryScoped()
  const journal = Context.get(
    yield* Layer.build(ToolJournal.layerFileSystem(directory)),
    ToolJournal.ToolJournal
  )
  return { fs, path, directory, journal, file: path.join(directory, "s", "c0.json") }
})

const damages: ReadonlyArray<
  readonly [name: string, damage: (text: string) => string, reason: ToolJournal.JournalError["reason"]]
> = [
  ["an empty file", () => "", "corrupt"],
  ["a torn file", (text) => text.slice(0, text.length / 2), "corrupt"],
  ["zeros", (text) => "\u0000".repeat(text.length), "corrupt"],
  ["JSON that is no entry", () => "[1]", "corrupt"],
  ["an entry without its digest", (text) => text.replace("digest", "digets"), "corrupt"],
  ["an entry of a later version", (text) => text.replace("\"version\":1", "\"version\":2"), "unsupported_version"],
  ["the entry of another call", (text) => text.replace("\"c0\"", "\"c9\""), "mismatch"]
]

describe("ToolJournal, files", () => {
  it.scoped.each(damages)(
    "tells of %s by its name and touches nothing",
    ([_name, damage, reason]) =>
      Effect.gen(function*() {
        const { file, fs, journal } = yield* scene
        yield* journal.prepare(c0, asked)
        yield* journal.settle(c0, paid)
        yield* journal.prepare(c1, asked)
        yield* journal.settle(c1, paid)
        const damaged = damage(yield* fs.readFileString(file))
        yield* fs.writeFileString(file, damaged)
        const prepared = yield* Effect.flip(journal.prepare(c0, asked))
        const settled = yield* Effect.flip(journal.settle(c0, paid))

        assert.deepStrictEqual([prepared, settled].map(reasonOf), [reason, reason])
        assert.strictEqual(prepared.location, file)
        assert.include(prepared.message, file)
        assert.strictEqual((yield* journal.prepare(c1, asked))._tag, "Settled")
        const compacted = yield* Effect.flip(journal.compact("s"))
        assert.deepInclude(compacted, { reason, operation: "compact", location: file })
        assert.strictEqual(yield* fs.readFileString(file), damaged)
        assert.strictEqual((yield* journal.prepare(c1, asked))._tag, "New")
      }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scoped("is read by the next process", () =>
    Effect.gen(function*() {
      const { directory, journal } = yield* scene
      yield* journal.prepare(c0, asked)
      yield* journal.prepare(c1, asked)
      yield* journal.settle(c1, paid)
      const next = ToolJournal.layerFileSystem(directory)
      const known = yield* Effect.flatMap(ToolJournal.ToolJournal, (again) =>
        Effect.all([again.prepare(c0, asked), again.prepare(c1, asked)])).pipe(Effect.provide(next))

      assert.deepStrictEqual(
        known.map((prepared) =>
          prepared._tag
        ),
        ["InDoubt", "Settled"]
      )
    }).pipe(Effect.provide(NodeContext.layer)))

  it.scoped("sweeps up what a dead process was writing when it compacts", () =>
    Effect.gen(function*() {
      const { directory, file, fs, journal, path } = yield* scene
      yield* journal.prepare(c0, asked)
      yield* journal.settle(c0, paid)
      yield* fs.writeFileString(`${file}.gone-1.tmp`, "{\"ver")
      assert.strictEqual((yield* journal.prepare(c0, asked))._tag, "Settled")
      yield* journal.compact("s")

      assert.deepStrictEqual(yield* fs.readDirectory(path.join(directory, "s")), [])
    }).pipe(Effect.provide(NodeContext.layer)))

  it.scoped("starts no call when the disk refuses, and leaves nothing behind", () =>
    Effect.gen(function*() {
      const { directory, fs, journal } = yield* scene
      yield* fs.remove(directory, { recursive: true })
      yield* fs.writeFileString(directory, "a file where the directory was")
      const error = yield* Effect.flip(journal.prepare(c0, asked))

      assert.deepInclude(error, { reason: "unavailable", operation: "prepare", toolCallId: "c0" })
      assert.strictEqual(yield* fs.readFileString(directory), "a file where the directory was")
    }).pipe(Effect.provide(NodeContext.layer)))

  it.scoped("works where files cannot be linked", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const directory = yield* fs.makeTempDirectoryScoped()
      const linkless = Layer.succeed(
        FileSystem.FileSystem,
        FileSystem.FileSystem.of({ ...fs, link: (from) => fs.rename(from, "/nowhere/at/all") })
      )
      const layer = ToolJournal.layerFileSystem(directory).pipe(Layer.provide(linkless))
      const known = yield* Effect.flatMap(ToolJournal.ToolJournal, (journal) =>
        Effect.all([journal.prepare(c0, asked), journal.prepare(c0, asked)])).pipe(Effect.provide(layer))

      assert.deepStrictEqual(
        known.map((prepared) =>
          prepared._tag
        ),
        ["New", "InDoubt"]
      )
      assert.deepStrictEqual(yield* fs.readDirectory(`${directory}/s`), ["c0.json"])
    }).pipe(Effect.provide(NodeContext.layer)))
})

const diskFull = new PlatformError.SystemError({
  reason: "Unknown",
  module: "KeyValueStore",
  method: "set",
  description: "no space left"
})

describe("ToolJournal, a failing KeyValueStore", () => {
  it.effect("says which store operation failed, and recovers with it", () =>
    Effect.gen(function*() {
      let full = false
      const store = yield* KeyValueStore.KeyValueStore
      const flaky = KeyValueStore.make({
        ...store,
        set: (key, value) => full ? diskFull : store.set(key, value)
      })
      const layer = Layer.provide(
        ToolJournal.layerKeyValueStore,
        Layer.succeed(KeyValueStore.KeyValueStore, flaky)
      )
      yield* Effect.gen(function*() {
        const journal = yield* ToolJournal.ToolJournal
        yield* journal.prepare(c0, asked)
        full = true
        const prepared = yield* Effect.flip(journal.prepare(c1, asked))
        const settled = yield* Effect.flip(journal.settle(c0, paid))
        full = false

        assert.deepStrictEqual([prepared, settled].map(reasonOf), ["unavailable", "unavailable"])
        assert.strictEqual(prepared.location, "s/c1")
        assert.strictEqual((yield* journal.prepare(c1, asked))._tag, "New")
        assert.strictEqual((yield* journal.prepare(c0, asked))._tag, "InDoubt")
      }).pipe(Effect.provide(layer))
    }).pipe(Effect.provide(KeyValueStore.layerMemory)))
})
