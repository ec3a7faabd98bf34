import { Allm, type Event } from "@allm/core"
import { OpenAi, OpenAiChat } from "@allm/openai"
import { FetchHttpClient } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schedule, Stream } from "effect"
import { begin, serve, write } from "./server.ts"
import { responseStream } from "./wire.ts"

const protocols = [
  {
    name: "OpenAi",
    engine: OpenAi.engine,
    frames: responseStream([{ id: "m", type: "message", content: [{ type: "output_text", text: "Hello" }] }]).slice(
      0,
      4
    )
  },
  {
    name: "OpenAiChat",
    engine: OpenAiChat.engine,
    frames: [{ id: "c", choices: [{ index: 0, delta: { content: "Hello" } }] }]
  }
]

const until = (condition: () => boolean) =>
  Effect.sync(condition).pipe(
    Effect.repeat({ until: (holds) => holds, schedule: Schedule.spaced("5 millis") }),
    Effect.timeout("5 seconds")
  )

for (const { engine, frames, name } of protocols) {
  for (const [client, layer] of [["fetch", FetchHttpClient.layer], ["node", NodeHttpClient.layer]] as const) {
    describe(`${name} over ${client}`, () => {
      it.scopedLive("closes its connection when a chat is interrupted", () =>
        Effect.gen(function*() {
          const server = yield* serve((_, response) => write(begin(response), frames))
          const seen: Array<Event.Event> = []
          const fiber = yield* Allm.stream("Hi").pipe(
            Stream.runForEach((event) => Effect.sync(() => seen.push(event))),
            Effect.provide(engine({ baseUrl: server.url, model: "m" })),
            Effect.provide(layer),
            Effect.fork
          )
          yield* until(() => seen.some(({ _tag }) => _tag === "TextDelta"))
          assert.strictEqual(server.open(), 1)
          yield* Fiber.interrupt(fiber)
          yield* until(() => server.open() === 0)
        }))

      it.scopedLive("closes its connection when it is interrupted before an answer", () =>
        Effect.gen(function*() {
          const server = yield* serve(() => {})
          const fiber = yield* Allm.chat("Hi").pipe(
            Effect.provide(engine({ baseUrl: server.url, model: "m" })),
            Effect.provide(layer),
            Effect.fork
          )
          yield* until(() => server.received.length === 1)
          yield* Fiber.interrupt(fiber)
          yield* until(() => server.open() === 0)
        }))

      it.scopedLive("closes its connection when nobody reads the stream any more", () =>
        Effect.gen(function*() {
          const server = yield* serve((_, response) => write(begin(response), frames))
          yield* Allm.stream("Hi").pipe(
            Stream.takeUntil(({ _tag }) => _tag === "TextDelta"),
            Stream.runDrain,
            Effect.provide(engine({ baseUrl: server.url, model: "m" })),
            Effect.provide(layer)
          )
          yield* until(() => server.open() === 0)
        }))
    })
  }
}
