import { Message, type Session, SessionStore, StoreError } from "@allm/core"
import { FileSystem, KeyValueStore, type Path } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { SystemError } from "@effect/platform/Error"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"

const session = (id: string, ...texts: ReadonlyArray<string>): Session.Session => ({
  id,
  thread: { messages: texts.map((text) => Message.user(text)), metadata: {} },
  status: "idle",
  pendingToolCalls: [],
  pendingQuestions: [],
  pendingApprovals: [],
  unknownOutcomes: [],
  usage: {},
  context: {},
  metadata: {},
  version: 0
})

const stores: ReadonlyArray<readonly [string, Layer.Layer<SessionStore.SessionStore, unknown>]> = [
  ["layerMemory", SessionStore.layerMemory],
  ["layerKeyValueStore", Layer.provide(SessionStore.layerKeyValueStore, KeyValueStore.layerMemory)],
  [
    "layerFileSystem",
    Layer.unwrapScoped(
      Effect.map(
        Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectoryScoped()),
        (directory) => SessionStore.layerFileSystem(directory)
      )
    ).pipe(Layer.provide(NodeContext.layer))
  ]
]

describe("SessionStore", () => {
  for (const [name, layer] of stores) {
    describe(name, () => {
      it.effect("gives back what was saved, with its version", () =>
        Effect.gen(function*() {
          const store = yield* SessionStore.SessionStore
          const saved = yield* store.save(session("s1", "a", "\u0000 \ud800"))
          const again = yield* store.save({ ...saved, status: "completed" })

          assert.deepStrictEqual(saved, { ...session("s1", "a", "\u0000 \ud800"), version: 1 })
          assert.deepStrictEqual(yield* store.load("s1"), again)
          assert.strictEqual(again.version, 2)
        }).pipe(Effect.provide(layer)))

      it.effect("lets one of many saves at once win, and tells the others the stored version", () =>
        Effect.gen(function*() {
          const store = yield* SessionStore.SessionStore
          const base = yield* store.save(session("s1"))
          const results = yield* Effect.forEach(
            ["a", "b", "c", "d", "e"],
            (text) => Effect.either(store.save({ ...base, metadata: { text } })),
            { concurrency: "unbounded" }
          )
          const won = results.flatMap((result) => result._tag === "Right" ? [result.right] : [])
          const lost = results.flatMap((result) => result._tag === "Left" ? [result.left] : [])

          assert.deepStrictEqual([yield* store.load("s1")], won)
          assert.deepStrictEqual(
            lost.map((error) => error._tag === "Conflict" ? [error.expectedVersion, error.storedVersion] : error),
            [[1, 2], [1, 2], [1, 2], [1, 2]]
          )
        }).pipe(Effect.provide(layer)))

      it.effect("tells a missing session, and a save on top of one that was deleted", () =>
        Effect.gen(function*() {
          const store = yield* SessionStore.SessionStore
          const saved = yield* store.save(session("s1"))
          yield* store.delete("s1")
          yield* store.delete("s1")
          const missing = yield* Effect.flip(store.load("s1"))
          const conflict = yield* Effect.flip(store.save(saved))

          assert.strictEqual(missing.message, "session \"s1\" is not stored")
          assert.strictEqual(conflict._tag === "Conflict" && conflict.storedVersion, 0)
          assert.strictEqual((yield* store.save(session("s1"))).version, 1)
        }).pipe(Effect.provide(layer)))

      it.effect("lists every session once, in the order of the ids, page by page", () =>
        Effect.gen(function*() {
          const store = yield* SessionStore.SessionStore
          const ids = [
            "..",
            "A",
            "a",
            "a/b",
            "a%2fb",
            `${"long ".repeat(60)}1`,
            `${"long ".repeat(60)}2`,
            "\uffff",
            "👋"
          ]
          yield* Effect.forEach([...ids].reverse(), (id) => store.save(session(id)))
          const seen: Array<string> = []
          let cursor: string | undefined
          do {
            const page: SessionStore.Page = yield* store.list({ cursor, limit: 2 })
            seen.push(...page.sessions.map(({ id }) => id))
            assert.deepStrictEqual(page.unreadable, [])
            cursor = page.cursor
          } while (cursor !== undefined)

          assert.deepStrictEqual(seen, ["..", "A", "a", "a%2fb", "a/b", ids[5], ids[6], "\uffff", "👋"])
        }).pipe(Effect.provide(layer)))

      it.effect("names the part of a session that is no JSON", () =>
        Effect.gen(function*() {
          const store = yield* SessionStore.SessionStore
          const refused = yield* Effect.flip(store.save({ ...session("s1"), context: { now: () => 1 } }))

          assert.strictEqual(
            refused.message,
            "SessionStore.save of \"s1\" failed: not_encodable: " +
              "$.session.context: Expected a JSON object, but at $.now a function is not JSON"
          )
        }).pipe(Effect.provide(layer)))

      it.effect("refuses what it cannot keep, and keeps what it has", () =>
        Effect.gen(function*() {
          const store = yield* SessionStore.SessionStore
          const saved = yield* store.save(session("s1"))
          const reasons = yield* Effect.forEach([
            store.save({ ...saved, context: { rate: NaN } }),
            store.load(""),
            store.delete("\ud800"),
            store.list({ cursor: "s1" }),
            store.list({ cursor: 2 as never })
          ], (refused: Effect.Effect<unknown, unknown>) => Effect.flip(refused))

          assert.deepStrictEqual(
            reasons.map((error) => error instanceof StoreError.StoreError ? error.reason : error),
            ["not_encodable", "invalid_id", "invalid_id", "invalid_cursor", "invalid_cursor"]
          )
          assert.deepStrictEqual(yield* store.load("s1"), saved)
        }).pipe(Effect.provide(layer)))
    })
  }

  const inDirectory = <A, E>(
    body: (directory: string, open: Effect.Effect<SessionStore.Service, StoreError.StoreError>) => Effect.Effect<
      A,
      E,
      FileSystem.FileSystem | Path.Path
    >
  ) =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const directory = yield* fs.makeTempDirectoryScoped()
      const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
      const open = SessionStore.SessionStore.pipe(
        Effect.provide(SessionStore.layerFileSystem(directory)),
        Effect.provide(context)
      )
      return yield* body(directory, open)
    }).pipe(Effect.scoped, Effect.provide(NodeContext.layer))

  it.effect("names a damaged file, leaves it, and goes on with the others", () =>
    inDirectory((directory, open) =>
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        const store = yield* open
        const saved = yield* store.save(session("s1", "a"))
        yield* store.save({ ...saved, status: "completed" })
        yield* store.save(session("s2"))
        const file = `${directory}/s1/2.session`
        const text = yield* fs.readFileString(file)
        yield* fs.writeFileString(file, text.slice(0, 40))
        const torn = yield* Effect.flip(store.load("s1"))
        const page = yield* store.list()

        assert.deepStrictEqual(torn._tag === "StoreError" && [torn.reason, torn.location], ["corrupt", file])
        assert.deepStrictEqual(page.sessions.map(({ id }) => id), ["s2"])
        assert.deepStrictEqual(page.unreadable.map(({ location }) => location), [file])
        assert.strictEqual(yield* fs.readFileString(file), text.slice(0, 40))

        // A person puts the version before in its place.
        yield* fs.copyFile(`${directory}/s1/1.session`, file)
        assert.deepStrictEqual(yield* store.load("s1"), { ...saved, version: 2 })
      })
    ))

  it.effect("leaves what a newer version wrote", () =>
    inDirectory((directory, open) =>
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        const store = yield* open
        yield* store.save(session("s1"))
        yield* fs.writeFileString(`${directory}/s1/2.session`, "{\"format\":2,\"any\":\"thing\"}")
        const error = yield* Effect.flip(store.load("s1"))
        const conflict = yield* Effect.flip(store.save({ ...session("s1"), version: 1 }))

        assert.strictEqual(error._tag === "StoreError" && error.reason, "newer_format")
        assert.strictEqual(conflict._tag === "Conflict" && conflict.storedVersion, 2)
      })
    ))

  it.effect("holds versions between two that have the same directory open, and keeps four of them", () =>
    inDirectory((directory, open) =>
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        const one = yield* open
        const other = yield* open
        let last = yield* one.save(session("s1"))
        for (let turn = 0; turn < 6; turn++) {
          const ends = yield* Effect.forEach([one, other], (store) => Effect.either(store.save(last)), {
            concurrency: "unbounded"
          })
          assert.strictEqual(ends.filter((end) => end._tag === "Right").length, 1)
          last = yield* other.load("s1")
        }

        assert.deepStrictEqual((yield* fs.readDirectory(`${directory}/s1`)).sort(), [
          "4.session",
          "5.session",
          "6.session",
          "7.session"
        ])
      })
    ))

  it.effect("tells a full disk, and still has what was stored", () =>
    inDirectory((directory, open) =>
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        const saved = yield* (yield* open).save(session("s1", "a"))
        const full = FileSystem.FileSystem.of({
          ...fs,
          open: (path, options) =>
            options?.flag === "w"
              ? Effect.fail(
                new SystemError({
                  reason: "Unknown",
                  module: "FileSystem",
                  method: "open",
                  pathOrDescriptor: path,
                  description: "ENOSPC: no space left on device, write"
                })
              )
              : fs.open(path, options)
        })
        const error = yield* SessionStore.SessionStore.pipe(
          Effect.flatMap((store) => Effect.flip(store.save(saved))),
          Effect.provide(SessionStore.layerFileSystem(directory)),
          Effect.provideService(FileSystem.FileSystem, full)
        )

        assert.strictEqual(error._tag === "StoreError" && error.reason, "full")
        assert.deepStrictEqual(yield* (yield* open).load("s1"), saved)
      })
    ))
})
