import { Tool, ToolCall, ToolError, ToolExecutor, ToolResult, ToolResultEncoder, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"

const call = (id: string, name: string, args: unknown = {}) => ToolCall.make({ id, name, arguments: args })

const contents = (result: ToolRunner.RunResult) => result.messages.map((message) => message.content)

const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })
const sum = Tool.make("sum", { description: "Gives an object", handler: () => ({ sum: 3 }) })
const fails = Tool.make("fails", { description: "Reports a failure", handler: () => Effect.fail({ code: 7 }) })
const boom = Tool.make("boom", {
  description: "Throws",
  handler: (): string => {
    throw new Error("secret")
  }
})

const answering = (answer: string) => ToolExecutor.layer({ execute: () => Effect.succeed(ToolResult.ok(answer)) })

/** An encoder that can only do text. */
const textOnly = (refuse: () => Effect.Effect<never, ToolError.EncodingFailed>) =>
  ToolResultEncoder.layer({ encode: (value) => typeof value === "string" ? Effect.succeed(value) : refuse() })

const refusing = textOnly(() => new ToolError.EncodingFailed({ path: [], detail: "encode error" }))

describe("ToolRunner, with services of the caller's", () => {
  describe("an executor", () => {
    it.effect("RUN-57 replaces the handlers", () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const layer = ToolExecutor.layer({
          execute: (tool, args, context) => {
            seen.push([tool.name, args, context.toolCall.id])
            return Effect.succeed(ToolResult.ok("from elsewhere"))
          }
        })
        const result = yield* Effect.provide(ToolRunner.run([call("c0", "hi", { a: 1 })], [hi]), layer)

        assert.deepStrictEqual(contents(result), ["from elsewhere"])
        assert.deepStrictEqual(seen, [["hi", { a: 1 }, "c0"]])
      }))

    it.effect("RUN-56 nearer to the run beats the one further out", () =>
      Effect.gen(function*() {
        const result = yield* ToolRunner.run([call("c0", "hi")], [hi]).pipe(
          Effect.provide(answering("near")),
          Effect.provide(answering("far"))
        )

        assert.deepStrictEqual(contents(result), ["near"])
      }))

    it.effect("may ask and halt like a handler", () =>
      Effect.gen(function*() {
        const layer = ToolExecutor.layer({
          execute: (_tool, _args, { toolCall }) =>
            Effect.succeed(toolCall.id === "c0" ? ToolResult.askUser("sure?") : ToolResult.halt("over", 1))
        })
        const result = yield* Effect.provide(ToolRunner.run([call("c0", "hi"), call("c1", "hi")], [hi]), layer)

        assert.deepStrictEqual(contents(result), ["<awaiting user response>", "1"])
        assert.deepStrictEqual(result.halt, { reason: "ask_user", toolCallId: "c0" })
      }))

    it.effect.each(
      [
        [undefined, "undefined"],
        ["hi", "a string"],
        [{ ok: "hi" }, "an object"]
      ] as const
    )(
      "RUN-67 that gives no outcome fails the call as invalid_return: %j",
      ([given, described]) =>
        Effect.gen(function*() {
          const layer = ToolExecutor.layer({ execute: () => Effect.succeed(given as never) })
          const result = yield* Effect.provide(ToolRunner.run([call("c0", "hi")], [hi]), layer)

          assert.deepStrictEqual(contents(result), [
            JSON.stringify({
              error: `tool error (hi): invalid_return: an executor succeeds with a ToolOutcome, not ${described}; ` +
                "write ToolResult.ok(value)"
            })
          ])
          assert.strictEqual(result.outcomes[0]!.result._tag, "InvalidReturn")
        })
    )

    it.effect("RUN-67 that fails with something else fails the call as invalid_return", () =>
      Effect.gen(function*() {
        const layer = ToolExecutor.layer({ execute: () => Effect.fail("secret" as never) })
        const result = yield* Effect.provide(ToolRunner.run([call("c0", "hi")], [hi]), layer)

        assert.deepStrictEqual(contents(result), [
          JSON.stringify({
            error: "tool error (hi): invalid_return: an executor fails with a ToolError; " +
              "this one failed with something else"
          })
        ])
      }))

    it.effect.each(
      [
        ["throws", () => {
          throw new Error("secret")
        }],
        ["dies", () => Effect.die(new Error("secret"))],
        ["is no Effect", () => 5 as never]
      ] as const
    )("RUN-68 that %s costs the call its answer, not the run", ([_how, execute]) =>
      Effect.gen(function*() {
        const layer = ToolExecutor.layer({
          execute: (_tool, _args, { toolCall }) =>
            toolCall.id === "c0" ? execute() : Effect.succeed(ToolResult.ok("fine"))
        })
        const result = yield* Effect.provide(ToolRunner.run([call("c0", "hi"), call("c1", "hi")], [hi]), layer)

        assert.deepStrictEqual(contents(result), ["{\"error\":\"tool error (hi): handler_raised\"}", "fine"])
      }))
  })

  describe("an encoder", () => {
    it.effect("RUN-58 makes the text of results, of halts and of failures", () =>
      Effect.gen(function*() {
        const done = Tool.make("done", { description: "Halts", handler: () => ToolResult.halt("over", { n: 1 }) })
        const layer = ToolResultEncoder.layer({ encode: (value) => Effect.succeed(`<${JSON.stringify(value)}>`) })
        const calls = [call("c0", "hi"), call("c1", "sum"), call("c2", "done"), call("c3", "fails")]
        const result = yield* Effect.provide(ToolRunner.run(calls, [hi, sum, done, fails]), layer)

        assert.deepStrictEqual(contents(result), [
          "<\"hi\">",
          "<{\"sum\":3}>",
          "<{\"n\":1}>",
          "<{\"error\":{\"code\":7}}>"
        ])
      }))

    it.effect("RUN-58 sees the value in the form of the success schema", () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const day = Tool.make("day", { description: "Gives a date", success: Schema.Date, handler: () => new Date(0) })
        const layer = ToolResultEncoder.layer({
          encode: (value) => {
            seen.push(value)
            return Effect.succeed("encoded")
          }
        })
        const result = yield* Effect.provide(ToolRunner.run([call("c0", "day")], [day]), layer)

        assert.deepStrictEqual(seen, ["1970-01-01T00:00:00.000Z"])
        assert.deepStrictEqual(contents(result), ["encoded"])
        assert.deepInclude(result.outcomes[0]!.result, { _tag: "Ok", value: new Date(0) })
      }))

    it.effect("RUN-64 that cannot say a failure leaves a plain sentence", () =>
      Effect.gen(function*() {
        const odd = Tool.make("odd", { description: "Fails oddly", handler: () => Effect.fail(Symbol("odd")) })
        const result = yield* Effect.provide(
          ToolRunner.run([call("c0", "odd"), call("c1", "fails"), call("c2", "hi")], [odd, fails, hi]),
          refusing
        )

        assert.deepStrictEqual(contents(result), [
          "{\"error\":\"tool error (odd): handler_failed\"}",
          "{\"error\":\"handler_failed\"}",
          "hi"
        ])
      }))

    it.effect("RUN-65 that cannot say a crash leaves a plain sentence without what it said", () =>
      Effect.gen(function*() {
        const result = yield* Effect.provide(ToolRunner.run([call("c0", "boom")], [boom]), refusing)

        assert.deepStrictEqual(contents(result), ["{\"error\":\"tool error (boom): handler_raised\"}"])
      }))

    it.effect("RUN-66 that refuses fails the call with the reason", () =>
      Effect.gen(function*() {
        const result = yield* Effect.provide(ToolRunner.run([call("c0", "sum"), call("c1", "hi")], [sum, hi]), refusing)

        assert.deepStrictEqual(contents(result), [
          "{\"error\":\"tool error (sum): encoding_failed at $: encode error\"}",
          "hi"
        ])
        assert.deepInclude(result.outcomes[0]!.result, {
          _tag: "EncodingFailed",
          toolName: "sum",
          toolCallId: "c0",
          detail: "encode error"
        })
      }))

    it.effect.each(
      [
        ["throws", () => {
          throw new Error("secret")
        }, "the encoder failed"],
        ["dies", () => Effect.die(new Error("secret")), "the encoder failed"],
        ["gives no text", () => Effect.succeed(5 as never), "the encoder gave a number, not text"]
      ] as const
    )("RUN-66 that %s costs the call its answer, not the run", ([_how, refuse, detail]) =>
      Effect.gen(function*() {
        const result = yield* Effect.provide(
          ToolRunner.run([call("c0", "sum"), call("c1", "hi")], [sum, hi]),
          textOnly(refuse)
        )

        assert.deepStrictEqual(contents(result), [
          JSON.stringify({ error: `tool error (sum): encoding_failed at $: ${detail}` }),
          "hi"
        ])
        assert.strictEqual(result.halt, undefined)
      }))

    it.effect("shows crashes to the model when told to", () =>
      Effect.gen(function*() {
        const result = yield* Effect.provide(
          ToolRunner.run([call("c0", "boom")], [boom]),
          ToolResultEncoder.layerJson({ exposeDefects: true })
        )

        assert.match(contents(result)[0]!, /^\{"error":"tool error \(boom\): handler_raised","cause":"Error: secret/)
      }))
  })

  describe("a context", () => {
    const look = Tool.make("look", { description: "Shows its context", handler: (_params, { context }) => context })

    it.effect("RUN-60 reaches every handler as it is", () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const keep = Tool.make("keep", {
          description: "Keeps its context",
          handler: (_params, { context }) => {
            seen.push(context)
          }
        })
        const context = { user: "ada", db: new Map() }
        yield* ToolRunner.run([call("c0", "keep"), call("c1", "keep")], [keep], { context })

        assert.strictEqual(seen.length, 2)
        assert.strictEqual(seen[0], context)
        assert.strictEqual(seen[1], context)
      }))

    it.effect("RUN-61 is empty when none is given", () =>
      Effect.gen(function*() {
        const result = yield* ToolRunner.run([call("c0", "look")], [look])

        assert.deepStrictEqual(contents(result), ["{}"])
      }))
  })

  it.effect("leaves both as they were outside of the run", () =>
    Effect.gen(function*() {
      const layer = Layer.merge(
        answering("provided"),
        ToolResultEncoder.layer({ encode: () => Effect.succeed("encoded") })
      )
      const inside = yield* Effect.provide(ToolRunner.run([call("c0", "hi")], [hi]), layer)
      const outside = yield* ToolRunner.run([call("c0", "hi")], [hi])

      assert.deepStrictEqual(contents(inside), ["encoded"])
      assert.deepStrictEqual(contents(outside), ["hi"])
    }))
})
