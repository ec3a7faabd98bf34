import { type AdapterChecks, AdapterSuite } from "@allm/conformance"
import { Adapter } from "@allm/core"
import { OpenAi, OpenAiChat } from "@allm/openai"
import { FetchHttpClient } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import { Context, Duration, Effect, Layer } from "effect"
import { begin, type Handler, type Received, serve, write } from "./server.ts"

/** How a protocol says what the scenarios want said. */
interface Wire {
  readonly begin: ReadonlyArray<unknown>
  readonly text: (piece: string, index: number) => unknown
  readonly calls: (calls: ReadonlyArray<AdapterChecks.ScriptedCall>) => ReadonlyArray<unknown>
  readonly end: (finish: "stop" | "tool_calls", pieces: ReadonlyArray<string>) => ReadonlyArray<unknown>
  readonly question: (body: Received["body"]) => string
}

const chunk = (delta: object, finish: string | null = null) => ({
  id: "chatcmpl-1",
  model: "m",
  choices: [{ index: 0, delta, finish_reason: finish }]
})

const chat: Wire = {
  begin: [chunk({ role: "assistant", content: "" })],
  text: (content) => chunk({ content }),
  calls: (calls) => [
    ...calls.map(({ id, name }, index) => chunk({ tool_calls: [{ index, id, function: { name, arguments: "" } }] })),
    // The calls grow side by side, as models write them.
    ...[0, 1, 2, 3].flatMap((at) =>
      calls.flatMap(({ pieces }, index) =>
        pieces[at] === undefined ? [] : [chunk({ tool_calls: [{ index, function: { arguments: pieces[at] } }] })]
      )
    )
  ],
  end: (finish) => [
    chunk({}, finish),
    { id: "chatcmpl-1", choices: [], usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } },
    "[DONE]"
  ],
  question: (body) => body.messages.at(-1).content
}

const responses: Wire = {
  begin: [
    { type: "response.created", response: { id: "resp_1", model: "m", status: "in_progress" } },
    { type: "response.output_item.added", output_index: 0, item: { id: "m1", type: "message", content: [] } }
  ],
  text: (delta) => ({ type: "response.output_text.delta", output_index: 0, item_id: "m1", content_index: 0, delta }),
  calls: (calls) => [
    ...calls.map(({ id, name }, at) => ({
      type: "response.output_item.added",
      output_index: at + 1,
      item: { id: `fc_${id}`, type: "function_call", call_id: id, name, arguments: "" }
    })),
    ...[0, 1, 2, 3].flatMap((at) =>
      calls.flatMap(({ pieces }, index) =>
        pieces[at] === undefined
          ? []
          : [{ type: "response.function_call_arguments.delta", output_index: index + 1, delta: pieces[at] }]
      )
    ),
    ...calls.map(({ id, name, pieces }, at) => ({
      type: "response.output_item.done",
      output_index: at + 1,
      item: { id: `fc_${id}`, type: "function_call", call_id: id, name, arguments: pieces.join("") }
    }))
  ],
  end: (_, pieces) => [
    { type: "response.output_text.done", output_index: 0, item_id: "m1", content_index: 0, text: pieces.join("") },
    {
      type: "response.completed",
      response: { id: "resp_1", model: "m", status: "completed", usage: { input_tokens: 1, output_tokens: 2 } }
    }
  ],
  question: (body) => body.input.at(-1).content
}

const clients = { fetch: FetchHttpClient.layer, node: NodeHttpClient.layer }

const suite = (
  name: string,
  layer: typeof OpenAi.layer | typeof OpenAiChat.layer,
  wire: Wire,
  client: keyof typeof clients
) => {
  const subject = (handler: Handler): AdapterChecks.Subject =>
    Effect.gen(function*() {
      const server = yield* serve(handler)
      const context = yield* Layer.build(Layer.provide(layer({ baseUrl: server.url }), clients[client]))
      return { adapter: Context.get(context, Adapter.Adapter), open: Effect.sync(server.open) }
    })
  const says = (pieces: ReadonlyArray<string>): AdapterChecks.Subject =>
    subject((_, response) => {
      write(begin(response), [...wire.begin, ...pieces.map(wire.text), ...wire.end("stop", pieces)])
      response.end()
    })
  const makes = (calls: ReadonlyArray<AdapterChecks.ScriptedCall>): AdapterChecks.Subject =>
    subject((_, response) => {
      write(begin(response), [...wire.begin, ...wire.calls(calls), ...wire.end("tool_calls", [])])
      response.end()
    })

  AdapterSuite.run(`${name} over ${client}`, {
    live: true,
    scenarios: {
      text: says,
      echo: () =>
        subject(({ body }, response) => {
          const pieces = wire.question(body).split(/(?= )/)
          write(begin(response), [...wire.begin, ...pieces.map(wire.text), ...wire.end("stop", pieces)])
          response.end()
        }),
      toolCalls: makes,
      brokenArguments: (call) => makes([call]),
      failure: ({ retryAfter, status }) =>
        subject((_, response) => {
          response.writeHead(status, {
            "content-type": "application/json",
            ...(retryAfter === undefined ? {} : { "retry-after": String(Duration.toSeconds(retryAfter)) })
          })
          response.end(JSON.stringify({ error: { message: "No." } }))
        }),
      cut: (pieces) =>
        subject((_, response) => {
          write(begin(response), [...wire.begin, ...pieces.map(wire.text)])
          setTimeout(() => response.destroy(), 30)
        }),
      slow: (pieces) =>
        subject((_, response) => {
          if (pieces.length > 0) write(begin(response), [...wire.begin, ...pieces.map(wire.text)])
        })
    }
  })
}

suite("OpenAi", OpenAi.layer, responses, "fetch")
suite("OpenAi", OpenAi.layer, responses, "node")
suite("OpenAiChat", OpenAiChat.layer, chat, "fetch")
suite("OpenAiChat", OpenAiChat.layer, chat, "node")
