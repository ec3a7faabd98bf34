import { AdapterError, Fake } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, TestClock } from "effect"
import { goHome, Taxis } from "./28-testing.ts"

const call = [
  Fake.toolCall({ id: "call_0", name: "call_taxi", arguments: { address: "Karl Johans gate 1" } }),
  Fake.finish("tool_calls")
]

const says = (text: string) => [Fake.text(text), Fake.finish("stop")]

const taxis = (answer: Effect.Effect<string, "no taxi is free">) => Layer.succeed(Taxis, { call: () => answer })

const busy = new AdapterError.AdapterError({ reason: "rate_limited", retryAfter: Duration.seconds(7) })

/** What the model read of the tool. */
const read = Effect.map(Fake.requests, (requests) => requests.at(-1)?.messages.at(-1)?.content)

describe("goHome", () => {
  it.effect("tells the model which taxi comes", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* goHome("Karl Johans gate 1"), "It is on its way.")

      assert.strictEqual(yield* read, "number 12, in 4 minutes")
    }).pipe(
      Effect.provide(Fake.engine({ scripts: [call, says("It is on its way.")] })),
      Effect.provide(taxis(Effect.succeed("number 12, in 4 minutes")))
    ))

  it.effect("tells the model that no taxi is free", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* goHome("Karl Johans gate 1"), "Walk.")

      assert.strictEqual(yield* read, `{"error":"no taxi is free"}`)
    }).pipe(
      Effect.provide(Fake.engine({ scripts: [call, says("Walk.")] })),
      Effect.provide(taxis(Effect.fail("no taxi is free")))
    ))

  it.effect("waits two minutes for a taxi, and not longer", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.fork(goHome("Karl Johans gate 1"))

      yield* TestClock.adjust("119 seconds")
      assert.strictEqual((yield* Fake.requests).length, 1)

      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Fiber.join(fiber), "Nobody answers. Walk.")
      assert.strictEqual(yield* read, `{"error":"tool error (call_taxi): timeout"}`)
    }).pipe(
      Effect.provide(Fake.engine({ scripts: [call, says("Nobody answers. Walk.")] })),
      Effect.provide(taxis(Effect.never))
    ))

  it.effect("asks again when the provider is busy, as late as it says", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.fork(goHome("Karl Johans gate 1"))

      yield* TestClock.adjust("6 seconds")
      assert.strictEqual((yield* Fake.requests).length, 1)

      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* Fiber.join(fiber), "Take the tram.")
    }).pipe(
      Effect.provide(Fake.engine({ scripts: [[Fake.preflightError(busy)], says("Take the tram.")] })),
      Effect.provide(taxis(Effect.never))
    ))
})
