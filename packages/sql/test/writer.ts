/**
 * A process that adds messages to sessions others add to as well: `writer.ts <file> <messages>`.
 */
import { Message, type Session, SessionStore } from "@allm/core"
import { SqlSessionStore } from "@allm/sql"
import { LibsqlClient } from "@effect/sql-libsql"
import { Effect, Layer } from "effect"

const [, , file, count] = process.argv

const empty = (id: string): Session.Session => ({
  id,
  thread: { messages: [], metadata: {} },
  status: "idle",
  pendingToolCalls: [],
  pendingQuestions: [],
  pendingApprovals: [],
  unknownOutcomes: [],
  usage: {},
  context: {},
  metadata: {},
  version: 0
})

const add = (store: SessionStore.Service, id: string, text: string): Effect.Effect<unknown, unknown> =>
  store.load(id).pipe(
    Effect.catchTag("NotFound", () => Effect.succeed(empty(id))),
    Effect.flatMap((session) =>
      store.save({
        ...session,
        thread: { ...session.thread, messages: [...session.thread.messages, Message.user(text)] }
      })
    ),
    Effect.catchTag("Conflict", () => add(store, id, text))
  )

const program = Effect.flatMap(SessionStore.SessionStore, (store) =>
  Effect.forEach(
    Array.from({ length: Number(count) }, (_, n) => n),
    (n) => add(store, `s${n % 5}`, `${process.pid} ${n}`),
    { concurrency: 4, discard: true }
  ))

void Effect.runPromise(
  Effect.provide(program, Layer.provide(SqlSessionStore.layer, LibsqlClient.layer({ url: `file:${file}` })))
)
