// OpenAI's own client. It does less than the others: there is no loop around it, and nothing is kept.
import OpenAI from "openai"

const protocols = {
  chat: {
    open: (client) =>
      client.chat.completions.create({
        model: "scripted",
        messages: [{ role: "user", content: "go" }],
        stream: true,
        stream_options: { include_usage: true }
      }),
    deltaOf: ({ choices }) => choices[0]?.delta.content
  },
  responses: {
    open: (client) => client.responses.create({ model: "scripted", input: "go", stream: true }),
    deltaOf: ({ delta, type }) => type === "response.output_text.delta" ? delta : undefined
  }
}

export const create = () => ({
  streamHttp: async ({ baseUrl, protocol }) => {
    const { deltaOf, open } = protocols[protocol]
    const seen = { deltas: 0, chars: 0 }
    for await (const event of await open(new OpenAI({ baseURL: baseUrl, apiKey: "none" }))) {
      const delta = deltaOf(event)
      if (!delta) continue
      seen.deltas++
      seen.chars += delta.length
    }
    return seen
  }
})
