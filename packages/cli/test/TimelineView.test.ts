import { Fake, SessionRunner, Tool, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Schedule, Stream, TestClock } from "effect"
import stringWidth from "string-width"
import { fromEntries } from "../src/internal/timeline.ts"
import { view } from "../src/internal/timelineView.ts"
import type { Entry } from "../src/internal/trace/entry.ts"
import { goOn, over, read, say, World } from "./recordings.ts"

const zone = DateTime.zoneMakeOffset(0)

const pictureOf = (entries: ReadonlyArray<Entry>, width: number, colour = false) =>
  view(fromEntries(entries), { width, colour, zone }).join("\n")

/** The text between the first and the last line of a literal. */
const drawn = (text: string) => text.slice(1, text.lastIndexOf("\n"))

const Travel = Layer.suspend(() => {
  let attempts = 0
  const call = (name: string, args: unknown = {}) => Fake.toolCall({ id: name, name, arguments: args })
  return Fake.engine({
    tools: [
      Tool.make("find_flight", { description: "x", handler: () => Effect.delay(Effect.succeed("OS-1"), "2 seconds") }),
      Tool.make("weather", {
        description: "x",
        handler: (_, { progress }) =>
          Effect.zipRight(Effect.delay(progress("half"), "500 millis"), Effect.sleep("500 millis"))
      }),
      Tool.make("hotels", {
        description: "x",
        retry: Schedule.spaced("1 second"),
        handler: () => Effect.suspend(() => ++attempts < 3 ? Effect.fail("busy") : Effect.void)
      }),
      Tool.make("rates", { description: "x", timeout: "1500 millis", handler: () => Effect.never }),
      Tool.make("stuck", {
        description: "x",
        timeout: "1 second",
        handler: () => Effect.uninterruptible(Effect.sleep("9 seconds"))
      }),
      Tool.make("visa", { description: "x", handler: () => Effect.dieMessage("no route to db.internal") }),
      Tool.make("ask_person", {
        description: "x",
        handler: () => Effect.succeed(ToolResult.askUser("Which day do you want to leave?"))
      }),
      Tool.make("pay", { description: "x", needsApproval: true, handler: () => Effect.sleep("400 millis") })
    ],
    delay: "100 millis",
    usage: { inputTokens: 1200, outputTokens: 80 },
    scripts: [
      [
        Fake.text("Let me see"),
        call("find_flight", { to: "Oslo" }),
        call("weather", { city: "Oslo" }),
        call("hotels"),
        call("rates"),
        call("stuck"),
        call("visa"),
        call("ask_person"),
        call("pay", { amount: 120 }),
        Fake.finish("tool_calls")
      ],
      [Fake.text("Booked "), Fake.text("and paid"), Fake.finish("stop")]
    ]
  })
})

/** A booking over night. */
const booking = Effect.gen(function*() {
  yield* TestClock.setTime(Date.UTC(2026, 10, 18, 20, 4, 32))
  yield* over("4 seconds")(Stream.runDrain(say("Book me a trip to Oslo")))
  yield* TestClock.adjust("11 hours")
  yield* SessionRunner.answer("s1", "ask_person", "Monday")
  yield* SessionRunner.approve("s1", "pay")
  yield* over("2 seconds")(Stream.runDrain(goOn()))
  return (yield* read()).entries
}).pipe(Effect.provide(Travel), Effect.provide(World))

const of = (toolCallId: string, at: number) => ({ at, turn: "t", toolCallId, toolName: toolCallId })

/** A turn in which every call ends differently. */
const every: ReadonlyArray<Entry> = [
  { _tag: "TurnBegan", at: 0, turn: "t", input: "Everything", model: "m" },
  { _tag: "ModelStarted", at: 0, turn: "t" },
  ...[
    "Ok",
    "HandlerFailed",
    "InvalidArguments",
    "Denied",
    "OutcomeUnknown",
    "Interrupted",
    "Halt"
  ].flatMap((outcome, index): ReadonlyArray<Entry> => [
    { _tag: "ToolStarted", ...of(outcome, 1000 * index) },
    { _tag: "ToolEnded", ...of(outcome, 1000 * index + 1000), outcome, message: "so it is" }
  ]),
  { _tag: "ToolStarted", ...of("Replaced", 0) },
  { _tag: "ToolEnded", ...of("Replaced", 500), outcome: "Ok", replaced: "Timeout" },
  { _tag: "ToolEnded", ...of("Skipped", 7000), outcome: "Skipped" },
  { _tag: "ManualCall", ...of("Manual", 7000) },
  { _tag: "ToolStarted", ...of("Endless", 0) },
  { _tag: "Logged", at: 6500, turn: "t", level: "WARN", message: "disk almost full" },
  { _tag: "TurnEnded", at: 8000, turn: "t", outcome: "interrupted" }
]

/** A process dies in the middle of three calls, and another one goes on. */
const crashed: ReadonlyArray<Entry> = [
  { _tag: "TurnBegan", at: 0, turn: "t", input: "Charge the card", model: "m" },
  { _tag: "ModelStarted", at: 0, turn: "t" },
  { _tag: "ModelSpoke", at: 500, turn: "t", first: "call" },
  { _tag: "ToolAsked", ...of("look", 900) },
  { _tag: "ToolAsked", ...of("charge", 900) },
  { _tag: "ToolAsked", ...of("mail", 900) },
  { _tag: "ModelEnded", at: 1000, turn: "t", finishReason: "tool_calls", textLength: 0, reasoningLength: 0, calls: 3 },
  { _tag: "ToolStarted", ...of("look", 1000) },
  { _tag: "ToolStarted", ...of("charge", 1000) },
  { _tag: "ToolEnded", ...of("look", 1500), outcome: "Ok" },
  { _tag: "ToolProgressed", ...of("charge", 2000), value: "half" },
  ...[
    { _tag: "TurnBegan", at: 90_000, model: "m" },
    { _tag: "ToolStarted", ...of("look", 90_000) },
    { _tag: "ToolStarted", ...of("charge", 90_000) },
    { _tag: "ToolStarted", ...of("mail", 90_000) },
    { _tag: "ToolEnded", ...of("look", 90_010), outcome: "Ok" },
    { _tag: "ToolEnded", ...of("charge", 90_010), outcome: "OutcomeUnknown" },
    { _tag: "ToolHalted", ...of("charge", 90_010), reason: "tool_error" },
    { _tag: "ToolEnded", ...of("mail", 90_100), outcome: "Ok" },
    { _tag: "StepEnded", at: 90_100, halt: "tool_error" },
    { _tag: "ChatEnded", at: 90_100, reason: "tool_error" },
    { _tag: "TurnEnded", at: 90_100, outcome: "completed" }
  ].map((entry) => ({ ...entry, turn: "u" }) as Entry)
]

describe("timelineView", () => {
  it.effect("shows a night of waiting as a line, and parallel calls beside each other", () =>
    Effect.gen(function*() {
      assert.strictEqual(
        pictureOf(yield* booking, 80),
        drawn(`
❯ Book me a trip to Oslo
  2026-11-18 20:04:32 · demo · 3.0 s · 1 280 tokens
               │0       │1 s      │2 s
 model         ░▓▓▓▓▓▓▓▓                    ✓  1.0 s  1 280 tokens · 8 calls
   find_flight   ·······███████████████████ ✓  2.0 s  {"to":"Oslo"}
   weather        ······█████•████          ✓  1.0 s  {"city":"Oslo"}
   hotels          ·····██████████↻███████↻ ✓  2.0 s  run again 2×
   rates            ····█████████████◷      ◷  1.5 s  timed out: over 1.5 s
   stuck             ···█████████◌          ◌  1.0 s  abandoned: over 1.0 s
   visa               ··!                   !   0 ms  crashed: no route to db.i…
   ask_person         ··?                   ?   0 ms  asked: Which day do you w…
   pay                 ·◆                   ◆         needs approval

  ┄┄ 11 h 0 min: ask_person waited for an answer: Which day do you want to
     leave?
  ┄┄ pay waited for approval

❯ (goes on)
  2026-11-19 07:04:36 · demo · 700 ms · 1 280 tokens
               │0      │200 ms │400 ms
   pay         ████████████████             ✓ 400 ms
 model                         ░░░░▓▓▓▓▓▓▓▓ ✓ 300 ms  1 280 tokens

 Model   2 answers · 1.3 s · 2 560 tokens · 2 400 in · 160 out
 Tools   8 calls · 2.4 s · 4 done · 1 crashed · 1 timed out · 1 abandoned
         1 asked · 2 repetitions
 People  11 h 0 min waited for

 ░ waiting for the model   ▓ model answers   · waiting for its turn
 █ tool runs   • progress   ↻ run or asked again   ✓ done   ! crashed
 ◷ timed out   ◌ abandoned   ? asked   ◆ needs approval
`)
      )
    }))

  it.effect("puts words below the bars where there is no room beside them", () =>
    Effect.gen(function*() {
      assert.strictEqual(
        pictureOf(yield* booking, 40),
        drawn(`
❯ Book me a trip to Oslo
  2026-11-18 20:04:32 · demo · 3.0 s
  1 280 tokens
              │0    │1 s │2 s
 model        ░▓▓▓▓▓            ✓  1.0 s
   find_flig…  ·····███████████ ✓  2.0 s
   weather      ····███•█       ✓  1.0 s
   hotels       ····█████↻████↻ ✓  2.0 s
   └ run again 2×
   rates         ···███████◷    ◷  1.5 s
   └ timed out: over 1.5 s
   stuck         ···████◌       ◌  1.0 s
   └ abandoned: over 1.0 s
   visa           ··!           !   0 ms
   └ crashed: no route to db.internal
   ask_person      ·?           ?   0 ms
   └ asked: Which day do you want to
     leave?
   pay             ·◆           ◆
   └ needs approval

  ┄┄ 11 h 0 min: ask_person waited for
     an answer: Which day do you want to
     leave?
  ┄┄ pay waited for approval

❯ (goes on)
  2026-11-19 07:04:36 · demo · 700 ms
  1 280 tokens
              │0
   pay        ██████████        ✓ 400 ms
 model                  ░░▓▓▓▓▓ ✓ 300 ms

 Model   2 answers · 1.3 s
         2 560 tokens · 2 400 in
         160 out
 Tools   8 calls · 2.4 s · 4 done
         1 crashed · 1 timed out
         1 abandoned · 1 asked
         2 repetitions
 People  11 h 0 min waited for

 ░ waiting for the model
 ▓ model answers
 · waiting for its turn   █ tool runs
 • progress   ↻ run or asked again
 ✓ done   ! crashed   ◷ timed out
 ◌ abandoned   ? asked
 ◆ needs approval
`)
      )
    }))

  it.effect("is more exact in a wide window", () =>
    Effect.gen(function*() {
      assert.strictEqual(
        pictureOf(yield* booking, 160).split("\n\n")[0],
        drawn(`
❯ Book me a trip to Oslo
  2026-11-18 20:04:32 · demo · 3.0 s · 1 280 tokens
               │0              │500 ms         │1 s            │1.5 s          │2 s            │2.5 s
 model         ░░░▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓                                                                 ✓  1.0 s  1 280 tokens · 8 calls
   find_flight       ··························████████████████████████████████████████████████████████████████ ✓  2.0 s  {"to":"Oslo"}
   weather               ······················████████████████•███████████████                                 ✓  1.0 s  {"city":"Oslo"}
   hotels                   ···················████████████████████████████████↻██████████████████████████████↻ ✓  2.0 s  run again 2×
   rates                       ················███████████████████████████████████████████████◷                 ◷  1.5 s  timed out: over 1.5 s
   stuck                          ·············███████████████████████████████◌                                 ◌  1.0 s  abandoned: over 1.0 s
   visa                              ··········!                                                                !   0 ms  crashed: no route to db.internal
   ask_person                            ······?                                                                ?   0 ms  asked: Which day do you want to leave?
   pay                                      ···◆                                                                ◆         needs approval · {"amount":120}
`)
      )
    }))

  it("has a mark for every way in which a call ends", () => {
    assert.strictEqual(
      pictureOf(every, 80),
      drawn(`
❯ Everything
  1970-01-01 00:00:00 · m · 8.0 s
                    │0            │5 s
 model              ░░░░░░░░░░░░░░░░░░░░░░╳ ╳  8.0 s  interrupted
   Ok               ███                     ✓  1.0 s
   Replaced         ≈                       ≈ 500 ms  replaced
   Endless          ██████████████████████╳ ╳  8.0 s  interrupted
   HandlerFailed       ██✗                  ✗  1.0 s  failed: so it is
   InvalidArguments       ██≠               ≠  1.0 s  not valid: so it is
   Denied                    ██⊘            ⊘  1.0 s  denied: so it is
   OutcomeUnknown               █¿          ¿  1.0 s  outcome unknown: so it is
   Interrupted                    ██□       □  1.0 s  stopped by a halt: so it …
   Halt                              ██■    ■  1.0 s  halted the run: so it is
   Skipped                              ○   ○         not started
   Manual                               ◇   ◇         left to the caller
  warning 6.5 s: disk almost full

 Model   1 answer · 8.0 s
 Tools   11 calls · 8.0 s · 1 done · 1 replaced · 1 failed · 1 not valid
         1 halted the run · 1 left to the caller · 1 denied · 1 not started
         1 stopped by a halt · 1 interrupted · 1 outcome unknown

 ░ waiting for the model   █ tool runs   ✓ done   ≈ replaced   ✗ failed
 ≠ not valid   ■ halted the run   ◇ left to the caller   ⊘ denied
 ○ not started   □ stopped by a halt   ╳ interrupted   ¿ outcome unknown
`)
    )
  })

  it("shows what a process that died left open, and what its successor took from the journal", () => {
    assert.strictEqual(
      pictureOf(crashed, 80),
      drawn(`
❯ Charge the card
  1970-01-01 00:00:00 · m · 2.0 s
          │0         │500 ms    │1 s      │1.5 s
 model    ░░░░░░░░░░░▓▓▓▓▓▓▓▓▓▓▓                      ✓  1.0 s  3 calls
   look                      ···██████████            ✓ 500 ms
   charge                    ···████████████████████† †  1.0 s  no end noted
   mail                      ·······················† †         no end noted
  no end was noted: the process died, or is still running

  ┄┄ 88.0 s later ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄

❯ (goes on)
  00:01:30 · m · 100 ms
          │0       │20 ms  │40 ms   │60 ms  │80 ms
   look   ███≡                                        ≡  10 ms  from the journal
   charge ███¿                                        ¿  10 ms  outcome unknown
   mail   ███████████████████████████████████████████ ✓ 100 ms
  ended by a tool's failure

  ┄┄ since 00:01:30: charge waits for somebody to find out what it did ┄┄┄┄┄┄┄┄┄

 Model   1 answer · 1.0 s
 Tools   3 calls · 1.1 s · 2 done · 1 outcome unknown · 1 from the journal

 ░ waiting for the model   ▓ model answers   · waiting for its turn
 █ tool runs   ≡ answered from the journal   ✓ done   ¿ outcome unknown
 † no end noted
`)
    )
  })

  it.effect("is the same with colours, but for the colours", () =>
    Effect.gen(function*() {
      const entries = yield* booking
      const coloured = pictureOf(entries, 80, true)

      assert.include(coloured, "\u001b[32m█")
      // eslint-disable-next-line no-control-regex
      assert.strictEqual(coloured.replace(/\u001b\[\d+m/g, ""), pictureOf(entries, 80))
    }))

  it.effect("is never wider than the window, but where that is too narrow for anything", () =>
    Effect.gen(function*() {
      const entries = yield* booking
      for (let width = 30; width <= 240; width += 7) {
        for (const line of [...pictureOf(entries, width).split("\n"), ...pictureOf(every, width).split("\n")]) {
          assert.isAtMost(stringWidth(line), width, line)
        }
      }
    }))

  it("draws nothing a terminal would obey", () => {
    const picture = pictureOf([
      { _tag: "TurnBegan", at: 0, turn: "t", input: "\u001b[2JHi\r\nthere", model: "\u001b]0;m\u0007" },
      { _tag: "ToolAsked", ...of("\u001b[31mred", 0), arguments: "{\"a\":\"\u0007\"}" },
      { _tag: "ToolEnded", ...of("\u001b[31mred", 10), outcome: "HandlerFailed", message: "\u001b[2J\nno" }
    ], 80)

    // eslint-disable-next-line no-control-regex
    assert.notMatch(picture.replaceAll("\n", ""), /[\u0000-\u001f\u007f-\u009f]/)
    assert.include(picture, "Hi there")
  })
})
