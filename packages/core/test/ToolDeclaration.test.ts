import { Tool, ToolCall, ToolRunner, ValidationError } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Duration, Effect, Either, FastCheck, Schedule, Schema } from "effect"

const getWeather = Tool.make("get_weather", {
  description: "Current weather for a city",
  parameters: { city: Schema.String.annotations({ description: "Name of the city" }) },
  manual: true,
  needsApproval: true,
  timeout: "5 seconds",
  replay: "readonly",
  exclusive: true,
  metadata: { owner: { team: "weather" } },
  handler: ({ city }) => `sunny in ${city}`
})

const declared: Tool.Declaration = {
  name: "get_weather",
  description: "Current weather for a city",
  inputSchema: {
    type: "object",
    required: ["city"],
    properties: { city: { type: "string", description: "Name of the city" } },
    additionalProperties: false
  },
  manual: true,
  needsApproval: true,
  timeoutMillis: 5000,
  replay: "readonly",
  exclusive: true,
  metadata: { owner: { team: "weather" } }
}

const throughJson = (value: unknown): Tool.Declaration => JSON.parse(JSON.stringify(value))

const bare = { name: "ping", description: "Answers", inputSchema: { type: "object" } }

const decode = Schema.decodeUnknown(Tool.Declaration)

describe("Tool.Declaration", () => {
  it("tells all of a tool but its handler", () => {
    assert.deepStrictEqual(Tool.declaration(getWeather), declared)
  })

  it("leaves out a limit that was not set", () => {
    const ping = Tool.make("ping", { description: "Answers" })

    assert.strictEqual("timeoutMillis" in Tool.declaration(ping), false)
  })

  it("writes an infinite limit as the largest there is", () => {
    const patient = Tool.make("patient", { description: "Waits", timeout: Duration.infinity })

    assert.strictEqual(throughJson(Tool.declaration(patient)).timeoutMillis, Number.MAX_SAFE_INTEGER)
  })

  it("tells what only exists as code cautiously", () => {
    const write = Tool.make("write", {
      description: "Writes a file",
      parameters: { path: Schema.String },
      needsApproval: ({ path }) => path === "/etc/passwd",
      exclusive: "path",
      retry: Schedule.recurs(1)
    })

    assert.deepStrictEqual(Tool.declaration(write), {
      name: "write",
      description: "Writes a file",
      inputSchema: write.inputSchema,
      manual: false,
      needsApproval: true,
      replay: "never",
      exclusive: true,
      metadata: {}
    })
  })

  it.effect("goes to JSON and back through its schema", () =>
    Effect.gen(function*() {
      const encoded = yield* Schema.encode(Tool.Declaration)(Tool.declaration(getWeather))
      const decoded = yield* decode(throughJson(encoded))

      assert.deepStrictEqual(decoded, declared)
    }))

  it.effect("fills in what an older writer left out", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* decode(bare), {
        ...bare,
        manual: false,
        needsApproval: false,
        replay: "never",
        exclusive: false,
        metadata: {}
      })
    }))

  it.effect("comes back the same, whatever is declared", () =>
    Effect.gen(function*() {
      const samples = FastCheck.sample(Arbitrary.make(Tool.Declaration), { numRuns: 100, seed: 1 })
      const encode = Schema.encode(Tool.Declaration)

      const again = yield* Effect.forEach(samples, (sample) =>
        Effect.flatMap(encode(sample), (x) => decode(throughJson(x))))

      assert.deepStrictEqual(again, samples)
    }))
})

describe("Tool.attach", () => {
  it("gives a tool with the same declaration, whatever was declared", () => {
    const samples = FastCheck.sample(
      FastCheck.record({
        name: FastCheck.stringMatching(/^[a-z]{5,12}$/),
        description: FastCheck.string(),
        manual: FastCheck.boolean(),
        needsApproval: FastCheck.boolean(),
        timeout: FastCheck.option(FastCheck.integer({ min: 1, max: 1e9 }), { nil: undefined }),
        replay: FastCheck.constantFrom("never" as const, "idempotent" as const, "readonly" as const),
        exclusive: FastCheck.boolean(),
        metadata: FastCheck.dictionary(FastCheck.string(), FastCheck.string(), { noNullPrototype: true })
      }),
      { numRuns: 100, seed: 1 }
    )
    const tools = samples.map(({ name, ...options }) =>
      Tool.make(name, { ...options, parameters: { n: Schema.Int, more: Schema.optional(Schema.String) } })
    )

    const again = tools.map((tool) => Tool.attach(throughJson(Tool.declaration(tool)), () => "done"))

    assert.deepStrictEqual(again.map(Tool.declaration), tools.map(Tool.declaration))
  })

  it.effect("makes a stored tool runnable again", () =>
    Effect.gen(function*() {
      const stored = throughJson({ ...declared, manual: false, needsApproval: false })
      const tool = Tool.attach(stored, ({ city }, context) =>
        Effect.succeed(`${String(city)} for ${context.toolCall.id}`))

      const { messages } = yield* ToolRunner.run(
        [ToolCall.make({ id: "c0", name: "get_weather", arguments: { city: "Oslo" } })],
        [tool]
      )

      assert.deepStrictEqual(
        messages.map((message) =>
          message.content
        ),
        ["Oslo for c0"]
      )
    }))

  it.effect("still checks the arguments before the handler sees them", () =>
    Effect.gen(function*() {
      let called = 0
      const tool = Tool.attach(throughJson({ ...declared, manual: false, needsApproval: false }), () => ++called)

      const { outcomes } = yield* ToolRunner.run(
        [ToolCall.make({ id: "c0", name: "get_weather", arguments: { city: 5, more: true } })],
        [tool]
      )

      const result = outcomes[0]?.result
      assert(result?._tag === "InvalidArguments")
      assert.deepStrictEqual(result.issues, [
        { path: ["city"], message: "Instance type \"number\" is invalid. Expected \"string\"." },
        { path: ["more"], message: "is not a known property" }
      ])
      assert.strictEqual(called, 0)
    }))

  it("keeps the limit", () => {
    assert.deepStrictEqual(Tool.attach(throughJson(declared), () => "done").timeout, Duration.seconds(5))
  })

  it("fills in what an older writer left out", () => {
    const tool = Tool.attach(throughJson(bare), () => "pong")

    assert.strictEqual(tool.manual, false)
    assert.strictEqual(tool.timeout, undefined)
    assert.strictEqual(tool.replay, "never")
  })

  it("refuses a declaration that is none", () => {
    assert.throws(() => Tool.attach(throughJson(null), () => 1), ValidationError.ValidationError)
    assert.throws(() => Tool.attach(throughJson({ ...bare, name: "a b" }), () => 1), /write "a_b"/)
    assert.throws(
      () => Tool.attach(throughJson({ ...bare, inputSchema: { type: "text" } }), () => 1),
      /"text" is no type/
    )
  })

  it("refuses a handler with three parameters", () => {
    const handler = ((_a: unknown, _b: unknown, _c: unknown) => 1) as () => number

    assert.throws(() => Tool.attach(throughJson(bare), handler), /at most two parameters, not 3/)
  })
})

describe("Tool.validate", () => {
  it("accepts a declaration and fills it in", () => {
    assert.deepStrictEqual(Either.getOrThrow(Tool.validate(throughJson(declared))), declared)
  })

  it("reports every problem of a value of unknown origin", () => {
    const error = Either.getOrThrow(Either.flip(Tool.validate({
      name: "",
      inputSchema: [],
      manual: "no",
      needsApproval: () => true,
      timeoutMillis: 0,
      replay: "always",
      exclusive: "path",
      metadata: null
    })))

    assert.strictEqual(error.reason, "invalid_tool")
    assert.deepStrictEqual(error.issues.map((issue) => `${issue.path.join(".")} ${issue.code}`), [
      "name empty",
      "description not_a_string",
      "inputSchema not_a_map",
      "manual not_a_boolean",
      "needsApproval not_a_boolean",
      "exclusive not_a_boolean",
      "timeoutMillis must_be_positive",
      "replay unknown",
      "metadata not_a_map"
    ])
  })

  it("never throws, whatever it is given", () => {
    const odd = [
      undefined,
      null,
      5,
      "x",
      [],
      () => 1,
      { ...bare, timeoutMillis: "5 seconds" },
      { ...bare, inputSchema: { default: 1n } },
      { ...bare, metadata: { when: new Map() } }
    ]

    assert.deepStrictEqual(odd.map((input) => Either.isLeft(Tool.validate(input))), odd.map(() => true))
  })
})
