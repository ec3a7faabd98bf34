import { Tool, ToolCall, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"

const call = (id: string, name: string, args: unknown = {}) => ToolCall.make({ id, name, arguments: args })

const contents = (result: ToolRunner.RunResult) => result.messages.map((message) => message.content)

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

const invalid = (...sentences: ReadonlyArray<string>) =>
  [`validation failed: invalid_options (${sentences.length} error${sentences.length === 1 ? "" : "s"})`, ...sentences]
    .join("\n- ")

describe("ToolRunner, given bad input", () => {
  describe("an unknown tool", () => {
    it.effect("RUN-06 fails and says that there are no tools", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(ToolRunner.run([call("c0", "missing")], []))

        assert.deepInclude(error, { _tag: "UnknownTool", toolName: "missing", toolCallId: "c0", available: [] })
        assert.strictEqual(
          error.message,
          "no tool is named \"missing\"; there are none. " +
            "Add it to the tools, or let the model correct itself with unknownTool: \"feedback\""
        )
      }))

    it.effect("RUN-07 fails before a known sibling runs", () =>
      Effect.gen(function*() {
        const { ran, tool } = recorder()
        const error = yield* Effect.flip(
          ToolRunner.run([call("c0", "record"), call("c1", "missing"), call("c2", "gone")], [tool, hi])
        )

        assert.deepInclude(error, { _tag: "UnknownTool", toolName: "missing", toolCallId: "c1" })
        assert.match(error.message, /^no tool is named "missing"; there are record, hi\. /)
        assert.deepStrictEqual(ran, [])
      }))

    it.effect("RUN-07 is told to the model instead, when so configured, and siblings run", () =>
      Effect.gen(function*() {
        const { ran, tool } = recorder()
        const result = yield* ToolRunner.run([call("c0", "missing"), call("c1", "record")], [tool, hi], {
          unknownTool: "feedback"
        })

        assert.deepStrictEqual(contents(result), [
          JSON.stringify({
            error: "tool error (missing): not_found: there is no such tool; the tools are \"record\", \"hi\""
          }),
          "ran"
        ])
        assert.deepInclude(result.outcomes[0]!.result, { _tag: "NotFound", toolName: "missing", toolCallId: "c0" })
        assert.deepStrictEqual(ran, ["c1"])
      }))

    it.effect("is also one that is named like a member of every object", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(ToolRunner.run([call("c0", "toString")], [hi]))

        assert.deepInclude(error, { _tag: "UnknownTool", toolName: "toString" })
      }))

    it.effect("keeps a newline in its name from breaking the sentence in two", () =>
      Effect.gen(function*() {
        const failed = yield* Effect.flip(ToolRunner.run([call("c0", "a\nb")], [hi]))
        const told = yield* ToolRunner.run([call("c0", "a\nb")], [hi], { unknownTool: "feedback" })

        assert.match(failed.message, /^no tool is named "a\\nb"; there are hi\. [^\n]*$/)
        assert.deepStrictEqual(contents(told), [
          JSON.stringify({ error: "tool error (a\nb): not_found: there is no such tool; the tools are \"hi\"" })
        ])
      }))
  })

  describe("tools", () => {
    it.effect("refuses two with the same name", () =>
      Effect.gen(function*() {
        const { ran, tool } = recorder()
        const error = yield* Effect.flip(ToolRunner.run([call("c0", "record")], [tool, hi, recorder().tool]))

        assert.strictEqual(error.message, invalid("$.tools[2]: two tools are named \"record\"; rename one"))
        assert.deepStrictEqual(ran, [])
      }))

    it.effect("refuses what only looks like one", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(ToolRunner.run([], [{ ...hi }, "hi" as never, null as never]))

        assert.strictEqual(
          error.message,
          invalid(
            "$.tools[0]: write a tool made by Tool.make, not an object",
            "$.tools[1]: write a tool made by Tool.make, not a string",
            "$.tools[2]: write a tool made by Tool.make, not null"
          )
        )
      }))

    it.effect.each([["undefined", undefined], ["an object", { hi }]] as const)(
      "are refused when they are %s instead of a list",
      ([described, tools]) =>
        Effect.gen(function*() {
          const error = yield* Effect.flip(ToolRunner.run([call("c0", "hi")], tools as never))

          assert.strictEqual(error._tag, "ValidationError")
          assert.match(error.message, new RegExp(`\\$\\.tools: .* not ${described}$`))
        })
    )

    it("are not made with a newline in the name", () => {
      assert.throws(
        () => Tool.make("get\nweather", { description: "Bad name" }),
        "$.name: \"get\\nweather\" is not 1 to 64 letters, digits, \"_\" or \"-\"; write \"get_weather\""
      )
    })

    it.effect("that have no handler say so to the model and what to do about it to the programmer", () =>
      Effect.gen(function*() {
        const bare = Tool.make("bare", { description: "Declared only" })
        const { ran, tool } = recorder()
        const result = yield* ToolRunner.run([call("c0", "bare"), call("c1", "record")], [bare, tool])

        assert.deepStrictEqual(contents(result), [
          JSON.stringify({ error: "tool error (bare): not_found: the tool has no handler" }),
          "ran"
        ])
        assert.deepInclude(result.outcomes[0]!.result, {
          _tag: "NotFound",
          reason: "not_found",
          toolCallId: "c0",
          message: "tool error (bare): not_found: the tool has no handler; give it one, or provide " +
            "ToolExecutor.layerHandlers"
        })
        assert.deepStrictEqual(ran, ["c1"])
      }))
  })

  describe("calls", () => {
    it.effect("refuses two with the same id", () =>
      Effect.gen(function*() {
        const { ran, tool } = recorder()
        const calls = [call("c0", "record"), call("c1", "record"), call("c0", "record")]
        const error = yield* Effect.flip(ToolRunner.run(calls, [tool]))

        assert.strictEqual(
          error.message,
          invalid("$.calls[2].id: two calls have the id \"c0\"; each answer needs its own")
        )
        assert.deepStrictEqual(ran, [])
      }))

    it.effect("refuses one without an id", () =>
      Effect.gen(function*() {
        const { ran, tool } = recorder()
        const calls = [call("c0", "record"), { ...call("c1", "record"), id: "" }, null as never]
        const error = yield* Effect.flip(ToolRunner.run(calls, [tool]))

        assert.strictEqual(
          error.message,
          invalid(
            "$.calls[1].id: a call needs an id; write ToolCall.make({ id, name, arguments })",
            "$.calls[2].name: a call names its tool; write ToolCall.make({ id, name, arguments })",
            "$.calls[2].id: a call needs an id; write ToolCall.make({ id, name, arguments })"
          )
        )
        assert.deepStrictEqual(ran, [])
      }))

    it.effect.each(["fail", "feedback"] as const)(
      "refuses one without a name (unknownTool: %s)",
      (unknownTool) =>
        Effect.gen(function*() {
          const { ran, tool } = recorder()
          const calls = [call("c0", "record"), { id: "c1", arguments: {} } as never]
          const error = yield* Effect.flip(ToolRunner.run(calls, [tool], { unknownTool }))

          assert.strictEqual(error._tag, "ValidationError")
          assert.match(error.message, /\$\.calls\[1\]\.name: /)
          assert.deepStrictEqual(ran, [])
        })
    )

    it.effect.each([["undefined", undefined], ["an object", call("c0", "hi")]] as const)(
      "are refused when they are %s instead of a list",
      ([described, calls]) =>
        Effect.gen(function*() {
          const error = yield* Effect.flip(ToolRunner.run(calls as never, [hi]))

          assert.strictEqual(error._tag, "ValidationError")
          assert.match(error.message, new RegExp(`\\$\\.calls: .* not ${described}$`))
        })
    )
  })

  describe("arguments", () => {
    it.effect.each(
      [
        [[1, 2], "an array"],
        ["text", "a string"],
        [null, "null"],
        [3, "a number"]
      ] as const
    )("that are %j never reach the handler", ([args, described]) =>
      Effect.gen(function*() {
        const { ran, tool } = recorder()
        const result = yield* ToolRunner.run([call("c0", "record", args), call("c1", "hi")], [tool, hi])

        assert.deepStrictEqual(contents(result), [
          JSON.stringify({
            error: "tool error (record): invalid_arguments",
            issues: [{ path: [], message: `arguments must be a JSON object, got ${described}` }]
          }),
          "hi"
        ])
        assert.deepStrictEqual(ran, [])
      }))

    it.effect("that are not JSON never reach the handler", () =>
      Effect.gen(function*() {
        const { ran, tool } = recorder()
        const broken = ToolCall.fromRaw({ id: "c0", name: "record", rawArguments: "{\"city\":" })
        const result = yield* ToolRunner.run([broken, call("c1", "hi")], [tool, hi])

        assert.match(contents(result)[0]!, /"message":"arguments are not valid JSON: [^"]*JSON[^"]*"/)
        assert.deepInclude(result.outcomes[0]!.result, { _tag: "InvalidArguments", toolCallId: "c0" })
        assert.strictEqual(contents(result)[1], "hi")
        assert.deepStrictEqual(ran, [])
      }))

    it.effect("that do not fit give the model every issue with its place", () =>
      Effect.gen(function*() {
        const weather = Tool.make("weather", {
          description: "Knows the weather",
          parameters: { city: Schema.String, days: Schema.Array(Schema.Number) },
          handler: () => "sunny"
        })
        const result = yield* ToolRunner.run([call("c0", "weather", { city: 7, days: [1, "two"] })], [weather])

        assert.deepStrictEqual(contents(result), [
          JSON.stringify({
            error: "tool error (weather): invalid_arguments",
            issues: [
              { path: ["city"], message: "Expected string, actual 7" },
              { path: ["days", 1], message: "Expected number, actual \"two\"" }
            ]
          })
        ])
      }))

    it.effect("of 10 MB are refused in words, not repeated", () =>
      Effect.gen(function*() {
        const { ran, tool } = recorder()
        const long = "a".repeat(10 * 1024 * 1024)
        const calls = [
          call("c0", "record", { long }),
          ToolCall.fromRaw({ id: "c1", name: "record", rawArguments: `{"long":"${long}` }),
          call("c2", "hi")
        ]
        const result = yield* ToolRunner.run(calls, [tool, hi])

        const refusal = JSON.stringify({
          error: "tool error (record): invalid_arguments",
          issues: [{
            path: [],
            message: "arguments are longer than 1048576 characters or nested too deep; send less at a time"
          }]
        })
        assert.deepStrictEqual(contents(result), [refusal, refusal, "hi"])
        assert.deepStrictEqual(ran, [])
      }))

    it.effect("may be as long as the caller allows", () =>
      Effect.gen(function*() {
        const { ran, tool } = recorder()
        const calls = [call("c0", "record", { a: "x".repeat(100) }), call("c1", "record", { a: "x".repeat(10) })]
        const result = yield* ToolRunner.run(calls, [tool], { maxArgumentsLength: 50 })

        assert.deepStrictEqual(contents(result), [
          JSON.stringify({
            error: "tool error (record): invalid_arguments",
            issues: [{
              path: [],
              message: "arguments are longer than 50 characters or nested too deep; send less at a time"
            }]
          }),
          "ran"
        ])
        assert.deepStrictEqual(ran, ["c1"])
      }))

    it.effect.each(["text", "data"] as const)(
      "nested without end, as %s, cost one call its answer, not the run",
      (form) =>
        Effect.gen(function*() {
          const depth = 100_000
          const { ran, tool } = recorder()
          const { rawArguments, ...data } = ToolCall.fromRaw({
            id: "c0",
            name: "record",
            rawArguments: `{"deep":${"[".repeat(depth)}${"]".repeat(depth)}}`
          })
          const deep = form === "data" ? data : { ...data, rawArguments: rawArguments! }
          const result = yield* ToolRunner.run([deep, call("c1", "hi")], [tool, hi])

          assert.strictEqual(result.outcomes[0]!.result._tag, "InvalidArguments")
          assert.strictEqual(contents(result)[1], "hi")
          assert.deepStrictEqual(ran, [])
        })
    )
  })
})
