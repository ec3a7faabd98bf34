import { assert, describe, it } from "vitest"
import * as World from "../terminal/World.ts"

describe("a line", { timeout: 30_000 }, () => {
  it("takes what is pasted as one message, which is sent by a person only", async () => {
    using world = World.make()
    await using terminal = await world.open(["chat", "--model", "demo", "hi"])
    await terminal.until(/^› *$/m)
    terminal.type("\x1b[200~hello\r\nand 2 + 2\x1b[201~")
    await terminal.until("› hello⏎and 2 + 2")
    terminal.key("enter")
    await terminal.until(/is 4/)
    await terminal.until((terminal) => terminal.screen().endsWith("\n›"))
    terminal.key("ctrl-d")
    assert.strictEqual((await terminal.exit).code, 0)

    const [id] = /\d{8}-\d{6}-\w{4}/.exec(terminal.history()) ?? []
    const shown = await world.run(["sessions", "show", id!])
    assert.match(shown.stdout, /hello\s*\n\s*and 2 \+ 2/)
  })
})
