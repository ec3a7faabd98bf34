import { Tool, ToolCall, ToolContext, ToolExecutor, ValidationError } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Context, Duration, Effect, Either, Schedule, Schema } from "effect"

// Callers without types reach the constructors too.
const make = Tool.make as unknown as (name?: unknown, options?: unknown) => Tool.Any
const fromJsonSchema = Tool.fromJsonSchema as unknown as (name?: unknown, options?: unknown) => Tool.Any

const refusal = (construct: () => unknown): ValidationError.ValidationError => {
  const error = Either.match(Either.try({ try: construct, catch: (thrown) => thrown }), {
    onLeft: (thrown) => thrown,
    onRight: () => assert.fail("nothing was thrown")
  })
  assert.instanceOf(error, ValidationError.ValidationError)
  return error
}

const codes = (construct: () => unknown) =>
  refusal(construct).issues.map((issue) => `${issue.path.join(".")} ${issue.code}`)

const execute = <T extends Tool.Any>(tool: T, args: unknown) =>
  ToolExecutor.handlers.execute(
    tool,
    args,
    ToolContext.make({ toolCall: ToolCall.make({ id: "c0", name: tool.name, arguments: {} }) })
  )

const description = "Does something"

describe("Tool", () => {
  describe("make", () => {
    it("TOOL-01 fills in what was not given", () => {
      const tool = Tool.make("get_weather", { description, parameters: { city: Schema.String } })

      assert.strictEqual(tool.name, "get_weather")
      assert.strictEqual(tool.description, description)
      assert.strictEqual(tool.handler, undefined)
      assert.strictEqual(tool.manual, false)
      assert.strictEqual(tool.needsApproval, false)
      assert.strictEqual(tool.timeout, undefined)
      assert.strictEqual(tool.retry, undefined)
      assert.strictEqual(tool.replay, "never")
      assert.strictEqual(tool.exclusive, false)
      assert.strictEqual(tool.success, undefined)
      assert.strictEqual(tool.failure, undefined)
      assert.deepStrictEqual(tool.metadata, {})
    })

    it("keeps everything that was given", () => {
      const handler = ({ city }: { readonly city: string }) => city
      const needsApproval = () => true
      const retry = Schedule.recurs(2)
      const tool = Tool.make("get_weather", {
        description,
        parameters: { city: Schema.String },
        success: Schema.String,
        failure: Schema.Literal("unknown_city"),
        handler,
        manual: true,
        needsApproval,
        timeout: "5 seconds",
        retry,
        replay: "readonly",
        exclusive: true,
        metadata: { owner: "weather" }
      })

      assert.strictEqual(tool.handler, handler)
      assert.strictEqual(tool.manual, true)
      assert.strictEqual(tool.needsApproval, needsApproval)
      assert.deepStrictEqual(tool.timeout, Duration.seconds(5))
      assert.strictEqual(tool.retry, retry)
      assert.strictEqual(tool.replay, "readonly")
      assert.strictEqual(tool.exclusive, true)
      assert.strictEqual(tool.success, Schema.String)
      assert.deepStrictEqual(tool.metadata, { owner: "weather" })
    })

    it("TOOL-02 refuses a tool without a name", () => {
      const error = refusal(() => make(undefined, { description }))

      assert.strictEqual(error.reason, "invalid_tool")
      assert.deepStrictEqual(error.issues, [{
        path: ["name"],
        code: "invalid_format",
        message: "undefined is not 1 to 64 letters, digits, \"_\" or \"-\"; write \"get_weather\""
      }])
    })

    it("TOOL-02 refuses an empty name", () => {
      assert.deepStrictEqual(codes(() => make("", { description })), ["name empty"])
    })

    it("refuses a name no provider takes, and says which one to write", () => {
      assert.match(refusal(() => make("get weather!", { description })).message, /write "get_weather_"/)
      assert.deepStrictEqual(codes(() => make("a".repeat(65), { description })), ["name invalid_format"])
      assert.deepStrictEqual(codes(() => make("météo", { description })), ["name invalid_format"])
      assert.strictEqual(make("a".repeat(64), { description }).name, "a".repeat(64))
    })

    it("refuses a name that means something as a tool choice", () => {
      for (const name of ["auto", "none", "required"]) {
        assert.deepStrictEqual(codes(() => make(name, { description })), ["name reserved_tool_name"])
      }
    })

    it("TOOL-03 refuses a tool without a description", () => {
      assert.deepStrictEqual(codes(() => make("ping", {})), ["description not_a_string"])
    })

    it("TOOL-03 refuses a tool without options, in the same words", () => {
      assert.deepStrictEqual(codes(() => make("ping")), ["description not_a_string"])
    })

    it("TOOL-04 takes no parameters for an object without members", () => {
      assert.deepStrictEqual(Tool.make("ping", { description }).inputSchema, {
        type: "object",
        properties: {},
        required: [],
        additionalProperties: false
      })
    })

    it("TOOL-06 refuses null for manual", () => {
      const error = refusal(() => make("ping", { description, manual: null }))

      assert.deepStrictEqual(error.issues, [{
        path: ["manual"],
        code: "not_a_boolean",
        message: "write true or false, not null"
      }])
    })

    it("TOOL-07 refuses a string for manual", () => {
      assert.match(
        refusal(() => make("ping", { description, manual: "true" })).message,
        /\$\.manual: write true or false, not "true"/
      )
    })

    it("TOOL-08 refuses an option it does not know, and names those it knows", () => {
      const error = refusal(() => make("ping", { description, handlr: () => 1 }))

      assert.deepStrictEqual(error.issues.map(({ code, path }) => ({ code, path })), [
        { code: "unknown_option", path: ["handlr"] }
      ])
      assert.match(error.message, /handler/)
    })

    it("EXEC-16 refuses a handler with three parameters", () => {
      const error = refusal(() =>
        make("ping", { description, handler: (_a: unknown, _b: unknown, _c: unknown) => "pong" })
      )

      assert.deepStrictEqual(error.issues.map((issue) => issue.code), ["too_many_parameters"])
      assert.match(error.message, /\(params, context\), at most two parameters, not 3/)
    })

    it("EXEC-17 refuses a handler that is no function", () => {
      const error = refusal(() => make("ping", { description, handler: { call: "me" } }))

      assert.match(error.message, /\$\.handler: write \(params, context\) => …, not an object/)
    })

    it("tells every problem at once", () => {
      assert.deepStrictEqual(
        codes(() =>
          make("a b", {
            handler: 3,
            manual: 1,
            needsApproval: "yes",
            timeout: -1,
            retry: 3,
            replay: "always",
            exclusive: "",
            metadata: [],
            success: "string",
            failure: String
          })
        ),
        [
          "name invalid_format",
          "description not_a_string",
          "handler not_a_function",
          "manual not_a_boolean",
          "needsApproval invalid_type",
          "timeout must_be_positive",
          "retry not_a_schedule",
          "replay unknown",
          "exclusive invalid_type",
          "metadata not_a_map",
          "success not_a_schema",
          "failure not_a_schema"
        ]
      )
    })

    it("refuses a limit that cannot be kept", () => {
      for (const timeout of [0, -5, Number.NaN, "soon", Duration.zero]) {
        assert.deepStrictEqual(codes(() => make("ping", { description, timeout })), ["timeout must_be_positive"])
      }
    })

    it("takes an infinite limit", () => {
      assert.deepStrictEqual(make("ping", { description, timeout: Duration.infinity }).timeout, Duration.infinity)
    })

    it("refuses metadata that JSON would lose, with the place", () => {
      assert.match(
        refusal(() => make("ping", { description, metadata: { limits: [1, 2n] } })).message,
        /\$\.metadata: at \$\.limits\[1\] a bigint is not JSON/
      )
    })

    it("refuses parameters that are not schemas, in the same words", () => {
      assert.deepStrictEqual(codes(() => make("ping", { description, parameters: { city: "string" } })), [
        "parameters invalid_schema"
      ])
      assert.deepStrictEqual(codes(() => make("ping", { description, parameters: "city" })), [
        "parameters invalid_schema"
      ])
      assert.deepStrictEqual(codes(() => make("ping", { description, parameters: 5 })), ["parameters invalid_schema"])
    })

    it("refuses parameters that are no object", () => {
      assert.match(
        refusal(() => make("ping", { description, parameters: Schema.String })).message,
        /arguments are always an object; wrap the schema in one/
      )
    })

    it("refuses parameters that JSON cannot carry, with their place", () => {
      assert.match(
        refusal(() => make("ping", { description, parameters: { when: Schema.DateFromSelf } })).message,
        /\$\.parameters: .*"when"/
      )
    })

    it("cannot be changed afterwards", () => {
      assert.strictEqual(Object.isFrozen(Tool.make("ping", { description })), true)
    })
  })

  describe("fromJsonSchema", () => {
    it("TOOL-10 keeps a schema as it was written", () => {
      const schema = {
        type: "object",
        properties: { city: { type: "string", description: "Name of the city" }, "x-unit": { enum: ["C", "F"] } },
        required: ["city"]
      }

      assert.deepStrictEqual(Tool.fromJsonSchema("get_weather", { description, schema }).inputSchema, {
        type: "object",
        properties: { city: { type: "string", description: "Name of the city" }, "x-unit": { enum: ["C", "F"] } },
        required: ["city"]
      })
    })

    it("TOOL-04 refuses a tool without a schema", () => {
      assert.match(
        refusal(() => fromJsonSchema("ping", { description })).message,
        /\$\.schema: write a JSON Schema object such as \{ type: "object", properties: \{\} \}, not undefined/
      )
    })

    it("TOOL-08 knows no Effect schemas", () => {
      assert.deepStrictEqual(
        codes(() => fromJsonSchema("ping", { description, schema: { type: "object" }, parameters: {} })),
        ["parameters unknown_option"]
      )
    })

    it("refuses what is not an object at its root", () => {
      assert.deepStrictEqual(codes(() => fromJsonSchema("ping", { description, schema: { type: "string" } })), [
        "schema invalid_schema"
      ])
    })
  })

  describe("isTool", () => {
    it("knows the tools made here from look-alikes", () => {
      const tool = Tool.make("ping", { description })

      assert.strictEqual(Tool.isTool(tool), true)
      assert.strictEqual(Tool.isTool(Tool.fromJsonSchema("ping", { description, schema: { type: "object" } })), true)
      assert.strictEqual(Tool.isTool({ ...tool }), false)
      assert.strictEqual(Tool.isTool(null), false)
      assert.strictEqual(Tool.isTool("ping"), false)
    })
  })

  describe("parameters", () => {
    const plan = Tool.make("plan", {
      description,
      parameters: {
        days: Schema.NumberFromString,
        note: Schema.String.pipe(Schema.optionalWith({ exact: true, default: () => "none" }))
      },
      handler: ({ days, note }) => `${days + 1} ${note}`
    })

    it.effect("reach the handler decoded, with defaults filled in", () =>
      Effect.gen(function*() {
        const outcome = yield* execute(plan, { days: "2" })

        assert.deepStrictEqual({ ...outcome }, { _tag: "Ok", value: "3 none" })
      }))

    it.effect("are reported issue by issue when they do not fit", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(execute(plan, { days: 2, note: 3 }))

        assert(error._tag === "InvalidArguments")
        assert.deepStrictEqual(error.issues, [
          { path: ["days"], message: "Expected string, actual 2" },
          { path: ["note"], message: "Expected string, actual 3" }
        ])
        assert.strictEqual(error.toolName, "plan")
        assert.strictEqual(error.toolCallId, "c0")
      }))

    it.effect("are an object, whatever the schema says", () =>
      Effect.gen(function*() {
        const issues = yield* Effect.forEach(
          [undefined, null, "text", 5, ["a"]],
          (args) =>
            Effect.map(Effect.flip(execute(plan, args)), (error) => error._tag === "InvalidArguments" && error.issues)
        )

        assert.deepStrictEqual(
          issues,
          ["undefined", "null", "a string", "a number", "an array"].map((got) => [
            { path: [], message: `arguments must be a JSON object, got ${got}` }
          ])
        )
      }))

    it.effect("may need a service to be decoded", () =>
      Effect.gen(function*() {
        class Users extends Context.Tag("Users")<Users, { readonly known: ReadonlyArray<string> }>() {}
        const User = Schema.String.pipe(
          Schema.filterEffect((name) => Effect.map(Users, ({ known }) => known.includes(name)))
        )
        const greet = Tool.make("greet", {
          description,
          parameters: { user: User },
          handler: ({ user }) => `hello ${user}`
        })
        const known = Effect.provideService(Users, { known: ["ada"] })

        const outcome = yield* known(execute(greet, { user: "ada" }))
        const error = yield* known(Effect.flip(execute(greet, { user: "bob" })))

        assert.deepStrictEqual({ ...outcome }, { _tag: "Ok", value: "hello ada" })
        assert.strictEqual(error._tag, "InvalidArguments")
      }))

    it.effect("keep keys that mean something to JavaScript as plain keys", () =>
      Effect.gen(function*() {
        const echo = Tool.fromJsonSchema("echo", { description, schema: { type: "object" }, handler: (args) => args })
        const args: unknown = JSON.parse("{\"__proto__\":{\"admin\":true},\"constructor\":1}")

        const outcome = yield* execute(echo, args)

        assert(outcome._tag === "Ok")
        assert.strictEqual(JSON.stringify(outcome.value), "{\"__proto__\":{\"admin\":true},\"constructor\":1}")
        assert.strictEqual(({} as { admin?: boolean }).admin, undefined)
      }))
  })

  describe("exclusive", () => {
    it("turns a parameter's name into a key of its value", () => {
      const tool = Tool.make("write", { description, parameters: { path: Schema.String }, exclusive: "path" })

      assert(typeof tool.exclusive === "function")
      assert.strictEqual(tool.exclusive({ path: "a" }), tool.exclusive({ path: "a" }))
      assert.notStrictEqual(tool.exclusive({ path: "a" }), tool.exclusive({ path: "b" }))
    })
  })
})
