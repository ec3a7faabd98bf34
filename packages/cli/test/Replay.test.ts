import { Fake, Message, Session, SessionRunner, SessionStore, ToolCall } from "@allm/core"
import { Command } from "@effect/cli"
import { FileSystem } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { replay } from "../src/internal/commands/replay.ts"
import * as Home from "../src/internal/home.ts"
import { BrokenPipe, Stdio } from "../src/internal/stdio.ts"
import { Traces } from "../src/internal/trace.ts"
import { read as readTrace } from "../src/internal/trace/entry.ts"

const run = Command.run(replay, { name: "allm", version: "0.0.0" })

/** What the command says, and how it ends. */
const replayed = (home: string, ...args: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    let out = ""
    let error = ""
    const stdio = yield* Stdio
    const exit = yield* run(["node", "replay", "--home", home, ...args]).pipe(
      Effect.provideService(Stdio, {
        ...stdio,
        isSeen: false,
        colour: false,
        out: (text) => Effect.sync(() => void (out += text)),
        error: (text) => Effect.sync(() => void (error += text))
      }),
      Effect.either
    )
    return { out, error, refused: exit._tag === "Left" ? exit.left : undefined }
  })

/** A home that goes away. */
const withHome = <A, E, R>(use: (home: string) => Effect.Effect<A, E, R>) =>
  Effect.scoped(
    Effect.flatMap(FileSystem.FileSystem, (fs) => Effect.flatMap(fs.makeTempDirectoryScoped(), use))
  ).pipe(Effect.provide(NodeContext.layer))

/** A session that was recorded. */
const recorded = (home: string, id: string, input: string) =>
  Effect.flatMap(
    Traces,
    (traces) => Stream.runDrain(traces.record(id, { input, model: "demo" }, SessionRunner.streamStart(id, input)))
  ).pipe(
    Effect.provide(Fake.engine({ script: [Fake.text("Hello"), Fake.finish("stop")] })),
    Effect.provide(Home.layer(home))
  )

/** A session that was made elsewhere. */
const stored = (home: string, id: string, messages: ReadonlyArray<Message.Message>) =>
  Effect.flatMap(
    SessionStore.SessionStore,
    (store) => store.save(Session.make({ id, thread: { messages, metadata: {} } }))
  ).pipe(Effect.provide(Home.layer(home)))

const elsewhere = [
  Message.system("Be brief"),
  Message.user("What is the weather in Oslo?"),
  Message.assistant("Let me see", {
    toolCalls: [
      ToolCall.make({ id: "c1", name: "weather", arguments: { city: "Oslo" } }),
      ToolCall.make({ id: "c2", name: "news", arguments: {} }),
      ToolCall.make({ id: "c3", name: "traffic", arguments: {} })
    ]
  }),
  Message.tool("c1", "rain"),
  Message.tool("c2", "{\"error\":\"closed\"}", { isError: true })
]

describe("allm replay", () => {
  it.effect("draws the session that is named, by its beginning too, or the last one", () =>
    withHome((home) =>
      Effect.gen(function*() {
        yield* recorded(home, "20261118-200432-k3f9", "Hi there")
        const picture = [
          "Session 20261118-200432-k3f9 · completed",
          "",
          "❯ Hi there"
        ].join("\n")
        for (const args of [["20261118-200432-k3f9"], ["20261118"], []]) {
          const { error, out, refused } = yield* replayed(home, ...args)

          assert.isTrue(out.startsWith(picture), out)
          assert.include(out, " model ▓")
          assert.deepStrictEqual([error, refused], ["", undefined])
        }
      })
    ))

  it.effect("gives what was noted as it was noted", () =>
    withHome((home) =>
      Effect.gen(function*() {
        yield* recorded(home, "s1", "Hi")
        const { out } = yield* replayed(home, "s1", "--json")
        const { entries } = yield* Effect.flatMap(Traces, (traces) => traces.read("s1")).pipe(
          Effect.provide(Home.layer(home))
        )

        assert.isAbove(entries.length, 3)
        assert.deepStrictEqual(readTrace(out), { entries, unknown: 0, torn: 0 })
      })
    ))

  it.effect("shows a session without a trace, and says why there are no bars", () =>
    withHome((home) =>
      Effect.gen(function*() {
        yield* stored(home, "s1", elsewhere)
        const { out } = yield* replayed(home, "s1", "--width", "60")
        const json = yield* replayed(home, "s1", "--json")

        assert.strictEqual(
          out,
          [
            "Session s1 · idle",
            " There is no trace of this session, so there are no times",
            " and no bars: it was made elsewhere, or its trace is gone.",
            "",
            "❯ What is the weather in Oslo?",
            "  Let me see",
            "    ✓ weather {\"city\":\"Oslo\"}",
            "    ✗ news",
            "    · traffic",
            ""
          ].join("\n")
        )
        assert.deepStrictEqual(json, {
          out: "",
          error: "allm: there is no trace of session s1; it was made elsewhere.\n",
          refused: undefined
        })
      })
    ))

  it.effect("shows what came before the trace", () =>
    withHome((home) =>
      Effect.gen(function*() {
        yield* stored(home, "s1", [...elsewhere.slice(0, 2), Message.assistant("Rain"), Message.user("And in Rome?")])
        yield* Effect.flatMap(
          Traces,
          (traces) => Stream.runDrain(traces.record("s1", { input: "And in Rome?", model: "demo" }, Stream.empty))
        ).pipe(
          Effect.provide(Home.layer(home))
        )
        const { out } = yield* replayed(home, "s1")
        const heads = out.split("\n").filter((line) => line.startsWith("❯") || line.includes("no trace"))

        assert.deepStrictEqual(heads, [
          " There is no trace of the beginning, so it has no times and no bars: it was made elsewhere.",
          "❯ What is the weather in Oslo?",
          "❯ And in Rome?"
        ])
      })
    ))

  it.effect("shows a trace whose session is gone", () =>
    withHome((home) =>
      Effect.gen(function*() {
        yield* recorded(home, "s1", "Hi")
        yield* Effect.flatMap(SessionStore.SessionStore, (store) => store.delete("s1")).pipe(
          Effect.provide(Home.layer(home))
        )
        const { out } = yield* replayed(home, "s1")

        assert.isTrue(out.startsWith("Session s1\n\n❯ Hi\n"), out)
      })
    ))

  it.effect("says what it could not read of a trace", () =>
    withHome((home) =>
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        yield* recorded(home, "s1", "Hi")
        const file = `${home}/traces/s1.ndjson`
        yield* fs.writeFileString(file, "{\"_tag\":\"Nap\",\"at\":1,\"turn\":\"t\"}\n{\"_tag\":\"Turn", { flag: "a" })
        const { out } = yield* replayed(home, "s1")

        assert.isTrue(
          out.endsWith(
            " 1 line of the trace was not written to the end.\n 1 line of the trace is of a later version.\n"
          ),
          out
        )
      })
    ))

  it.effect("refuses what it cannot show, and says what to write", () =>
    withHome((home) =>
      Effect.gen(function*() {
        const nothing = yield* replayed(home)
        yield* stored(home, "monday", elsewhere)
        yield* stored(home, "mondays", elsewhere)
        const refusals = [
          nothing,
          yield* replayed(home, "mondey"),
          yield* replayed(home, "mon"),
          yield* replayed(home, "monday", "--width", "12")
        ].map(({ out, refused }) => [out, refused?._tag === "Refused" ? [refused.code, refused.message] : refused])

        assert.deepStrictEqual(refusals, [
          ["", [2, "There is no session to replay yet. Start one with: allm chat"]],
          ["", [2, "There is no session \"mondey\". The nearest: monday, mondays."]],
          ["", [2, "2 sessions begin with \"mon\": monday, mondays. Write more of the id."]],
          ["", [2, "A timeline needs at least 30 columns; --width is 12."]]
        ])
      })
    ))

  it.effect("ends quietly when nobody reads on", () =>
    withHome((home) =>
      Effect.gen(function*() {
        yield* recorded(home, "s1", "Hi")
        const stdio = yield* Stdio
        let told = ""
        yield* run(["node", "replay", "--home", home, "s1"]).pipe(
          Effect.provideService(Stdio, {
            ...stdio,
            out: () => Effect.fail(new BrokenPipe({ message: "EPIPE" })),
            error: (text) => Effect.sync(() => void (told += text))
          })
        )

        assert.strictEqual(told, "")
      })
    ))
})
