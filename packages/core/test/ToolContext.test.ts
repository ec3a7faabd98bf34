import { Tool, ToolCall, ToolContext, ToolExecutor, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schedule, Stream, TestClock } from "effect"

const call = (id: string, args: unknown = {}) => ToolCall.make({ id, name: "x", arguments: args })

const description = "Does something"

/** A tool that hands out its context and then goes on as told. */
const reveal = Effect.fnUntraced(function*(body: () => unknown) {
  const revealed = yield* Deferred.make<ToolContext.Service>()
  const tool = Tool.make("x", {
    description,
    handler: (_params, context) => {
      Deferred.unsafeDone(revealed, Effect.succeed(context))
      return body()
    }
  })
  return { tool, context: Deferred.await(revealed) }
})

describe("ToolContext", () => {
  describe("make", () => {
    it("knows nothing it was not told", () => {
      const context = ToolContext.make({ toolCall: call("c0") })

      assert.deepStrictEqual(context.context, {})
      assert.strictEqual(context.sessionId, undefined)
      assert.strictEqual(context.requestId, undefined)
      assert.strictEqual(context.engine, undefined)
      assert.strictEqual(context.signal.aborted, false)
    })

    it.effect("reports progress to whoever asked for it", () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const { progress, unsafeProgress } = ToolContext.make({
          toolCall: call("c0"),
          onProgress: (value) => seen.push(value)
        })

        const later = progress(1)
        unsafeProgress(2)
        yield* later

        assert.deepStrictEqual(seen, [2, 1])
      }))

    it.effect("reports progress to nobody when nobody asked", () =>
      Effect.gen(function*() {
        const context = ToolContext.make({ toolCall: call("c0") })
        context.unsafeProgress(1)

        assert.strictEqual(yield* context.progress(2), undefined)
      }))
  })

  describe("in a handler", () => {
    it.effect("EXEC-02 tells what the run was given", () =>
      Effect.gen(function*() {
        const { context, tool } = yield* reveal(() => "done")
        const given = { tenant: "acme" }
        const engine = { model: "test" }
        const toolCall = call("c0", { n: 1 })

        yield* ToolRunner.run([toolCall], [tool], { context: given, sessionId: "s1", requestId: "r1", engine })
        const seen = yield* context

        assert.strictEqual(seen.context, given)
        assert.strictEqual(seen.engine, engine)
        assert.strictEqual(seen.sessionId, "s1")
        assert.strictEqual(seen.requestId, "r1")
        assert.strictEqual(seen.toolCall, toolCall)
      }))

    it.effect("leaves ids that are missing undefined", () =>
      Effect.gen(function*() {
        const { context, tool } = yield* reveal(() => "done")

        yield* ToolRunner.run([call("c0")], [tool])
        const { engine, requestId, sessionId } = yield* context

        assert.deepStrictEqual({ engine, requestId, sessionId }, {
          engine: undefined,
          requestId: undefined,
          sessionId: undefined
        })
      }))

    it.effect("is the same as argument and as service", () =>
      Effect.gen(function*() {
        const tool = Tool.make("x", {
          description,
          handler: (_params, context) => Effect.map(ToolContext.ToolContext, (service) => service === context)
        })

        const { messages } = yield* ToolRunner.run([call("c0")], [tool])

        assert.deepStrictEqual(messages.map((message) => message.content), ["true"])
      }))

    it.effect("is each call's own", () =>
      Effect.gen(function*() {
        const whoAmI = Effect.map(ToolContext.ToolContext, (context) => context.toolCall.id)
        const tool = Tool.make("x", { description, handler: () => Effect.zipRight(Effect.yieldNow(), whoAmI) })

        const { messages } = yield* ToolRunner.run(["c0", "c1", "c2"].map((id) => call(id)), [tool])

        assert.deepStrictEqual(messages.map((message) => message.content), ["c0", "c1", "c2"])
      }))
  })

  describe("signal", () => {
    const nothing = () => new Promise<string>(() => {})

    for (
      const [kind, body] of [
        ["an Effect", () => Effect.never],
        ["an uninterruptible Effect", () => Effect.uninterruptible(Effect.never)],
        ["a promise", nothing]
      ] as const
    ) {
      it.effect(`aborts when ${kind} is over its limit`, () =>
        Effect.gen(function*() {
          const { context, tool } = yield* reveal(body)
          const run = yield* Effect.fork(ToolRunner.run([call("c0")], [tool], { toolTimeout: "1 second" }))
          const { signal } = yield* context

          yield* TestClock.adjust("999 millis")
          assert.strictEqual(signal.aborted, false)

          yield* TestClock.adjust("1 millis")
          assert.strictEqual(signal.aborted, true)
          assert.strictEqual((yield* Fiber.join(run)).outcomes[0]?.result._tag, "Timeout")
        }))
    }

    for (
      const [kind, body] of [["an Effect", () => Effect.never], ["a promise", nothing]] as const
    ) {
      it.effect(`aborts when the run of ${kind} is interrupted`, () =>
        Effect.gen(function*() {
          const { context, tool } = yield* reveal(body)
          const run = yield* Effect.fork(ToolRunner.run([call("c0")], [tool]))
          const { signal } = yield* context
          assert.strictEqual(signal.aborted, false)

          yield* Fiber.interrupt(run)

          assert.strictEqual(signal.aborted, true)
        }))

      it.effect(`aborts when the executor of ${kind} is interrupted`, () =>
        Effect.gen(function*() {
          const { context, tool } = yield* reveal(body)
          const fiber = yield* Effect.fork(
            ToolExecutor.handlers.execute(tool, {}, ToolContext.make({ toolCall: call("c0") }))
          )
          const { signal } = yield* context

          yield* Fiber.interrupt(fiber)

          assert.strictEqual(signal.aborted, true)
        }))
    }

    it.effect("is already aborted for whoever looks at it too late", () =>
      Effect.gen(function*() {
        const { context, tool } = yield* reveal(() => Effect.never)
        const run = yield* Effect.fork(ToolRunner.run([call("c0")], [tool]))
        const late = yield* context

        yield* Fiber.interrupt(run)

        assert.strictEqual(late.signal.aborted, true)
      }))

    it.effect("stays quiet when the call ends by itself", () =>
      Effect.gen(function*() {
        const bodies = [() => "done", () => Promise.resolve("done"), () => Effect.fail("no"), () => Effect.die("boom")]
        const signals = yield* Effect.forEach(bodies, (body) =>
          Effect.gen(function*() {
            const { context, tool } = yield* reveal(body)
            yield* ToolRunner.run([call("c0")], [tool])
            return (yield* context).signal.aborted
          }))

        assert.deepStrictEqual(signals, [false, false, false, false])
      }))

    it.effect("stops only the call that is over its limit", () =>
      Effect.gen(function*() {
        const contexts: Array<ToolContext.Service> = []
        const handler = (_params: {}, context: ToolContext.Service) => {
          contexts.push(context)
          return Effect.never
        }
        const slow = Tool.make("x", { description, timeout: "1 second", handler })
        const wait = Tool.make("wait", { description, handler })
        yield* Effect.fork(
          ToolRunner.run([call("c0"), ToolCall.make({ id: "c1", name: "wait", arguments: {} })], [slow, wait])
        )

        yield* TestClock.adjust("1 second")

        assert.deepStrictEqual(contexts.map(({ signal, toolCall }) => [toolCall.id, signal.aborted]), [
          ["c0", true],
          ["c1", false]
        ])
      }))
  })

  describe("idempotencyKey", () => {
    const key = (scope: { readonly sessionId?: string; readonly requestId?: string }) =>
      ToolContext.make({ toolCall: call("c0"), ...scope }).idempotencyKey

    it("is the same for the same call of the same session, and for no other", () => {
      assert.strictEqual(key({ sessionId: "s1" }), key({ sessionId: "s1" }))
      assert.notStrictEqual(key({ sessionId: "s1" }), key({ sessionId: "s2" }))
      assert.notStrictEqual(key({ requestId: "r1" }), key({ requestId: "r2" }))
      assert.notStrictEqual(key({ sessionId: "s1" }), key({}))
    })

    it("does not depend on the request when there is a session", () => {
      assert.strictEqual(key({ sessionId: "s1", requestId: "r1" }), key({ sessionId: "s1", requestId: "r2" }))
    })

    it.effect("is the same for every attempt", () =>
      Effect.gen(function*() {
        const keys: Array<string> = []
        const tool = Tool.make("x", {
          description,
          retry: Schedule.recurs(2),
          handler: (_params, context) => {
            keys.push(context.idempotencyKey)
            return Effect.fail("again")
          }
        })

        yield* ToolRunner.run([call("c0")], [tool], { sessionId: "s1" })

        assert.deepStrictEqual(keys, [keys[0], keys[0], keys[0]])
      }))
  })

  describe("progress", () => {
    const progressOf = (tool: Tool.Tool<"x", {}, unknown, unknown, never>) =>
      ToolRunner.stream([call("c0")], [tool]).pipe(
        Stream.filter((event) => event._tag === "ToolProgress"),
        Stream.runCollect,
        Effect.map((events) => Array.from(events))
      )

    it.effect("becomes events of the call, between its start and its end", () =>
      Effect.gen(function*() {
        const tool = Tool.make("x", {
          description,
          handler: (_params, context) => Effect.zipRight(context.progress({ percent: 50 }), Effect.succeed("done"))
        })

        const events = yield* Stream.runCollect(ToolRunner.stream([call("c0")], [tool]))

        assert.deepStrictEqual(Array.from(events, (event) => event._tag), [
          "ToolExecutionStarted",
          "ToolProgress",
          "ToolExecutionCompleted",
          "ToolResultEncoded"
        ])
        assert.deepStrictEqual(yield* progressOf(tool), [
          { _tag: "ToolProgress", toolCallId: "c0", toolName: "x", value: { percent: 50 } }
        ])
      }))

    it.effect("can be reported by plain and async handlers", () =>
      Effect.gen(function*() {
        const tool = Tool.make("x", {
          description,
          handler: async (_params, { unsafeProgress }) => {
            unsafeProgress(1)
            await Promise.resolve()
            unsafeProgress(2)
          }
        })

        assert.deepStrictEqual((yield* progressOf(tool)).map((event) => event.value), [1, 2])
      }))

    it.effect("waits for a slow reader and loses nothing", () =>
      Effect.gen(function*() {
        const tool = Tool.make("x", {
          description,
          handler: (_params, { progress }) =>
            Effect.forEach(Array.from({ length: 500 }, (_, i) => i), progress, { discard: true })
        })

        const values = yield* progressOf(tool)

        assert.deepStrictEqual(values.map((event) => event.value), Array.from({ length: 500 }, (_, i) => i))
      }))

    it.effect("of a call that is over its limit is heard no more", () =>
      Effect.gen(function*() {
        const { context, tool } = yield* reveal(() => Effect.uninterruptible(Effect.never))
        const run = yield* Effect.fork(
          Stream.runCollect(ToolRunner.stream([call("c0")], [tool], { toolTimeout: "1 second" }))
        )
        const { unsafeProgress } = yield* context
        yield* TestClock.adjust("1 second")
        unsafeProgress("too late")

        const events = yield* Fiber.join(run)

        assert.deepStrictEqual(Array.from(events, (event) => event._tag), [
          "ToolExecutionStarted",
          "ToolExecutionCompleted",
          "ToolResultEncoded"
        ])
      }))
  })
})
