import * as LibsqlClient from "@effect/sql-libsql/LibsqlClient"
import { join } from "node:path"
import { directoryVariable } from "../../lib/store-places.mjs"
import { onSql } from "./sql.mjs"

export const create = (work) => {
  const file = (name) => LibsqlClient.layer({ url: `file:${join(process.env[directoryVariable], name)}` })
  return onSql(work, file("sessions.db"), file("journal.db"))
}
