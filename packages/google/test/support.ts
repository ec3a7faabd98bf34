import { Adapter, type Event, Message, Request } from "@allm/core"
import { Google } from "@allm/google"
import { FetchHttpClient, HttpClient, type HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { Chunk, Effect, Either, Layer, Redacted, type Scope, Stream } from "effect"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export const model = "gemini-2.5-flash"

/** A request with what most of them have. */
export const requestOf = (fields: Partial<Request.Request> = {}): Request.Request =>
  Request.make({ model, messages: [Message.user("Hi")], ...fields })

export const hi = requestOf()

type Answer = (request: HttpClientRequest.HttpClientRequest) => Response

/** A client that is answered in the process. */
export const clientOf = (answer: Answer): Layer.Layer<HttpClient.HttpClient> =>
  Layer.succeed(
    HttpClient.HttpClient,
    HttpClient.make((request) => Effect.sync(() => HttpClientResponse.fromWeb(request, answer(request))))
  )

export const sse = (parts: string | ReadonlyArray<Uint8Array>, init?: ResponseInit): Response => {
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const part of typeof parts === "string" ? [new TextEncoder().encode(parts)] : parts) controller.enqueue(part)
      controller.close()
    }
  })
  return new Response(stream, { headers: { "content-type": "text/event-stream" }, ...init })
}

/** As Gemini writes them: with CRLF. */
export const frames = (...chunks: ReadonlyArray<unknown>): string =>
  chunks.map((chunk) => `data: ${typeof chunk === "string" ? chunk : JSON.stringify(chunk)}\r\n\r\n`).join("")

export const adapterOf = (answer: Answer, config: Google.Config = {}): Layer.Layer<Adapter.Adapter> =>
  Google.layer({ apiKey: Redacted.make("a key"), ...config }).pipe(Layer.provide(clientOf(answer)))

/** The events of an answer. */
export const ask = (answer: Answer, request = hi, config?: Google.Config) =>
  Stream.runCollect(Adapter.stream(request)).pipe(
    Effect.map(Chunk.toReadonlyArray),
    Effect.provide(adapterOf(answer, config))
  )

/** The events of these chunks. */
export const read = (chunks: ReadonlyArray<unknown>, request = hi) => ask(() => sse(frames(...chunks)), request)

/** A chunk with parts. */
export const chunk = (parts: ReadonlyArray<unknown>, more: object = {}, rest: object = {}) => ({
  candidates: [{ content: { role: "model", parts }, index: 0, ...more }],
  modelVersion: "gemini-2.5-flash-001",
  responseId: "r1",
  ...rest
})

export const stop = { finishReason: "STOP" }

type Completed = Extract<Event.AdapterEvent, { readonly _tag: "MessageCompleted" }>

export const completedOf = (events: ReadonlyArray<Event.AdapterEvent>): Completed => {
  const last = events[events.length - 1]
  if (last?._tag !== "MessageCompleted") throw new Error(`the last event is ${JSON.stringify(last)}`)
  return last
}

export const messageOf = (events: ReadonlyArray<Event.AdapterEvent>): Message.AssistantMessage => {
  const { message } = completedOf(events)
  if (message === undefined) throw new Error("there is no message")
  return message
}

export type Body = { readonly [key: string]: unknown }

export const bodyOf = (request: HttpClientRequest.HttpClientRequest): Body => {
  if (request.body._tag !== "Uint8Array") throw new Error("the request has no body")
  return JSON.parse(new TextDecoder().decode(request.body.body)) as Body
}

/** What a request becomes. */
export const encoded = (request: Request.Request, config?: Google.Config): Body =>
  bodyOf(Either.getOrThrow(Google.protocol(config).encode(request)))

export const contentsOf = (
  messages: ReadonlyArray<Message.Message>,
  fields: Partial<Request.Request> = {}
): unknown => encoded(requestOf({ messages, ...fields }))["contents"]

/** A server on a port of its own, and how many answers it is giving. */
export const serve = (
  handle: (request: IncomingMessage, response: ServerResponse, body: string) => void
): Effect.Effect<{ readonly url: string; readonly open: () => number }, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.async<{ readonly url: string; readonly open: () => number; readonly close: () => void }>((resume) => {
      let open = 0
      const server = createServer((request, response) => {
        open++
        response.once("close", () => open--)
        const pieces: Array<Buffer> = []
        request.on("data", (piece: Buffer) => pieces.push(piece))
        request.on("end", () => handle(request, response, Buffer.concat(pieces).toString("utf8")))
      })
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo
        const close = () => {
          server.closeAllConnections()
          server.close()
        }
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}/v1beta`, open: () => open, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

export const overFetch = (baseUrl: string, config: Google.Config = {}): Layer.Layer<Adapter.Adapter> =>
  Google.layer({ apiKey: Redacted.make("a key"), baseUrl, ...config }).pipe(Layer.provide(FetchHttpClient.layer))
