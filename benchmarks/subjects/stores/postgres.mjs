import * as PgClient from "@effect/sql-pg/PgClient"
import { portVariable } from "../../lib/store-places.mjs"
import { onSql } from "./sql.mjs"

export const create = (work) => {
  const port = process.env[portVariable]
  // Without a server there is nothing to do.
  if (port === undefined) return {}
  const client = PgClient.layer({ host: "127.0.0.1", port: Number(port), username: "allm", database: "postgres" })
  return onSql(work, client, client)
}
