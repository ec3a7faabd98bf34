import { Fake, Tool } from "@allm/core"
import { FileSystem, Path } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { SystemError } from "@effect/platform/Error"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Deferred, Effect, Exit, FastCheck, Fiber, Layer, Logger, LogLevel, Stream } from "effect"
import { layerFileSystem, Traces } from "../src/internal/trace.ts"
import { Entry, print, read as readText } from "../src/internal/trace/entry.ts"
import { over, read, recorded, say, TemporaryTraces, World } from "./recordings.ts"

const call = (id: string, name: string, args: unknown = {}) => Fake.toolCall({ id, name, arguments: args })

const tagsOf = (entries: ReadonlyArray<Entry>) => entries.map(({ _tag }) => _tag)

/** The text of a trace, as it is on the disk. */
const withDirectory = <A, E, R>(use: (directory: string) => Effect.Effect<A, E, R>) =>
  Effect.scoped(
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const directory = yield* fs.makeTempDirectoryScoped()
      return yield* use(`${directory}/traces`)
    })
  ).pipe(Effect.provide(NodeContext.layer))

const fileOf = (directory: string, name = "s1") => `${directory}/${name}.ndjson`

const twoTools = Fake.engine({
  tools: [
    Tool.make("add", { description: "Adds", handler: () => Effect.delay(Effect.succeed(5), "1 second") }),
    Tool.make("boom", { description: "Dies", handler: () => Effect.dieMessage("no route to the database") })
  ],
  usage: { inputTokens: 3, outputTokens: 4, totalTokens: 7 },
  scripts: [
    [Fake.text("Let me see"), call("c1", "add", { a: 2, b: 3 }), call("c2", "boom"), Fake.finish("tool_calls")],
    [Fake.text("It is "), Fake.text("5"), Fake.finish("stop")]
  ]
})

describe("Trace", () => {
  it.effect("notes what happened and when, and passes the events on", () =>
    Effect.gen(function*() {
      const events = yield* over("2 seconds")(Stream.runCollect(say("How much is 2 + 3?")))
      const { entries, torn, unknown } = yield* read()

      assert.strictEqual([...events].at(-1)?._tag, "ChatCompleted")
      assert.deepStrictEqual([torn, unknown], [0, 0])
      const [{ turn }] = entries as [Entry]
      const ofAdd = { turn, toolCallId: "c1", toolName: "add" }
      const ofBoom = { turn, toolCallId: "c2", toolName: "boom" }
      const usage = { inputTokens: 3, outputTokens: 4, totalTokens: 7 }
      assert.deepStrictEqual(entries.filter(({ _tag }) => _tag !== "Logged"), [
        { _tag: "TurnBegan", at: 0, turn, input: "How much is 2 + 3?", model: "demo" },
        { _tag: "ModelStarted", at: 0, turn },
        { _tag: "ModelSpoke", at: 0, turn, first: "text" },
        { _tag: "ToolAsked", at: 0, ...ofAdd, arguments: "{\"a\":2,\"b\":3}" },
        { _tag: "ToolAsked", at: 0, ...ofBoom, arguments: "{}" },
        {
          _tag: "ModelEnded",
          at: 0,
          turn,
          finishReason: "tool_calls",
          textLength: 10,
          reasoningLength: 0,
          calls: 2,
          usage
        },
        { _tag: "ToolStarted", at: 0, ...ofAdd },
        { _tag: "ToolStarted", at: 0, ...ofBoom },
        { _tag: "ToolEnded", at: 0, ...ofBoom, outcome: "HandlerRaised", message: "no route to the database" },
        { _tag: "ToolAnswered", at: 0, ...ofBoom, length: 45, isError: true },
        { _tag: "ToolEnded", at: 1000, ...ofAdd, outcome: "Ok" },
        { _tag: "ToolAnswered", at: 1000, ...ofAdd, length: 1, isError: false },
        { _tag: "StepEnded", at: 1000, turn },
        { _tag: "ModelStarted", at: 1000, turn },
        { _tag: "ModelSpoke", at: 1000, turn, first: "text" },
        {
          _tag: "ModelEnded",
          at: 1000,
          turn,
          finishReason: "stop",
          textLength: 7,
          reasoningLength: 0,
          calls: 0,
          usage
        },
        { _tag: "StepEnded", at: 1000, turn },
        { _tag: "ChatEnded", at: 1000, turn, reason: "completed" },
        { _tag: "TurnEnded", at: 1000, turn, outcome: "completed" }
      ])
    }).pipe(Effect.provide(twoTools), Effect.provide(World)))

  it.effect("stays short, however long the answers are", () =>
    Effect.gen(function*() {
      yield* Stream.runDrain(say("long ".repeat(10_000)))
      const { entries } = yield* read()

      assert.isBelow(print(entries).length, 3000)
    }).pipe(
      Effect.provide(Fake.engine({
        tools: [Tool.make("big", { description: "x", handler: () => "x".repeat(100_000) })],
        scripts: [
          [Fake.text("y".repeat(100_000)), call("c1", "big", { text: "z".repeat(100_000) }), Fake.finish("tool_calls")],
          [...Array.from({ length: 1000 }, () => Fake.text("word ")), Fake.finish("stop")]
        ]
      })),
      Effect.provide(World)
    ))

  it.effect("notes progress ten times a second at most, and how often there was any", () =>
    Effect.gen(function*() {
      yield* over("3 seconds")(Stream.runDrain(say("Go")))
      const { entries } = yield* read()

      const ended = entries.find((entry) => entry._tag === "ToolEnded")
      assert.strictEqual(ended?.progress, 200)
      assert.isAtMost(entries.filter(({ _tag }) => _tag === "ToolProgressed").length, 21)
    }).pipe(
      Effect.provide(Fake.engine({
        tools: [Tool.make("busy", {
          description: "x",
          handler: (_, { progress }) =>
            Effect.forEach(
              Array.from({ length: 200 }),
              (_, n) => Effect.zipRight(progress(n), Effect.sleep("10 millis")),
              { discard: true }
            )
        })],
        scripts: [[call("c1", "busy"), Fake.finish("tool_calls")], [Fake.text("done"), Fake.finish("stop")]]
      })),
      Effect.provide(World)
    ))

  describe("the end of a turn", () => {
    const endOf = <E>(
      events: Stream.Stream<never, E>,
      run: (events: Stream.Stream<unknown, E, Traces>) => Effect.Effect<unknown, unknown, Traces>
    ) =>
      Effect.gen(function*() {
        const traces = yield* Traces
        yield* Effect.exit(run(traces.record("s1", { model: "demo" }, events)))
        const last = (yield* traces.read("s1")).entries.at(-1)!
        return last._tag === "TurnEnded" ? [last.outcome, last.error, last.message] : [last._tag]
      }).pipe(Effect.provide(TemporaryTraces))

    it.effect("is noted when it failed", () =>
      Effect.gen(function*() {
        const error = { _tag: "Refused", message: "not now" }
        const ended = yield* endOf(Stream.fail(Object.assign(new Error("not now"), error)), Stream.runDrain)

        assert.deepStrictEqual(ended, ["failed", "Refused", "not now"])
      }))

    it.effect("is noted when it died", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* endOf(Stream.dieMessage("a bug"), Stream.runDrain), [
          "failed",
          undefined,
          "a bug"
        ])
      }))

    it.effect("is noted when it was interrupted, after the finalizers of the events", () =>
      Effect.gen(function*() {
        const finalized: Array<string> = []
        const started = yield* Deferred.make<void>()
        const events = Stream.never.pipe(
          Stream.onStart(Deferred.succeed(started, undefined)),
          Stream.ensuring(Effect.sync(() => finalized.push("events")))
        )
        const ended = yield* endOf(events, (recorded) =>
          Effect.gen(function*() {
            const fiber = yield* Effect.fork(Stream.runDrain(recorded))
            yield* Deferred.await(started)
            yield* Fiber.interrupt(fiber)
          }))

        assert.deepStrictEqual(ended, ["interrupted", undefined, undefined])
        assert.deepStrictEqual(finalized, ["events"])
      }))

    it.effect("is noted when nobody reads on", () =>
      Effect.gen(function*() {
        yield* over("1 second")(Stream.runDrain(Stream.take(say("Hi"), 1)))
        const { entries } = yield* read()

        assert.deepInclude(entries.at(-1), { _tag: "TurnEnded", outcome: "interrupted" })
      }).pipe(Effect.provide(twoTools), Effect.provide(World)))
  })

  it.effect("asks for the next events only when somebody wants them", () =>
    Effect.gen(function*() {
      let made = 0
      const events = Stream.repeatEffect(Effect.sync(() => ({ _tag: "TextDelta", delta: String(++made) } as const)))
      const taken = yield* Stream.runCollect(Stream.take(recorded({}, events), 3))

      assert.strictEqual(taken.length, 3)
      assert.strictEqual(made, 3)
    }).pipe(Effect.provide(twoTools), Effect.provide(World)))

  describe("the log", () => {
    const logging = Fake.engine({
      tools: [Tool.make("talk", {
        description: "Logs",
        handler: () => Effect.zipRight(Effect.logDebug("a detail", { n: 1 }), Effect.logWarning("a warning"))
      })],
      scripts: [[call("c1", "talk"), Fake.finish("tool_calls")], [Fake.text("Done"), Fake.finish("stop")]]
    })

    it.effect("is noted on all levels, with the call it is of, and the person hears no more than before", () =>
      Effect.gen(function*() {
        const heard: Array<unknown> = []
        const own = Logger.make(({ logLevel, message }) => heard.push([logLevel.label, message]))
        yield* Stream.runForEach(
          say("Hi"),
          (event) => event._tag === "ChatCompleted" ? Effect.logDebug("of the reader") : Effect.void
        ).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, own)))
        const { entries } = yield* read()

        const lines = entries.filter((entry) => entry._tag === "Logged")
        assert.deepStrictEqual(
          lines.map(({ level, message, toolCallId, toolName }) => [level, message, toolCallId, toolName]),
          [
            ["DEBUG", "a detail: {\"n\":1}", "c1", "talk"],
            ["WARN", "a warning", "c1", "talk"]
          ]
        )
        assert.deepStrictEqual(heard, [["WARN", ["a warning"]]])
      }).pipe(Effect.provide(logging), Effect.provide(World)))

    it.effect("reaches a person who asked for more", () =>
      Effect.gen(function*() {
        const heard: Array<unknown> = []
        const own = Logger.make(({ message }) => heard.push(message))
        yield* Stream.runDrain(say("Hi")).pipe(
          Logger.withMinimumLogLevel(LogLevel.Debug),
          Effect.provide(Logger.replace(Logger.defaultLogger, own))
        )

        assert.deepStrictEqual(heard, [["a detail", { n: 1 }], ["a warning"]])
      }).pipe(Effect.provide(logging), Effect.provide(World)))
  })

  describe("the file", () => {
    it.effect("is not there until something is recorded, and again when it was deleted", () =>
      Effect.gen(function*() {
        const traces = yield* Traces
        const before = yield* traces.read("s1")
        yield* traces.delete("s1")
        yield* Stream.runDrain(traces.record("s1", { model: "m" }, Stream.empty))
        const recorded = yield* traces.read("s1")
        yield* traces.delete("s1")

        assert.deepStrictEqual(before.entries, [])
        assert.deepStrictEqual(tagsOf(recorded.entries), ["TurnBegan", "TurnEnded"])
        assert.deepStrictEqual((yield* traces.read("s1")).entries, [])
      }).pipe(Effect.provide(TemporaryTraces)))

    it.effect("has a name of its own for every id", () =>
      Effect.gen(function*() {
        const traces = yield* Traces
        const ids = ["../../etc/passwd", "a/b", "a%2fb", "A", "a", "", "é", "x".repeat(500), "x".repeat(501)]
        for (const id of ids) yield* Stream.runDrain(traces.record(id, { input: id, model: "m" }, Stream.empty))
        const inputs = yield* Effect.forEach(ids, (id) =>
          Effect.map(traces.read(id), ({ entries }) =>
            entries.map((entry) =>
              entry._tag === "TurnBegan" ? entry.input : entry._tag
            )))

        assert.deepStrictEqual(inputs, ids.map((id) => [id, "TurnEnded"]))
      }).pipe(Effect.provide(TemporaryTraces)))

    it.effect("is read up to where a process died, and from where another went on", () =>
      withDirectory((directory) =>
        Effect.gen(function*() {
          const fs = yield* FileSystem.FileSystem
          const traces = yield* Traces
          yield* Stream.runDrain(traces.record("s1", { input: "one", model: "m" }, Stream.empty))
          const whole = yield* fs.readFileString(fileOf(directory))
          // In the middle of the last line, and of a character.
          const torn = new TextEncoder().encode(whole.replace("completed", "é"))
          yield* fs.writeFile(fileOf(directory), torn.slice(0, torn.indexOf(0xc3) + 1))
          yield* Stream.runDrain(traces.record("s1", { input: "two", model: "m" }, Stream.empty))
          const recording = yield* traces.read("s1")

          assert.deepStrictEqual(tagsOf(recording.entries), ["TurnBegan", "TurnBegan", "TurnEnded"])
          assert.deepStrictEqual([recording.torn, recording.unknown], [1, 0])
        }).pipe(Effect.provide(layerFileSystem(directory)))
      ))

    it.effect("takes the lines of several writers at once, each whole", () =>
      withDirectory((directory) =>
        Effect.gen(function*() {
          const writers = 8
          const events = Stream.tap(
            Stream.repeatValue({ _tag: "ToolExecutionStarted", toolCallId: "c".repeat(300), toolName: "t" } as const),
            () => Effect.yieldNow()
          ).pipe(Stream.take(50))
          yield* Effect.forEach(
            Array.from({ length: writers }),
            () =>
              Effect.flatMap(Traces, (traces) => Stream.runDrain(traces.record("s1", { model: "m" }, events))).pipe(
                // As in processes of their own.
                Effect.provide(Layer.fresh(layerFileSystem(directory)))
              ),
            { concurrency: "unbounded", discard: true }
          )
          const { entries, torn, unknown } = yield* Effect.flatMap(Traces, (traces) => traces.read("s1")).pipe(
            Effect.provide(layerFileSystem(directory))
          )

          assert.deepStrictEqual([entries.length, torn, unknown], [writers * 52, 0, 0])
          assert.strictEqual(new Set(entries.map(({ turn }) => turn)).size, writers)
        })
      ))

    it.effect("has the lines of a turn while it still runs", () =>
      withDirectory((directory) =>
        Effect.gen(function*() {
          const traces = yield* Traces
          const events = Stream.concat(
            Stream.make({ _tag: "ToolExecutionStarted", toolCallId: "c1", toolName: "t" } as const),
            Stream.never
          )
          const fiber = yield* Effect.fork(Stream.runDrain(traces.record("s1", { model: "m" }, events)))
          const seen = yield* Effect.iterate(0, {
            while: (lines) => lines < 2,
            body: () =>
              Effect.zipRight(Effect.yieldNow(), Effect.map(traces.read("s1"), ({ entries }) => entries.length))
          })
          yield* Fiber.interrupt(fiber)

          assert.strictEqual(seen, 2)
        }).pipe(Effect.provide(layerFileSystem(directory)))
      ))
  })

  describe("a disk that fails", () => {
    const failing = (method: string) =>
      new SystemError({ reason: "PermissionDenied", module: "FileSystem", method, pathOrDescriptor: "traces" })

    const Broken = Layer.mergeAll(
      FileSystem.layerNoop({
        open: () => Effect.fail(failing("open")),
        readFileString: () => Effect.fail(failing("readFileString"))
      }),
      Path.layer
    )

    it.effect("fails no turn, and is told of once", () =>
      Effect.gen(function*() {
        const heard: Array<string> = []
        const own = Logger.make(({ logLevel, message }) => heard.push(`${logLevel.label} ${String(message)}`))
        const run = Effect.flatMap(Traces, (traces) =>
          Stream.runCollect(
            traces.record("s1", { model: "m" }, Stream.make({ _tag: "TextDelta", delta: "a" } as const))
          ))
        const events = yield* Effect.zipRight(run, run).pipe(
          Effect.provide(Logger.replace(Logger.defaultLogger, own)),
          Effect.provide(Layer.provide(layerFileSystem("traces"), Broken))
        )

        assert.strictEqual(events.length, 1)
        assert.deepStrictEqual(heard, [
          "WARN the trace traces/s1.ndjson cannot be written, so there will be no bars to replay"
        ])
      }))

    it.effect("is told of by whoever reads", () =>
      Effect.gen(function*() {
        const exit = yield* Effect.flatMap(Traces, (traces) => traces.read("s1")).pipe(
          Effect.provide(Layer.provide(layerFileSystem("traces"), Broken)),
          Effect.flip
        )

        assert.include(exit.message, "cannot read the trace of session \"s1\" (traces/s1.ndjson): PermissionDenied")
      }))

    it.effect("that does not answer keeps nobody from leaving", () =>
      Effect.gen(function*() {
        const Silent = Layer.mergeAll(FileSystem.layerNoop({ open: () => Effect.never }), Path.layer)
        const exit = yield* Effect.flatMap(Traces, (traces) =>
          Stream.runDrain(traces.record("s1", { model: "m" }, Stream.empty))).pipe(
            Effect.provide(Layer.provide(layerFileSystem("traces"), Silent)),
            over("3 seconds"),
            Effect.exit
          )

        assert.isTrue(Exit.isSuccess(exit))
      }))
  })

  describe("entries", () => {
    it("come back from their lines as they were", () => {
      FastCheck.assert(
        FastCheck.property(FastCheck.array(Arbitrary.make(Entry)), (entries) => {
          const recording = readText(print(entries))

          // Compared as text: of two zeros, JSON knows one.
          assert.strictEqual(print(recording.entries), print(entries))
          assert.deepStrictEqual([recording.entries.length, recording.torn, recording.unknown], [entries.length, 0, 0])
        })
      )
    })

    it("are one line each", () => {
      FastCheck.assert(
        FastCheck.property(FastCheck.array(Arbitrary.make(Entry)), (entries) => {
          assert.strictEqual(print(entries).split("\n").length, entries.length + 1)
        })
      )
    })

    it("can be read wherever the text was cut", () => {
      FastCheck.assert(
        FastCheck.property(
          FastCheck.array(Arbitrary.make(Entry), { minLength: 1 }),
          FastCheck.nat(),
          (entries, cut) => {
            const text = print(entries)
            const recording = readText(text.slice(0, cut % text.length))

            assert.isTrue(text.startsWith(print(recording.entries).trimEnd()))
            assert.isAtMost(recording.torn, 1)
            assert.strictEqual(recording.unknown, 0)
          }
        )
      )
    })

    it("of later versions are left out, and counted", () => {
      const known = { _tag: "TurnBegan", at: 1, turn: "t", model: "m" } as const
      const text = [
        "{\"_tag\":\"CoffeeBreak\",\"at\":1,\"turn\":\"t\"}",
        "{\"_tag\":\"TurnBegan\",\"at\":1,\"turn\":\"t\",\"model\":\"m\",\"mood\":\"good\"}",
        "{\"_tag\":\"TurnBegan\",\"at\":\"noon\"}",
        "42",
        "",
        "{\"_tag\":"
      ].join("\n")

      assert.deepStrictEqual(readText(text), { entries: [known], unknown: 3, torn: 1 })
    })
  })
})
