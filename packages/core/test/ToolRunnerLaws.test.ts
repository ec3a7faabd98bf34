import { type Event, Halt, OnToolError, Tool, ToolCall, ToolError, ToolResult, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, FastCheck, Schema, Stream } from "effect"

/** A clock that goes on by itself as soon as nobody has anything to do: no test waits, and order is always the same. */
class IdleClock implements Clock.Clock {
  readonly [Clock.ClockTypeId]: Clock.ClockTypeId = Clock.ClockTypeId
  private now = 0
  private readonly sleepers: Array<{ readonly until: number; readonly wake: () => void }> = []
  private ticking = false

  readonly unsafeCurrentTimeMillis = () => this.now
  readonly unsafeCurrentTimeNanos = () => BigInt(Math.round(this.now * 1_000_000))
  readonly currentTimeMillis = Effect.sync(this.unsafeCurrentTimeMillis)
  readonly currentTimeNanos = Effect.sync(this.unsafeCurrentTimeNanos)

  readonly sleep = (duration: Duration.Duration): Effect.Effect<void> =>
    Effect.async<void>((resume) => {
      const sleeper = { until: this.now + Duration.toMillis(duration), wake: () => resume(Effect.void) }
      this.sleepers.push(sleeper)
      this.tickWhenIdle()
      return Effect.sync(() => this.sleepers.splice(this.sleepers.indexOf(sleeper), 1))
    })

  private tickWhenIdle(): void {
    if (this.ticking) return
    this.ticking = true
    setImmediate(() => {
      this.ticking = false
      const next = this.sleepers.reduce<number>((earliest, { until }) => Math.min(earliest, until), Infinity)
      const index = this.sleepers.findIndex(({ until }) => until === next)
      if (index < 0) return
      this.now = Math.max(this.now, next)
      this.sleepers.splice(index, 1)[0]!.wake()
      this.tickWhenIdle()
    })
  }
}

// Without the timer by which Effect.never keeps a process alive.
const forEver = Effect.async<never>(() => {})

const later = Effect.sleep(7)

const tool = <A, E>(name: string, handler: () => A | Effect.Effect<A, E>) =>
  Tool.make(name, { description: "One way to end", handler })

const tools = [
  tool("ok", () => "fine"),
  tool("ok_later", () => Effect.as(later, { fine: true })),
  tool("ok_slowly", () => Effect.as(Effect.sleep(40), "slow")),
  Tool.make("ok_promised", { description: "One way to end", handler: async () => [1, 2, 3] }),
  tool("fails", () => Effect.fail({ code: 7 })),
  tool("fails_later", () => Effect.zipRight(later, Effect.fail("no"))),
  tool("throws", (): string => {
    throw new Error("secret")
  }),
  tool("dies_later", () => Effect.zipRight(later, Effect.die("secret"))),
  Tool.make("rejects", { description: "One way to end", handler: () => Promise.reject(new Error("secret")) }),
  tool("exits", () => Effect.interrupt),
  tool("asks", () => ToolResult.askUser("Which?", { choices: ["a", "b"] })),
  tool("asks_later", () => Effect.as(later, ToolResult.askUser("When?"))),
  tool("halts", () => ToolResult.halt("enough", { total: 3 })),
  tool("halts_later", () => Effect.as(later, ToolResult.halt("enough", "later"))),
  tool("halts_wrongly", () => ToolResult.halt("completed", null)),
  tool("unencodable", () => ({ amount: 1n })),
  tool("waits", () => forEver),
  tool("stuck", () => Effect.uninterruptible(forEver)),
  Tool.make("alone", { description: "One way to end", exclusive: true, handler: () => Effect.as(later, "alone") }),
  Tool.make("typed", { description: "One way to end", parameters: { n: Schema.Number }, handler: ({ n }) => n }),
  Tool.make("bare", { description: "Has no handler" }),
  Tool.make("approved", { description: "Needs consent", needsApproval: true, handler: () => "consented" }),
  Tool.make("manual", { description: "For the caller", manual: true })
]

const policies = {
  continue: "continue",
  halt: "halt",
  replace: () => OnToolError.continueWith({ replaced: true }),
  unencodable: () => OnToolError.continueWith(1n),
  choose: (_: ToolCall.ToolCall, error: ToolError.ToolError) =>
    error._tag === "HandlerFailed" ? OnToolError.continue() : OnToolError.halt,
  slow: () => Effect.as(Effect.sleep(9), OnToolError.continue()),
  fails: () => Effect.fail("no idea"),
  throws: (): OnToolError.Decision => {
    throw new Error("no idea")
  }
} as const

const Batch = {
  names: FastCheck.array(FastCheck.constantFrom(...tools.map(({ name }) => name), "unknown"), { maxLength: 9 }),
  policy: FastCheck.constantFrom(...Object.keys(policies) as Array<keyof typeof policies>),
  concurrency: FastCheck.constantFrom(undefined, 1, 2, 3, "unbounded" as const)
}

const siblings = FastCheck.constantFrom(
  undefined,
  "drain" as const,
  "interrupt" as const,
  { drainFor: "10 millis" } as const
)

interface Sample {
  readonly names: ReadonlyArray<string>
  readonly policy: keyof typeof policies
  readonly concurrency: ToolRunner.Options["concurrency"]
  readonly siblings?: ToolRunner.Options["siblings"]
}

const callsOf = ({ names }: Sample) => names.map((name, i) => ToolCall.make({ id: `c${i}`, name, arguments: {} }))

const optionsOf = ({ concurrency, policy, siblings }: Sample) => ({
  onToolError: policies[policy],
  concurrency,
  siblings,
  toolTimeout: "50 millis",
  unknownTool: "feedback"
} as const)

const run = (sample: Sample) =>
  Effect.withClock(ToolRunner.run(callsOf(sample), tools, optionsOf(sample)), new IdleClock())

const eventsOf = (sample: Sample) =>
  Stream.runCollect(ToolRunner.stream(callsOf(sample), tools, optionsOf(sample))).pipe(
    Effect.map((events) => Array.from(events)),
    Effect.withClock(new IdleClock())
  )

const encodeResult = Schema.encodeSync(Schema.Union(ToolResult.ToolOutcome, ToolError.ToolError))
const encodeHalt = Schema.encodeSync(Halt.Halt)

/** Every field as plain data; which fiber was interrupted is different every time. */
const plain = (result: ToolRunner.RunResult): unknown =>
  JSON.parse(JSON.stringify(
    {
      ...result,
      halt: result.halt === undefined ? null : encodeHalt(result.halt),
      outcomes: result.outcomes.map(({ result, toolCall }) => ({ toolCall, result: encodeResult(result) }))
    },
    (key, value: unknown) => key === "fiberId" ? "some fiber" : value
  ))

const idOf = (event: Event.ToolEvent) => event._tag === "ManualToolCalls" ? undefined : event.toolCallId

const isEnd = ({ _tag }: Event.ToolEvent) =>
  _tag === "ToolResultEncoded" || _tag === "AskUserRequested" || _tag === "ToolHalt"

const isHalt = ({ _tag }: Event.ToolEvent) => _tag === "AskUserRequested" || _tag === "ToolHalt"

const many = { fastCheck: { numRuns: 150 } }

describe("ToolRunner: laws", () => {
  it.effect.prop(
    "every call starts once, completes once and ends once, in that order",
    { ...Batch, siblings },
    (sample) =>
      Effect.gen(function*() {
        const events = yield* eventsOf(sample)

        for (const { id, name } of callsOf(sample)) {
          const own = events.filter((event) => idOf(event) === id)
          const isSkipped = own.some((event) =>
            event._tag === "ToolExecutionCompleted" && event.result._tag === "Skipped"
          )
          const tags = own.map((event) => isEnd(event) ? "end" : event._tag)
          const whole = ["ToolExecutionStarted", "ToolExecutionCompleted", "end"]
          // What never ran did not start: what is the caller's, what waits for consent, what was skipped.
          if (name === "manual") assert.deepStrictEqual(tags, [])
          else if (isSkipped) assert.deepStrictEqual(tags, whole.slice(1))
          else if (name === "approved") assert.deepStrictEqual(tags, ["end"])
          else assert.deepStrictEqual(tags, whole)
        }
      }),
    many
  )

  it.effect.prop("every call that does not wait has one message, in the order of the calls", { ...Batch, siblings }, (
    sample
  ) =>
    Effect.gen(function*() {
      const { approvals, manualToolCalls, messages, outcomes } = yield* run(sample)
      const calls = callsOf(sample)
      const pending = new Set(approvals.map(({ toolCall }) => toolCall.id))
      const answered = calls.filter(({ id, name }) => name !== "manual" && !pending.has(id)).map(({ id }) => id)

      assert.deepStrictEqual(messages.map(({ toolCallId }) => toolCallId), answered)
      assert.deepStrictEqual(outcomes.map(({ toolCall }) => toolCall.id), answered)
      assert.deepStrictEqual(manualToolCalls, calls.filter(({ name }) => name === "manual"))
      assert.deepStrictEqual(
        [...new Set(approvals.map(({ toolCall }) => toolCall.name))],
        pending.size === 0 ? [] : ["approved"]
      )
    }), many)

  it.effect.prop(
    "run is the fold of stream, in every field",
    { ...Batch, siblings },
    (sample) =>
      Effect.gen(function*() {
        const folded = ToolRunner.fold(callsOf(sample), yield* eventsOf(sample))

        assert.deepStrictEqual(plain(yield* run(sample)), plain(folded))
      }),
    many
  )

  it.effect.prop("a run does the same every time", { ...Batch, siblings }, (sample) =>
    Effect.gen(function*() {
      assert.deepStrictEqual(plain(yield* run(sample)), plain(yield* run(sample)))
    }), many)

  it.effect.prop(
    "the first halt that is told is the halt, and every question is kept",
    { ...Batch, siblings },
    (sample) =>
      Effect.gen(function*() {
        const events = yield* eventsOf(sample)
        const { halt, questions } = yield* run(sample)

        assert.strictEqual(halt?.toolCallId, events.filter(isHalt).map(idOf)[0])
        assert.deepStrictEqual(
          questions.map(({ toolCallId }) => toolCallId),
          events.filter(({ _tag }) => _tag === "AskUserRequested").map(idOf)
        )
      }),
    many
  )

  it.effect.prop("calls start in the order of the calls", { ...Batch, siblings }, (sample) =>
    Effect.gen(function*() {
      const started = (yield* eventsOf(sample)).filter(({ _tag }) => _tag === "ToolExecutionStarted").map(idOf)
      const inOrder = callsOf(sample).map(({ id }) => id).filter((id) => started.includes(id))

      assert.deepStrictEqual(started, inOrder)
    }), many)

  it.effect.prop("when siblings drain, concurrency changes no message", Batch, (sample) =>
    Effect.gen(function*() {
      const one = yield* run({ ...sample, concurrency: 1 })
      const all = yield* run({ ...sample, concurrency: "unbounded" })

      assert.deepStrictEqual(one.messages, all.messages)
    }), many)

  it.effect.prop("only a halt stops or skips a sibling", { ...Batch, siblings }, (sample) =>
    Effect.gen(function*() {
      const { halt, outcomes } = yield* run(sample)
      const tags = new Set(outcomes.map(({ result }) => result._tag))
      const mayStop = halt !== undefined && sample.siblings !== undefined && sample.siblings !== "drain"

      assert.strictEqual(!mayStop && (tags.has("Interrupted") || tags.has("Skipped")), false)
    }), many)

  it.effect.prop(
    "a stream that was cut short folds to a part of the whole",
    { sample: FastCheck.record({ ...Batch, siblings }), cut: FastCheck.nat(30) },
    ({ cut, sample }) =>
      Effect.gen(function*() {
        const events = yield* eventsOf(sample)
        const part = ToolRunner.fold(callsOf(sample), events.slice(0, cut))
        const whole = ToolRunner.fold(callsOf(sample), events)

        const ended = new Set(events.slice(0, cut).filter(isEnd).map(idOf))
        assert.deepStrictEqual(part.messages, whole.messages.filter(({ toolCallId }) => ended.has(toolCallId)))
      }),
    many
  )

  it.effect.prop("what a crash said reaches no message", { ...Batch, siblings }, (sample) =>
    Effect.gen(function*() {
      const { messages } = yield* run(sample)

      for (const { content } of messages) assert.notInclude(content, "secret")
    }), many)
})
