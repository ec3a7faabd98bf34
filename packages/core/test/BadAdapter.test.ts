import { Adapter, AdapterError, Allm, Engine, type Event, Message, Tool, ToolCall } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Logger, Schedule, Stream, TestClock } from "effect"

const delta = (text: string): Event.AdapterEvent => ({ _tag: "TextDelta", delta: text })
const completed = (finishReason: "stop" | "tool_calls" = "stop"): Event.AdapterEvent => ({
  _tag: "MessageCompleted",
  finishReason,
  metadata: {}
})
const calls = (id: string, args: unknown = {}): Event.AdapterEvent => ({
  _tag: "ToolCallCompleted",
  toolCall: ToolCall.make({ id, name: "ping", arguments: args })
})
const starts = (id: string, name = "ping"): Event.AdapterEvent => ({
  _tag: "ToolCallStarted",
  toolCallId: id,
  toolName: name
})
const writes = (id: string, piece: string): Event.AdapterEvent => ({
  _tag: "ToolCallDelta",
  toolCallId: id,
  delta: piece
})

const ping = Tool.fromJsonSchema("ping", {
  description: "Answers",
  schema: { type: "object" },
  handler: () => "pong"
})

/** Runs with an adapter of the name "wire", not repeating calls unless the options say so. */
const using = (generate: Adapter.Service["generate"], options: Engine.Options = {}) =>
  Effect.provide(
    Engine.layer({ retry: false, ...options }).pipe(
      Layer.provide(Adapter.layer(Adapter.make(generate, { name: "wire" })))
    )
  )

/** An adapter that emits one list of events per model call. */
const emitting = (...turns: ReadonlyArray<ReadonlyArray<Event.Event>>): Adapter.Service["generate"] => {
  let turn = 0
  return (_, emit) => Effect.suspend(() => emit((turns[turn++] ?? []) as ReadonlyArray<Event.AdapterEvent>))
}

const failure = new AdapterError.AdapterError({ reason: "invalid_request", provider: "wire", detail: "no" })

const errorOf = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.flip(Effect.asVoid(effect))

/** What an effect has come to after some time. Fails if it still runs. */
const after = <A, E, R>(effect: Effect.Effect<A, E, R>, time: "1 second" | "5 seconds" | "10 minutes") =>
  Effect.gen(function*() {
    const fiber = yield* Effect.fork(effect)
    yield* TestClock.adjust(time)
    return yield* Effect.flatten(Fiber.poll(fiber))
  }).pipe(Effect.flatMap((exit) => exit))

describe("an adapter that emits too little", () => {
  it.effect("fails the call when it ends without an event", () =>
    Effect.gen(function*() {
      const error = yield* errorOf(Allm.chat("hi"))

      assert(error._tag === "AdapterError")
      assert.strictEqual(
        error.message,
        "model call failed (wire): malformed_response: the adapter ended without MessageCompleted"
      )
    }).pipe(using(() => Effect.void)))

  it.effect("fails the call when it emits empty lists", () =>
    Effect.gen(function*() {
      const error = yield* errorOf(Allm.chat("hi"))

      assert(error._tag === "AdapterError")
      assert.strictEqual(error.reason, "malformed_response")
    }).pipe(using((_, emit) => Effect.zipRight(emit([]), emit([])))))

  it.effect("keeps what it said when it ends without MessageCompleted", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi")

      assert.strictEqual(result.haltedReason, "error")
      assert.strictEqual(result.finalResponse.outputText, "hel")
      assert.strictEqual(result.finalResponse.finishReason, "error")
      assert.deepStrictEqual(result.metadata, {
        error: {
          _tag: "AdapterError",
          reason: "malformed_response",
          message: "model call failed (wire): malformed_response: the adapter ended without MessageCompleted"
        }
      })
      assert(result.error?._tag === "AdapterError")
      assert.strictEqual(result.error.reason, "malformed_response")
      assert.deepStrictEqual(result.thread.messages, [
        Message.user("hi"),
        Message.assistant("hel", { metadata: { finishReason: "error" } })
      ])
    }).pipe(using(emitting([delta("hel")]))))

  it.effect("runs no call of an answer without MessageCompleted", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { tools: [ping] })

      assert.strictEqual(result.haltedReason, "error")
      assert.deepStrictEqual(result.steps[0]?.toolResults, [])
      assert.deepStrictEqual(result.finalResponse.toolCalls.map(({ id }) => id), ["c0"])
      assert.deepStrictEqual(result.thread.messages.map(({ role }) => role), ["user", "assistant"])
    }).pipe(using(emitting([calls("c0")]))))

  it.effect.each<[string, ReadonlyArray<Event.AdapterEvent>, string]>([
    ["has no id", [starts("")], "a tool call has no id"],
    ["names no tool", [writes("c0", "{}")], "the tool call \"c0\" names no tool"]
  ])("does not run a call that %s", ([, events, problem]) =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { tools: [ping] })

      assert.strictEqual(result.haltedReason, "error")
      assert.strictEqual(result.error?.message, `model call failed (wire): malformed_response: ${problem}`)
      assert.deepStrictEqual(result.steps[0]?.toolResults, [])
    }).pipe(using(emitting([...events, completed("tool_calls")]))))
})

describe("an adapter that emits out of order", () => {
  it.effect("gives the same answer when the end comes first", () =>
    Effect.gen(function*() {
      const response = yield* Allm.generate("hi")

      assert.strictEqual(response.outputText, "hello")
      assert.strictEqual(response.finishReason, "stop")
      assert.strictEqual(response.id, "m0")
    }).pipe(using(emitting([completed(), delta("hel"), delta("lo"), { _tag: "MessageStarted", id: "m0" }]))))

  it.effect("gives the same call when its pieces come before its name", () =>
    Effect.gen(function*() {
      const { toolCalls } = yield* Allm.generate("hi")

      assert.deepStrictEqual(toolCalls.map(({ arguments: args, id, name }) => [id, name, args]), [
        ["c0", "ping", { a: 1 }]
      ])
    }).pipe(using(emitting([writes("c0", "{\"a\":"), completed("tool_calls"), writes("c0", "1}"), starts("c0")]))))

  it.effect("tells the pieces of calls apart that come in turns", () =>
    Effect.gen(function*() {
      const { toolCalls } = yield* Allm.generate("hi")

      assert.deepStrictEqual(toolCalls.map(({ arguments: args, id }) => [id, args]), [
        ["c0", { a: 1 }],
        ["c1", { b: 2 }]
      ])
    }).pipe(using(emitting([
      starts("c0"),
      starts("c1"),
      writes("c0", "{\"a\":"),
      writes("c1", "{\"b\":"),
      writes("c1", "2}"),
      writes("c0", "1}"),
      completed("tool_calls")
    ]))))

  it.effect("leaves out what it says after it ended", () =>
    Effect.gen(function*() {
      let first: Adapter.Emit | undefined
      const generate: Adapter.Service["generate"] = (_, emit) =>
        Effect.suspend(() => {
          if (first !== undefined) return Effect.zipRight(first([delta("ghost")]), emit([delta("done"), completed()]))
          first = emit
          return emit([calls("c0"), completed("tool_calls")])
        })
      const texts: Array<string> = []
      yield* Allm.stream("hi", { tools: [ping] }).pipe(
        Stream.runForEach((event) => Effect.sync(() => event._tag === "TextDelta" && texts.push(event.delta))),
        using(generate)
      )

      assert.deepStrictEqual(texts, ["done"])
    }))
})

describe("an adapter that emits twice", () => {
  it.effect("calls a tool once", () =>
    Effect.gen(function*() {
      const step = yield* Allm.step("hi", { tools: [ping] })

      assert.deepStrictEqual(step.response.toolCalls.map(({ id }) => id), ["c0"])
      assert.deepStrictEqual(step.toolResults, [Message.tool("c0", "pong")])
    }).pipe(using(emitting([
      starts("c0"),
      starts("c0"),
      calls("c0"),
      calls("c0"),
      completed("tool_calls"),
      completed("tool_calls")
    ]))))

  it.effect("says a whole text once", () =>
    Effect.gen(function*() {
      const response = yield* Allm.generate("hi")

      assert.strictEqual(response.outputText, "hello")
    }).pipe(using(emitting([
      delta("hello"),
      { _tag: "TextCompleted", text: "hello" },
      { _tag: "TextCompleted", text: "hello" },
      completed(),
      completed()
    ]))))

  it.effect("completes a step and a chat once", () =>
    Effect.gen(function*() {
      const events = yield* Stream.runCollect(Allm.stream("hi"))

      assert.deepStrictEqual(Array.from(events, ({ _tag }) => _tag), [
        "MessageCompleted",
        "MessageCompleted",
        "StepCompleted",
        "ChatCompleted"
      ])
    }).pipe(using(emitting([completed(), completed()]))))

  it.effect("answers each call of its message once, though two have one id", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { tools: [ping] })

      const { messages } = result.thread
      const asked = messages.flatMap((message) => message.role === "assistant" ? message.toolCalls : [])
      const answers = messages.filter(({ role }) => role === "tool")
      assert.strictEqual(answers.length, asked.length)
    }).pipe(using(emitting([{
      _tag: "MessageCompleted",
      message: Message.assistant("", {
        toolCalls: [
          ToolCall.make({ id: "c0", name: "ping", arguments: {} }),
          ToolCall.make({ id: "c0", name: "ping", arguments: {} })
        ]
      }),
      finishReason: "tool_calls",
      metadata: {}
    }], [delta("done"), completed()]))))

  it.effect("does not lose a call in silence that has the id of another", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { tools: [ping] })

      assert.strictEqual(result.haltedReason, "error")
      assert(result.error?._tag === "AdapterError")
      assert.strictEqual(result.error.reason, "malformed_response")
      assert.strictEqual(result.steps.length, 1)
    }).pipe(using(emitting(
      [calls("c0", { a: 1 }), calls("c0", { b: 2 }), completed("tool_calls")],
      [delta("done"), completed()]
    ))))
})

describe("an adapter that never ends", () => {
  it.effect("fails the call after requestTimeout when nothing came", () =>
    Effect.gen(function*() {
      const error = yield* errorOf(after(Allm.chat("hi", { requestTimeout: "1 second" }), "1 second"))

      assert(error._tag === "AdapterError")
      assert.strictEqual(
        error.message,
        "model call failed (wire): timeout: the model call took longer than 1000 ms"
      )
    }).pipe(using(() => Effect.never)))

  it.effect("fails the call after 10 minutes unless told otherwise", () =>
    Effect.gen(function*() {
      const error = yield* errorOf(after(Allm.chat("hi"), "10 minutes"))

      assert(error._tag === "AdapterError")
      assert.strictEqual(error.detail, "the model call took longer than 600000 ms")
    }).pipe(using(() => Effect.never)))

  it.effect("keeps what came before requestTimeout", () =>
    Effect.gen(function*() {
      const result = yield* after(Allm.chat("hi", { requestTimeout: "1 second" }), "1 second")

      assert.strictEqual(result.haltedReason, "error")
      assert.strictEqual(result.finalResponse.outputText, "hel")
      assert(result.error?._tag === "AdapterError")
      assert.strictEqual(result.error.detail, "the model call took longer than 1000 ms")
    }).pipe(using((_, emit) => Effect.zipRight(emit([delta("hel")]), Effect.never))))

  it.effect("fails the call after idleTimeout when nothing came", () =>
    Effect.gen(function*() {
      const error = yield* errorOf(after(Allm.chat("hi", { idleTimeout: "1 second" }), "1 second"))

      assert(error._tag === "AdapterError")
      assert.strictEqual(
        error.message,
        "model call failed (wire): timeout: nothing came from the model for 1000 ms"
      )
    }).pipe(using(() => Effect.never)))

  it.effect("keeps what came before it fell silent", () =>
    Effect.gen(function*() {
      const result = yield* after(Allm.chat("hi", { idleTimeout: "1 second" }), "5 seconds")

      assert.strictEqual(result.finalResponse.outputText, "hello")
      assert.strictEqual(
        result.error?.message,
        "model call failed (wire): timeout: nothing came from the model for 1000 ms"
      )
    }).pipe(using((_, emit) =>
      emit([delta("hel")]).pipe(
        Effect.zipRight(Effect.sleep("900 millis")),
        Effect.zipRight(emit([delta("lo")])),
        Effect.zipRight(Effect.never)
      )
    )))

  it.effect("is not silent as long as something comes", () =>
    Effect.gen(function*() {
      const result = yield* after(Allm.chat("hi", { idleTimeout: "1 second" }), "5 seconds")

      assert.strictEqual(result.haltedReason, "completed")
      assert.strictEqual(result.finalResponse.outputText, "aaaa")
    }).pipe(using((_, emit) =>
      Effect.repeatN(Effect.zipRight(Effect.sleep("900 millis"), emit([delta("a")])), 3).pipe(
        Effect.zipRight(emit([completed()]))
      )
    )))

  it.effect("tells the error and the end in a stream", () =>
    Effect.gen(function*() {
      const events = yield* after(Stream.runCollect(Allm.stream("hi", { idleTimeout: "1 second" })), "1 second")

      assert.deepStrictEqual(Array.from(events, ({ _tag }) => _tag), [
        "TextDelta",
        "ErrorOccurred",
        "StepCompleted",
        "ChatCompleted"
      ])
    }).pipe(using((_, emit) => Effect.zipRight(emit([delta("hel")]), Effect.never))))

  it.effect("is stopped when its time is over", () =>
    Effect.gen(function*() {
      let stopped = 0
      const generate = () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => stopped++))
      yield* errorOf(after(Allm.chat("hi", { requestTimeout: "1 second" }).pipe(using(generate)), "1 second"))

      assert.strictEqual(stopped, 1)
    }))

  it.effect("is left behind when it does not stop", () =>
    Effect.gen(function*() {
      const error = yield* errorOf(after(Allm.chat("hi", { requestTimeout: "1 second" }), "1 second"))

      assert(error._tag === "AdapterError")
      assert.strictEqual(error.reason, "timeout")
    }).pipe(using(() => Effect.uninterruptible(Effect.never))))

  it.effect("is asked again when nothing came, as often as the schedule says", () =>
    Effect.gen(function*() {
      let asked = 0
      const generate = () =>
        Effect.suspend(() => {
          asked++
          return Effect.never
        })
      const options = { requestTimeout: "1 second", retry: Schedule.recurs(2) } as const
      const error = yield* errorOf(after(Allm.chat("hi").pipe(using(generate, options)), "5 seconds"))

      assert.strictEqual(error._tag, "AdapterError")
      assert.strictEqual(asked, 3)
    }))

  it.effect("says nothing into the answer of the next attempt", () =>
    Effect.gen(function*() {
      let asked = 0
      const generate: Adapter.Service["generate"] = (_, emit) =>
        Effect.suspend(() =>
          asked++ === 0
            ? Effect.uninterruptible(Effect.zipRight(Effect.sleep("2 seconds"), emit([delta("ghost")])))
            : Effect.zipRight(Effect.sleep("900 millis"), emit([delta("real"), completed()]))
        )
      const options = { requestTimeout: "1 second", retry: Schedule.spaced("500 millis") } as const
      const result = yield* after(Allm.chat("hi").pipe(using(generate, options)), "5 seconds")

      assert.strictEqual(asked, 2)
      assert.strictEqual(result.finalResponse.outputText, "real")
    }))
})

describe("an adapter that fails", () => {
  it.effect("before its first event fails the chat", () =>
    Effect.gen(function*() {
      const error = yield* errorOf(Allm.chat("hi"))

      assert.strictEqual(error, failure)
    }).pipe(using(() => Effect.fail(failure))))

  it.effect("half-way keeps what it said, as the chat's error", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi")

      assert.strictEqual(result.haltedReason, "error")
      assert.strictEqual(result.finalResponse.outputText, "hel")
      assert.strictEqual(result.finalResponse.finishReason, "error")
      assert.strictEqual(result.error, failure)
      assert.strictEqual(result.steps.length, 1)
    }).pipe(using((_, emit) => Effect.zipRight(emit([delta("hel")]), Effect.fail(failure)))))

  it.effect("half-way is not asked again", () =>
    Effect.gen(function*() {
      let asked = 0
      const lost = new AdapterError.AdapterError({ reason: "network_error", provider: "wire" })
      const generate: Adapter.Service["generate"] = (_, emit) =>
        Effect.suspend(() => {
          asked++
          return Effect.zipRight(emit([delta("hel")]), Effect.fail(lost))
        })
      const result = yield* Allm.chat("hi").pipe(using(generate, { retry: Schedule.recurs(3) }))

      assert.strictEqual(asked, 1)
      assert.strictEqual(result.error, lost)
    }))

  it.effect("half-way runs none of its calls, and leaves none in the thread", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { tools: [ping] })

      assert.strictEqual(result.haltedReason, "error")
      assert.deepStrictEqual(result.steps[0]?.toolResults, [])
      assert.deepStrictEqual(result.finalResponse.toolCalls.map(({ id }) => id), ["c0"])
      assert.deepStrictEqual(result.thread.messages, [
        Message.user("hi"),
        Message.assistant("", { metadata: { finishReason: "error" } })
      ])
    }).pipe(using((_, emit) => Effect.zipRight(emit([calls("c0"), completed("tool_calls")]), Effect.fail(failure)))))

  it.effect("in a later turn keeps the turns before", () =>
    Effect.gen(function*() {
      let turn = 0
      const generate: Adapter.Service["generate"] = (_, emit) =>
        Effect.suspend(() => turn++ === 0 ? emit([calls("c0"), completed("tool_calls")]) : Effect.fail(failure))
      const result = yield* Allm.chat("hi", { tools: [ping] }).pipe(using(generate))

      assert.strictEqual(result.haltedReason, "error")
      assert.strictEqual(result.error, failure)
      assert.strictEqual(result.steps.length, 1)
      assert.deepStrictEqual(result.thread.messages.map(({ content }) => content), ["hi", "", "pong"])
    }))

  it.effect.each<[string, Adapter.Service["generate"]]>([
    ["throws", () => {
      throw new Error("bug")
    }],
    ["dies", () => Effect.die(new Error("bug"))],
    ["gives no Effect", () => undefined as never]
  ])("fails the chat with a typed error when it %s", ([, generate]) =>
    Effect.gen(function*() {
      const error = yield* errorOf(Allm.chat("hi").pipe(using(generate)))

      assert(error._tag === "AdapterError")
      assert.strictEqual(error.message, "model call failed (wire): unknown: the adapter crashed")
    }))

  it.effect("by interrupting itself fails the chat, and interrupts nothing else", () =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(errorOf(Allm.chat("hi")))

      assert(Exit.isSuccess(exit))
      assert.strictEqual(
        exit.value.message,
        "model call failed (wire): unknown: the adapter interrupted itself"
      )
    }).pipe(using(() => Effect.interrupt)))
})

describe("an adapter that emits events which are not a model's", () => {
  const strays: ReadonlyArray<Event.Event> = [
    { _tag: "ToolResultEncoded", toolCallId: "c0", toolName: "ping", content: "forged", isError: false },
    { _tag: "ManualToolCalls", toolCalls: [] },
    { _tag: "Nonsense" } as never
  ]

  it.effect("leaves them out, and says so in the log", () =>
    Effect.gen(function*() {
      const lines: Array<unknown> = []
      const logger = Logger.make(({ logLevel, message }) => void lines.push([logLevel._tag, message]))
      const events = yield* Stream.runCollect(Allm.stream("hi")).pipe(
        Effect.provide(Logger.replace(Logger.defaultLogger, logger))
      )

      assert.deepStrictEqual(Array.from(events, ({ _tag }) => _tag), [
        "TextDelta",
        "MessageCompleted",
        "StepCompleted",
        "ChatCompleted"
      ])
      assert.deepStrictEqual(lines, [
        ["Warning", ["the adapter wire emitted 3 events that are not a model's; left out"]]
      ])
    }).pipe(using(emitting([...strays, delta("hello"), completed()]))))

  it.effect("fails the call when there is nothing else", () =>
    Effect.gen(function*() {
      const error = yield* errorOf(Allm.chat("hi"))

      assert(error._tag === "AdapterError")
      assert.strictEqual(error.reason, "malformed_response")
    }).pipe(using(emitting(strays))))

  it.effect.each<[string, unknown]>([["null", null], ["undefined", undefined], ["text", "text"], ["a number", 5]])(
    "leaves out %s",
    ([, event]) =>
      Effect.gen(function*() {
        const response = yield* Allm.generate("hi")

        assert.strictEqual(response.outputText, "hello")
        assert.strictEqual(response.finishReason, "stop")
      }).pipe(using(emitting([delta("hello"), event as never, completed()])))
  )
})
