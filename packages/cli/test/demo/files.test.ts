import { FileSystem } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import * as Files from "../../src/internal/demo/files.ts"

/** A directory with a secret beside it, and every kind of link out. */
const place = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const directory = yield* fs.makeTempDirectoryScoped()
  const root = `${directory}/root`
  yield* fs.makeDirectory(`${root}/inner`, { recursive: true })
  yield* fs.makeDirectory(`${directory}/root-beside`)
  yield* fs.writeFileString(`${directory}/secret.txt`, "hunter2")
  yield* fs.writeFileString(`${directory}/root-beside/secret.txt`, "hunter2")
  yield* fs.writeFileString(`${root}/README.md`, "# Hello\n")
  yield* fs.writeFileString(`${root}/inner/ünïcode 漢字.txt`, "inside")
  yield* fs.writeFileString(`${root}/..dots`, "dots")
  yield* fs.symlink(`${directory}/secret.txt`, `${root}/link.txt`)
  yield* fs.symlink(directory, `${root}/up`)
  yield* fs.symlink(`${directory}/made-by-link.txt`, `${root}/dangling.txt`)
  yield* fs.symlink(`${root}/README.md`, `${root}/inner/readme-link`)
  return { directory, root, files: yield* Files.make(root) }
})

const refusal = <A>(effect: Effect.Effect<A, Files.FileRefused>) =>
  Effect.map(Effect.flip(effect), ({ path, reason }) => ({ path, reason }))

describe("files", () => {
  describe("read", () => {
    it.scopedLive("reads text below the root, also through links that stay there", () =>
      Effect.gen(function*() {
        const { files } = yield* place

        assert.strictEqual(yield* files.read("README.md"), "# Hello\n")
        assert.strictEqual(yield* files.read("./inner/../README.md"), "# Hello\n")
        assert.strictEqual(yield* files.read("inner/ünïcode 漢字.txt"), "inside")
        assert.strictEqual(yield* files.read("inner/readme-link"), "# Hello\n")
        assert.strictEqual(yield* files.read("..dots"), "dots")
      }).pipe(Effect.provide(NodeContext.layer)))

    for (
      const path of [
        "..",
        "../secret.txt",
        "../root-beside/secret.txt",
        "inner/../../secret.txt",
        "inner/../../root/../secret.txt",
        "/etc/passwd",
        "C:\\secret.txt",
        "\\\\server\\share",
        "link.txt",
        "up/secret.txt",
        "up/root-beside/secret.txt",
        "up/root/../secret.txt"
      ]
    ) {
      it.scopedLive(`refuses ${path}`, () =>
        Effect.gen(function*() {
          const { files } = yield* place

          assert.deepStrictEqual(yield* refusal(files.read(path)), { path, reason: "outside" })
        }).pipe(Effect.provide(NodeContext.layer)))
    }

    it.scopedLive("refuses the absolute path of a file inside, which no model has to know", () =>
      Effect.gen(function*() {
        const { files, root } = yield* place

        assert.strictEqual((yield* refusal(files.read(`${root}/README.md`))).reason, "outside")
      }).pipe(Effect.provide(NodeContext.layer)))

    it.scopedLive("refuses null bytes, directories, pipes, what is no text and what is too large", () =>
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        const { files, root } = yield* place
        yield* fs.writeFile(`${root}/image.png`, new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0xff]))
        yield* fs.writeFileString(`${root}/zero`, "a\0b")
        yield* fs.writeFileString(`${root}/large`, "a".repeat(Files.largest + 1))
        yield* fs.writeFileString(`${root}/just`, "a".repeat(Files.largest))
        yield* Effect.sync(() => execFileSync("mkfifo", [`${root}/pipe`]))

        assert.strictEqual((yield* refusal(files.read("README.md\0.png"))).reason, "invalid")
        assert.strictEqual((yield* refusal(files.read("inner"))).reason, "wrong_kind")
        assert.strictEqual((yield* refusal(files.read(""))).reason, "wrong_kind")
        assert.strictEqual((yield* refusal(files.read("pipe"))).reason, "wrong_kind")
        assert.strictEqual((yield* refusal(files.read("image.png"))).reason, "binary")
        assert.strictEqual((yield* refusal(files.read("zero"))).reason, "binary")
        assert.strictEqual((yield* refusal(files.read("large"))).reason, "too_large")
        assert.strictEqual((yield* files.read("just")).length, Files.largest)
      }).pipe(Effect.provide(NodeContext.layer)))

    it.scopedLive("names the files that may have been meant", () =>
      Effect.gen(function*() {
        const { files } = yield* place

        const refused = yield* Effect.flip(files.read("readme.mdd"))
        const none = yield* Effect.flip(files.read("nowhere/at/all"))

        assert.strictEqual(refused.reason, "not_found")
        assert.deepStrictEqual(refused.nearest, ["README.md"])
        assert.strictEqual(none.reason, "not_found")
        assert.strictEqual(none.nearest, undefined)
      }).pipe(Effect.provide(NodeContext.layer)))

    it.scopedLive("says nothing about what is beside the root", () =>
      Effect.gen(function*() {
        const { directory, files } = yield* place

        const refused = yield* Effect.flip(files.read("up/secret.tx"))

        assert.notInclude(JSON.stringify(refused), "secret.txt")
        assert.notInclude(JSON.stringify(refused), directory)
      }).pipe(Effect.provide(NodeContext.layer)))
  })

  describe("list", () => {
    it.scopedLive("lists names, kinds and sizes, and follows no link", () =>
      Effect.gen(function*() {
        const { files } = yield* place

        assert.deepStrictEqual(yield* files.list("."), {
          entries: [
            { name: "..dots", kind: "file", bytes: 4 },
            { name: "README.md", kind: "file", bytes: 8 },
            { name: "dangling.txt", kind: "link" },
            { name: "inner", kind: "directory" },
            { name: "link.txt", kind: "link" },
            { name: "up", kind: "link" }
          ],
          more: 0
        })
        assert.strictEqual((yield* files.list("inner")).entries.length, 2)
        assert.strictEqual((yield* refusal(files.list("up"))).reason, "outside")
        assert.strictEqual((yield* refusal(files.list("../"))).reason, "outside")
        assert.strictEqual((yield* refusal(files.list("README.md"))).reason, "wrong_kind")
      }).pipe(Effect.provide(NodeContext.layer)))

    it.scopedLive("counts what it leaves out", () =>
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        const { files, root } = yield* place
        yield* fs.makeDirectory(`${root}/many`)
        yield* Effect.forEach(Array.from({ length: 230 }, (_, index) => index), (index) =>
          fs.writeFileString(`${root}/many/${index}`, ""), { concurrency: 16 })

        const { entries, more } = yield* files.list("many")

        assert.deepStrictEqual([entries.length, more], [200, 30])
      }).pipe(Effect.provide(NodeContext.layer)))
  })

  describe("create", () => {
    it.scopedLive("writes a new file below the root and counts its bytes", () =>
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        const { files, root } = yield* place

        assert.strictEqual(yield* files.create("inner/note.txt", "grüße\n"), 8)
        assert.strictEqual(yield* fs.readFileString(`${root}/inner/note.txt`), "grüße\n")
      }).pipe(Effect.provide(NodeContext.layer)))

    it.scopedLive("replaces nothing, and goes through no link", () =>
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        const { directory, files, root } = yield* place

        assert.strictEqual((yield* refusal(files.create("README.md", "gone"))).reason, "exists")
        assert.strictEqual((yield* refusal(files.create("link.txt", "gone"))).reason, "exists")
        assert.strictEqual((yield* refusal(files.create("dangling.txt", "gone"))).reason, "exists")
        assert.strictEqual((yield* refusal(files.create("up/new.txt", "gone"))).reason, "outside")
        assert.strictEqual((yield* refusal(files.create("../new.txt", "gone"))).reason, "outside")
        assert.strictEqual((yield* refusal(files.create(`${root}/new.txt`, "gone"))).reason, "outside")
        assert.strictEqual((yield* refusal(files.create("nowhere/new.txt", "gone"))).reason, "not_found")
        assert.strictEqual((yield* refusal(files.create(".", "gone"))).reason, "invalid")
        assert.strictEqual(yield* fs.readFileString(`${root}/README.md`), "# Hello\n")
        assert.strictEqual(yield* fs.readFileString(`${directory}/secret.txt`), "hunter2")
        assert.isFalse(yield* fs.exists(`${directory}/made-by-link.txt`))
        assert.isFalse(yield* fs.exists(`${directory}/new.txt`))
      }).pipe(Effect.provide(NodeContext.layer)))
  })
})
