import { AdapterError, Fake, SessionRunner, Tool, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, DateTime, Effect, FastCheck, Fiber, Layer, Schedule, Stream, TestClock } from "effect"
import { type Call, fromEntries, type Outcome } from "../src/internal/timeline.ts"
import { view } from "../src/internal/timelineView.ts"
import { Entry } from "../src/internal/trace/entry.ts"
import { goOn, over, read, reply, say, World } from "./recordings.ts"

const call = (id: string, name: string, args: unknown = {}) => Fake.toolCall({ id, name, arguments: args })

const calls = (...names: ReadonlyArray<string>) => [
  ...names.map((name) => call(name, name)),
  Fake.finish("tool_calls")
]

const done = [Fake.text("Done"), Fake.finish("stop")]

const tool = <A, E>(name: string, handler: () => Effect.Effect<A, E>) => Tool.make(name, { description: name, handler })

const taking = (name: string, time: `${number} seconds`) => tool(name, () => Effect.sleep(time))

/** The timeline of what happens, on the clock of the test. */
const timelineOf = <A, E, R>(happening: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.zipRight(over("10 seconds")(happening), read()), ({ entries }) => fromEntries(entries))

const spans = (calls: ReadonlyArray<Call>) =>
  calls.map(({ began, ended, outcome, toolName }) => [toolName, began, ended, outcome])

const entryOf = (toolCallId: string, at: number) => ({ at, turn: "t", toolCallId, toolName: toolCallId })

const began = (at: number, turn = "t") => ({ _tag: "TurnBegan", at, turn, model: "m" }) as const

describe("Timeline", () => {
  it.effect("has parallel calls beside each other, between the answers", () =>
    Effect.gen(function*() {
      const { totals, turns } = yield* timelineOf(Stream.runDrain(say("Go")))
      const [turn] = turns

      assert.deepStrictEqual(spans(turn!.calls), [["long", 300, 3300, "done"], ["short", 300, 1300, "done"]])
      assert.deepStrictEqual(
        turn!.answers.map(({ began, ended, finishReason, spoke }) => [began, spoke, ended, finishReason]),
        [[0, 100, 300, "tool_calls"], [3300, 3400, 3500, "stop"]]
      )
      assert.deepStrictEqual([turn!.began, turn!.ended, turn!.outcome, turn!.reason], [
        0,
        3500,
        "completed",
        "completed"
      ])
      assert.deepStrictEqual([totals.modelMillis, totals.toolMillis, totals.tokens], [500, 3000, 30])
    }).pipe(
      Effect.provide(Fake.engine({
        tools: [taking("long", "3 seconds"), taking("short", "1 seconds")],
        delay: "100 millis",
        usage: { inputTokens: 10, outputTokens: 5 },
        scripts: [calls("long", "short"), done]
      })),
      Effect.provide(World)
    ))

  it.effect("tells how each call ended", () =>
    Effect.gen(function*() {
      const { totals, turns } = yield* timelineOf(Stream.runDrain(say("Go")))

      const outcomes = Object.fromEntries(turns[0]!.calls.map(({ outcome, toolName }) => [toolName, outcome]))
      assert.deepStrictEqual(outcomes, {
        fine: "done",
        saying_no: "failed",
        crashing: "crashed",
        slow: "timedOut",
        stuck: "abandoned",
        misused: "invalid",
        halting: "halted"
      })
      assert.deepStrictEqual(turns[0]!.calls.find(({ toolName }) => toolName === "slow")?.limitMillis, 1000)
      assert.strictEqual(turns[0]!.reason, "enough")
      assert.strictEqual(totals.calls, 7)
    }).pipe(
      Effect.provide(Fake.engine({
        tools: [
          taking("fine", "1 seconds"),
          tool("saying_no", () => Effect.fail("no such city")),
          tool("crashing", () => Effect.dieMessage("boom")),
          Tool.make("slow", { description: "x", timeout: "1 second", handler: () => Effect.never }),
          Tool.make("stuck", {
            description: "x",
            timeout: "1 second",
            handler: () => Effect.uninterruptible(Effect.sleep("5 seconds"))
          }),
          taking("misused", "1 seconds"),
          tool("halting", () => Effect.succeed(ToolResult.halt("enough", "that will do")))
        ],
        script: [
          ...["fine", "saying_no", "crashing", "slow", "stuck"].map((name) => call(name, name)),
          Fake.toolCall({ id: "misused", name: "misused", rawArguments: "{" }),
          call("halting", "halting"),
          Fake.finish("tool_calls")
        ]
      })),
      Effect.provide(World)
    ))

  it.effect("has the moments at which a handler ran again, and the model was asked again", () =>
    Effect.gen(function*() {
      const { totals, turns } = yield* timelineOf(Stream.runDrain(say("Go")))
      const [turn] = turns

      assert.deepStrictEqual(turn!.calls.map(({ ended, retries }) => [ended, retries]), [[2000, [1000, 2000]]])
      assert.deepStrictEqual(turn!.answers.map(({ began, ended, retries }) => [began, ended, retries.length]), [
        [0, 0, 0],
        [2000, turn!.ended, 1]
      ])
      assert.strictEqual(totals.retries, 3)
    }).pipe(
      Effect.provide(Layer.suspend(() => {
        let attempts = 0
        return Fake.engine({
          tools: [Tool.make("flaky", {
            description: "x",
            retry: Schedule.spaced("1 second"),
            handler: () => Effect.suspend(() => ++attempts < 3 ? Effect.fail("no") : Effect.void)
          })],
          scripts: [calls("flaky"), [Fake.preflightError("rate_limited")], done]
        })
      })),
      Effect.provide(World)
    ))

  it.effect("waits for a person from the end of a turn to the beginning of the next", () =>
    Effect.gen(function*() {
      const { totals, turns, waits } = yield* timelineOf(Effect.gen(function*() {
        yield* Stream.runDrain(say("Go"))
        yield* TestClock.adjust("8 hours")
        yield* SessionRunner.approve("s1", "send")
        yield* Stream.runDrain(goOn())
      }))

      assert.deepStrictEqual(spans(turns[0]!.calls), [["look", 0, 1000, "done"], ["send", undefined, 0, "approval"]])
      const [wait, after] = waits
      assert.deepStrictEqual([wait!.from, wait!.until], [1000, turns[1]!.began])
      assert.deepStrictEqual(wait!.calls.map(({ toolName }) => toolName), ["send"])
      assert.deepStrictEqual([after!.until, after!.calls], [undefined, []])
      assert.deepStrictEqual(turns[1]!.calls.map(({ isReplayed, outcome }) => [outcome, isReplayed]), [["done", false]])
      assert.isAtLeast(totals.waitingMillis, 8 * 3600 * 1000)
      assert.deepStrictEqual([...totals.outcomes], [["done", 2]])
    }).pipe(
      Effect.provide(Fake.engine({
        tools: [
          taking("look", "1 seconds"),
          Tool.make("send", { description: "x", needsApproval: true, handler: () => Effect.sleep("1 second") })
        ],
        scripts: [calls("look", "send"), done]
      })),
      Effect.provide(World)
    ))

  it.effect("tells of a call that was denied", () =>
    Effect.gen(function*() {
      const { totals, turns } = yield* timelineOf(Effect.gen(function*() {
        yield* Stream.runDrain(say("Go"))
        yield* SessionRunner.deny("s1", "send", { reason: "too dear" })
        yield* Stream.runDrain(goOn())
      }))

      assert.deepStrictEqual(turns[1]!.calls.map(({ message, outcome }) => [outcome, message]), [
        ["denied", "too dear"]
      ])
      assert.deepStrictEqual([...totals.outcomes], [["denied", 1]])
    }).pipe(
      Effect.provide(Fake.engine({
        tools: [Tool.make("send", { description: "x", needsApproval: true, handler: () => Effect.void })],
        scripts: [calls("send"), done]
      })),
      Effect.provide(World)
    ))

  it.effect("keeps a question until it is answered, also when something else was refused meanwhile", () =>
    Effect.gen(function*() {
      const { turns, waits } = yield* timelineOf(Effect.gen(function*() {
        yield* Stream.runDrain(say("Go"))
        yield* Effect.ignore(Stream.runDrain(goOn()))
        yield* Stream.runDrain(reply("Oslo"))
      }))

      assert.deepStrictEqual(turns.map(({ outcome }) => outcome), ["completed", "failed", "completed"])
      assert.deepStrictEqual(waits.map(({ calls }) => calls.map(({ message }) => message)), [
        ["Which city?"],
        ["Which city?"],
        []
      ])
    }).pipe(
      Effect.provide(Fake.engine({
        tools: [tool("ask", () => Effect.succeed(ToolResult.askUser("Which city?")))],
        scripts: [calls("ask"), done]
      })),
      Effect.provide(World)
    ))

  it.effect("tells what an interruption cut off", () =>
    Effect.gen(function*() {
      const { turns } = yield* timelineOf(Effect.gen(function*() {
        const fiber = yield* Effect.fork(Stream.runDrain(say("Go")))
        yield* Effect.sleep("2 seconds")
        yield* Fiber.interrupt(fiber)
      }))

      assert.deepStrictEqual(spans(turns[0]!.calls), [
        ["long", 0, 2000, "interrupted"],
        ["short", 0, 1000, "done"]
      ])
      assert.strictEqual(turns[0]!.outcome, "interrupted")
    }).pipe(
      Effect.provide(Fake.engine({
        tools: [taking("long", "5 seconds"), taking("short", "1 seconds")],
        script: calls("long", "short")
      })),
      Effect.provide(World)
    ))

  it.effect("has an answer that never came, when the model failed or was cut off before it began", () =>
    Effect.gen(function*() {
      const { turns } = yield* timelineOf(Effect.gen(function*() {
        yield* Effect.ignore(Stream.runDrain(say("Go", "s1")))
        const fiber = yield* Effect.fork(Stream.runDrain(reply("Again")))
        yield* Effect.sleep("2 seconds")
        yield* Fiber.interrupt(fiber)
      }))

      assert.deepStrictEqual(
        turns.map(({ answers, began }) => answers.map(({ ended, outcome }) => [outcome, ended - began])),
        [[["failed", 0]], [["interrupted", 2000]]]
      )
      assert.include(turns[0]!.answers[0]!.message, "invalid_request")
    }).pipe(
      Effect.provide(Fake.engine({
        respond: (_, index) =>
          index === 0
            ? [Fake.preflightError(new AdapterError.AdapterError({ reason: "invalid_request", provider: "fake" }))]
            : [Fake.delay("1 hour"), ...done]
      })),
      Effect.provide(World)
    ))

  describe("of a process that died", () => {
    const before: ReadonlyArray<Entry> = [
      began(0),
      { _tag: "ModelStarted", at: 0, turn: "t" },
      { _tag: "ToolAsked", ...entryOf("a", 100) },
      { _tag: "ToolAsked", ...entryOf("b", 100) },
      { _tag: "ToolAsked", ...entryOf("c", 100) },
      { _tag: "ModelEnded", at: 100, turn: "t", textLength: 0, reasoningLength: 0, calls: 3 },
      { _tag: "ToolStarted", ...entryOf("a", 100) },
      { _tag: "ToolStarted", ...entryOf("b", 100) },
      { _tag: "ToolEnded", ...entryOf("a", 200), outcome: "Ok" }
    ]

    it("has calls without an end, as far as they are known", () => {
      const { turns } = fromEntries(before)

      assert.deepStrictEqual(spans(turns[0]!.calls), [
        ["a", 100, 200, "done"],
        ["b", 100, 200, "lost"],
        ["c", undefined, 200, "lost"]
      ])
      assert.strictEqual(turns[0]!.outcome, "open")
    })

    it("tells what another process took from the journal", () => {
      const again = { turn: "u" }
      const { totals, turns } = fromEntries([
        ...before,
        { ...began(5000), ...again },
        { _tag: "ToolStarted", ...entryOf("a", 5000), ...again },
        { _tag: "ToolStarted", ...entryOf("b", 5000), ...again },
        { _tag: "ToolEnded", ...entryOf("a", 5001), ...again, outcome: "Ok" },
        { _tag: "ToolEnded", ...entryOf("b", 5100), ...again, outcome: "OutcomeUnknown" }
      ])

      assert.deepStrictEqual(turns[1]!.calls.map(({ isReplayed, outcome }) => [outcome, isReplayed]), [
        ["done", true],
        ["unknown", false]
      ])
      assert.deepStrictEqual([totals.calls, totals.replayed], [3, 1])
    })
  })

  it("keeps two processes apart that wrote at the same time", () => {
    const { turns } = fromEntries([
      began(0),
      { ...began(5), turn: "u" },
      { _tag: "ToolStarted", ...entryOf("a", 10) },
      { _tag: "TurnEnded", at: 20, turn: "u", outcome: "failed", message: "held by another" },
      { _tag: "ToolEnded", ...entryOf("a", 30), outcome: "Ok" },
      { _tag: "TurnEnded", at: 40, turn: "t", outcome: "completed" }
    ])

    assert.deepStrictEqual(turns.map(({ calls, message }) => [calls.length, message]), [
      [1, undefined],
      [0, "held by another"]
    ])
  })

  it("has a bar each for calls of the same id in two answers", () => {
    const { turns } = fromEntries([
      began(0),
      ...[100, 300].flatMap((at): ReadonlyArray<Entry> => [
        { _tag: "ToolAsked", ...entryOf("call_0", at) },
        { _tag: "ToolStarted", ...entryOf("call_0", at) },
        { _tag: "ToolEnded", ...entryOf("call_0", at + 100), outcome: "Ok" }
      ])
    ])

    assert.deepStrictEqual(spans(turns[0]!.calls), [["call_0", 100, 200, "done"], ["call_0", 300, 400, "done"]])
  })

  it("calls an outcome of a later version a failure, and shows warnings that no bar tells of", () => {
    const outcome: Outcome = "failed"
    const line = { at: 1, turn: "t", level: "WARN" }
    const { turns } = fromEntries([
      began(0),
      { _tag: "ToolEnded", ...entryOf("a", 1), outcome: "Evaporated" },
      { _tag: "Logged", ...line, message: "tool error (a): evaporated" },
      { _tag: "Logged", ...line, message: "disk almost full" },
      { _tag: "Logged", ...line, level: "DEBUG", message: "a detail" }
    ])

    assert.strictEqual(turns[0]!.calls[0]!.outcome, outcome)
    assert.deepStrictEqual(turns[0]!.lines.map(({ message }) => message), ["disk almost full"])
  })

  it("exists for whatever is in a trace, and so does its picture", () => {
    const turn = FastCheck.constantFrom("t", "u")
    const id = FastCheck.constantFrom("a", "b")
    const at = FastCheck.oneof(FastCheck.nat(100_000), FastCheck.double({ noNaN: true, noDefaultInfinity: true }))
    const entry = FastCheck.record({ entry: Arbitrary.make(Entry), turn, id, at }).map(({ at, entry, id, turn }) =>
      "toolCallId" in entry ? { ...entry, at, turn, toolCallId: id } : { ...entry, at, turn }
    )
    FastCheck.assert(
      FastCheck.property(FastCheck.array(entry), FastCheck.integer({ min: 1, max: 200 }), (entries, width) => {
        const timeline = fromEntries(entries)
        const lines = view(timeline, { width, colour: false, zone: DateTime.zoneMakeOffset(0) })

        for (const { answers, began, calls, ended } of timeline.turns) {
          assert.isAtMost(began, ended)
          for (const bar of [...answers, ...calls]) assert.isAtMost(bar.began ?? bar.ended, bar.ended)
        }
        assert.isTrue(lines.every((line) => !line.includes("\n")))
      })
    )
  })
})
