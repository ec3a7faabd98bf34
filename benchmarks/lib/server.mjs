// A model behind HTTP, in a process of its own: a text of as many deltas as asked for, in either of OpenAI's protocols. The body
// is made once and sent as fast as it is taken, so that what is measured is the reading.
import { createServer } from "node:http"
import { textPiece } from "./script.mjs"

const frame = (data) => `data: ${JSON.stringify(data)}\n\n`

const chunk = (delta, finish_reason = null, usage = null) => ({
  id: "chatcmpl-DcLQfUuhXefq7QDmGNhpEN5IqEKMM",
  object: "chat.completion.chunk",
  created: 1778031209,
  model: "scripted",
  service_tier: "default",
  system_fingerprint: "fp_99cf176092",
  choices: [{ index: 0, delta, logprobs: null, finish_reason }],
  usage
})

const chat = (count) => [
  frame(chunk({ role: "assistant", content: "", refusal: null })),
  ...Array.from({ length: count }, (_, n) => frame(chunk({ content: textPiece(n) }))),
  frame(chunk({}, "stop")),
  frame({
    ...chunk({}),
    choices: [],
    usage: { prompt_tokens: 1, completion_tokens: count, total_tokens: count + 1 }
  }),
  "data: [DONE]\n\n"
]

const event = (data) => `event: ${data.type}\n${frame(data)}`

const responses = (count) => {
  const text = Array.from({ length: count }, (_, n) => textPiece(n)).join("")
  const response = {
    id: "resp_00daac70c40e5f4c0069fa8aa5a58c81",
    object: "response",
    created_at: 1778027173,
    model: "scripted"
  }
  const at = { item_id: "msg_00daac70c40e5f4c0069fa8aa697a881", output_index: 0, content_index: 0 }
  const part = { type: "output_text", annotations: [], logprobs: [], text }
  const item = { id: at.item_id, type: "message", role: "assistant", status: "completed", content: [part] }
  let sequence_number = 0
  const told = (type, fields) => event({ type, ...fields, sequence_number: sequence_number++ })
  return [
    told("response.created", { response: { ...response, status: "in_progress", output: [] } }),
    told("response.output_item.added", { output_index: 0, item: { ...item, status: "in_progress", content: [] } }),
    told("response.content_part.added", { ...at, part: { ...part, text: "" } }),
    ...Array.from(
      { length: count },
      (_, n) =>
        told("response.output_text.delta", { ...at, delta: textPiece(n), logprobs: [], obfuscation: "ltAaX7wDQM1X8W" })
    ),
    told("response.output_text.done", { ...at, text, logprobs: [] }),
    told("response.content_part.done", { ...at, part }),
    told("response.output_item.done", { output_index: 0, item }),
    told("response.completed", {
      response: {
        ...response,
        status: "completed",
        output: [item],
        usage: {
          input_tokens: 1,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens: count,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: count + 1
        }
      }
    })
  ]
}

const bodies = new Map()

const bodyOf = (path, count) => {
  const key = `${path} ${count}`
  if (!bodies.has(key)) {
    bodies.set(key, Buffer.from((path.endsWith("/responses") ? responses(count) : chat(count)).join("")))
  }
  return bodies.get(key)
}

/** What fits into one packet or so: more at once would be kinder than any network is. */
const pieceBytes = 1_400

const send = async (response, body) => {
  for (let at = 0; at < body.length; at += pieceBytes) {
    if (!response.write(body.subarray(at, at + pieceBytes))) {
      await new Promise((resolve) => response.once("drain", resolve))
    }
  }
  response.end()
}

const server = createServer((request, response) => {
  // How long the text is to be is said where every client can say it.
  const [, count, path] = /^\/(\d+)(\/.*)$/.exec(request.url) ?? []
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    void send(response, bodyOf(path, Number(count)))
  })
})

server.listen(0, "127.0.0.1", () => process.send({ url: `http://127.0.0.1:${server.address().port}` }))
process.on("disconnect", () => process.exit())
