/** An agent whose tool must not run twice, and one that only ends once the first process is dead. */
import { Fake, Tool } from "@allm/core"
import { Effect } from "effect"
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs"

const ledger = process.env["LEDGER"] ?? "ledger"

const book = Tool.make("book", {
  description: "Writes a line into the ledger",
  handler: () => {
    appendFileSync(ledger, "booked once\n")
    return "booked"
  }
})

const wait = Tool.make("wait", {
  description: "Never ends the first time",
  replay: "idempotent",
  handler: () =>
    Effect.suspend(() => {
      if (existsSync(`${ledger}.waited`)) return Effect.succeed("waited")
      writeFileSync(`${ledger}.waited`, "")
      return Effect.never
    })
})

export const prompt = "Book it, and wait."

export default Fake.engine({
  tools: [book, wait],
  respond: ({ messages }) =>
    messages.some(({ role }) => role === "tool")
      ? [
        Fake.text(`The ledger says: ${readFileSync(ledger, "utf8").trim().split("\n").join(", ")}.`),
        Fake.finish("stop")
      ]
      : [
        Fake.toolCall({ id: "call-1", name: "book", arguments: {} }),
        Fake.toolCall({ id: "call-2", name: "wait", arguments: {} }),
        Fake.finish("tool_calls")
      ]
})
