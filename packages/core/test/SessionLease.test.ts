import { SessionLease } from "@allm/core"
import { FileSystem } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"

const seconds = { holder: "a", duration: "30 seconds" } as const

const inDirectory = <A, E>(
  body: (directory: string, leases: SessionLease.Service) => Effect.Effect<A, E, FileSystem.FileSystem>
) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const directory = yield* fs.makeTempDirectoryScoped()
    const layer = SessionLease.layerFileSystem(directory).pipe(Layer.provide(NodeContext.layer))
    return yield* body(directory, yield* Effect.provide(SessionLease.SessionLease, layer))
  }).pipe(Effect.scoped, Effect.provide(NodeContext.layer))

describe("SessionLease", () => {
  it.effect("says what to do, with names and times, when a session is held or a lease is over", () =>
    Effect.gen(function*() {
      const leases = yield* SessionLease.SessionLease
      const lease = yield* leases.acquire("s1", { holder: "web-1", duration: "30 seconds" })
      const held = yield* Effect.flip(leases.acquire("s1", seconds))
      yield* TestClock.adjust("30 seconds")
      const expired = yield* Effect.flip(leases.check(lease))
      yield* leases.acquire("s1", { ...seconds, holder: "web-2" })
      const taken = yield* Effect.flip(leases.renew(lease))

      assert.deepStrictEqual([held.message, expired.message, taken.message], [
        "session \"s1\" is held by \"web-1\" until 1970-01-01T00:00:30.000Z; try again then, or wait for it",
        "the lease 1 of \"web-1\" on session \"s1\" is over: not renewed in time; " +
        "acquire it again, and load the session again",
        "the lease 1 of \"web-1\" on session \"s1\" is over: taken over by \"web-2\"; " +
        "acquire it again, and load the session again"
      ])
    }).pipe(Effect.provide(SessionLease.layerMemory)))

  it.effect("gives no lease that never ends", () =>
    inDirectory((_, files) =>
      Effect.gen(function*() {
        const memory = yield* Effect.provide(SessionLease.SessionLease, SessionLease.layerMemory)
        for (const leases of [files, memory]) {
          const lease = yield* leases.acquire("s1", { holder: "a", duration: Infinity })
          assert.isTrue(Number.isFinite((yield* leases.renew(lease)).expiresAt))
        }
      })
    ))

  describe("layerFileSystem", () => {
    it.effect("names a damaged file, leaves it, and goes on with other sessions", () =>
      inDirectory((directory, leases) =>
        Effect.gen(function*() {
          const fs = yield* FileSystem.FileSystem
          const lease = yield* leases.acquire("s1", seconds)
          const file = `${directory}/s1/1.lease`
          const text = yield* fs.readFileString(file)
          yield* fs.writeFileString(file, text.slice(0, 20))
          const torn = yield* Effect.forEach(
            [leases.acquire("s1", seconds), leases.renew(lease), leases.check(lease), leases.release(lease)],
            (attempt: Effect.Effect<unknown, unknown>) => Effect.flip(attempt)
          )
          yield* leases.acquire("s2", seconds)

          for (const error of torn) assert.deepInclude(error, { _tag: "StoreError", reason: "corrupt", location: file })
          assert.strictEqual(yield* fs.readFileString(file), text.slice(0, 20))
        })
      ))

    it.effect("leaves what a newer version wrote, and what is about another session", () =>
      inDirectory((directory, leases) =>
        Effect.gen(function*() {
          const fs = yield* FileSystem.FileSystem
          yield* leases.acquire("s1", seconds)
          yield* leases.acquire("s2", seconds)
          yield* fs.writeFileString(`${directory}/s1/2.lease`, "{\"format\":2}")
          yield* fs.copyFile(`${directory}/s2/1.lease`, `${directory}/s2/2.lease`)
          yield* fs.copyFile(`${directory}/s1/1.lease`, `${directory}/s2/3.lease`)
          const newer = yield* Effect.flip(leases.acquire("s1", seconds))
          const other = yield* Effect.flip(leases.acquire("s2", seconds))

          assert.deepInclude(newer, { _tag: "StoreError", reason: "newer_format" })
          assert.deepInclude(other, { _tag: "StoreError", reason: "corrupt", location: `${directory}/s2/3.lease` })
        })
      ))

    it.effect("keeps a few files per session, however often it is renewed, and those of others", () =>
      inDirectory((directory, leases) =>
        Effect.gen(function*() {
          const fs = yield* FileSystem.FileSystem
          let lease = yield* leases.acquire("s1", seconds)
          yield* fs.writeFileString(`${directory}/s1/notes.txt`, "mine")
          for (let turn = 0; turn < 20; turn++) lease = yield* leases.renew(lease)

          assert.deepStrictEqual((yield* fs.readDirectory(`${directory}/s1`)).sort(), [
            "18.lease",
            "19.lease",
            "20.lease",
            "21.lease",
            "notes.txt"
          ])
        })
      ))

    it.effect("says where it cannot keep leases", () =>
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        const file = yield* fs.makeTempFileScoped()
        const error = yield* Effect.flip(
          Effect.asVoid(Layer.build(SessionLease.layerFileSystem(`${file}/leases`)))
        )

        assert.deepInclude(error, { _tag: "StoreError", reason: "unavailable", location: `${file}/leases` })
        assert.match(error.message, /^SessionLease\.layerFileSystem/)
      }).pipe(Effect.scoped, Effect.provide(NodeContext.layer)))
  })
})
