import { OnToolError, Telemetry, Tool, ToolCall, ToolResult, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Option, Schema, TestClock, Tracer } from "effect"

const call = (id: string, name: string) => ToolCall.make({ id, name, arguments: {} })

const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })

/** Every look at a revoked proxy throws. */
const hostile = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

/** Cannot even be asked whether it is a promise. */
const trap = new Proxy({}, {
  has: (_, key) => key === "then",
  get: (_, key) => {
    if (key === "then") throw new Error("looked at")
  }
})

const later = <A, E>(effect: Effect.Effect<A, E>) => Effect.zipRight(Effect.sleep(1), effect)

const hostiles: ReadonlyArray<{ readonly what: string; readonly handler: () => Tool.HandlerReturn<unknown> }> = [
  { what: "returned", handler: hostile },
  { what: "returned with a then that throws", handler: () => trap },
  { what: "returned deep inside", handler: () => ({ rows: [{ inner: hostile() }] }) },
  { what: "returned in a promise", handler: async () => ({ inner: hostile() }) },
  { what: "returned by an Effect", handler: () => Effect.sync(hostile) },
  { what: "returned by an Effect later", handler: () => later(Effect.sync(hostile)) },
  { what: "reported", handler: () => Effect.suspend(() => Effect.fail(hostile())) },
  { what: "reported later", handler: () => later(Effect.suspend(() => Effect.fail(hostile()))) },
  { what: "reported as a result", handler: () => ToolResult.error(hostile()) },
  {
    what: "thrown",
    handler: () => {
      throw hostile()
    }
  },
  { what: "thrown later", handler: () => later(Effect.suspend(() => Effect.die(hostile()))) },
  { what: "what a promise is rejected with", handler: () => Promise.reject(hostile()) },
  { what: "the result of a halt", handler: () => ToolResult.halt("enough", hostile()) },
  { what: "among the options of a question", handler: () => ToolResult.askUser("Which?", hostile() as {}) }
]

/** The first call meets the hostile value; the second must not notice. */
const beside = <R>(odd: Tool.Tool<"odd", {}, unknown, unknown, R>, options?: ToolRunner.Options) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkDaemon(ToolRunner.run([call("c0", "odd"), call("c1", "hi")], [odd, hi], options))
    yield* TestClock.adjust("1 second")
    const exit = yield* Fiber.poll(fiber)
    return Option.match(exit, {
      onNone: () => ["still running"],
      onSome: Exit.match({
        onFailure: () => ["the run failed"],
        onSuccess: ({ messages }) =>
          messages.map(({ isError, toolCallId }) => `${toolCallId} ${isError ? "failed" : "went well"}`)
      })
    })
  })

describe("ToolRunner: a value that throws when it is looked at", () => {
  for (const { handler, what } of hostiles) {
    it.effect(`harms only its own call when it is ${what}`, () =>
      Effect.gen(function*() {
        const odd = Tool.make("odd", { description: "Odd", handler: handler as () => Effect.Effect<unknown> })

        assert.deepStrictEqual(yield* beside(odd), ["c0 failed", "c1 went well"])
      }))
  }

  it.effect("harms only its own call when a success schema has to encode it", () =>
    Effect.gen(function*() {
      const odd = Tool.make("odd", {
        description: "Odd",
        success: Schema.Struct({ a: Schema.Number }),
        handler: () => hostile() as { a: number }
      })

      assert.deepStrictEqual(yield* beside(odd), ["c0 failed", "c1 went well"])
    }))

  it.effect("harms only its own call when a failure schema has to encode it", () =>
    Effect.gen(function*() {
      const odd = Tool.make("odd", {
        description: "Odd",
        failure: Schema.Struct({ a: Schema.Number }),
        handler: () => Effect.suspend(() => Effect.fail(hostile() as { a: number }))
      })

      assert.deepStrictEqual(yield* beside(odd), ["c0 failed", "c1 went well"])
    }))

  it.effect("harms only its own call when the policy puts it in place of a failure", () =>
    Effect.gen(function*() {
      const odd = Tool.make("odd", { description: "Odd", handler: () => Effect.fail("no") })

      assert.deepStrictEqual(yield* beside(odd, { onToolError: () => OnToolError.continueWith(hostile()) }), [
        "c0 failed",
        "c1 went well"
      ])
    }))

  it.effect("harms only its own call when the policy returns it as its decision", () =>
    Effect.gen(function*() {
      const odd = Tool.make("odd", { description: "Odd", handler: () => Effect.fail("no") })
      const onToolError = () => hostile() as OnToolError.Decision

      assert.deepStrictEqual(yield* beside(odd, { onToolError }), ["c0 failed", "c1 went well"])
    }))

  it.effect("harms only its own call when spans capture content", () =>
    Effect.gen(function*() {
      const span: Tracer.Span = {
        _tag: "Span",
        name: "allm.tool",
        spanId: "s",
        traceId: "t",
        parent: Option.none(),
        context: Context.empty(),
        status: { _tag: "Started", startTime: 0n },
        attributes: new Map(),
        links: [],
        sampled: true,
        kind: "internal",
        end: () => {},
        attribute: () => {},
        event: () => {},
        addLinks: () => {}
      }
      let reads = 0
      const fickle = {
        get n() {
          if (reads++ > 0) throw new Error("looked at twice")
          return 1
        }
      }
      const odd = Tool.make("odd", {
        description: "Odd",
        handler: () => Effect.fail({ reason: 1n, fickle, inner: hostile() })
      })
      const ended = yield* beside(odd).pipe(
        Effect.provideService(Telemetry.CaptureContent, true),
        Effect.withTracer(Tracer.make({ span: () => span, context: (f) => f() }))
      )

      assert.deepStrictEqual(ended, ["c0 failed", "c1 went well"])
    }))
})
