/**
 * What every tool executor has to do, as checks.
 *
 * @since 0.1.0
 */
import type { ToolExecutor } from "@allm/core"
import { Tool, ToolCall, ToolContext, ToolResult } from "@allm/core"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/TestClock"
import * as TestContext from "effect/TestContext"
import type { Check, Options } from "./Check.ts"
import { type Body, check, each, ensure, same, skip } from "./internal/check.ts"
import {
  begun,
  Bench,
  endOf,
  type Handlers as HandlersByName,
  settled,
  summary,
  toolName
} from "./internal/executorBench.ts"
import { crashes, exits, failures, hostileSchemas, malformed, mixtures, values } from "./internal/handlerSamples.ts"

/**
 * Handlers by tool name.
 *
 * @since 0.1.0
 * @category models
 */
export interface Handlers extends HandlersByName {}

/**
 * An executor under test: a layer that runs the tools' own handlers, or a function that makes one from handlers by tool
 * name, for executors that bring their own.
 *
 * @since 0.1.0
 * @category models
 */
export type Subject<E = never> =
  | Layer.Layer<ToolExecutor.ToolExecutor, E>
  | ((handlers: Handlers) => Layer.Layer<ToolExecutor.ToolExecutor, E>)

/**
 * The checks of an executor. Each call builds the layer anew.
 *
 * @example
 * ```ts
 * import * as Check from "@allm/conformance/Check"
 * import * as ToolExecutorChecks from "@allm/conformance/ToolExecutorChecks"
 * import { ToolExecutor } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const byName = ToolExecutorChecks.make((handlers) => ToolExecutor.layerHandlers(handlers))
 *
 * Effect.runPromise(Check.violations(byName)).then((violations) => assert.deepStrictEqual(violations, []))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <E>(subject: Subject<E>, options?: Options): ReadonlyArray<Check> => {
  const bench = new Bench(subject)
  const promise = (name: string, body: Body): Check => check(name, body, options)

  return [
    promise("gives what a handler gives, whatever kind of function it is", endsAlike(bench, values)),
    promise("gives a reported failure as HandlerFailed, untouched", endsAlike(bench, failures)),
    promise("gives a crash as HandlerRaised, with its cause", endsAlike(bench, crashes)),
    promise("gives an interruption of the handler's own as HandlerExit", endsAlike(bench, exits)),
    promise("lets a reported failure outrank a crash, and a crash an interruption", endsAlike(bench, mixtures)),
    promise("gives a malformed result as InvalidReturn", endsAlike(bench, malformed)),
    promise("hands on questions and halts", specialResults(bench)),
    promise("names the tool and the call in every error", namesInErrors(bench)),
    promise("gives NotFound when there is no handler", notFound(bench)),
    promise("decodes the arguments before the handler sees them", decodes(bench)),
    promise("does not call the handler with arguments that do not fit", refuses(bench)),
    promise("checks and encodes a success by its schema", encodes(bench)),
    promise("gives a ToolError when a schema throws", hostile(bench)),
    promise("calls the handler once per run, and not before", callsOnce(bench)),
    promise("has no time limit of its own", waits(bench)),
    promise("gives the handler its context, as argument and as service", contexts(bench)),
    promise("invents no ids", inventsNothing(bench)),
    promise("hands progress on", progress(bench)),
    promise("keeps calls at the same time apart", apart(bench)),
    promise("interrupts the handler, and waits for its finalizers", interrupts(bench)),
    promise("aborts the signal when it is interrupted", aborts(bench)),
    bench.ownHandlers
      ? promise("gives the handler the services of the call", services(bench))
      : skip("gives the handler the services of the call", "a layer that runs the tools' own handlers")
  ]
}

type AnyBench = Bench<unknown>

const endsAlike = (bench: AnyBench, samples: typeof values): Body =>
  each(
    samples,
    ({ expected, handler, kind }) =>
      Effect.flatMap(settled(bench.execute({ handler })), (end) => same(kind, summary(end), summary(expected)))
  )

const specialResults = (bench: AnyBench): Body =>
  Effect.gen(function*() {
    const ask = yield* endOf(bench, () => ToolResult.askUser("Which city?", { choices: ["Oslo"] }))
    yield* same("the outcome of a question", summary(ask), {
      _tag: "AskUser",
      question: "Which city?",
      options: { choices: ["Oslo"] }
    })
    const halt = yield* endOf(bench, () => Effect.succeed(ToolResult.halt("paid", { order: 7 })))
    yield* same("the outcome of a halt", summary(halt), { _tag: "Halt", reason: "paid", result: { order: 7 } })
  })

const namesInErrors = (bench: AnyBench): Body =>
  each(
    [...failures, ...crashes, ...exits, ...malformed],
    ({ handler, kind }) =>
      Effect.flatMap(settled(bench.execute({ handler, toolCall: call("c7") })), (end) =>
        "origin" in end
          ? same(kind, { toolName: end.toolName, toolCallId: end.toolCallId }, { toolName, toolCallId: "c7" })
          : Effect.fail(`${kind} ended in ${end._tag}`))
  )

const notFound = (bench: AnyBench): Body =>
  Effect.flatMap(settled(bench.execute({ handler: undefined })), (end) => same("the end", end._tag, "NotFound"))

const parameters = {
  count: Schema.NumberFromString,
  tags: Schema.optionalWith(Schema.Array(Schema.String), { default: () => [] })
}

const decodes = (bench: AnyBench): Body =>
  Effect.gen(function*() {
    const end = yield* settled(bench.execute({ parameters, args: { count: "42" }, handler: (params) => params }))
    yield* same("what the handler got", summary(end), { _tag: "Ok", value: { count: 42, tags: [] } })
  })

const refuses = (bench: AnyBench): Body =>
  each([undefined, null, 7, [], {}, { count: "many" }, { count: 42 }], (args) =>
    Effect.gen(function*() {
      let calls = 0
      const end = yield* settled(bench.execute({ parameters, args, handler: () => ++calls }))
      yield* same("the end", end._tag, "InvalidArguments")
      yield* same("how often the handler was called", calls, 0)
      yield* ensure(end._tag === "InvalidArguments" && end.issues.length > 0, () => "the error tells no issue")
    }))

const encodes = (bench: AnyBench): Body =>
  Effect.gen(function*() {
    const success = Schema.Struct({ count: Schema.NumberFromString })
    const fits = yield* settled(bench.execute({ success, handler: () => ({ count: 42 }) }))
    yield* same("the outcome", summary(fits), { _tag: "Ok", value: { count: 42 }, encoded: { count: "42" } })
    const misfit = yield* settled(bench.execute({ success, handler: () => ({ count: "many" }) }))
    yield* same("the end of a value that does not fit", misfit._tag, "InvalidReturn")
  })

const hostile = (bench: AnyBench): Body =>
  each(hostileSchemas, (Fragile) =>
    Effect.gen(function*() {
      const handler = () => "done"
      const decoding = yield* settled(bench.execute({ parameters: { text: Fragile }, args: { text: "a" }, handler }))
      yield* ensure("origin" in decoding, () => `parameters that cannot be decoded ended in ${decoding._tag}`)
      const encoding = yield* settled(bench.execute({ success: Fragile, handler }))
      yield* ensure("origin" in encoding, () => `a success that cannot be encoded ended in ${encoding._tag}`)
    }))

const callsOnce = (bench: AnyBench): Body =>
  each([...values, ...failures, ...crashes, ...exits], ({ handler, kind }) =>
    Effect.gen(function*() {
      let calls = 0
      const counted = () => {
        calls++
        return handler()
      }
      const run = (yield* bench.runner({ handler: counted, retry: Schedule.recurs(2) }))({})
      yield* same(`${kind}: calls before it is run`, calls, 0)
      yield* settled(run)
      yield* same(`${kind}: calls after one run`, calls, 1)
      yield* settled(run)
      yield* same(`${kind}: calls after two runs`, calls, 2)
    }))

const waits = (bench: AnyBench): Body =>
  Effect.gen(function*() {
    const started = yield* Deferred.make<void>()
    const answer = yield* Deferred.make<string>()
    const handler = () => Effect.zipRight(Deferred.succeed(started, void 0), Deferred.await(answer))
    const [fiber] = yield* begun(bench.execute({ handler, timeout: "1 second" }), started)
    yield* TestClock.adjust("30 days")
    yield* ensure(Option.isNone(yield* Fiber.poll(fiber)), () => "it ended before its handler did")
    yield* Deferred.succeed(answer, "late")
    yield* same("the outcome", summary(yield* Fiber.join(fiber)), { _tag: "Ok", value: "late" })
  }).pipe(Effect.provide(TestContext.TestContext))

const call = (id: string): ToolCall.ToolCall => ToolCall.make({ id, name: toolName, arguments: {} })

const identity = (context: ToolContext.Service) => ({
  id: context.toolCall.id,
  sessionId: context.sessionId ?? null,
  requestId: context.requestId ?? null,
  context: context.context
})

const contexts = (bench: AnyBench): Body =>
  Effect.gen(function*() {
    const toolCall = call("c3")
    const given = { toolCall, sessionId: "s1", requestId: "r1", context: { user: "ada" } }
    const expected = { _tag: "Ok", value: { id: "c3", sessionId: "s1", requestId: "r1", context: { user: "ada" } } }
    const asArgument = yield* settled(bench.execute({ ...given, handler: (_, context) => identity(context) }))
    yield* same("the argument", summary(asArgument), expected)
    const service = () => Effect.map(ToolContext.ToolContext, identity)
    const asService = yield* settled(bench.execute({ ...given, handler: service }))
    yield* same("the service", summary(asService), expected)
  })

const inventsNothing = (bench: AnyBench): Body =>
  Effect.gen(function*() {
    const end = yield* settled(bench.execute({ toolCall: call("c4"), handler: (_, context) => identity(context) }))
    yield* same("what the handler saw", summary(end), {
      _tag: "Ok",
      value: { id: "c4", sessionId: null, requestId: null, context: {} }
    })
  })

const progress = (bench: AnyBench): Body =>
  Effect.gen(function*() {
    const told: Array<unknown> = []
    yield* settled(bench.execute({
      onProgress: (value) => void told.push(value),
      handler: (_, context) =>
        Effect.zipRight(context.progress({ done: 1 }), Effect.sync(() => context.unsafeProgress({ done: 2 })))
    }))
    yield* same("the progress", told, [{ done: 1 }, { done: 2 }])
  })

const apart = (bench: AnyBench): Body =>
  Effect.gen(function*() {
    const size = 10
    let running = 0
    const all = yield* Deferred.make<void>()
    // Nobody goes on before everybody is there.
    const handler = (params: { readonly n: number }, context: ToolContext.Service) =>
      Effect.suspend(() => ++running === size ? Deferred.succeed(all, void 0) : Deferred.await(all)).pipe(
        Effect.map(() => `${params.n} ${context.toolCall.id}`)
      )
    const run = yield* bench.runner({ parameters: { n: Schema.Number }, handler })
    const ends = yield* Effect.forEach(
      Array.from({ length: size }, (_, n) => n),
      (n) => settled(run({ args: { n }, toolCall: call(`c${n}`) })),
      { concurrency: "unbounded" }
    )
    yield* same("the outcomes", ends.map(summary), ends.map((_, n) => ({ _tag: "Ok", value: `${n} c${n}` })))
  })

const interrupts = (bench: AnyBench): Body =>
  Effect.gen(function*() {
    const started = yield* Deferred.make<void>()
    let closed = false
    const handler = () =>
      Deferred.succeed(started, void 0).pipe(
        Effect.zipRight(Effect.never),
        Effect.onInterrupt(() =>
          Effect.zipRight(
            Effect.yieldNow(),
            Effect.sync(() => {
              closed = true
            })
          )
        )
      )
    const [fiber] = yield* begun(bench.execute({ handler }), started)
    yield* Fiber.interrupt(fiber)
    yield* ensure(closed, () => "the handler's finalizer had not run when the interruption was over")
  })

const aborts = (bench: AnyBench): Body =>
  Effect.gen(function*() {
    const started = yield* Deferred.make<AbortSignal>()
    const handler = (_: unknown, { signal }: ToolContext.Service) => {
      Deferred.unsafeDone(started, Effect.succeed(signal))
      return new Promise<never>(() => {})
    }
    const [fiber, signal] = yield* begun(bench.execute({ handler }), started)
    yield* ensure(!signal.aborted, () => "the signal was aborted from the start")
    yield* Fiber.interrupt(fiber)
    yield* ensure(signal.aborted, () => "the signal of a promise's handler was not aborted")
  })

class Rate extends Context.Tag("@allm/conformance/ToolExecutorChecks/Rate")<Rate, number>() {}

const services = (bench: AnyBench): Body =>
  Effect.gen(function*() {
    const tool = Tool.make(toolName, { description: "Reads a service", handler: () => Rate })
    const executor = yield* bench.executor({})
    const ends = yield* Effect.forEach([3, 4], (rate) =>
      settled(
        Effect.provideService(executor.execute(tool, {}, ToolContext.make({ toolCall: call("c0") })), Rate, rate)
      ))
    yield* same("the outcomes", ends.map(summary), [{ _tag: "Ok", value: 3 }, { _tag: "Ok", value: 4 }])
  })
