import { Fake, Message, Session, SessionStore, Thread, Tool, ToolResult } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Schema, TestClock } from "effect"
import { pass, type Talk, talking } from "./Conversation.ts"

const text = (...parts: ReadonlyArray<string>): Fake.Script => [...parts.map(Fake.text), Fake.finish("stop")]

const calls = (...names: ReadonlyArray<string>): Fake.Script => [
  ...names.map((name, index) => Fake.toolCall({ id: `call_${index}`, name, arguments: {} })),
  Fake.finish("tool_calls")
]

const tool = (name: string, handler: () => Effect.Effect<unknown, unknown>) =>
  Tool.make(name, { description: `Does ${name}`, parameters: {}, handler })

const onlySession = Effect.gen(function*() {
  const store = yield* SessionStore.SessionStore
  const { sessions } = yield* store.list()
  assert.strictEqual(sessions.length, 1)
  return yield* store.load(sessions[0]!.id)
})

const contents = (session: Session.Session) => session.thread.messages.map(({ content }) => content)

/** What is on the screen, wherever its lines are broken. */
const flat = ({ screen }: Talk): string => screen.text.replace(/\s+/g, " ")

describe("a turn", () => {
  it.effect("streams the answer word by word, and ends with how long it took", () =>
    talking(
      { script: [Fake.usage({ inputTokens: 12, outputTokens: 3 }), ...text("Hel", "lo ", "you")], delay: "200 millis" },
      {},
      (talk) =>
        Effect.gen(function*() {
          yield* talk.enter("Hi")
          yield* pass(80)
          assert.include(talk.screen.text, "waiting for the model")
          assert.isFalse(talk.screen.isCursorVisible)

          yield* pass(560)
          assert.strictEqual(talk.screen.tail(1)[0], "Hello")

          yield* pass(480)
          assert.deepStrictEqual(talk.screen.tail(5), [
            "› Hi",
            "",
            "Hello you",
            "",
            "1.0 s · 12 tokens read, 3 written"
          ])
          assert.isTrue(talk.screen.isCursorVisible)
          assert.strictEqual((yield* talk.asked)?.kind, "chat")
        })
    ))

  it.effect("draws each call as a row that is left behind when the step is over", () =>
    talking(
      {
        scripts: [calls("quick", "slow"), text("Done.")],
        tools: [
          tool("quick", () => Effect.succeed("quickly")),
          Tool.make("slow", {
            description: "Takes its time",
            parameters: {},
            handler: (_, { progress }) =>
              Effect.gen(function*() {
                yield* Effect.sleep("1 second")
                yield* progress({ done: 1, of: 2 })
                yield* Effect.sleep("1 second")
                return yield* Effect.fail("no luck")
              })
          })
        ]
      },
      {},
      (talk) =>
        Effect.gen(function*() {
          yield* talk.enter("Go")
          yield* pass(1_200)
          assert.match(talk.screen.text, / ✓ done {7}quick +0\.0 s {2}quickly\n/)
          assert.match(talk.screen.text, /. running {4}slow +1\.\d s {2}██████░░░░░░ 1 of 2$/)

          yield* pass(1_000)
          assert.deepStrictEqual(talk.screen.tail(6), [
            " ✓ done       quick   0.0 s  quickly",
            " ✗ failed     slow    2.0 s  no luck",
            "",
            "Done.",
            "",
            "2.0 s"
          ])
        })
    ))

  it.effect("says that the calls of an answer that was cut off are not run", () =>
    talking(
      {
        scripts: [[Fake.toolCall({ id: "c1", name: "quick", arguments: {} }), Fake.finish("length")]],
        tools: [tool("quick", () => Effect.succeed("quickly"))]
      },
      {},
      (talk) =>
        Effect.gen(function*() {
          yield* talk.enter("Go")
          yield* pass(1_000)
          assert.match(talk.screen.text, / ■ not run +quick/)
          assert.include(talk.screen.text, "cut off: the answer was too long")
        })
    ))

  it.effect("keeps log lines out of the picture", () =>
    talking(
      {
        scripts: [calls("noisy"), text("Done.")],
        tools: [tool("noisy", () => Effect.delay(Effect.succeed(1), "1 second"))],
        prepareStep: () => Effect.logWarning("careful")
      },
      {},
      (talk) =>
        Effect.gen(function*() {
          yield* talk.enter("Go")
          yield* pass(2_000)
          assert.strictEqual(talk.screen.text.match(/^careful$/gm)?.length, 2)
          assert.strictEqual(talk.screen.text.match(/noisy/g)?.length, 1)
        })
    ))

  it.effect("says in a sentence why the model failed, keeps what was said, and tries again at an empty line", () =>
    talking(
      {
        scripts: [[Fake.preflightError("authentication_failed")], text("Here I am.")],
        retry: false
      },
      {},
      (talk) =>
        Effect.gen(function*() {
          yield* talk.enter("Are you there?")
          yield* pass(100)
          assert.include(
            flat(talk),
            "does not accept the key. Check the key, or choose another"
          )
          assert.deepStrictEqual(contents(yield* onlySession), ["Be brief.", "Are you there?"])

          yield* talk.enter("")
          yield* pass(100)
          assert.include(talk.screen.text, "Here I am.")
          assert.deepStrictEqual(contents(yield* onlySession), ["Be brief.", "Are you there?", "Here I am."])
        })
    ))

  it.effect("goes on after a model that failed in the middle of its answer", () =>
    talking(
      {
        scripts: [[Fake.text("I am"), Fake.error("network_error")], text("Here I am.")],
        retry: false
      },
      {},
      (talk) =>
        Effect.gen(function*() {
          yield* talk.enter("Are you there?")
          yield* pass(100)
          assert.include(talk.screen.text, "Check the connection and try again.")
          assert.strictEqual(talk.screen.text.match(/network_error/g)?.length, 1)

          yield* talk.enter("Hello?")
          yield* pass(100)
          assert.include(talk.screen.text, "Here I am.")
        })
    ))
})

describe("Ctrl-C", () => {
  it.effect("stops the turn and its tools, saves what happened, and an empty line goes on", () => {
    let isCleanedUp = false
    return talking(
      {
        scripts: [calls("endless"), text("So be it.")],
        tools: [tool("endless", () =>
          Effect.onInterrupt(Effect.never, () =>
            Effect.sync(() => {
              isCleanedUp = true
            })))]
      },
      {},
      (talk) =>
        Effect.gen(function*() {
          yield* talk.enter("Go")
          yield* pass(1_000)
          yield* talk.interrupt
          assert.isTrue(isCleanedUp)
          assert.match(talk.screen.text, / ■ stopped {4}endless/)
          assert.include(talk.screen.text, "Stopped after 1.")
          assert.isTrue(talk.screen.isCursorVisible)
          assert.isFalse(yield* talk.isOver)
          assert.strictEqual((yield* onlySession).thread.messages.at(1)?.content, "Go")

          yield* talk.enter("")
          yield* pass(100)
          assert.include(talk.screen.text, "So be it.")
        })
    )
  })

  it.effect("leaves with 130 at the prompt right after", () =>
    talking({ script: [Fake.delay("1 hour")] }, {}, (talk) =>
      Effect.gen(function*() {
        yield* talk.enter("Go")
        yield* pass(100)
        yield* talk.interrupt
        yield* talk.interrupt

        assert.strictEqual(yield* talk.code, 130)
      })))

  it.effect("does not wait a second time for a tool that does not stop", () =>
    talking(
      {
        scripts: [calls("stubborn")],
        tools: [Tool.make("stubborn", {
          description: "Does not stop",
          parameters: {},
          timeout: "1 hour",
          handler: () => Effect.uninterruptible(Effect.never)
        })]
      },
      {},
      (talk) =>
        Effect.gen(function*() {
          yield* talk.enter("Go")
          yield* pass(100)
          yield* talk.interrupt
          yield* pass(100)
          assert.match(talk.screen.tail(1)[0]!, /stopping; Ctrl-C again leaves at once/)
          assert.isFalse(yield* talk.isOver)
          yield* talk.interrupt

          assert.strictEqual(yield* talk.code, 130)
          assert.isTrue(talk.screen.isCursorVisible)
        })
    ))

  it.effect("warns at an idle prompt before it leaves, until something is said", () =>
    talking({ scripts: [text("Hello")] }, {}, (talk) =>
      Effect.gen(function*() {
        yield* talk.interrupt
        assert.include(talk.screen.text, "Ctrl-C again leaves.")
        yield* talk.enter("Hi")
        yield* pass(100)
        yield* talk.interrupt
        assert.isFalse(yield* talk.isOver)
        yield* talk.interrupt

        assert.strictEqual(yield* talk.code, 130)
      })))
})

describe("what waits for a person", () => {
  const asking = {
    scripts: [calls("ask"), text("Good choice.")],
    tools: [Tool.make("ask", {
      description: "Asks",
      parameters: {},
      handler: () => ToolResult.askUser("Which colour?", { choices: ["red", "green"] })
    })]
  }

  it.effect("asks a question in place, and takes the number of a choice", () =>
    talking(asking, {}, (talk) =>
      Effect.gen(function*() {
        yield* talk.enter("Go")
        yield* pass(100)
        assert.deepStrictEqual(talk.screen.tail(5), [
          "? ask asks",
          "  Which colour?",
          "    1  red",
          "    2  green",
          "  Write a number, or an answer of your own."
        ])
        yield* talk.enter("2")
        yield* pass(100)

        assert.include(talk.screen.text, "Good choice.")
        assert.strictEqual((yield* onlySession).thread.messages.find(({ role }) => role === "tool")?.content, "green")
      })))

  it.effect("leaves a question open at Ctrl-C, and asks again at /resume", () =>
    talking(asking, {}, (talk) =>
      Effect.gen(function*() {
        yield* talk.enter("Go")
        yield* pass(100)
        yield* talk.interrupt
        assert.include(talk.screen.text, "Left open; /resume asks again")
        assert.strictEqual((yield* onlySession).status, "awaiting_user")

        yield* talk.enter("/resume")
        assert.strictEqual((yield* talk.asked)?.kind, "answer")
        yield* talk.enter("blue")
        yield* pass(100)

        assert.include(talk.screen.text, "Good choice.")
        assert.strictEqual((yield* onlySession).thread.messages.find(({ role }) => role === "tool")?.content, "blue")
      })))

  const approving = (ran: (path: string) => void) => ({
    scripts: [
      [
        Fake.toolCall({ id: "call_0", name: "remove", arguments: { path: "a\nb" } }),
        Fake.finish("tool_calls")
      ] as Fake.Script,
      text("As you like.")
    ],
    tools: [Tool.make("remove", {
      description: "Removes a file",
      parameters: { path: Schema.String },
      needsApproval: true,
      handler: ({ path }) => Effect.sync(() => ran(path))
    })]
  })

  it.effect("runs a call only after a plain yes, and shows what is agreed to in full", () => {
    const removed: Array<string> = []
    return talking(approving((path) => removed.push(path)), {}, (talk) =>
      Effect.gen(function*() {
        yield* talk.enter("Go")
        yield* pass(100)
        assert.deepStrictEqual(talk.screen.tail(2), ["? remove wants to run", "    path: \"a\\nb\""])
        for (const answer of ["", "maybe", "y but only a", "yep", "ok"]) {
          yield* talk.enter(answer)
          assert.strictEqual((yield* talk.asked)?.kind, "answer", answer)
        }
        assert.deepStrictEqual(removed, [])

        yield* talk.enter("y")
        yield* pass(100)
        assert.deepStrictEqual(removed, ["a\nb"])
        assert.include(talk.screen.text, "As you like.")
      }))
  })

  it.effect("tells the model why a call was refused", () => {
    const removed: Array<string> = []
    return talking(approving((path) => removed.push(path)), {}, (talk) =>
      Effect.gen(function*() {
        yield* talk.enter("Go")
        yield* pass(100)
        yield* talk.enter("n it is still needed")
        yield* pass(100)

        assert.deepStrictEqual(removed, [])
        const answered = (yield* onlySession).thread.messages.find(({ role }) => role === "tool")
        assert.include(String(answered?.content), "it is still needed")
        assert.include(talk.screen.text, "As you like.")
      }))
  })

  it.effect("does not run a call whose time to agree is over", () => {
    const removed: Array<string> = []
    return talking(approving((path) => removed.push(path)), {}, (talk) =>
      Effect.gen(function*() {
        yield* talk.enter("Go")
        yield* pass(100)
        yield* TestClock.adjust("25 hours")
        yield* talk.enter("y")
        yield* pass(100)

        assert.include(flat(talk), "The time to agree to this call is over.")
        assert.deepStrictEqual(removed, [])
        assert.include(talk.screen.text, "As you like.")
      }))
  })

  it.effect("takes the results of manual calls, one after the other, also failures", () =>
    talking(
      {
        scripts: [calls("flip", "roll"), text("Thanks.")],
        tools: ["flip", "roll"].map((name) => Tool.make(name, { description: name, parameters: {}, manual: true }))
      },
      {},
      (talk) =>
        Effect.gen(function*() {
          yield* talk.enter("Go")
          yield* pass(100)
          assert.include(talk.screen.text, "? 1 of 2  flip is yours to run")
          yield* talk.enter("heads")
          assert.include(talk.screen.text, "? 2 of 2  roll is yours to run")
          yield* talk.enter("! it fell off the table")
          yield* pass(100)

          const results = (yield* onlySession).thread.messages.flatMap((message) =>
            message.role === "tool" ? [[message.content, message.isError]] : []
          )
          assert.deepStrictEqual(results, [["heads", false], ["it fell off the table", true]])
          assert.include(talk.screen.text, "Thanks.")
        })
    ))

  it.effect("explains a session with an outcome in doubt, and goes on when it is told", () =>
    talking({ scripts: [text("Hi"), text("Good to know.")] }, {}, (talk) =>
      Effect.gen(function*() {
        yield* talk.enter("Hello")
        yield* pass(100)
        const store = yield* SessionStore.SessionStore
        const before = yield* onlySession
        const call = { id: "call_9", name: "pay", arguments: { euros: 5 }, metadata: {} }
        yield* store.save({
          ...before,
          status: "error",
          unknownOutcomes: [call],
          thread: {
            ...before.thread,
            messages: [...before.thread.messages, {
              role: "assistant",
              content: "",
              toolCalls: [call],
              metadata: {}
            }, { role: "tool", toolCallId: "call_9", content: "unknown", isError: true, metadata: {} }]
          }
        })

        yield* talk.enter("/resume")
        assert.include(talk.screen.text, "? Nobody knows what became of pay")
        assert.include(talk.screen.text, "euros: 5")
        yield* talk.enter("it was paid")
        yield* pass(100)

        assert.include(talk.screen.text, "Good to know.")
      })))
})

describe("commands", () => {
  it.effect("names the commands there are when one is unknown, and says what only looks like one", () =>
    talking({ scripts: [text("A path."), text("A slash.")] }, {}, (talk) =>
      Effect.gen(function*() {
        yield* talk.enter("/qit")
        assert.include(
          flat(talk),
          "There is no command /qit. Did you mean /quit? There are /help,"
        )
        yield* talk.enter("/etc/hosts is what?")
        yield* pass(100)
        yield* talk.enter("//quit")
        yield* pass(100)

        assert.deepStrictEqual(contents(yield* onlySession), [
          "Be brief.",
          "/etc/hosts is what?",
          "A path.",
          "/quit",
          "A slash."
        ])
      })))

  it.effect("/tools tells what each tool does and what is special about it", () =>
    talking(
      {
        script: [],
        tools: [
          Tool.make("pay", {
            description: "Pays a bill",
            parameters: { euros: Schema.Number },
            needsApproval: true,
            timeout: "5 seconds",
            exclusive: true,
            handler: () => 1
          }),
          Tool.make("flip", { description: "Flips a coin", parameters: {}, manual: true, replay: "readonly" })
        ]
      },
      {},
      (talk) =>
        Effect.gen(function*() {
          yield* talk.enter("/tools")

          assert.deepStrictEqual(talk.screen.tail(4), [
            "  pay   Pays a bill",
            "        needs your approval, times out after 5s, runs alone",
            "  flip  Flips a coin",
            "        yours to run, only reads"
          ])
        })
    ))

  it.effect("/save gives a title, /new begins anew, /resume shows both and goes back", () =>
    talking({ scripts: [text("One."), text("Two."), text("Three.")] }, {}, (talk) =>
      Effect.gen(function*() {
        yield* talk.enter("/save")
        assert.include(talk.screen.text, "Nothing has been said yet")
        yield* talk.enter("First")
        yield* pass(100)
        yield* talk.enter("/save My talk")
        assert.include(talk.screen.text, "Saved as \"My talk\"")
        yield* talk.enter("/new")
        yield* talk.enter("Second")
        yield* pass(100)
        yield* talk.enter("/resume")
        assert.match(talk.screen.tail(1)[0]!, /^ {2}1 {2}My talk {2}\(.*, just now\)$/)

        yield* talk.enter("1")
        yield* talk.enter("Third")
        yield* pass(100)
        const store = yield* SessionStore.SessionStore
        const { sessions } = yield* store.list()
        const all = yield* Effect.forEach(sessions, ({ id }) => store.load(id))
        assert.deepStrictEqual(all.map((session) => contents(session).slice(1)).sort(), [
          ["First", "One.", "Third", "Three."],
          ["Second", "Two."]
        ])
      })))

  it.effect("/quit leaves with 0 and tells how to come back", () =>
    talking({ scripts: [text("Hello")] }, {}, (talk) =>
      Effect.gen(function*() {
        yield* talk.enter("Hi")
        yield* pass(100)
        yield* talk.enter("/quit")

        assert.strictEqual(yield* talk.code, 0)
        assert.match(talk.screen.text, /\nTo come back:\n {2}allm chat --session \S+$/)
      })))
})

describe("the beginning", () => {
  it.effect("says what the command line says, then the person goes on", () =>
    talking({ scripts: [text("Hello")] }, { message: "Hi there" }, (talk) =>
      Effect.gen(function*() {
        yield* pass(100)
        assert.include(talk.screen.text, "\n› Hi there\n\nHello\n")
        yield* talk.end

        assert.strictEqual(yield* talk.code, 0)
      })))

  it.effect("shows suggestions and a demonstration when the embedded model is all there is", () =>
    talking(
      { scripts: [text("Look.")] },
      { prompt: "Show me", suggestions: ["Ask me"] },
      (talk) =>
        Effect.gen(function*() {
          yield* pass(100)
          assert.include(talk.screen.text, "No key was found")
          assert.include(talk.screen.text, "\n  Ask me\n")
          assert.include(talk.screen.text, "\n› Show me\n\nLook.\n")
        })
    ))
})

describe("a session that is gone on with", () => {
  const stored = (fields: Partial<Session.Session>) =>
    Effect.gen(function*() {
      const store = yield* SessionStore.SessionStore
      yield* store.save(Session.make({
        id: "20261118-120000-abcd",
        thread: Thread.make([Message.user("What is the weather?")]),
        ...fields
      }))
    })

  it.effect("explains that its turn was cut off, and goes on at an empty line", () =>
    talking(
      { scripts: [text("Sunny.")] },
      { prepare: stored({}), sessionId: "20261118-120000-abcd" },
      (talk) =>
        Effect.gen(function*() {
          assert.include(talk.screen.text, "› What is the weather?")
          assert.include(talk.screen.text, "Its last turn was cut off; an empty line goes on")
          yield* talk.enter("")
          yield* pass(100)

          assert.include(talk.screen.text, "Sunny.")
        })
    ))

  it.effect("runs the calls that were cut off before it says anything new", () =>
    talking(
      {
        scripts: [text("It is sunny."), text("You are welcome.")],
        tools: [tool("look", () => Effect.succeed("sun"))]
      },
      {
        sessionId: "20261118-120000-abcd",
        prepare: stored({
          thread: Thread.make([
            Message.user("What is the weather?"),
            Message.assistant("", { toolCalls: [{ id: "call_0", name: "look", arguments: {}, metadata: {} }] })
          ])
        })
      },
      (talk) =>
        Effect.gen(function*() {
          yield* talk.enter("Thank you")
          yield* pass(100)

          assert.deepStrictEqual(contents(yield* onlySession), [
            "What is the weather?",
            "",
            "sun",
            "It is sunny.",
            "Thank you",
            "You are welcome."
          ])
        })
    ))

  const question = { toolCallId: "call_0", toolName: "ask", question: "Where?", options: {} }
  const asked = stored({
    status: "awaiting_user",
    pendingQuestions: [question],
    thread: Thread.make([
      Message.user("What is the weather?"),
      Message.assistant("", { toolCalls: [{ id: "call_0", name: "ask", arguments: {}, metadata: {} }] }),
      Message.tool("call_0", "<awaiting user response>")
    ])
  })

  it.effect("asks what it waits for", () =>
    talking(
      { scripts: [text("Sunny in Oslo.")] },
      { prepare: asked, sessionId: "20261118-120000-abcd" },
      (talk) =>
        Effect.gen(function*() {
          assert.include(talk.screen.text, "It was left waiting for you: 1 thing to answer.")
          assert.include(talk.screen.text, "? ask asks")
          yield* talk.enter("Oslo")
          yield* pass(100)

          assert.include(talk.screen.text, "Sunny in Oslo.")
        })
    ))

  it.effect("takes the message of the command line for the answer to its question", () =>
    talking(
      { scripts: [text("Sunny in Oslo.")] },
      { prepare: asked, sessionId: "20261118-120000-abcd", message: "In Oslo", isPlain: true, piped: [] },
      (talk) =>
        Effect.gen(function*() {
          yield* pass(200)

          assert.strictEqual(yield* talk.code, 0)
          assert.include(talk.writes.join(""), "Sunny in Oslo.")
        })
    ))

  it.effect("keeps what was said while something else waits, until that is answered", () =>
    talking(
      { scripts: [text("Paid."), text("Yes.")], tools: [tool("pay", () => Effect.succeed("done"))] },
      {
        sessionId: "20261118-120000-abcd",
        prepare: Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const toolCall = { id: "call_0", name: "pay", arguments: {}, metadata: {} }
          return stored({
            status: "awaiting_approval",
            pendingApprovals: [{ toolCall, digest: Session.digest(toolCall), requestedAt: now }],
            thread: Thread.make([Message.user("Pay"), Message.assistant("", { toolCalls: [toolCall] })])
          })
        })
      },
      (talk) =>
        Effect.gen(function*() {
          yield* talk.interrupt
          yield* talk.enter("Is it paid?")
          assert.include(talk.screen.text, "Something waits for you first")
          yield* talk.interrupt
          assert.strictEqual((yield* talk.asked)?.draft, "Is it paid?")

          yield* talk.enter("Is it paid?")
          yield* talk.enter("y")
          yield* pass(100)
          assert.deepStrictEqual(contents(yield* onlySession), ["Pay", "", "done", "Paid.", "Is it paid?", "Yes."])
        })
    ))

  it.effect("does not run a call that was agreed to too long ago", () => {
    let hasPaid = false
    return talking(
      {
        scripts: [text("Not paid.")],
        tools: [tool("pay", () =>
          Effect.sync(() => {
            hasPaid = true
          }))]
      },
      {
        sessionId: "20261118-120000-abcd",
        prepare: Effect.suspend(() => {
          const toolCall = { id: "call_0", name: "pay", arguments: {}, metadata: {} }
          const digest = Session.digest(toolCall)
          return stored({
            pendingApprovals: [
              { toolCall, digest, requestedAt: 0, expiresAt: 10, decision: { _tag: "Approved", digest } }
            ],
            thread: Thread.make([Message.user("Pay"), Message.assistant("", { toolCalls: [toolCall] })])
          })
        })
      },
      (talk) =>
        Effect.gen(function*() {
          yield* talk.enter("")
          yield* pass(100)

          assert.include(flat(talk), "A call you agreed to is not run: the time to agree to it was over.")
          assert.include(talk.screen.text, "Not paid.")
          assert.isFalse(hasPaid)
        })
    )
  })

  it.effect("goes on at an empty line when a limit ended the turn", () =>
    talking(
      {
        scripts: [calls("look"), text("Sunny.")],
        maxTurns: 1,
        tools: [tool("look", () => Effect.succeed("sun"))]
      },
      {},
      (talk) =>
        Effect.gen(function*() {
          yield* talk.enter("Weather?")
          yield* pass(100)
          assert.include(flat(talk), "the limit of model calls was reached, an empty line goes on")
          yield* talk.enter("")
          yield* pass(100)

          assert.include(talk.screen.text, "Sunny.")
        })
    ))
})

describe("plain output", () => {
  const asking = {
    scripts: [calls("ask"), text("Good choice.")],
    tools: [
      Tool.make("ask", { description: "Asks", parameters: {}, handler: () => ToolResult.askUser("Which colour?") })
    ]
  }

  it.effect("has no escape codes, streams text, and gives each call two lines", () =>
    talking(
      {
        scripts: [[Fake.text("Let me "), Fake.text("see."), ...calls("look")], text("Found it.")],
        tools: [tool("look", () => Effect.delay(Effect.succeed("a \u001b[31mred\u001b[0m thing"), "400 millis"))]
      },
      { isPlain: true, piped: ["Look"] },
      (talk) =>
        Effect.gen(function*() {
          yield* pass(1_000)

          assert.strictEqual(yield* talk.code, 0)
          assert.deepStrictEqual(talk.writes.join("").split("\n").slice(1, 5), [
            "Let me see.",
            "> look started",
            "+ look done 0.4 s: a red thing",
            "Found it."
          ])
          assert.notInclude(talk.writes.join(""), "\u001b")
        })
    ))

  it.effect("answers what is asked with the next line", () =>
    talking(asking, { isPlain: true, piped: ["Go", "green"] }, (talk) =>
      Effect.gen(function*() {
        yield* pass(200)

        assert.strictEqual(yield* talk.code, 0)
        assert.include(talk.writes.join(""), "Good choice.")
      })))

  it.effect("leaves with 3 when there is no line for what is asked, and tells how to go on", () =>
    talking(asking, { isPlain: true, piped: ["Go"] }, (talk) =>
      Effect.gen(function*() {
        yield* pass(200)

        assert.strictEqual(yield* talk.code, 3)
        assert.match(talk.writes.at(-1)!, /^1 thing left to answer\. To come back:\n {2}allm chat --session \S+\n$/)
        assert.strictEqual((yield* onlySession).status, "awaiting_user")
      })))

  it.effect("leaves with 1 when a turn failed", () =>
    talking(
      { scripts: [[Fake.preflightError("network_error")]], retry: false },
      { isPlain: true, piped: ["Go"] },
      (talk) =>
        Effect.gen(function*() {
          yield* pass(200)

          assert.strictEqual(yield* talk.code, 1)
        })
    ))

  it.effect("gives the demonstration when nothing is piped in", () =>
    talking(
      { scripts: [text("Look.")] },
      { isPlain: true, piped: [], prompt: "Show me" },
      (talk) =>
        Effect.gen(function*() {
          yield* pass(200)

          assert.strictEqual(yield* talk.code, 0)
          assert.include(talk.writes.join(""), "› Show me\nLook.\n")
        })
    ))
})
