import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, DateTime, Effect, FastCheck, Fiber, TestClock } from "effect"
import { fromEntries } from "../src/internal/timeline.ts"
import { lengthOf, momentAt, upTo } from "../src/internal/timeline/playback.ts"
import { play } from "../src/internal/timeline/player.ts"
import { turnViews } from "../src/internal/timelineView.ts"
import { Entry } from "../src/internal/trace/entry.ts"

const zone = DateTime.zoneMakeOffset(0)
const options = { width: 60, colour: false, zone }

const of = (toolCallId: string, at: number) => ({ at, turn: "t", toolCallId, toolName: toolCallId })

/** Two turns of two seconds, with a night between them. */
const timeline = fromEntries([
  { _tag: "TurnBegan", at: 10_000, turn: "t", input: "Go", model: "m" },
  { _tag: "ToolStarted", ...of("long", 10_000) },
  { _tag: "ToolStarted", ...of("short", 10_000) },
  { _tag: "ToolEnded", ...of("short", 11_000), outcome: "Ok" },
  { _tag: "ToolEnded", ...of("long", 12_000), outcome: "HandlerFailed", message: "no" },
  { _tag: "TurnEnded", at: 12_000, turn: "t", outcome: "completed" },
  { _tag: "TurnBegan", at: 9_000_000, turn: "u", input: "On", model: "m" },
  { _tag: "TurnEnded", at: 9_002_000, turn: "u", outcome: "completed" }
])

/** The picture of the first turn. */
const drawn = (at: number) => turnViews(upTo(timeline, at), timeline, options)[0]!.slice(2, 5).join("\n")

describe("Playback", () => {
  it("has bars that grow, on an axis that stays", () => {
    assert.strictEqual(
      drawn(10_500),
      [
        "         │0         │500 ms   │1 s       │1.5 s",
        "   long  ██████████▸                                ▸ 500 ms",
        "   short ██████████▸                                ▸ 500 ms"
      ].join("\n")
    )
    assert.strictEqual(
      drawn(11_500),
      [
        "         │0         │500 ms   │1 s       │1.5 s",
        "   long  ███████████████████████████████▸           ▸  1.5 s",
        "   short █████████████████████                      ✓  1.0 s"
      ].join("\n")
    )
  })

  it("takes a second for a night, and as long as it took for the rest", () => {
    assert.strictEqual(lengthOf(timeline), 5000)
    assert.deepStrictEqual([0, 1500, 2000, 2999, 3000, 4000, 99_999].map((played) => momentAt(timeline, played)), [
      10_000,
      11_500,
      12_000,
      12_999,
      9_000_000,
      9_001_000,
      9_002_000
    ])
  })

  it("ends with the whole, and never goes back, whatever is in a trace", () => {
    const entries = FastCheck.array(Arbitrary.make(Entry).map((entry) => ({ ...entry, at: Math.abs(entry.at) % 1e6 })))
    FastCheck.assert(
      FastCheck.property(entries, FastCheck.nat(), (entries, played) => {
        const timeline = fromEntries(entries)
        const length = lengthOf(timeline)
        const now = momentAt(timeline, played % (length + 1))

        assert.isAtMost(now, momentAt(timeline, length))
        assert.isAtMost(turnViews(upTo(timeline, now), timeline, options).length, timeline.turns.length)
        assert.deepStrictEqual(upTo(timeline, Infinity).turns, timeline.turns)
      })
    )
  })

  it.effect("draws in place, and leaves nothing behind", () =>
    Effect.gen(function*() {
      const written: Array<string> = []
      const out = (text: string) => Effect.sync(() => void written.push(text))
      const playing = yield* Effect.fork(play(timeline, { ...options, speed: 2, size: { columns: 61, rows: 4 } }, out))
      yield* TestClock.adjust("1 second")
      const half = written.join("")
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(playing)

      assert.include(half, "▸")
      assert.include(half, "short")
      assert.notInclude(half, "❯ On")
      assert.include(written.join(""), "❯ On")
      assert.strictEqual(written[0], "\u001b[?25l")
      assert.isTrue(written.at(-1)!.endsWith("\u001b[0J\u001b[?25h"))
    }))

  it.effect("gives the cursor back when it is interrupted", () =>
    Effect.gen(function*() {
      const written: Array<string> = []
      const out = (text: string) => Effect.sync(() => void written.push(text))
      const playing = yield* Effect.fork(play(timeline, { ...options, speed: 1, size: { columns: 61, rows: 24 } }, out))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(playing)

      assert.isTrue(written.at(-1)!.endsWith("\u001b[?25h"))
    }))
})
