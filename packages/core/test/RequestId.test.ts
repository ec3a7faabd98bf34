import { Allm, Fake, Tool } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, HashMap, Logger, LogLevel, Option, TestClock } from "effect"

const says = (text: string): Fake.Script => [Fake.text(text), Fake.finish("stop")]
const turn = (index: number): Fake.Script => [
  Fake.toolCall({ id: `c${index}`, name: "tell" }),
  Fake.finish("tool_calls")
]

const tell = Tool.make("tell", {
  description: "Tells which request it belongs to",
  handler: (_, { requestId, sessionId }) => ({ requestId, sessionId })
})
const note = Tool.make("tell", { description: "Writes a log line", handler: () => Effect.log("noted") })

/** The log lines of an effect, with their annotations. */
const logged = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const lines: Array<readonly [text: string, requestId: unknown, sessionId: unknown]> = []
    const logger = Logger.make(({ annotations, message }) => {
      const of = (key: string) => Option.getOrUndefined(HashMap.get(annotations, key))
      lines.push([String(Array.isArray(message) ? message[0] : message), of("requestId"), of("sessionId")])
    })
    return effect.pipe(
      Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
      Logger.withMinimumLogLevel(LogLevel.Debug),
      Effect.map((value) => [value, lines] as const)
    )
  })

describe("the request id", () => {
  it.effect("is made up once, of 22 letters, and the same everywhere", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi")
      const id = result.finalResponse.requestId

      assert.match(id ?? "", /^[A-Za-z0-9_-]{22}$/)
      assert.deepStrictEqual(result.steps.map((step) => step.response.requestId), [id, id, id])
      assert.deepStrictEqual(
        result.steps.flatMap((step) => step.toolResults.map((message) => message.content)),
        [JSON.stringify({ requestId: id }), JSON.stringify({ requestId: id })]
      )
    }).pipe(Effect.provide(Fake.engine({ tools: [tell], scripts: [turn(0), turn(1), says("done")] }))))

  it.effect("is another one for every chat", () =>
    Effect.gen(function*() {
      const ids = yield* Effect.replicateEffect(
        Effect.map(Allm.chat("hi"), (result) => result.finalResponse.requestId),
        100
      )

      assert.strictEqual(new Set(ids).size, 100)
    }).pipe(Effect.provide(Fake.engine({ respond: () => says("done") }))))

  it.effect("may be given, with a session's", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", { requestId: "r0", sessionId: "s0" })

      assert.deepStrictEqual(result.steps.map((step) => step.response.requestId), ["r0", "r0"])
      assert.strictEqual(result.steps[0]?.toolResults[0]?.content, "{\"requestId\":\"r0\",\"sessionId\":\"s0\"}")
    }).pipe(Effect.provide(Fake.engine({ tools: [tell], scripts: [turn(0), says("done")] }))))

  it.effect("may not be empty", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Allm.chat("hi", { requestId: "" }))

      assert.match(error.message, /\$\.requestId: write a non-empty string, not ""/)
    }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))

  it.effect("is the same in both passes of a structured answer", () =>
    Effect.gen(function*() {
      const { steps } = yield* Allm.chat("hi", { structuredFinalize: true, responseFormat: { type: "json_object" } })

      assert.lengthOf(steps, 2)
      assert.match(steps[0]?.response.requestId ?? "", /^[A-Za-z0-9_-]{22}$/)
      assert.strictEqual(steps[0]?.response.requestId, steps[1]?.response.requestId)
    }).pipe(Effect.provide(Fake.engine({ scripts: [says("done"), says("{}")] }))))

  it.effect("is in the response of a result without steps", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Allm.chat("hi", { requestId: "r0", prepareStep: () => Effect.fail("no") }))

      assert.strictEqual(error._tag === "CallbackFailed" && error.result.finalResponse.requestId, "r0")
    }).pipe(Effect.provide(Fake.engine({ script: says("done") }))))

  it.effect("annotates what a handler logs", () =>
    Effect.gen(function*() {
      const [, lines] = yield* logged(Allm.chat("hi", { requestId: "r0", sessionId: "s0" }))

      assert.deepStrictEqual(lines, [["noted", "r0", "s0"]])
    }).pipe(Effect.provide(Fake.engine({ tools: [note], scripts: [turn(0), says("done")] }))))

  it.effect("annotates what is logged about a model call that is repeated", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.fork(logged(Allm.chat("hi", { requestId: "r0", sessionId: "s0" })))
      yield* TestClock.adjust(Duration.minutes(1))
      const [, lines] = yield* Fiber.join(fiber)

      assert.deepStrictEqual(lines.filter(([text]) => text === "model call repeated"), [
        ["model call repeated", "r0", "s0"]
      ])
    }).pipe(Effect.provide(Fake.engine({ scripts: [[Fake.preflightError("rate_limited")], says("done")] }))))

  it.effect("does not stay on the lines of the caller", () =>
    Effect.gen(function*() {
      const [, lines] = yield* logged(Effect.zipRight(Allm.chat("hi", { requestId: "r0" }), Effect.log("over")))

      assert.deepStrictEqual(lines.at(-1), ["over", undefined, undefined])
    }).pipe(Effect.provide(Fake.engine({ tools: [note], scripts: [turn(0), says("done")] }))))
})
