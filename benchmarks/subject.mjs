// ALLM as a subject of another harness, which brings its own script and its own tool as `kit`. Read from the sources.
import "./lib/typescript.mjs"

const Tool = await import("@allm/core/Tool")
const Schema = await import("effect/Schema")
const { makeLoop } = await import("./subjects/allm-loop.mjs")

export async function create(kit) {
  const echo = Tool.make("echo", {
    description: "Gives back its input",
    parameters: { text: Schema.String, n: Schema.Number, ms: Schema.Number },
    handler: (input) => kit.tool(input)
  })

  const reply = (key) => {
    const { calls, text } = kit.reply(key)
    return { text, calls: calls?.map(({ args, id, name }) => ({ id, name, rawArguments: args })) }
  }

  const plan = (key) => {
    const { batches, id, kind, name } = kit.plan(key)
    return { kind: kind === "args" ? "call" : kind, id, name, reads: kit.source(batches) }
  }

  const loop = makeLoop({ plan, reply, tools: [echo] })

  return {
    agent: async (options) => ({ text: await loop.chat(kit.opening(options)) }),
    streamText: async (options) => {
      const { text, textDeltas } = await loop.stream(kit.openingText(options))
      return { deltas: textDeltas, chars: text.length }
    },
    streamArgs: async (options) => {
      const { argumentDeltas, text } = await loop.stream(kit.openingArgs(options))
      return { deltas: argumentDeltas, text }
    }
  }
}
