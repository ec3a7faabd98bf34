// The OpenAI Agents SDK, for its streams, which are the fastest of the libraries here. Its chats are left out:
// a long one takes it half a minute.
import { Agent, Runner, setTracingDisabled, tool } from "@openai/agents-core"
import { z } from "zod"
import { openArguments, openText, plan } from "../lib/script.mjs"

setTracingDisabled(true)

const usage = { requests: 1, inputTokens: 1, outputTokens: 1, totalTokens: 2 }

const keyOf = (input) => {
  if (typeof input === "string") return input
  const { callId, content, type } = input[input.length - 1]
  if (type === "function_call_result") return callId
  return typeof content === "string" ? content : content[0].text
}

const said = ({ id, kind, name }, whole) =>
  kind === "text"
    ? { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: whole }] }
    : { type: "function_call", callId: id, name, status: "completed", arguments: whole }

const argumentsDelta = "response.function_call_arguments.delta"

const model = {
  getResponse: () => Promise.reject(new Error("only streams are measured")),
  async *getStreamedResponse({ input }) {
    const answer = plan(keyOf(input))
    let whole = ""
    yield { type: "response_started" }
    for await (const read of answer.reads) {
      for (const delta of read) {
        whole += delta
        yield answer.kind === "text"
          ? { type: "output_text_delta", delta }
          : { type: "model", event: { type: argumentsDelta, item_id: answer.id, delta } }
      }
    }
    yield { type: "response_done", response: { id: "response", usage, output: [said(answer, whole)] } }
  }
}

export const create = ({ echo }) => {
  const agent = new Agent({
    name: "scripted",
    instructions: "",
    model,
    tools: [tool({
      name: "echo",
      description: "Gives back its input",
      parameters: z.object({ text: z.string(), n: z.number() }),
      execute: (input) => echo(input)
    })]
  })
  const runner = new Runner({ tracingDisabled: true })

  const read = async (input) => {
    const result = await runner.run(agent, input, { stream: true, maxTurns: 4 })
    let textDeltas = 0
    let argumentDeltas = 0
    for await (const { data, type } of result) {
      if (type !== "raw_model_stream_event") continue
      if (data.type === "output_text_delta") textDeltas++
      else if (data.type === "model" && data.event.type === argumentsDelta) argumentDeltas++
    }
    await result.completed
    return { textDeltas, argumentDeltas, text: result.finalOutput }
  }

  return {
    streamText: async (options) => {
      const { text, textDeltas } = await read(openText(options))
      return { deltas: textDeltas, chars: text.length }
    },
    streamArguments: async (options) => {
      const { argumentDeltas, text } = await read(openArguments(options))
      return { deltas: argumentDeltas, text }
    }
  }
}
