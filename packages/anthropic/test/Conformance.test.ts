import { Anthropic } from "@allm/anthropic"
import { AdapterSuite } from "@allm/conformance"
import { Adapter } from "@allm/core"
import { FetchHttpClient } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import { Context, Duration, Effect, Layer } from "effect"
import { answer, begin, type Handler, refuse, say, serve } from "./server.ts"
import { answerOf, apiKey, call, ended, type Frame, type Json, started, stopped, text } from "./wire.ts"

const lastText = (body: Json): string => {
  const turn = (body.messages as ReadonlyArray<{ readonly content: ReadonlyArray<{ readonly text: string }> }>).at(-1)
  return turn?.content.at(-1)?.text ?? ""
}

const errorTypes = new Map([
  [400, "invalid_request_error"],
  [401, "authentication_error"],
  [429, "rate_limit_error"],
  [503, "overloaded_error"]
])

const frames = (pieces: ReadonlyArray<string>): ReadonlyArray<Frame> => [started(), ...text(0, ...pieces).slice(0, -1)]

for (
  const [client, Client] of [
    ["fetch", FetchHttpClient.layer],
    ["node:http", NodeHttpClient.layer]
  ] as const
) {
  const subject = (handle: Handler) =>
    Effect.gen(function*() {
      const server = yield* serve(handle)
      const config: Anthropic.Config = { apiKey, baseUrl: server.url, model: "claude-3-5-haiku-latest" }
      const context = yield* Layer.build(Layer.provide(Anthropic.layer(config), Client))
      return { adapter: Context.get(context, Adapter.Adapter), open: server.open }
    })

  AdapterSuite.run(`Anthropic over ${client}`, {
    live: true,
    scenarios: {
      text: (pieces) => subject((response) => answer(response, answerOf(...text(0, ...pieces)))),
      echo: () => subject((response, body) => answer(response, answerOf(...text(0, ...lastText(body).split(/(?= )/))))),
      toolCalls: (calls) =>
        subject((response) =>
          answer(response, [
            started(),
            ...calls.flatMap(({ id, name, pieces }, index) => call(index, { id, name }, ...pieces)),
            stopped("tool_use"),
            ended
          ])
        ),
      brokenArguments: ({ id, name, pieces }) =>
        subject((response) =>
          answer(response, [started(), ...call(0, { id, name }, ...pieces), stopped("tool_use"), ended])
        ),
      failure: ({ retryAfter, status }) =>
        subject((response) =>
          refuse(
            response,
            status,
            { type: errorTypes.get(status), message: "No." },
            retryAfter === undefined ? {} : { "retry-after": String(Duration.toSeconds(retryAfter)) }
          )
        ),
      cut: (pieces) =>
        subject((response) => {
          say(begin(response), frames(pieces))
          // The bytes are on their way before the connection breaks.
          setTimeout(() => response.destroy(), 50)
        }),
      slow: (pieces) => subject((response) => say(begin(response), pieces.length === 0 ? [started()] : frames(pieces)))
    }
  })
}
