import {
  Allm,
  ChatResult,
  Collector,
  Event,
  Fake,
  HaltReason,
  Message,
  type StepResult,
  Thread,
  ToolError
} from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Array as Arr, Effect, Either, Exit, Schema, Stream } from "effect"
import { jsonWorlds, optionsOf, ordinary, tools, within, type World, worlds } from "./GeneratedChats.ts"
import { aTurn, IdleClock } from "./IdleClock.ts"

const thread = Thread.make([Message.system("Be brief."), Message.user("hi")])

/** Node's comparison walks into classes and errors; `Exit`s are compared by what they hold. */
const sameExit = <A, E>(actual: Exit.Exit<A, E>, expected: Exit.Exit<A, E>): void =>
  deepStrictEqual(Exit.match(actual, sides<A>()), Exit.match(expected, sides<A>()))

const sides = <A>() => ({
  onSuccess: (value: A): unknown => ({ value }),
  onFailure: (cause: unknown): unknown => ({ cause })
})

const collected = <E, R>(stream: Stream.Stream<Event.Event, E, R>) =>
  Collector.collect(stream, { thread, requestId: "r0" })

/** What was told, also by a chat that failed. */
const eventsOf = (world: World) =>
  Effect.suspend(() => {
    const events: Array<Event.Event> = []
    return Stream.runForEach(Allm.stream(thread, optionsOf(world)), (event) => Effect.sync(() => events.push(event)))
      .pipe(
        Effect.exit,
        Effect.map((exit) => ({ events, exit })),
        within(world)
      )
  })

const tagsOf = (events: ReadonlyArray<Event.Event>) => events.map((event) => event._tag)

/** The events of each step, its `StepCompleted` last. */
const bySteps = (events: ReadonlyArray<Event.Event>) => {
  const steps: Array<{ readonly events: ReadonlyArray<Event.Event>; readonly result: StepResult.StepResult }> = []
  let open: Array<Event.Event> = []
  for (const event of events) {
    if (event._tag === "StepCompleted") {
      steps.push({ events: open, result: event.result })
      open = []
    } else if (event._tag !== "ChatCompleted") {
      open.push(event)
    }
  }
  return { steps, rest: open }
}

/** Every step of a chat is what its events come to, without the one that says so. */
const eachRebuilt = (world: World) =>
  Effect.gen(function*() {
    const { steps } = bySteps((yield* eventsOf(world)).events)

    for (const { events, result } of steps) {
      const before = { ...thread, messages: beforeOf(result) }
      const collector = Collector.make({ thread: before, mode: world.options.mode, requestId: "r0" })
      for (const event of events) Collector.add(collector, event)

      deepStrictEqual(Either.getOrThrow(Collector.toStepResult(collector)), result)
    }
    return steps.length
  })

const idsOf = (
  result: { readonly manualToolCalls: ReadonlyArray<{ readonly id: string }> } & {
    readonly pendingApprovals: ReadonlyArray<{ readonly toolCall: { readonly id: string } }>
  }
): ReadonlyArray<string> => [
  ...result.manualToolCalls.map((call) => call.id),
  ...result.pendingApprovals.map(({ toolCall }) => toolCall.id)
]

/** The calls nobody answered. Answers out of place or out of order fail the test. */
const unanswered = (messages: ReadonlyArray<Message.Message>): ReadonlyArray<string> => {
  const left: Array<string> = []
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i]!
    assert.notStrictEqual(message.role, "tool", `message ${i} answers no call`)
    if (message.role !== "assistant") continue
    const calls = message.toolCalls.map((call) => call.id)
    const answers: Array<string> = []
    for (let next = messages[i + 1]; next?.role === "tool"; next = messages[i + 1]) {
      answers.push(next.toolCallId)
      i++
    }
    deepStrictEqual(answers, calls.filter((id) => answers.includes(id)))
    left.push(...Arr.difference(calls, answers))
  }
  return left
}

const runs = { fastCheck: { numRuns: 150 }, timeout: 60_000 }

describe("The laws of the loop", () => {
  it.effect.prop(
    "a chat ends with a result or a typed failure, however long that takes",
    [worlds],
    ([world]) =>
      Effect.gen(function*() {
        const clock = new IdleClock()
        const end = yield* Effect.either(Allm.chat(thread, optionsOf(world))).pipe(within(world, clock))

        if (Either.isLeft(end)) assert.include(["AdapterError", "UnknownTool"], end.left._tag)
        else assert.include(reasons, end.right.haltedReason)
        yield* aTurn
        assert.strictEqual(clock.timers, 0)
      }),
    runs
  )

  it.effect.prop("chat is the fold of its stream, in every field", [worlds], ([world]) =>
    Effect.gen(function*() {
      const whole = yield* Effect.exit(Allm.chat(thread, optionsOf(world))).pipe(within(world))
      const folded = yield* Effect.exit(
        Effect.flatMap(collected(Allm.stream(thread, optionsOf(world))), Collector.toChatResult)
      ).pipe(within(world))

      sameExit(folded, whole)
    }), runs)

  it.effect.prop("step is the fold of its stream, in every field", [worlds], ([world]) =>
    Effect.gen(function*() {
      const whole = yield* Effect.exit(Allm.step(thread, optionsOf(world))).pipe(within(world))
      const folded = yield* Effect.exit(
        Effect.flatMap(collected(Allm.streamStep(thread, optionsOf(world))), Collector.toStepResult)
      ).pipe(within(world))

      sameExit(folded, whole)
    }), runs)

  it.effect.prop("generate is the fold of its stream, in every field", [worlds], ([world]) =>
    Effect.gen(function*() {
      const whole = yield* Effect.exit(Allm.generate(thread, optionsOf(world))).pipe(within(world))
      const folded = yield* Effect.exit(
        Effect.map(collected(Allm.streamGenerate(thread, optionsOf(world))), Collector.toResponse)
      ).pipe(within(world))

      sameExit(folded, whole)
    }), runs)

  it.effect.prop(
    "a step is made of its own events alone",
    [worlds],
    ([world]) => Effect.asVoid(eachRebuilt(world)),
    runs
  )

  it.effect.prop("leaving out deltas changes no result", [worlds], ([world]) =>
    Effect.gen(function*() {
      const whole = yield* Effect.exit(Allm.chat(thread, optionsOf(world))).pipe(within(world))
      const folded = yield* Effect.exit(
        Effect.flatMap(
          collected(Allm.stream(thread, { ...optionsOf(world), emitTextDeltas: false, emitToolDeltas: false })),
          Collector.toChatResult
        )
      ).pipe(within(world))

      sameExit(folded, whole)
    }), runs)

  it.effect.prop("history is valid, and what is pending is listed", [worlds], ([world]) =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(Allm.chat(thread, optionsOf(world))).pipe(within(world))
      if (Exit.isFailure(exit)) return
      const result = exit.value

      deepStrictEqual([...unanswered(result.thread.messages)].sort(), [...idsOf(result)].sort())
      for (const step of result.steps.slice(0, -1)) deepStrictEqual(unanswered(step.thread.messages), [])
    }), runs)

  it.effect.prop("a chat with nothing pending can go on", [worlds], ([world]) =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(Allm.chat(thread, optionsOf(world))).pipe(within(world))
      if (Exit.isFailure(exit) || idsOf(exit.value).length > 0) return
      // As a store would give it back, so that no message is known already.
      const stored = yield* Effect.flatMap(Schema.encode(Thread.Thread)(exit.value.thread), (encoded) =>
        Schema.decodeUnknown(Thread.Thread)(JSON.parse(JSON.stringify(encoded))))
      const more = Thread.append(stored, Message.user("go on"))
      const next = yield* Allm.generate(more).pipe(
        within({ ...world, scripts: [[{ _tag: "Text", text: "on" }, { _tag: "Finish", reason: "stop" }]] })
      )

      assert.strictEqual(next.outputText, "on")
    }), runs)

  it.effect.prop("the thread only grows", [worlds], ([world]) =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(Allm.chat(thread, optionsOf(world))).pipe(within(world))
      if (Exit.isFailure(exit)) return
      let before = thread.messages
      for (const { messages } of [...exit.value.steps.map((step) => step.thread), exit.value.thread]) {
        deepStrictEqual(messages.slice(0, before.length), before)
        before = messages
      }
    }), runs)

  it.effect.prop("usage is the sum over the model's answers", [worlds], ([world]) =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(Allm.chat(thread, optionsOf(world))).pipe(within(world))
      if (Exit.isFailure(exit) || exit.value.error?._tag === "UnknownTool") return
      const known = exit.value.steps.map((step) => step.response.usage)
      const input = known.reduce((sum, usage) => sum + (usage.inputTokens ?? 0), 0)

      assert.strictEqual(exit.value.usage.inputTokens ?? 0, input)
    }), runs)

  it.effect.prop(
    "every step completes once, in order, and the chat once, last",
    [worlds],
    ([world]) =>
      Effect.gen(function*() {
        const { events, exit } = yield* eventsOf(world)
        const { rest, steps } = bySteps(events)
        const last = events.at(-1)

        assert.strictEqual(tagsOf(events).filter((tag) => tag === "ChatCompleted").length, Exit.isSuccess(exit) ? 1 : 0)
        if (Exit.isFailure(exit)) return assert.strictEqual(steps.length, 0)
        assert(last?._tag === "ChatCompleted")
        deepStrictEqual(steps.map((step) => step.result), last.result.steps.slice())
        // What comes after the last step is a model call that failed, and nothing of a tool.
        assert.strictEqual(rest.some(isOfTool), false)
      }),
    runs
  )

  it.effect.prop("all of a step comes before the next", [worlds], ([world]) =>
    Effect.gen(function*() {
      const { steps } = bySteps((yield* eventsOf(world)).events)

      for (const { events, result } of steps) {
        const tags = tagsOf(events)
        const ids = result.response.toolCalls.map((call) => call.id)
        assert.strictEqual(tags.filter((tag) => tag === "MessageStarted").length, 1)
        assert.strictEqual(tags[0], "MessageStarted")
        assert.isTrue(events.flatMap(callIds).every((id) => ids.includes(id)))
        // The model is done before a tool starts.
        const firstOfTool = events.findIndex(isOfTool)
        if (firstOfTool >= 0) assert.strictEqual(events.slice(firstOfTool).every(isOfTool), true)
      }
    }), runs)

  it.effect.prop(
    "a call starts, completes and is answered once each, in that order",
    [worlds],
    ([world]) =>
      Effect.gen(function*() {
        const { steps } = bySteps((yield* eventsOf(world)).events)

        for (const { events, result } of steps) {
          for (const { id } of result.response.toolCalls) {
            const course = events.filter((event) => isOfTool(event) && callIds(event).includes(id))
            const told = tagsOf(course).filter((tag) => tag !== "ToolProgress")
            assert.include(legalCourses, told.join(" "), id)
            const progress = course.flatMap((event, i) => event._tag === "ToolProgress" ? [i] : [])
            for (const i of progress) assert.isTrue(i > 0 && i < course.length - 2, "progress while it runs")
            const isAnswered = result.toolResults.some((message) => message.toolCallId === id)
            assert.strictEqual(isAnswered, told.some((tag) => answers.has(tag)) && !idsOf(result).includes(id))
          }
        }
      }),
    runs
  )

  it.effect.prop("what is told of a call is what its message says", [worlds], ([world]) =>
    Effect.gen(function*() {
      const { steps } = bySteps((yield* eventsOf(world)).events)

      for (const { events, result } of steps) {
        for (const message of result.toolResults) {
          const event = events.find((event) => answers.has(event._tag) && callIds(event).includes(message.toolCallId))
          const content = event !== undefined && "content" in event ? event.content : "<awaiting user response>"
          assert.strictEqual(message.content, content)
        }
      }
    }), runs)

  it.effect.prop("a result survives JSON", [jsonWorlds], ([world]) =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(Allm.chat(thread, optionsOf(world))).pipe(within(world))
      if (Exit.isFailure(exit)) return
      const Stored = Schema.parseJson(ChatResult.ChatResult)
      const text = yield* Schema.encode(Stored)(exit.value)
      const read = yield* Schema.decode(Stored)(text)

      deepStrictEqual(read, exit.value)
    }), runs)

  it.effect.prop("every event survives JSON", [jsonWorlds], ([world]) =>
    Effect.gen(function*() {
      const { events } = yield* eventsOf(world)
      const Line = Schema.parseJson(Event.Event)
      for (const event of events) {
        const read = yield* Effect.flatMap(Schema.encode(Line)(event), Schema.decode(Line))
        // An error of the provider's is the reader's plain data.
        if (event._tag !== "ErrorOccurred") deepStrictEqual(read, asData(event))
      }
    }), runs)

  it.effect.prop("what cannot be JSON has a form that stays the same", [worlds], ([world]) =>
    Effect.gen(function*() {
      const { events } = yield* eventsOf(world)
      const Line = Schema.parseJson(Event.Event)
      for (const event of events) {
        const text = yield* Schema.encode(Line)(event)
        const again = yield* Effect.flatMap(Schema.decode(Line)(text), Schema.encode(Line))
        assert.strictEqual(again, text)
      }
    }), runs)
})

/** A handler's own `ToolResult` differs from the data it holds by its prototype alone. */
const asData = (event: Event.Event): Event.Event =>
  event._tag === "ToolExecutionCompleted" && !ToolError.isToolError(event.result)
    ? { ...event, result: { ...event.result } }
    : event

describe("The last word", () => {
  const Answer = Schema.Struct({ answer: Schema.String })
  const calling = [Fake.text("so"), Fake.toolCall({ id: "c1", name: "plain" }), Fake.finish("tool_calls")]

  for (const mode of ["auto", "manual"] as const) {
    it.effect(`of a structured answer leaves no call pending, in mode ${mode}`, () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { mode, structuredFinalize: true, responseFormat: Answer }).pipe(
          Effect.provide(Fake.engine({ tools, scripts: [[Fake.finish("stop")], calling] }))
        )

        assert.strictEqual(result.haltedReason, "completed")
        assert.deepStrictEqual(idsOf(result), [])
        assert.deepStrictEqual(unanswered(result.thread.messages), [])
      }))

    it.effect(`is made of its own events alone, in mode ${mode}`, () =>
      Effect.gen(function*() {
        const options = { ...ordinary, mode, structuredFinalize: true }
        const steps = yield* eachRebuilt({ scripts: [[Fake.finish("stop")], calling], options })

        assert.strictEqual(steps, 2)
      }))

    it.effect(`of a chat that ran out leaves no call pending, in mode ${mode}`, () =>
      Effect.gen(function*() {
        const result = yield* Allm.chat("hi", { mode, maxTurns: 1, softLanding: true }).pipe(
          Effect.provide(Fake.engine({ tools, scripts: [[Fake.finish("other")], calling] }))
        )

        assert.strictEqual(result.haltedReason, "max_turns")
        assert.deepStrictEqual(idsOf(result), [])
        assert.deepStrictEqual(unanswered(result.thread.messages), [])
      }))
  }
})

const reasons: ReadonlyArray<string> = [...HaltReason.reserved, "enough", "too_late"]

const legalCourses = [
  // Not run: manual, or of an answer that was cut off.
  "",
  "ManualToolCalls",
  "ToolExecutionStarted ToolExecutionCompleted ToolResultEncoded",
  "ToolExecutionStarted ToolExecutionCompleted AskUserRequested",
  "ToolExecutionStarted ToolExecutionCompleted ToolHalt",
  // Never started: a sibling halted, or the budget was used up.
  "ToolExecutionCompleted ToolResultEncoded",
  // Waits for consent.
  "ToolHalt"
]

const answers: ReadonlySet<string> = new Set(["ToolResultEncoded", "AskUserRequested", "ToolHalt"])

const ofTool: ReadonlySet<string> = new Set([
  ...answers,
  "ToolExecutionStarted",
  "ToolProgress",
  "ToolExecutionCompleted",
  "ManualToolCalls"
])

const isOfTool = (event: Event.Event): boolean => ofTool.has(event._tag)

const callIds = (event: Event.Event): ReadonlyArray<string> => {
  if (event._tag === "ManualToolCalls") return event.toolCalls.map((call) => call.id)
  if (event._tag === "ToolCallCompleted") return [event.toolCall.id]
  return "toolCallId" in event ? [event.toolCallId] : []
}

/** What was said before a step. */
const beforeOf = ({ thread, toolResults }: StepResult.StepResult): ReadonlyArray<Message.Message> =>
  thread.messages.slice(0, thread.messages.length - toolResults.length - 1)
