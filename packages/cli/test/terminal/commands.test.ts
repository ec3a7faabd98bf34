import { Event } from "@allm/core"
import { Schema } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import * as World from "./World.ts"

const agent = (name: string) => fileURLToPath(new URL(`./agents/${name}`, import.meta.url))
const decode = Schema.decodeUnknownSync(Schema.parseJson(Event.Event))
const linesOf = (text: string) => text.split("\n").filter((line) => line !== "")

describe.concurrent("allm", { timeout: 90_000 }, () => {
  it("says what it can do, and which version it is", async () => {
    using world = World.make()
    const help = await world.run([])
    assert.strictEqual(help.code, 0)
    for (const name of ["chat", "run", "sessions", "replay"]) {
      assert.match(help.stdout, new RegExp(`^  ${name} +\\S`, "m"))
    }
    const version = await world.run(["--version"])
    assert.match(version.stdout, /^\d+\.\d+\.\d+\s*$/)
  })

  it("describes each command on a page that fits the window", async () => {
    using world = World.make()
    const resume = await world.run(["sessions", "resume", "-h"])
    assert.match(resume.stdout, /^allm sessions resume \[options\] <id>\n/)
    assert.match(resume.stdout, /^ {2}-m, --model provider\/name +\S/m)
    const list = await world.run(["help", "sessions"])
    assert.match(list.stdout, /\n {2}list +[^]*\n {2}show +[^]*\n {2}resume +[^]*\n {2}delete +/)

    await using terminal = await world.open(["chat", "--help"], { columns: 36, rows: 60 })
    assert.strictEqual((await terminal.exit).code, 0)
    assert.match(terminal.history(), /^allm chat \[options\]/)
    assert.deepStrictEqual(terminal.broken(), [])
  })

  for (
    const [args, says] of [
      [["frob"], /chat.*run.*sessions.*replay/],
      [["chat", "--frob"], /--frob/],
      [["run"], /<file>/],
      [["run", "nothing.js"], /nothing\.js: there is no such file/],
      [["run", "broken.mjs"], /broken\.mjs: it has no default export/],
      [["chat", "--model", "foo/bar"], /no provider "foo"; there are openai, anthropic/],
      [["chat", "--model", "openai/gpt-5-mini"], /OPENAI_API_KEY/],
      [["chat", "--session", "nope"], /no session "nope"/],
      [["replay", "nope"], /no session "nope"/],
      [["sessions", "show", "nope"], /no session "nope"/]
    ] as const
  ) {
    it(`refuses ${args.join(" ")} in a sentence, with 2`, async () => {
      using world = World.make()
      writeFileSync(join(world.directory, "broken.mjs"), "export const prompt = 'x'\n")
      const { code, stderr, stdout } = await world.run(args)
      assert.match(stderr, says)
      assert.isAtMost(linesOf(stderr).length, 5, stderr)
      assert.notMatch(stderr, /^\s+at /m)
      assert.strictEqual(stdout, "")
      assert.strictEqual(code, 2)
    })
  }
})

describe.concurrent("allm run", { timeout: 90_000 }, () => {
  it("writes the answer to the output, and the rest beside it", async () => {
    using world = World.make()
    const { code, stderr, stdout } = await world.run(["run", "demo", "What is 6 * 7?"])
    assert.strictEqual(stdout, "6 * 7 is 42.\n")
    assert.match(stderr, /\+ calculator done/)
    assert.strictEqual(code, 0)
  })

  it("gives every event as a line of JSON", async () => {
    using world = World.make()
    const { code, stderr, stdout } = await world.run(["run", "demo", "--json", "What is 6 * 7?"])
    const events = linesOf(stdout).map((line) => decode(line))
    assert.strictEqual(code, 0, stderr)
    assert.isTrue(stdout.endsWith("\n"))
    assert.strictEqual(events.at(-1)?._tag, "ChatCompleted")
    assert.deepStrictEqual(
      events.flatMap((event) => event._tag === "ToolExecutionCompleted" ? [event.toolName] : []),
      ["calculator"]
    )
  })

  it("reads from a pipe, waits for nobody, and says with 3 who has to do what", async () => {
    using world = World.make()
    const waits = await world.run(["run", "demo"], { input: "Write a note that says hi\n" })
    assert.strictEqual(waits.code, 3)
    assert.match(waits.stderr, /waits for consent: write_note/)
    const [, id] = /allm sessions resume (\S+)/.exec(waits.stderr) ?? []

    await using terminal = await world.open(["chat", "--model", "demo", "--session", id ?? ""])
    await terminal.until("run it?")
    terminal.type("y\r")
    await terminal.until("I wrote 3 bytes")
  })

  it("stops with 130 at SIGINT, and leaves a session to go on with", async () => {
    using world = World.make()
    await using piped = await world.start(["run", "demo", "--json", "Try the slow tool"])
    await piped.until("ToolProgress")
    piped.kill("SIGINT")
    const { code, stderr } = await piped.exit
    assert.strictEqual(code, 130)
    const [, id] = /allm sessions resume (\S+)/.exec(stderr) ?? []
    const resumed = await world.run(["sessions", "resume", id ?? ""])
    assert.strictEqual(resumed.code, 0, resumed.stderr)
    assert.match(resumed.stdout, /`slow`|slow/)
  })

  it("ends quietly when nobody reads on", async () => {
    using world = World.make()
    const [node, bin] = await World.bundled()
    const { stderr, stdout } = await world.run(
      ["-c", `{ "${node}" "${bin}" run demo --json "Try the slow tool"; echo "ended with $?" >&2; } | head -1`],
      { command: ["/bin/sh"] }
    )
    assert.strictEqual(linesOf(stdout).length, 1)
    assert.match(stderr, /ended with 130/)
    assert.notMatch(stderr, /EPIPE|^\s+at /m)
  })

  it("loads agent modules in JavaScript and in TypeScript", async () => {
    using world = World.make()
    const options = { command: World.fromSource, env: { LEDGER: join(world.directory, "ledger") } }
    const plain = await world.run(["run", agent("greeter.mjs"), "--model", "demo"], options)
    assert.match(plain.stdout, /23:59/, plain.stderr)
    assert.strictEqual(plain.code, 0)

    // What the first run would wait for for ever is there already.
    writeFileSync(join(world.directory, "ledger.waited"), "")
    const typed = await world.run(["run", agent("ledger.ts")], options)
    assert.strictEqual(typed.stdout, "The ledger says: booked once.\n", typed.stderr)
    assert.strictEqual(typed.code, 0)
  })
})

describe.concurrent("allm sessions and allm replay", { timeout: 90_000 }, () => {
  it("list, show, replay and delete what there is", async () => {
    using world = World.make()
    const none = await world.run(["sessions"])
    assert.strictEqual(none.code, 0)
    const ran = await world.run(["run", "demo", "Try the flaky and the broken tool. What is 6 * 7?"])
    const [, id = ""] = /session (\S+),/.exec(ran.stderr) ?? []
    assert.notStrictEqual(id, "")

    const list = await world.run(["sessions", "list"])
    assert.match(list.stdout, new RegExp(`${id} +completed +\\d+ .*Try the flaky`))
    const show = await world.run(["sessions", "show", id])
    assert.match(show.stdout, /Try the flaky[^]*calculator[^]*6 \* 7 is 42\./)
    const replay = await world.run(["replay", id])
    assert.match(replay.stdout, /flaky +·?█.*↻.*run again 2×/)
    assert.match(replay.stdout, /broken +·?█.*!.*crashed/)
    assert.notInclude(replay.stdout, "\x1b")

    // Nobody can be asked here.
    assert.strictEqual((await world.run(["sessions", "delete", id])).code, 2)
    const gone = await world.run(["sessions", "delete", id, "--yes"])
    assert.strictEqual(gone.code, 0, gone.stderr)
    assert.notInclude((await world.run(["sessions", "list"])).stdout, id)
    assert.strictEqual((await world.run(["replay", id])).code, 2)
  })

  it("shows a session as bars in a terminal, as wide as it is", async () => {
    using world = World.make()
    await world.run(["run", "demo", "Try the flaky tool. What is 6 * 7?"])
    for (const columns of [120, 40]) {
      await using terminal = await world.open(["replay"], { columns, rows: 50 })
      assert.deepStrictEqual(await terminal.exit, { code: 0, signal: undefined })
      assert.match(terminal.history(), /flaky/)
      assert.deepStrictEqual(terminal.broken(), [])
      assert.isTrue(terminal.cells().flat().some(({ foreground }) => foreground !== undefined))
    }
  })

  it("plays a session back as it happened, and gives the terminal back at Ctrl-C", async () => {
    using world = World.make()
    await world.run(["run", "demo", "Try the flaky tool. What is 6 * 7?"])
    await using terminal = await world.open(["replay", "--live"], { rows: 40 })
    await terminal.until(/flaky +█/)
    assert.isFalse(terminal.cursor().visible)
    terminal.key("ctrl-c")
    assert.deepStrictEqual(await terminal.exit, { code: 130, signal: undefined })
    assert.isTrue(terminal.cursor().visible)
  })
})
