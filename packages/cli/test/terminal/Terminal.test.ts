import { assert, describe, it, vi } from "vitest"
import * as Piped from "./Piped.ts"
import * as Terminal from "./Terminal.ts"

const program = (source: string) => [process.execPath, "-e", source] as const

const stopped = (pid: number) => {
  try {
    process.kill(pid, 0)
    return false
  } catch {
    return true
  }
}

// Reads keys one by one until a q.
const echoKeys = `
  process.stdin.setRawMode(true)
  process.stdin.on("data", (data) => {
    console.log(JSON.stringify(String(data)))
    if (String(data) === "q") process.exit(7)
  })
  process.stdout.on("resize", () => console.log("now", process.stdout.columns, process.stdout.rows))
  console.log("ready", process.stdout.columns, process.stdout.rows, process.stdout.isTTY, process.env.ONLY)
`

describe("Terminal", { timeout: 90_000 }, () => {
  it("shows what a command draws, passes keys and sizes on, and tells how it ended", async () => {
    await using terminal = Terminal.open(program(echoKeys), { columns: 50, rows: 12, env: { ONLY: "this" } })
    await terminal.until("ready 50 12 true this")
    terminal.key("ctrl-c")
    await terminal.until(`"\\u0003"`)
    terminal.key("up")
    await terminal.until(`"\\u001b[A"`)
    terminal.resize(31, 9)
    const screen = await terminal.until(/^now 31 9$/m)
    terminal.type("q")

    assert.deepStrictEqual(await terminal.exit, { code: 7, signal: undefined })
    assert.strictEqual(screen.split("\n")[0], "ready 50 12 true this")
    assert.include(terminal.frames(), "ready 50 12 true this")
  })

  it("keeps what has scrolled away, and tells colours, widths, the cursor and broken lines", async () => {
    await using terminal = Terminal.open(
      program(`
        for (let i = 1; i <= 30; i++) console.log("row", i)
        console.log("x".repeat(25))
        console.log("\\x1b[1;31mred\\x1b[0m \\x1b[2m\\x1b[38;2;1;2;255mblue\\x1b[0m 日本🙂!\\x1b[?25l")
      `),
      { columns: 20, rows: 6 }
    )
    await terminal.exit

    assert.include(terminal.history(), "row 1\nrow 2\n")
    assert.notInclude(terminal.screen(), "row 1\n")
    assert.deepStrictEqual(terminal.broken(), ["xxxxx"])
    const last = terminal.cells()[4]?.filter(({ text }) => text !== "")
    const look = (index: number) => {
      const { bold, dim, foreground, text, width } = last?.[index] ?? {}
      return { bold, dim, foreground, text, width }
    }
    assert.deepStrictEqual(look(0), { text: "r", width: 1, foreground: 1, bold: true, dim: false })
    assert.deepStrictEqual(look(4), { text: "b", width: 1, foreground: "#0102ff", bold: false, dim: true })
    assert.deepStrictEqual([look(9).text, look(9).width, look(11).text, look(11).width], ["日", 2, "🙂", 2])
    assert.deepStrictEqual(terminal.cursor(), { row: 5, column: 0, visible: false })
  })

  it("rejects a wait with what was on the screen, in time and when the command ends", async () => {
    await using terminal = Terminal.open(
      program("console.log('only this'); process.stdin.once('data', () => process.exit(5))")
    )
    await terminal.until("only this")

    const late = await terminal.until("something else", 50).catch(String)
    const ended = terminal.until("something else").catch(String)
    terminal.key("enter")
    assert.match(String(late), /"something else": not within 50 ms\n {2}│only this/)
    assert.match(String(await ended), /"something else": not before it ended with 5\n {2}│only this/)
  })

  it("leaves no process behind, not even one that the command has started", async () => {
    let pids: Array<number> = []
    {
      await using terminal = Terminal.open(program(`
        const child = require("child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"])
        process.on("SIGHUP", () => {})
        process.on("SIGTERM", () => {})
        console.log("pids", process.pid, child.pid)
        setInterval(() => {}, 1000)
      `))
      const screen = await terminal.until(/pids \d+ \d+/)
      pids = (/pids (\d+) (\d+)/.exec(screen) ?? []).slice(1).map(Number)
    }
    assert.strictEqual(pids.length, 2)
    await vi.waitUntil(() => pids.every(stopped), { timeout: 20_000 })
  })
})

describe("Piped", { timeout: 90_000 }, () => {
  it("gives input, waits for output, and tells how the command ended", async () => {
    await using piped = Piped.start(program(`
      console.log("tty", process.stdin.isTTY === true, process.stdout.isTTY === true)
      process.stdin.on("data", (data) => console.error("got", String(data).trim()))
      process.stdin.on("end", () => process.exit(3))
    `))
    await piped.until("tty false false")
    piped.write("one\n")
    await piped.until("got one")
    piped.end()

    assert.deepStrictEqual(await piped.exit, {
      code: 3,
      signal: undefined,
      stdout: "tty false false\n",
      stderr: "got one\n"
    })
  })

  it("runs a command to its end, and tells the signal that ended one", async () => {
    const echoed = await Piped.run(program("process.stdin.pipe(process.stdout)"), { input: "a\nb" })
    assert.deepStrictEqual(echoed, { code: 0, signal: undefined, stdout: "a\nb", stderr: "" })
    const killed = await Piped.run(program("process.kill(process.pid, 'SIGKILL'); setInterval(() => {}, 1000)"))
    assert.deepStrictEqual(killed, { code: undefined, signal: "SIGKILL", stdout: "", stderr: "" })
  })
})
