import { Allm, type ChatResult, Engine, type Event, Message, Tool } from "@allm/core"
import { FileSystem } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Clock, Effect, Fiber, Layer, Logger, Option, Schema, Stream, TestClock } from "effect"
import * as Agent from "../../src/internal/agent.ts"
import * as DemoModel from "../../src/internal/demo/model.ts"
import * as Models from "../../src/internal/models.ts"

const silent = Logger.remove(Logger.defaultLogger)

/** What a chat with the embedded agent comes to, on the clock of the test. */
const events = (input: string | ReadonlyArray<Message.Message>, root = ".") =>
  Effect.gen(function*() {
    const model = yield* Models.resolve(Option.some("demo"))
    const layer = Agent.engine(Agent.demo({ root }), model)
    const chat = Stream.runCollect(Allm.stream(input)).pipe(Effect.provide(layer), Effect.provide(silent))
    const fiber = yield* Effect.fork(chat)
    // Files answer in their own time.
    yield* Effect.repeat(
      Effect.zipRight(
        TestClock.adjust("250 millis"),
        Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      ),
      { until: () => Effect.map(fiber.status, (status) => status._tag === "Done") }
    )
    return Chunk.toReadonlyArray(yield* Fiber.join(fiber))
  })

const resultOf = (events: ReadonlyArray<Event.Event>): ChatResult.ChatResult => {
  const last = events.at(-1)
  assert(last?._tag === "ChatCompleted")
  return last.result
}

const chat = (input: string | ReadonlyArray<Message.Message>, root: string = ".") =>
  Effect.map(events(input, root), resultOf)

const answer = (input: string, root: string = ".") =>
  Effect.map(chat(input, root), ({ finalResponse }) => finalResponse.outputText ?? "")

const inDirectory = <A, E, R>(use: (root: string) => Effect.Effect<A, E, R>) =>
  Effect.scoped(
    Effect.flatMap(FileSystem.FileSystem, (fs) => Effect.flatMap(fs.makeTempDirectoryScoped(), use))
  ).pipe(Effect.provide(NodeContext.layer))

describe("the embedded agent", () => {
  it.effect("tells the time in a place by the Clock", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(Date.UTC(2026, 10, 18, 20, 4, 32))

      assert.strictEqual(
        yield* answer("What time is it in Tokyo?"),
        "In Tokyo it is 05:04 on Thursday, 19 November 2026."
      )
    }).pipe(Effect.provide(NodeContext.layer)))

  it.effect("works several things out at once, and says them in the order they were asked for", () =>
    Effect.gen(function*() {
      const { finalResponse, steps } = yield* chat("What is 2 * (3 + 4)^2, and 1 / 3, and 6 times 7?")

      assert.strictEqual(finalResponse.outputText, "2 * (3 + 4)^2 is 98.\n1 / 3 is 0.333333333333.\n6 * 7 is 42.")
      assert.strictEqual(steps.length, 2)
      assert.strictEqual(steps[0]?.response.toolCalls.length, 3)
    }).pipe(Effect.provide(NodeContext.layer)))

  it.effect("streams as a model does: thoughts, words, arguments in pieces, tokens", () =>
    Effect.gen(function*() {
      const all = yield* events("What is 2 + 2, and the time in Oslo?")
      const of = <T extends Event.Event["_tag"]>(tag: T) =>
        all.filter((event): event is Extract<Event.Event, { _tag: T }> => event._tag === tag)

      assert.isAbove(of("ReasoningDelta").length, 5)
      assert.isAbove(of("TextDelta").length, 5)
      assert.isAbove(of("ToolCallDelta").length, 4)
      assert.strictEqual(of("ToolCallCompleted").length, 2)
      assert.isTrue(of("MessageCompleted").every(({ usage }) => (usage?.outputTokens ?? 0) > 0))
    }).pipe(Effect.provide(NodeContext.layer)))

  describe("corrects itself", () => {
    it.effect("when a zone is nearly right", () =>
      Effect.gen(function*() {
        const { finalResponse, steps } = yield* chat("What time is it in Toyko?")

        assert.match(finalResponse.outputText ?? "", /^In Tokyo it is \d\d:\d\d/)
        assert.strictEqual(steps.length, 3)
      }).pipe(Effect.provide(NodeContext.layer)))

    it.effect("when a bracket is missing", () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* answer("what is 2 * (3 + (4 - 1"), "2 * (3 + (4 - 1)) is 12.")
      }).pipe(Effect.provide(NodeContext.layer)))

    it.effect("when a file has nearly that name, or is a directory", () =>
      inDirectory((root) =>
        Effect.gen(function*() {
          const fs = yield* FileSystem.FileSystem
          yield* fs.writeFileString(`${root}/README.md`, "# Hello\n")
          yield* fs.makeDirectory(`${root}/some.dir`)

          assert.strictEqual(yield* answer("what is in readme.mdd?", root), "`README.md` says:\n> # Hello\n")
          assert.strictEqual(yield* answer("read some.dir", root), "There is nothing in `some.dir`.")
        })
      ))

    it.effect("but not for ever", () =>
      Effect.gen(function*() {
        const { finalResponse, steps } = yield* chat("what is 1 + ((((((2")

        assert.strictEqual(steps.length, 4)
        assert.include(finalResponse.outputText, "I could not work out")
      }).pipe(Effect.provide(NodeContext.layer)))
  })

  describe("says honestly what failed", () => {
    it.effect("an unknown zone, a division by zero, a file that is not there or not to be read", () =>
      inDirectory((root) =>
        Effect.gen(function*() {
          assert.strictEqual(yield* answer("time in Atlantis"), "I know no time zone \"Atlantis\".")
          assert.strictEqual(
            yield* answer("what is 1 / 0"),
            "I could not work out 1 / 0: division by zero, at position 3."
          )
          assert.strictEqual(
            yield* answer("read nowhere.txt", root),
            "I could not read `nowhere.txt`: there is no such file."
          )
          assert.strictEqual(
            yield* answer("read ../secret.txt", root),
            "I could not read `../secret.txt`: it is not below the directory that may be used; write a path relative to it."
          )
        })
      ))

    it.effect("a crash, of which the model does not hear why", () =>
      Effect.gen(function*() {
        const { finalResponse, thread } = yield* chat("broken")

        assert.strictEqual(finalResponse.outputText, "`broken` crashed; I am not told why, only you can see that.")
        assert.notInclude(JSON.stringify(thread), "hunter2")
      }).pipe(Effect.provide(NodeContext.layer)))
  })

  it.effect("shows progress, a time limit and a retry", () =>
    Effect.gen(function*() {
      const all = yield* events("be slow, stubborn and flaky")

      assert.deepStrictEqual(
        all.flatMap((event) => event._tag === "ToolProgress" ? [event.value] : []),
        [1, 2, 3, 4, 5, 6].map((done) => ({ done, of: 6 }))
      )
      assert.deepStrictEqual(
        all.flatMap((event) => event._tag === "ToolExecutionCompleted" ? [[event.toolName, event.result._tag]] : []),
        [["flaky", "Ok"], ["stubborn", "Timeout"], ["slow", "Ok"]]
      )
      assert.strictEqual(
        resultOf(all).finalResponse.outputText,
        "`slow` took 3 seconds for 6 steps.\n`stubborn` never answered and was given up at its time limit.\n" +
          "`flaky` succeeded at attempt 3."
      )
    }).pipe(Effect.provide(NodeContext.layer)))

  it.effect("asks the person, and answers from the answer, however it is given", () =>
    Effect.gen(function*() {
      const asked = yield* chat("Ask me which colour: red or blue")
      const [question] = asked.pendingQuestions
      const { messages } = asked.thread
      const asResult = messages.slice(0, -1).map((message) =>
        message.role === "tool" ? Message.tool(message.toolCallId, "blue") : message
      )

      assert.strictEqual(asked.haltedReason, "ask_user")
      assert.deepStrictEqual(question?.options, { choices: ["red", "blue"] })
      assert.strictEqual((yield* chat(asResult)).finalResponse.outputText, "You answered: blue.")
      assert.strictEqual(
        (yield* chat([...messages, Message.user("The red one.")])).finalResponse.outputText,
        "You answered: The red one."
      )
    }).pipe(Effect.provide(NodeContext.layer)))

  it.effect("waits for consent before it writes, and for a person to flip the coin", () =>
    inDirectory((root) =>
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        const note = yield* chat("Write a note that says hello", root)
        const coin = yield* chat("flip a coin", root)

        assert.strictEqual(note.haltedReason, "approval")
        assert.deepStrictEqual(note.pendingApprovals[0]?.toolCall.arguments, { path: "note.txt", text: "hello" })
        assert.deepStrictEqual(yield* fs.readDirectory(root), [])
        assert.strictEqual(coin.haltedReason, "manual_tool_calls")
      })
    ))

  it.effect("shows all of it within ten seconds when it is said what is said at the start", () =>
    inDirectory((root) =>
      Effect.gen(function*() {
        const began = yield* Clock.currentTimeMillis
        const prompt = Agent.demo({ root }).prompt ?? ""
        const { finalResponse, haltedReason, steps } = yield* chat(prompt, root)
        const text = finalResponse.outputText ?? ""

        assert.strictEqual(haltedReason, "completed")
        assert.strictEqual(steps[0]?.response.toolCalls.length, 8)
        for (
          const part of [
            "In Tokyo",
            "In Oslo",
            "is 98",
            "nothing here",
            "`slow` took",
            "`stubborn` never",
            "attempt 3",
            "`broken` crashed"
          ]
        ) assert.include(text, part)
        assert.isBelow((yield* Clock.currentTimeMillis) - began, 10_000)
      })
    ))

  it.effect("understands everything that it suggests", () =>
    inDirectory((root) =>
      Effect.gen(function*() {
        for (const text of Agent.demo({ root }).suggestions) {
          const { steps } = yield* chat(text, root)
          assert.isAbove(steps[0]!.response.toolCalls.length, 0, text)
        }
      })
    ))

  it.effect("calls the tools of any agent by their names, and gives what they say as it is", () =>
    Effect.gen(function*() {
      const shout = Tool.make("shout", {
        description: "Says it louder",
        parameters: { text: Schema.String },
        handler: ({ text }) => text.toUpperCase()
      })
      const clock = Tool.make("clock", { description: "Stands still", handler: () => ({ hour: 12 }) })
      const said = (text: string) =>
        Allm.chat(text).pipe(
          Effect.provide(Engine.layer({ tools: [shout, clock] }).pipe(Layer.provide(DemoModel.layer))),
          Effect.map(({ finalResponse }) => finalResponse.outputText ?? ""),
          Effect.fork,
          Effect.tap(TestClock.adjust("1 minute")),
          Effect.flatMap(Fiber.join)
        )

      assert.strictEqual(yield* said("please shout {\"text\":\"so {much}\"}, then"), "`shout` says: SO {MUCH}")
      assert.strictEqual(
        yield* said("shout"),
        "`shout` failed: tool error (shout): invalid_arguments: text is missing."
      )
      assert.strictEqual(yield* said("what time is it?"), "`clock` says: {\"hour\":12}")
      assert.strictEqual(yield* said("clock {}"), "`clock` says: {\"hour\":12}")
      assert.include(yield* said("hm"), "Call a tool by its name, with its arguments as JSON: shout.")
    }))

  it.effect("says what it is when it does not understand", () =>
    Effect.gen(function*() {
      const lost = yield* answer("漢字で、詩を書いて 🎉")
      const greeting = yield* answer("Hello!")

      assert.match(lost, /^I do not understand that\. I am a scripted model/)
      assert.match(greeting, /^Hello! I am a scripted model/)
      for (const part of ["2 * (3 + 4)^2", "OPENAI_API_KEY", "--model provider/name"]) assert.include(lost, part)
    }).pipe(Effect.provide(NodeContext.layer)))
})
