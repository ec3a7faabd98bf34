import { Tool, ToolCall, ToolResult, ToolResultEncoder, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Fiber, Logger, Schema, TestClock } from "effect"

const description = "Does something"
const call = (args: unknown = {}) => ToolCall.make({ id: "c0", name: "x", arguments: args })

/** The two channels: what the model reads, and what the operator gets. */
const channels = <T extends Tool.Any>(tool: T, toolCall = call()) =>
  Effect.map(ToolRunner.run([toolCall], [tool]), ({ messages, outcomes }) => ({
    model: messages[0]?.content ?? "",
    operator: outcomes[0]?.result
  }))

const ofHandler = (handler: () => unknown) => channels(Tool.make("x", { description, handler }))

const model = (handler: () => unknown) => Effect.map(ofHandler(handler), (both) => both.model)

class CityNotFound extends Schema.TaggedError<CityNotFound>()("CityNotFound", { city: Schema.String }) {}

class Secret {
  readonly password = "hunter2"
}

const boom = new Error("hunter2", { cause: new Error("hunter2") })

const crashes: ReadonlyArray<readonly [how: string, handler: () => unknown]> = [
  ["a throw", () => {
    throw boom
  }],
  ["a throw of text", () => {
    throw "hunter2"
  }],
  ["a throw of data", () => {
    throw { password: "hunter2" }
  }],
  ["a rejection", () => Promise.reject(boom)],
  ["a defect", () => Effect.die(boom)],
  ["a throw later", () =>
    Effect.zipRight(
      Effect.yieldNow(),
      Effect.sync(() => {
        throw boom
      })
    )],
  ["several defects", () => Effect.failCause(Cause.parallel(Cause.die(boom), Cause.die("hunter2")))]
]

// Operators' log lines are their own channel; here they would only make noise.
const quiet = Effect.provide(Logger.remove(Logger.defaultLogger))

describe("What the model reads", () => {
  for (const [how, handler] of crashes) {
    it.effect(`of ${how} is the tool's name and the reason, while operators get the cause`, () =>
      quiet(Effect.gen(function*() {
        const { model, operator } = yield* ofHandler(handler)

        assert.strictEqual(model, "{\"error\":\"tool error (x): handler_raised\"}")
        assert(operator?._tag === "HandlerRaised" && operator.cause !== undefined)
        assert.match(Cause.pretty(operator.cause), /hunter2/)
      })))
  }

  it.effect("ENC-07 of a success is its value alone", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* model(() => ToolResult.ok({ a: 1 })), "{\"a\":1}")
    }))

  it.effect("ENC-09 of a failure that is text is the text", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* model(() => Effect.fail("not_found")), "{\"error\":\"not_found\"}")
    }))

  it.effect("ENC-10 of a failure that is plain data is the data", () =>
    Effect.gen(function*() {
      assert.strictEqual(
        yield* model(() => ToolResult.error({ code: 404, tried: ["a"] })),
        "{\"error\":{\"code\":404,\"tried\":[\"a\"]}}"
      )
    }))

  it.effect("of a failure with behaviour of its own is the reason alone", () =>
    Effect.gen(function*() {
      const texts = yield* Effect.forEach(
        [
          new Error("hunter2"),
          new Secret(),
          { nested: new Secret() },
          new CityNotFound({ city: "hunter2" }),
          5n,
          undefined
        ],
        (failure) => model(() => Effect.fail(failure))
      )

      assert.deepStrictEqual(new Set(texts), new Set(["{\"error\":\"tool error (x): handler_failed\"}"]))
    }))

  it.effect("of a declared failure is its schema's form", () =>
    Effect.gen(function*() {
      const tool = Tool.make("x", {
        description,
        failure: CityNotFound,
        handler: () => Effect.fail(new CityNotFound({ city: "Atlantis" }))
      })
      const { model } = yield* channels(tool)

      assert.deepStrictEqual(JSON.parse(model), { error: { _tag: "CityNotFound", city: "Atlantis" } })
    }))

  const Coded = Schema.Struct({ code: Schema.Number, trace: Schema.String })

  it.effect("of a declared failure leaves out what its schema leaves out", () =>
    Effect.gen(function*() {
      const Public = Schema.transform(Schema.String, Coded, {
        strict: true,
        decode: () => ({ code: 0, trace: "" }),
        encode: ({ code }) => `code ${code}`
      })
      const tool = Tool.make("x", {
        description,
        failure: Public,
        handler: () => Effect.fail({ code: 7, trace: "hunter2" })
      })

      assert.strictEqual((yield* channels(tool)).model, "{\"error\":\"code 7\"}")
    }))

  it.effect("of a declared failure goes through its schema also when that takes time", () =>
    Effect.gen(function*() {
      const Public = Schema.transformOrFail(Schema.String, Coded, {
        strict: true,
        decode: () => Effect.succeed({ code: 0, trace: "" }),
        encode: ({ code }) => Effect.zipRight(Effect.yieldNow(), Effect.succeed(`code ${code}`))
      })
      const tool = Tool.make("x", {
        description,
        failure: Public,
        handler: () => Effect.fail({ code: 7, trace: "hunter2" })
      })

      assert.strictEqual((yield* channels(tool)).model, "{\"error\":\"code 7\"}")
    }))

  for (
    const [how, encode] of [
      ["throws", (): Effect.Effect<string> => {
        throw new Error("hunter2")
      }],
      ["dies", () => Effect.die("hunter2")],
      ["dies later", () => Effect.zipRight(Effect.yieldNow(), Effect.die("hunter2"))],
      ["never answers", () => Effect.uninterruptible(Effect.never)]
    ] as const
  ) {
    it.effect(`of a declared failure is the reason alone when its schema ${how}`, () =>
      Effect.gen(function*() {
        const Private = Schema.transformOrFail(Schema.String, Coded, {
          strict: true,
          decode: () => Effect.succeed({ code: 0, trace: "" }),
          encode
        })
        const tool = Tool.make("x", {
          description,
          failure: Private,
          handler: () => Effect.fail({ code: 7, trace: "hunter2" })
        })
        const run = yield* Effect.fork(channels(tool))
        yield* TestClock.adjust("30 seconds")
        const { model, operator } = yield* Fiber.join(run)

        assert.strictEqual(model, "{\"error\":\"tool error (x): handler_failed\"}")
        assert(operator?._tag === "HandlerFailed")
        assert.deepStrictEqual(operator.failure, { code: 7, trace: "hunter2" })
      }))
  }

  it.effect("of a failure its schema does not declare is what it would be without one", () =>
    Effect.gen(function*() {
      const Later = Schema.transformOrFail(Schema.String, Coded, {
        strict: true,
        decode: () => Effect.succeed({ code: 0, trace: "" }),
        encode: () => Effect.zipRight(Effect.yieldNow(), Effect.succeed("coded"))
      })
      const texts = yield* Effect.forEach([Coded, Later], (failure) =>
        Effect.forEach(["offline", new Secret()], (reason) => {
          const tool = Tool.make("x", {
            description,
            failure,
            handler: () =>
              Effect.fail(reason as never)
          })
          return Effect.map(channels(tool), (both) => both.model)
        }))

      assert.deepStrictEqual(texts, [
        ["{\"error\":\"offline\"}", "{\"error\":\"tool error (x): handler_failed\"}"],
        ["{\"error\":\"offline\"}", "{\"error\":\"tool error (x): handler_failed\"}"]
      ])
    }))

  it.effect("of wrong arguments is every issue, with its place", () =>
    Effect.gen(function*() {
      const tool = Tool.make("x", {
        description,
        parameters: { city: Schema.String, days: Schema.Array(Schema.Number) },
        handler: () => "done"
      })
      const { model } = yield* channels(tool, call({ days: [1, "two"] }))

      assert.deepStrictEqual(JSON.parse(model), {
        error: "tool error (x): invalid_arguments",
        issues: [
          { path: ["city"], message: "is missing" },
          { path: ["days", 1], message: "Expected number, actual \"two\"" }
        ]
      })
    }))

  it.effect("of arguments that are no JSON is what is wrong with them", () =>
    Effect.gen(function*() {
      const tool = Tool.make("x", { description, handler: () => "done" })
      const { model } = yield* channels(tool, ToolCall.fromRaw({ id: "c0", name: "x", rawArguments: "{\"a\":" }))

      assert.match(model, /"error":"tool error \(x\): invalid_arguments"/)
      assert.match(model, /arguments are not valid JSON/)
    }))

  it.effect("of a value against the success schema is the place, not the value", () =>
    Effect.gen(function*() {
      const tool = Tool.make("x", {
        description,
        success: Schema.Struct({ name: Schema.String }),
        handler: () => ({ name: new Secret() as unknown as string })
      })

      assert.strictEqual(
        (yield* channels(tool)).model,
        "{\"error\":\"tool error (x): invalid_return: the value does not fit the success schema (see name)\"}"
      )
    }))

  for (
    const [when, wait] of [["at once", Effect.void], ["later", Effect.yieldNow()]] as const
  ) {
    it.effect(`exists also for a failure that throws when it is read, reported ${when}`, () =>
      quiet(Effect.gen(function*() {
        const unreadable = {
          get code(): number {
            throw new Error("hunter2")
          }
        }

        assert.strictEqual(
          yield* model(() => Effect.zipRight(wait, Effect.fail(unreadable))),
          "{\"error\":\"tool error (x): handler_failed\"}"
        )
      })))
  }
})

describe("exposeDefects", () => {
  const exposed = Effect.provide(ToolResultEncoder.layerJson({ exposeDefects: true }))

  it.effect("lets the model read what a crash said", () =>
    Effect.gen(function*() {
      const text = yield* exposed(model(() => Effect.die(new Error("the disk is full"))))

      const parsed: { readonly error: string; readonly cause: string } = JSON.parse(text)
      assert.strictEqual(parsed.error, "tool error (x): handler_raised")
      assert.match(parsed.cause, /the disk is full/)
    }).pipe(quiet))

  it.effect("is off unless switched on", () =>
    Effect.gen(function*() {
      const texts = yield* Effect.forEach(
        [ToolResultEncoder.layerJson(), ToolResultEncoder.layerJson({ exposeDefects: false })],
        (layer) => Effect.provide(model(() => Effect.die(boom)), layer)
      )

      assert.deepStrictEqual(texts, [
        "{\"error\":\"tool error (x): handler_raised\"}",
        "{\"error\":\"tool error (x): handler_raised\"}"
      ])
    }).pipe(quiet))

  it.effect("changes nothing of a success", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* exposed(model(() => ({ a: 1 }))), "{\"a\":1}")
    }))

  it.effect("copes with what cannot be printed", () =>
    Effect.gen(function*() {
      const texts = yield* exposed(
        Effect.forEach(
          [() => Effect.fail(5n), () => Effect.fail({ total: 5n }), () => Effect.die({ total: 5n })],
          model
        )
      )

      assert.deepStrictEqual(texts.map((text) => (JSON.parse(text) as { readonly error: string }).error), [
        "tool error (x): handler_failed",
        "tool error (x): handler_failed",
        "tool error (x): handler_raised"
      ])
    }).pipe(quiet))
})
