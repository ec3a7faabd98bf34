import type { Event } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { TurnView } from "../../src/internal/chat/turnView.ts"
import { Picture } from "../../src/internal/terminal/picture.ts"
import { widthOf } from "../../src/internal/terminal/style.ts"
import { Screen } from "./Screen.ts"

describe("Picture", () => {
  it("draws in place, and puts above what is settled", () => {
    const screen = new Screen(20, 10)
    const picture = new Picture()
    const draw = (settled: ReadonlyArray<string>, live: ReadonlyArray<string>) =>
      screen.write(picture.draw(settled, live, screen))
    screen.write("before\n")
    draw([], ["one", "two"])
    draw(["settled"], ["three"])
    assert.strictEqual(screen.text, "before\nsettled\nthree")
    draw([], ["four", "five", "six"])
    draw(["end"], [])
    screen.write("after")

    assert.strictEqual(screen.text, "before\nsettled\nend\nafter")
  })

  it("writes nothing when nothing changed", () => {
    const picture = new Picture()
    picture.draw([], ["one"], { columns: 20, rows: 10 })

    assert.strictEqual(picture.draw([], ["one"], { columns: 20, rows: 10 }), "")
    assert.notStrictEqual(picture.draw([], ["one"], { columns: 19, rows: 10 }), "")
  })

  it("leaves nothing behind when the window becomes narrower or wider", () => {
    const screen = new Screen(30, 20)
    const picture = new Picture()
    const lines = ["a line that fills the window", "short", "another line of this width"]
    screen.write("before\n")
    screen.write(picture.draw([], lines, screen))
    for (const columns of [12, 25, 10, 40]) {
      screen.resize(columns, 20)
      const fitting = lines.map((line) => line.slice(0, columns - 1))
      screen.write(picture.draw([], fitting, screen))
      assert.strictEqual(screen.text, ["before", ...fitting].join("\n").replace(/ +$/gm, ""), `${columns} columns`)
    }
  })
})

const started = (id: string): Event.Event => ({
  _tag: "ToolExecutionStarted",
  toolCallId: id,
  toolName: `tool_${id}`,
  arguments: {}
})

const ended = (id: string): Event.Event => ({
  _tag: "ToolExecutionCompleted",
  toolCallId: id,
  toolName: `tool_${id}`,
  result: { _tag: "Ok", value: "fine" }
})

describe("TurnView", () => {
  it("shows what still runs when the window has no room for all calls, and leaves all of them behind", () => {
    const view = new TurnView(0)
    const ids = Array.from({ length: 12 }, (_, index) => String(index))
    for (const id of ids) view.add(started(id), 0)
    for (const id of ids.slice(0, 10)) view.add(ended(id), 100)
    const { live } = view.frame(200, { columns: 80, rows: 7 }, false, "")

    assert.isAtMost(live.length, 6)
    assert.match(live.join("\n"), /tool_10 .*\n.*tool_11/s)
    assert.match(live.join("\n"), /… 8 more calls, 10 of 12 ended/)
    view.end(300)
    const { settled } = view.frame(300, { columns: 80, rows: 7 }, false, "")
    assert.strictEqual(settled.filter((line) => line.includes("tool_")).length, 12)
  })

  it("keeps text above the calls, also text that comes while they run", () => {
    const view = new TurnView(0)
    const screen = new Screen(40, 20)
    const picture = new Picture()
    const draw = (now: number) => {
      const { live, settled } = view.frame(now, screen, false, "")
      screen.write(picture.draw(settled, live, screen))
    }
    view.add({ _tag: "TextDelta", delta: "First " }, 0)
    draw(0)
    view.add(started("1"), 80)
    draw(80)
    view.add({ _tag: "TextDelta", delta: "then some more text that needs a line." }, 160)
    draw(160)
    assert.match(screen.text, /^\nFirst then some more text that needs a\nline\.\n\n. tool_1 /)

    view.add(ended("1"), 240)
    view.end(300)
    screen.write(picture.draw(view.frame(300, screen, false, "").settled, [], screen))
    assert.strictEqual(screen.text.match(/tool_1/g)?.length, 1)
    assert.match(screen.text, /line\.\n\n✓ tool_1 0\.2 s fine$/)
  })

  it("fits into every window, whatever comes", () => {
    const event: FastCheck.Arbitrary<Event.Event> = FastCheck.oneof(
      FastCheck.string({ unit: "grapheme" }).map((delta) => ({ _tag: "TextDelta", delta } as const)),
      FastCheck.string({ unit: "grapheme" }).map((delta) => ({ _tag: "ReasoningDelta", delta } as const)),
      FastCheck.nat(9).map((id) => started(String(id))),
      FastCheck.nat(9).map((id) => ended(String(id)))
    )
    FastCheck.assert(FastCheck.property(
      FastCheck.array(
        FastCheck.tuple(event, FastCheck.integer({ min: 1, max: 60 }), FastCheck.integer({ min: 1, max: 12 }))
      ),
      (steps) => {
        const view = new TurnView(0)
        for (const [index, [event, columns, rows]] of steps.entries()) {
          view.add(event, index * 50)
          const { live, settled } = view.frame(index * 50, { columns, rows }, false, "typed 日本語")
          assert.isAtMost(live.length, Math.max(1, rows - 1))
          for (const line of [...live, ...settled]) assert.isAtMost(widthOf(line), Math.max(2, columns - 1), line)
        }
      }
    ))
  })
})
