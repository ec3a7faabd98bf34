/**
 * What every adapter has to do, as checks.
 *
 * An adapter shows itself in scenarios: what the model at its other end says is told by the check, and brought about by
 * whoever wrote the adapter, with a scripted server or a script.
 *
 * @since 0.1.0
 */
import { Adapter, type AdapterError, Allm, Engine, type Event, Message, Request, Tool, ToolCall } from "@allm/core"
import * as Cause from "effect/Cause"
import * as Chunk from "effect/Chunk"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Check from "./Check.ts"
import { laws, said } from "./EventLaws.ts"
import { ask, type Asked, failureOf, finished, open, type Opened, streamed } from "./internal/adapterBench.ts"
import { aWhile, type Body, check, each, ensure, type Problem, render, same, skip, until } from "./internal/check.ts"

/**
 * An adapter under test, as a service, as a layer, or as an Effect that also tells how many answers are being given at
 * the other end.
 *
 * @since 0.1.0
 * @category models
 */
export type Subject<E = never> =
  | Adapter.Service
  | Layer.Layer<Adapter.Adapter, E>
  | Effect.Effect<{ readonly adapter: Adapter.Service; readonly open?: Effect.Effect<number> }, E, Scope.Scope>

/**
 * A tool call a model makes: the text of its arguments comes in these pieces.
 *
 * @since 0.1.0
 * @category models
 */
export interface ScriptedCall {
  readonly id: string
  readonly name: string
  readonly pieces: ReadonlyArray<string>
}

/**
 * A refusal of a provider.
 *
 * @since 0.1.0
 * @category models
 */
export interface ScriptedFailure {
  readonly reason: "rate_limited" | "authentication_failed" | "invalid_request" | "provider_unavailable"
  readonly status: number
  readonly retryAfter?: Duration.Duration
}

/**
 * What the model at the other end does. Each scenario answers alike however often it is asked, whatever it is asked. Only
 * `text` is needed; checks of a scenario that is not given are skipped.
 *
 * @since 0.1.0
 * @category models
 */
export interface Scenarios<E = never> {
  /** Says a text in these pieces, and stops. */
  readonly text: (pieces: ReadonlyArray<string>) => Subject<E>
  /** Says the text of the last user message, and stops. */
  readonly echo?: (() => Subject<E>) | undefined
  /** Makes these calls, and stops for their results. */
  readonly toolCalls?: ((calls: ReadonlyArray<ScriptedCall>) => Subject<E>) | undefined
  /** Makes a call whose arguments are not JSON. */
  readonly brokenArguments?: ((call: ScriptedCall) => Subject<E>) | undefined
  /** Refuses before it says anything. */
  readonly failure?: ((failure: ScriptedFailure) => Subject<E>) | undefined
  /** Says a text in these pieces, and breaks off: the connection is lost, or an error comes. */
  readonly cut?: ((pieces: ReadonlyArray<string>) => Subject<E>) | undefined
  /** Says a text in these pieces, and then nothing, without an end. With no pieces it says nothing at all. */
  readonly slow?: ((pieces: ReadonlyArray<string>) => Subject<E>) | undefined
}

/**
 * The scenarios an adapter shows itself in, and how long each check may take.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options<E = never> extends Check.Options {
  readonly scenarios: Scenarios<E>
}

/**
 * The checks of an adapter. Each opens its scenarios anew.
 *
 * @example
 * ```ts
 * import * as AdapterChecks from "@allm/conformance/AdapterChecks"
 * import { Fake } from "@allm/core"
 *
 * const checks = AdapterChecks.make({
 *   scenarios: {
 *     text: (pieces) => Fake.layer({ respond: () => [...pieces.map(Fake.text), Fake.finish("stop")] })
 *   }
 * })
 *
 * // Those of scenarios that are not given are skipped.
 * assert.ok(checks.some(({ skipped }) => skipped === undefined))
 * assert.ok(checks.some(({ skipped }) => skipped !== undefined))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <E>(options: Options<E>): ReadonlyArray<Check.Check> => {
  const { scenarios } = options
  const promise = (name: string, body: Body): Check.Check => check(name, body, options)
  const given = <K extends keyof Scenarios<E>>(
    scenario: K,
    name: string,
    body: (scenario: NonNullable<Scenarios<E>[K]>) => Body
  ): Check.Check => {
    const found = scenarios[scenario]
    return found === undefined || found === null
      ? skip(name, `the scenario \`${scenario}\``)
      : promise(name, body(found))
  }

  return [
    promise(
      "has a name",
      Effect.flatMap(
        open(scenarios.text(pieces)),
        ({ adapter }) => ensure(typeof adapter.name === "string" && adapter.name !== "", () => "it has none")
      )
    ),

    promise(
      "says what the model said",
      Effect.flatMap(answer(scenarios.text(pieces)), ({ events }) => same("the text", said(events).text, text))
    ),
    given(
      "toolCalls",
      "calls what the model called",
      (toolCalls) =>
        Effect.flatMap(answer(toolCalls(calls)), ({ events }) =>
          same(
            "the calls",
            said(events).toolCalls.map(({ arguments: args, name }) => ({ name, args })),
            [
              { name: "get_weather", args: { city: "Zürich \"☂\"", days: [1, 2] } },
              { name: "get_time", args: {} },
              { name: "get_weather", args: { city: "Oslo" } }
            ]
          ))
    ),
    given(
      "brokenArguments",
      "keeps broken arguments as text",
      (brokenArguments) =>
        Effect.flatMap(answer(brokenArguments(broken)), ({ events }) =>
          same(
            "the call",
            said(events).toolCalls.map(({ id: _id, metadata: _metadata, ...call }) => call),
            [{ name: broken.name, rawArguments: broken.pieces.join("") }]
          ))
    ),
    promise(
      "tells that the model stopped",
      Effect.flatMap(
        answer(scenarios.text(pieces)),
        ({ events }) => same("the finish reason", said(events).finishReason, "stop")
      )
    ),
    given(
      "toolCalls",
      "tells that the model waits for its calls",
      (toolCalls) =>
        Effect.flatMap(
          answer(toolCalls(calls)),
          ({ events }) => same("the finish reason", said(events).finishReason, "tool_calls")
        )
    ),

    ...laws.map((law) =>
      promise(
        law.name,
        each(answersOf(scenarios), (asked) =>
          Effect.flatMap(asked, ({ events }) => {
            const problem = law.problem(events)
            return problem === undefined ? Effect.void : Effect.fail(problem)
          }))
      )
    ),

    promise("gives a Stream the same answer", sameAsStream(scenarios.text(many))),
    promise("gives an engine the same answer", sameAsEngine(scenarios.text(pieces))),
    promise("asks when it is run, and again when it is run again", repeats(scenarios.text(pieces))),
    promise("waits for each emit before the next, and for the last before it ends", backPressure(scenarios.text(many))),
    promise("lets a crash of emit pass", crashOfEmit(scenarios.text(pieces))),
    promise("leaves the request as it was", leavesRequest(scenarios.text(pieces))),
    given("echo", "keeps calls at the same time apart", (echo) => apart(echo())),

    ...requests.map(([field, request]) =>
      promise(`takes ${field}, or refuses with a typed error`, takesOrRefuses(scenarios.text(pieces), request))
    ),

    ...failures.map((failure) =>
      given(
        "failure",
        `fails with ${failure.reason} before any event`,
        (scenario) => refusal(scenario(failure), failure)
      )
    ),
    given("failure", "tells how long to wait", (scenario) =>
      Effect.gen(function*() {
        const retryAfter = Duration.seconds(7)
        const asked = yield* askedOf(scenario({ reason: "rate_limited", status: 429, retryAfter }))
        const error = yield* failureOf(asked)
        yield* same("retryAfter in ms", error.retryAfter && Duration.toMillis(error.retryAfter), 7000)
      })),
    given("cut", "does not pass a cut answer off as a whole one", (cut) => cutOff(cut(pieces))),

    promise("emits nothing after it was interrupted", silentAfterwards(scenarios.text(many))),
    given("slow", "can be interrupted before the model says anything", (slow) => interruptible(slow([]))),
    given("slow", "can be interrupted while the model is silent", (slow) => interruptible(slow(pieces), text)),
    given("slow", "lets go of the model when it is interrupted", (slow) => letsGo(slow(pieces), interruptedAsk)),
    given(
      "slow",
      "lets go of the model when a Stream is no longer read",
      (slow) => letsGo(slow(pieces), abandonedStream)
    )
  ]
}

const pieces: ReadonlyArray<string> = ["Grüße", ", ", "", "世界 👋\n", "{\"a\":", " 1}"]
const text = pieces.join("")
// More than a Stream holds for its reader.
const many: ReadonlyArray<string> = Array.from({ length: 300 }, (_, i) => `${i} `)

const calls: ReadonlyArray<ScriptedCall> = [
  { id: "call_a", name: "get_weather", pieces: ["{\"city\":\"Z", "ürich \\", "\"☂\\\"\",\"days\":[1", ",2]}"] },
  { id: "call_b", name: "get_time", pieces: ["{}"] },
  { id: "call_c", name: "get_weather", pieces: ["{\"city\":\"Oslo\"}"] }
]
const broken: ScriptedCall = { id: "call_d", name: "get_weather", pieces: ["{\"city\":", "\"Os"] }

const failures: ReadonlyArray<ScriptedFailure> = [
  { reason: "rate_limited", status: 429 },
  { reason: "authentication_failed", status: 401 },
  { reason: "invalid_request", status: 400 },
  { reason: "provider_unavailable", status: 503 }
]

const prompt = (content: string): Request.Request =>
  Request.make({ model: "conformance", messages: [Message.user(content)] })

const hello = prompt("Hello")

const tools = ["get_weather", "get_time"].map((name) =>
  Tool.declaration(Tool.fromJsonSchema(name, {
    description: "Tells something",
    schema: { type: "object", properties: { city: { type: "string" } } }
  }))
)

const answerSchema = {
  type: "object",
  properties: { a: { type: "number" } },
  required: ["a"],
  additionalProperties: false
}

const requests: ReadonlyArray<readonly [field: string, request: Request.Request]> = [
  ["tools", { ...hello, tools }],
  ["toolChoice auto", { ...hello, tools, toolChoice: "auto" }],
  ["toolChoice none", { ...hello, tools, toolChoice: "none" }],
  ["toolChoice required", { ...hello, tools, toolChoice: "required" }],
  ["toolChoice of one tool", { ...hello, tools, toolChoice: { tool: "get_time" } }],
  ["responseFormat text", { ...hello, responseFormat: { type: "text" } }],
  ["responseFormat json_object", { ...hello, responseFormat: { type: "json_object" } }],
  ["responseFormat json_schema", {
    ...hello,
    responseFormat: { type: "json_schema", name: "answer", schema: answerSchema, strict: true }
  }],
  ["temperature and maxTokens", { ...hello, temperature: 0.5, maxTokens: 100 }],
  ["images", {
    ...hello,
    messages: [
      Message.user([{ type: "text", text: "What is it?" }, Message.image("https://allm.example/a.png")])
    ]
  }],
  ["a history of calls and results", {
    ...hello,
    tools,
    messages: [
      Message.system("Be brief."),
      Message.user("Weather?"),
      Message.assistant("I look.", {
        toolCalls: [
          ToolCall.make({ id: "c0", name: "get_weather", arguments: { city: "Oslo" } }),
          ToolCall.fromRaw({ id: "c1", name: "get_weather", rawArguments: "{\"city\":" })
        ]
      }),
      Message.tool("c0", "sunny"),
      Message.tool("c1", "not JSON", { isError: true }),
      Message.user("And now?")
    ]
  }]
]

const askedOf = <E>(subject: Subject<E>, request = hello): Effect.Effect<Asked, Problem, Scope.Scope> =>
  Effect.flatMap(open(subject), ({ adapter }) => ask(adapter, request))

/** An answer that has to come to its end. */
const answer = <E>(subject: Subject<E>, request = hello): Effect.Effect<Asked, Problem, Scope.Scope> =>
  Effect.tap(askedOf(subject, request), finished)

const answersOf = <E>(scenarios: Scenarios<E>): ReadonlyArray<Effect.Effect<Asked, Problem, Scope.Scope>> => [
  answer(scenarios.text(pieces)),
  ...(scenarios.toolCalls === undefined ? [] : [answer(scenarios.toolCalls(calls))]),
  ...(scenarios.brokenArguments === undefined ? [] : [answer(scenarios.brokenArguments(broken))])
]

const sameAsStream = <E>(subject: Subject<E>): Body =>
  Effect.gen(function*() {
    const { adapter } = yield* open(subject)
    const direct = yield* Effect.tap(ask(adapter, hello), finished)
    // A reader that takes its time.
    const read = yield* Effect.tap(streamed(adapter, hello, Effect.yieldNow()), finished)
    yield* same("the answer of the Stream", said(read.events), said(direct.events))
  })

const sameAsEngine = <E>(subject: Subject<E>): Body =>
  Effect.gen(function*() {
    const { adapter } = yield* open(subject)
    const engine = Engine.layer({ model: "conformance", retry: false }).pipe(Layer.provide(Adapter.layer(adapter)))
    const response = yield* Allm.generate("Hello").pipe(
      Effect.provide(engine),
      Effect.mapError((error) => `it failed: ${error.message}`)
    )
    yield* same("the text", response.outputText, text)
    yield* same("the finish reason", response.finishReason, "stop")
  })

const repeats = <E>(subject: Subject<E>): Body =>
  Effect.gen(function*() {
    const { adapter } = yield* open(subject)
    const events: Array<Event.AdapterEvent> = []
    const generate = adapter.generate(hello, (batch) => Effect.sync(() => void events.push(...batch)))
    yield* aWhile
    yield* same("the number of events before it is run", events.length, 0)
    for (const time of ["first", "second"]) {
      events.length = 0
      yield* Effect.mapError(generate, (error) => `the ${time} run failed: ${error.message}`)
      yield* same(`the text of the ${time} run`, said(events).text, text)
    }
  })

const backPressure = <E>(subject: Subject<E>): Body =>
  Effect.gen(function*() {
    const { adapter } = yield* open(subject)
    const entered = yield* Deferred.make<void>()
    const gate = yield* Deferred.make<void>()
    let waiting = 0
    let most = 0
    const fiber = yield* Effect.fork(ask(adapter, hello, () =>
      Effect.suspend(() => {
        most = Math.max(most, ++waiting)
        return Effect.zipRight(Deferred.succeed(entered, void 0), Deferred.await(gate))
      }).pipe(Effect.ensuring(Effect.sync(() => void waiting--)))))
    yield* Effect.raceFirst(Deferred.await(entered), Fiber.await(fiber))
    yield* aWhile
    yield* ensure(Option.isNone(yield* Fiber.poll(fiber)), () => "it ended while an emit was waiting")
    yield* Deferred.succeed(gate, void 0)
    const asked = yield* Effect.tap(Fiber.join(fiber), finished)
    yield* aWhile
    yield* same("the number of emits at the same time", most, 1)
    yield* same("the text", said(asked.events).text, many.join(""))
  })

const crashOfEmit = <E>(subject: Subject<E>): Body =>
  Effect.gen(function*() {
    const { adapter } = yield* open(subject)
    const marker = { crash: "of emit" }
    const exit = yield* Effect.exit(adapter.generate(hello, () => Effect.die(marker)))
    const passed = Exit.isFailure(exit) && Chunk.some(Cause.defects(exit.cause), (defect) => defect === marker)
    yield* ensure(passed, () => `it ended in ${Exit.isSuccess(exit) ? "success" : Cause.pretty(exit.cause)}`)
  })

const leavesRequest = <E>(subject: Subject<E>): Body =>
  Effect.gen(function*() {
    const { adapter } = yield* open(subject)
    for (const [field, request] of requests) {
      const before = render(request)
      yield* ask(adapter, request)
      yield* same(`the request with ${field}`, render(request), before)
    }
  })

const apart = <E>(subject: Subject<E>): Body =>
  Effect.gen(function*() {
    const { adapter } = yield* open(subject)
    const prompts = Array.from({ length: 5 }, (_, i) => `question number ${i}`)
    const answers = yield* Effect.forEach(
      prompts,
      // The emits take turns, so that the answers interleave.
      (content) => Effect.tap(ask(adapter, prompt(content), () => Effect.yieldNow()), finished),
      { concurrency: "unbounded" }
    )
    yield* same("the texts", answers.map(({ events }) => said(events).text), prompts)
  })

const takesOrRefuses = <E>(subject: Subject<E>, request: Request.Request): Body =>
  Effect.gen(function*() {
    const asked = yield* askedOf(subject, request)
    if (Exit.isSuccess(asked.exit)) return yield* same("the text", said(asked.events).text, text)
    const { reason } = yield* failureOf(asked)
    yield* ensure(
      reason === "unsupported_feature" || reason === "invalid_request",
      () => `it is refused as ${reason}, not as unsupported_feature or invalid_request`
    )
    yield* same("the number of events before the refusal", asked.events.length, 0)
  })

const refusal = <E>(subject: Subject<E>, failure: ScriptedFailure): Body =>
  Effect.gen(function*() {
    const asked = yield* askedOf(subject)
    const error = yield* failureOf(asked)
    yield* same("the reason", error.reason, failure.reason)
    yield* same("the number of events before it", asked.events.length, 0)
  })

const cutOff = <E>(subject: Subject<E>): Body =>
  Effect.gen(function*() {
    const asked = yield* askedOf(subject)
    yield* Exit.isFailure(asked.exit)
      ? failureOf(asked)
      : ensure(asked.events.some((event) => event._tag === "ErrorOccurred"), () =>
        "it neither failed nor emitted ErrorOccurred")
    yield* same("the text up to the cut", said(asked.events).text, text)
  })

const silentAfterwards = <E>(subject: Subject<E>): Body =>
  Effect.gen(function*() {
    const { adapter } = yield* open(subject)
    const entered = yield* Deferred.make<void>()
    const gate = yield* Deferred.make<void>()
    let emits = 0
    const emit: Adapter.Emit = () =>
      Effect.suspend(() => {
        emits++
        return Effect.zipRight(Deferred.succeed(entered, void 0), Deferred.await(gate))
      })
    const fiber = yield* Effect.fork(adapter.generate(hello, emit))
    yield* Effect.raceFirst(Deferred.await(entered), Fiber.await(fiber))
    yield* Fiber.interrupt(fiber)
    const before = emits
    // What goes on in spite of the interruption is now free to emit.
    yield* Deferred.succeed(gate, void 0)
    yield* aWhile
    yield* same("the number of emits after the interruption", emits - before, 0)
  })

/** Asks, and waits until the expected text has come. */
const waitingFor = (opened: Opened, expected: string) =>
  Effect.gen(function*() {
    const events: Array<Event.AdapterEvent> = []
    const fiber = yield* Effect.fork(
      opened.adapter.generate(hello, (batch) => Effect.sync(() => void events.push(...batch)))
    )
    yield* until(Effect.sync(() => said(events).text === expected))
    yield* aWhile
    yield* ensure(Option.isNone(yield* Fiber.poll(fiber)), () => "the scenario `slow` came to an end")
    return fiber
  })

const interruptible = <E>(subject: Subject<E>, expected = ""): Body =>
  Effect.gen(function*() {
    const fiber = yield* waitingFor(yield* open(subject), expected)
    const exit = yield* Fiber.interrupt(fiber)
    yield* ensure(Exit.isInterrupted(exit), () => `the interruption ended in ${render(exit)}`)
  })

const interruptedAsk = (opened: Opened): Effect.Effect<void, Problem> =>
  Effect.flatMap(waitingFor(opened, text), Fiber.interrupt)

const abandonedStream = ({ adapter }: Opened): Effect.Effect<void, Problem> =>
  Adapter.stream(hello).pipe(
    Stream.takeUntil((event) => event._tag === "TextDelta"),
    Stream.runDrain,
    Effect.provideService(Adapter.Adapter, adapter),
    Effect.mapError((error: AdapterError.AdapterError) => `it failed: ${error.message}`)
  )

const letsGo = <E>(subject: Subject<E>, leave: (opened: Opened) => Effect.Effect<void, Problem>): Body =>
  Effect.gen(function*() {
    const opened = yield* open(subject)
    yield* leave(opened)
    // The other end may notice a little later. A subject that does not tell has at least come back from `leave`.
    if (opened.open !== undefined) yield* until(Effect.map(opened.open, (answers) => answers === 0))
  })
