import { Effect, type Scope } from "effect"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

/** A request as a server on the loopback sees it. */
export interface Received {
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  // oxlint-disable-next-line typescript/no-explicit-any -- Bodies are compared, not computed with.
  readonly body: any
}

export interface Server {
  readonly url: string
  readonly received: ReadonlyArray<Received>
  /** Answers that are being given. */
  readonly open: () => number
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  const parts: Array<Buffer> = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts).toString("utf8")
}

/** A server on the loopback, for as long as the scope. The n-th request is answered by the n-th handler. */
export const serve = (
  handlers: ReadonlyArray<(response: ServerResponse) => void>
): Effect.Effect<Server, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const received: Array<Received> = []
      let open = 0
      const server = createServer((request, response) => {
        open++
        response.on("close", () => open--)
        void bodyOf(request).then((text) => {
          received.push({ path: request.url ?? "", headers: request.headers, body: JSON.parse(text) })
          const handler = handlers[received.length - 1]
          if (handler === undefined) response.writeHead(500).end("nothing is left to say")
          else handler(response)
        })
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const { port } = server.address() as AddressInfo
      return { server, shown: { url: `http://127.0.0.1:${port}`, received, open: () => open } }
    }),
    ({ server }) =>
      Effect.promise(() => {
        server.closeAllConnections()
        return new Promise<void>((resolve) => server.close(() => resolve()))
      })
  ).pipe(Effect.map(({ shown }) => shown))

export const refuse =
  (status: number, body: unknown, headers: Record<string, string> = {}) => (response: ServerResponse): void => {
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body))
  }

export const json = (body: unknown) => refuse(200, body)

interface Frame {
  readonly type: string
}

/** Frames as server-sent events; `open` leaves the connection as it is. */
export const events = (frames: ReadonlyArray<Frame>, open = false) => (response: ServerResponse): void => {
  response.writeHead(200, { "content-type": "text/event-stream" })
  for (const frame of frames) response.write(`event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`)
  if (!open) response.end()
}
