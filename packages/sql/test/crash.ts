/**
 * A session with a batch of five calls in a file of SQLite, in a process that can be told when to die.
 *
 * `node crash.ts <directory> <n>` is killed right before its n-th durable step, or right after the step before it; without
 * `n` it prints how many there are. What the tools do to the world is a line in a file.
 */
import { Fake, Message, Session, SessionStore, Tool, ToolCall, ToolJournal } from "@allm/core"
import { SqlSessionStore, SqlToolJournal } from "@allm/sql"
import { LibsqlClient } from "@effect/sql-libsql"
import { type Client, createClient, type InStatement } from "@libsql/client"
import { Effect, Layer } from "effect"
import { appendFileSync } from "node:fs"
import { join } from "node:path"
import { argv } from "node:process"
import { fileURLToPath } from "node:url"

const names = ["pay", "mail", "book", "put", "look"]

export const calls = names.map((name, index) => ToolCall.make({ id: `c${index}`, name, arguments: { index } }))

const replays: { readonly [name: string]: Tool.Replay } = { put: "idempotent", look: "readonly" }

export const isReplayable = (name: string) => replays[name] !== undefined

/** The model has asked for five calls, and none of them has run. */
const asked = Session.make({
  id: "s",
  thread: { messages: [Message.user("Do it all"), Message.assistant("", { toolCalls: calls })], metadata: {} }
})

const engine = (directory: string, step: Effect.Effect<void>) =>
  Fake.engine({
    script: [Fake.text("All done"), Fake.finish("stop")],
    tools: names.map((name) =>
      Tool.make(name, {
        description: "Leaves a trace",
        replay: replays[name] ?? "never",
        handler: (_params, context) => {
          const trace = Effect.sync(() =>
            appendFileSync(join(directory, "traces"), `${name} ${context.idempotencyKey}\n`)
          )
          return step.pipe(Effect.zipRight(trace), Effect.zipRight(step), Effect.as(`${name} done`))
        }
      })
    )
  })

/** Starts where the process before died: with what is stored, if anything is. */
export const work = (directory: string, step: Effect.Effect<void>) =>
  Effect.gen(function*() {
    const store = yield* SessionStore.SessionStore
    const journal = yield* ToolJournal.ToolJournal
    const stored = yield* Effect.catchTag(store.load("s"), "NotFound", () => store.save(asked))
    const done = stored.status === "completed"
      ? stored
      : yield* Effect.flatMap(Session.continue(stored), ({ session }) => store.save(session))
    // The results are in the session now.
    yield* journal.compact("s")
    return done
  }).pipe(Effect.provide(engine(directory, step)))

export const stores = Layer.provideMerge(SqlToolJournal.layer, SqlSessionStore.layer)

/** A client that announces every statement that changes the file, before and after. */
const announced = (client: Client, step: () => void): Client =>
  new Proxy(client, {
    get: (target, name) =>
      name === "execute"
        ? async (statement: InStatement) => {
          const text = typeof statement === "string" ? statement : statement.sql
          const isWrite = /^\s*(INSERT|UPDATE|DELETE|CREATE)\b/.test(text)
          if (isWrite) step()
          const result = await target.execute(statement)
          if (isWrite) step()
          return result
        }
        : Reflect.get(target, name)
  })

if (argv[1] === fileURLToPath(import.meta.url)) {
  const [directory = "", limit = "Infinity"] = argv.slice(2)
  let steps = 0
  const step = () => {
    steps++
    if (steps === Number(limit)) process.kill(process.pid, "SIGKILL")
  }
  const client = announced(createClient({ url: `file:${join(directory, "a.db")}` }), step)
  const layer = Layer.provide(stores, LibsqlClient.layer({ liveClient: client }))
  void Effect.runPromise(Effect.provide(work(directory, Effect.sync(step)), layer)).then(() =>
    process.stdout.write(String(steps))
  )
}
