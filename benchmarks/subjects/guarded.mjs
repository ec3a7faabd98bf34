// The fair limit: what careful code without a library does. A bounded number of workers, and for each call
// a timer, an abort signal, and every kind of failure turned into a message.
import { openChat } from "../lib/script.mjs"
import { summarize } from "../lib/work.mjs"
import { ask } from "./floor.mjs"

const concurrency = 64
const timeoutMs = 30_000

export const create = ({ echo, wait }) => {
  const tools = { echo, wait }

  const runCall = ({ id, name, rawArguments }) =>
    new Promise((resolve) => {
      const controller = new AbortController()
      const end = (content, isError) => {
        clearTimeout(timer)
        resolve({ role: "tool", toolCallId: id, content, isError })
      }
      const fail = (error) => end(`failed: ${error}`, true)
      const timer = setTimeout(() => {
        controller.abort()
        fail("timeout")
      }, timeoutMs)
      try {
        // The printing may throw as well, hence `fail` comes after it.
        tools[name](JSON.parse(rawArguments), { signal: controller.signal })
          .then((value) => end(JSON.stringify(value), false))
          .catch(fail)
      } catch (error) {
        fail(error)
      }
    })

  const runAll = async (calls) => {
    const messages = Array.from({ length: calls.length })
    let next = 0
    const worker = async () => {
      for (let index = next++; index < calls.length; index = next++) messages[index] = await runCall(calls[index])
    }
    await Promise.all(Array.from({ length: Math.min(concurrency, calls.length) }, worker))
    return messages
  }

  const chat = async (options) => {
    const messages = [{ role: "user", content: openChat(options) }]
    for (;;) {
      const { calls, text } = await ask(messages)
      if (calls === undefined) return text
      messages.push({ role: "assistant", calls })
      for (const message of await runAll(calls)) messages.push(message)
    }
  }

  return {
    batch: async (calls) => summarize(await runAll(calls)),
    chat
  }
}
