// The AI SDK: one `generateText` whose model first makes the calls and then, shown their results, answers with text.
// The model is a plain object, because the mock that ships with the SDK keeps every prompt it was ever given.
import { generateText, isStepCount, tool } from "ai"
import { z } from "zod"
import { toolName } from "../lib/work.mjs"

globalThis.AI_SDK_LOG_WARNINGS = false

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 }
}

const answer = (content, reason) => ({
  content,
  finishReason: { unified: reason, raw: reason },
  usage,
  warnings: []
})

/** The results as the model sees them. They stay values here; turning them into text is left to the provider. */
const summarizeResults = (results) => {
  let errors = 0
  for (const { output } of results) if (output.type !== "json") errors++
  return { count: results.length, errors, last: JSON.stringify(results[results.length - 1]?.output.value) }
}

export const create = ({ echo }) => {
  const tools = {
    [toolName]: tool({
      description: "Gives back its input",
      inputSchema: z.object({ text: z.string(), n: z.number() }),
      execute: (input) => echo(input)
    })
  }

  const run = async (calls) => {
    let summary
    const model = {
      specificationVersion: "v4",
      provider: "in-process",
      modelId: "scripted",
      supportedUrls: {},
      doGenerate: async ({ prompt }) => {
        const last = prompt[prompt.length - 1]
        if (last.role === "tool") {
          summary = summarizeResults(last.content)
          return answer([{ type: "text", text: "done" }], "stop")
        }
        const content = calls.map(({ id, name, rawArguments }) => ({
          type: "tool-call",
          toolCallId: id,
          toolName: name,
          input: rawArguments
        }))
        return answer(content, "tool-calls")
      }
    }
    const { text } = await generateText({ model, tools, prompt: "go", stopWhen: isStepCount(3) })
    if (text !== "done") throw new Error(`the final text is ${JSON.stringify(text)}`)
    return summary
  }

  return { run }
}
