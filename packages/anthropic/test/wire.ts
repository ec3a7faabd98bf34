import { Anthropic } from "@allm/anthropic"
import { Adapter, type AdapterError, type Event, Message, Request } from "@allm/core"
import { HttpClient, type HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { Chunk, Effect, Either, Layer, Redacted, Stream } from "effect"

export type Json = { readonly [key: string]: unknown }

/** A frame of the Messages API. */
export type Frame = Json & { readonly type: string }

export const usage = { input_tokens: 10, output_tokens: 1 }

export const started = (message: Json = {}): Frame => ({
  type: "message_start",
  message: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-sonnet-5",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage,
    ...message
  }
})

export const begun = (index: number, block: Json): Frame => ({
  type: "content_block_start",
  index,
  content_block: block
})
export const grown = (index: number, delta: Json): Frame => ({ type: "content_block_delta", index, delta })
export const over = (index: number): Frame => ({ type: "content_block_stop", index })

export const text = (index: number, ...pieces: ReadonlyArray<string>): ReadonlyArray<Frame> => [
  begun(index, { type: "text", text: "" }),
  ...pieces.map((piece) => grown(index, { type: "text_delta", text: piece })),
  over(index)
]

export const thinking = (index: number, signature: string, ...pieces: ReadonlyArray<string>): ReadonlyArray<Frame> => [
  begun(index, { type: "thinking", thinking: "", signature: "" }),
  ...pieces.map((piece) => grown(index, { type: "thinking_delta", thinking: piece })),
  grown(index, { type: "signature_delta", signature }),
  over(index)
]

export const call = (
  index: number,
  block: { readonly id: string; readonly name: string },
  ...pieces: ReadonlyArray<string>
): ReadonlyArray<Frame> => [
  begun(index, { type: "tool_use", input: {}, ...block }),
  grown(index, { type: "input_json_delta", partial_json: "" }),
  ...pieces.map((piece) => grown(index, { type: "input_json_delta", partial_json: piece })),
  over(index)
]

export const stopped = (stop_reason: string | null, more: Json = {}, counts: Json = { output_tokens: 5 }): Frame => ({
  type: "message_delta",
  delta: { stop_reason, stop_sequence: null, ...more },
  usage: counts
})

export const ended: Frame = { type: "message_stop" }

export const ping: Frame = { type: "ping" }

export const answerOf = (...content: ReadonlyArray<Frame>): ReadonlyArray<Frame> => [
  started(),
  ...content,
  stopped("end_turn"),
  ended
]

export const sseOf = (frames: ReadonlyArray<Frame>): string =>
  frames.map((frame) => `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`).join("")

export const sse = (body: string | ReadonlyArray<Uint8Array>, init?: ResponseInit): Response => {
  const parts = typeof body === "string" ? [new TextEncoder().encode(body)] : body
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const part of parts) controller.enqueue(part)
      controller.close()
    }
  })
  return new Response(stream, { headers: { "content-type": "text/event-stream; charset=utf-8" }, ...init })
}

export type Answer = (request: HttpClientRequest.HttpClientRequest, index: number) => Response

export const clientOf = (answer: Answer): Layer.Layer<HttpClient.HttpClient> =>
  Layer.sync(HttpClient.HttpClient, () => {
    let asked = 0
    return HttpClient.make((request) =>
      Effect.sync(() => HttpClientResponse.fromWeb(request, answer(request, asked++)))
    )
  })

export const apiKey = Redacted.make("sk-ant-test")

export const hello: Request.Request = Request.make({ model: "claude-sonnet-5", messages: [Message.user("Hello")] })

/** The events of an answer, through the whole of the adapter. */
export const ask = (answer: Answer, request: Request.Request = hello, config: Anthropic.Config = {}) =>
  Stream.runCollect(Adapter.stream(request)).pipe(
    Effect.map(Chunk.toReadonlyArray),
    Effect.provide(Anthropic.layer({ apiKey, ...config })),
    Effect.provide(clientOf(answer))
  )

export const heard = (
  frames: ReadonlyArray<Frame>,
  request: Request.Request = hello,
  config: Anthropic.Config = {}
): Effect.Effect<ReadonlyArray<Event.AdapterEvent>, AdapterError.AdapterError> =>
  ask(() => sse(sseOf(frames)), request, config)

export const bodyOf = (request: HttpClientRequest.HttpClientRequest): Json =>
  request.body._tag === "Uint8Array" ? JSON.parse(new TextDecoder().decode(request.body.body)) : {}

/** What a request is written as. */
export const written = (request: Partial<Request.Request>, config: Anthropic.Config = {}): Json =>
  bodyOf(Either.getOrThrow(Anthropic.protocol(config).encode({ ...hello, ...request })))

/** Why a request cannot be written. */
export const unwritten = (request: Partial<Request.Request>, config: Anthropic.Config = {}) => {
  const { detail, reason } = Either.getOrThrow(
    Either.flip(Anthropic.protocol(config).encode({ ...hello, ...request }))
  )
  return { detail, reason }
}

export const tags = (events: ReadonlyArray<Event.Event>): ReadonlyArray<string> => events.map(({ _tag }) => _tag)

export const completion = (events: ReadonlyArray<Event.Event>) => {
  const last = events.at(-1)
  if (last?._tag !== "MessageCompleted") throw new Error(`the last event is ${last?._tag}`)
  return last
}
