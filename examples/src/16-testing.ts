/** A test of your own agent: the model is scripted, time is moved by hand, and nothing is waited for. */
import { AdapterError, Allm, Fake, Tool } from "@allm/core"
import { Console, Duration, Effect, Fiber, TestClock, TestContext } from "effect"
import assert from "node:assert/strict"

// --- what is tested ---

const callTaxi = Tool.make("call_taxi", {
  description: "Calls a taxi",
  timeout: "2 minutes",
  handler: () => Effect.never
})

const agent = (wish: string) =>
  Effect.map(Allm.chat(wish, { tools: [callTaxi] }), ({ finalResponse }) => finalResponse.outputText)

// --- the test ---

const busy = new AdapterError.AdapterError({ reason: "rate_limited", retryAfter: Duration.seconds(7) })

const Model = Fake.engine({
  scripts: [
    [Fake.preflightError(busy)],
    [Fake.toolCall({ id: "call_0", name: "call_taxi" }), Fake.finish("tool_calls")],
    [Fake.delay("1 second"), Fake.text("Nobody answers. Walk."), Fake.finish("stop")]
  ]
})

const test = Effect.gen(function*() {
  const fiber = yield* Effect.fork(agent("I have to go home"))

  yield* TestClock.adjust("6 seconds")
  assert.equal((yield* Fake.requests).length, 1)
  yield* Console.log("waits as long as the provider asks")

  yield* TestClock.adjust("2 seconds")
  yield* TestClock.adjust("2 minutes")
  assert.equal((yield* Fake.requests)[2]?.messages.at(-1)?.content, `{"error":"tool error (call_taxi): timeout"}`)
  yield* Console.log("tells the model that the taxi does not answer")

  yield* TestClock.adjust("1 second")
  assert.equal(yield* Fiber.join(fiber), "Nobody answers. Walk.")
  yield* Console.log("gives an answer all the same")
})

Effect.runPromise(test.pipe(Effect.provide(Model), Effect.provide(TestContext.TestContext)))
