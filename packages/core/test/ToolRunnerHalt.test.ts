import { HaltReason, OnToolError, Tool, ToolCall, ToolResult, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, FastCheck, Fiber, Schema, TestClock } from "effect"

const call = (id: string, name: string, args: unknown = {}) => ToolCall.make({ id, name, arguments: args })

const contents = (result: ToolRunner.RunResult) => result.messages.map((message) => message.content)
const tags = (result: ToolRunner.RunResult) => result.outcomes.map((outcome) => outcome.result._tag)

const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })
const fails = Tool.make("fails", { description: "Reports a failure", handler: () => Effect.fail("bad_arg") })
const done = Tool.make("done", {
  description: "Halts after a while",
  parameters: { reason: Schema.String, after: Schema.optional(Schema.Number) },
  handler: ({ after, reason }) =>
    after === undefined
      ? Effect.succeed(ToolResult.halt(reason, { status: "ok" }))
      : Effect.delay(Effect.succeed(ToolResult.halt(reason, { status: "ok" })), after)
})
const ask = Tool.make("ask", {
  description: "Asks after a while",
  parameters: { question: Schema.String, after: Schema.optional(Schema.Number) },
  handler: ({ after, question }) =>
    Effect.delay(Effect.succeed(ToolResult.askUser(question, { choices: ["A", "B"] })), after ?? 0)
})
const askNow = Tool.make("ask_now", {
  description: "Asks at once",
  handler: () => ToolResult.askUser("which city?")
})
const sleep = Tool.make("sleep", {
  description: "Answers after a while",
  parameters: { millis: Schema.Number },
  handler: ({ millis }) => Effect.as(Effect.sleep(millis), `slept ${millis}`)
})
const stubborn = Tool.make("stubborn", {
  description: "Answers after a while, whatever it is told",
  parameters: { millis: Schema.Number },
  handler: ({ millis }) => Effect.uninterruptible(Effect.as(Effect.sleep(millis), `slept ${millis}`))
})

/** Runs to the end, moving the clock as far as it takes. */
const settled = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.fork(effect)
    yield* TestClock.adjust("1 minute")
    return yield* Fiber.join(fiber)
  })

const stopped = (name: string) =>
  JSON.stringify({
    error: `tool error (${name}): interrupted: stopped because the turn was ended; it may have taken effect`
  })
const skipped = (name: string) =>
  JSON.stringify({ error: `tool error (${name}): skipped: not started because the turn was ended` })

describe("ToolRunner, halting", () => {
  describe("by a failure", () => {
    it.effect("RUN-10 halts with the error and no result when the policy says so", () =>
      Effect.gen(function*() {
        const result = yield* ToolRunner.run([call("c0", "fails")], [fails], { onToolError: "halt" })

        assert.deepStrictEqual(contents(result), ["{\"error\":\"bad_arg\"}"])
        assert.deepStrictEqual(Object.keys(result.halt!), ["reason", "toolCallId", "error"])
        assert.deepInclude(result.halt, { reason: "tool_error", toolCallId: "c0" })
        assert.deepInclude(result.halt!.error, { _tag: "HandlerFailed", failure: "bad_arg" })
      }))
  })

  describe("by a handler", () => {
    it.effect("RUN-15 halts with a reason and a result of its own", () =>
      Effect.gen(function*() {
        const result = yield* ToolRunner.run([call("c0", "done", { reason: "plan_submitted" })], [done])

        assert.deepStrictEqual(result.halt, {
          reason: "plan_submitted",
          toolCallId: "c0",
          result: { status: "ok" }
        })
        assert.deepStrictEqual(result.messages, [
          { role: "tool", toolCallId: "c0", content: "{\"status\":\"ok\"}", isError: false, metadata: {} }
        ])
        assert.deepStrictEqual(tags(result), ["Halt"])
      }))

    it.effect("RUN-15 keeps a result of undefined", () =>
      Effect.gen(function*() {
        const bare = Tool.make("bare", {
          description: "Halts with nothing",
          handler: () => ToolResult.halt("done", undefined)
        })
        const result = yield* ToolRunner.run([call("c0", "bare")], [bare])

        assert.deepStrictEqual(result.halt, { reason: "done", toolCallId: "c0", result: undefined })
        assert.deepStrictEqual(contents(result), ["null"])
      }))

    it.effect("RUN-44 goes on after a halt whose result has no text form", () =>
      Effect.gen(function*() {
        const odd = Tool.make("odd", {
          description: "Halts with a bigint",
          handler: () => ToolResult.halt("done", { total: 1n })
        })
        const result = yield* ToolRunner.run([call("c0", "odd")], [odd])

        assert.deepStrictEqual(contents(result), [
          "{\"error\":\"tool error (odd): encoding_failed at $.total: a bigint has no JSON form\"}"
        ])
        assert.strictEqual(result.halt, undefined)
      }))

    it.effect("RUN-45 halts with tool_error, not with its reason, when the policy is to halt", () =>
      Effect.gen(function*() {
        const odd = Tool.make("odd", {
          description: "Halts with a bigint",
          handler: () => ToolResult.halt("done", { total: 1n })
        })
        const result = yield* ToolRunner.run([call("c0", "odd")], [odd], { onToolError: "halt" })

        assert.deepInclude(result.halt, { reason: "tool_error", toolCallId: "c0" })
        assert.strictEqual(result.halt!.error?._tag, "EncodingFailed")
        assert.strictEqual("result" in result.halt!, false)
      }))
  })

  describe("with a reserved reason", () => {
    it.effect.each(HaltReason.reserved)(
      "RUN-16…21, RUN-35 is refused and told to the model: %s",
      (reason) =>
        Effect.gen(function*() {
          const result = yield* ToolRunner.run([call("c0", "done", { reason })], [done])

          assert.strictEqual(result.halt, undefined)
          assert.deepStrictEqual(contents(result), [
            JSON.stringify({
              error: `tool error (done): invalid_return: the halt reason "${reason}" is reserved; choose another`
            })
          ])
        })
    )

    it.effect.each(HaltReason.reserved)(
      "RUN-22…27 halts with tool_error under the policy halt: %s",
      (reason) =>
        Effect.gen(function*() {
          const result = yield* ToolRunner.run([call("c0", "done", { reason })], [done], { onToolError: "halt" })

          assert.deepInclude(result.halt, { reason: "tool_error", toolCallId: "c0" })
          assert.deepInclude(result.halt!.error, { _tag: "InvalidReturn", reservedHaltReason: reason })
          assert.strictEqual("result" in result.halt!, false)
        })
    )

    it.effect.each(HaltReason.reserved)(
      "RUN-28…33 names the reason to a policy function: %s",
      (reason) =>
        Effect.gen(function*() {
          const seen: Array<unknown> = []
          yield* ToolRunner.run([call("c0", "done", { reason })], [done], {
            onToolError: (_call, error) => {
              seen.push([error._tag, error._tag === "InvalidReturn" ? error.reservedHaltReason : undefined])
              return OnToolError.continue()
            }
          })

          assert.deepStrictEqual(seen, [["InvalidReturn", reason]])
        })
    )
  })

  describe("by a question", () => {
    it.effect("RUN-36 keeps the question and says that an answer is awaited", () =>
      Effect.gen(function*() {
        const result = yield* ToolRunner.run([call("c0", "ask_now")], [askNow])

        assert.deepStrictEqual(result.messages, [
          { role: "tool", toolCallId: "c0", content: "<awaiting user response>", isError: false, metadata: {} }
        ])
        assert.deepStrictEqual(result.halt, { reason: "ask_user", toolCallId: "c0" })
        assert.deepStrictEqual(result.questions, [
          { toolCallId: "c0", toolName: "ask_now", question: "which city?", options: {} }
        ])
      }))

    it.effect("RUN-37 keeps its options", () =>
      Effect.gen(function*() {
        const result = yield* settled(ToolRunner.run([call("c0", "ask", { question: "A or B?" })], [ask]))

        assert.deepStrictEqual(result.questions, [
          { toolCallId: "c0", toolName: "ask", question: "A or B?", options: { choices: ["A", "B"] } }
        ])
      }))

    it.effect("RUN-36 keeps every question, though one halt wins", () =>
      Effect.gen(function*() {
        const calls = [
          call("c0", "ask", { question: "late?", after: 30 }),
          call("c1", "ask", { question: "early?", after: 10 }),
          call("c2", "hi"),
          call("c3", "done", { reason: "over", after: 20 })
        ]
        const result = yield* settled(ToolRunner.run(calls, [ask, hi, done], { concurrency: 4 }))

        assert.deepStrictEqual(result.halt, { reason: "ask_user", toolCallId: "c1" })
        assert.sameMembers(result.questions.map(({ question }) => question), ["early?", "late?"])
        assert.deepStrictEqual(contents(result), [
          "<awaiting user response>",
          "<awaiting user response>",
          "hi",
          "{\"status\":\"ok\"}"
        ])
      }))
  })

  describe("several at once", () => {
    it.effect("lets the first that was seen win", () =>
      Effect.gen(function*() {
        const calls = [
          call("c0", "done", { reason: "late", after: 20 }),
          call("c1", "done", { reason: "early", after: 10 })
        ]
        const result = yield* settled(ToolRunner.run(calls, [done], { concurrency: 2 }))

        assert.deepInclude(result.halt, { reason: "early", toolCallId: "c1" })
      }))

    it.effect.each([1, 3])(
      "RUN-80 gives a tie to the order of the calls (concurrency %i)",
      (concurrency) =>
        Effect.gen(function*() {
          const calls = [call("c0", "hi"), call("c1", "done", { reason: "custom" }), call("c2", "ask_now")]
          const result = yield* ToolRunner.run(calls, [hi, done, askNow], { concurrency })

          assert.deepStrictEqual(result.halt, { reason: "custom", toolCallId: "c1", result: { status: "ok" } })
          assert.deepStrictEqual(result.questions.map(({ toolCallId }) => toolCallId), ["c2"])
          assert.deepStrictEqual(contents(result), ["hi", "{\"status\":\"ok\"}", "<awaiting user response>"])
        })
    )

    it.effect("RUN-80 gives a tie of calls that wait for the same thing to the order of the calls", () =>
      Effect.gen(function*() {
        const gate = yield* Deferred.make<void>()
        const waits = Tool.make("waits", {
          description: "Waits, then halts",
          handler: (_params, { toolCall }) => Effect.as(Deferred.await(gate), ToolResult.halt(toolCall.id, null))
        })
        const calls = ["x", "y", "z"].map((id) => call(id, "waits"))
        const fiber = yield* Effect.fork(ToolRunner.run(calls, [waits], { concurrency: 3 }))
        yield* Effect.yieldNow()
        yield* Deferred.succeed(gate, undefined)
        const result = yield* Fiber.join(fiber)

        assert.deepStrictEqual(result.halt, { reason: "x", toolCallId: "x", result: null })
      }))
  })

  describe("siblings that drain", () => {
    it.effect.each([["faster", 5], ["slower", 50]] as const)(
      "RUN-54 keeps the result of a %s one",
      ([_how, millis]) =>
        Effect.gen(function*() {
          const calls = [call("c0", "done", { reason: "over", after: 20 }), call("c1", "sleep", { millis })]
          const result = yield* settled(ToolRunner.run(calls, [done, sleep], { concurrency: 2 }))

          assert.deepStrictEqual(contents(result), ["{\"status\":\"ok\"}", `slept ${millis}`])
          assert.deepInclude(result.halt, { reason: "over", toolCallId: "c0" })
        })
    )

    it.effect("RUN-54 starts those that were still queued", () =>
      Effect.gen(function*() {
        const calls = [
          call("c0", "done", { reason: "over" }),
          call("c1", "sleep", { millis: 10 }),
          call("c2", "fails"),
          call("c3", "hi")
        ]
        const result = yield* settled(ToolRunner.run(calls, [done, sleep, fails, hi], { concurrency: 1 }))

        assert.deepStrictEqual(contents(result), ["{\"status\":\"ok\"}", "slept 10", "{\"error\":\"bad_arg\"}", "hi"])
      }))

    it.effect("still have their own limit", () =>
      Effect.gen(function*() {
        const calls = [call("c0", "ask_now"), call("c1", "stubborn", { millis: 1000 })]
        const result = yield* settled(
          ToolRunner.run(calls, [askNow, stubborn], { concurrency: 2, toolTimeout: "100 millis" })
        )

        assert.deepStrictEqual(contents(result), [
          "<awaiting user response>",
          "{\"error\":\"tool error (stubborn): timeout\"}"
        ])
      }))
  })

  describe("siblings that are interrupted", () => {
    it.effect("stops those that run and never starts those that wait", () =>
      Effect.gen(function*() {
        const started: Array<string> = []
        const ended: Array<string> = []
        const track = Tool.make("track", {
          description: "Waits, and tells when it is stopped",
          handler: (_params, { signal, toolCall: { id } }) =>
            Effect.suspend(() => {
              started.push(id)
              return Effect.never
            }).pipe(Effect.onInterrupt(() => Effect.sync(() => ended.push(`${id} ${signal.aborted}`))))
        })
        const calls = [
          call("c0", "track"),
          call("c1", "done", { reason: "over", after: 10 }),
          call("c2", "track"),
          call("c3", "track")
        ]
        const fiber = yield* Effect.fork(
          ToolRunner.run(calls, [track, done], { concurrency: 2, siblings: "interrupt" })
        )
        yield* TestClock.adjust("10 millis")
        const result = yield* Fiber.join(fiber)

        assert.deepStrictEqual(started, ["c0"])
        assert.deepStrictEqual(ended, ["c0 true"])
        assert.deepStrictEqual(contents(result), [
          stopped("track"),
          "{\"status\":\"ok\"}",
          skipped("track"),
          skipped("track")
        ])
        assert.deepStrictEqual(result.messages.map(({ isError }) => isError), [true, false, true, true])
        assert.deepStrictEqual(tags(result), ["Interrupted", "Halt", "Skipped", "Skipped"])
        assert.deepStrictEqual(result.halt, { reason: "over", toolCallId: "c1", result: { status: "ok" } })
      }))

    it.effect("keeps what had ended before", () =>
      Effect.gen(function*() {
        const calls = [call("c0", "hi"), call("c1", "ask_now"), call("c2", "hi")]
        const result = yield* ToolRunner.run(calls, [hi, askNow], { siblings: "interrupt" })

        assert.deepStrictEqual(contents(result), ["hi", "<awaiting user response>", skipped("hi")])
      }))

    it.effect("waits for one that cannot be stopped yet, and says that it may have taken effect", () =>
      Effect.gen(function*() {
        const calls = [call("c0", "stubborn", { millis: 50 }), call("c1", "done", { reason: "over", after: 10 })]
        const fiber = yield* Effect.fork(
          ToolRunner.run(calls, [stubborn, done], { concurrency: 2, siblings: "interrupt" })
        )
        yield* TestClock.adjust("49 millis")
        assert.strictEqual(fiber.unsafePoll(), null)
        yield* TestClock.adjust("1 millis")
        const result = yield* Fiber.join(fiber)

        assert.deepStrictEqual(contents(result), [stopped("stubborn"), "{\"status\":\"ok\"}"])
      }))

    it.effect("does not wait past its limit for one that cannot be stopped", () =>
      Effect.gen(function*() {
        const calls = [call("c0", "stubborn", { millis: 5000 }), call("c1", "done", { reason: "over", after: 10 })]
        const fiber = yield* Effect.fork(
          ToolRunner.run(calls, [stubborn, done], { concurrency: 2, siblings: "interrupt", toolTimeout: "100 millis" })
        )
        yield* TestClock.adjust("100 millis")
        const result = yield* Fiber.join(fiber)

        assert.deepStrictEqual(contents(result), [stopped("stubborn"), "{\"status\":\"ok\"}"])
        assert.deepInclude(result.halt, { reason: "over", toolCallId: "c1" })
      }))

    it.effect("asks no policy about those it stopped", () =>
      Effect.gen(function*() {
        const asked: Array<string> = []
        const calls = [
          call("c0", "sleep", { millis: 50 }),
          call("c1", "fails"),
          call("c2", "sleep", { millis: 50 })
        ]
        const result = yield* settled(ToolRunner.run(calls, [sleep, fails], {
          concurrency: 2,
          siblings: "interrupt",
          onToolError: ({ id }) => {
            asked.push(id)
            return OnToolError.halt
          }
        }))

        assert.deepStrictEqual(asked, ["c1"])
        assert.deepInclude(result.halt, { reason: "tool_error", toolCallId: "c1" })
        assert.deepStrictEqual(tags(result), ["Interrupted", "HandlerFailed", "Skipped"])
      }))

    it.effect("leaves everything alone as long as nobody halts", () =>
      Effect.gen(function*() {
        const calls = [call("c0", "fails"), call("c1", "sleep", { millis: 10 })]
        const result = yield* settled(ToolRunner.run(calls, [fails, sleep], { siblings: "interrupt" }))

        assert.deepStrictEqual(contents(result), ["{\"error\":\"bad_arg\"}", "slept 10"])
      }))
  })

  describe("siblings that drain for a while", () => {
    it.effect("keeps who ends in time, stops who does not, and skips who still waits", () =>
      Effect.gen(function*() {
        const calls = [
          call("c0", "done", { reason: "over", after: 10 }),
          call("c1", "sleep", { millis: 25 }),
          call("c2", "sleep", { millis: 100 }),
          call("c3", "sleep", { millis: 15 }),
          call("c4", "sleep", { millis: 100 }),
          call("c5", "sleep", { millis: 100 }),
          call("c6", "hi")
        ]
        const fiber = yield* Effect.fork(
          ToolRunner.run(calls, [done, sleep, hi], { concurrency: 3, siblings: { drainFor: "20 millis" } })
        )
        yield* TestClock.adjust("29 millis")
        assert.strictEqual(fiber.unsafePoll(), null)
        yield* TestClock.adjust("1 millis")
        const result = yield* Fiber.join(fiber)

        assert.deepStrictEqual(contents(result), [
          "{\"status\":\"ok\"}",
          "slept 25",
          stopped("sleep"),
          "slept 15",
          stopped("sleep"),
          stopped("sleep"),
          skipped("hi")
        ])
      }))

    it.effect("ends as soon as the last one does", () =>
      Effect.gen(function*() {
        const calls = [call("c0", "done", { reason: "over" }), call("c1", "sleep", { millis: 10 })]
        const fiber = yield* Effect.fork(
          ToolRunner.run(calls, [done, sleep], { concurrency: 2, siblings: { drainFor: "1 hour" } })
        )
        yield* TestClock.adjust("10 millis")
        const result = yield* Fiber.join(fiber)

        assert.deepStrictEqual(contents(result), ["{\"status\":\"ok\"}", "slept 10"])
      }))
  })

  describe("in every mode", () => {
    const ways: { readonly [way: string]: Effect.Effect<unknown, string> } = {
      ok: Effect.succeed("ok"),
      halt: Effect.succeed(ToolResult.halt("over", 1)),
      ask: Effect.succeed(ToolResult.askUser("and?")),
      fail: Effect.fail("no"),
      die: Effect.die("no"),
      stubborn: Effect.uninterruptible(Effect.as(Effect.sleep(40), "ok")),
      approval: Effect.succeed("never reached")
    }
    const any = Tool.make("any", {
      description: "Ends in any way",
      parameters: { way: Schema.String, after: Schema.Number },
      needsApproval: ({ way }) => way === "approval",
      handler: ({ after, way }) => after === 0 ? ways[way]! : Effect.zipRight(Effect.sleep(after), ways[way]!)
    })

    it.effect.prop(
      "every call has exactly one message, in order, or waits for approval",
      {
        plan: FastCheck.array(
          FastCheck.record({
            way: FastCheck.constantFrom(...Object.keys(ways)),
            after: FastCheck.constantFrom(0, 5, 10, 100)
          }),
          { maxLength: 8 }
        ),
        siblings: FastCheck.constantFrom("drain" as const, "interrupt" as const, { drainFor: "5 millis" } as const),
        onToolError: FastCheck.constantFrom("continue" as const, "halt" as const, () => OnToolError.halt),
        concurrency: FastCheck.constantFrom(1, 2, "unbounded" as const)
      },
      ({ plan, ...options }) =>
        Effect.gen(function*() {
          const calls = plan.map((args, i) => call(`c${i}`, "any", args))
          const result = yield* settled(ToolRunner.run(calls, [any], { ...options, toolTimeout: "50 millis" }))
          const waiting = result.approvals.map(({ toolCall }) => toolCall.id)
          const answered = result.messages.map(({ toolCallId }) => toolCallId)
          const ids = calls.map(({ id }) => id)

          assert.deepStrictEqual(answered, ids.filter((id) => !waiting.includes(id)))
          assert.sameMembers([...answered, ...waiting], ids)
          assert.deepStrictEqual(result.outcomes.map(({ toolCall }) => toolCall.id), answered)
          assert.strictEqual(
            result.halt !== undefined,
            waiting.length > 0 || result.outcomes.some(({ result: { _tag } }) =>
              _tag === "Halt" || _tag === "AskUser" ||
              (options.onToolError !== "continue" && !["Ok", "Skipped", "Interrupted"].includes(_tag))
            )
          )
        }),
      { fastCheck: { numRuns: 50 } }
    )
  })

  it.effect("halts no sooner than its siblings can be read", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<string>()
      const waits = Tool.make("waits", { description: "Waits", handler: () => Deferred.await(gate) })
      const fiber = yield* Effect.fork(
        ToolRunner.run([call("c0", "ask_now"), call("c1", "waits")], [askNow, waits], { concurrency: 2 })
      )
      yield* TestClock.adjust("1 second")
      assert.strictEqual(fiber.unsafePoll(), null)
      yield* Deferred.succeed(gate, "at last")
      const result = yield* Fiber.join(fiber)

      assert.deepStrictEqual(contents(result), ["<awaiting user response>", "at last"])
    }))
})
