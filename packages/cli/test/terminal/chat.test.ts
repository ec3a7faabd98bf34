import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { ready, readyAfter, rowsOf, sessionIn, spinner } from "./screens.ts"
import * as World from "./World.ts"

const size = { columns: 100, rows: 50 }
const chat = ["chat", "--model", "demo"]

describe.concurrent("allm chat in a terminal", { timeout: 90_000 }, () => {
  it("shows what it can do at once: without a key, as a clone starts it", async () => {
    using world = World.make()
    writeFileSync(join(world.directory, "README.md"), "# Here\n")
    await using terminal = await world.open(["chat"], { ...size, command: World.fromSource })
    const begin = await terminal.until(/ █+░* \d of 6/)
    const end = await terminal.until(ready)

    assert.match(begin, /No key was found/)
    assert.match(begin, /Things to say:\n {2}What time is it in Tokyo\?/)
    for (
      const [tool, row] of [
        ["clock", /✓ done +clock +\d\.\d s +\{"zone":"Asia\/Tokyo"/],
        ["calculator", /✓ done +calculator +\d\.\d s +\{.*"result":98\}/],
        ["list_files", /✓ done +list_files .*README\.md/],
        ["slow", /✓ done +slow +3\.\d s/],
        ["stubborn", /✗ timed out +stubborn +2\.\d s +over 2\.0 s/],
        ["flaky", /✓ done +flaky +\d\.\d s +\{"attempts":3\}/],
        ["broken", /✗ crashed +broken +\d\.\d s +for you only: no route to db/]
      ] as const
    ) {
      assert.match(rowsOf(end, tool).join("\n"), row)
    }
    assert.match(end, /2 \* \(3 \+ 4\)\^2 is 98\./)
    // What a crash says is not the model's business.
    assert.notMatch(end, /^[^✗]*hunter2/m)
    assert.match(end, /\d s · \d+ tokens read, \d+ written\n\n›$/)

    const frames = terminal.frames()
    const spinners = new Set(frames.flatMap((frame) => spinner.exec(frame) ?? []))
    assert.isAbove(spinners.size, 3, "a spinner that turns")
    assert.isTrue(
      frames.some((frame) => rowsOf(frame, "stubborn").some((row) => /running +stubborn +1\.\d s/.test(row)))
    )
    const answers = frames.filter((frame) => frame.includes("In Tokyo it") && !frame.includes("only you can see"))
    assert.isAbove(answers.length, 3, "text that comes word by word")
    for (const frame of frames) assert.isAtMost(rowsOf(frame, "stubborn").length, 1, frame)
    assert.deepStrictEqual(terminal.broken(), [])
    assert.notInclude(terminal.history(), "WARN")
    assert.notInclude(terminal.history(), "at Object.handler")
  })

  it("runs a call that a person agrees to, and none that is refused", async () => {
    using world = World.make()
    await using terminal = await world.open([...chat, "Write a note that says hello"], size)
    const asked = await terminal.until("run it? y / n")
    assert.match(asked, /write_note wants to run\n +path: "note.txt"\n +text: "hello"/)
    assert.isFalse(existsSync(join(world.directory, "note.txt")))
    terminal.type("perhaps\r")
    await terminal.until("Write y to run it")
    terminal.type("y\r")
    const approved = await terminal.until(readyAfter("6 bytes to `note.txt`"))
    assert.match(approved, /✓ done +write_note/)
    assert.strictEqual(readFileSync(join(world.directory, "note.txt"), "utf8"), "hello\n")

    terminal.type("Write a note other.txt that says no\r")
    await terminal.until(/other\.txt"\n.*\nrun it\?[^\n]*$/)
    terminal.type("n not today\r")
    const denied = await terminal.until(readyAfter("not today\n"))
    assert.match(denied, /✗ denied +write_note/)
    assert.isFalse(existsSync(join(world.directory, "other.txt")))
    terminal.key("ctrl-d")
    assert.deepStrictEqual(await terminal.exit, { code: 0, signal: undefined })
  })

  it("asks a question with its choices, in place", async () => {
    using world = World.make()
    await using terminal = await world.open([...chat, "Ask me the colour: red, green or blue"], size)
    await terminal.until(/1 +red\n +2 +green\n +3 +blue\n[^]*answer ›$/)
    terminal.type("3\r")
    await terminal.until(readyAfter("You answered: blue"))
    terminal.type("Ask me the colour: red, green or blue\r")
    await terminal.until(/You answered: blue[^]*answer ›$/)
    terminal.type("something darker\r")
    await terminal.until(readyAfter("You answered: something darker"))
    assert.deepStrictEqual(terminal.broken(), [])
  })

  it("has commands, completes them, remembers lines, and goes back to another session", async () => {
    using world = World.make()
    await using terminal = await world.open([...chat, "What is 6 * 7?"], size)
    const first = sessionIn(await terminal.until(readyAfter("6 * 7 is 42")))
    terminal.key("up")
    await terminal.until(/› What is 6 \* 7\?$/)
    terminal.key("ctrl-u")
    terminal.type("/help\r")
    for (const name of ["/help", "/tools", "/save", "/resume", "/new", "/quit"]) {
      await terminal.until(new RegExp(`^ +${name} +\\S`, "m"))
    }
    await terminal.until(ready)
    terminal.type("/tools\r")
    await terminal.until(/write_note\b[^\n]*\n +needs your approval/)
    await terminal.until(ready)
    terminal.type("/tolls\r")
    await terminal.until(readyAfter(/no command \/tolls\. Did you mean \/tools\?/))
    terminal.type("/sa\t")
    await terminal.until(/› \/save ?$/)
    terminal.type(" The answer\r")
    await terminal.until(readyAfter(/Saved:? .*The answer/))
    terminal.type("/new\r")
    await terminal.until(readyAfter("A new session"))
    terminal.type("What is 2 + 2?\r")
    await terminal.until(readyAfter("2 + 2 is 4"))

    // The line before the last one, changed in its middle.
    terminal.key("up")
    await terminal.until(/› What is 2 \+ 2\?$/)
    terminal.key("left")
    terminal.type("00")
    await terminal.until(/› What is 2 \+ 200\?$/)
    terminal.key("enter")
    await terminal.until(readyAfter("2 + 200 is 202"))

    terminal.type(`/resume ${first}\r`)
    await terminal.until(readyAfter(/The answer +\d+ messages\n[^]*What is 6 \* 7/))
    terminal.type("/quit\r")
    assert.deepStrictEqual(await terminal.exit, { code: 0, signal: undefined })
    assert.include(terminal.history(), `allm chat --session ${first}`)
    assert.isTrue(terminal.cursor().visible)
  })

  it("keeps what is typed while a turn runs for the next line", async () => {
    using world = World.make()
    await using terminal = await world.open([...chat, "Try the slow tool"], size)
    await terminal.until(/running +slow/)
    terminal.type("What is 5 * 5?")
    await terminal.until(/› What is 5 \* 5\?$/)
    const at = await terminal.until((terminal) =>
      terminal.cursor().visible && terminal.screen().endsWith("› What is 5 * 5?")
    )
    assert.match(at, /took 3 seconds/)
    terminal.key("enter")
    const answered = await terminal.until(readyAfter("5 * 5 is 25"))
    assert.strictEqual(answered.split("› What is 5 * 5?").length, 2, "said once")
  })
})
