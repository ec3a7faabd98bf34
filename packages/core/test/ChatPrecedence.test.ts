import { Allm, Fake, Tool, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, TestClock } from "effect"

const call = (id: string, name: string) => Fake.toolCall({ id, name })
const calls = (...names: ReadonlyArray<string>): Fake.Script => [
  ...names.map((name, index) => call(`c${index}`, name)),
  Fake.finish("tool_calls")
]

const tools = [
  Tool.make("echo", { description: "Says ok", handler: () => "ok" }),
  Tool.make("ask", { description: "Asks", handler: () => ToolResult.askUser("Which?") }),
  Tool.make("ask_late", {
    description: "Asks after a while",
    handler: () => Effect.delay(Effect.succeed(ToolResult.askUser("Which?")), "1 second")
  }),
  Tool.make("guarded", { description: "Needs consent", needsApproval: true, handler: () => "ok" }),
  Tool.make("fail_late", {
    description: "Fails after a while",
    handler: () => Effect.delay(Effect.fail("no"), "1 second")
  }),
  Tool.make("fail", { description: "Fails", handler: () => Effect.fail("no") }),
  Tool.make("stop", { description: "Halts", handler: () => ToolResult.halt("plan_submitted", null) }),
  Tool.make("theirs", { description: "The caller's", manual: true })
]

const reasonOf = (names: ReadonlyArray<string>, options: Allm.Options<never> = {}) =>
  Allm.chat("hi", options).pipe(
    Effect.map((result) => result.haltedReason),
    Effect.provide(Fake.engine({ tools, script: calls(...names) }))
  )

const haltAlways = { haltWhen: () => true, maxTurns: 1 } as const

describe("the reason a chat ends with", () => {
  it.effect("PREC-02 a handler's own halt beats haltWhen", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* reasonOf(["stop"], haltAlways), "plan_submitted")
    }))

  it.effect("PREC-03 a tool error that halts beats haltWhen", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* reasonOf(["fail"], { ...haltAlways, onToolError: "halt" }), "tool_error")
    }))

  it.effect("PREC-04 manual mode beats haltWhen", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* reasonOf(["echo"], { ...haltAlways, mode: "manual" }), "manual_tool_calls")
    }))

  it.effect("PREC-04 a manual tool beats haltWhen", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* reasonOf(["echo", "theirs"], haltAlways), "manual_tool_calls")
    }))

  it.effect("PREC-06 a complete answer beats haltWhen", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", haltAlways)

      assert.strictEqual(result.haltedReason, "completed")
    }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("done"), Fake.finish("stop")] }))))

  it.effect("PREC-07 an answer that broke off beats haltWhen", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi", haltAlways)

      assert.strictEqual(result.haltedReason, "error")
    }).pipe(Effect.provide(Fake.engine({ script: [Fake.text("do"), Fake.error("network_error")] }))))

  it.effect("PREC-08 a question beats maxTurns", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* reasonOf(["ask"], { maxTurns: 1 }), "ask_user")
    }))

  it.effect("haltWhen beats maxTurns", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* reasonOf(["echo"], haltAlways), "halt_when")
    }))

  it.effect("haltWhen beats a budget that is used up", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* reasonOf(["echo"], { haltWhen: () => true, budget: { maxToolCalls: 1 } }), "halt_when")
    }))

  it.effect("a question beats everything else of its turn, even when it comes last", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.fork(
        reasonOf(["guarded", "fail", "stop", "theirs", "ask_late"], { ...haltAlways, onToolError: "halt" })
      )
      yield* TestClock.adjust("1 second")

      assert.strictEqual(yield* Fiber.join(fiber), "ask_user")
    }))

  it.effect("an approval beats tool errors, halts and manual calls", () =>
    Effect.gen(function*() {
      assert.strictEqual(
        yield* reasonOf(["fail", "stop", "theirs", "guarded"], { ...haltAlways, onToolError: "halt" }),
        "approval"
      )
    }))

  it.effect("a tool error beats a handler's own halt, even when it comes later", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.fork(reasonOf(["stop", "theirs", "fail_late"], { onToolError: "halt" }))
      yield* TestClock.adjust("1 second")

      assert.strictEqual(yield* Fiber.join(fiber), "tool_error")
    }))

  it.effect("a handler's own halt beats manual calls, which are still listed", () =>
    Effect.gen(function*() {
      const result = yield* Allm.chat("hi")

      assert.strictEqual(result.haltedReason, "plan_submitted")
      assert.deepStrictEqual(result.manualToolCalls.map((manual) => manual.id), ["c0"])
    }).pipe(Effect.provide(Fake.engine({ tools, script: calls("theirs", "stop") }))))
})
