import { Tool, ToolCall, ToolRunner } from "@allm/core"
import { afterEach, assert, describe, it, vi } from "@effect/vitest"
import { Effect, FastCheck, Fiber, Ref, Schema, Stream } from "effect"

const call = (id: string, name: string, args: unknown = {}) => ToolCall.make({ id, name, arguments: args })

const calls = (size: number, name: string, args: unknown = {}) =>
  Array.from({ length: size }, (_, i) => call(`c${i}`, name, args))

/** Watches who runs beside whom. Tools tell it when they begin and end. */
class Floor {
  peak = 0
  readonly starts: Array<string> = []
  readonly ends: Array<string> = []
  readonly active = new Set<string>()
  /** Who was running when a call started, by call. */
  readonly beside = new Map<string, ReadonlyArray<string>>()

  visit(id: string, turns: number): Effect.Effect<string> {
    return Effect.suspend(() => {
      this.beside.set(id, [...this.active])
      this.active.add(id)
      this.starts.push(id)
      this.peak = Math.max(this.peak, this.active.size)
      return Effect.yieldNow().pipe(
        Effect.repeatN(turns - 1),
        Effect.zipRight(Effect.sync(() => {
          this.active.delete(id)
          this.ends.push(id)
          return id
        }))
      )
    })
  }
}

const Turns = Schema.Struct({ turns: Schema.Number })

const visitor = (floor: Floor) =>
  Tool.make("visitor", {
    description: "Stays for some turns",
    parameters: Turns,
    handler: ({ turns }, { toolCall }) => floor.visit(toolCall.id, turns)
  })

const someTurns = FastCheck.integer({ min: 1, max: 5 })

describe("ToolRunner: concurrency", () => {
  describe("the bound", () => {
    it.effect.prop(
      "RUN-46 is reached and never exceeded",
      { turns: FastCheck.array(someTurns, { maxLength: 40 }), bound: FastCheck.integer({ min: 1, max: 50 }) },
      ({ bound, turns }) =>
        Effect.gen(function*() {
          const floor = new Floor()
          const batch = turns.map((n, i) => call(`c${i}`, "visitor", { turns: n }))
          const { messages } = yield* ToolRunner.run(batch, [visitor(floor)], { concurrency: bound })

          assert.strictEqual(floor.peak, Math.min(bound, batch.length))
          assert.deepStrictEqual(messages.map((message) => message.content), batch.map(({ id }) => id))
        })
    )

    it.effect("RUN-46 runs twenty calls two at a time", () =>
      Effect.gen(function*() {
        const floor = new Floor()
        yield* ToolRunner.run(calls(20, "visitor", { turns: 3 }), [visitor(floor)], { concurrency: 2 })

        assert.strictEqual(floor.peak, 2)
        assert.strictEqual(floor.ends.length, 20)
      }))

    it.effect("holds for promises too", () =>
      Effect.gen(function*() {
        const seen: Array<number> = []
        let active = 0
        const promised = Tool.make("promised", {
          description: "Awaits a little",
          handler: async () => {
            seen.push(++active)
            for (let i = 0; i < 3; i++) await Promise.resolve()
            active--
            return "done"
          }
        })
        yield* ToolRunner.run(calls(20, "promised"), [promised], { concurrency: 3 })

        assert.strictEqual(Math.max(...seen), 3)
      }))

    it.effect("holds for a stream", () =>
      Effect.gen(function*() {
        const floor = new Floor()
        yield* Stream.runDrain(
          ToolRunner.stream(calls(20, "visitor", { turns: 3 }), [visitor(floor)], { concurrency: 4 })
        )

        assert.strictEqual(floor.peak, 4)
      }))

    it.effect("is lifted by \"unbounded\"", () =>
      Effect.gen(function*() {
        const floor = new Floor()
        yield* ToolRunner.run(calls(300, "visitor", { turns: 1 }), [visitor(floor)], { concurrency: "unbounded" })

        assert.strictEqual(floor.peak, 300)
      }))
  })

  describe("the default bound", () => {
    afterEach(() => {
      vi.unstubAllGlobals()
    })

    const peakOf = (size: number) =>
      Effect.gen(function*() {
        const floor = new Floor()
        yield* ToolRunner.run(calls(size, "visitor", { turns: 1 }), [visitor(floor)])
        return floor.peak
      })

    it.effect("is twice what the hardware runs at once", () =>
      Effect.gen(function*() {
        vi.stubGlobal("navigator", { hardwareConcurrency: 3 })

        assert.strictEqual(yield* peakOf(50), 6)
      }))

    it.effect("is 16 where the platform does not tell", () =>
      Effect.gen(function*() {
        vi.stubGlobal("navigator", undefined)

        assert.strictEqual(yield* peakOf(50), 16)
      }))

    it.effect("is at least one", () =>
      Effect.gen(function*() {
        vi.stubGlobal("navigator", { hardwareConcurrency: 0 })

        assert.strictEqual(yield* peakOf(3), 1)
      }))
  })

  describe("the order of starts", () => {
    it.effect.prop(
      "is the order of the calls, however long each takes",
      { turns: FastCheck.array(someTurns, { maxLength: 30 }), bound: FastCheck.integer({ min: 1, max: 10 }) },
      ({ bound, turns }) =>
        Effect.gen(function*() {
          const floor = new Floor()
          const batch = turns.map((n, i) => call(`c${i}`, "visitor", { turns: n }))
          yield* ToolRunner.run(batch, [visitor(floor)], { concurrency: bound })

          assert.deepStrictEqual(floor.starts, batch.map(({ id }) => id))
        })
    )

    it.effect("is told as it happens: a queued call has not started", () =>
      Effect.gen(function*() {
        const floor = new Floor()
        const events = yield* Stream.runCollect(
          ToolRunner.stream(calls(2, "visitor", { turns: 2 }), [visitor(floor)], { concurrency: 1 })
        )

        assert.deepStrictEqual(
          Array.from(events, (event) => event._tag === "ManualToolCalls" ? "" : `${event.toolCallId} ${event._tag}`),
          [
            "c0 ToolExecutionStarted",
            "c0 ToolExecutionCompleted",
            "c0 ToolResultEncoded",
            "c1 ToolExecutionStarted",
            "c1 ToolExecutionCompleted",
            "c1 ToolResultEncoded"
          ]
        )
      }))
  })

  describe("exclusive", () => {
    const alone = (floor: Floor) =>
      Tool.make("alone", {
        description: "Must be alone",
        parameters: Turns,
        exclusive: true,
        handler: ({ turns }, { toolCall }) => floor.visit(toolCall.id, turns)
      })

    const writer = (floor: Floor) =>
      Tool.make("writer", {
        description: "Writes a file",
        parameters: { turns: Schema.Number, file: Schema.String },
        exclusive: "file",
        handler: ({ turns }, { toolCall }) => floor.visit(toolCall.id, turns)
      })

    it.effect("runs alone, after those before it and before those behind it", () =>
      Effect.gen(function*() {
        const floor = new Floor()
        yield* ToolRunner.run(
          [
            call("c0", "visitor", { turns: 9 }),
            call("c1", "visitor", { turns: 1 }),
            call("c2", "alone", { turns: 3 }),
            call("c3", "visitor", { turns: 1 }),
            call("c4", "visitor", { turns: 1 })
          ],
          [visitor(floor), alone(floor)],
          { concurrency: "unbounded" }
        )

        assert.deepStrictEqual(floor.starts, ["c0", "c1", "c2", "c3", "c4"])
        assert.deepStrictEqual(floor.beside.get("c2"), [])
        assert.deepStrictEqual(floor.beside.get("c3"), [])
        assert.deepStrictEqual(floor.beside.get("c4"), ["c3"])
      }))

    it.effect("by key keeps calls with the same key apart and lets others pass", () =>
      Effect.gen(function*() {
        const floor = new Floor()
        yield* ToolRunner.run(
          [
            call("c0", "writer", { turns: 5, file: "a" }),
            call("c1", "writer", { turns: 1, file: "a" }),
            call("c2", "writer", { turns: 1, file: "b" }),
            call("c3", "visitor", { turns: 1 })
          ],
          [visitor(floor), writer(floor)],
          { concurrency: "unbounded" }
        )

        assert.deepStrictEqual(floor.starts, ["c0", "c2", "c3", "c1"])
        assert.deepStrictEqual(floor.beside.get("c2"), ["c0"])
        assert.deepStrictEqual(floor.beside.get("c1"), [])
      }))

    it.effect("by function keeps calls with the same key apart", () =>
      Effect.gen(function*() {
        const floor = new Floor()
        const folder = Tool.make("folder", {
          description: "Writes into a folder",
          parameters: { path: Schema.String },
          exclusive: ({ path }) => path.split("/")[0]!,
          handler: (_, { toolCall }) => floor.visit(toolCall.id, 2)
        })
        yield* ToolRunner.run(
          [
            call("c0", "folder", { path: "a/x" }),
            call("c1", "folder", { path: "a/y" }),
            call("c2", "folder", {
              path: "b/x"
            })
          ],
          [folder],
          { concurrency: "unbounded" }
        )

        assert.deepStrictEqual(floor.starts, ["c0", "c2", "c1"])
      }))

    it.effect("lets the next go when the one before failed", () =>
      Effect.gen(function*() {
        const fragile = Tool.make("fragile", {
          description: "Throws",
          exclusive: true,
          handler: () => Effect.zipRight(Effect.yieldNow(), Effect.die("boom"))
        })
        const { outcomes } = yield* ToolRunner.run(calls(3, "fragile"), [fragile])

        assert.deepStrictEqual(outcomes.map(({ result }) => result._tag), [
          "HandlerRaised",
          "HandlerRaised",
          "HandlerRaised"
        ])
      }))

    it.effect("reports a key function that throws as a crash of its own call", () =>
      Effect.gen(function*() {
        const floor = new Floor()
        const broken = Tool.make("broken", {
          description: "Has no key",
          exclusive: () => {
            throw new Error("no key")
          },
          handler: () => "unreachable"
        })
        const { messages } = yield* ToolRunner.run(
          [call("c0", "broken"), call("c1", "visitor", { turns: 1 })],
          [broken, visitor(floor)]
        )

        assert.deepStrictEqual(messages.map((message) => message.content), [
          "{\"error\":\"tool error (broken): handler_raised\"}",
          "c1"
        ])
      }))

    const kind = FastCheck.constantFrom("visitor", "alone", "a", "b")

    it.effect.prop(
      "holds in every mixture, within the bound",
      {
        visits: FastCheck.array(FastCheck.record({ kind, turns: someTurns }), { maxLength: 25 }),
        bound: FastCheck.integer({ min: 1, max: 6 })
      },
      ({ bound, visits }) =>
        Effect.gen(function*() {
          const floor = new Floor()
          const kinds = new Map(visits.map((visit, i) => [`c${i}`, visit.kind]))
          const batch = visits.map((visit, i) =>
            visit.kind === "visitor" || visit.kind === "alone"
              ? call(`c${i}`, visit.kind, { turns: visit.turns })
              : call(`c${i}`, "writer", { turns: visit.turns, file: visit.kind })
          )
          const { messages } = yield* ToolRunner.run(batch, [visitor(floor), alone(floor), writer(floor)], {
            concurrency: bound
          })

          assert.deepStrictEqual(messages.map((message) => message.content), batch.map(({ id }) => id))
          assert.isAtMost(floor.peak, bound)
          for (const [id, others] of floor.beside) {
            const mine = kinds.get(id)
            const theirs = others.map((other) => kinds.get(other))
            if (mine === "alone") assert.deepStrictEqual(others, [])
            assert.notInclude(theirs, "alone")
            if (mine !== "visitor") assert.notInclude(theirs, mine)
          }
          for (const group of ["visitor", "alone", "a", "b"]) {
            const inOrder = batch.map(({ id }) => id).filter((id) => kinds.get(id) === group)
            assert.deepStrictEqual(floor.starts.filter((id) => kinds.get(id) === group), inOrder)
          }
        })
    )
  })

  describe("a large synchronous batch", () => {
    const plain = Tool.make("plain", { description: "Answers at once", handler: () => "done" })

    it.effect("lets other fibers have their turn", () =>
      Effect.gen(function*() {
        const turns = yield* Ref.make(0)
        const other = yield* Effect.fork(
          Effect.forever(Effect.zipRight(Effect.yieldNow(), Ref.update(turns, (n) => n + 1)))
        )
        yield* Effect.yieldNow()
        const before = yield* Ref.get(turns)
        const { messages } = yield* ToolRunner.run(calls(10_000, "plain"), [plain])
        const taken = (yield* Ref.get(turns)) - before
        yield* Fiber.interrupt(other)

        assert.strictEqual(messages.length, 10_000)
        assert.isAtLeast(taken, 10)
      }))

    it.live("can be interrupted half-way", () =>
      Effect.gen(function*() {
        let ran = 0
        const counting = Tool.make("counting", { description: "Counts", handler: () => ++ran })
        const fiber = yield* Effect.fork(ToolRunner.run(calls(10_000, "counting"), [counting]))
        yield* Effect.yieldNow()
        yield* Fiber.interrupt(fiber)
        const atInterrupt = ran
        yield* Effect.sleep(10)

        assert.isBelow(atInterrupt, 10_000)
        assert.strictEqual(ran, atInterrupt)
      }))
  })
})
