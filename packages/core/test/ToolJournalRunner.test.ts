import { Allm, Fake, OnToolError, Tool, ToolCall, ToolJournal, ToolResult, ToolRunner } from "@allm/core"
import type { ToolError } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Chunk, Deferred, Effect, Fiber, Logger, Schema, Stream, TestClock } from "effect"

type Journal = typeof ToolJournal.ToolJournal.Service

const call = (id: string, name: string, args: unknown = {}) => ToolCall.make({ id, name, arguments: args })

const contents = (result: ToolRunner.RunResult) => result.messages.map((message) => message.content)

const counter = (name: string, replay: Tool.Replay = "never") => {
  const keys: Array<string> = []
  const tool = Tool.make(name, {
    description: "Counts its runs",
    replay,
    handler: (_params, context) => {
      keys.push(context.idempotencyKey)
      return `run ${keys.length}`
    }
  })
  return { tool, keys }
}

const withMemory = Effect.provide(ToolJournal.layerMemory)

const inSession = { sessionId: "s" }

const broken = (operation: "prepare" | "settle") =>
  new ToolJournal.JournalError({ reason: "unavailable", operation, sessionId: "s", detail: "the disk is full" })

describe("ToolJournal in a run", () => {
  describe("replay", () => {
    it.effect("answers a settled call without running it", () =>
      Effect.gen(function*() {
        const { keys, tool } = counter("pay")
        const first = yield* ToolRunner.run([call("c0", "pay")], [tool], inSession)
        const second = yield* ToolRunner.run([call("c0", "pay")], [tool], inSession)

        assert.deepStrictEqual(keys, ["s/c0"])
        assert.deepStrictEqual(second.messages, first.messages)
        assert.deepInclude(second.outcomes[0]?.result, { _tag: "Ok", value: "run 1" })
      }).pipe(withMemory))

    it.effect("uses the journal of the option before that of the context", () =>
      Effect.gen(function*() {
        const { keys, tool } = counter("pay")
        const other = yield* Effect.provide(ToolJournal.ToolJournal, ToolJournal.layerMemory)
        yield* ToolRunner.run([call("c0", "pay")], [tool], { ...inSession, journal: other })
        yield* ToolRunner.run([call("c0", "pay")], [tool], inSession)
        yield* ToolRunner.run([call("c0", "pay")], [tool], { ...inSession, journal: other })

        assert.strictEqual(keys.length, 2)
      }).pipe(withMemory))

    it.effect("leaves a run without a session alone", () =>
      Effect.gen(function*() {
        const { keys, tool } = counter("pay")
        yield* ToolRunner.run([call("c0", "pay")], [tool], { requestId: "r" })
        yield* ToolRunner.run([call("c0", "pay")], [tool], { requestId: "r" })

        assert.strictEqual(keys.length, 2)
      }).pipe(withMemory))

    it.effect("wants a session beside the option", () =>
      Effect.gen(function*() {
        const journal = yield* ToolJournal.ToolJournal
        const { tool } = counter("pay")
        const missing = yield* Effect.flip(ToolRunner.run([], [tool], { journal }))
        const wrong = yield* Effect.flip(ToolRunner.run([], [tool], { ...inSession, journal: {} as never }))

        assert.match(missing.message, /sessionId/)
        assert.match(wrong.message, /journal/)
      }).pipe(withMemory))

    it.effect("tells the same events again", () =>
      Effect.gen(function*() {
        const ask = Tool.make("ask", { description: "Asks", handler: () => ToolResult.askUser("Which?", { a: 1 }) })
        const stop = Tool.make("stop", { description: "Halts", handler: () => ToolResult.halt("enough", { n: 1 }) })
        const fails = Tool.make("fails", { description: "Fails", handler: () => Effect.fail("no") })
        const calls = [call("c0", "ask"), call("c1", "stop"), call("c2", "fails")]
        const told = ToolRunner.stream(calls, [ask, stop, fails], { ...inSession, onToolError: "halt" }).pipe(
          Stream.runCollect,
          Effect.map((events) => Chunk.toReadonlyArray(events).map(({ _tag }) => _tag))
        )
        const first = yield* told
        const result = yield* ToolRunner.run(calls, [ask, stop, fails], { ...inSession, onToolError: "halt" })

        assert.deepStrictEqual(yield* told, first)
        assert.deepStrictEqual(result.questions.map(({ options, question }) => [question, options]), [["Which?", {
          a: 1
        }]])
        assert.deepStrictEqual(contents(result), ["<awaiting user response>", "{\"n\":1}", "{\"error\":\"no\"}"])
        assert.strictEqual(result.halt?.reason, "ask_user")
        assert.deepInclude(result.outcomes[2]?.result, { _tag: "HandlerFailed", failure: "no" })
      }).pipe(withMemory))

    it.effect("does not ask the policy again about a failure it decided", () =>
      Effect.gen(function*() {
        let asked = 0
        const fails = Tool.make("fails", { description: "Fails", handler: () => Effect.fail("no") })
        const run = ToolRunner.run([call("c0", "fails")], [fails], {
          ...inSession,
          onToolError: () => {
            asked++
            return OnToolError.continueWith("never mind")
          }
        })
        yield* run
        const second: ToolRunner.RunResult = yield* run

        assert.strictEqual(asked, 1)
        assert.deepStrictEqual(contents(second), ["never mind"])
        assert.deepInclude(second.outcomes[0]?.result, { _tag: "Ok", value: "never mind" })
      }).pipe(withMemory))

    it.effect("brings values and declared failures back through the schemas of the tool", () =>
      Effect.gen(function*() {
        class Closed extends Schema.TaggedError<Closed>()("Closed", { until: Schema.Date }) {}
        const day = new Date("2026-01-02T00:00:00.000Z")
        const opens = Tool.make("opens", { description: "A date", success: Schema.Date, handler: () => day })
        const closed = Tool.make("closed", {
          description: "A declared failure",
          failure: Closed,
          handler: () => Effect.fail(new Closed({ until: day }))
        })
        const run = ToolRunner.run([call("c0", "opens"), call("c1", "closed")], [opens, closed], inSession)
        const first = yield* run
        const second = yield* run

        assert.deepStrictEqual(second.messages, first.messages)
        assert.deepInclude(second.outcomes[0]?.result, { _tag: "Ok", value: day })
        const error = second.outcomes[1]?.result
        assert.isTrue(error?._tag === "HandlerFailed" && error.failure instanceof Closed)
        assert.deepStrictEqual(error?._tag === "HandlerFailed" && (error.failure as Closed).until, day)
      }).pipe(withMemory))

    it.effect("runs calls that were never started, beside those that were settled", () =>
      Effect.gen(function*() {
        const { keys, tool } = counter("pay")
        yield* ToolRunner.run([call("c0", "pay")], [tool], inSession)
        const both = yield* ToolRunner.run([call("c0", "pay"), call("c1", "pay")], [tool], inSession)

        assert.deepStrictEqual(contents(both), ["run 1", "run 2"])
        assert.deepStrictEqual(keys, ["s/c0", "s/c1"])
      }).pipe(withMemory))

    it.effect("notes nothing of calls that cannot reach their handler", () =>
      Effect.gen(function*() {
        const journal = yield* ToolJournal.ToolJournal
        const prepared: Array<string> = []
        const watched: Journal = {
          ...journal,
          prepare: (key, asked) => {
            prepared.push(key.toolCallId)
            return journal.prepare(key, asked)
          }
        }
        const echo = Tool.make("echo", {
          description: "Echoes",
          parameters: { text: Schema.String },
          handler: ({ text }) => text
        })
        const gated = Tool.make("gated", { description: "Asks first", needsApproval: true, handler: () => "done" })
        const manual = Tool.make("manual", { description: "By hand", manual: true })
        yield* ToolRunner.run(
          [
            call("c0", "echo", { text: 1 }),
            call("c1", "gated"),
            call("c2", "manual"),
            call("c3", "echo", { text: "x" })
          ],
          [echo, gated, manual],
          { ...inSession, journal: watched }
        )

        assert.deepStrictEqual(prepared, ["c3"])
      }).pipe(withMemory))

    it.effect("gives settled results also where the budget is used up", () =>
      Effect.gen(function*() {
        const { keys, tool } = counter("pay")
        yield* ToolRunner.run([call("c0", "pay"), call("c1", "pay")], [tool], inSession)
        const chat = yield* Allm.chat("go", { ...inSession, budget: { maxToolCalls: 1 } }).pipe(
          Effect.provide(Fake.engine({
            tools: [tool],
            script: [
              ...["c0", "c1", "c2"].map((id) => Fake.toolCall({ id, name: "pay", arguments: {} })),
              Fake.finish("tool_calls")
            ]
          }))
        )

        assert.strictEqual(keys.length, 2)
        assert.deepStrictEqual(
          chat.steps[0]?.toolResults.map(({ content }) => content).slice(0, 2),
          ["run 1", "run 2"]
        )
      }).pipe(withMemory))

    it.effect("serves the loop, which finds it in the context", () =>
      Effect.gen(function*() {
        const { keys, tool } = counter("pay")
        const chat = Allm.chat("go", inSession).pipe(Effect.provide(Fake.engine({
          tools: [tool],
          scripts: [[Fake.toolCall({ id: "c0", name: "pay", arguments: {} }), Fake.finish("tool_calls")], [
            Fake.text("done"),
            Fake.finish("stop")
          ]]
        })))
        yield* chat
        const again = yield* chat

        assert.deepStrictEqual(keys, ["s/c0"])
        assert.deepStrictEqual(again.thread.messages.map((message) => message.content), ["go", "", "run 1", "done"])
      }).pipe(withMemory))
  })

  describe("in doubt", () => {
    const doubtful = Effect.fnUntraced(function*(name: string) {
      const journal = yield* ToolJournal.ToolJournal
      // A process that died between the two notes: this one never calls the handler's end.
      const stuck = Tool.make(name, { description: "Dies", handler: () => Effect.never })
      const fiber = yield* Effect.fork(ToolRunner.run([call("c0", name)], [stuck], { ...inSession, journal }))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(fiber)
    })

    it.effect.each(["readonly", "idempotent"] as const)(
      "runs a tool that is %s again, with the same key",
      (replay) =>
        Effect.gen(function*() {
          yield* doubtful("pay")
          const { keys, tool } = counter("pay", replay)
          const result = yield* ToolRunner.run([call("c0", "pay")], [tool], inSession)
          const again = yield* ToolRunner.run([call("c0", "pay")], [tool], inSession)

          assert.deepStrictEqual(contents(result), ["run 1"])
          assert.deepStrictEqual(contents(again), ["run 1"])
          assert.deepStrictEqual(keys, ["s/c0"])
        }).pipe(withMemory)
    )

    it.effect("gives the run and its repetition the same key", () =>
      Effect.gen(function*() {
        const keys: Array<string> = []
        const pay = (end: Effect.Effect<string>) =>
          Tool.make("pay", {
            description: "Pays",
            replay: "idempotent",
            handler: (_params, context) => {
              keys.push(context.idempotencyKey)
              return end
            }
          })
        const fiber = yield* Effect.fork(ToolRunner.run([call("c0", "pay")], [pay(Effect.never)], inSession))
        yield* Effect.yieldNow()
        yield* Fiber.interrupt(fiber)
        yield* ToolRunner.run([call("c0", "pay")], [pay(Effect.succeed("paid"))], inSession)

        assert.deepStrictEqual(keys, ["s/c0", "s/c0"])
      }).pipe(withMemory))

    it.effect("does not run any other tool again, and says so", () =>
      Effect.gen(function*() {
        yield* doubtful("pay")
        const { keys, tool } = counter("pay")
        const result = yield* ToolRunner.run([call("c0", "pay")], [tool], inSession)

        assert.deepStrictEqual(keys, [])
        assert.deepStrictEqual(contents(result), ["{\"error\":\"tool error (pay): outcome_unknown\"}"])
        assert.deepInclude(result.outcomes[0]?.result, { _tag: "OutcomeUnknown", toolCallId: "c0" })
      }).pipe(withMemory))

    it.effect("lets the policy decide about an unknown outcome, once", () =>
      Effect.gen(function*() {
        yield* doubtful("pay")
        const { keys, tool } = counter("pay")
        const asked: Array<string> = []
        const run = ToolRunner.run([call("c0", "pay")], [tool], {
          ...inSession,
          onToolError: (_call, error) => {
            asked.push(error._tag)
            return OnToolError.continueWith("it was paid")
          }
        })
        yield* run
        const second = yield* run

        assert.deepStrictEqual(asked, ["OutcomeUnknown"])
        assert.deepStrictEqual(keys, [])
        assert.deepStrictEqual(contents(second), ["it was paid"])
      }).pipe(withMemory))

    it.effect("halts at an unknown outcome where the policy says so", () =>
      Effect.gen(function*() {
        yield* doubtful("pay")
        const { tool } = counter("pay")
        const result = yield* ToolRunner.run([call("c0", "pay")], [tool], { ...inSession, onToolError: "halt" })

        assert.strictEqual(result.halt?.reason, "tool_error")
        assert.deepInclude(result.halt?.error, { _tag: "OutcomeUnknown", toolCallId: "c0" })
      }).pipe(withMemory))
  })

  describe("a failing journal", () => {
    it.effect("starts no call it could not note, and leaves the siblings", () =>
      Effect.gen(function*() {
        const memory = yield* ToolJournal.ToolJournal
        const { keys, tool } = counter("pay")
        const journal: Journal = {
          ...memory,
          prepare: (key, asked) => key.toolCallId === "c0" ? broken("prepare") : memory.prepare(key, asked)
        }
        const result = yield* ToolRunner.run([call("c0", "pay"), call("c1", "pay")], [tool], { ...inSession, journal })
        const error = result.outcomes[0]?.result

        assert.deepStrictEqual(keys, ["s/c1"])
        assert.deepInclude(error, { _tag: "Skipped", toolCallId: "c0" })
        assert.deepStrictEqual((error as ToolError.Skipped).cause, Cause.fail(broken("prepare")))
        assert.deepStrictEqual(contents(result), [
          "{\"error\":\"tool error (pay): skipped: not started because the journal could not note it\"}",
          "run 1"
        ])
        const later = yield* ToolRunner.run([call("c0", "pay")], [tool], inSession)
        assert.deepStrictEqual(contents(later), ["run 2"])
      }).pipe(withMemory))

    it.effect.each(
      [
        ["throws", () => {
          throw new Error("boom")
        }],
        ["dies", () => Effect.die("boom")],
        ["gives something else", () => Effect.succeed(undefined as never)],
        ["gives another kind", () => Effect.succeed({ _tag: "Fresh" } as never)]
      ] as ReadonlyArray<readonly [string, Journal["prepare"]]>
    )("starts no call when it %s", ([_name, prepare]) =>
      Effect.gen(function*() {
        const { keys, tool } = counter("pay")
        const memory = yield* ToolJournal.ToolJournal
        const result = yield* ToolRunner.run([call("c0", "pay")], [tool], {
          ...inSession,
          journal: { ...memory, prepare }
        })

        assert.deepStrictEqual(keys, [])
        assert.deepInclude(result.outcomes[0]?.result, { _tag: "Skipped" })
      }).pipe(withMemory))

    it.effect("asks the policy about a call it could not note", () =>
      Effect.gen(function*() {
        const memory = yield* ToolJournal.ToolJournal
        const { tool } = counter("pay")
        const result = yield* ToolRunner.run([call("c0", "pay")], [tool], {
          ...inSession,
          journal: { ...memory, prepare: () => broken("prepare") },
          onToolError: "halt"
        })

        assert.strictEqual(result.halt?.reason, "tool_error")
      }).pipe(withMemory))

    it.effect("keeps a result it could not note, tells the operator, and is in doubt afterwards", () =>
      Effect.gen(function*() {
        const memory = yield* ToolJournal.ToolJournal
        const { keys, tool } = counter("pay")
        const lines: Array<string> = []
        const logger = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel.label} ${String(message)}`))
        const journal: Journal = { ...memory, settle: () => broken("settle") }
        const result = yield* ToolRunner.run([call("c0", "pay")], [tool], { ...inSession, journal }).pipe(
          Effect.provide(Logger.replace(Logger.defaultLogger, logger))
        )
        const later = yield* ToolRunner.run([call("c0", "pay")], [tool], inSession)

        assert.deepStrictEqual(contents(result), ["run 1"])
        assert.match(lines.join("\n"), /ERROR the journal could not note how a call ended/)
        assert.deepStrictEqual(keys, ["s/c0"])
        assert.deepInclude(later.outcomes[0]?.result, { _tag: "OutcomeUnknown" })
      }).pipe(withMemory))

    it.effect("cannot hold a run by never noting a start", () =>
      Effect.gen(function*() {
        const memory = yield* ToolJournal.ToolJournal
        const { keys, tool } = counter("pay")
        const fiber = yield* Effect.fork(ToolRunner.run([call("c0", "pay")], [tool], {
          ...inSession,
          journal: { ...memory, prepare: () => Effect.uninterruptible(Effect.never) },
          toolTimeout: "1 second"
        }))
        yield* TestClock.adjust("1 second")
        const result = yield* Fiber.join(fiber)

        assert.deepStrictEqual(keys, [])
        assert.deepInclude(result.outcomes[0]?.result, { _tag: "Timeout" })
      }).pipe(withMemory))

    it.effect("cannot hold a run by never noting an end, and takes no result away", () =>
      Effect.gen(function*() {
        const memory = yield* ToolJournal.ToolJournal
        const { tool } = counter("pay")
        const fiber = yield* Effect.fork(ToolRunner.run([call("c0", "pay")], [tool], {
          ...inSession,
          journal: { ...memory, settle: () => Effect.never },
          toolTimeout: "1 second"
        }))
        yield* TestClock.adjust("999 millis")
        assert.strictEqual(yield* Fiber.poll(fiber).pipe(Effect.map((exit) => exit._tag)), "None")
        yield* TestClock.adjust("1 milli")
        const result = yield* Fiber.join(fiber)

        assert.deepStrictEqual(contents(result), ["run 1"])
      }).pipe(withMemory))

    it.effect("keeps a result when the journal is slower than the tool's own limit", () =>
      Effect.gen(function*() {
        const memory = yield* ToolJournal.ToolJournal
        const slow = Tool.make("slow", {
          description: "Takes nearly all its time",
          timeout: "1 second",
          handler: () => Effect.as(Effect.sleep("900 millis"), "done")
        })
        const fiber = yield* Effect.fork(ToolRunner.run([call("c0", "slow")], [slow], {
          ...inSession,
          journal: {
            ...memory,
            settle: (key, outcome) => Effect.delay(memory.settle(key, outcome), "500 millis")
          }
        }))
        yield* TestClock.adjust("1400 millis")
        const result = yield* Fiber.join(fiber)

        assert.deepStrictEqual(contents(result), ["done"])
      }).pipe(withMemory))
  })

  describe("interruption", () => {
    it.effect("between the notes leaves the call in doubt", () =>
      Effect.gen(function*() {
        const journal = yield* ToolJournal.ToolJournal
        const started = yield* Deferred.make<void>()
        const pay = Tool.make("pay", {
          description: "Never ends",
          handler: () => Effect.zipRight(Deferred.succeed(started, undefined), Effect.never)
        })
        const fiber = yield* Effect.fork(ToolRunner.run([call("c0", "pay")], [pay], inSession))
        yield* Deferred.await(started)
        yield* Fiber.interrupt(fiber)
        const { keys, tool } = counter("pay")
        const result = yield* ToolRunner.run([call("c0", "pay")], [tool], { ...inSession, journal })

        assert.deepStrictEqual(keys, [])
        assert.deepInclude(result.outcomes[0]?.result, { _tag: "OutcomeUnknown" })
      }).pipe(withMemory))

    it.effect("waits until a known end is noted", () =>
      Effect.gen(function*() {
        const memory = yield* ToolJournal.ToolJournal
        const settling = yield* Deferred.make<void>()
        const { keys, tool } = counter("pay")
        const journal: Journal = {
          ...memory,
          settle: (key, outcome) =>
            Deferred.succeed(settling, undefined).pipe(
              Effect.zipRight(Effect.sleep("1 second")),
              Effect.zipRight(memory.settle(key, outcome))
            )
        }
        const fiber = yield* Effect.fork(ToolRunner.run([call("c0", "pay")], [tool], { ...inSession, journal }))
        yield* Deferred.await(settling)
        const interrupting = yield* Effect.fork(Fiber.interrupt(fiber))
        yield* TestClock.adjust("1 second")
        yield* Fiber.join(interrupting)
        const again = yield* ToolRunner.run([call("c0", "pay")], [tool], inSession)

        assert.deepStrictEqual(contents(again), ["run 1"])
        assert.deepStrictEqual(keys, ["s/c0"])
      }).pipe(withMemory))

    it.effect("by a sibling is noted as such", () =>
      Effect.gen(function*() {
        const stop = Tool.make("stop", {
          description: "Halts",
          handler: () => Effect.as(Effect.sleep("1 second"), ToolResult.halt("enough", "x"))
        })
        const long = Tool.make("long", { description: "Never ends", handler: () => Effect.never })
        const run = ToolRunner.run([call("c0", "stop"), call("c1", "long")], [stop, long], {
          ...inSession,
          siblings: "interrupt"
        })
        const fiber = yield* Effect.fork(run)
        yield* TestClock.adjust("1 second")
        const first = yield* Fiber.join(fiber)
        const second = yield* run

        assert.deepStrictEqual(first.outcomes.map(({ result }) => result._tag), ["Halt", "Interrupted"])
        assert.deepStrictEqual(second.messages, first.messages)
      }).pipe(withMemory))

    it.effect.each(["memory", "slow"])(
      "by a halt that is replayed takes no settled result away (%s)",
      (kind) =>
        Effect.gen(function*() {
          const memory = yield* ToolJournal.ToolJournal
          const slowly: Journal = {
            ...memory,
            prepare: (key, asked) => Effect.delay(memory.prepare(key, asked), key.toolCallId === "c0" ? 1 : 50)
          }
          const journal = kind === "slow" ? slowly : memory
          const stop = Tool.make("stop", { description: "Halts", handler: () => ToolResult.halt("enough", "x") })
          const { keys, tool } = counter("pay")
          const calls = ["c1", "c2", "c3"].map((id) => call(id, "pay"))
          yield* ToolRunner.run(calls.slice(0, 2), [tool], inSession)
          yield* ToolRunner.run([call("c0", "stop")], [stop], inSession)
          const fiber = yield* Effect.fork(ToolRunner.run([call("c0", "stop"), ...calls], [stop, tool], {
            ...inSession,
            journal,
            siblings: "interrupt",
            concurrency: 2
          }))
          yield* TestClock.adjust("1 second")
          const result = yield* Fiber.join(fiber)

          assert.deepStrictEqual(contents(result).slice(0, 3), ["x", "run 1", "run 2"])
          assert.deepInclude(result.outcomes[3]?.result, { _tag: "Skipped" })
          assert.strictEqual(keys.length, 2)
        }).pipe(withMemory)
    )

    it.effect("by a sibling does not lose an end that is being noted", () =>
      Effect.gen(function*() {
        const memory = yield* ToolJournal.ToolJournal
        const { tool } = counter("pay")
        const stop = Tool.make("stop", {
          description: "Halts",
          handler: () => Effect.as(Effect.sleep("1 second"), ToolResult.halt("enough", "x"))
        })
        const journal: Journal = {
          ...memory,
          settle: (key, outcome) =>
            key.toolCallId === "c1"
              ? Effect.delay(memory.settle(key, outcome), "2 seconds")
              : memory.settle(key, outcome)
        }
        const fiber = yield* Effect.fork(
          ToolRunner.run([call("c0", "stop"), call("c1", "pay")], [stop, tool], {
            ...inSession,
            journal,
            siblings: "interrupt"
          })
        )
        yield* TestClock.adjust("2 seconds")
        const result = yield* Fiber.join(fiber)

        assert.deepStrictEqual(contents(result), ["x", "run 1"])
      }).pipe(withMemory))
  })

  it.effect("runs a call once, however many runs want it at once", () =>
    Effect.gen(function*() {
      let runs = 0
      const slow = Tool.make("slow", {
        description: "Counts",
        handler: () => Effect.delay(Effect.sync(() => `run ${++runs}`), "1 second")
      })
      const fiber = yield* Effect.fork(Effect.all(
        Array.from({ length: 10 }, () => ToolRunner.run([call("c0", "slow")], [slow], inSession)),
        { concurrency: "unbounded" }
      ))
      yield* TestClock.adjust("1 second")
      const results = yield* Fiber.join(fiber)

      assert.strictEqual(runs, 1)
      assert.strictEqual(results.filter((result) => result.outcomes[0]?.result._tag === "OutcomeUnknown").length, 9)
    }).pipe(withMemory))
})
