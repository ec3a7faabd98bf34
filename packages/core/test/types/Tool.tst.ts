import { Tool, ToolContext, ToolResult } from "@allm/core"
import { Context, Effect, Schema } from "effect"
import { describe, expect, test } from "tstyche"

class Weather
  extends Context.Tag("Weather")<Weather, { readonly of: (city: string) => Effect.Effect<string, "offline"> }>()
{}
class Users extends Context.Tag("Users")<Users, { readonly isAdmin: Effect.Effect<boolean> }>() {}

class CityNotFound extends Schema.TaggedError<CityNotFound>()("CityNotFound", { city: Schema.String }) {}

const description = "Does something"
const lookup = (city: string) => Effect.flatMap(Weather, (weather) => weather.of(city))

describe("parameters", () => {
  test("are inferred into the handler from struct fields", () => {
    const tool = Tool.make("x", {
      description,
      parameters: {
        city: Schema.String,
        days: Schema.NumberFromString,
        unit: Schema.optional(Schema.Literal("C", "F"))
      },
      handler: (params) => {
        expect(params.city).type.toBe<string>()
        expect(params.days).type.toBe<number>()
        expect(params.unit).type.toBe<"C" | "F" | undefined>()
        expect(params).type.not.toHaveProperty("country")
        return params.city
      }
    })

    expect<Tool.Parameters<typeof tool>>().type.toBe<
      { readonly city: string; readonly days: number; readonly unit?: "C" | "F" | undefined }
    >()
  })

  test("are inferred into the handler with defaults filled in", () => {
    Tool.make("x", {
      description,
      parameters: { note: Schema.String.pipe(Schema.optionalWith({ default: () => "none" })) },
      handler: (params) => {
        expect(params).type.toBe<{ readonly note: string }>()
        return 1
      }
    })
  })

  test("are inferred into the handler from a struct with fields of any kind", () => {
    Tool.make("x", {
      description,
      parameters: Schema.Struct({ note: Schema.optionalWith(Schema.String, { default: () => "none" }) }),
      handler: (params) => {
        expect(params).type.toBe<{ readonly note: string }>()
        return 1
      }
    })
  })

  test("are inferred into the handler from any schema", () => {
    class Trip extends Schema.Class<Trip>("Trip")({ to: Schema.String }) {}

    Tool.make("x", {
      description,
      parameters: Trip,
      handler: (trip) => {
        expect(trip).type.toBe<Trip>()
        return trip.to
      }
    })
  })

  test("are empty when none are declared", () => {
    const tool = Tool.make("x", { description, handler: (params) => Object.keys(params).length })

    expect<Tool.Parameters<typeof tool>>().type.toBe<{}>()
  })

  test("of a raw JSON Schema are unknown members", () => {
    Tool.fromJsonSchema("x", {
      description,
      schema: { type: "object" },
      handler: (params) => {
        expect(params["city"]).type.toBe<unknown>()
        return 1
      }
    })
  })

  test("are inferred into approval and exclusion, too", () => {
    Tool.make("x", {
      description,
      parameters: { path: Schema.String },
      needsApproval: ({ path }) => {
        expect(path).type.toBe<string>()
        return path === "/"
      },
      exclusive: ({ path }) => {
        expect(path).type.toBe<string>()
        return path
      }
    })
  })

  test("name what excludes calls from each other", () => {
    const parameters = { path: Schema.String }

    expect(Tool.make).type.toBeCallableWith("x", { description, parameters, exclusive: "path" as const })
    expect(Tool.make).type.not.toBeCallableWith("x", { description, parameters, exclusive: "file" as const })
  })
})

describe("a tool's type", () => {
  test("tells its name", () => {
    expect(Tool.make("get_weather", { description }).name).type.toBe<"get_weather">()
  })

  test("tells what an Effect succeeds with, fails with and needs", () => {
    const tool = Tool.make("x", {
      description,
      parameters: { city: Schema.String },
      handler: ({ city }) => lookup(city)
    })

    expect<Tool.Success<typeof tool>>().type.toBe<string>()
    expect<Tool.Failure<typeof tool>>().type.toBe<"offline">()
    expect<Tool.Requirements<typeof tool>>().type.toBe<Weather>()
  })

  test("tells the value of plain and async handlers", () => {
    const plain = Tool.make("x", { description, handler: () => 1 })
    const later = Tool.make("x", { description, handler: async () => "text" })

    expect<Tool.Success<typeof plain>>().type.toBe<number>()
    expect<Tool.Failure<typeof plain>>().type.toBe<never>()
    expect<Tool.Requirements<typeof plain>>().type.toBe<never>()
    expect<Tool.Success<typeof later>>().type.toBe<string>()
    expect<Tool.Failure<typeof later>>().type.toBe<never>()
  })

  test("looks into explicit results", () => {
    const tool = Tool.make("x", {
      description,
      parameters: { n: Schema.Number },
      handler: ({ n }) =>
        n === 0
          ? ToolResult.error("zero" as const)
          : n === 1
          ? ToolResult.askUser("One?")
          : n === 2
          ? ToolResult.halt("two", 2)
          : ToolResult.ok(n)
    })

    expect<Tool.Success<typeof tool>>().type.toBe<number>()
    expect<Tool.Failure<typeof tool>>().type.toBe<"zero">()
  })

  test("takes the success of its schema", () => {
    const tool = Tool.make("x", { description, success: Schema.Date, handler: () => new Date(0) })

    expect<Tool.Success<typeof tool>>().type.toBe<Date>()
  })

  test("counts what schemas and approval need among the requirements", () => {
    const Known = Schema.String.pipe(Schema.filterEffect(() => Effect.as(Weather, true)))
    const decoding = Tool.make("x", { description, parameters: { city: Known }, handler: () => 1 })
    const encoding = Tool.make("x", { description, success: Known, handler: () => "text" })
    const failing = Tool.make("x", { description, failure: Known, handler: () => Effect.fail("text") })
    const approving = Tool.make("x", {
      description,
      handler: () => lookup("Oslo"),
      needsApproval: () => Effect.flatMap(Users, (users) => users.isAdmin)
    })

    expect<Tool.Requirements<typeof decoding>>().type.toBe<Weather>()
    expect<Tool.Requirements<typeof encoding>>().type.toBe<Weather>()
    expect<Tool.Requirements<typeof failing>>().type.toBe<Weather>()
    expect<Tool.Requirements<typeof approving>>().type.toBe<Weather | Users>()
  })

  test("does not count ToolContext among the requirements", () => {
    const tool = Tool.make("x", {
      description,
      handler: () => Effect.zipRight(ToolContext.ToolContext, lookup("Oslo"))
    })
    const alone = Tool.make("x", { description, handler: () => ToolContext.ToolContext })

    expect<Tool.Requirements<typeof tool>>().type.toBe<Weather>()
    expect<Tool.Requirements<typeof alone>>().type.toBe<never>()
  })

  test("needs nothing without a handler, whatever it declares", () => {
    const bare = Tool.make("x", { description })
    const declared = Tool.make("x", {
      description,
      parameters: { n: Schema.Number },
      success: Schema.Date,
      failure: CityNotFound
    })
    const raw = Tool.fromJsonSchema("x", { description, schema: { type: "object" } })

    expect<Tool.Requirements<typeof bare>>().type.toBe<never>()
    expect<Tool.Requirements<typeof declared>>().type.toBe<never>()
    expect<Tool.Success<typeof declared>>().type.toBe<Date>()
    expect<Tool.Requirements<typeof raw>>().type.toBe<never>()
  })

  test("is known again after a declaration was attached", () => {
    const tool = Tool.attach(Tool.declaration(Tool.make("x", { description })), () => lookup("Oslo"))

    expect<Tool.Success<typeof tool>>().type.toBe<string>()
    expect<Tool.Failure<typeof tool>>().type.toBe<"offline">()
    expect<Tool.Requirements<typeof tool>>().type.toBe<Weather>()
  })

  test("fits every place that takes any tool", () => {
    const tool = Tool.make("x", {
      description,
      parameters: { city: Schema.String },
      handler: ({ city }) => lookup(city)
    })

    expect(tool).type.toBeAssignableTo<Tool.Any>()
  })
})

describe("the context", () => {
  test("is a handler's second argument", () => {
    Tool.make("x", {
      description,
      handler: (_params, context) => {
        expect(context).type.toBe<ToolContext.Service>()
        expect(context.signal).type.toBe<AbortSignal>()
        expect(context.sessionId).type.toBe<string | undefined>()
        expect(context.progress).type.toBe<(value: unknown) => Effect.Effect<void>>()
        return 1
      }
    })
  })
})

describe("a handler does not compile", () => {
  const parameters = { city: Schema.String }

  test("against the parameters", () => {
    expect(Tool.make).type.toBeCallableWith("x", {
      description,
      parameters,
      handler: (params: { readonly city: string }) => params.city
    })
    expect(Tool.make).type.not.toBeCallableWith("x", {
      description,
      parameters,
      handler: (params: { readonly city: number }) => params.city
    })
    expect(Tool.make).type.not.toBeCallableWith("x", {
      description,
      parameters,
      handler: (params: { readonly country: string }) => params.country
    })
  })

  test("with three parameters", () => {
    expect(Tool.make).type.not.toBeCallableWith("x", {
      description,
      handler: (_params: {}, _context: ToolContext.Service, _more: unknown) => 1
    })
    expect(Tool.attach).type.not.toBeCallableWith(
      Tool.declaration(Tool.make("x", { description })),
      (_params: {}, _context: ToolContext.Service, _more: unknown) => 1
    )
  })

  test("against the success schema, in any of its forms", () => {
    const success = Schema.Number

    expect(Tool.make).type.toBeCallableWith("x", { description, success, handler: () => 1 })
    expect(Tool.make).type.toBeCallableWith("x", { description, success, handler: async () => 1 })
    expect(Tool.make).type.toBeCallableWith("x", { description, success, handler: () => Effect.succeed(1) })
    expect(Tool.make).type.toBeCallableWith("x", { description, success, handler: () => ToolResult.ok(1) })
    expect(Tool.make).type.toBeCallableWith("x", { description, success, handler: () => ToolResult.askUser("?") })

    expect(Tool.make).type.not.toBeCallableWith("x", { description, success, handler: () => "one" })
    expect(Tool.make).type.not.toBeCallableWith("x", { description, success, handler: async () => "one" })
    expect(Tool.make).type.not.toBeCallableWith("x", { description, success, handler: () => Effect.succeed("one") })
    expect(Tool.make).type.not.toBeCallableWith("x", { description, success, handler: () => ToolResult.ok("one") })
    expect(Tool.make).type.not.toBeCallableWith("x", {
      description,
      success,
      handler: () => Promise.resolve(ToolResult.ok("one"))
    })
  })

  test("against the failure schema, in any of its forms", () => {
    const failure = CityNotFound

    expect(Tool.make).type.toBeCallableWith("x", { description, failure, handler: () => 1 })
    expect(Tool.make).type.toBeCallableWith("x", {
      description,
      failure,
      handler: () => Effect.fail(new CityNotFound({ city: "Atlantis" }))
    })

    expect(Tool.make).type.not.toBeCallableWith("x", { description, failure, handler: () => Effect.fail("offline") })
    expect(Tool.make).type.not.toBeCallableWith("x", {
      description,
      failure,
      handler: () => ToolResult.error("offline")
    })
  })
})

describe("options do not compile", () => {
  test("when they are of the wrong kind", () => {
    expect(Tool.make).type.not.toBeCallableWith("x")
    expect(Tool.make).type.not.toBeCallableWith("x", {})
    expect(Tool.make).type.not.toBeCallableWith("x", { description, manual: "true" })
    expect(Tool.make).type.not.toBeCallableWith("x", { description, replay: "always" as const })
    expect(Tool.make).type.not.toBeCallableWith("x", { description, parameters: { city: "string" } })
    expect(Tool.make).type.not.toBeCallableWith("x", { description, handlr: () => 1 })
    expect(Tool.fromJsonSchema).type.not.toBeCallableWith("x", { description })
  })
})
