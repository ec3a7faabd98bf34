// The AI SDK: `generateText` and `streamText`, with a model that is a plain object, because the mock that ships with
// the SDK keeps every prompt it was ever given.
import { createOpenAI } from "@ai-sdk/openai"
import { generateText, isStepCount, streamText, tool } from "ai"
import { z } from "zod"
import { echoName, finalText, openArguments, openChat, openText, plan, reply } from "../lib/script.mjs"

globalThis.AI_SDK_LOG_WARNINGS = false

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 }
}

const reason = (unified) => ({ unified, raw: unified })

const answer = ({ calls, text }) => ({
  content: calls === undefined ?
    [{ type: "text", text }] :
    calls.map(({ id, name, rawArguments }) => ({
      type: "tool-call",
      toolCallId: id,
      toolName: name,
      input: rawArguments
    })),
  finishReason: reason(calls === undefined ? "stop" : "tool-calls"),
  usage,
  warnings: []
})

async function* parts({ id, kind, name, reads }) {
  yield { type: "stream-start", warnings: [] }
  if (kind === "text") {
    yield { type: "text-start", id: "text" }
    for await (const read of reads) for (const delta of read) yield { type: "text-delta", id: "text", delta }
    yield { type: "text-end", id: "text" }
    yield { type: "finish", usage, finishReason: reason("stop") }
    return
  }
  let input = ""
  yield { type: "tool-input-start", id, toolName: name }
  for await (const read of reads) {
    for (const delta of read) {
      input += delta
      yield { type: "tool-input-delta", id, delta }
    }
  }
  yield { type: "tool-input-end", id }
  yield { type: "tool-call", toolCallId: id, toolName: name, input }
  yield { type: "finish", usage, finishReason: reason("tool-calls") }
}

const keyOf = (prompt) => {
  const { content, role } = prompt[prompt.length - 1]
  return role === "tool" ? content[0].toolCallId : content[0].text
}

const modelOf = (methods) => ({
  specificationVersion: "v4",
  provider: "in-process",
  modelId: "scripted",
  supportedUrls: {},
  ...methods
})

const model = modelOf({
  doGenerate: async ({ prompt }) => answer(reply(keyOf(prompt))),
  doStream: async ({ prompt }) => ({ stream: ReadableStream.from(parts(plan(keyOf(prompt)))) })
})

/** The results as the model sees them. They stay values here; turning them into text is left to the provider. */
const summarizeResults = (results) => {
  let errors = 0
  for (const { output } of results) if (output.type !== "json") errors++
  return { count: results.length, errors, last: JSON.stringify(results[results.length - 1]?.output.value) }
}

export const create = ({ echo, wait }) => {
  const inputSchema = z.object({ text: z.string(), n: z.number() })
  const tools = {
    echo: tool({ description: "Gives back its input", inputSchema, execute: (input) => echo(input) }),
    wait: tool({ description: "Gives back its input, later", inputSchema, execute: (input) => wait(input) })
  }

  const batch = async (calls) => {
    let summary
    const asking = modelOf({
      doGenerate: async ({ prompt }) => {
        const last = prompt[prompt.length - 1]
        if (last.role !== "tool") return answer({ calls })
        summary = summarizeResults(last.content)
        return answer({ text: finalText })
      }
    })
    await generateText({ model: asking, tools: { [echoName]: tools.echo }, prompt: "go", stopWhen: isStepCount(3) })
    return summary
  }

  const chat = async (options) => {
    const prompt = openChat(options)
    const { text } = await generateText({ model, tools, prompt, stopWhen: isStepCount(options.turns + 2) })
    return text
  }

  const read = async (prompt) => {
    const seen = { text: "", textDeltas: 0, inputDeltas: 0 }
    for await (const part of streamText({ model, tools, prompt, stopWhen: isStepCount(4) }).stream) {
      if (part.type === "error") throw part.error
      if (part.type === "tool-input-delta") seen.inputDeltas++
      if (part.type !== "text-delta") continue
      seen.textDeltas++
      seen.text += part.text
    }
    return seen
  }

  const streamHttp = async ({ baseUrl, protocol }) => {
    const provider = createOpenAI({ baseURL: baseUrl, apiKey: "none" })
    const seen = { deltas: 0, chars: 0 }
    for await (const part of streamText({ model: provider[protocol]("scripted"), prompt: "go" }).stream) {
      if (part.type === "error") throw part.error
      if (part.type !== "text-delta") continue
      seen.deltas++
      seen.chars += part.text.length
    }
    return seen
  }

  return {
    batch,
    chat,
    streamHttp,
    streamText: async (options) => {
      const { text, textDeltas } = await read(openText(options))
      return { deltas: textDeltas, chars: text.length }
    },
    streamArguments: async (options) => {
      const { inputDeltas, text } = await read(openArguments(options))
      return { deltas: inputDeltas, text }
    }
  }
}
