import { Allm, Fake, Tool } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, FiberRef } from "effect"

const calling = (id: string, name: string): Fake.Script => [Fake.toolCall({ id, name }), Fake.finish("tool_calls")]
const done: Fake.Script = [Fake.text("done"), Fake.finish("stop")]

describe("a chat and the fiber that runs it", () => {
  it.effect("what a tool changed for good is seen by the next turn, and by the caller", () =>
    Effect.gen(function*() {
      const count = FiberRef.unsafeMake(0)
      const increase = Tool.make("increase", {
        description: "Counts on the fiber",
        handler: () => FiberRef.updateAndGet(count, (n) => n + 1)
      })
      const result = yield* Allm.chat("hi", { tools: [increase] })

      assert.deepStrictEqual(result.steps.map((step) => step.toolResults[0]?.content), ["1", "2", undefined])
      assert.strictEqual(yield* FiberRef.get(count), 2)
    }).pipe(Effect.provide(Fake.engine({ scripts: [calling("c0", "increase"), calling("c1", "increase"), done] }))))

  it.effect("turns that never wait leave others their turn", () =>
    Effect.gen(function*() {
      let turns = 0
      let turnsSeen = -1
      const count = Tool.make("count", { description: "Counts", handler: () => ++turns })
      const other = yield* Effect.fork(Effect.zipRight(
        Effect.yieldNow(),
        Effect.sync(() => {
          turnsSeen = turns
        })
      ))
      yield* Allm.chat("hi", { tools: [count], maxTurns: 1_000 })
      yield* Fiber.join(other)

      assert.strictEqual(turns, 1_000)
      assert.isBelow(turnsSeen, 1_000)
    }).pipe(Effect.provide(Fake.engine({ respond: (_request, index) => calling(`c${index}`, "count") }))))
})
