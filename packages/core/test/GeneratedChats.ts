/**
 * Chats made at random: what the model says, what the tools do, what the caller asked for. Plain data, so that a chat that
 * breaks a law prints as one.
 */
import type { Allm, Request } from "@allm/core"
import { Fake, OnToolError, Tool, ToolResult } from "@allm/core"
import { Effect, FastCheck as fc, Random, Schema } from "effect"
import { IdleClock } from "./IdleClock.ts"

class Lost extends Schema.TaggedError<Lost>()("Lost", { where: Schema.String }) {}

const parameters = { n: Schema.optional(Schema.Number) }

/** One tool of each kind. What they give is JSON unless said otherwise below. */
export const tools = [
  Tool.make("plain", { description: "Answers at once", parameters, handler: ({ n }) => ({ doubled: (n ?? 0) * 2 }) }),
  Tool.make("nothing", { description: "Answers nothing", parameters, handler: () => undefined }),
  Tool.make("promised", { description: "Answers later", parameters, handler: async ({ n }) => `promised ${n ?? "-"}` }),
  Tool.make("effect", {
    description: "Answers as an Effect",
    parameters,
    handler: ({ n }) => Effect.succeed([n ?? 0])
  }),
  Tool.make("slow", {
    description: "Answers after a while",
    parameters,
    handler: ({ n }) => Effect.as(Effect.sleep(10 + (n ?? 0)), "slow")
  }),
  Tool.make("telling", {
    description: "Tells how far it is",
    parameters,
    handler: (_, context) =>
      context.progress(1).pipe(
        Effect.zipRight(Effect.sleep(4)),
        Effect.zipRight(context.progress(2)),
        Effect.as("told")
      )
  }),
  Tool.make("failing", { description: "Says no", parameters, handler: () => Effect.fail("no") }),
  Tool.make("declared", {
    description: "Says no in its own words",
    parameters,
    failure: Lost,
    handler: () => Effect.fail(new Lost({ where: "here" }))
  }),
  Tool.make("throwing", {
    description: "Throws",
    parameters,
    handler: (): string => {
      throw new Error("thrown")
    }
  }),
  Tool.make("rejecting", {
    description: "Rejects",
    parameters,
    handler: (): Promise<string> => Promise.reject(new Error("rejected"))
  }),
  Tool.make("dying", {
    description: "Dies after a while",
    parameters,
    handler: () => Effect.zipRight(Effect.sleep(3), Effect.dieMessage("died"))
  }),
  Tool.make("asking", { description: "Asks", parameters, handler: () => ToolResult.askUser("Which?", { of: [1, 2] }) }),
  Tool.make("asking_late", {
    description: "Asks after a while",
    parameters,
    handler: () => Effect.as(Effect.sleep(6), ToolResult.askUser("When?"))
  }),
  Tool.make("halting", { description: "Halts", parameters, handler: () => ToolResult.halt("enough", { sum: 1 }) }),
  Tool.make("halting_late", {
    description: "Halts after a while",
    parameters,
    handler: () => Effect.as(Effect.sleep(7), ToolResult.halt("too_late", null))
  }),
  Tool.make("reserved", { description: "Halts wrongly", parameters, handler: () => ToolResult.halt("completed", 1) }),
  Tool.make("hanging", { description: "Never answers", parameters, timeout: 25, handler: () => Effect.never }),
  Tool.make("unencodable", { description: "Has no text", parameters, handler: () => ({ big: 1n }) }),
  Tool.make("ill_typed", {
    description: "Gives what it did not declare",
    parameters,
    success: Schema.Struct({ a: Schema.Positive }),
    handler: () => ({ a: -1 })
  }),
  Tool.make("manual", { description: "The caller's own", parameters, manual: true }),
  Tool.make("guarded", { description: "Needs consent", parameters, needsApproval: true, handler: () => "allowed" })
]

const names = [...tools.map((tool) => tool.name), "missing"]

/** What a generated chat is given, as data. */
export interface World {
  readonly scripts: ReadonlyArray<Fake.Script>
  readonly options: {
    readonly maxTurns: number
    readonly mode: "auto" | "manual"
    readonly onToolError: "continue" | "halt" | "replace" | "crash"
    readonly siblings: "drain" | "interrupt" | { readonly drainFor: number }
    readonly concurrency: number | "unbounded"
    readonly unknownTool: "fail" | "feedback"
    readonly structuredFinalize: boolean
    readonly softLanding: boolean
    readonly haltAfterResults: number | undefined
    readonly budget: {
      readonly maxToolCalls?: number
      readonly maxTokens?: number
      readonly maxDuration?: number
      readonly maxRepeatedCalls?: number
    }
  }
}

/** The options of most chats. */
export const ordinary: World["options"] = {
  maxTurns: 4,
  mode: "auto",
  onToolError: "continue",
  siblings: "drain",
  concurrency: "unbounded",
  unknownTool: "feedback",
  structuredFinalize: false,
  softLanding: false,
  haltAfterResults: undefined,
  budget: {}
}

const often = <A>(usual: A, ...others: ReadonlyArray<A>): fc.Arbitrary<A> =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(usual) }, { weight: 2, arbitrary: fc.constantFrom(usual, ...others) })

interface Draft {
  readonly name: string
  readonly raw: string
  readonly cuts: number | undefined
}

const draft = (from: ReadonlyArray<string>): fc.Arbitrary<Draft> =>
  fc.record({
    name: fc.constantFrom(...from),
    raw: fc.constantFrom("{}", "{\"n\":1}", "{\"n\":2}", "{\"n\":\"one\"}", "{\"n\":", ""),
    cuts: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined })
  })

const spoken: fc.Arbitrary<Fake.Entry> = fc.oneof(
  fc.constantFrom("Hel", "lo", "", "ü€😀").map(Fake.text),
  fc.constantFrom("hm", "so").map(Fake.reasoning),
  fc.integer({ min: 1, max: 12 }).map((millis) => Fake.delay(millis)),
  fc.constant(Fake.usage({ inputTokens: 3, outputTokens: 4 })),
  fc.constant(Fake.usage({ totalTokens: 11 })),
  fc.constant(Fake.raw({ chunk: 1 }))
)

const reasons = ["stop", "length", "tool_calls", "content_filter", "error", "other"] as const

const callEntries = (id: string, { cuts, name, raw }: Draft): ReadonlyArray<Fake.Entry> => {
  if (cuts === undefined) return [Fake.toolCall({ id, name, rawArguments: raw })]
  const size = Math.max(1, Math.ceil(raw.length / cuts))
  const deltas = Array.from({ length: cuts }, (_, i) => raw.slice(i * size, (i + 1) * size))
  return deltas.map((delta, i) => Fake.toolCallDelta({ id, ...(i === 0 ? { name } : {}), delta }))
}

const script = (turn: number, from: ReadonlyArray<string>): fc.Arbitrary<Fake.Script> =>
  fc.record({
    preflight: often<"authentication_failed" | "rate_limited" | undefined>(
      undefined,
      undefined,
      undefined,
      "authentication_failed",
      "rate_limited"
    ),
    said: fc.array(spoken, { maxLength: 3 }),
    calls: fc.array(draft(from), { maxLength: 4 }),
    breaks: often(false, false, false, true),
    finish: fc.oneof(
      { weight: 1, arbitrary: fc.constant(undefined) },
      { weight: 8, arbitrary: fc.constant("by content") },
      { weight: 4, arbitrary: fc.constantFrom(...reasons) }
    )
  }).map(({ breaks, calls, finish, preflight, said }) => {
    const natural = calls.length > 0 ? "tool_calls" : "stop"
    return [
      ...(preflight === undefined ? [] : [Fake.preflightError(preflight)]),
      ...said,
      ...calls.flatMap((call, i) => callEntries(`t${turn}c${i}`, call)),
      ...(breaks ? [Fake.error("provider_unavailable")] : []),
      ...(finish === undefined ? [] : [Fake.finish(finish === "by content" ? natural : finish as "stop")])
    ]
  })

const scriptsOf = (from: ReadonlyArray<string>): fc.Arbitrary<ReadonlyArray<Fake.Script>> =>
  fc.integer({ min: 1, max: 4 }).chain((turns) =>
    fc.tuple(...Array.from({ length: turns }, (_, turn) => script(turn, from)))
  )

const options: fc.Arbitrary<World["options"]> = fc.record({
  maxTurns: often(4, 1, 2, 3),
  mode: often<"auto" | "manual">("auto", "auto", "manual"),
  onToolError: often<World["options"]["onToolError"]>("continue", "halt", "replace", "crash"),
  siblings: often<World["options"]["siblings"]>("drain", "interrupt", { drainFor: 5 }),
  concurrency: often<number | "unbounded">("unbounded", 1, 2),
  unknownTool: often<"fail" | "feedback">("feedback", "fail"),
  structuredFinalize: often(false, true),
  softLanding: often(false, true),
  haltAfterResults: often<number | undefined>(undefined, 1, 2),
  budget: fc.oneof(
    { weight: 3, arbitrary: fc.constant({}) },
    {
      weight: 2,
      arbitrary: fc.record({
        maxToolCalls: fc.integer({ min: 1, max: 5 }),
        maxTokens: fc.integer({ min: 5, max: 20 }),
        maxDuration: fc.integer({ min: 5, max: 60 }),
        maxRepeatedCalls: fc.integer({ min: 2, max: 3 })
      }, { requiredKeys: [] })
    }
  )
})

const worldFrom = (from: ReadonlyArray<string>): fc.Arbitrary<World> => fc.record({ scripts: scriptsOf(from), options })

/** Any chat. */
export const worlds: fc.Arbitrary<World> = worldFrom(names)

// An Error, an instance of a class, and `undefined` are not JSON.
const beyondJson = new Set(["throwing", "rejecting", "dying", "unencodable", "declared", "nothing"])

/** Chats in which every value is JSON. */
export const jsonWorlds: fc.Arbitrary<World> = worldFrom(names.filter((name) => !beyondJson.has(name)))

/** The options as the library takes them. */
export const optionsOf = (world: World) => {
  const { haltAfterResults, onToolError, structuredFinalize, ...rest } = world.options
  return {
    ...rest,
    requestId: "r0",
    sessionId: "s0",
    toolTimeout: 40,
    ...(structuredFinalize
      ? { structuredFinalize, responseFormat: Schema.Struct({ answer: Schema.String }) }
      : {}),
    ...(haltAfterResults === undefined
      ? {}
      : {
        haltWhen: (step: { readonly toolResults: ReadonlyArray<unknown> }) =>
          step.toolResults.length >= haltAfterResults
      }),
    onToolError: policies[onToolError]
  } satisfies Allm.Options
}

const policies: { readonly [P in World["options"]["onToolError"]]: OnToolError.OnToolError } = {
  continue: "continue",
  halt: "halt",
  replace: () => OnToolError.continueWith({ replaced: true }),
  crash: () => Effect.fail("crash")
}

/** Runs something against the model and the tools of a world, from the beginning of its scripts. */
export const within =
  (world: World, clock = new IdleClock(), record?: (request: Request.Request) => void) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    effect.pipe(
      Effect.provide(Fake.engine({ scripts: world.scripts, tools, record })),
      Effect.withRandom(Random.make("the same every time")),
      Effect.withClock(clock)
    )
