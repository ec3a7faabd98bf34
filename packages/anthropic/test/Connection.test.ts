import { Anthropic } from "@allm/anthropic"
import { Allm } from "@allm/core"
import { FetchHttpClient } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Fiber, Logger, Redacted, Schedule, Stream, Tracer } from "effect"
import { begin, refuse, say, serve } from "./server.ts"
import { apiKey, started, text } from "./wire.ts"

const settings = { model: "claude-sonnet-5", apiKey }

describe("a connection", () => {
  for (
    const [client, Client] of [
      ["fetch", FetchHttpClient.layer],
      ["node:http", NodeHttpClient.layer]
    ] as const
  ) {
    it.scopedLive(`is closed when the chat is interrupted (${client})`, () =>
      Effect.gen(function*() {
        const asked = yield* Deferred.make<void>()
        const server = yield* serve((response) => {
          say(begin(response), [started(), ...text(0, "Hel").slice(0, -1)])
          Deferred.unsafeDone(asked, Effect.void)
        })
        const chat = Allm.stream("Hi").pipe(
          Stream.runDrain,
          Effect.provide(Anthropic.engine({ ...settings, baseUrl: server.url })),
          Effect.provide(Client)
        )

        const running = yield* Effect.fork(chat)
        yield* Deferred.await(asked)
        assert.strictEqual(yield* server.open, 1)
        yield* Fiber.interrupt(running)

        yield* server.open.pipe(
          Effect.repeat({ schedule: Schedule.spaced("10 millis"), until: (open) => open === 0 }),
          Effect.timeout("5 seconds")
        )
      }))
  }
})

describe("a key", () => {
  const secret = "sk-ant-very-secret"

  it.scopedLive("appears in no error, log or span, though the server repeats it", () =>
    Effect.gen(function*() {
      const server = yield* serve((response, _body, request) =>
        refuse(response, 401, {
          type: "authentication_error",
          message: `invalid x-api-key ${request.headers["x-api-key"]}`
        })
      )
      const seen: Array<unknown> = []
      const tracer = Tracer.make({
        span: (name, parent, context, links, startTime, kind) => {
          const attributes = new Map<string, unknown>()
          seen.push(name, attributes)
          return {
            _tag: "Span",
            name,
            spanId: name,
            traceId: name,
            parent,
            context,
            links,
            kind,
            attributes,
            sampled: true,
            status: { _tag: "Started", startTime },
            attribute: (key, value) => void attributes.set(key, value),
            event: (event, _time, values) => void seen.push(event, values),
            addLinks: () => {},
            // What a span succeeded with stays in the process: it is the response itself, with its request.
            end: (_time, exit) =>
              void seen.push(exit._tag === "Failure" ? [exit.cause, Cause.pretty(exit.cause)] : exit._tag)
          }
        },
        context: (f) => f()
      })
      const logger = Logger.make((options) => void seen.push(options.message, Cause.pretty(options.cause)))

      const error = yield* Effect.flip(Effect.asVoid(Allm.chat("Hi"))).pipe(
        Effect.tapErrorCause(Effect.logError),
        Effect.tap((error) => Effect.logError("refused", error)),
        Effect.provide(Anthropic.engine({ ...settings, apiKey: Redacted.make(secret), baseUrl: server.url })),
        Effect.provide(FetchHttpClient.layer),
        Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
        Effect.withTracer(tracer),
        Effect.withTracerEnabled(true)
      )

      assert.include(error.message, "invalid x-api-key <redacted>")
      assert.strictEqual(error._tag === "AdapterError" && error.reason, "authentication_failed")
      const all = JSON.stringify([seen, error, String(error), (error as Error).stack], (_key, value: unknown) =>
        value instanceof Map ? [...value] : typeof value === "bigint" ? String(value) : value)
      assert.include(all, "/v1/messages")
      assert.notInclude(all, secret)
    }))
})
