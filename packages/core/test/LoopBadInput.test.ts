import { Allm, type Engine, Fake, Message, Request, Thread, Tool, ToolCall } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Stream } from "effect"

const call = (id: string, name: string, args: unknown = {}) => Fake.toolCall({ id, name, arguments: args })
const asks = (...calls: ReadonlyArray<Fake.Entry>): Fake.Script => [...calls, Fake.finish("tool_calls")]
const says = (text: string): Fake.Script => [Fake.text(text), Fake.finish("stop")]

const ping = Tool.make("ping", { description: "Answers", handler: () => "pong" })
const clock = Tool.make("clock", { description: "Tells the time", handler: () => "noon" })

const hi = Message.user("hi")
const asking = (...ids: ReadonlyArray<string>) =>
  Message.assistant("", { toolCalls: ids.map((id) => ToolCall.make({ id, name: "ping", arguments: {} })) })

/** Options and input without their types, as plain JavaScript gives them. */
type Untyped = { readonly [option: string]: unknown }

/** What a chat is refused with, and that the model was not asked. */
const refusal = (input: unknown, options: Untyped = {}, engine: Engine.Options<typeof ping> = {}) =>
  Effect.gen(function*() {
    const error = yield* Effect.flip(Effect.asVoid(Allm.chat(input as Allm.Input, options)))
    assert(error._tag === "ValidationError")
    assert.deepStrictEqual(yield* Fake.requests, [])
    return error
  }).pipe(Effect.provide(Fake.engine({ script: says("hello"), ...engine })))

const optionsRefused = (...lines: ReadonlyArray<string>) =>
  [`validation failed: invalid_options (${lines.length} error${lines.length === 1 ? "" : "s"})`, ...lines].join("\n")

describe("the loop, given bad messages", () => {
  it.effect("refuses none at all", () =>
    Effect.gen(function*() {
      const error = yield* refusal([])

      assert.strictEqual(
        error.message,
        "validation failed: invalid_thread (1 error)\n" +
          "- $.messages: there is nothing to answer; write [Message.user(\"…\")]"
      )
    }))

  it.effect("refuses an empty thread", () =>
    Effect.gen(function*() {
      const error = yield* refusal(Thread.empty)

      assert.deepStrictEqual(error.issues.map(({ code }) => code), ["empty"])
    }))

  it.effect("refuses an empty request", () =>
    Effect.gen(function*() {
      const error = yield* refusal({ messages: [], tools: [] })

      assert.strictEqual(
        error.message,
        "validation failed: invalid_request (1 error)\n- $.messages: a request needs a message; write [Message.user(\"…\")]"
      )
    }))

  it.effect.each<[string, unknown]>([
    ["a number", 42],
    ["null", null],
    ["undefined", undefined],
    ["a function", () => "hi"],
    ["a Date", new Date(0)]
  ])("refuses %s", ([what, input]) =>
    Effect.gen(function*() {
      const error = yield* refusal(input)

      assert.strictEqual(
        error.message,
        "validation failed: invalid_thread (1 error)\n" +
          `- $.thread: write text, a list of messages, a Thread or a Request, not ${what}`
      )
    }))

  it.effect("names every message that is none", () =>
    Effect.gen(function*() {
      const error = yield* refusal([hi, "hello", { role: "robot", content: 1 }])

      assert.deepStrictEqual(error.issues.map(({ code, path }) => [path.join("."), code]), [
        ["messages.1", "invalid_type"],
        ["messages.2.role", "unknown"],
        ["messages.2.content", "invalid_type"]
      ])
    }))

  it.effect("refuses a tool message without its call", () =>
    Effect.gen(function*() {
      const error = yield* refusal([hi, Message.tool("c0", "pong")])

      assert.strictEqual(
        error.message,
        "validation failed: invalid_thread (1 error)\n" +
          "- $.messages[1].toolCallId: no open call has the id \"c0\"; " +
          "a tool message follows the assistant message that made the call, once"
      )
    }))

  it.effect("refuses a second answer to one call", () =>
    Effect.gen(function*() {
      const error = yield* refusal([hi, asking("c0"), Message.tool("c0", "pong"), Message.tool("c0", "pong")])

      assert.deepStrictEqual(error.issues.map(({ code, path }) => [path.join("."), code]), [
        ["messages.3.toolCallId", "unknown_call"]
      ])
    }))

  it.effect("refuses a call without its answer", () =>
    Effect.gen(function*() {
      const error = yield* refusal([hi, asking("c0", "c1"), Message.tool("c1", "pong"), Message.user("well?")])

      assert.strictEqual(
        error.message,
        "validation failed: invalid_thread (1 error)\n" +
          "- $.messages[1].toolCalls: the call \"c0\" has no answer; " +
          "append Message.tool(\"c0\", \"…\") before anything else is said"
      )
    }))

  it.effect("refuses an answer that comes too late, at both ends", () =>
    Effect.gen(function*() {
      const error = yield* refusal([hi, asking("c0"), Message.user("well?"), Message.tool("c0", "pong")])

      assert.deepStrictEqual(error.issues.map(({ code, path }) => [path.join("."), code]), [
        ["messages.1.toolCalls", "unanswered_call"],
        ["messages.3.toolCallId", "unknown_call"]
      ])
    }))

  it.effect("refuses two calls of one id, which no provider tells apart", () =>
    Effect.gen(function*() {
      const error = yield* refusal([hi, asking("c0", "c0"), Message.tool("c0", "pong")])

      assert.deepStrictEqual(error.issues.map(({ path }) => path.slice(0, 2)), [["messages", 1]])
    }))

  it.effect("refuses the history of a request like that of a thread", () =>
    Effect.gen(function*() {
      const error = yield* refusal(Request.make({ messages: [hi, asking("c0")], maxTokens: 10 }))

      assert.strictEqual(error.reason, "invalid_request")
      assert.deepStrictEqual(error.issues.map(({ code }) => code), ["unanswered_call"])
    }))

  it.effect("fails every way of asking alike", () =>
    Effect.gen(function*() {
      const errors = yield* Effect.all([
        Effect.flip(Effect.asVoid(Allm.generate([]))),
        Effect.flip(Effect.asVoid(Allm.step([]))),
        Effect.flip(Effect.asVoid(Allm.chat([]))),
        Effect.flip(Stream.runDrain(Allm.streamGenerate([]))),
        Effect.flip(Stream.runDrain(Allm.streamStep([]))),
        Effect.flip(Stream.runDrain(Allm.stream([])))
      ])

      assert.deepStrictEqual(errors.map(({ _tag }) => _tag), errors.map(() => "ValidationError"))
    }).pipe(Effect.provide(Fake.engine({ script: [] }))))
})

describe("the loop, given bad options", () => {
  it.effect.each<[number, string]>([[0, "0"], [-1, "-1"], [1.5, "1.5"], [NaN, "NaN"], [Infinity, "Infinity"]])(
    "refuses maxTurns: %d",
    ([maxTurns, shown]) =>
      Effect.gen(function*() {
        const error = yield* refusal("hi", { maxTurns })

        assert.strictEqual(
          error.message,
          optionsRefused(`- $.maxTurns: write a positive whole number, not ${shown}`)
        )
      })
  )

  it.effect("refuses maxTurns as text", () =>
    Effect.gen(function*() {
      const error = yield* refusal("hi", { maxTurns: "8" })

      assert.strictEqual(error.message, optionsRefused("- $.maxTurns: write a positive whole number, not \"8\""))
    }))

  it.effect("refuses a mode it does not know", () =>
    Effect.gen(function*() {
      const error = yield* refusal("hi", { mode: "semi" })

      assert.strictEqual(error.message, optionsRefused("- $.mode: write \"auto\" or \"manual\", not \"semi\""))
    }))

  it.effect("names the options there are when one is unknown", () =>
    Effect.gen(function*() {
      const error = yield* refusal("hi", { maxTurn: 3 })

      assert.match(
        error.message,
        /^validation failed: invalid_options \(1 error\)\n- \$\.maxTurn: there is no such option; the options are model, .*\bmaxTurns, .*\bapprovals$/
      )
    }))

  it.effect("names the limits there are when one of the budget is unknown", () =>
    Effect.gen(function*() {
      const error = yield* refusal("hi", { budget: { maxCalls: 3 } })

      assert.strictEqual(
        error.message,
        optionsRefused(
          "- $.budget.maxCalls: there is no such option; " +
            "the options are maxToolCalls, maxTokens, maxDuration, maxRepeatedCalls"
        )
      )
    }))

  it.effect("refuses options that are none", () =>
    Effect.gen(function*() {
      const error = yield* refusal("hi", "fast" as never)

      assert.strictEqual(error.message, optionsRefused("- $: write options such as { maxTurns: 4 }, not a string"))
    }))

  it.effect("refuses two tools of one name", () =>
    Effect.gen(function*() {
      const error = yield* refusal("hi", { tools: [ping, clock, ping] })

      assert.strictEqual(error.message, optionsRefused("- $.tools[2]: two tools are named \"ping\"; rename one"))
    }))

  it.effect("refuses a tool that is none", () =>
    Effect.gen(function*() {
      const error = yield* refusal("hi", { tools: [{ name: "ping" }] })

      assert.strictEqual(
        error.message,
        optionsRefused("- $.tools[0]: write a tool made by Tool.make, not an object")
      )
    }))

  it.effect("refuses a toolChoice that names no tool", () =>
    Effect.gen(function*() {
      const error = yield* refusal("hi", { toolChoice: { tool: "missing" }, tools: [clock] }, { tools: [ping] })

      assert.strictEqual(
        error.message,
        optionsRefused("- $.toolChoice: no tool is named \"missing\"; write \"ping\" or \"clock\"")
      )
    }))

  it.effect("refuses a toolChoice that names a tool where there are none", () =>
    Effect.gen(function*() {
      const error = yield* refusal("hi", { toolChoice: { tool: "ping" } })

      assert.strictEqual(
        error.message,
        optionsRefused("- $.toolChoice: no tool is named \"ping\"; there are none")
      )
    }))

  it.effect("refuses to require a tool where there are none", () =>
    Effect.gen(function*() {
      const error = yield* refusal("hi", { toolChoice: "required" })

      assert.strictEqual(
        error.message,
        optionsRefused("- $.toolChoice: a tool is required but there are none; add tools")
      )
    }))

  it.effect("refuses a toolChoice it does not know", () =>
    Effect.gen(function*() {
      const error = yield* refusal("hi", { toolChoice: "sometimes" })

      assert.strictEqual(
        error.message,
        optionsRefused(
          "- $.toolChoice: write \"auto\", \"none\", \"required\" or { tool: \"name\" }, not \"sometimes\""
        )
      )
    }))

  it.effect("refuses a predicate that is no function of one parameter", () =>
    Effect.gen(function*() {
      const error = yield* refusal("hi", { haltWhen: (_step: unknown, _index: unknown) => true })

      assert.strictEqual(
        error.message,
        optionsRefused(
          "- $.haltWhen: write a function (step) => boolean of one parameter, not a function with 2 parameters"
        )
      )
    }))

  it.effect.each<[string, string]>([
    ["requestTimeout", "0"],
    ["idleTimeout", "-5"],
    ["toolTimeout", "0"]
  ])("refuses a %s that is no time", ([option, shown]) =>
    Effect.gen(function*() {
      const error = yield* refusal("hi", { [option]: Number(shown) })

      assert.strictEqual(
        error.message,
        optionsRefused(`- $.${option}: write a positive duration such as "5 seconds", not ${shown}`)
      )
    }))

  it.effect("tells everything that is wrong at once", () =>
    Effect.gen(function*() {
      const error = yield* refusal("hi", {
        mode: "semi",
        maxTurns: 0,
        temperature: 3,
        tools: [ping, ping],
        requestId: "",
        nonsense: true
      })

      assert.sameMembers(error.issues.map(({ path }) => path.join(".")), [
        "nonsense",
        "temperature",
        "mode",
        "maxTurns",
        "tools.1",
        "requestId"
      ])
    }))

  it.effect("refuses them in the settings of an engine, where they are written", () =>
    Effect.sync(() => {
      assert.throws(
        () => Fake.engine({ script: [], maxTurns: 0, mode: "semi" as never }),
        "validation failed: invalid_options (2 errors)\n" +
          "- $.mode: write \"auto\" or \"manual\", not \"semi\"\n" +
          "- $.maxTurns: write a positive whole number, not 0"
      )
      assert.throws(() => Fake.engine({ script: [], tools: [ping, ping] }), "two tools are named \"ping\"; rename one")
    }))
})

describe("haltWhen that misbehaves", () => {
  const twoTurns = Fake.engine({ scripts: [asks(call("c0", "ping")), says("done")], tools: [ping] })

  it.effect("fails the chat when it throws, and loses nothing", () =>
    Effect.gen(function*() {
      const thrown = new Error("no idea")
      const error = yield* Effect.flip(Effect.asVoid(Allm.chat("hi", {
        haltWhen: () => {
          throw thrown
        }
      })))

      assert(error._tag === "CallbackFailed")
      assert.strictEqual(error.message, "haltWhen failed; the chat so far is in `result`")
      assert.deepStrictEqual(error.cause, Cause.die(thrown))
      assert.strictEqual(error.result.haltedReason, "error")
      assert.deepStrictEqual(error.result.thread.messages.map(({ content }) => content), ["hi", "", "pong"])
      assert.strictEqual(error.result.steps.length, 1)
      assert.deepStrictEqual(error.result.finalResponse.toolCalls.map(({ id }) => id), ["c0"])
    }).pipe(Effect.provide(twoTurns)))

  it.effect("fails the chat when its Effect fails", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Effect.asVoid(Allm.chat("hi", { haltWhen: () => Effect.fail("no idea") })))

      assert(error._tag === "CallbackFailed")
      assert.strictEqual(error.callback, "haltWhen")
      assert.deepStrictEqual(error.cause, Cause.fail("no idea"))
      assert.strictEqual(error.result.steps.length, 1)
    }).pipe(Effect.provide(twoTurns)))

  it.effect("fails a stream after everything that happened was told", () =>
    Effect.gen(function*() {
      const tags: Array<string> = []
      const error = yield* Allm.stream("hi", { haltWhen: () => Effect.fail("no idea") }).pipe(
        Stream.runForEach(({ _tag }) => Effect.sync(() => tags.push(_tag))),
        Effect.flip
      )

      assert.strictEqual(error._tag, "CallbackFailed")
      assert.deepStrictEqual(tags.slice(-2), ["ToolResultEncoded", "StepCompleted"])
    }).pipe(Effect.provide(twoTurns)))

  it.effect("can be gone on from", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Effect.asVoid(Allm.chat("hi", { haltWhen: () => Effect.fail("no idea") })))
      assert(error._tag === "CallbackFailed")
      const result = yield* Allm.chat(error.result.thread)

      assert.strictEqual(result.haltedReason, "completed")
      assert.deepStrictEqual(result.thread.messages.map(({ content }) => content), ["hi", "", "pong", "done"])
    }).pipe(Effect.provide(twoTurns)))
})
