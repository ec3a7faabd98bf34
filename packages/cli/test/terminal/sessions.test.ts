import { existsSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { readyAfter, sessionIn } from "./screens.ts"
import * as World from "./World.ts"

const size = { columns: 100, rows: 40 }

describe.concurrent("allm run and allm sessions as processes", { timeout: 90_000 }, () => {
  it("writes just the answer into a pipe, from what is piped in", async () => {
    using world = World.make()
    const { code, stderr, stdout } = await world.run(["run", "demo"], { input: "What is 6 * 7?\n" })

    assert.strictEqual(code, 0, stderr)
    assert.strictEqual(stdout, "6 * 7 is 42.\n")
    assert.match(stderr, /\+ calculator done[^]*session \d/)
  })

  it("stops at Ctrl-C with 130, and goes on from there", async () => {
    using world = World.make()
    await using piped = await world.start(["run", "demo", "Try the slow tool, and what is 6 * 7?"])
    await piped.until("+ calculator done")
    piped.kill("SIGINT")
    const { code, stderr, stdout } = await piped.exit

    assert.deepStrictEqual([code, stdout], [130, ""])
    const [, id = ""] = /interrupted; go on with: allm sessions resume (\S+)\n$/.exec(stderr) ?? []
    const resumed = await world.run(["sessions", "resume", id])
    assert.strictEqual(resumed.code, 0, resumed.stderr)
    assert.include(resumed.stdout, "6 * 7 is 42.")
    assert.notInclude(resumed.stderr, "+ calculator done", "what has ended is not run again")
  })

  it("ends quietly when the reader has seen enough", async () => {
    using world = World.make()
    const [node, bin] = await World.bundled()
    const script = `"${node}" "${bin}" run demo --json "Try the slow tool" | head -1; echo "codes \${PIPESTATUS[*]}"`
    const { code, stderr, stdout } = await world.run(["-c", script], { command: ["bash"] })

    assert.deepStrictEqual([code, stderr], [0, ""])
    assert.strictEqual(stdout, "{\"_tag\":\"MessageStarted\"}\ncodes 130 0\n")
  })

  it("reads TypeScript by tsx where Node does not", async () => {
    using world = World.make()
    writeFileSync(join(world.directory, "agent.mts"), "const three: number = 3\nexport default three\n")
    const { code, stderr } = await world.run(["run", "agent.mts", "Hi"])

    assert.strictEqual(code, 2)
    assert.match(stderr, /^allm: agent\.mts: its default export is no Layer but a number; write\n/)
  })

  it("opens a chat with a stored session, and asks what it waits for", async () => {
    using world = World.make()
    const left = await world.run(["run", "demo", "Ask me which colour: red or blue"])
    assert.strictEqual(left.code, 3, left.stderr)

    await using terminal = await world.open(["sessions", "resume", sessionIn(left.stderr)], size)
    await terminal.until(/answer ›$/)
    terminal.type("blue\r")
    await terminal.until(readyAfter(/You answered: .*blue/))
    terminal.key("ctrl-d")
    assert.strictEqual((await terminal.exit).code, 0)
  })

  it("deletes a session when a person says so, and keeps it otherwise", async () => {
    using world = World.make()
    const id = sessionIn((await world.run(["run", "demo", "hello"])).stderr)
    const files = () => readdirSync(join(world.home, "sessions", id))
    {
      await using terminal = await world.open(["sessions", "delete", id], size)
      await terminal.until(`Delete session ${id}?`)
      terminal.type("n")
      await terminal.until(`session ${id} stays`)
      assert.strictEqual((await terminal.exit).code, 0)
      assert.notDeepEqual(files(), [])
    }
    await using terminal = await world.open(["sessions", "delete", id], size)
    await terminal.until(`Delete session ${id}?`)
    terminal.type("y")
    await terminal.until(`deleted session ${id}`)
    assert.deepStrictEqual(files(), [])
    assert.isFalse(existsSync(join(world.home, "traces", `${id}.ndjson`)))
  })
})
