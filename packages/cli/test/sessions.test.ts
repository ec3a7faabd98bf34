import { Session, SessionLease } from "@allm/core"
import { FileSystem } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { age, table } from "../src/internal/sessionViews.ts"
import { agent, type Allm, sessionIn, withAllm } from "./command.ts"

const lines = (text: string) => text.split("\n").filter((line) => line !== "")

const started = (allm: Allm, ...words: ReadonlyArray<string>) =>
  Effect.map(allm(["run", agent("calls.mjs"), ...words]), sessionIn)

const decodeSession = Schema.decodeUnknown(Schema.parseJson(Session.Session))

describe("allm sessions", () => {
  describe("list", () => {
    it.live("says where to begin when there are none", () =>
      withAllm((allm) =>
        Effect.gen(function*() {
          const ended = yield* allm(["sessions"])

          assert.deepStrictEqual([ended.code, ended.out], [0, ""])
          assert.strictEqual(ended.error, "There are no sessions yet. Start one with: allm chat\n")
        })
      ))

    it.live("shows the newest first, with what was said first, and those that cannot be read", () =>
      withAllm((allm, home) =>
        Effect.gen(function*() {
          const fs = yield* FileSystem.FileSystem
          const first = yield* started(allm, "what was said first")
          const second = yield* started(allm, "call ask")
          yield* allm(["run", agent("calls.mjs"), "--session", first, "again"])
          yield* fs.makeDirectory(`${home}/sessions/torn`)
          yield* fs.writeFileString(`${home}/sessions/torn/1.session`, "{ torn")

          const { code, out } = yield* allm(["sessions"])
          const [head, ...rows] = lines(out)

          assert.strictEqual(code, 0)
          assert.match(head ?? "", /^ID +STATUS +MESSAGES +AGE +TITLE$/)
          assert.match(rows[0] ?? "", new RegExp(`^${first} +completed +5 +\\d s +what was said first$`))
          assert.match(rows[1] ?? "", new RegExp(`^${second} +awaiting_user +5 +\\d s +call ask$`))
          assert.match(rows[2] ?? "", /^torn +unreadable +.*corrupt/)
          assert.strictEqual(rows.length, 3)
        })
      ))

    it.live("writes one JSON object per line", () =>
      withAllm((allm, home) =>
        Effect.gen(function*() {
          const fs = yield* FileSystem.FileSystem
          const id = yield* started(allm, "Hello 漢字")
          yield* fs.makeDirectory(`${home}/sessions/torn`)
          yield* fs.writeFileString(`${home}/sessions/torn/1.session`, "")

          for (const words of [["sessions", "--json"], ["sessions", "list", "--json"]]) {
            const { out } = yield* allm(words)
            const [one, two] = lines(out).map((line): Record<string, unknown> => JSON.parse(line))

            assert.deepInclude(one, { id, status: "completed", title: "Hello 漢字", messages: 3 })
            assert.strictEqual(typeof one?.["updatedAt"], "number")
            assert.strictEqual(two?.["id"], "torn")
            assert.include(String(two?.["error"]), "corrupt")
          }
        })
      ))

    it("cuts its lines to the window, and lets nothing through that a terminal would obey", () => {
      const rows = table(
        [{
          id: "s1",
          status: "completed",
          title: "漢字 \u001b[31mred\nand a very long title",
          messages: 2,
          updatedAt: 0
        }],
        [],
        90_000,
        { width: 48, colour: false }
      )

      assert.deepStrictEqual(rows, [
        "ID  STATUS     MESSAGES    AGE  TITLE",
        "s1  completed         2  1 min  漢字 red and a …"
      ])
    })

    it("tells an age in the largest unit that fits", () => {
      assert.deepStrictEqual(
        [-5, 0, 999, 59_999, 60_000, 3_599_999, 3_600_000, 86_400_000 * 400].map(age),
        ["0 s", "0 s", "0 s", "59 s", "1 min", "59 min", "1 h", "400 d"]
      )
    })
  })

  describe("show", () => {
    it.live("shows what was said, called, answered and used, and what waits", () =>
      withAllm((allm) =>
        Effect.gen(function*() {
          const id = yield* started(allm, "call good bad ask")
          const { code, out } = yield* allm(["sessions", "show", id])

          assert.strictEqual(code, 0)
          assert.deepStrictEqual(lines(out), [
            `session ${id}`,
            `awaiting_user, 7 messages, agent ${agent("calls.mjs")}`,
            "system",
            "  Do what you are told.",
            "user",
            "  call good bad ask",
            "assistant",
            "  I will call.",
            "  ✓ good",
            "      fine",
            "  ✗ bad",
            "      {\"error\":\"tool error (bad): handler_raised\"}",
            "  ■ ask",
            "assistant",
            "  Which?",
            "waits for an answer: Which? (a, b)"
          ])
        })
      ))

    it.live("writes the whole session as JSON", () =>
      withAllm((allm) =>
        Effect.gen(function*() {
          const id = yield* started(allm, "call good")
          const session = yield* decodeSession((yield* allm(["sessions", "show", id, "--json"])).out)

          assert.strictEqual(session.id, id)
          assert.deepStrictEqual(session.thread.messages.map(({ role }) => role), [
            "system",
            "user",
            "assistant",
            "tool",
            "assistant"
          ])
        })
      ))

    it.live("takes as much of an id as no other has, and says what is near when there is none", () =>
      withAllm((allm) =>
        Effect.gen(function*() {
          const one = yield* started(allm, "one")
          const two = yield* started(allm, "two")

          const found = yield* allm(["sessions", "show", one.slice(0, -1)])
          const several = yield* allm(["sessions", "show", "2"])
          const none = yield* allm(["sessions", "show", `${one}x`])
          const far = yield* allm(["sessions", "show", "nothing-like-it"])

          assert.strictEqual(lines(found.out)[0], `session ${one}`)
          assert.strictEqual(several.code, 2)
          assert.include(several.error, `2 sessions begin with "2": `)
          assert.include(several.error, two)
          assert.strictEqual(none.code, 2)
          assert.match(none.error, new RegExp(`There is no session "${one}x"\\. The nearest: ${one}`))
          assert.include(far.error, "See them with: allm sessions")
        })
      ))
  })

  describe("resume", () => {
    it.live("says what it still waits for, and ends with 3", () =>
      withAllm((allm) =>
        Effect.gen(function*() {
          const id = yield* started(allm, "call approve")
          const ended = yield* allm(["sessions", "resume", id])

          assert.deepStrictEqual([ended.code, ended.out], [3, ""])
          assert.include(ended.error, "waits for consent: approve {}")
        })
      ))

    it.live("goes on where a model had failed, with the agent of the session", () =>
      withAllm((allm, home) =>
        Effect.gen(function*() {
          const fs = yield* FileSystem.FileSystem
          const file = `${home}/agent.mjs`
          yield* fs.copyFile(agent("calls.mjs"), file)
          yield* fs.symlink(`${process.cwd()}/node_modules`, `${home}/node_modules`)
          const failed = yield* allm(["run", file, "fail"])
          const [, id = ""] = /resume (\S+)/.exec(failed.error) ?? []
          const ended = yield* allm(["sessions", "resume", id, "--agent", agent("own.mjs")])
          const again = yield* allm(["sessions", "resume", id])

          assert.strictEqual(failed.code, 1)
          assert.deepStrictEqual([ended.code, ended.out], [0, "Answer 2\n"])
          assert.deepStrictEqual([again.code, again.out], [0, ""])
          assert.include(again.error, `Nothing is left to do in session ${id}. Say something: allm run ${file}`)
        })
      ))
  })

  describe("delete", () => {
    it.live("asks for --yes where nobody can be asked", () =>
      withAllm((allm) =>
        Effect.gen(function*() {
          const id = yield* started(allm, "one")
          const ended = yield* allm(["sessions", "delete", id])

          assert.strictEqual(ended.code, 2)
          assert.include(ended.error, `write allm sessions delete ${id} --yes`)
          assert.strictEqual((yield* allm(["sessions", "show", id])).code, 0)
        })
      ))

    it.live("deletes the session and its trace, and no other", () =>
      withAllm((allm, home) =>
        Effect.gen(function*() {
          const fs = yield* FileSystem.FileSystem
          const one = yield* started(allm, "one")
          const two = yield* started(allm, "two")
          const ended = yield* allm(["sessions", "delete", one, "--yes"])
          const traces = (yield* fs.readDirectory(`${home}/traces`)).join(" ")

          assert.deepStrictEqual([ended.code, ended.out, ended.error], [0, "", `deleted session ${one}\n`])
          assert.strictEqual((yield* allm(["sessions", "show", one])).code, 2)
          assert.strictEqual((yield* allm(["sessions", "show", two])).code, 0)
          assert.notInclude(traces, one)
          assert.include(traces, two)
        })
      ))

    it.live("deletes none that somebody works on", () =>
      withAllm((allm, home) =>
        Effect.gen(function*() {
          const id = yield* started(allm, "one")
          const ended = yield* Effect.flatMap(SessionLease.SessionLease, (leases) =>
            Effect.zipRight(
              leases.acquire(id, { holder: "somebody", duration: "1 minute" }),
              allm(["sessions", "delete", id, "--yes"])
            )).pipe(Effect.provide(SessionLease.layerFileSystem(`${home}/leases`)))

          assert.strictEqual(ended.code, 1)
          assert.match(ended.error, /is held by "somebody"/)
          assert.strictEqual((yield* allm(["sessions", "show", id])).code, 0)
        })
      ))

    it.live("deletes one that cannot be read", () =>
      withAllm((allm, home) =>
        Effect.gen(function*() {
          const fs = yield* FileSystem.FileSystem
          yield* fs.makeDirectory(`${home}/sessions/torn`, { recursive: true })
          yield* fs.writeFileString(`${home}/sessions/torn/1.session`, "{")

          assert.strictEqual((yield* allm(["sessions", "show", "torn"])).code, 1)
          assert.strictEqual((yield* allm(["sessions", "delete", "torn", "-y"])).code, 0)
          assert.strictEqual((yield* allm(["sessions"])).out, "")
        })
      ))
  })
})
