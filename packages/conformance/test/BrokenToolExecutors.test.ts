import { Check, ToolExecutorChecks } from "@allm/conformance"
import { Tool, ToolContext, ToolError, ToolExecutor, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schedule, Schema } from "effect"

type Run = Effect.Effect<ToolResult.ToolOutcome, ToolError.ToolError>
type Execute = (tool: Tool.Any, args: unknown, context: ToolContext.Service) => Run

// What tools need is of no interest here.
const execute = ToolExecutor.handlers.execute as unknown as Execute

const around =
  (change: (run: Run, tool: Tool.Any, context: ToolContext.Service) => Run): Execute => (tool, args, context) =>
    change(execute(tool, args, context), tool, context)

const failing = (change: (error: ToolError.ToolError) => Run): Execute => around((run) => Effect.catchAll(run, change))

const giving = (change: (outcome: ToolResult.ToolOutcome) => ToolResult.ToolOutcome): Execute =>
  around((run) => Effect.map(run, change))

/** What every error is made of. */
const partsOf = ({ cause, toolCallId, toolName }: ToolError.ToolError) => ({
  ...(cause === undefined ? {} : { cause }),
  ...(toolCallId === undefined ? {} : { toolCallId }),
  ...(toolName === undefined ? {} : { toolName })
})

const values = "gives what a handler gives, whatever kind of function it is"
const failures = "gives a reported failure as HandlerFailed, untouched"
const crashes = "gives a crash as HandlerRaised, with its cause"
const exits = "gives an interruption of the handler's own as HandlerExit"
const ranks = "lets a reported failure outrank a crash, and a crash an interruption"
const malformed = "gives a malformed result as InvalidReturn"
const special = "hands on questions and halts"
const names = "names the tool and the call in every error"
const notFound = "gives NotFound when there is no handler"
const decodes = "decodes the arguments before the handler sees them"
const refuses = "does not call the handler with arguments that do not fit"
const encodes = "checks and encodes a success by its schema"
const hostile = "gives a ToolError when a schema throws"
const once = "calls the handler once per run, and not before"
const limit = "has no time limit of its own"
const contexts = "gives the handler its context, as argument and as service"
const ids = "invents no ids"
const progress = "hands progress on"
const apart = "keeps calls at the same time apart"
const interrupts = "interrupts the handler, and waits for its finalizers"
const aborts = "aborts the signal when it is interrupted"
const services = "gives the handler the services of the call"

/** The same tool, with another handler. */
const remade = (tool: Tool.Any, handler: (params: unknown) => unknown, parameters = tool.parameters): Tool.Any =>
  Tool.make(tool.name, { description: tool.description, parameters, success: tool.success, handler })

const withoutToolContext = (given: Context.Context<unknown>): Context.Context<unknown> =>
  Context.omit(ToolContext.ToolContext)(
    given as Context.Context<ToolContext.ToolContext>
  ) as unknown as Context.Context<unknown>

const timedOut = ({ toolCall }: ToolContext.Service) =>
  new ToolError.Timeout({ toolName: toolCall.name, toolCallId: toolCall.id })

// A fault that nobody notices is no proof.
type Noticed = readonly [string, ...Array<string>]

/** What is wrong with an executor, the executor, and the checks that have to notice. */
const broken: ReadonlyArray<readonly [fault: string, make: () => Execute, noticed: Noticed]> = [
  [
    "only awaits the handler",
    () => (tool, args, context) =>
      Effect.map(Effect.promise(async () => tool.handler?.(args as never, context)), (value) => ToolResult.ok(value)),
    [
      values,
      failures,
      crashes,
      exits,
      ranks,
      malformed,
      special,
      names,
      notFound,
      decodes,
      refuses,
      encodes,
      hostile,
      once,
      limit,
      contexts,
      progress,
      apart,
      interrupts,
      aborts,
      services
    ]
  ],
  [
    "wraps what a handler gives",
    () => giving((outcome) => outcome._tag === "Ok" ? { ...outcome, value: [outcome.value] } : outcome),
    [values, decodes, encodes, limit, contexts, ids, apart, services]
  ],
  [
    "gives a bare value",
    () =>
      around((run) =>
        Effect.map(run, (outcome) => (outcome._tag === "Ok" ? outcome.value : outcome) as ToolResult.ToolOutcome)
      ),
    [values, decodes, encodes, once, limit, contexts, ids, progress, apart, services]
  ],
  [
    "forgets the encoded form",
    () => giving((outcome) => outcome._tag === "Ok" ? ToolResult.ok(outcome.value) : outcome),
    [encodes]
  ],
  [
    "takes questions for answers",
    () => giving((outcome) => outcome._tag === "AskUser" ? ToolResult.ok(outcome.question) : outcome),
    [special]
  ],
  [
    "crashes with its handler",
    () => failing((error) => error._tag === "HandlerRaised" ? Effect.die(error) : Effect.fail(error)),
    [crashes, ranks, names, hostile, once]
  ],
  [
    "is interrupted with its handler",
    () => failing((error) => error._tag === "HandlerExit" ? Effect.interrupt : Effect.fail(error)),
    [exits, names, once]
  ],
  [
    "takes a reported failure for a crash",
    () =>
      failing((error) =>
        Effect.fail(error._tag === "HandlerFailed" ? new ToolError.HandlerRaised(partsOf(error)) : error)
      ),
    [failures, ranks]
  ],
  [
    "takes an interruption for a crash",
    () =>
      failing((error) =>
        Effect.fail(error._tag === "HandlerExit" ? new ToolError.HandlerRaised(partsOf(error)) : error)
      ),
    [exits]
  ],
  [
    "loses the cause of a crash",
    () =>
      failing((error) => {
        const { cause: _, ...ids } = partsOf(error)
        return Effect.fail(error._tag === "HandlerRaised" ? new ToolError.HandlerRaised(ids) : error)
      }),
    [crashes, ranks]
  ],
  [
    "changes what was reported",
    () =>
      failing((error) =>
        Effect.fail(
          error._tag === "HandlerFailed"
            ? new ToolError.HandlerFailed({ ...partsOf(error), failure: String(error.failure) })
            : error
        )
      ),
    [failures, ranks]
  ],
  [
    "lets malformed results pass",
    () => (tool, args, context) =>
      Effect.catchTag(execute(tool, args, context), "InvalidReturn", () => Effect.succeed(ToolResult.ok(null))),
    [malformed, names, encodes, hostile]
  ],
  [
    "fails with an error of its own",
    () =>
      failing((error) =>
        Effect.fail(error._tag === "InvalidReturn" ? new Error("no") as unknown as ToolError.ToolError : error)
      ),
    [malformed, names, encodes, hostile]
  ],
  [
    "names another call",
    () =>
      failing((error) =>
        Effect.fail(
          error._tag === "HandlerRaised"
            ? new ToolError.HandlerRaised({ ...partsOf(error), toolCallId: "call_1" })
            : error
        )
      ),
    [names]
  ],
  [
    "answers for missing handlers",
    () => (tool, args, context) =>
      tool.handler === undefined ? Effect.succeed(ToolResult.ok(null)) : execute(tool, args, context),
    [notFound]
  ],
  [
    "passes arguments on as they are",
    () => (tool, args, context) =>
      execute(remade(tool, () => tool.handler?.(args as never, context), Schema.Struct({})), {}, context),
    [notFound, decodes, refuses, hostile]
  ],
  [
    "decodes with a crash",
    () => failing((error) => error._tag === "InvalidArguments" ? Effect.die(error) : Effect.fail(error)),
    [refuses, hostile]
  ],
  [
    "throws instead of describing",
    () => (tool, args, context) => {
      if (args === undefined) throw new Error("no arguments")
      return execute(tool, args, context)
    },
    [refuses]
  ],
  ["tries again", () => around((run) => Effect.retry(run, Schedule.recurs(1))), [once]],
  [
    "tries again when the tool says so",
    () => around((run, tool) => tool.retry === undefined ? run : Effect.retry(run, tool.retry)),
    [once]
  ],
  [
    "calls the handler before it is run",
    () => (tool, args, context) => Effect.flatten(Effect.runFork(execute(tool, args, context)).await),
    [once, interrupts, aborts, services]
  ],
  [
    "runs only once",
    () => (tool, args, context) =>
      Effect.flatten(Effect.cached(execute(tool, args, context)).pipe(Effect.runSync, Effect.succeed)),
    [once]
  ],
  [
    "gives up after a day",
    () =>
      around((run, _, context) => Effect.timeoutFail(run, { duration: "1 day", onTimeout: () => timedOut(context) })),
    [limit]
  ],
  [
    "minds the tool's own limit",
    () =>
      around((run, { timeout }, context) =>
        timeout === undefined ? run : Effect.timeoutFail(run, { duration: timeout, onTimeout: () => timedOut(context) })
      ),
    [limit]
  ],
  [
    "makes a context of its own",
    () => (tool, args, { toolCall }) => execute(tool, args, ToolContext.make({ toolCall, sessionId: "session" })),
    [contexts, ids, progress]
  ],
  [
    "keeps progress to itself",
    () => (tool, args, { context, requestId, sessionId, toolCall }) =>
      execute(tool, args, ToolContext.make({ context, requestId, sessionId, toolCall })),
    [progress]
  ],
  [
    "hides the context from Effects",
    () => (tool, args, context) =>
      execute(
        tool.handler === undefined ? tool : remade(tool, (params) => {
          const returned = tool.handler?.(params as never, context)
          return Effect.isEffect(returned)
            ? Effect.mapInputContext(returned, withoutToolContext)
            : returned
        }),
        args,
        context
      ),
    [contexts]
  ],
  [
    "runs one call at a time",
    () => {
      const turn = Effect.unsafeMakeSemaphore(1)
      return around((run) => turn.withPermits(1)(run))
    },
    [apart]
  ],
  [
    "mixes up contexts",
    () => {
      let last: ToolContext.Service | undefined
      return (tool, args, context) =>
        Effect.sync(() => {
          last = context
        }).pipe(
          Effect.zipRight(Effect.yieldNow()),
          Effect.zipRight(Effect.suspend(() => execute(tool, args, last!)))
        )
    },
    [apart]
  ],
  ["cannot be interrupted", () => around(Effect.uninterruptible), [interrupts, aborts]],
  [
    "lets the handler go on",
    () => around((run) => Effect.disconnect(Effect.uninterruptible(run))),
    [interrupts, aborts]
  ],
  ["does not wait for finalizers", () => around(Effect.disconnect), [interrupts]],
  [
    "leaves the signal alone",
    () => (tool, args, context) => {
      const { context: given, engine, idempotencyKey, progress, requestId, sessionId, toolCall, unsafeProgress } =
        context
      const { signal } = new AbortController()
      return execute(tool, args, {
        context: given,
        engine,
        idempotencyKey,
        progress,
        requestId,
        sessionId,
        signal,
        toolCall,
        unsafeProgress
      })
    },
    [aborts]
  ],
  [
    "has no services",
    () => around((run) => Effect.mapInputContext(run, () => Context.empty() as Context.Context<never>)),
    [services]
  ]
]

const noticedBy = (make: () => Execute) =>
  Effect.map(
    Check.violations(
      ToolExecutorChecks.make(
        Layer.sync(ToolExecutor.ToolExecutor, () => ({ execute: make() }) as unknown as ToolExecutor.Service),
        { limit: "1 second" }
      ),
      { concurrency: "unbounded" }
    ),
    (violations) => violations.map((violation) => violation.check)
  )

describe("ToolExecutorChecks", () => {
  for (const [fault, make, noticed] of broken) {
    it.effect(`notice an executor that ${fault}`, () =>
      Effect.gen(function*() {
        const found = yield* noticedBy(make)

        assert.deepStrictEqual(found, [...noticed])
      }))
  }

  it.effect("notice an executor that ignores the handlers it is given", () =>
    Effect.gen(function*() {
      const violations = yield* Check.violations(
        ToolExecutorChecks.make(() => ToolExecutor.layer(ToolExecutor.handlers), { limit: "1 second" }),
        { concurrency: "unbounded" }
      )

      assert.strictEqual(violations[0]?.check, values)
    }))

  it.effect("notice a layer that cannot be built", () =>
    Effect.gen(function*() {
      const violations = yield* Check.violations(ToolExecutorChecks.make(Layer.fail("no connection")))

      assert.strictEqual(violations[0]?.problem, "the layer cannot be built: \"no connection\"")
    }))

  it.effect("are each needed by a fault", () =>
    Effect.sync(() => {
      const names = ToolExecutorChecks.make(ToolExecutor.layer(ToolExecutor.handlers)).map((check) => check.name)

      assert.deepStrictEqual(names.filter((name) => broken.every(([, , noticed]) => !noticed.includes(name))), [])
    }))
})
