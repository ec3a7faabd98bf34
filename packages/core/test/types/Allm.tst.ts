import {
  type AdapterError,
  Allm,
  type CallbackFailed,
  type ChatResult,
  type Engine,
  type Event,
  Fake,
  Message,
  OnToolError,
  Request,
  type Response,
  type StepResult,
  Thread,
  Tool,
  type UnknownTool,
  type ValidationError
} from "@allm/core"
import { Context, Effect, Schema, type Stream } from "effect"
import { describe, expect, test } from "tstyche"

class Weather extends Context.Tag("Weather")<Weather, { readonly of: (city: string) => Effect.Effect<string> }>() {}
class Mail extends Context.Tag("Mail")<Mail, { readonly send: Effect.Effect<void> }>() {}
class Log extends Context.Tag("Log")<Log, { readonly write: Effect.Effect<void> }>() {}

const weather = Tool.make("weather", {
  description: "Weather",
  parameters: { city: Schema.String },
  handler: ({ city }) => Effect.flatMap(Weather, (service) => service.of(city))
})
const mail = Tool.make("mail", {
  description: "Mail",
  handler: () => Effect.zipRight(Effect.flatMap(Mail, (service) => service.send), Effect.fail("bounced" as const))
})
const plain = Tool.make("plain", { description: "Plain", handler: () => "a" })

const write = Effect.flatMap(Log, (log) => log.write)
const EngineOnly = Fake.engine({ script: [] })

/** Only a program that needs nothing can be run. */
const run = (_program: Effect.Effect<unknown, unknown>): void => {}

describe("requirements of a call", () => {
  test("without tools it needs an engine", () => {
    expect(Allm.chat("hi")).type.toBe<Effect.Effect<ChatResult.ChatResult, Allm.ChatError, Engine.Engine>>()
    expect(Allm.step("hi")).type.toBe<Effect.Effect<StepResult.StepResult, Allm.ChatError, Engine.Engine>>()
    expect(Allm.generate("hi")).type.toBe<Effect.Effect<Response.Response, Allm.ChatError, Engine.Engine>>()
    expect(Allm.stream("hi")).type.toBe<Stream.Stream<Event.Event, Allm.ChatError, Engine.Engine>>()
    expect(Allm.streamStep("hi")).type.toBe<Stream.Stream<Event.Event, Allm.ChatError, Engine.Engine>>()
    expect(Allm.streamGenerate("hi")).type.toBe<Stream.Stream<Event.Event, Allm.ChatError, Engine.Engine>>()
  })

  test("it lists the services of its tools, and no others", () => {
    const options = { tools: [weather, mail, plain] }

    expect(Allm.chat("hi", options)).type.toBe<
      Effect.Effect<ChatResult.ChatResult, Allm.ChatError, Engine.Engine | Weather | Mail>
    >()
    expect(Allm.step("hi", options)).type.toBe<
      Effect.Effect<StepResult.StepResult, Allm.ChatError, Engine.Engine | Weather | Mail>
    >()
    expect(Allm.stream("hi", options)).type.toBe<
      Stream.Stream<Event.Event, Allm.ChatError, Engine.Engine | Weather | Mail>
    >()
    expect(Allm.chat("hi", { tools: [plain] })).type.toBe<
      Effect.Effect<ChatResult.ChatResult, Allm.ChatError, Engine.Engine>
    >()
  })

  test("leaving a service out does not compile", () => {
    const program = Effect.provide(Allm.chat("hi", { tools: [weather] }), EngineOnly)
    const complete = Effect.provideService(program, Weather, { of: () => Effect.succeed("sunny") })

    expect(run).type.not.toBeCallableWith(program)
    expect(run).type.not.toBeCallableWith(Allm.chat("hi"))
    expect(run).type.toBeCallableWith(complete)
    expect(run).type.toBeCallableWith(Effect.provide(Allm.chat("hi"), EngineOnly))
  })

  test("it lists the services of its functions", () => {
    expect(Allm.chat("hi", { haltWhen: () => Effect.as(write, true) })).type.toBe<
      Effect.Effect<ChatResult.ChatResult, Allm.ChatError, Engine.Engine | Log>
    >()
    expect(Allm.chat("hi", { prepareStep: () => Effect.as(write, { model: "small" }) })).type.toBe<
      Effect.Effect<ChatResult.ChatResult, Allm.ChatError, Engine.Engine | Log>
    >()
    expect(Allm.chat("hi", { onEvent: () => write })).type.toBe<
      Effect.Effect<ChatResult.ChatResult, Allm.ChatError, Engine.Engine | Log>
    >()
    expect(Allm.chat("hi", { onToolError: () => Effect.as(write, OnToolError.continue()) })).type.toBe<
      Effect.Effect<ChatResult.ChatResult, Allm.ChatError, Engine.Engine | Log>
    >()
    expect(
      Allm.chat("hi", {
        tools: [weather],
        haltWhen: () => Effect.as(write, true),
        onEvent: () => Effect.flatMap(Mail, (service) => service.send)
      })
    ).type.toBe<Effect.Effect<ChatResult.ChatResult, Allm.ChatError, Engine.Engine | Weather | Log | Mail>>()
  })

  test("functions without an Effect need nothing", () => {
    expect(
      Allm.chat("hi", {
        haltWhen: (step) => step.done,
        prepareStep: ({ stepIndex }) => stepIndex === 0 ? { toolChoice: "required" } : undefined,
        onEvent: () => {},
        onToolError: "halt"
      })
    ).type.toBe<Effect.Effect<ChatResult.ChatResult, Allm.ChatError, Engine.Engine>>()
  })
})

describe("functions of the caller", () => {
  test("are given typed arguments", () => {
    const program = Allm.chat("hi", {
      tools: [mail],
      haltWhen: (step) => {
        expect(step).type.toBe<StepResult.StepResult>()
        return true
      },
      prepareStep: (info) => {
        expect(info).type.toBe<Engine.StepInfo>()
      },
      onEvent: (event) => {
        expect(event).type.toBe<Event.AdapterEvent>()
      },
      onToolError: (_call, error) => {
        if (error._tag === "HandlerFailed") expect(error.failure).type.toBe<"bounced">()
        return OnToolError.continue()
      }
    })

    expect(program).type.toBe<Effect.Effect<ChatResult.ChatResult, Allm.ChatError, Engine.Engine | Mail>>()
  })

  test("return what they should", () => {
    expect(Allm.chat).type.not.toBeCallableWith("hi", { haltWhen: () => "yes" })
    expect(Allm.chat).type.not.toBeCallableWith("hi", { prepareStep: () => ({ modle: "small" }) })
  })
})

describe("errors and input", () => {
  test("the errors of a chat are a closed union", () => {
    expect<Allm.ChatError>().type.toBe<
      | AdapterError.AdapterError
      | UnknownTool.UnknownTool
      | ValidationError.ValidationError
      | CallbackFailed.CallbackFailed
    >()
  })

  test("text, messages, a thread and a request are input, nothing else is", () => {
    expect(Allm.chat).type.toBeCallableWith("hi")
    expect(Allm.chat).type.toBeCallableWith([Message.user("hi")])
    expect(Allm.chat).type.toBeCallableWith(Thread.make([Message.user("hi")]))
    expect(Allm.chat).type.toBeCallableWith(Request.make({ messages: [Message.user("hi")] }))
    expect(Allm.chat).type.not.toBeCallableWith(7)
    expect(Allm.chat).type.not.toBeCallableWith(["hi"])
  })

  test("an option that does not exist does not compile", () => {
    expect(Allm.chat).type.not.toBeCallableWith("hi", { maxTurn: 3 })
    expect(Allm.chat).type.not.toBeCallableWith("hi", { mode: "semi" })
    expect(Allm.chat).type.toBeCallableWith("hi", { maxTurns: 3, mode: "manual" })
  })
})

describe("object", () => {
  const City = Schema.Struct({ name: Schema.String, since: Schema.Date })

  test("infers its value from the schema", () => {
    expect(Allm.object("hi", { schema: City })).type.toBe<
      Effect.Effect<
        Allm.ObjectResult<{ readonly name: string; readonly since: Date }>,
        Allm.ChatError | Allm.InvalidObject,
        Engine.Engine
      >
    >()
  })

  test("lists the services of its schema and its tools", () => {
    const Known = City.pipe(Schema.filterEffect(() => Effect.as(write, true)))

    expect(Allm.object("hi", { schema: Known, tools: [weather] })).type.toBe<
      Effect.Effect<
        Allm.ObjectResult<{ readonly name: string; readonly since: Date }>,
        Allm.ChatError | Allm.InvalidObject,
        Engine.Engine | Weather | Log
      >
    >()
  })

  test("needs a schema, and takes no other form", () => {
    expect(Allm.object).type.not.toBeCallableWith("hi", {})
    expect(Allm.object).type.not.toBeCallableWith("hi", { schema: City, responseFormat: { type: "json_object" } })
  })
})
