/**
 * A session while one holder works on it: nothing is done to it, and nothing because of it, that the holder has no right to
 * any more.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { Session } from "../Session.ts"
import * as SessionLease from "../SessionLease.ts"
import { Conflict, type NotFound, type Service as Store } from "../SessionStore.ts"
import { StoreError } from "../StoreError.ts"
import * as ToolError from "../ToolError.ts"
import { type Asked, JournalError, type Key, type StoredOutcome, ToolJournal } from "../ToolJournal.ts"
import * as Caller from "./sessionCaller.ts"
import { openCalls } from "./sessionThread.ts"

export class NotSaved extends Schema.TaggedError<NotSaved>("@allm/core/SessionRunner/NotSaved")("NotSaved", {
  session: Session,
  error: Schema.Union(Conflict, StoreError),
  /** What to do, where that is not what `error` says. */
  advice: Schema.optionalWith(Schema.String, { exact: true })
}) {
  override get message(): string {
    const why = this.advice === undefined || this.error._tag !== "Conflict"
      ? this.error.message
      : `it ${this.error.detail}; ${this.advice}`
    return `session ${JSON.stringify(this.session.id)} was not saved: ${why}; what was to be saved is in \`session\``
  }
}

/** Why a holder has to stop. */
export type Stop = SessionLease.LeaseLost | NotSaved | JournalError

type Journal = typeof ToolJournal.Service

/** Where sessions, leases and calls are kept. */
export interface Stores {
  readonly store: Store
  readonly leases: SessionLease.Service
  readonly journal: Journal
}

/** Whatever comes with a session. */
interface Next {
  readonly session: Session
}

// Somebody who saves without a lease may come in between; more often is no coincidence.
const attempts = 4

export class Hold {
  readonly sessionId: string
  /** The journal as the tools of this holder see it. */
  readonly journal: Journal
  /** Fails when the holder has to stop; does nothing else. */
  readonly stopped: Effect.Effect<never, Stop>
  /** Calls whose end was noted down, but not told yet. */
  readonly untold = new Map<string, { readonly toolName: string; readonly outcome: StoredOutcome }>()
  private readonly stores: Stores
  private readonly stop: Deferred.Deferred<never, Stop>
  /** Calls that were noted down, but not how they ended, with the names of their tools. */
  private readonly inDoubt = new Map<string, string>()
  private lease: SessionLease.Lease
  private halted: Cause.Cause<Stop> | undefined
  private isFenced: boolean
  /** What the journal may know that is in the stored session: nothing, what others left, or also what was done here. */
  private leftovers: "none" | "others" | "own" = "others"
  private version = 0
  private kept: Session | undefined

  constructor(stores: Stores, lease: SessionLease.Lease, stop: Deferred.Deferred<never, Stop>) {
    this.stores = stores
    this.lease = lease
    this.sessionId = lease.sessionId
    this.stop = stop
    this.stopped = Deferred.await(stop)
    this.isFenced = lease.takenFrom === undefined
    this.journal = ToolJournal.of({
      prepare: (key, asked) => this.prepare(key, asked),
      settle: (key, outcome) => this.settle(key, outcome),
      compact: (sessionId) => stores.journal.compact(sessionId)
    })
  }

  get isStopped(): boolean {
    return this.halted !== undefined
  }

  // --- the lease ------------------------------------------------------------------------------------------------------

  /** Fails when the lease is over by the clock, whether or not anybody has noticed yet. */
  readonly check: Effect.Effect<void, Stop> = Effect.suspend(() =>
    this.halted !== undefined
      ? Effect.failCause(this.halted)
      : Effect.flatMap(
        this.isOver,
        (isOver): Effect.Effect<void, Stop> => isOver ? this.halt(Cause.fail(this.lost("expired"))) : Effect.void
      )
  )

  private readonly isOver: Effect.Effect<boolean> = Effect.map(
    Clock.currentTimeMillis,
    (now) => now >= this.lease.expiresAt
  )

  private lost(reason: SessionLease.LeaseLost["reason"]): SessionLease.LeaseLost {
    const { holder, sessionId, token } = this.lease
    return new SessionLease.LeaseLost({ reason, sessionId, holder, token })
  }

  /** From here on nothing happens any more. */
  private halt(cause: Cause.Cause<Stop>): Effect.Effect<never, Stop> {
    return Effect.suspend(() => {
      this.halted ??= cause
      return Effect.zipRight(Deferred.failCause(this.stop, this.halted), Effect.failCause(this.halted))
    })
  }

  /** Renews the lease again and again, until it is lost. */
  readonly renewing: Effect.Effect<void> = Effect.suspend(() =>
    Effect.sleep(Duration.millis(Math.ceil(this.lease.duration / 3))).pipe(
      Effect.zipRight(this.renew),
      Effect.forever,
      Effect.catchAllCause(() => Effect.void)
    )
  )

  /** A store that does not answer may do so later, as long as there is time. */
  private readonly renew: Effect.Effect<void, Stop> = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const { duration, expiresAt } = this.lease
    return Effect.suspend(() => this.stores.leases.renew(this.lease)).pipe(
      Effect.catchAllDefect((cause) =>
        new StoreError({ reason: "unavailable", operation: "SessionLease.renew", id: this.sessionId, cause })
      ),
      Effect.retry({
        while: (error) => error._tag === "StoreError",
        schedule: Schedule.spaced(Duration.millis(Math.ceil(duration / 20)))
      }),
      Effect.disconnect,
      Effect.timeoutOption(Duration.millis(Math.max(0, expiresAt - now))),
      Effect.catchAll((error) => error._tag === "LeaseLost" ? this.halt(Cause.fail(error)) : Effect.succeedNone),
      Effect.flatMap((renewed) =>
        Option.isNone(renewed)
          ? this.halt(Cause.fail(this.lost("expired")))
          : Effect.sync(() => {
            this.lease = renewed.value
          })
      )
    )
  })

  readonly release: Effect.Effect<void> = Effect.suspend(() => this.stores.leases.release(this.lease)).pipe(
    Effect.catchAllCause((cause) => Effect.logWarning("a lease could not be given back; it will run out", cause))
  )

  // --- the session ----------------------------------------------------------------------------------------------------

  /**
   * The session as it is stored. After somebody's lease ran out it is saved at once, as it is: whatever they still save
   * then comes too late.
   */
  readonly load: Effect.Effect<Session, NotFound | StoreError | Stop> = Effect.suspend(() => this.fenced(attempts))

  private fenced(tries: number): Effect.Effect<Session, NotFound | StoreError | Stop> {
    return Effect.flatMap(this.stores.store.load(this.sessionId), (loaded) => {
      this.version = loaded.version
      this.kept = loaded
      if (this.isFenced) return Effect.succeed(loaded)
      const saved = Effect.tap(this.save(loaded), (saved) => {
        this.isFenced = true
        this.kept = saved
      })
      return tries > 1 ? Effect.catchIf(saved, isConflict, () => this.fenced(tries - 1)) : saved
    })
  }

  /**
   * Loads the session, and saves what is made of it. Nothing has happened until then, so when somebody came in between,
   * it is made anew.
   */
  change<A extends Next, E, R>(
    make: (session: Session) => Effect.Effect<A, E, R>,
    tries = attempts
  ): Effect.Effect<readonly [A, Session], E | NotFound | StoreError | Stop, R> {
    return Effect.flatMap(this.load, (loaded) =>
      Effect.flatMap(make(loaded), (next) => {
        if (next.session === this.kept) return Effect.succeed([next, loaded] as const)
        const saved = Effect.map(this.save(next.session), (saved) => [next, saved] as const)
        return tries > 1 ? Effect.catchIf(saved, isConflict, () => this.change(make, tries - 1)) : saved
      }))
  }

  /** Saves a session that is to be new. */
  begin(caller: Caller.Caller, session: Session): Effect.Effect<Session, Stop> {
    return Effect.mapError(this.save(session), (error) =>
      isConflict(error)
        ? new NotSaved(
          { ...error, advice: `use ${Caller.reply(caller)}, or start under another id` },
          { disableValidation: true }
        )
        : error)
  }

  /** Saves a session, in place of the one this holder loaded or saved before. */
  save(session: Session): Effect.Effect<Session, Stop> {
    return Effect.uninterruptible(
      Effect.zipRight(
        this.check,
        Effect.suspend(() => {
          const value = { ...session, version: this.version }
          return Effect.matchEffect(this.stores.store.save(value), {
            onFailure: (error) => this.refused(value, error),
            onSuccess: (saved) => {
              this.version = saved.version
              this.kept = session
              return Effect.succeed(saved)
            }
          })
        })
      )
    )
  }

  /** Who is in the way may be the one who took the session over. */
  private refused(session: Session, error: Conflict | StoreError): Effect.Effect<never, Stop> {
    const notSaved = new NotSaved({ session, error }, { disableValidation: true })
    if (error._tag === "StoreError") return notSaved
    return Effect.matchEffect(this.stores.leases.check(this.lease), {
      onFailure: (lost) => lost._tag === "LeaseLost" ? this.halt(Cause.fail(lost)) : notSaved,
      onSuccess: () => notSaved
    })
  }

  /**
   * Makes safe what was done before the model is asked or calls are run. What the journal knows of calls whose results are
   * now stored is forgotten before the model can use their ids again. Does not come back when the holder has to stop.
   */
  readonly checkpoint = (session: Session): Effect.Effect<void> =>
    Effect.suspend((): Effect.Effect<unknown, Stop> => session === this.kept ? this.check : this.save(session)).pipe(
      Effect.zipRight(this.leftovers !== "none" && openCalls(session).length === 0 ? this.compact : Effect.void),
      Effect.catchAllCause((cause) => Effect.zipRight(Effect.exit(this.halt(cause)), Effect.never))
    )

  /** The last save of a run. The journal can wait: it is looked after before the model is asked again. */
  readonly finish = (session: Session): Effect.Effect<Session, Stop> =>
    Effect.tap(this.save(session), () => {
      const compacted = this.leftovers === "own" && openCalls(session).length === 0 ? this.compact : Effect.void
      return Effect.catchAllCause(compacted, (cause) => Effect.logWarning("the journal was not compacted", cause))
    })

  // --- the journal ----------------------------------------------------------------------------------------------------

  /** The last thing before a call takes effect, so the right to it is looked at before and after. */
  private prepare(key: Key, asked: Asked) {
    const allowed = Effect.mapError(
      this.check,
      (stop) =>
        new JournalError({ ...key, operation: "prepare", reason: "unavailable", detail: stop.message, cause: stop })
    )
    return allowed.pipe(
      Effect.zipRight(Effect.suspend(() => {
        this.leftovers = "own"
        this.inDoubt.set(key.toolCallId, asked.toolName)
        return this.stores.journal.prepare(key, asked)
      })),
      Effect.tap((known) => {
        if (known._tag === "Settled") this.inDoubt.delete(key.toolCallId)
      }),
      Effect.zipLeft(allowed)
    )
  }

  /** What has happened is noted down also late, unless it is somebody else's to know by now. */
  private settle(key: Key, outcome: StoredOutcome): Effect.Effect<void, JournalError> {
    const late = Effect.catchAll(
      this.stores.leases.check(this.lease),
      (error) =>
        error._tag === "LeaseLost" && error.reason === "expired" ? Effect.void : new JournalError({
          ...key,
          operation: "settle",
          reason: "unavailable",
          detail: error.message,
          cause: error
        })
    )
    return Effect.flatMap(this.isOver, (isOver) => isOver ? late : Effect.void).pipe(
      Effect.zipRight(Effect.suspend(() => this.stores.journal.settle(key, outcome))),
      Effect.tap(() => {
        this.untold.set(key.toolCallId, { toolName: this.inDoubt.get(key.toolCallId) ?? "", outcome })
        this.inDoubt.delete(key.toolCallId)
      })
    )
  }

  /** Forgets what is in the stored session, also calls that were cut off and of which it says so. */
  private readonly compact: Effect.Effect<void, JournalError> = Effect.suspend(() => {
    const { journal } = this.stores
    const { sessionId } = this
    return Effect.forEach([...this.inDoubt], ([toolCallId, toolName]) => {
      const result = new ToolError.Interrupted({ toolName, toolCallId })
      const outcome = { result, content: "", isError: true, halts: false }
      return journal.settle({ sessionId, toolCallId }, outcome).pipe(
        Effect.catchIf(({ reason }) => reason !== "unavailable", () => Effect.void),
        Effect.tap(() => this.inDoubt.delete(toolCallId))
      )
    }, { discard: true }).pipe(
      Effect.zipRight(journal.compact(sessionId)),
      Effect.tap(() => {
        this.leftovers = "none"
      }),
      // What cannot be read stands in the way of its own call only.
      Effect.catchIf(
        ({ reason }) => reason !== "unavailable",
        (error) => Effect.logWarning(error.message)
      )
    )
  })
}

const isConflict = (error: unknown): error is NotSaved => error instanceof NotSaved && error.error._tag === "Conflict"
