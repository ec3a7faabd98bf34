/**
 * A process of a server: `driver.ts <database> <name> <traces> <session>…` says its name to every session, all at once, and
 * lets the model answer. What its tools do to the world is a line in the file of traces.
 */
import { Engine, Fake, Message, Session, SessionRunner, Tool } from "@allm/core"
import { SqlSessionLease, SqlSessionStore, SqlToolJournal } from "@allm/sql"
import { LibsqlClient } from "@effect/sql-libsql"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Schema } from "effect"
import { appendFileSync } from "node:fs"

const [, , database = "", name = "", traces = "", ...sessions] = process.argv

// `postgres:<port>/<database>`, or the file of SQLite.
const [, port, table] = /^postgres:(\d+)\/(\w+)$/.exec(database) ?? []

const Client = port === undefined || table === undefined
  ? LibsqlClient.layer({ url: `file:${database}` })
  : PgClient.layer({ host: "127.0.0.1", port: Number(port), username: "allm", database: table, maxConnections: 4 })

const Runner = SessionRunner.layer({
  holder: name,
  leaseDuration: name === "victim" ? "3 seconds" : "30 seconds",
  wait: "1 minute"
}).pipe(
  Layer.provide(Layer.mergeAll(SqlSessionStore.layer, SqlSessionLease.layer, SqlToolJournal.layer)),
  Layer.provide(Client)
)

const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { whom: Schema.String },
  handler: ({ whom }, { sessionId }) =>
    Effect.as(Effect.sync(() => appendFileSync(traces, `${sessionId} ${whom}\n`)), `paid ${whom}`)
})

// Whoever spoke last is paid, always by a call of the same id.
const Model = Fake.engine({
  tools: [pay],
  respond: ({ messages }) => {
    const last = messages.at(-1)
    return last?.role === "user"
      ? [
        Fake.toolCall({ id: "call_0", name: "pay", arguments: { whom: Message.toText(last) } }),
        Fake.finish("tool_calls")
      ]
      : [Fake.text("done"), Fake.finish("stop")]
  }
})

const hasSaid = ({ thread }: Session.Session) =>
  thread.messages.some((message) => message.role === "user" && Message.toText(message) === name)

/** As a client does that is not sure whether it was heard: it looks, and says it again if not. */
const sayAgain = (id: string): Effect.Effect<void, unknown, SessionRunner.SessionRunner | Engine.Engine> =>
  Effect.flatMap(SessionRunner.resume(id), ({ session }) => hasSaid(session) ? Effect.void : say(id))

const say = (id: string): Effect.Effect<void, unknown, SessionRunner.SessionRunner | Engine.Engine> =>
  SessionRunner.reply(id, name).pipe(
    Effect.catchTag("NotFound", () => SessionRunner.start(id, name)),
    Effect.asVoid,
    Effect.catchIf(
      (error) =>
        error._tag === "LeaseLost" || (error._tag === "NotSaved" && error.error._tag === "Conflict") ||
        // Somebody died in the middle of it.
        (error._tag === "SessionError" && error.reason === "unfinished_turn"),
      () => sayAgain(id)
    )
  )

const program = Effect.forEach(sessions, say, { concurrency: "unbounded", discard: true })

Effect.runPromise(Effect.provide(program, Layer.merge(Runner, Model))).catch((error: unknown) => {
  process.stderr.write(`${name}: ${String(error)}\n`)
  process.exitCode = 1
})
