import { Fake, Message, Session, Tool, ToolCall, ToolJournal, ToolResult } from "@allm/core"
import { NodeContext } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Schema, Stream } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const says = (text: string): Fake.Script => [Fake.text(text), Fake.finish("stop")]
const asks = (...calls: ReadonlyArray<Fake.Entry>): Fake.Script => [...calls, Fake.finish("tool_calls")]
const model = (...scripts: ReadonlyArray<Fake.Script>) => Effect.provide(Fake.engine({ scripts }))

const throughJson = (session: Session.Session): Session.Session =>
  Schema.decodeUnknownSync(Session.Session)(JSON.parse(JSON.stringify(Schema.encodeSync(Session.Session)(session))))

const results = ({ thread }: Session.Session) =>
  thread.messages.flatMap((message) => message.role === "tool" ? [message.content] : [])

const unknown = (name: string) => `{"error":"tool error (${name}): outcome_unknown"}`

/** What is stored of a session whose model asked for these calls, when its process died. */
const crashed = (...names: ReadonlyArray<string>) =>
  throughJson(Session.make({
    id: "s",
    thread: {
      messages: [
        Message.user("Do it"),
        Message.assistant("", {
          toolCalls: names.map((name, index) => ToolCall.make({ id: `c${index}`, name, arguments: { index } }))
        })
      ],
      metadata: {}
    }
  }))

/** Tools that note their runs. One that hangs is where the process dies. */
class World {
  readonly runs: Array<string> = []
  private readonly begun = Effect.runSync(Deferred.make<void>())

  tool(name: string, options: { readonly replay?: Tool.Replay; readonly isHanging?: boolean } = {}) {
    return Tool.make(name, {
      description: "Notes its runs",
      replay: options.replay ?? "never",
      handler: (_params, context) => {
        this.runs.push(context.idempotencyKey)
        return options.isHanging === true
          ? Effect.zipRight(Deferred.succeed(this.begun, undefined), Effect.never)
          : Effect.succeed(`${name} done`)
      }
    })
  }

  /** Goes on until the hanging tool has begun, which is the last one, and dies. */
  die(session: Session.Session, tools: ReadonlyArray<Tool.Any>) {
    return Effect.gen(this, function*() {
      const fiber = yield* Effect.fork(
        Session.continue(session, { tools: tools as ReadonlyArray<never>, concurrency: 1 })
      )
      yield* Deferred.await(this.begun)
      yield* Fiber.interrupt(fiber)
    }).pipe(model())
  }
}

const files = Layer.unwrapScoped(
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "allm-journal-"))),
      (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
    ),
    (directory) => ToolJournal.layerFileSystem(directory)
  )
).pipe(Layer.provide(NodeContext.layer), Layer.orDie)

describe.each([["memory", ToolJournal.layerMemory], ["files", files]] as const)(
  "A session with a journal in %s, after a crash",
  (_name, journal) => {
    it.live("tells the model what is done, and what nobody knows", () =>
      Effect.gen(function*() {
        const world = new World()
        const session = crashed("mail", "pay")
        yield* world.die(session, [world.tool("mail"), world.tool("pay", { isHanging: true })])
        const tools = [world.tool("mail"), world.tool("pay")]
        const end = yield* Session.continue(session, { tools }).pipe(model(says("ok")))

        assert.deepStrictEqual(world.runs, ["s/c0", "s/c1"])
        assert.strictEqual(end.session.status, "completed")
        assert.deepStrictEqual(results(end.session), ["mail done", unknown("pay")])
        assert.deepStrictEqual(end.session.unknownOutcomes, [])
      }).pipe(Effect.provide(journal)))

    it.live.each(["readonly", "idempotent"] as const)(
      "runs a call again whose tool is %s, with the same key",
      (replay) =>
        Effect.gen(function*() {
          const world = new World()
          const session = crashed("pay")
          yield* world.die(session, [world.tool("pay", { replay, isHanging: true })])
          const end = yield* Session.continue(session, { tools: [world.tool("pay", { replay })] }).pipe(
            model(says("ok"))
          )

          assert.deepStrictEqual(world.runs, ["s/c0", "s/c0"])
          assert.deepStrictEqual(results(end.session), ["pay done"])
        }).pipe(Effect.provide(journal))
    )

    it.live("waits for a person where the policy says so, and goes on with their word", () =>
      Effect.gen(function*() {
        const world = new World()
        const session = crashed("mail", "pay")
        yield* world.die(session, [world.tool("mail"), world.tool("pay", { isHanging: true })])
        const tools = [world.tool("mail"), world.tool("pay")]
        const resumed = Session.continue(session, { tools, onToolError: "halt" })
        const halted = yield* resumed.pipe(model())
        // Dying again before anything is saved changes nothing.
        const again = yield* resumed.pipe(model())
        assert.deepStrictEqual(again.session, halted.session)

        const waiting = throughJson(halted.session)
        const refused = yield* Effect.flip(Effect.asVoid(Session.reply(waiting, "and?"))).pipe(model())
        const resolved = throughJson(yield* Session.resolve(waiting, "c1", { paid: 5 }))
        const end = yield* Session.continue(resolved, { tools }).pipe(model(says("ok")))

        assert.strictEqual(waiting.status, "error")
        assert.deepStrictEqual(waiting.unknownOutcomes.map(({ id }) => id), ["c1"])
        assert.match(refused.message, /Session\.resolve\(session, "c1", result\)/)
        assert.strictEqual(resolved.status, "idle")
        assert.deepStrictEqual(results(end.session), ["mail done", "{\"paid\":5}"])
        assert.strictEqual(end.session.status, "completed")
        assert.deepStrictEqual(world.runs, ["s/c0", "s/c1"])
      }).pipe(Effect.provide(journal)))

    it.live("gives finished calls their results again, and tells the same events", () =>
      Effect.gen(function*() {
        const world = new World()
        const session = crashed("mail", "pay")
        const tools = [world.tool("mail"), world.tool("pay")]
        const lost = yield* Session.continue(session, { tools, requestId: "r" }).pipe(model(says("ok")))
        const turn = Session.streamContinue(session, { tools, requestId: "r" })
        const events = Array.from(yield* Stream.runCollect(turn.events).pipe(model(says("ok"))))
        const { session: end } = yield* turn.outcome

        assert.deepStrictEqual(end, lost.session)
        assert.deepStrictEqual([...world.runs].sort(), ["s/c0", "s/c1"])
        assert.deepStrictEqual(
          events.flatMap((event) => event._tag === "ToolExecutionCompleted" ? [event.toolCallId] : []).sort(),
          ["c0", "c1"]
        )
      }).pipe(Effect.provide(journal)))

    it.live("asks a question again without asking the tool", () =>
      Effect.gen(function*() {
        let runs = 0
        const ask = Tool.make("ask", {
          description: "Asks",
          handler: () => {
            runs++
            return ToolResult.askUser("Where?", { choices: ["Oslo"] })
          }
        })
        const session = crashed("ask")
        const lost = yield* Session.continue(session, { tools: [ask] }).pipe(model())
        const again = yield* Session.continue(session, { tools: [ask] }).pipe(model())
        const answered = yield* Session.answer(throughJson(again.session), "c0", "Oslo")
        const end = yield* Session.continue(answered, { tools: [ask] }).pipe(model(says("ok")))

        assert.strictEqual(runs, 1)
        assert.deepStrictEqual(again.session, lost.session)
        assert.strictEqual(again.session.status, "awaiting_user")
        assert.deepStrictEqual(results(end.session), ["Oslo"])
      }).pipe(Effect.provide(journal)))

    it.live("does not use consent twice", () =>
      Effect.gen(function*() {
        let runs = 0
        const begun = yield* Deferred.make<void>()
        const pay = (end: Effect.Effect<string>) =>
          Tool.make("pay", {
            description: "Pays",
            needsApproval: true,
            handler: () => {
              runs++
              return Effect.zipRight(Deferred.succeed(begun, undefined), end)
            }
          })
        const waiting = yield* Session.continue(crashed("pay"), { tools: [pay(Effect.never)] }).pipe(model())
        const approved = throughJson(yield* Session.approve(waiting.session, "c0"))
        const fiber = yield* Effect.fork(
          Session.continue(approved, { tools: [pay(Effect.never)] }).pipe(model())
        )
        yield* Deferred.await(begun)
        yield* Fiber.interrupt(fiber)
        const tools = [pay(Effect.succeed("paid"))]
        const end = yield* Session.continue(approved, { tools }).pipe(model(says("ok")))

        assert.strictEqual(waiting.session.status, "awaiting_approval")
        assert.strictEqual(runs, 1)
        assert.deepStrictEqual(results(end.session), [unknown("pay")])
        assert.deepStrictEqual(end.session.pendingApprovals, [])
      }).pipe(Effect.provide(journal)))

    it.live("keeps sessions apart, and takes an id again once the call before is forgotten", () =>
      Effect.gen(function*() {
        const world = new World()
        const tools = [world.tool("pay")]
        const notes = yield* ToolJournal.ToolJournal
        const twice = (id: string) =>
          Session.start("hi", { tools, sessionId: id }).pipe(
            model(asks(Fake.toolCall({ id: "c0", name: "pay", arguments: {} })), says("ok"))
          )
        yield* twice("one")
        yield* twice("two")
        yield* notes.compact("one")
        yield* twice("one")

        assert.deepStrictEqual(world.runs, ["one/c0", "two/c0", "one/c0"])
      }).pipe(Effect.provide(journal)))
  }
)

describe("A session with a journal that fails", () => {
  const broken = (operation: "prepare" | "settle") =>
    new ToolJournal.JournalError({ reason: "unavailable", operation, sessionId: "s", detail: "the disk is full" })

  it.effect("does not start the call that was not noted, and is whole", () =>
    Effect.gen(function*() {
      const world = new World()
      const tools = [world.tool("mail"), world.tool("pay")]
      const journal = yield* ToolJournal.ToolJournal
      const { session } = yield* Session.continue(crashed("mail", "pay"), { tools }).pipe(
        model(says("ok")),
        Effect.provideService(ToolJournal.ToolJournal, {
          ...journal,
          prepare: (key, asked) => key.toolCallId === "c1" ? broken("prepare") : journal.prepare(key, asked)
        })
      )

      assert.deepStrictEqual(world.runs, ["s/c0"])
      assert.strictEqual(session.status, "completed")
      assert.strictEqual(results(session)[0], "mail done")
      assert.match(results(session)[1]!, /skipped/)
    }).pipe(Effect.provide(ToolJournal.layerMemory)))

  it.effect("keeps the result that was not noted, and is in doubt about it only after a crash", () =>
    Effect.gen(function*() {
      const world = new World()
      const tools = [world.tool("pay")]
      const journal = yield* ToolJournal.ToolJournal
      const { session } = yield* Session.continue(crashed("pay"), { tools }).pipe(
        model(says("ok")),
        Effect.provideService(ToolJournal.ToolJournal, { ...journal, settle: () => broken("settle") })
      )
      const again = yield* Session.continue(crashed("pay"), { tools }).pipe(model(says("ok")))

      assert.deepStrictEqual(results(session), ["pay done"])
      assert.deepStrictEqual(results(again.session), [unknown("pay")])
      assert.deepStrictEqual(world.runs, ["s/c0"])
    }).pipe(Effect.provide(ToolJournal.layerMemory)))
})
