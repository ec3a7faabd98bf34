import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it, vi } from "vitest"
import { spinner } from "./screens.ts"
import * as World from "./World.ts"

const chat = ["chat", "--model", "demo"]

describe.concurrent("allm chat behind pipes", { timeout: 90_000 }, () => {
  it("reads a line for each thing to say, also what agrees to a call, and ends with its input", async () => {
    using world = World.make()
    const input = ["What is 6 * 7?", "Write a note that says hi", "y", "What is 7 * 7?"]
    const { code, stderr, stdout } = await world.run(chat, { input: `${input.join("\n")}\n` })

    assert.strictEqual(code, 0, stderr)
    assert.match(stdout, /6 \* 7 is 42\.[^]*write_note wants to run[^]*I wrote 3 bytes[^]*7 \* 7 is 49\./)
    assert.strictEqual(readFileSync(join(world.directory, "note.txt"), "utf8"), "hi\n")
    assert.notInclude(stdout, "\x1b")
    assert.notMatch(stdout, spinner)
    assert.notMatch(stdout, / $/m)
  })

  it("ends with 3 when something waits for a person, and the next one goes on there", async () => {
    using world = World.make()
    const left = await world.run(chat, { input: "Write a note that says hi\n" })
    assert.strictEqual(left.code, 3, left.stderr)
    assert.match(left.stdout, /1 thing left to answer/)
    assert.isFalse(existsSync(join(world.directory, "note.txt")))

    const [, session] = /--session (\S+)/.exec(left.stdout) ?? []
    const gone = await world.run([...chat, "--session", session ?? ""], { input: "no, not that\n" })
    assert.strictEqual(gone.code, 0, gone.stderr)
    assert.include(gone.stdout, "write_note denied")
    assert.isFalse(existsSync(join(world.directory, "note.txt")))
  })

  it("does not need a last line break, and takes those of Windows", async () => {
    using world = World.make()
    const { code, stdout } = await world.run(chat, { input: "/tools\r\nWhat is 6 * 7?" })
    assert.strictEqual(code, 0)
    assert.match(stdout, /write_note[^]*6 \* 7 is 42\./)
  })

  it("stops with 130 at SIGINT, and what was said is stored", async () => {
    using world = World.make()
    await using piped = await world.start([...chat, "Try the slow tool"])
    await piped.until("> slow started")
    piped.kill("SIGINT")
    await piped.until(/Stopped after/)
    piped.kill("SIGINT")
    assert.strictEqual((await piped.exit).code, 130)
    const { stdout } = await world.run(["sessions", "list"])
    assert.include(stdout, "Try the slow tool")
  })

  it("writes plain text into a file while a person types, and reads a file while a person looks on", async () => {
    using world = World.make()
    const out = () => {
      const file = join(world.directory, "out.txt")
      return existsSync(file) ? readFileSync(file, "utf8") : ""
    }
    const [node, bin] = await World.bundled()
    const shell = (line: string) => world.open(["-c", line], { command: ["/bin/sh"], env: { ALLM: `${node} ${bin}` } })
    {
      await using terminal = await shell("$ALLM chat --model demo 'What is 6 * 7?' > out.txt; echo ended $?")
      await vi.waitUntil(() => out().includes("6 * 7 is 42."), { timeout: 45_000 })
      terminal.key("ctrl-d")
      await terminal.until("ended 0")
      assert.notInclude(out(), "\x1b")
    }
    writeFileSync(join(world.directory, "in.txt"), "What is 7 * 7?\n")
    await using terminal = await shell("$ALLM chat --model demo < in.txt; echo ended $?")
    const screen = await terminal.until("ended 0")
    assert.match(screen, /› What is 7 \* 7\?[^]*✓ done +calculator[^]*7 \* 7 is 49\./)
  })

  it("is a demonstration without a person, too", async () => {
    using world = World.make()
    const { code, stdout } = await world.run(["chat"])
    assert.strictEqual(code, 0)
    assert.match(stdout, /No key was found/)
    for (const line of ["+ clock done", "x stubborn timed out", "x broken crashed", "2 * (3 + 4)^2 is 98."]) {
      assert.include(stdout, line)
    }
  })
})
