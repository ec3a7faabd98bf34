import { Tool, ToolCall, ToolContext, ToolError, ToolExecutor, ToolResult, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import {
  Cause,
  Chunk,
  Effect,
  Equal,
  Exit,
  FastCheck as fc,
  Fiber,
  FiberId,
  Logger,
  Option,
  Schema,
  TestClock
} from "effect"

/** A handler, and what has to become of it. */
interface Sample {
  readonly kind: string
  readonly handler: () => unknown
  readonly expected: Expected
}

type Expected =
  | { readonly tag: "Ok"; readonly value: unknown }
  | { readonly tag: "HandlerFailed"; readonly failure: unknown; readonly cause?: Cause.Cause<unknown> }
  | { readonly tag: "HandlerRaised"; readonly defect?: unknown; readonly cause?: Cause.Cause<unknown> }
  | { readonly tag: "HandlerExit"; readonly cause?: Cause.Cause<unknown> }

const anything = fc.anything({
  withBigInt: true,
  withDate: true,
  withMap: true,
  withSet: true,
  withTypedArray: true,
  withSparseArray: true,
  withNullPrototype: true,
  maxDepth: 2
})

const thrown = fc.oneof(anything, fc.string().map((message) => new Error(message)))

const failed = (failure: unknown, cause: Cause.Cause<unknown> = Cause.fail(failure)): Expected => ({
  tag: "HandlerFailed",
  failure,
  cause
})
const raised = (defect: unknown): Expected => ({ tag: "HandlerRaised", defect, cause: Cause.die(defect) })

const values = anything.chain((value) =>
  fc.constantFrom<() => unknown>(
    () => value,
    () => Promise.resolve(value),
    async () => value,
    () => Effect.succeed(value),
    () => Effect.zipRight(Effect.yieldNow(), Effect.succeed(value)),
    () => Effect.promise(() => Promise.resolve(value)),
    () => ToolResult.ok(value),
    () => Promise.resolve(ToolResult.ok(value)),
    () => Effect.succeed(ToolResult.ok(value))
  ).map((handler): Sample => ({ kind: "value", handler, expected: { tag: "Ok", value } }))
)

const failures = anything.chain((failure) =>
  fc.constantFrom<() => unknown>(
    () => Effect.fail(failure),
    () => Effect.zipRight(Effect.yieldNow(), Effect.fail(failure)),
    () => ToolResult.error(failure),
    async () => ToolResult.error(failure),
    () => Effect.succeed(ToolResult.error(failure))
  ).map((handler): Sample => ({ kind: "failure", handler, expected: failed(failure) }))
)

const crashes = thrown.chain((defect) =>
  fc.constantFrom<() => unknown>(
    () => {
      throw defect
    },
    () => Promise.reject(defect),
    async () => {
      throw defect
    },
    () => Effect.die(defect),
    () =>
      Effect.sync(() => {
        throw defect
      }),
    () => Effect.zipRight(Effect.yieldNow(), Effect.die(defect))
  ).map((handler): Sample => ({ kind: "crash", handler, expected: raised(defect) }))
)

const exits = fc.constantFrom<() => unknown>(
  () => Effect.interrupt,
  () => Effect.zipRight(Effect.yieldNow(), Effect.interrupt),
  () => Effect.flatMap(Effect.fork(Effect.interrupt), Fiber.join),
  () => Effect.failCause(Cause.empty)
).map((handler): Sample => ({ kind: "exit", handler, expected: { tag: "HandlerExit" } }))

const nested = fc.letrec<{ cause: Cause.Cause<unknown> }>((tie) => ({
  cause: fc.oneof(
    { maxDepth: 4 },
    fc.string().map(Cause.fail),
    fc.string().map((message) => Cause.die(new Error(message))),
    fc.constant(Cause.interrupt(FiberId.none)),
    fc.tuple(tie("cause"), tie("cause")).map(([left, right]) => Cause.parallel(left, right)),
    fc.tuple(tie("cause"), tie("cause")).map(([left, right]) => Cause.sequential(left, right))
  )
})).cause

// A reported failure outranks a defect, a defect outranks an interruption.
const ranked = (cause: Cause.Cause<unknown>): Expected => {
  const failure = Chunk.head(Cause.failures(cause))
  if (Option.isSome(failure)) return failed(failure.value, cause)
  return { tag: Chunk.isEmpty(Cause.defects(cause)) ? "HandlerExit" : "HandlerRaised", cause }
}

const causes = nested.chain((cause) =>
  fc.constantFrom<() => unknown>(
    () => Effect.failCause(cause),
    () => Effect.zipRight(Effect.yieldNow(), Effect.failCause(cause))
  ).map((handler): Sample => ({ kind: "cause", handler, expected: ranked(cause) }))
)

type Settle = (value: unknown) => void
type Then = (resolve: Settle, reject: Settle) => void

// oxlint-disable-next-line unicorn/no-thenable
const thenable = (then: Then): object => ({ then })

const thenables = anything.chain((value) => {
  const ok: Expected = { tag: "Ok", value }
  return fc.constantFrom<readonly [then: Then, expected: Expected]>(
    [(resolve) => resolve(value), ok],
    [(resolve) => queueMicrotask(() => resolve(value)), ok],
    [(resolve) => {
      resolve(value)
      resolve("again")
    }, ok],
    [(resolve, reject) => {
      resolve(value)
      reject("again")
    }, ok],
    [(resolve) => {
      resolve(value)
      throw new Error("too late")
    }, ok],
    [(resolve) => resolve(thenable((inner) => inner(value))), ok],
    [(_resolve, reject) => reject(value), raised(value)],
    [(resolve, reject) => {
      reject(value)
      resolve("again")
    }, raised(value)],
    [() => {
      throw value
    }, raised(value)]
  ).map(([then, expected]): Sample => ({ kind: "thenable", handler: () => thenable(then), expected }))
})

const samples = fc.oneof(values, failures, crashes, exits, causes, thenables)

const description = "Does something"
const toolCall = ToolCall.make({ id: "c0", name: "x", arguments: {} })
const make = (handler: () => unknown) => Tool.make("x", { description, handler })

const execute = (handler: () => unknown) =>
  Effect.suspend(() => ToolExecutor.handlers.execute(make(handler), {}, ToolContext.make({ toolCall })))

const check = (result: ToolResult.ToolOutcome | ToolError.ToolError, expected: Expected) => {
  assert.strictEqual(result._tag, expected.tag)
  if (expected.tag === "Ok") {
    assert(result._tag === "Ok")
    assert.isTrue(Object.is(result.value, expected.value))
    return
  }
  assert(ToolError.isToolError(result))
  assert.strictEqual(result.toolName, "x")
  assert.strictEqual(result.toolCallId, "c0")
  assert(result.cause !== undefined)
  if (expected.cause !== undefined) assert.isTrue(Equal.equals(result.cause, expected.cause))
  if ("failure" in expected) {
    assert(result._tag === "HandlerFailed")
    assert.isTrue(Object.is(result.failure, expected.failure))
  }
  if ("defect" in expected) assert.isTrue(Object.is(Chunk.unsafeHead(Cause.defects(result.cause)), expected.defect))
}

// Every log line is rendered, and none is shown.
const quiet = Effect.provide(Logger.replace(Logger.defaultLogger, Logger.map(Logger.stringLogger, () => {})))

describe("ToolExecutor, whatever a handler does", () => {
  it.effect.prop(
    "gives exactly one outcome or ToolError, with the cause kept",
    [samples],
    ([{ expected, handler }]) =>
      Effect.gen(function*() {
        const exit = yield* Effect.exit(execute(handler))

        if (Exit.isSuccess(exit)) return check(exit.value, expected)
        const { cause } = exit
        assert.strictEqual(Chunk.size(Cause.failures(cause)), 1)
        assert.strictEqual(Chunk.size(Cause.defects(cause)), 0)
        check(Chunk.unsafeHead(Cause.failures(cause)), expected)
      }),
    { fastCheck: { numRuns: 300 } }
  )

  it.effect.prop(
    "leaves a run one outcome and one message",
    [samples],
    ([{ expected, handler }]) =>
      quiet(Effect.gen(function*() {
        const { messages, outcomes } = yield* ToolRunner.run([toolCall], [make(handler)])

        assert.strictEqual(messages.length, 1)
        assert.strictEqual(outcomes.length, 1)
        const { result } = outcomes[0]!
        // A value may have no text form, which is for the encoder to say.
        if (result._tag !== "EncodingFailed") check(result, expected)
        else assert.strictEqual(expected.tag, "Ok")
        assert.strictEqual(messages[0]?.isError, result._tag !== "Ok")
      })),
    { fastCheck: { numRuns: 300 } }
  )

  it.effect.prop(
    "keeps the others going when calls of one batch end in any way",
    [fc.array(samples, { maxLength: 6 })],
    ([
      batch
    ]) =>
      quiet(Effect.gen(function*() {
        const tools = batch.map(({ handler }, i) => Tool.make(`t${i}`, { description, handler }))
        const calls = batch.map((_, i) => ToolCall.make({ id: `c${i}`, name: `t${i}`, arguments: {} }))

        const { halt, messages, outcomes } = yield* ToolRunner.run(calls, tools)

        assert.strictEqual(halt, undefined)
        assert.deepStrictEqual(messages.map((message) => message.toolCallId), calls.map((call) => call.id))
        for (const [i, { result }] of outcomes.entries()) {
          if (result._tag !== "EncodingFailed") assert.strictEqual(result._tag, batch[i]?.expected.tag)
        }
      }))
  )

  const endless = fc.constantFrom<() => unknown>(
    () => Effect.never,
    () => Effect.uninterruptible(Effect.never),
    () => Effect.ensuring(Effect.never, Effect.never),
    () => Effect.forever(Effect.yieldNow()),
    () => new Promise(() => {}),
    () => thenable(() => {}),
    () => Effect.promise(() => new Promise(() => {})),
    () => Effect.onInterrupt(Effect.never, () => Effect.die("finalizer"))
  )

  it.effect.prop(
    "times out what never ends, on time",
    [endless, fc.integer({ min: 1, max: 100_000 })],
    ([handler, limit]) =>
      quiet(Effect.gen(function*() {
        const run = yield* Effect.fork(ToolRunner.run([toolCall], [make(handler)], { toolTimeout: limit }))
        yield* TestClock.adjust(limit - 1)
        assert.deepStrictEqual(yield* Fiber.poll(run), Option.none())

        yield* TestClock.adjust(1)
        const { messages, outcomes } = yield* Fiber.join(run)

        const result = outcomes[0]?.result
        assert(result?._tag === "Timeout")
        assert.strictEqual(result.limitMillis, limit)
        assert.deepStrictEqual(messages.map((message) => message.content), ["{\"error\":\"tool error (x): timeout\"}"])
      })),
    { fastCheck: { numRuns: 40 } }
  )

  it.effect("tells a handler that interrupts its own fiber from one that was interrupted", () =>
    quiet(Effect.gen(function*() {
      const suicidal = make(() =>
        Effect.withFiberRuntime((fiber) => {
          fiber.unsafeInterruptAsFork(fiber.id())
          return Effect.never
        })
      )

      const { outcomes } = yield* ToolRunner.run([toolCall], [suicidal])

      assert.strictEqual(outcomes[0]?.result._tag, "HandlerExit")
    })))

  it.effect("finds the reported failure among ten thousand interrupted siblings", () =>
    Effect.gen(function*() {
      const members = Array.from({ length: 10_000 }, (_, i) => i)
      const cause = members.reduce<Cause.Cause<string>>(
        (all, i) => Cause.parallel(all, i === 5000 ? Cause.fail("one") : Cause.interrupt(FiberId.none)),
        Cause.empty
      )

      const error = yield* Effect.flip(execute(() => Effect.failCause(cause)))
      const { messages } = yield* ToolRunner.run([toolCall], [make(() => Effect.failCause(cause))])

      assert(error._tag === "HandlerFailed")
      assert.strictEqual(error.failure, "one")
      assert.deepStrictEqual(messages.map((message) => message.content), ["{\"error\":\"one\"}"])
    }).pipe(quiet))

  it.effect("keeps a failure untouched inside a span", () =>
    Effect.gen(function*() {
      const reason = new Map([["code", 404]])

      const error = yield* Effect.withSpan(Effect.flip(execute(() => Effect.fail(reason))), "outer")

      assert(error._tag === "HandlerFailed")
      assert.isTrue(Object.is(error.failure, reason))
    }))

  it.effect("takes a returned value that cannot even be looked at for a crash", () =>
    Effect.gen(function*() {
      const unreadable = {
        // oxlint-disable-next-line unicorn/no-thenable
        get then(): never {
          throw new Error("no")
        }
      }
      const { proxy, revoke } = Proxy.revocable({}, {})
      revoke()

      const errors = yield* Effect.forEach([() => unreadable, () => proxy], (handler) => Effect.flip(execute(handler)))

      assert.deepStrictEqual(errors.map((error) => error._tag), ["HandlerRaised", "HandlerRaised"])
    }))
})

describe("ToolExecutor, whatever a schema does", () => {
  const boom = new Error("secret")
  const Throwing = Schema.transform(Schema.String, Schema.String, {
    strict: true,
    decode: (): string => {
      throw boom
    },
    encode: (): string => {
      throw boom
    }
  })
  const Dying = Schema.transformOrFail(Schema.String, Schema.String, {
    strict: true,
    decode: () => Effect.die(boom),
    encode: () => Effect.die(boom)
  })
  const args = { text: "a" }
  const call = ToolCall.make({ id: "c0", name: "x", arguments: args })

  // Suspended: an executor that throws would otherwise end the test, not the effect.
  const failure = <T extends Tool.Any>(tool: T) =>
    Effect.suspend(() => ToolExecutor.handlers.execute(tool, args, ToolContext.make({ toolCall: call }))).pipe(
      Effect.sandbox,
      Effect.flip,
      Effect.map((cause) => ({
        defects: Chunk.size(Cause.defects(cause)),
        isToolError: Option.exists(Cause.failureOption(cause), ToolError.isToolError)
      }))
    )

  for (const [kind, Fragile] of [["throw", Throwing], ["die", Dying]] as const) {
    it.effect(`gives a ToolError for parameters that ${kind} while they are decoded`, () =>
      Effect.gen(function*() {
        const tool = Tool.make("x", { description, parameters: { text: Fragile }, handler: () => "done" })

        assert.deepStrictEqual(yield* failure(tool), { defects: 0, isToolError: true })
      }))

    it.effect(`gives a ToolError for a success that ${kind}s while it is encoded`, () =>
      Effect.gen(function*() {
        const tool = Tool.make("x", { description, success: Fragile, handler: () => "done" })

        assert.deepStrictEqual(yield* failure(tool), { defects: 0, isToolError: true })
      }))

    for (
      const [when, handler] of [["at once", Effect.fail("no")], ["later", Effect.delay(Effect.fail("no"), 1)]] as const
    ) {
      it.effect(`survives a failure that ${kind}s while it is encoded, reported ${when}`, () =>
        quiet(Effect.gen(function*() {
          const tool = Tool.make("x", { description, failure: Fragile, handler: () => handler })
          const run = yield* Effect.fork(ToolRunner.run([toolCall], [tool]))
          yield* TestClock.adjust(1)
          const exit = yield* Fiber.poll(run)

          assert(Option.isSome(exit) && Exit.isSuccess(exit.value))
          const { messages, outcomes } = exit.value.value
          assert.strictEqual(outcomes[0]?.result._tag, "HandlerFailed")
          assert.notMatch(messages[0]?.content ?? "secret", /secret/)
        })))
    }
  }
})
