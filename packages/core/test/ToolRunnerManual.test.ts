import { Tool, ToolCall, ToolResult, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Context, Effect, Fiber, Layer, Schema, Stream, TestClock } from "effect"

const call = (id: string, name: string, args: unknown = {}) => ToolCall.make({ id, name, arguments: args })

const contents = (result: ToolRunner.RunResult) => result.messages.map((message) => message.content)
const waiting = (result: ToolRunner.RunResult) => result.approvals.map(({ toolCall }) => toolCall.id)

const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })
const deploy = Tool.make("deploy", {
  description: "The caller's to run",
  manual: true,
  handler: (): string => {
    throw new Error("must not run")
  }
})
const done = Tool.make("done", { description: "Halts", handler: () => ToolResult.halt("over", "bye") })
const remove = Tool.make("remove", {
  description: "Removes a path",
  parameters: { path: Schema.String },
  needsApproval: true,
  handler: ({ path }) => `removed ${path}`
})

/** A tool that asks for approval when `gate` says so, and keeps the ids of the calls that ran. */
const gated = <AR = never>(
  gate: (params: { readonly path: string }) => boolean | Effect.Effect<boolean, unknown, AR>
) => {
  const ran: Array<string> = []
  const tool = Tool.make("write", {
    description: "Writes to a path",
    parameters: { path: Schema.String },
    needsApproval: gate,
    handler: ({ path }, { toolCall }) => {
      ran.push(toolCall.id)
      return `wrote ${path}`
    }
  })
  return { ran, tool }
}

describe("ToolRunner, manual calls", () => {
  it.effect("lists them and runs the others", () =>
    Effect.gen(function*() {
      const calls = [call("c0", "deploy", { to: "prod" }), call("c1", "hi"), call("c2", "deploy")]
      const result = yield* ToolRunner.run(calls, [deploy, hi])

      assert.deepStrictEqual(result.manualToolCalls, [calls[0]!, calls[2]!])
      assert.deepStrictEqual(result.messages.map(({ content, toolCallId }) => [toolCallId, content]), [["c1", "hi"]])
      assert.deepStrictEqual(result.outcomes.map(({ toolCall }) => toolCall.id), ["c1"])
      assert.strictEqual(result.halt, undefined)
    }))

  it.effect("lists them when there is nothing else", () =>
    Effect.gen(function*() {
      const result = yield* ToolRunner.run([call("c0", "deploy")], [deploy])

      assert.deepStrictEqual(result, {
        messages: [],
        halt: undefined,
        questions: [],
        approvals: [],
        manualToolCalls: [call("c0", "deploy")],
        outcomes: []
      })
    }))

  it.effect.each(["drain", "interrupt"] as const)(
    "lists them although a sibling halted (%s)",
    (siblings) =>
      Effect.gen(function*() {
        const result = yield* ToolRunner.run([call("c0", "done"), call("c1", "deploy")], [done, deploy], { siblings })

        assert.deepStrictEqual(result.manualToolCalls, [call("c1", "deploy")])
        assert.deepStrictEqual(contents(result), ["bye"])
        assert.strictEqual(result.halt?.reason, "over")
      })
  )

  it.effect("need no handler, no valid arguments and no approval", () =>
    Effect.gen(function*() {
      const bare = Tool.make("bare", {
        description: "Declared only",
        parameters: { to: Schema.String },
        manual: true,
        needsApproval: true
      })
      const broken = ToolCall.fromRaw({ id: "c0", name: "bare", rawArguments: "{" })
      const result = yield* ToolRunner.run([broken], [bare], { onToolError: "halt" })

      assert.deepStrictEqual(result.manualToolCalls, [broken])
      assert.deepStrictEqual(result.approvals, [])
      assert.strictEqual(result.halt, undefined)
    }))

  it.effect("are told once, before anything runs", () =>
    Effect.gen(function*() {
      const calls = [call("c0", "hi"), call("c1", "deploy"), call("c2", "deploy")]
      const events = yield* Stream.runCollect(ToolRunner.stream(calls, [hi, deploy]))

      assert.deepStrictEqual(Chunk.toReadonlyArray(events).map(({ _tag }) => _tag), [
        "ManualToolCalls",
        "ToolExecutionStarted",
        "ToolExecutionCompleted",
        "ToolResultEncoded"
      ])
      assert.deepStrictEqual(Chunk.unsafeHead(events), { _tag: "ManualToolCalls", toolCalls: [calls[1]!, calls[2]!] })
    }))
})

describe("ToolRunner, approvals", () => {
  describe("a tool that always needs one", () => {
    it.effect("waits, without a message, and its siblings run", () =>
      Effect.gen(function*() {
        const calls = [call("c0", "hi"), call("c1", "remove", { path: "/" }), call("c2", "hi")]
        const result = yield* ToolRunner.run(calls, [hi, remove])

        assert.deepStrictEqual(result.approvals, [{ toolCall: calls[1]! }])
        assert.deepStrictEqual(result.messages.map(({ toolCallId }) => toolCallId), ["c0", "c2"])
        assert.deepStrictEqual(result.outcomes.map(({ toolCall }) => toolCall.id), ["c0", "c2"])
        assert.deepStrictEqual(result.halt, { reason: "approval", toolCallId: "c1" })
      }))

    it.effect("keeps every call that waits", () =>
      Effect.gen(function*() {
        const calls = ["/a", "/b", "/c"].map((path, i) => call(`c${i}`, "remove", { path }))
        const result = yield* ToolRunner.run(calls, [remove])

        assert.deepStrictEqual(waiting(result), ["c0", "c1", "c2"])
        assert.deepStrictEqual(result.messages, [])
        assert.deepStrictEqual(result.halt, { reason: "approval", toolCallId: "c0" })
      }))

    it.effect("never starts, and says so with a halt that has no content", () =>
      Effect.gen(function*() {
        const events = yield* Stream.runCollect(ToolRunner.stream([call("c0", "remove", { path: "/" })], [remove]))

        assert.deepStrictEqual(Chunk.toReadonlyArray(events), [
          { _tag: "ToolHalt", toolCallId: "c0", toolName: "remove", reason: "approval", isError: false }
        ])
      }))

    it.effect("waits again when only a sibling was approved", () =>
      Effect.gen(function*() {
        const calls = [call("c0", "remove", { path: "/a" }), call("c1", "remove", { path: "/b" })]
        const result = yield* ToolRunner.run(calls, [remove], { approvals: { c1: { _tag: "Approved" } } })

        assert.deepStrictEqual(contents(result), ["removed /b"])
        assert.deepStrictEqual(waiting(result), ["c0"])
      }))

    it.effect("waits whatever the model calls its call", () =>
      Effect.gen(function*() {
        const ids = ["constructor", "toString", "__proto__", "hasOwnProperty"]
        const result = yield* ToolRunner.run(ids.map((id) => call(id, "remove", { path: "/" })), [remove])

        assert.deepStrictEqual(waiting(result), ids)
        assert.deepStrictEqual(result.messages, [])
      }))
  })

  describe("a gate that decides by the arguments", () => {
    it.effect("lets through what it says no to, and keeps what it says yes to", () =>
      Effect.gen(function*() {
        const { ran, tool } = gated(({ path }) => path.startsWith("/etc"))
        const calls = [call("c0", "write", { path: "/tmp/a" }), call("c1", "write", { path: "/etc/passwd" })]
        const result = yield* ToolRunner.run(calls, [tool])

        assert.deepStrictEqual(contents(result), ["wrote /tmp/a"])
        assert.deepStrictEqual(waiting(result), ["c1"])
        assert.deepStrictEqual(ran, ["c0"])
      }))

    it.effect("may be an Effect that needs services", () =>
      Effect.gen(function*() {
        class Trusted extends Context.Tag("test/Trusted")<Trusted, ReadonlyArray<string>>() {}
        const { ran, tool } = gated(({ path }) => Effect.map(Trusted, (paths) => !paths.includes(path)))
        const calls = [call("c0", "write", { path: "/tmp/a" }), call("c1", "write", { path: "/tmp/b" })]
        const result = yield* ToolRunner.run(calls, [tool]).pipe(Effect.provide(Layer.succeed(Trusted, ["/tmp/b"])))

        assert.deepStrictEqual(contents(result), ["wrote /tmp/b"])
        assert.deepStrictEqual(waiting(result), ["c0"])
        assert.deepStrictEqual(ran, ["c1"])
      }))

    it.effect("sees the call's context", () =>
      Effect.gen(function*() {
        const seen: Array<string> = []
        const tool = Tool.make("look", {
          description: "Looks",
          needsApproval: (_params, { requestId, toolCall }) => {
            seen.push(`${requestId} ${toolCall.id}`)
            return false
          },
          handler: () => "ok"
        })
        yield* ToolRunner.run([call("c0", "look")], [tool], { requestId: "r1" })

        assert.deepStrictEqual(seen, ["r1 c0"])
      }))

    it.effect.each(
      [
        ["fails", () => Effect.fail("no database")],
        ["dies", () => Effect.die("bug")],
        ["throws", (): boolean => {
          throw new Error("bug")
        }],
        ["gives no boolean", () => undefined as never],
        ["gives a promise", () => Promise.resolve(false) as never]
      ] as const
    )("asks when it %s", ([_how, gate]) =>
      Effect.gen(function*() {
        const { ran, tool } = gated(gate)
        const result = yield* ToolRunner.run([call("c0", "write", { path: "/" })], [tool])

        assert.deepStrictEqual(waiting(result), ["c0"])
        assert.deepStrictEqual(ran, [])
      }))

    it.effect("asks when it takes longer than the call may", () =>
      Effect.gen(function*() {
        const { ran, tool } = gated(() => Effect.never)
        const calls = [call("c0", "write", { path: "/" }), call("c1", "hi")]
        const fiber = yield* Effect.fork(ToolRunner.run(calls, [tool, hi], { toolTimeout: "50 millis" }))
        yield* TestClock.adjust("50 millis")
        const result = yield* Fiber.join(fiber)

        assert.deepStrictEqual(waiting(result), ["c0"])
        assert.deepStrictEqual(contents(result), ["hi"])
        assert.deepStrictEqual(ran, [])
      }))

    it.effect("is not asked about arguments the handler would never see", () =>
      Effect.gen(function*() {
        const asked: Array<unknown> = []
        const { ran, tool } = gated((params) => {
          asked.push(params)
          return true
        })
        const broken = ToolCall.fromRaw({ id: "c1", name: "write", rawArguments: "{" })
        const result = yield* ToolRunner.run([call("c0", "write", { path: 7 }), broken], [tool])

        assert.deepStrictEqual(result.outcomes.map((outcome) => outcome.result._tag), [
          "InvalidArguments",
          "InvalidArguments"
        ])
        assert.deepStrictEqual(result.approvals, [])
        assert.deepStrictEqual(asked, [])
        assert.deepStrictEqual(ran, [])
      }))

    it.effect("is not asked again once a person has decided", () =>
      Effect.gen(function*() {
        let asked = 0
        const { ran, tool } = gated(() => {
          asked++
          return true
        })
        const result = yield* ToolRunner.run([call("c0", "write", { path: "/etc" })], [tool], {
          approvals: { c0: { _tag: "Approved" } }
        })

        assert.strictEqual(asked, 0)
        assert.deepStrictEqual(contents(result), ["wrote /etc"])
        assert.deepStrictEqual(ran, ["c0"])
      }))

    it.effect("is skipped like the call itself when a sibling halts and siblings are interrupted", () =>
      Effect.gen(function*() {
        const { ran, tool } = gated(() => Effect.never)
        const later = Tool.make("later", {
          description: "Halts after a while",
          handler: () => Effect.delay(Effect.succeed(ToolResult.halt("over", "bye")), "10 millis")
        })
        const fiber = yield* Effect.fork(
          ToolRunner.run([call("c0", "write", { path: "/" }), call("c1", "later")], [tool, later], {
            concurrency: 2,
            siblings: "interrupt"
          })
        )
        yield* TestClock.adjust("10 millis")
        const result = yield* Fiber.join(fiber)

        assert.deepStrictEqual(result.outcomes.map((outcome) => outcome.result._tag), ["Skipped", "Halt"])
        assert.deepStrictEqual(waiting(result), [])
        assert.deepStrictEqual(ran, [])
      }))
  })

  describe("a decision", () => {
    it.effect("that approves runs the call", () =>
      Effect.gen(function*() {
        const result = yield* ToolRunner.run([call("c0", "remove", { path: "/tmp" })], [remove], {
          approvals: { c0: { _tag: "Approved" } }
        })

        assert.deepStrictEqual(contents(result), ["removed /tmp"])
        assert.deepStrictEqual(result.approvals, [])
        assert.strictEqual(result.halt, undefined)
      }))

    it.effect("that approves lets no wrong arguments through", () =>
      Effect.gen(function*() {
        const result = yield* ToolRunner.run([call("c0", "remove", { path: 7 })], [remove], {
          approvals: { c0: { _tag: "Approved" } }
        })

        assert.strictEqual(result.outcomes[0]!.result._tag, "InvalidArguments")
      }))

    it.effect("that denies tells the model, and why", () =>
      Effect.gen(function*() {
        const calls = [call("c0", "remove", { path: "/" }), call("c1", "hi")]
        const result = yield* ToolRunner.run(calls, [remove, hi], {
          approvals: { c0: { _tag: "Denied", reason: "not on a Friday" } }
        })

        assert.deepStrictEqual(result.messages[0], {
          role: "tool",
          toolCallId: "c0",
          content: "{\"error\":\"tool error (remove): denied: not on a Friday\"}",
          isError: true,
          metadata: {}
        })
        assert.strictEqual(contents(result)[1], "hi")
        assert.deepInclude(result.outcomes[0]!.result, {
          _tag: "Denied",
          toolName: "remove",
          toolCallId: "c0",
          detail: "not on a Friday"
        })
        assert.deepStrictEqual(result.approvals, [])
        assert.strictEqual(result.halt, undefined)
      }))

    it.effect("that denies needs no reason", () =>
      Effect.gen(function*() {
        const result = yield* ToolRunner.run([call("c0", "remove", { path: "/" })], [remove], {
          approvals: { c0: { _tag: "Denied" } }
        })

        assert.deepStrictEqual(contents(result), ["{\"error\":\"tool error (remove): denied\"}"])
      }))

    it.effect("that denies goes through the error policy", () =>
      Effect.gen(function*() {
        const result = yield* ToolRunner.run([call("c0", "remove", { path: "/" })], [remove], {
          approvals: { c0: { _tag: "Denied" } },
          onToolError: "halt"
        })

        assert.deepInclude(result.halt, { reason: "tool_error", toolCallId: "c0" })
        assert.strictEqual(result.halt!.error?._tag, "Denied")
      }))

    it.effect.each(
      [
        ["another tag", { _tag: "Rejected" }],
        ["a word", "no"],
        ["a boolean", false],
        ["null", null]
      ] as const
    )("that is none (%s) runs nothing", ([_what, decision]) =>
      Effect.gen(function*() {
        const { ran, tool } = gated(() => true)
        const outcome = yield* Effect.either(ToolRunner.run([call("c0", "write", { path: "/" })], [tool], {
          approvals: { c0: decision as never }
        }))

        assert.deepStrictEqual(ran, [])
        assert.strictEqual(outcome._tag, "Left")
        if (outcome._tag === "Left") assert.match(outcome.left.message, /\$\.approvals\.c0: .*Approved.*Denied/)
      }))
  })
})
