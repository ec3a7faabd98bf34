import stringWidth from "string-width"
import { assert, describe, it } from "vitest"
import { ready, readyAfter, rowsOf, spinner } from "./screens.ts"
import * as World from "./World.ts"

const chat = ["chat", "--model", "demo"]
const busy = "What time is it in Tokyo? What is 2*(3+4)^2? Try the slow, flaky and broken tool."

describe.concurrent("allm chat in a window", { timeout: 90_000 }, () => {
  it("of 30 columns breaks no line itself, and leaves nothing of its old frames behind", async () => {
    using world = World.make()
    await using terminal = await world.open([...chat, busy], { columns: 30, rows: 50 })
    await terminal.until(new RegExp(`^${spinner.source} slow +\\d\\.\\d s █+░* \\d of 6$`, "mu"))
    const end = await terminal.until(ready)

    assert.deepStrictEqual(terminal.broken(), [])
    for (const frame of terminal.frames()) {
      for (const tool of ["clock", "calculator", "slow", "flaky", "broken"]) {
        assert.isAtMost(rowsOf(frame, tool).length, 1, frame)
      }
    }
    assert.notMatch(end, spinner)
    assert.include(end.replaceAll(/\s+/g, " "), "2*(3+4)^2 is 98.")
  })

  it("that changes its size during a turn goes on below, without torn rows", async () => {
    using world = World.make()
    await using terminal = await world.open([...chat, busy], { columns: 100, rows: 40 })
    await terminal.until(/running +slow/)
    terminal.resize(44, 40)
    await terminal.until((terminal) => terminal.frames().length > 0 && /running *$|slow/m.test(terminal.screen()))
    terminal.resize(28, 30)
    await terminal.until(new RegExp(`^${spinner.source} slow`, "mu"))
    terminal.resize(120, 30)
    const end = await terminal.until(ready)

    // Each call once, and nothing that still turns.
    for (const tool of ["clock", "calculator", "slow", "flaky", "broken"]) {
      assert.strictEqual(rowsOf(end, tool).filter((row) => /[✓✗]/.test(row)).length, 1, end)
    }
    assert.notMatch(end, spinner)
    assert.match(end, /2\*\(3\+4\)\^2 is 98\./)
  })

  it("of few rows draws in what there is", async () => {
    using world = World.make()
    await using terminal = await world.open([...chat, busy], { columns: 80, rows: 5 })
    await terminal.until(/\d more calls?, \d of 5 ended/)
    await terminal.until(ready)
    const history = terminal.history()
    for (const tool of ["clock", "calculator", "slow", "flaky", "broken"]) {
      assert.strictEqual(rowsOf(history, tool).length, 1, history)
    }
    assert.notMatch(history, spinner)
  })

  it("counts wide characters, and shows control characters of others as harmless text", async () => {
    using world = World.make()
    await using terminal = await world.open([
      ...chat,
      "Ask me 日本語の色ですか🙂🙂🙂🙂: 赤い色と青い色と緑の色, 🎨 or no"
    ], {
      columns: 32,
      rows: 40
    })
    await terminal.until(/answer ›$/)
    terminal.type("日本語")
    terminal.key("left")
    terminal.type("x")
    await terminal.until(/answer › 日本x語$/)
    terminal.key("enter")
    await terminal.until(readyAfter(/answered: *\n?日本x語/))
    assert.deepStrictEqual(terminal.broken(), [])
    for (const row of terminal.history().split("\n")) assert.isAtMost(stringWidth(row), 32)
  })

  it("takes a line that is longer than it is wide, and pasted lines as one", async () => {
    using world = World.make()
    await using terminal = await world.open([...chat, "hi"], { columns: 40, rows: 50 })
    await terminal.until(ready)
    const long = "a very long line that goes over the end of the row, and over the next, too"
    terminal.type(long)
    await terminal.until((terminal) => terminal.screen().replaceAll("\n", "").endsWith(`› ${long}`))
    for (let i = 0; i < 5; i++) terminal.key("left")
    terminal.type("\x1b[200~ that is\nlong\x1b[201~")
    await terminal.until((terminal) =>
      terminal.screen().replaceAll("\n", "").endsWith("over the next that is⏎long, too")
    )
    terminal.key("ctrl-a")
    terminal.key("ctrl-k")
    const cleared = await terminal.until(ready)
    assert.notInclude(cleared, "long line", "nothing is left of a line that was taken back")
    terminal.type("\x1b[200~What is 6 * 7?\nWhat is 7 * 7?\x1b[201~")
    await terminal.until(/7\?⏎What is/)
    terminal.key("enter")
    await terminal.until(readyAfter(/6 \* 7 is 42[^]*7 \* 7 is 49/))
  })

  it("without colours (NO_COLOR) still draws", async () => {
    using world = World.make()
    await using terminal = await world.open([...chat, "Try the flaky tool"], { env: { NO_COLOR: "1" } })
    await terminal.until(/running +flaky/)
    await terminal.until(ready)
    assert.deepStrictEqual(terminal.written().split("\x1b").filter((part) => /^\[[\d;]*m/.test(part)), [])
    assert.isTrue(
      terminal.cells().flat().every(({ bold, dim, foreground }) => !bold && !dim && foreground === undefined)
    )
  })

  it("that is dumb gets plain lines, and takes lines", async () => {
    using world = World.make()
    await using terminal = await world.open([...chat, "What is 6 * 7?"], { env: { TERM: "dumb" } })
    await terminal.until(/\+ calculator done[^]*6 \* 7 is 42\.[^]*›$/)
    terminal.type("What is 7 * 7?\r")
    await terminal.until(/7 \* 7 is 49\.[^]*›$/)
    assert.notInclude(terminal.written(), "\x1b")
    assert.notMatch(terminal.history(), spinner)
    terminal.key("ctrl-d")
    assert.strictEqual((await terminal.exit).code, 0)
  })
})
