import { Tool, ToolCall, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"

const call = (id: string, name: string) => ToolCall.make({ id, name, arguments: {} })

const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })

/** A tool that keeps the ids of the calls that reached it. */
const recorder = () => {
  const ran: Array<string> = []
  const tool = Tool.make("record", {
    description: "Keeps its calls",
    handler: (_params, { toolCall }) => {
      ran.push(toolCall.id)
      return "ran"
    }
  })
  return { ran, tool }
}

/** Runs one call of a recorder under options that the types would refuse. */
const refused = (options: { readonly [option: string]: unknown }) => {
  const { ran, tool } = recorder()
  return Effect.map(
    Effect.flip(ToolRunner.run([call("c0", "record")], [tool], options as ToolRunner.Options)),
    (error) => ({ message: error.message, ran, tag: error._tag })
  )
}

const invalid = (...sentences: ReadonlyArray<string>) =>
  [`validation failed: invalid_options (${sentences.length} error${sentences.length === 1 ? "" : "s"})`, ...sentences]
    .join("\n- ")

describe("ToolRunner, given bad options", () => {
  it.effect.each(
    [
      [0, "0"],
      [-1, "-1"],
      [1.5, "1.5"],
      [Number.NaN, "NaN"],
      [Infinity, "Infinity"],
      ["many", "\"many\""],
      [null, "null"]
    ] as const
  )("refuses the concurrency %s", ([concurrency, shown]) =>
    Effect.gen(function*() {
      const { message, ran, tag } = yield* refused({ concurrency })

      assert.strictEqual(tag, "ValidationError")
      assert.strictEqual(
        message,
        invalid(`$.concurrency: write a positive whole number or "unbounded", not ${shown}`)
      )
      assert.deepStrictEqual(ran, [])
    }))

  it.effect.each(
    [
      [-5, "-5"],
      [0, "0"],
      [Number.NaN, "NaN"],
      ["-5 seconds", "\"-5 seconds\""],
      ["soon", "\"soon\""],
      [null, "null"]
    ] as const
  )("refuses the time-out %s", ([toolTimeout, shown]) =>
    Effect.gen(function*() {
      const { message, ran } = yield* refused({ toolTimeout })

      assert.strictEqual(
        message,
        invalid(`$.toolTimeout: write a positive duration such as "5 seconds", not ${shown}`)
      )
      assert.deepStrictEqual(ran, [])
    }))

  it("refuses a negative time-out of a tool when it is made", () => {
    assert.throws(
      () => Tool.make("slow", { description: "Too fast", timeout: -5 }),
      "$.timeout: write a positive duration such as \"5 seconds\", not -5"
    )
  })

  it.effect.each(
    [
      ["stop", "\"stop\""],
      [true, "true"],
      [null, "null"],
      [{ _tag: "Halt" }, "an object"]
    ] as const
  )("RUN-48 refuses a policy that is not one: %j", ([onToolError, shown]) =>
    Effect.gen(function*() {
      const { message, ran, tag } = yield* refused({ onToolError })

      assert.strictEqual(tag, "ValidationError")
      assert.strictEqual(
        message,
        invalid(
          "$.onToolError: write \"continue\", \"halt\" or a function (call, error) => decision of at most 2 " +
            `parameters, not ${shown}`
        )
      )
      assert.deepStrictEqual(ran, [])
    }))

  it.effect("RUN-49 takes a policy function that leaves out its second parameter", () =>
    Effect.gen(function*() {
      const fails = Tool.make("fails", { description: "Fails", handler: () => Effect.fail("no") })
      const result = yield* ToolRunner.run([call("c0", "fails")], [fails], { onToolError: (_call) => "halt" })

      assert.strictEqual(result.halt?.reason, "tool_error")
    }))

  it.effect("RUN-50 refuses a policy function of three parameters and names the two", () =>
    Effect.gen(function*() {
      const { message, ran } = yield* refused({ onToolError: (_a: unknown, _b: unknown, _c: unknown) => "halt" })

      assert.strictEqual(
        message,
        invalid(
          "$.onToolError: write \"continue\", \"halt\" or a function (call, error) => decision of at most 2 " +
            "parameters, not a function with 3 parameters"
        )
      )
      assert.deepStrictEqual(ran, [])
    }))

  it.effect("RUN-53 are checked even when there is nothing to run", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(ToolRunner.run([], [], { onToolError: "stop" as never }))

      assert.deepInclude(error, { _tag: "ValidationError", reason: "invalid_options" })
    }))

  it.effect.each(
    [
      ["kill", "\"kill\""],
      [null, "null"],
      [3, "3"],
      [[], "an array"]
    ] as const
  )("refuses siblings that are not one of the three: %j", ([siblings, shown]) =>
    Effect.gen(function*() {
      const { message, ran } = yield* refused({ siblings })

      assert.strictEqual(
        message,
        invalid(`$.siblings: write "drain", "interrupt" or { drainFor: "2 seconds" }, not ${shown}`)
      )
      assert.deepStrictEqual(ran, [])
    }))

  it.effect.each(
    [
      [-1, "-1"],
      [0, "0"],
      ["soon", "\"soon\""]
    ] as const
  )("names the limit that siblings cannot be drained for: %j", ([drainFor, shown]) =>
    Effect.gen(function*() {
      const { message, ran } = yield* refused({ siblings: { drainFor } })

      assert.match(message, /\$\.siblings/)
      assert.include(message, "\"2 seconds\"")
      assert.match(message, new RegExp(`\\bnot\\b.*${shown}`))
      assert.deepStrictEqual(ran, [])
    }))

  it.effect("refuses another answer to unknown tools", () =>
    Effect.gen(function*() {
      const { message, ran } = yield* refused({ unknownTool: "ignore" })

      assert.strictEqual(message, invalid("$.unknownTool: write \"fail\" or \"feedback\", not \"ignore\""))
      assert.deepStrictEqual(ran, [])
    }))

  it.effect.each(
    [
      ["ctx", "a string"],
      [null, "null"],
      [[1], "an array"]
    ] as const
  )("RUN-62 refuses a context that is not an object: %j", ([context, shown]) =>
    Effect.gen(function*() {
      const { message, ran } = yield* refused({ context })

      assert.strictEqual(message, invalid(`$.context: write an object, not ${shown}`))
      assert.deepStrictEqual(ran, [])
    }))

  it.effect.each([0, 1.5, -1])(
    "refuses arguments of at most %s characters",
    (maxArgumentsLength) =>
      Effect.gen(function*() {
        const { message, ran } = yield* refused({ maxArgumentsLength })

        assert.strictEqual(
          message,
          invalid(`$.maxArgumentsLength: write a positive whole number, not ${maxArgumentsLength}`)
        )
        assert.deepStrictEqual(ran, [])
      })
  )

  it.effect("refuses options that are null", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(ToolRunner.run([], [], null as never))

      assert.strictEqual(error._tag, "ValidationError")
    }))

  it.effect("lists every problem, not just the first", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(
        ToolRunner.run([call("c0", "hi"), call("c0", "hi")], [hi, hi], { concurrency: 0, toolTimeout: -1 })
      )

      assert.strictEqual(
        error.message,
        invalid(
          "$.tools[1]: two tools are named \"hi\"; rename one",
          "$.calls[1].id: two calls have the id \"c0\"; each answer needs its own",
          "$.toolTimeout: write a positive duration such as \"5 seconds\", not -1",
          "$.concurrency: write a positive whole number or \"unbounded\", not 0"
        )
      )
    }))

  it.effect("RSTR-12 fails a stream before its first event", () =>
    Effect.gen(function*() {
      const { ran, tool } = recorder()
      const events: Array<string> = []
      const error = yield* ToolRunner.stream([call("c0", "record")], [tool], { onToolError: "stop" as never }).pipe(
        Stream.runForEach((event) => Effect.sync(() => events.push(event._tag))),
        Effect.flip
      )

      assert.deepInclude(error, { _tag: "ValidationError", reason: "invalid_options" })
      assert.deepStrictEqual(events, [])
      assert.deepStrictEqual(ran, [])
    }))
})
