import { Event, SessionStore } from "@allm/core"
import { NodeContext } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { BrokenPipe } from "../src/internal/stdio.ts"
import { agent, sessionIn, withAllm } from "./command.ts"

const lines = (text: string) => text.split("\n").filter((line) => line !== "")

const decodeEvent = Schema.decodeUnknown(Schema.parseJson(Event.Event))

const load = (home: string, id: string) =>
  Effect.flatMap(SessionStore.SessionStore, (store) => store.load(id)).pipe(
    Effect.provide(SessionStore.layerFileSystem(`${home}/sessions`)),
    Effect.provide(NodeContext.layer)
  )

describe("allm run", () => {
  it.live("writes just the answer to the output, and the calls beside it", () =>
    withAllm((allm) =>
      Effect.gen(function*() {
        const ended = yield* allm(["run", agent("calls.mjs"), "call", "good", "bad"])

        assert.strictEqual(ended.code, 0)
        assert.strictEqual(ended.out, "Results: fine {\"error\":\"tool error (bad): handler_raised\"}\n")
        const [said, ...told] = lines(ended.error)
        assert.strictEqual(said, "I will call.")
        assert.sameMembers(told.slice(0, 2).map((line) => line.replace(/\d+\.\d s/, "T")), [
          "+ good done T: fine",
          "x bad crashed T: password hunter2"
        ])
        assert.match(told[2] ?? "", /^session \d{8}-\d{6}-\w{4}, 2 calls, \d+\.\d s$/)
      })
    ))

  it.live("streams to a person, who also sees what was said before the calls", () =>
    withAllm((allm) =>
      Effect.gen(function*() {
        const written: Array<string> = []
        const out = (text: string) => Effect.sync(() => void written.push(text))
        yield* allm(["run", agent("calls.mjs"), "call good"], { stdio: { isSeen: true, out } })

        assert.deepStrictEqual(written.filter((text) => text !== ""), ["I will call. ", "\n", "Results: fine", "\n"])
      })
    ))

  it.live("says what is typed, else what is piped in, else the module's prompt", () =>
    withAllm((allm) =>
      Effect.gen(function*() {
        const file = agent("calls.mjs")

        assert.strictEqual(
          (yield* allm(["run", file, "typed", "words"], { piped: "piped" })).out,
          "You said: typed words\n"
        )
        assert.strictEqual((yield* allm(["run", file], { piped: "\n piped 漢字\n" })).out, "You said: piped 漢字\n")
        assert.strictEqual((yield* allm(["run", file], { piped: " \n" })).out, "You said: its own prompt\n")

        const nothing = yield* allm(["run", agent("own.mjs")])
        assert.strictEqual(nothing.code, 2)
        assert.strictEqual(nothing.out, "")
        assert.include(nothing.error, "There is nothing to say: write allm run")
      })
    ))

  it.live("writes every event as a line of JSON, and nothing else", () =>
    withAllm((allm) =>
      Effect.gen(function*() {
        const ended = yield* allm(["run", agent("calls.mjs"), "call good bad", "--json"])
        const events = yield* Effect.forEach(lines(ended.out), (line) => decodeEvent(line))

        assert.strictEqual(ended.code, 0)
        assert.strictEqual(events[0]?._tag, "MessageStarted")
        assert.strictEqual(events.at(-1)?._tag, "ChatCompleted")
        assert.strictEqual(events.filter(({ _tag }) => _tag === "ToolExecutionCompleted").length, 2)
        assert.match(ended.error, /^session \S+, 2 calls, \d+\.\d s\n$/)
      })
    ))

  it.live("keeps the session, with the agent it belongs to, and goes on in it", () =>
    withAllm((allm, home) =>
      Effect.gen(function*() {
        const file = agent("calls.mjs")
        const id = sessionIn(yield* allm(["run", file, "one"]))
        const again = yield* allm(["run", file, "--session", id.slice(0, -1), "two"])
        const session = yield* load(home, id)

        assert.strictEqual(again.out, "You said: two\n")
        assert.strictEqual(sessionIn(again), id)
        assert.strictEqual(session.metadata["agent"], file)
        assert.deepStrictEqual(session.thread.messages.map(({ content }) => content), [
          "Do what you are told.",
          "one",
          "You said: one",
          "two",
          "You said: two"
        ])
      })
    ))

  it.live("keeps sessions where --home says", () =>
    withAllm((allm, home) =>
      Effect.gen(function*() {
        const id = sessionIn(yield* allm(["run", agent("own.mjs"), "Hi", "--home", `${home}/other`]))

        assert.strictEqual((yield* load(`${home}/other`, id)).status, "completed")
      })
    ))

  for (
    const [words, told] of [
      ["call ask", "waits for an answer: Which? (a, b)"],
      ["call approve good", "waits for consent: approve {}"],
      ["call manual", "waits for a result: manual {}"]
    ] as const
  ) {
    it.live(`ends with 3 and says so when it ${told}`, () =>
      withAllm((allm) =>
        Effect.gen(function*() {
          const ended = yield* allm(["run", agent("calls.mjs"), words])
          const id = sessionIn(ended)

          assert.strictEqual(ended.code, 3)
          assert.deepStrictEqual(lines(ended.error).slice(-2), [told, `go on with: allm sessions resume ${id}`])
        })
      ))
  }

  it.live("answers a question by saying something in the session", () =>
    withAllm((allm) =>
      Effect.gen(function*() {
        const file = agent("calls.mjs")
        const id = sessionIn(yield* allm(["run", file, "call ask"]))
        const answered = yield* allm(["run", file, "--session", id, "a"])

        assert.deepStrictEqual([answered.code, answered.out], [0, "You said: a\n"])
      })
    ))

  it.live("says nothing in a session that waits for more than words", () =>
    withAllm((allm, home) =>
      Effect.gen(function*() {
        const file = agent("calls.mjs")
        const id = sessionIn(yield* allm(["run", file, "call approve"]))
        const ended = yield* allm(["run", file, "--session", id, "do it"])

        assert.deepStrictEqual([ended.code, ended.out], [3, ""])
        assert.deepStrictEqual(lines(ended.error), [
          "waits for consent: approve {}",
          `go on with: allm sessions resume ${id}`
        ])
        assert.notInclude(JSON.stringify(yield* load(home, id)), "do it")
      })
    ))

  it.live("ends with 1 when the model fails, or does not come to an end", () =>
    withAllm((allm) =>
      Effect.gen(function*() {
        const failed = yield* allm(["run", agent("calls.mjs"), "fail"])
        const endless = yield* allm(["run", agent("turns.mjs"), "go"])

        assert.deepStrictEqual([failed.code, failed.out], [1, ""])
        assert.match(failed.error, /authentication_failed/)
        assert.match(failed.error, /go on with: allm sessions resume \d/)
        assert.strictEqual(endless.code, 1)
        assert.match(endless.error, /the limit of turns was reached before the model was done; go on with/)
      })
    ))

  for (
    const [name, words, told] of [
      ["a file that is not there", ["nowhere.mjs", "Hi"], "allm: nowhere.mjs: there is no such file"],
      [
        "a model that is not there",
        [agent("own.mjs"), "Hi", "--model", "opnai"],
        "allm: There is no provider \"opnai\""
      ],
      [
        "a model without its key",
        [agent("own.mjs"), "Hi", "-m", "openai"],
        "allm: openai needs a key: set OPENAI_API_KEY"
      ],
      ["an agent without a model", [agent("good.ts"), "Hi"], "allm: good: there is no model for it"],
      ["an option that is not there", [agent("own.mjs"), "Hi", "--jsn"], "allm: There is no option --jsn"],
      ["a session that is not there", [agent("own.mjs"), "Hi", "--session", "x"], "allm: There is no session \"x\""]
    ] as const
  ) {
    it.live(`ends with 2 for ${name}`, () =>
      withAllm((allm) =>
        Effect.gen(function*() {
          const ended = yield* allm(["run", ...words])

          assert.deepStrictEqual([ended.code, ended.out], [2, ""])
          assert.include(ended.error, told)
          assert.notMatch(ended.error, /\n\s+at /)
        })
      ))
  }

  it.live("runs the embedded agent by the name demo", () =>
    withAllm((allm) =>
      Effect.gen(function*() {
        const ended = yield* allm(["run", "demo", "What is 6 times 7?"])

        assert.deepStrictEqual([ended.code, ended.out], [0, "6 * 7 is 42.\n"])
      })
    ))

  it.live("stops the run when nobody reads the output any more, and says nothing", () =>
    withAllm((allm, home) =>
      Effect.gen(function*() {
        let written = 0
        const out = () => ++written < 4 ? Effect.void : new BrokenPipe({ message: "EPIPE" })
        const ended = yield* allm(["run", agent("slow.mjs"), "Hi", "--json"], { stdio: { out } })
        const { sessions } = yield* Effect.flatMap(SessionStore.SessionStore, (store) => store.list()).pipe(
          Effect.provide(SessionStore.layerFileSystem(`${home}/sessions`)),
          Effect.provide(NodeContext.layer)
        )

        assert.deepStrictEqual([ended.code, ended.error], [130, ""])
        assert.deepStrictEqual(sessions.map(({ status }) => status), ["idle"])
      })
    ))
})
