/**
 * What every tool journal has to do, as checks.
 *
 * @since 0.1.0
 */
import { ToolError, ToolJournal, ToolResult } from "@allm/core"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { Check, Options, Place } from "./Check.ts"
import { type Body, each, ensure, type Problem, render, same } from "./internal/check.ts"
import { texts } from "./internal/sessionSamples.ts"
import { type Open, refuse, StoreBench, succeed, told } from "./internal/storeBench.ts"

type Journal = Context.Tag.Service<ToolJournal.ToolJournal>

type Checked = Effect.Effect<void, Problem>

/**
 * A journal under test: a layer, or a place whose layer can be built again to see what outlives a process.
 *
 * @since 0.1.0
 * @category models
 */
export type Subject<E = never> =
  | Layer.Layer<ToolJournal.ToolJournal, E>
  | Place<ToolJournal.ToolJournal, E>

/**
 * The checks of a tool journal. Each builds the layer anew and uses sessions of its own, so the journal need not be empty.
 *
 * @example
 * ```ts
 * import * as Check from "@allm/conformance/Check"
 * import * as ToolJournalChecks from "@allm/conformance/ToolJournalChecks"
 * import { ToolJournal } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const checks = ToolJournalChecks.make(ToolJournal.layerMemory)
 *
 * Effect.runPromise(Check.violations(checks)).then((violations) => assert.deepStrictEqual(violations, []))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <E>(subject: Subject<E>, options?: Options): ReadonlyArray<Check> => {
  const bench = new StoreBench(ToolJournal.ToolJournal, subject, options)
  return [
    bench.one("knows a call as new, then in doubt, then settled", life),
    bench.one("gives back how a call ended, however it did", fidelity),
    bench.one("takes results that are no JSON", oddResults),
    bench.one("keeps calls and sessions apart, whatever their ids", apart),
    bench.one("tells one of many at once that a call is new", race),
    bench.one("loses none of many calls at once", crowd),
    bench.one("refuses an id that was used for something else, and leaves the entry", mismatches),
    bench.one("settles only what was prepared", notPrepared),
    bench.one("takes the word of whoever settles last", lastWord),
    bench.one("forgets the settled calls of a session and nothing else", forgets),
    bench.one("does not mind forgetting what is not there", nothing),
    bench.one("goes on after a preparation that was interrupted", interrupted),
    bench.later("has what was noted when it is opened again", reopened),
    bench.together("tells one of several that have it open that a call is new", contested)
  ]
}

const asked: ToolJournal.Asked = { toolName: "pay", digest: "d0" }

const outcome = (content: string): ToolJournal.StoredOutcome => ({
  result: ToolResult.ok({ receipt: 7 }),
  content,
  isError: false,
  halts: false
})

const keyOf = (sessionId: string, toolCallId = "c0"): ToolJournal.Key => ({ sessionId, toolCallId })

const nameOf = ({ sessionId, toolCallId }: ToolJournal.Key): string => render([sessionId, toolCallId])

const prepare = (
  journal: Journal,
  key: ToolJournal.Key,
  what = asked
): Effect.Effect<ToolJournal.Prepared, Problem> => succeed(`preparing ${nameOf(key)}`, journal.prepare(key, what))

const settle = (journal: Journal, key: ToolJournal.Key, end = outcome(key.toolCallId)): Checked =>
  succeed(`settling ${nameOf(key)}`, journal.settle(key, end))

const compact = (journal: Journal, sessionId: string): Checked =>
  succeed(`compacting ${render(sessionId)}`, journal.compact(sessionId))

const isKnownAs = (journal: Journal, key: ToolJournal.Key, tag: ToolJournal.Prepared["_tag"]): Checked =>
  Effect.flatMap(prepare(journal, key), ({ _tag }) => same(`what is known of ${nameOf(key)}`, _tag, tag))

const isSettledAs = (journal: Journal, key: ToolJournal.Key, content: string): Checked =>
  Effect.flatMap(prepare(journal, key), (known) =>
    known._tag === "Settled"
      ? same(`the content of ${nameOf(key)}`, known.entry.content, content)
      : Effect.fail(`${nameOf(key)} is known as ${known._tag}, not as Settled`))

const hasReason = (
  what: string,
  operation: Effect.Effect<unknown, ToolJournal.JournalError>,
  reason: ToolJournal.JournalError["reason"],
  key: ToolJournal.Key
): Checked =>
  Effect.flatMap(refuse(what, operation), (error) =>
    error instanceof ToolJournal.JournalError
      ? same(`the error of ${what}`, [error.reason, error.sessionId, error.toolCallId], [
        reason,
        key.sessionId,
        key.toolCallId
      ])
      : Effect.fail(`${what} failed with ${told(error)}, not with a JournalError`))

const life = (journal: Journal, prefix: string): Checked =>
  Effect.gen(function*() {
    const key = keyOf(`${prefix}s`)
    yield* isKnownAs(journal, key, "New")
    yield* isKnownAs(journal, key, "InDoubt")
    yield* isKnownAs(journal, key, "InDoubt")
    yield* settle(journal, key, outcome("paid"))
    yield* isSettledAs(journal, key, "paid")
    yield* isSettledAs(journal, key, "paid")
  })

const call = { toolName: "pay", toolCallId: "c0" }

const outcomes = (): ReadonlyArray<ToolJournal.StoredOutcome> => {
  const results: ReadonlyArray<ToolJournal.StoredOutcome["result"]> = [
    ToolResult.ok(null),
    ToolResult.ok({ text: "Grüße 👋", list: [1, -2.5, true, null, {}] }),
    { _tag: "Ok", value: 1, encoded: "one" },
    ToolResult.askUser("Which city?", { choices: ["Oslo"] }),
    ToolResult.halt("paid", { order: 7 }),
    new ToolError.HandlerFailed({ ...call, failure: { code: "no_funds" } }),
    new ToolError.HandlerRaised({ ...call, cause: Cause.die("boom") }),
    new ToolError.HandlerExit(call),
    new ToolError.Timeout({ ...call, limitMillis: 5, abandoned: true }),
    new ToolError.InvalidArguments({ ...call, issues: [{ path: ["a", 0], message: "is missing" }] }),
    new ToolError.InvalidReturn({ ...call, detail: "no result" }),
    new ToolError.EncodingFailed({ ...call, path: ["a"], detail: "has no text" }),
    new ToolError.NotFound({ ...call, detail: "no handler" }),
    new ToolError.Denied({ ...call, detail: "too much" }),
    new ToolError.OutcomeUnknown(call),
    new ToolError.Interrupted(call),
    new ToolError.Skipped(call)
  ]
  return [
    ...results.map((result) => ({ ...outcome("{}"), result, isError: ToolError.isToolError(result) })),
    ...texts.map(outcome),
    { ...outcome("stop"), halts: true, isError: true },
    { ...outcome("instead"), replaced: new ToolError.Timeout({ ...call, limitMillis: 5 }) }
  ]
}

const print = Schema.encodeSync(Schema.parseJson(ToolJournal.StoredOutcome))

const fidelity = (journal: Journal, prefix: string): Checked =>
  each([...outcomes().entries()], ([index, end]) =>
    Effect.gen(function*() {
      const key = keyOf(`${prefix}s`, `c${index}`)
      yield* isKnownAs(journal, key, "New")
      yield* settle(journal, key, end)
      const known = yield* prepare(journal, key)
      if (known._tag !== "Settled") return yield* Effect.fail(`a settled call is known as ${known._tag}`)
      yield* same("how the call ended", print(known.entry), print(end))
      // Errors come back as errors, not as what they look like.
      yield* same(
        "whether it is an error",
        ToolError.isToolError(known.entry.result),
        ToolError.isToolError(end.result)
      )
    }))

const oddResults = (journal: Journal, prefix: string): Checked => {
  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  const odd = [1n, cycle, () => 1, Symbol.iterator, NaN, new Map([["a", 1]]), undefined]
  return each([...odd.entries()], ([index, value]) =>
    Effect.gen(function*() {
      const key = keyOf(`${prefix}s`, `c${index}`)
      yield* prepare(journal, key)
      yield* settle(journal, key, { ...outcome("odd"), result: ToolResult.ok(value) })
      yield* isSettledAs(journal, key, "odd")
    }))
}

/** The empty one too: sessions and calls come from elsewhere, and a journal has to take what it gets. */
const oddIds: ReadonlyArray<string> = [
  "",
  "a",
  "A",
  "a/b",
  "a%2fb",
  "a%2Fb",
  "..",
  "con",
  " ",
  "a'b\"c`d",
  "a\\b",
  "__proto__",
  "é",
  "e\u0301",
  "a\u0000",
  "\ud800",
  "\ud801",
  "\ufffd",
  "👋",
  "長".repeat(400),
  "x".repeat(2_000),
  `${"x".repeat(1_999)}y`
]

const apart = (journal: Journal, prefix: string): Checked =>
  Effect.gen(function*() {
    const keys = [
      ...oddIds.map((id) => keyOf(`${prefix}${id}`)),
      ...oddIds.map((id) => keyOf(`${prefix}s`, id)),
      // The same text, cut at another place.
      keyOf(`${prefix}a`, "b/c"),
      keyOf(`${prefix}a/b`, "c")
    ]
    yield* each(keys, (key) => isKnownAs(journal, key, "New"))
    yield* each(keys, (key) => settle(journal, key, outcome(nameOf(key))))
    yield* each(keys, (key) => isSettledAs(journal, key, nameOf(key)))
    const [gone, ...rest] = keys
    yield* compact(journal, gone!.sessionId)
    yield* each(rest, (key) => isSettledAs(journal, key, nameOf(key)))
    yield* isKnownAs(journal, gone!, "New")
  })

const oneIsNew = (known: ReadonlyArray<ToolJournal.Prepared>): Checked => {
  const tags = known.map(({ _tag }) => _tag)
  const fresh = tags.filter((tag) => tag === "New").length
  return ensure(
    fresh === 1 && !tags.includes("Settled"),
    () => `of ${tags.length} at once ${fresh} are told that the call is new: ${tags.join(", ")}`
  )
}

const race = (journal: Journal, prefix: string): Checked =>
  each([0, 1, 2], (round) =>
    Effect.flatMap(
      Effect.forEach(Array.from({ length: 10 }), () => prepare(journal, keyOf(`${prefix}s`, `c${round}`)), {
        concurrency: "unbounded"
      }),
      oneIsNew
    ))

const crowd = (journal: Journal, prefix: string): Checked =>
  Effect.gen(function*() {
    const keys = Array.from({ length: 30 }, (_, index) => keyOf(`${prefix}${index % 2}`, `c${index}`))
    const all = { concurrency: "unbounded", discard: true } as const
    yield* Effect.forEach(keys, (key) => isKnownAs(journal, key, "New"), all)
    yield* Effect.forEach(keys, (key) => settle(journal, key), all)
    yield* each(keys, (key) => isSettledAs(journal, key, key.toolCallId))
    yield* Effect.forEach(["0", "1"], (session) => compact(journal, `${prefix}${session}`), all)
    yield* each(keys, (key) => isKnownAs(journal, key, "New"))
  })

const mismatches = (journal: Journal, prefix: string): Checked =>
  Effect.gen(function*() {
    const key = keyOf(`${prefix}s`)
    const others = [{ ...asked, digest: "d1" }, { ...asked, toolName: "refund" }]
    const refuses = each(others, (other) =>
      hasReason(`preparing ${nameOf(key)} for ${render(other)}`, journal.prepare(key, other), "mismatch", key))
    yield* prepare(journal, key)
    yield* refuses
    yield* isKnownAs(journal, key, "InDoubt")
    yield* settle(journal, key, outcome("paid"))
    yield* refuses
    yield* isSettledAs(journal, key, "paid")
  })

const notPrepared = (journal: Journal, prefix: string): Checked =>
  Effect.gen(function*() {
    const key = keyOf(`${prefix}s`)
    yield* hasReason(`settling ${nameOf(key)}`, journal.settle(key, outcome("paid")), "not_prepared", key)
    yield* isKnownAs(journal, key, "New")
  })

const lastWord = (journal: Journal, prefix: string): Checked =>
  Effect.gen(function*() {
    const key = keyOf(`${prefix}s`)
    yield* prepare(journal, key)
    yield* settle(journal, key, { ...outcome("unknown"), result: new ToolError.OutcomeUnknown(call), isError: true })
    yield* settle(journal, key, outcome("paid"))
    yield* isSettledAs(journal, key, "paid")
  })

const forgets = (journal: Journal, prefix: string): Checked =>
  Effect.gen(function*() {
    const settled = keyOf(`${prefix}s`, "settled")
    const open = keyOf(`${prefix}s`, "open")
    const elsewhere = keyOf(`${prefix}s2`, "settled")
    yield* each([settled, open, elsewhere], (key) => prepare(journal, key))
    yield* each([settled, elsewhere], (key) => settle(journal, key))
    yield* compact(journal, `${prefix}s`)
    yield* isKnownAs(journal, settled, "New")
    yield* isKnownAs(journal, open, "InDoubt")
    yield* isSettledAs(journal, elsewhere, "settled")
  })

const nothing = (journal: Journal, prefix: string): Checked =>
  Effect.gen(function*() {
    yield* compact(journal, `${prefix}never`)
    const key = keyOf(`${prefix}s`)
    yield* prepare(journal, key)
    yield* compact(journal, key.sessionId)
    yield* settle(journal, key)
    yield* compact(journal, key.sessionId)
    yield* compact(journal, key.sessionId)
    yield* isKnownAs(journal, key, "New")
  })

const interrupted = (journal: Journal, prefix: string): Checked =>
  Effect.gen(function*() {
    for (let turn = 0; turn < 10; turn++) {
      const key = keyOf(`${prefix}s`, `c${turn}`)
      const fiber = yield* Effect.fork(journal.prepare(key, asked))
      // A little later every time.
      yield* each(Array.from({ length: turn }), () => Effect.yieldNow())
      yield* Fiber.interrupt(fiber)
      const known = yield* prepare(journal, key)
      yield* ensure(known._tag !== "Settled", () => "a call that was never settled is known as Settled")
      yield* isKnownAs(journal, key, "InDoubt")
      yield* settle(journal, key)
      yield* isSettledAs(journal, key, key.toolCallId)
    }
  })

const reopened = (open: Open<Journal>, prefix: string): Body =>
  Effect.gen(function*() {
    const [settled, doubtful, fresh] = ["settled", "doubtful", "new"].map((id) => keyOf(`${prefix}s`, id)) as [
      ToolJournal.Key,
      ToolJournal.Key,
      ToolJournal.Key
    ]
    yield* Effect.scoped(Effect.flatMap(open, (journal) =>
      Effect.gen(function*() {
        yield* prepare(journal, settled)
        yield* prepare(journal, doubtful)
        yield* settle(journal, settled)
      })))
    const journal = yield* open
    yield* isSettledAs(journal, settled, "settled")
    yield* isKnownAs(journal, doubtful, "InDoubt")
    yield* isKnownAs(journal, fresh, "New")
    yield* compact(journal, `${prefix}s`)
    yield* isKnownAs(yield* open, settled, "New")
  })

const contested = (open: Open<Journal>, prefix: string): Body =>
  Effect.gen(function*() {
    const journals = yield* Effect.all([open, open, open])
    for (let round = 0; round < 6; round++) {
      const key = keyOf(`${prefix}s`, `c${round}`)
      const known = yield* Effect.forEach([...journals, ...journals], (journal) => prepare(journal, key), {
        concurrency: "unbounded"
      })
      yield* oneIsNew(known)
      yield* settle(journals[round % 3]!, key)
      yield* each(journals, (journal) => isSettledAs(journal, key, key.toolCallId))
    }
  })
