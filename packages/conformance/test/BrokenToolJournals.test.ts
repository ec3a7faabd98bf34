import { Check, ToolJournalChecks } from "@allm/conformance"
import { ToolError, ToolJournal } from "@allm/core"
import { KeyValueStore } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"

type Journal = Context.Tag.Service<ToolJournal.ToolJournal>

const life = "knows a call as new, then in doubt, then settled"
const fidelity = "gives back how a call ended, however it did"
const odd = "takes results that are no JSON"
const apart = "keeps calls and sessions apart, whatever their ids"
const race = "tells one of many at once that a call is new"
const crowd = "loses none of many calls at once"
const mismatches = "refuses an id that was used for something else, and leaves the entry"
const notPrepared = "settles only what was prepared"
const lastWord = "takes the word of whoever settles last"
const forgets = "forgets the settled calls of a session and nothing else"
const nothing = "does not mind forgetting what is not there"
const interrupted = "goes on after a preparation that was interrupted"
const reopened = "has what was noted when it is opened again"
const contested = "tells one of several that have it open that a call is new"

/** A good journal in memory, and what is wrong with it. Opened again, it is the same. */
const broken = (wrong: (journal: Journal) => Partial<Journal>) => ({
  place: Effect.map(Layer.build(ToolJournal.layerMemory), (context) => {
    const journal = Context.get(context, ToolJournal.ToolJournal)
    return Layer.succeed(ToolJournal.ToolJournal, { ...journal, ...wrong(journal) })
  }),
  shared: true
})

const settledAs = (change: (entry: ToolJournal.StoredOutcome) => ToolJournal.StoredOutcome) =>
  broken((journal) => ({ settle: (key, outcome) => journal.settle(key, change(outcome)) }))

const renamed = (rename: (key: ToolJournal.Key) => ToolJournal.Key) =>
  broken((journal) => ({
    prepare: (key, asked) => journal.prepare(rename(key), asked),
    settle: (key, outcome) => journal.settle(rename(key), outcome),
    compact: (sessionId) => journal.compact(rename({ sessionId, toolCallId: "" }).sessionId)
  }))

const failure = (sessionId: string) =>
  new ToolJournal.JournalError({ reason: "unavailable", operation: "compact", sessionId, detail: "no" })

const slowly = <A, E>(effect: Effect.Effect<A, E>) => Effect.zipLeft(effect, Effect.yieldNow())

/** Whoever opens it has a lock of their own. */
const unlocked = {
  shared: true,
  place: Effect.gen(function*() {
    const store = Context.get(yield* Layer.build(KeyValueStore.layerMemory), KeyValueStore.KeyValueStore)
    const slow = KeyValueStore.make({
      ...store,
      get: (key) => slowly(store.get(key)),
      set: (key, value) => slowly(store.set(key, value))
    })
    return Layer.provide(ToolJournal.layerKeyValueStore, Layer.succeed(KeyValueStore.KeyValueStore, slow))
  })
}

// A fault that nobody notices is no proof.
type Noticed = readonly [string, ...Array<string>]

/** What is wrong with a journal, the journal, and the checks that have to notice. */
const faults: ReadonlyArray<
  readonly [fault: string, journal: ToolJournalChecks.Subject<ToolJournal.JournalError>, noticed: Noticed]
> = [
  [
    "takes doubt for news",
    broken((journal) => ({
      prepare: (key, asked) =>
        Effect.map(journal.prepare(key, asked), (known) => known._tag === "InDoubt" ? { _tag: "New" } : known)
    })),
    [life, race, mismatches, forgets, interrupted, reopened, contested]
  ],
  ["never settles", broken(() => ({ settle: () => Effect.void })), [
    life,
    fidelity,
    odd,
    apart,
    crowd,
    mismatches,
    notPrepared,
    lastWord,
    forgets,
    nothing,
    interrupted,
    reopened,
    contested
  ]],
  ["forgets that a policy halted", settledAs((outcome) => ({ ...outcome, halts: false })), [fidelity]],
  [
    "forgets what was replaced",
    settledAs(({ content, halts, isError, result }) => ({ content, halts, isError, result })),
    [fidelity]
  ],
  [
    "takes errors for results",
    settledAs((outcome) =>
      ToolError.isToolError(outcome.result)
        ? { ...outcome, result: { _tag: "Ok", value: { ...outcome.result } } }
        : outcome
    ),
    [fidelity]
  ],
  ["cleans texts", settledAs((outcome) => ({ ...outcome, content: outcome.content.normalize("NFC") })), [
    fidelity,
    apart
  ]],
  [
    "knows only JSON.stringify",
    settledAs((outcome) => {
      JSON.stringify(outcome.result)
      return outcome
    }),
    [odd]
  ],
  [
    "takes small letters for capitals",
    renamed(({ sessionId, toolCallId }) => ({
      sessionId,
      toolCallId: toolCallId.toLowerCase()
    })),
    [apart]
  ],
  [
    "has no place for sessions",
    renamed(({ sessionId, toolCallId }) => ({
      sessionId: "s",
      toolCallId: `${sessionId}/${toolCallId}`
    })),
    [apart, mismatches, notPrepared, forgets]
  ],
  [
    "cuts ids off",
    renamed(({ sessionId, toolCallId }) => ({
      sessionId: sessionId.slice(0, 255),
      toolCallId: toolCallId.slice(0, 255)
    })),
    [apart]
  ],
  [
    "looks before it writes",
    broken((journal) => {
      const known = new Set<string>()
      return {
        prepare: (key, asked) =>
          Effect.gen(function*() {
            const id = JSON.stringify(key)
            const isNew = !known.has(id)
            yield* Effect.yieldNow()
            known.add(id)
            const prepared = yield* journal.prepare(key, asked)
            return isNew && prepared._tag === "InDoubt" ? { _tag: "New" } : prepared
          })
      }
    }),
    [race, contested]
  ],
  ["holds calls in one process only", unlocked, [contested]],
  [
    "can do one thing at a time",
    broken((journal) => {
      let isBusy = false
      return {
        settle: (key, outcome) =>
          Effect.suspend(() => {
            if (isBusy) return failure(key.sessionId)
            isBusy = true
            return Effect.ensuring(
              slowly(journal.settle(key, outcome)),
              Effect.sync(() => {
                isBusy = false
              })
            )
          })
      }
    }),
    [crowd]
  ],
  [
    "does not look at the digest",
    broken((journal) => ({ prepare: (key, { toolName }) => journal.prepare(key, { toolName, digest: "" }) })),
    [mismatches]
  ],
  [
    "does not look at the tool",
    broken((journal) => ({ prepare: (key, { digest }) => journal.prepare(key, { toolName: "", digest }) })),
    [mismatches]
  ],
  [
    "settles whatever it is told",
    broken((journal) => ({
      settle: (key, outcome) =>
        Effect.catchAll(journal.settle(key, outcome), () =>
          Effect.zipRight(
            journal.prepare(key, { toolName: "pay", digest: "d0" }),
            journal.settle(key, outcome)
          ))
    })),
    [notPrepared]
  ],
  [
    "takes the first word",
    broken((journal) => {
      const settled = new Set<string>()
      return {
        settle: (key, outcome) =>
          Effect.suspend(() => {
            const id = JSON.stringify(key)
            if (settled.has(id)) return Effect.void
            return Effect.tap(journal.settle(key, outcome), () => settled.add(id))
          })
      }
    }),
    [lastWord]
  ],
  ["never forgets", broken(() => ({ compact: () => Effect.void })), [apart, crowd, forgets, nothing, reopened]],
  [
    "forgets calls in doubt",
    broken((journal) => {
      const gone = new Set<string>()
      const open = new Map<string, string>()
      return {
        prepare: (key, asked) =>
          Effect.map(journal.prepare(key, asked), (known) => {
            const id = JSON.stringify(key)
            open.set(id, key.sessionId)
            return known._tag === "InDoubt" && gone.delete(id) ? { _tag: "New" } : known
          }),
        compact: (sessionId) =>
          Effect.tap(journal.compact(sessionId), () => {
            for (const [id, session] of open) if (session === sessionId) gone.add(id)
          })
      }
    }),
    [forgets]
  ],
  [
    "minds forgetting nothing",
    broken((journal) => {
      const seen = new Set<string>()
      return {
        prepare: (key, asked) => Effect.tap(journal.prepare(key, asked), () => seen.add(key.sessionId)),
        compact: (sessionId) => seen.has(sessionId) ? journal.compact(sessionId) : failure(sessionId)
      }
    }),
    [nothing]
  ],
  [
    "keeps its lock when it is interrupted",
    broken((journal) => {
      const held = new Set<string>()
      return {
        prepare: (key, asked) =>
          Effect.suspend(() => {
            const id = JSON.stringify(key)
            if (held.has(id)) return failure(key.sessionId)
            held.add(id)
            return Effect.tap(Effect.zipRight(Effect.yieldNow(), journal.prepare(key, asked)), () => held.delete(id))
          })
      }
    }),
    [race, mismatches, interrupted, contested]
  ],
  ["is empty when it is opened again", { place: Effect.succeed(ToolJournal.layerMemory) }, [reopened]]
]

const noticedBy = <E>(journal: ToolJournalChecks.Subject<E>) =>
  Effect.map(
    Check.violations(ToolJournalChecks.make(journal), { concurrency: "unbounded" }),
    (violations) => violations.map((violation) => violation.check)
  )

describe("ToolJournalChecks", () => {
  for (const [fault, journal, noticed] of faults) {
    it.live(`notice a journal that ${fault}`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* noticedBy(journal), [...noticed])
      }))
  }

  it.live("find nothing wrong with a good journal", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* noticedBy(broken(() => ({}))), [])
    }))

  it.effect("are each needed by a fault", () =>
    Effect.sync(() => {
      const names = ToolJournalChecks.make(ToolJournal.layerMemory).map((check) => check.name)

      assert.deepStrictEqual(names.filter((name) => faults.every(([, , noticed]) => !noticed.includes(name))), [])
    }))
})
