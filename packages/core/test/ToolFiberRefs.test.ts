import { OnToolError, Tool, ToolCall, ToolContext, ToolResult, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import {
  Clock,
  Config,
  ConfigProvider,
  Context,
  Effect,
  Fiber,
  FiberRef,
  HashMap,
  Logger,
  LogLevel,
  Stream,
  TestClock
} from "effect"

const call = (id: string, name: string, args: unknown = {}) => ToolCall.make({ id, name, arguments: args })

const tenant = FiberRef.unsafeMake("nobody")

// Keeps what every fiber added, whoever is joined first.
const visits = FiberRef.unsafeMake<ReadonlyArray<string>>([], {
  join: (mine, theirs) => [...mine, ...theirs.filter((visit) => !mine.includes(visit))]
})

const visit = (name: string) => FiberRef.update(visits, (seen) => [...seen, name])

const readTenant = Tool.make("read_tenant", { description: "Reads", handler: () => FiberRef.get(tenant) })

const contentsOf = (result: ToolRunner.RunResult) => result.messages.map((message) => message.content)

class Greeting extends Context.Tag("Greeting")<Greeting, string>() {}

interface Line {
  readonly message: unknown
  readonly level: string
  readonly annotations: Record<string, unknown>
}

const collecting = (lines: Array<Line>) =>
  Logger.add(Logger.make(({ annotations, logLevel, message }) => {
    lines.push({ message, level: logLevel.label, annotations: Object.fromEntries(HashMap.toEntries(annotations)) })
  }))

describe("ToolRunner: FiberRefs", () => {
  describe("a handler sees the caller's", () => {
    it.effect("FiberRefs", () =>
      Effect.gen(function*() {
        const result = yield* Effect.locally(
          ToolRunner.run([call("c0", "read_tenant")], [readTenant]),
          tenant,
          "acme"
        )

        assert.deepStrictEqual(contentsOf(result), ["acme"])
      }))

    it.effect("FiberRefs, when it is streamed", () =>
      Effect.gen(function*() {
        const events = yield* Effect.locally(
          Stream.runCollect(ToolRunner.stream([call("c0", "read_tenant")], [readTenant])),
          tenant,
          "acme"
        )

        assert.deepStrictEqual(contentsOf(ToolRunner.fold([call("c0", "read_tenant")], events)), ["acme"])
      }))

    it.effect("FiberRefs, not those of a sibling that was before it", () =>
      Effect.gen(function*() {
        const move = Tool.make("move", { description: "Moves", handler: () => FiberRef.set(tenant, "moved") })
        const result = yield* ToolRunner.run([call("c0", "move"), call("c1", "read_tenant")], [move, readTenant], {
          concurrency: 1
        })

        assert.strictEqual(contentsOf(result)[1], "nobody")
      }))

    it.effect("services", () =>
      Effect.gen(function*() {
        const greet = Tool.make("greet", {
          description: "Greets",
          handler: () =>
            Effect.gen(function*() {
              const { toolCall } = yield* ToolContext.ToolContext
              return `${yield* Greeting}, ${toolCall.id}`
            })
        })
        const result = yield* Effect.provideService(
          ToolRunner.run([call("c0", "greet"), call("c1", "greet")], [greet]),
          Greeting,
          "good morning"
        )

        assert.deepStrictEqual(contentsOf(result), ["good morning, c0", "good morning, c1"])
      }))

    it.effect("Clock and ConfigProvider", () =>
      Effect.gen(function*() {
        const look = Tool.make("look", {
          description: "Looks around",
          handler: () => Effect.all([Clock.currentTimeMillis, Effect.orDie(Config.string("REGION"))])
        })
        yield* TestClock.setTime(1234)
        const result = yield* Effect.withConfigProvider(
          ToolRunner.run([call("c0", "look")], [look]),
          ConfigProvider.fromMap(new Map([["REGION", "north"]]))
        )

        assert.deepStrictEqual(contentsOf(result), ["[1234,\"north\"]"])
      }))

    it.effect("span", () =>
      Effect.gen(function*() {
        const span = Tool.make("span", {
          description: "Names its span",
          handler: () => Effect.map(Effect.orDie(Effect.currentSpan), ({ name }) => name)
        })
        const result = yield* Effect.withSpan(ToolRunner.run([call("c0", "span")], [span]), "caller")

        assert.deepStrictEqual(contentsOf(result), ["caller"])
      }))

    it.effect("loggers and log level", () =>
      Effect.gen(function*() {
        const lines: Array<Line> = []
        const talk = Tool.make("talk", {
          description: "Logs",
          handler: () => Effect.zipRight(Effect.logTrace("quiet"), Effect.logDebug("loud"))
        })
        yield* ToolRunner.run([call("c0", "talk")], [talk]).pipe(
          Logger.withMinimumLogLevel(LogLevel.Debug),
          Effect.provide(collecting(lines))
        )

        assert.deepStrictEqual(lines.map(({ level, message }) => [level, message]), [["DEBUG", ["loud"]]])
      }))

    it.effect("log annotations, and adds the ids", () =>
      Effect.gen(function*() {
        const lines: Array<Line> = []
        const talk = Tool.make("talk", { description: "Logs", handler: () => Effect.log("here") })
        yield* ToolRunner.run([call("c0", "talk")], [talk], { sessionId: "s1", requestId: "r1" }).pipe(
          Effect.annotateLogs("user", "u1"),
          Effect.provide(collecting(lines))
        )

        assert.deepStrictEqual(lines.map(({ annotations }) => annotations), [
          { user: "u1", sessionId: "s1", requestId: "r1", toolName: "talk", toolCallId: "c0" }
        ])
      }))

    it.effect("log annotations with the ids of its own call, under concurrency", () =>
      Effect.gen(function*() {
        const lines: Array<Line> = []
        const talk = Tool.make("talk", {
          description: "Logs",
          handler: (_, { toolCall }) => Effect.zipRight(Effect.yieldNow(), Effect.log(toolCall.id))
        })
        yield* ToolRunner.run([call("c0", "talk"), call("c1", "talk"), call("c2", "talk")], [talk]).pipe(
          Effect.provide(collecting(lines))
        )

        assert.deepStrictEqual(lines.map(({ annotations, message }) => ({ message, annotations })), [
          { message: ["c0"], annotations: { toolName: "talk", toolCallId: "c0" } },
          { message: ["c1"], annotations: { toolName: "talk", toolCallId: "c1" } },
          { message: ["c2"], annotations: { toolName: "talk", toolCallId: "c2" } }
        ])
      }))
  })

  it.effect("a policy function sees the caller's FiberRefs too", () =>
    Effect.gen(function*() {
      const failing = Tool.make("failing", { description: "Fails", handler: () => Effect.fail("no") })
      const result = yield* ToolRunner.run([call("c0", "failing")], [failing], {
        onToolError: () => Effect.map(FiberRef.get(tenant), OnToolError.continueWith)
      }).pipe(Effect.locally(tenant, "acme"))

      assert.deepStrictEqual(contentsOf(result), ["acme"])
    }))

  describe("what a call changed", () => {
    it.effect("is joined when it succeeded at once", () =>
      Effect.gen(function*() {
        const move = Tool.make("move", { description: "Moves", handler: () => FiberRef.set(tenant, "moved") })
        yield* ToolRunner.run([call("c0", "move")], [move])

        assert.strictEqual(yield* FiberRef.get(tenant), "moved")
      }))

    it.effect("is joined when it succeeded later", () =>
      Effect.gen(function*() {
        const move = Tool.make("move", {
          description: "Moves",
          handler: () => Effect.zipRight(Effect.yieldNow(), FiberRef.set(tenant, "moved"))
        })
        yield* ToolRunner.run([call("c0", "move")], [move])

        assert.strictEqual(yield* FiberRef.get(tenant), "moved")
      }))

    it.effect("is joined from every call, by the rule of the FiberRef", () =>
      Effect.gen(function*() {
        const note = Tool.make("note", {
          description: "Leaves a note",
          handler: (_, { toolCall }) => Effect.zipRight(Effect.yieldNow(), visit(toolCall.id))
        })
        yield* visit("caller")
        yield* ToolRunner.run([call("c0", "note"), call("c1", "note"), call("c2", "note")], [note])

        assert.deepStrictEqual(yield* FiberRef.get(visits), ["caller", "c0", "c1", "c2"])
      }))

    it.effect("is joined when it asked or halted", () =>
      Effect.gen(function*() {
        const ask = Tool.make("ask", {
          description: "Asks",
          handler: () => Effect.as(visit("ask"), ToolResult.askUser("Which?"))
        })
        const halt = Tool.make("halt", {
          description: "Halts",
          handler: () => Effect.as(visit("halt"), ToolResult.halt("enough", null))
        })
        yield* ToolRunner.run([call("c0", "ask"), call("c1", "halt")], [ask, halt])

        assert.deepStrictEqual(yield* FiberRef.get(visits), ["ask", "halt"])
      }))

    it.effect("is dropped when it failed, crashed or ran out of time", () =>
      Effect.gen(function*() {
        const ends = <A, E>(name: string, how: Effect.Effect<A, E>) =>
          Tool.make(name, { description: "Moves", handler: () => Effect.zipRight(visit(name), how) })
        const fiber = yield* ToolRunner.run(
          [call("c0", "failed"), call("c1", "died"), call("c2", "late")],
          [ends("failed", Effect.fail("no")), ends("died", Effect.die("boom")), ends("late", Effect.never)],
          { toolTimeout: 50 }
        ).pipe(Effect.zipRight(FiberRef.get(visits)), Effect.fork)
        yield* TestClock.adjust("50 millis")

        assert.deepStrictEqual(yield* Fiber.join(fiber), [])
      }))

    it.effect("for a part of it only does not leak", () =>
      Effect.gen(function*() {
        const local = Tool.make("local", {
          description: "Changes something for a while",
          handler: () =>
            Effect.zipRight(Effect.yieldNow(), FiberRef.get(tenant)).pipe(
              Effect.locally(tenant, "local"),
              Effect.annotateLogs("secret", "s"),
              Logger.withMinimumLogLevel(LogLevel.None),
              Effect.withSpan("inner")
            )
        })
        const before = yield* Effect.getFiberRefs
        const result = yield* ToolRunner.run([call("c0", "local")], [local])
        const after = yield* Effect.getFiberRefs

        assert.deepStrictEqual(contentsOf(result), ["local"])
        assert.strictEqual(yield* FiberRef.get(tenant), "nobody")
        for (const [ref, [[, value]]] of before.locals) assert.strictEqual(after.locals.get(ref)?.[0][1], value)
      }))

    it.effect("does not carry the call's ids into the caller's log lines", () =>
      Effect.gen(function*() {
        const annotate = Tool.make("annotate", {
          description: "Annotates for good",
          handler: () => FiberRef.update(FiberRef.currentLogAnnotations, HashMap.set<string, unknown>("found", "it"))
        })
        yield* ToolRunner.run([call("c0", "annotate")], [annotate], { sessionId: "s1" })
        const annotations = yield* FiberRef.get(FiberRef.currentLogAnnotations)

        assert.deepStrictEqual(Object.fromEntries(HashMap.toEntries(annotations)), { found: "it" })
      }))
  })

  describe("under a caller that cannot be interrupted", () => {
    it.effect("tools are timed out and really stopped", () =>
      Effect.gen(function*() {
        let stopped = 0
        const waits = Tool.make("waits", {
          description: "Waits",
          handler: () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => stopped++))
        })
        const fiber = yield* ToolRunner.run([call("c0", "waits"), call("c1", "waits")], [waits], { toolTimeout: 50 })
          .pipe(Effect.uninterruptible, Effect.fork)
        yield* TestClock.adjust("50 millis")
        const { outcomes } = yield* Fiber.join(fiber)

        assert.strictEqual(stopped, 2)
        assert.deepStrictEqual(
          outcomes.map(({ result }) => result._tag === "Timeout" ? result.abandoned : result._tag),
          [false, false]
        )
      }))

    it.effect("siblings of a halt are stopped", () =>
      Effect.gen(function*() {
        const waits = Tool.make("waits", { description: "Waits", handler: () => Effect.never })
        const halt = Tool.make("halt", { description: "Halts", handler: () => ToolResult.halt("enough", null) })
        const { outcomes } = yield* ToolRunner.run([call("c0", "waits"), call("c1", "halt")], [waits, halt], {
          siblings: "interrupt"
        }).pipe(Effect.uninterruptible)

        assert.deepStrictEqual(outcomes.map(({ result }) => result._tag), ["Interrupted", "Halt"])
      }))
  })
})
