// Stores in a database, sessions and journal each with a client of its own.
import * as SqlSessionStore from "@allm/sql/SqlSessionStore"
import * as SqlToolJournal from "@allm/sql/SqlToolJournal"
import * as Layer from "effect/Layer"
import { journaled, sessions } from "./bench.mjs"

export const onSql = (work, forSessions, forJournal) => ({
  ...sessions({ client: forSessions, store: SqlSessionStore.layer }),
  ...journaled(work, Layer.provide(SqlToolJournal.layer, forJournal))
})
