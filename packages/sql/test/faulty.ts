/**
 * Clients whose statements fail when they are told to: before they reach the database, or after, so that the database did
 * what it was asked and nobody learns of it.
 */
import { LibsqlClient } from "@effect/sql-libsql"
import { PgClient } from "@effect/sql-pg"
import { type Client as Libsql, createClient, type InStatement, LibsqlError } from "@libsql/client"
import { Effect, Layer } from "effect"
import { connect, createServer, type Socket } from "node:net"
import type { Client } from "./places.ts"

export type Moment = "before" | "after"

export class Fault {
  private left = Infinity
  private moment: Moment = "before"
  /** Whether the fault has come about. */
  happened = false

  /** Lets the n-th statement from now fail, once. */
  arm(n: number, moment: Moment): void {
    this.left = n
    this.moment = moment
    this.happened = false
  }

  disarm(): void {
    this.left = Infinity
  }

  /** What is to become of a statement that is about to be sent. */
  next(): Moment | undefined {
    this.left--
    if (this.left !== 0) return undefined
    this.left = Infinity
    this.happened = true
    return this.moment
  }
}

const isOurs = (text: string): boolean => /allm_\w/.test(text)

/** A client whose statements are carried out by `execute`. */
export const libsqlThrough = (
  file: string,
  execute: (client: Libsql, statement: { readonly sql: string; readonly args: Array<string> }) => Promise<unknown>
) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => createClient({ url: `file:${file}` })),
      (client) => Effect.sync(() => client.close())
    ),
    (client): Client =>
      LibsqlClient.layer({
        liveClient: new Proxy(client, {
          get: (target, name) =>
            name === "execute"
              ? (statement: InStatement) =>
                execute(target, statement as { readonly sql: string; readonly args: Array<string> })
              : Reflect.get(target, name)
        })
      })
  )

export const faultyLibsql = (file: string, fault: Fault) =>
  libsqlThrough(file, async (client, statement) => {
    const moment = isOurs(statement.sql) ? fault.next() : undefined
    if (moment === "before") throw new LibsqlError("disk I/O error", "SQLITE_IOERR")
    const result = await client.execute(statement)
    if (moment === "after") throw new LibsqlError("disk I/O error", "SQLITE_IOERR")
    return result
  })

/** A server in between, which hangs up. */
export const faultyPostgres = (port: number, database: string, fault: Fault) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.async<{ readonly port: number; readonly close: () => void }>((resume) => {
        const sockets = new Set<Socket>()
        const server = createServer((near) => {
          const far = connect(port, "127.0.0.1")
          let isCut = false
          const hangUp = () => {
            near.destroy()
            far.destroy()
          }
          for (const socket of [near, far]) {
            sockets.add(socket)
            socket.on("error", hangUp).on("close", hangUp)
          }
          near.on("data", (data) => {
            const moment = isOurs(data.toString("latin1")) ? fault.next() : undefined
            if (moment === "before") return hangUp()
            if (moment === "after") isCut = true
            far.write(data)
          })
          // By then the statement is done.
          far.on("data", (data) => isCut ? hangUp() : near.write(data))
        })
        server.listen(0, "127.0.0.1", () => {
          const address = server.address()
          resume(Effect.succeed({
            port: typeof address === "object" && address !== null ? address.port : 0,
            close: () => {
              for (const socket of sockets) socket.destroy()
              server.close()
            }
          }))
        })
      }),
      ({ close }) => Effect.sync(close)
    ),
    (proxy): Client =>
      Layer.orDie(PgClient.layer({
        host: "127.0.0.1",
        port: proxy.port,
        username: "allm",
        database,
        maxConnections: 2
      }))
  )
