import { Effect } from "effect"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { type Frame, type Json, sseOf } from "./wire.ts"

/** What a server does with a request. */
export type Handler = (response: ServerResponse, body: Json, request: IncomingMessage) => void

/** A server on a port of its own, for as long as the scope lasts. `open` tells how many answers are being given. */
export const serve = (handle: Handler) =>
  Effect.acquireRelease(
    Effect.async<{ readonly url: string; readonly open: Effect.Effect<number>; readonly close: () => void }>(
      (resume) => {
        let open = 0
        const server = createServer((request, response) => {
          open++
          response.on("close", () => open--)
          const parts: Array<Buffer> = []
          request.on("data", (part: Buffer) => parts.push(part))
          request.on("end", () => handle(response, JSON.parse(Buffer.concat(parts).toString("utf8")) as Json, request))
        })
        server.listen(0, "127.0.0.1", () =>
          resume(Effect.succeed({
            url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
            open: Effect.sync(() => open),
            close: () => {
              server.close()
              server.closeAllConnections()
            }
          })))
      }
    ),
    ({ close }) => Effect.sync(close)
  )

export const begin = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "request-id": "req_1" })

export const say = (response: ServerResponse, frames: ReadonlyArray<Frame>): void => {
  response.write(sseOf(frames))
}

export const answer = (response: ServerResponse, frames: ReadonlyArray<Frame>): void => {
  begin(response).end(sseOf(frames))
}

export const refuse = (
  response: ServerResponse,
  status: number,
  error: Json,
  headers: Record<string, string> = {}
): void => {
  response.writeHead(status, { "content-type": "application/json", ...headers })
  response.end(JSON.stringify({ type: "error", error }))
}
