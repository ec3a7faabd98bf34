import { type AdapterChecks, AdapterSuite } from "@allm/conformance"
import { Adapter } from "@allm/core"
import { Duration, Effect } from "effect"
import type { ServerResponse } from "node:http"
import { type Body, chunk, frames, overFetch, serve, stop } from "./support.ts"

type Play = (body: Body, response: ServerResponse) => void

/** A server that plays a model, and our adapter at the other end of the wire. */
const served = (play: Play): AdapterChecks.Subject =>
  Effect.gen(function*() {
    const { open, url } = yield* serve((_request, response, body) => play(JSON.parse(body) as Body, response))
    const adapter = yield* Effect.provide(Adapter.Adapter, overFetch(url))
    return { adapter, open: Effect.sync(open) }
  })

const begin = (response: ServerResponse): void => {
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.flushHeaders()
}

const says = (pieces: ReadonlyArray<string>, response: ServerResponse): void => {
  begin(response)
  for (const text of pieces) response.write(frames(chunk([{ text }])))
}

const lastText = (body: Body): string => {
  const contents = body["contents"] as ReadonlyArray<{ readonly parts: ReadonlyArray<{ readonly text?: string }> }>
  return contents.at(-1)?.parts.map(({ text }) => text ?? "").join("") ?? ""
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const calls = (scripted: ReadonlyArray<AdapterChecks.ScriptedCall>): Play => (_body, response) => {
  begin(response)
  const parts = scripted.map(({ name, pieces }) => ({ functionCall: { name, args: parsed(pieces.join("")) } }))
  response.end(frames(chunk(parts), chunk([{ text: "" }], stop)))
}

const statuses = { 400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE" }

AdapterSuite.run("Google over HTTP", {
  live: true,
  scenarios: {
    text: (pieces) =>
      served((_body, response) => {
        says(pieces, response)
        response.end(frames(chunk([], stop)))
      }),
    echo: () =>
      served((body, response) => {
        says(lastText(body).split(/(?= )/), response)
        response.end(frames(chunk([], stop)))
      }),
    toolCalls: (scripted) => served(calls(scripted)),
    // Gemini itself has no such thing; servers that speak its protocol may.
    brokenArguments: (call) => served(calls([call])),
    failure: ({ retryAfter, status }) =>
      served((_body, response) => {
        const retryDelay = retryAfter === undefined ? undefined : `${Duration.toSeconds(retryAfter)}s`
        const details = [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay }]
        response.writeHead(status, { "content-type": "application/json" })
        response.end(JSON.stringify({
          error: { code: status, message: "No.", status: statuses[status as 400], details }
        }))
      }),
    cut: (pieces) =>
      served((_body, response) => {
        says(pieces, response)
        setTimeout(() => response.destroy(), 20)
      }),
    slow: (pieces) => served((_body, response) => pieces.length === 0 ? undefined : says(pieces, response))
  }
})
