import { Fake, Message, Session, SessionStore, Tool, ToolCall, ToolJournal } from "@allm/core"
import { SqlSessionStore, SqlToolJournal } from "@allm/sql"
import { SqlClient } from "@effect/sql"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Logger } from "effect"
import { Fault } from "./faulty.ts"
import { type Client, places } from "./places.ts"

const { all, stop } = await places()
afterAll(stop)

const names = ["pay", "mail", "book"]

const calls = names.map((name, index) => ToolCall.make({ id: `c${index}`, name, arguments: { index } }))

/** The model has asked for calls, and none of them has run. */
const asked = (id: string) =>
  Session.make({
    id,
    thread: { messages: [Message.user("Do it"), Message.assistant("", { toolCalls: calls })], metadata: {} }
  })

/** Tools that count their runs. Each engine has one answer of the model. */
class World {
  readonly runs: Array<string> = []

  readonly countOf = (name: string) => this.runs.filter((run) => run === name).length

  readonly engine = (handler: (name: string) => Effect.Effect<string> = (name) => Effect.succeed(`${name} done`)) =>
    Fake.engine({
      script: [Fake.text("All done"), Fake.finish("stop")],
      tools: names.map((name) =>
        Tool.make(name, {
          description: "Counts its runs",
          handler: () =>
            Effect.suspend(() => {
              this.runs.push(name)
              return handler(name)
            })
        })
      )
    })
}

/** As another process would, with nothing remembered. */
const opened = (client: Client) =>
  Effect.map(
    Layer.build(Layer.provideMerge(Layer.merge(SqlSessionStore.layer, SqlToolJournal.layer), client)),
    (context) => ({
      store: Context.get(context, SessionStore.SessionStore),
      journal: Context.get(context, ToolJournal.ToolJournal),
      sql: Context.get(context, SqlClient.SqlClient)
    })
  )

const goOn = (
  session: Session.Session,
  journal: Context.Tag.Service<ToolJournal.ToolJournal>,
  engine: ReturnType<World["engine"]>,
  options: Session.Options = {}
) =>
  Session.continue(session, options).pipe(
    Effect.provide(engine),
    Effect.provideService(ToolJournal.ToolJournal, journal),
    // What could not be noted is told to the operator, at length.
    Effect.provide(Logger.remove(Logger.defaultLogger)),
    Effect.map(({ session }) => session)
  )

const contents = ({ thread }: Session.Session) =>
  thread.messages.flatMap((message) => message.role === "tool" ? [message.content] : [])

const answered = ({ thread }: Session.Session) =>
  thread.messages.flatMap((message) => message.role === "tool" ? [message.toolCallId] : [])

const done = names.map((name) => `${name} done`)

for (const { database, make, name } of all) {
  if (typeof make === "string") {
    it.skip(`A session on ${name}: ${make}`, () => {})
    continue
  }

  describe(`A session on ${name}`, { timeout: 30_000 }, () => {
    it.scopedLive("that could not be saved is saved later, or worked out again by another process, and runs once", () =>
      Effect.gen(function*() {
        const { client, faulty } = yield* database
        const fault = new Fault()
        const world = new World()
        const one = yield* opened(yield* faulty(fault))
        const saved = yield* one.store.save(asked("s"))
        const end = yield* goOn(saved, one.journal, world.engine())
        fault.arm(1, "before")
        const error = yield* Effect.flip(Effect.asVoid(one.store.save(end)))
        assert.strictEqual(error._tag, "StoreError")

        const other = yield* opened(client)
        const again = yield* goOn(yield* other.store.load("s"), other.journal, world.engine())
        assert.deepStrictEqual(again, end)
        assert.deepStrictEqual([...world.runs].sort(), [...names].sort())

        const late = yield* one.store.save(end)
        assert.deepStrictEqual(yield* other.store.load("s"), late)
        const conflict = yield* Effect.flip(Effect.asVoid(other.store.save(again)))
        assert.strictEqual(conflict._tag, "Conflict")
      }))

    it.scopedLive.each(["before", "after"] as const)(
      "keeps its history whole when any statement of the journal is lost %s the database has it",
      (moment) =>
        Effect.gen(function*() {
          const { client, faulty } = yield* database
          const fault = new Fault()
          const { journal } = yield* opened(yield* faulty(fault))
          const { store } = yield* opened(client)
          let n = 1
          let failures = 0
          do {
            const world = new World()
            const saved = yield* store.save(asked(`s${n}`))
            fault.arm(n, moment)
            const end = yield* goOn(saved, journal, world.engine())
            fault.disarm()

            assert.strictEqual(end.status, "completed")
            assert.deepStrictEqual(answered(end), calls.map(({ id }) => id))
            names.forEach((name, index) => {
              const content = contents(end)[index]!
              // What was not noted did not start; what ran is told, noted or not.
              assert.strictEqual(world.countOf(name), content === `${name} done` ? 1 : 0)
              if (content !== `${name} done`) {
                failures++
                assert.include(content, "skipped")
              }
            })
            assert.deepStrictEqual(yield* store.load(saved.id), saved)
            assert.deepStrictEqual((yield* store.save(end)).version, 2)
            n++
          } while (fault.happened)
          assert.isAtLeast(failures, names.length)
        })
    )

    it.scopedLive("does not run a call whose entry cannot be read, and tells so", () =>
      Effect.gen(function*() {
        const { journal, sql, store } = yield* opened(yield* make)
        const world = new World()
        const saved = yield* store.save(asked("s"))
        yield* goOn(saved, journal, world.engine())
        yield* sql`UPDATE allm_tool_calls SET entry = '{' WHERE call_name = 'c1'`
        const end = yield* goOn(saved, journal, world.engine())

        assert.deepStrictEqual([...world.runs].sort(), [...names].sort())
        assert.deepStrictEqual([contents(end)[0], contents(end)[2]], [done[0], done[2]])
        assert.include(contents(end)[1], "skipped")
      }))

    it.scopedLive("that died in the middle waits for a person, who says what became of the call", () =>
      Effect.gen(function*() {
        const client = yield* make
        const world = new World()
        const first = yield* opened(client)
        const saved = yield* first.store.save(asked("s"))
        const hanging = world.engine((name) => name === "mail" ? Effect.never : Effect.succeed(`${name} done`))
        const fiber = yield* Effect.fork(goOn(saved, first.journal, hanging))
        yield* Effect.repeat(Effect.sleep("5 millis"), {
          until: () =>
            Effect.map(
              first.sql<{ n: number | string }>`SELECT COUNT(*) AS n FROM allm_tool_calls WHERE settled = 1`,
              ([row]) => Number(row!.n) === 2
            )
        })
        // As a crash would: nothing is noted after it.
        yield* Fiber.interruptFork(fiber)

        const second = yield* opened(client)
        const halted = yield* goOn(yield* second.store.load("s"), second.journal, world.engine(), {
          onToolError: "halt"
        })
        yield* second.store.save(halted)
        const third = yield* opened(client)
        const waiting = yield* third.store.load("s")
        const resolved = yield* third.store.save(yield* Session.resolve(waiting, "c1", "it was sent"))
        const end = yield* third.store.save(yield* goOn(resolved, third.journal, world.engine()))
        yield* third.journal.compact("s")

        assert.strictEqual(waiting.status, "error")
        assert.deepStrictEqual(waiting.unknownOutcomes.map(({ id }) => id), ["c1"])
        assert.strictEqual(resolved.status, "idle")
        assert.strictEqual(end.status, "completed")
        assert.deepStrictEqual(contents(end), ["pay done", "it was sent", "book done"])
        assert.deepStrictEqual([...world.runs].sort(), [...names].sort())
        assert.deepStrictEqual(yield* third.sql`SELECT entry FROM allm_tool_calls`, [])
      }))
  })
}
