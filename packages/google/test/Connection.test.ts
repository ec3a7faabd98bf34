import { Allm, Engine } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { chunk, frames, overFetch, serve, stop } from "./support.ts"

const engineOf = (url: string) => Engine.layer({ model: "gemini-2.5-flash" }).pipe(Layer.provide(overFetch(url)))

/** Waits until it is so. */
const until = (isSo: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => isSo() ? Effect.void : Effect.zipRight(Effect.sleep("5 millis"), until(isSo))).pipe(
    Effect.timeout("5 seconds"),
    Effect.orDie
  )

describe("connections", () => {
  it.live("close when a chat is interrupted, seen by the server", () =>
    Effect.gen(function*() {
      let isClosed = false
      const { open, url } = yield* serve((_request, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.write(frames(chunk([{ text: "Hel" }])))
        response.once("close", () => {
          isClosed = !response.writableFinished
        })
      })
      let said = ""
      const running = yield* Allm.stream("Hi").pipe(
        Stream.runForEach((event) => Effect.sync(() => said += event._tag === "TextDelta" ? event.delta : "")),
        Effect.provide(engineOf(url)),
        Effect.fork
      )
      yield* until(() => said === "Hel")
      assert.strictEqual(open(), 1)

      yield* Fiber.interrupt(running)
      yield* until(() => open() === 0)
      assert.isTrue(isClosed)
    }).pipe(Effect.scoped))

  it.live("are used again for the next turn", () =>
    Effect.gen(function*() {
      const ports = new Set<number | undefined>()
      const { url } = yield* serve((request, response) => {
        ports.add(request.socket.remotePort)
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.end(frames(chunk([{ text: "Hello" }], stop)))
      })
      yield* Effect.repeatN(Allm.generate("Hi"), 9).pipe(Effect.provide(engineOf(url)))
      // One more is opened where the first is not quite free yet.
      assert.isBelow(ports.size, 4)
    }).pipe(Effect.scoped))
})
