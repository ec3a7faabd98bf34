/**
 * Sessions in a database: a save writes what is new, however long the conversation is.
 *
 * The newest messages are in the row of the session itself, so that one statement replaces a version by the next. They
 * move to rows of their own with the save after, when nobody can take them back any more. Messages that are changed later
 * start a new epoch; rows of an epoch never change.
 *
 * @since 0.1.0
 */
import { Message, Session, SessionStore, StoreError } from "@allm/core"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { type Frame, runner } from "./internal/statement.ts"
import { changed, randomToken } from "./internal/writes.ts"
import { migrate } from "./Migrations.ts"

const format = 1

const Messages = Schema.Array(Message.Message)
/** Which epoch messages are of from a position on, and from where on they are in the row of the session. */
const Layout = Schema.Struct({
  epochs: Schema.Array(Schema.Tuple(Schema.String, Schema.Int)),
  flushed: Schema.Int
})
const printLayout = Schema.encodeSync(Schema.parseJson(Layout))
const readLayout = Schema.decodeUnknown(Schema.parseJson(Layout))
const printMessages = Schema.encode(Schema.parseJson(Messages))
const readMessages = Schema.decodeUnknown(Schema.parseJson(Messages))
const printMessage = Schema.encode(Schema.parseJson(Message.Message))
const readMessage = Schema.decodeUnknown(Schema.parseJson(Message.Message))
const printSession = Schema.encode(Schema.parseJson(Session.Session))
const readSession = Schema.decodeUnknown(Schema.parseJson(Session.Session))

/** What is known to be stored under a token, which no two saves have in common. */
interface Snapshot {
  readonly version: number
  readonly token: string
  readonly layout: typeof Layout.Type
  readonly messages: ReadonlyArray<Message.Message>
}

interface Row {
  readonly version: number
  readonly token: string
  readonly format: number
  readonly head: string
  readonly layout: string
  readonly tail: string
}

// Enough for the sessions that are being talked to; all others are read again.
const remembered = 128
const chunk = 400

const make = Effect.gen(function*() {
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  const run = runner(sql)
  const snapshots = new Map<string, Snapshot>()
  const frameOf = (operation: string, id: string): Frame => ({ operation, id, location: "allm_sessions" })

  const remember = (id: string, snapshot: Snapshot): void => {
    snapshots.delete(id)
    snapshots.set(id, snapshot)
    if (snapshots.size > remembered) snapshots.delete(snapshots.keys().next().value!)
  }

  const rowOf = (frame: Frame, id: string) =>
    Effect.map(
      run(
        frame,
        sql<Row>`SELECT version, token, format, head, layout, tail FROM allm_sessions WHERE id = ${id}`
      ),
      (rows) => rows[0]
    )

  /** The messages that moved out of the row, or nothing when the row was replaced meanwhile. */
  const flushedOf = Effect.fnUntraced(function*(frame: Frame, id: string, layout: typeof Layout.Type) {
    if (layout.flushed === 0) return []
    const rows = yield* run(
      frame,
      sql<{ epoch: string; position: number; body: string }>`
        SELECT epoch, position, body FROM allm_messages WHERE session_id = ${id}`
    )
    const bodies = new Map(rows.map(({ body, epoch, position }) => [`${epoch} ${position}`, body]))
    const found: Array<string> = []
    for (const [index, [epoch]] of layout.epochs.entries()) {
      const end = Math.min(layout.epochs[index + 1]?.[1] ?? layout.flushed, layout.flushed)
      while (found.length < end) {
        const body = bodies.get(`${epoch} ${found.length}`)
        if (body === undefined) return undefined
        found.push(body)
      }
    }
    return found.length === layout.flushed ? found : undefined
  })

  const read = (
    operation: string,
    id: string,
    attempts = 3
  ): Effect.Effect<
    { readonly session: Session.Session; readonly snapshot: Snapshot } | undefined,
    StoreError.StoreError
  > =>
    Effect.gen(function*() {
      const frame = frameOf(operation, id)
      const row = yield* rowOf(frame, id)
      if (row === undefined) return undefined
      if (row.format > format) return yield* newer(frame, row.format)
      const known = snapshots.get(id)
      const head = yield* decoded(frame, readSession(row.head))
      const layout = yield* decoded(frame, readLayout(row.layout))
      let messages = known?.token === row.token ? known.messages : undefined
      if (messages === undefined) {
        const bodies = yield* flushedOf(frame, id, layout)
        if (bodies === undefined) {
          return attempts > 1
            ? yield* read(operation, id, attempts - 1)
            : yield* damaged(frame, "messages of it are missing in allm_messages")
        }
        const old = yield* Effect.forEach(bodies, (body) => decoded(frame, readMessage(body)))
        messages = [...old, ...yield* decoded(frame, readMessages(row.tail))]
      }
      const snapshot = { version: row.version, token: row.token, layout, messages }
      remember(id, snapshot)
      return {
        session: { ...head, thread: { ...head.thread, messages }, version: row.version },
        snapshot
      }
    })

  /** Moves messages of the stored version to rows of their own. Whoever does it writes the same. */
  const flush = Effect.fnUntraced(function*(frame: Frame, id: string, { layout, messages }: Snapshot, to: number) {
    const epoch = layout.epochs.at(-1)?.[0] ?? ""
    for (let from = layout.flushed; from < to; from += chunk) {
      const rows = yield* Effect.forEach(
        messages.slice(from, Math.min(to, from + chunk)),
        (message, index) =>
          Effect.map(encoded(frame, printMessage(message)), (body) => ({
            session_id: id,
            epoch,
            position: from + index,
            body
          }))
      )
      yield* run(frame, sql`INSERT INTO allm_messages ${sql.insert(rows)} ON CONFLICT DO NOTHING`)
    }
  })

  const replace = (session: Session.Session, attempts = 3): Effect.Effect<
    Session.Session,
    SessionStore.Conflict | StoreError.StoreError
  > =>
    Effect.gen(function*() {
      const frame = frameOf("SessionStore.save", session.id)
      const cached = snapshots.get(session.id)
      const before = cached?.version === session.version
        ? cached
        : (yield* read(frame.operation, session.id))?.snapshot
      if ((before?.version ?? 0) !== session.version) return yield* conflict(session, before?.version ?? 0)
      const { messages } = session.thread
      const saved = { ...session, version: session.version + 1 }
      const token = yield* randomToken
      const same = before === undefined ? 0 : yield* commonPrefix(frame, before.messages, messages)
      const layout = before === undefined
        ? { epochs: [[token, 0] as const], flushed: 0 }
        : nextLayout(before, same, token)
      const head = yield* encoded(frame, printSession({ ...saved, thread: { ...saved.thread, messages: [] } }))
      const tail = yield* encoded(frame, printMessages(messages.slice(layout.flushed)))
      const now = yield* Clock.currentTimeMillis
      const values = {
        version: saved.version,
        token,
        status: session.status,
        updated_at: now,
        format,
        head,
        layout: printLayout(layout),
        tail
      }
      if (before !== undefined) yield* flush(frame, session.id, before, Math.min(same, before.messages.length))
      const result = yield* run(
        frame,
        before === undefined
          ? sql`INSERT INTO allm_sessions ${sql.insert({ id: session.id, ...values })} ON CONFLICT DO NOTHING`.raw
          : sql`UPDATE allm_sessions SET ${sql.update(values)} WHERE id = ${session.id} AND token = ${before.token}`.raw
      )
      if (changed(result) ?? (yield* rowOf(frame, session.id))?.token === token) {
        remember(session.id, { version: saved.version, token, layout, messages })
        return saved
      }
      snapshots.delete(session.id)
      const stored = (yield* rowOf(frame, session.id))?.version ?? 0
      // Deleted and made anew up to the same version: what was known of it no longer counts.
      return stored === session.version && attempts > 1
        ? yield* replace(session, attempts - 1)
        : yield* conflict(session, stored)
    })

  const save = Effect.fn("SessionStore.save")(function*(session: Session.Session) {
    yield* checkId("SessionStore.save", session.id)
    return yield* Effect.uninterruptible(replace(session))
  })

  const load = Effect.fn("SessionStore.load")(function*(id: string) {
    yield* checkId("SessionStore.load", id)
    const found = yield* read("SessionStore.load", id)
    return found === undefined ? yield* new SessionStore.NotFound({ sessionId: id }) : found.session
  })

  const list = Effect.fn("SessionStore.list")(function*(options: SessionStore.ListOptions = {}) {
    const frame = { operation: "SessionStore.list", location: "allm_sessions" }
    // Whole, or the last page would never come; what is no number counts as 1.
    const limit = Math.max(1, Math.min(Math.floor(options.limit ?? 50) || 1, 1000))
    const after = options.cursor === undefined ? "" : options.cursor.slice("after:".length)
    if (options.cursor !== undefined && (!options.cursor.startsWith("after:") || after === "")) {
      return yield* new StoreError.StoreError({ ...frame, reason: "invalid_cursor" })
    }
    const rows = yield* run(
      frame,
      sql<{ id: string; version: number; status: string; updated_at: number | string; format: number }>`
        SELECT id, version, status, updated_at, format FROM allm_sessions
        WHERE id > ${after} ORDER BY id LIMIT ${limit + 1}`
    )
    const sessions: Array<SessionStore.Summary> = []
    const unreadable: Array<StoreError.StoreError> = []
    for (const row of rows.slice(0, limit)) {
      const { id, version } = row
      const place = { ...frame, id }
      if (row.format > format) unreadable.push(newer(place, row.format))
      else if (!isStatus(row.status)) unreadable.push(damaged(place, `${row.status} is no status`))
      else sessions.push({ id, version, status: row.status, updatedAt: Number(row.updated_at) })
    }
    return { sessions, unreadable, cursor: rows.length > limit ? `after:${rows[limit - 1]!.id}` : undefined }
  })

  const remove = Effect.fn("SessionStore.delete")(function*(id: string) {
    yield* checkId("SessionStore.delete", id)
    const frame = frameOf("SessionStore.delete", id)
    snapshots.delete(id)
    // Without the row of the session nobody finds the others, so a crash in between leaves nothing to be seen.
    yield* run(frame, sql`DELETE FROM allm_sessions WHERE id = ${id}`)
    yield* run(frame, sql`DELETE FROM allm_messages WHERE session_id = ${id}`)
  })

  return SessionStore.SessionStore.of({ save, load, list, delete: remove })
})

/**
 * Keeps sessions in the database of the `SqlClient`: SQLite or PostgreSQL. Makes its tables when they are missing. Any
 * number of processes may use it at once.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<SessionStore.SessionStore, StoreError.StoreError, SqlClient.SqlClient> = Layer.effect(
  SessionStore.SessionStore,
  Effect.zipRight(migrate, make)
)

const isStatus = Schema.is(Session.Status)

const conflict = (session: Session.Session, storedVersion: number) =>
  new SessionStore.Conflict({ sessionId: session.id, expectedVersion: session.version, storedVersion })

const newer = (frame: Frame, found: number): StoreError.StoreError =>
  new StoreError.StoreError({
    ...frame,
    reason: "newer_format",
    detail: `it has format ${found}, this version reads up to ${format}; it was left as it is`
  })

const damaged = (frame: Frame, detail: string): StoreError.StoreError =>
  new StoreError.StoreError({ ...frame, reason: "corrupt", detail })

const message = (error: ParseResult.ParseError): string => ParseResult.TreeFormatter.formatErrorSync(error)

const decoded = <A>(frame: Frame, read: Effect.Effect<A, ParseResult.ParseError>) =>
  Effect.mapError(read, (error) => damaged(frame, `it was left as it is: ${message(error)}`))

const encoded = <A>(frame: Frame, print: Effect.Effect<A, ParseResult.ParseError>) =>
  Effect.mapError(
    print,
    (error) => new StoreError.StoreError({ ...frame, reason: "not_encodable", detail: message(error) })
  )

const checkId = (operation: string, id: string): Effect.Effect<void, StoreError.StoreError> =>
  id === "" || id.length > 512 || id.includes("\0") || /\p{Surrogate}/u.test(id)
    ? new StoreError.StoreError({
      operation,
      id,
      reason: "invalid_id",
      detail: "an id is well-formed text of 1 to 512 characters, without the character U+0000"
    })
    : Effect.void

/** How many messages are the same from the start. The same object is the same message; others are compared as texts. */
const commonPrefix = (
  frame: Frame,
  before: ReadonlyArray<Message.Message>,
  after: ReadonlyArray<Message.Message>
): Effect.Effect<number, StoreError.StoreError> =>
  Effect.gen(function*() {
    const length = Math.min(before.length, after.length)
    let same = 0
    while (same < length) {
      const [one, other] = [before[same]!, after[same]!]
      if (one !== other) {
        const texts = yield* encoded(frame, Effect.all([printMessage(one), printMessage(other)]))
        if (texts[0] !== texts[1]) break
      }
      same++
    }
    return same
  })

/** Messages that are taken back end their epoch; what is in the rows behind them is never read again. */
const nextLayout = ({ layout, messages }: Snapshot, same: number, token: string): typeof Layout.Type => ({
  epochs: same === messages.length
    ? layout.epochs
    : [...layout.epochs.filter(([, start]) => start < same), [token, same]],
  flushed: same
})
