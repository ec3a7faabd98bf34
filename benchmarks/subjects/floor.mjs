// The floor: the loop one writes by hand. Parse, run everything at once, print. No limit, no timeout, no validation, and the
// first failure is the end.
import { openArguments, openChat, openText, plan, reply } from "../lib/script.mjs"
import { summarize } from "../lib/work.mjs"

export const create = ({ echo, wait }) => {
  const tools = { echo, wait }

  const runCall = async ({ id, name, rawArguments }) => {
    const value = await tools[name](JSON.parse(rawArguments))
    return { role: "tool", toolCallId: id, content: JSON.stringify(value), isError: false }
  }

  const chat = async (options) => {
    const messages = [{ role: "user", content: openChat(options) }]
    for (;;) {
      const { calls, text } = await ask(messages)
      if (calls === undefined) return text
      messages.push({ role: "assistant", calls })
      for (const message of await Promise.all(calls.map(runCall))) messages.push(message)
    }
  }

  const streamArguments = async (options) => {
    const { id, name, reads } = plan(openArguments(options))
    const { deltas, text } = await readAll(reads)
    const message = await runCall({ id, name, rawArguments: text })
    return { deltas, text: (await readAll(plan(message.toolCallId).reads)).text }
  }

  return {
    batch: async (calls) => summarize(await Promise.all(calls.map(runCall))),
    chat,
    streamText: async (options) => {
      const { deltas, text } = await readAll(plan(openText(options)).reads)
      return { deltas, chars: text.length }
    },
    streamArguments,
    streamHttp
  }
}

const paths = { chat: "/chat/completions", responses: "/responses" }
const deltaOf = {
  chat: ({ choices }) => choices[0]?.delta.content,
  responses: ({ delta, type }) => type === "response.output_text.delta" ? delta : undefined
}

const streamHttp = async ({ baseUrl, protocol }) => {
  const { body } = await fetch(baseUrl + paths[protocol], { method: "POST", body: "{}" })
  const seen = { deltas: 0, chars: 0 }
  const decoder = new TextDecoder()
  let text = ""
  for await (const bytes of body) {
    text += decoder.decode(bytes, { stream: true })
    let at = 0
    for (let end; (end = text.indexOf("\n\n", at)) >= 0; at = end + 2) {
      const data = text.slice(text.indexOf("data: ", at) + 6, end)
      const delta = data === "[DONE]" ? undefined : deltaOf[protocol](JSON.parse(data))
      if (!delta) continue
      seen.deltas++
      seen.chars += delta.length
    }
    text = text.slice(at)
  }
  return seen
}

/** Asks the model as every hand-written loop here does. */
export const ask = async (messages) => {
  const last = messages[messages.length - 1]
  return reply(last.role === "tool" ? last.toolCallId : last.content)
}

const readAll = async (reads) => {
  let deltas = 0
  let text = ""
  for await (const read of reads) {
    for (const delta of read) {
      deltas++
      text += delta
    }
  }
  return { deltas, text }
}
