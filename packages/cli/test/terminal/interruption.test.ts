import { assert, describe, it } from "vitest"
import { ready, readyAfter, rowsOf, sessionIn } from "./screens.ts"
import * as World from "./World.ts"

const size = { columns: 90, rows: 40 }
const chat = ["chat", "--model", "demo"]

describe.concurrent("Ctrl-C in a terminal", { timeout: 90_000 }, () => {
  it("stops the turn, is back at the prompt, and keeps what was said and done", async () => {
    using world = World.make()
    await using terminal = await world.open([...chat, "What time is it in Oslo? Try the slow tool too."], size)
    const session = sessionIn(await terminal.until(/✓ done +clock[^]*running +slow/))
    terminal.key("ctrl-c")
    const stopped = await terminal.until(readyAfter(/Stopped after/))
    assert.match(rowsOf(stopped, "clock").join(), /✓ done/)
    assert.match(rowsOf(stopped, "slow").join(), /■ stopped/)

    // The prompt works: what was done is there, and nothing runs twice.
    terminal.key("enter")
    const again = await terminal.until(readyAfter(/In Oslo it is/))
    assert.strictEqual(rowsOf(again, "clock").length, 1)
    terminal.key("ctrl-d")
    assert.deepStrictEqual(await terminal.exit, { code: 0, signal: undefined })

    const shown = await world.run(["sessions", "show", session])
    assert.strictEqual(shown.code, 0, shown.stderr)
    assert.include(shown.stdout, "What time is it in Oslo?")
  })

  it("a second time at an empty line leaves with 130, and gives the terminal back", async () => {
    using world = World.make()
    await using terminal = await world.open([...chat, "Try the stubborn tool"], size)
    await terminal.until(/running +stubborn/)
    assert.isFalse(terminal.cursor().visible)
    terminal.key("ctrl-c")
    await terminal.until(readyAfter("Stopped after"))
    terminal.key("ctrl-c")
    assert.deepStrictEqual(await terminal.exit, { code: 130, signal: undefined })
    assert.isTrue(terminal.cursor().visible)
    assert.include(terminal.written().split("\x1b[?2004h").at(-1), "\x1b[?2004l", "pastes are no longer marked")
  })

  it("gives up a line first, and warns before it leaves", async () => {
    using world = World.make()
    await using terminal = await world.open([...chat, "hi"], size)
    await terminal.until(ready)
    terminal.type("half a sent")
    await terminal.until(/› half a sent$/)
    terminal.key("ctrl-c")
    await terminal.until(readyAfter("half a sent\nCtrl-C again leaves."))
    terminal.type("What is 3 * 3?\r")
    await terminal.until(readyAfter("3 * 3 is 9"))
    terminal.key("ctrl-c")
    await terminal.until(readyAfter(/Ctrl-C again leaves\.[^]*Ctrl-C again leaves\./))
    terminal.key("ctrl-c")
    assert.deepStrictEqual(await terminal.exit, { code: 130, signal: undefined })
  })

  it("leaves an approval open, which the next chat asks for again", async () => {
    using world = World.make()
    await using terminal = await world.open([...chat, "Write a note that says hello"], size)
    const session = sessionIn(await terminal.until(/run it\?[^\n]*$/))
    terminal.key("ctrl-c")
    await terminal.until(readyAfter("Left open"))
    terminal.key("ctrl-d")
    assert.strictEqual((await terminal.exit).code, 0)

    await using later = await world.open([...chat, "--session", session], size)
    await later.until(/left waiting for you[^]*write_note wants to run[^]*run it\?[^\n]*$/)
    later.type("y\r")
    await later.until(readyAfter("I wrote 6 bytes"))
  })

  it("ends with the terminal: a hang-up leaves no process and loses nothing", async () => {
    using world = World.make()
    await using terminal = await world.open([...chat, "Try the slow tool"], size)
    const session = sessionIn(await terminal.until(/running +slow/))
    terminal.kill("SIGHUP")
    await terminal.exit
    assert.isTrue(terminal.cursor().visible)
    const shown = await world.run(["sessions", "show", session])
    assert.include(shown.stdout, "Try the slow tool")
  })

  it("stops a tool that does not stop, when it comes a second time", async () => {
    using world = World.make()
    const agent = new URL("./agents/stubborn.ts", import.meta.url).pathname
    await using terminal = await world.open(["chat", "--agent", agent, "go"], { ...size, command: World.fromSource })
    await terminal.until(/running +deaf.*hears nobody/)
    terminal.key("ctrl-c")
    await terminal.until("Ctrl-C again leaves at once")
    terminal.key("ctrl-c")
    assert.deepStrictEqual(await terminal.exit, { code: 130, signal: undefined })
    assert.isTrue(terminal.cursor().visible)
    assert.include(terminal.screen(), "Left while a tool was still running.")
  })

  it("after kill -9 in the middle of a batch a session goes on, and finished calls do not run again", async () => {
    using world = World.make()
    const agent = new URL("./agents/ledger.ts", import.meta.url).pathname
    const options = { ...size, command: World.fromSource, env: { LEDGER: `${world.directory}/ledger` } }
    await using terminal = await world.open(["chat", "--agent", agent, "go"], options)
    const session = sessionIn(await terminal.until(/✓ done +book[^]*running +wait/))
    terminal.kill("SIGKILL")
    assert.strictEqual((await terminal.exit).signal, "SIGKILL")

    await using later = await world.open(["chat", "--agent", agent, "--session", session], options)
    await later.until(readyAfter("cut off"))
    later.key("enter")
    const end = await later.until(readyAfter(/The ledger says: booked once\./))
    assert.match(rowsOf(end, "wait").join(), /✓ done/)
  })
})
