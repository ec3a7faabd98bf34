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

export type Handler = (received: Received, response: ServerResponse) => void

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  const parts: Array<Buffer> = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts).toString("utf8")
}

/** A server on the loopback, for as long as the scope. */
export const serve = (handler: Handler): Effect.Effect<Server, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const received: Array<Received> = []
      let open = 0
      const server = createServer((request, response) => {
        open++
        response.on("close", () => open--)
        void bodyOf(request).then((text) => {
          received.push({ path: request.url ?? "", headers: request.headers, body: JSON.parse(text) })
          handler(received.at(-1)!, response)
        })
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const { port } = server.address() as AddressInfo
      return { server, shown: { url: `http://127.0.0.1:${port}/v1`, received, open: () => open } }
    }),
    ({ server }) =>
      Effect.promise(() => {
        server.closeAllConnections()
        return new Promise<void>((resolve) => server.close(() => resolve()))
      })
  ).pipe(Effect.map(({ shown }) => shown))

export const begin = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { "content-type": "text/event-stream" })

export const write = (response: ServerResponse, frames: ReadonlyArray<unknown>): void => {
  for (const frame of frames) {
    response.write(`data: ${typeof frame === "string" ? frame : JSON.stringify(frame)}\n\n`)
  }
}
