import { Adapter, type AdapterError, type Event, Message, Request } from "@allm/core"
import { HttpClient, type HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { Chunk, Effect, Layer, Stream } from "effect"

/** A request as it goes out. */
export interface Sent {
  readonly url: string
  readonly headers: { readonly [name: string]: string | undefined }
  // oxlint-disable-next-line typescript/no-explicit-any -- Bodies are compared, not computed with.
  readonly body: any
}

export type Answer = (sent: Sent, index: number) => Response

const sentOf = (request: HttpClientRequest.HttpClientRequest, url: URL): Sent => ({
  url: url.toString(),
  headers: request.headers,
  body: request.body._tag === "Uint8Array" ? JSON.parse(new TextDecoder().decode(request.body.body)) : undefined
})

/** A client whose server is a function. */
export const clientOf = (answer: Answer, sent: Array<Sent> = []): Layer.Layer<HttpClient.HttpClient> =>
  Layer.succeed(
    HttpClient.HttpClient,
    HttpClient.make((request, url) =>
      Effect.sync(() => {
        sent.push(sentOf(request, url))
        return HttpClientResponse.fromWeb(request, answer(sent.at(-1)!, sent.length - 1))
      })
    )
  )

/** An answer as server-sent events. */
export const sse = (frames: ReadonlyArray<unknown>): Response =>
  new Response(
    frames.map((frame) => `data: ${typeof frame === "string" ? frame : JSON.stringify(frame)}\n\n`).join(""),
    {
      headers: { "content-type": "text/event-stream" }
    }
  )

/** An answer in pieces of bytes. */
export const bytes = (parts: ReadonlyArray<Uint8Array>): Response =>
  new Response(
    new ReadableStream<Uint8Array>({
      start(controller) {
        for (const part of parts) controller.enqueue(part)
        controller.close()
      }
    }),
    { headers: { "content-type": "text/event-stream" } }
  )

export const hello: Request.Request = Request.make({ model: "test-model", messages: [Message.user("Hi")] })

type Layered = Layer.Layer<Adapter.Adapter, unknown, HttpClient.HttpClient>

/** All events of one answer. */
export const ask = (
  adapter: Layered,
  answer: Answer,
  request: Request.Request = hello
): Effect.Effect<ReadonlyArray<Event.AdapterEvent>, AdapterError.AdapterError> =>
  Stream.runCollect(Adapter.stream(request)).pipe(
    Effect.map(Chunk.toReadonlyArray),
    Effect.provide(Layer.orDie(Layer.provide(adapter, clientOf(answer))))
  )

/** The body that a request is written as. */
export const written = (
  adapter: Layered,
  request: Request.Request,
  last: Answer
): Effect.Effect<Sent, AdapterError.AdapterError> => {
  const sent: Array<Sent> = []
  return Stream.runDrain(Adapter.stream(request)).pipe(
    Effect.provide(Layer.orDie(Layer.provide(adapter, clientOf(last, sent)))),
    Effect.map(() => sent[0]!)
  )
}

/** What the answer came to. */
export const ended = (events: ReadonlyArray<Event.AdapterEvent>) => {
  const last = events.at(-1)
  if (last?._tag !== "MessageCompleted") throw new Error(`it ends with ${last?._tag}`)
  return last
}

export const textOf = (events: ReadonlyArray<Event.AdapterEvent>): string =>
  events.map((event) => event._tag === "TextDelta" ? event.delta : "").join("")

export const reasoningOf = (events: ReadonlyArray<Event.AdapterEvent>): string =>
  events.map((event) => event._tag === "ReasoningDelta" ? event.delta : "").join("")

export const callsOf = (events: ReadonlyArray<Event.AdapterEvent>) =>
  events.flatMap((event) => event._tag === "ToolCallCompleted" ? [event.toolCall] : [])

interface ResponseEvent {
  readonly type: string
  readonly [key: string]: unknown
}

interface OutputItem {
  readonly [key: string]: unknown
}

const halves = (text: string): ReadonlyArray<string> => {
  const middle = Math.ceil(text.length / 2)
  return [text.slice(0, middle), text.slice(middle)].filter((half) => half !== "")
}

/** The events by which the Responses API tells of these items. */
export const responseStream = (items: ReadonlyArray<object>, rest: object = {}): ReadonlyArray<ResponseEvent> => {
  const response = { id: "resp_1", object: "response", model: "test-model-1", store: true, ...rest }
  const parts = (item: OutputItem, field: string) => (item[field] ?? []) as ReadonlyArray<OutputItem>
  const deltas = (at: object, type: string, text: string, whole: string): ReadonlyArray<ResponseEvent> => [
    ...halves(text).map((delta) => ({ type: `response.${type}.delta`, ...at, delta })),
    { type: `response.${type}.done`, ...at, [whole]: text }
  ]
  const told = (item: OutputItem, output_index: number): ReadonlyArray<ResponseEvent> => {
    const at = { output_index, item_id: item["id"] }
    switch (item["type"]) {
      case "message":
        return parts(item, "content").flatMap((part, content_index) =>
          part["type"] === "refusal"
            ? deltas({ ...at, content_index }, "refusal", String(part["refusal"]), "refusal")
            : deltas({ ...at, content_index }, "output_text", String(part["text"]), "text")
        )
      case "reasoning":
        return [
          ...parts(item, "summary").flatMap((part, summary_index) =>
            deltas({ ...at, summary_index }, "reasoning_summary_text", String(part["text"]), "text")
          ),
          ...parts(item, "content").flatMap((part, content_index) =>
            deltas({ ...at, content_index }, "reasoning_text", String(part["text"]), "text")
          )
        ]
      case "function_call":
        return deltas(at, "function_call_arguments", String(item["arguments"]), "arguments")
      default:
        return []
    }
  }
  const status = "status" in rest ? rest.status : "completed"
  return [
    { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
    ...(items as ReadonlyArray<OutputItem>).flatMap((item, output_index): ReadonlyArray<ResponseEvent> => [
      {
        type: "response.output_item.added",
        output_index,
        item: { ...item, status: "in_progress", arguments: "", content: [], summary: [] }
      },
      ...told(item, output_index),
      { type: "response.output_item.done", output_index, item }
    ]),
    { type: `response.${String(status)}`, response: { ...response, status, output: items } }
  ]
}
