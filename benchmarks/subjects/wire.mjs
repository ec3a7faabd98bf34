// The floor plus what any adapter of an HTTP provider has to do anyway: print the whole history for every request,
// and parse every answer. What is far below this cannot be noticed in production.
import { openChat } from "../lib/script.mjs"
import { ask } from "./floor.mjs"

export const create = ({ echo, wait }) => {
  const tools = { echo, wait }

  const chat = async (options) => {
    const messages = [{ role: "user", content: openChat(options) }]
    for (;;) {
      const body = JSON.stringify({ model: "scripted", messages })
      const answer = JSON.stringify(await ask(messages, body))
      const { calls, text } = JSON.parse(answer)
      if (calls === undefined) return text
      messages.push({ role: "assistant", calls })
      for (const { id, name, rawArguments } of calls) {
        const value = await tools[name](JSON.parse(rawArguments))
        messages.push({ role: "tool", toolCallId: id, content: JSON.stringify(value) })
      }
    }
  }

  return { chat }
}
