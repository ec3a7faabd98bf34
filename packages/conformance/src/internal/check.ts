/**
 * How checks are written: a body that fails with a sentence, and everything that keeps it total.
 */
import * as Cause from "effect/Cause"
import * as Chunk from "effect/Chunk"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { type Check, type Options, Violation } from "../Check.ts"

/** What a body fails with: what happened, in a sentence. */
export type Problem = string

export type Body = Effect.Effect<void, Problem, Scope.Scope>

/** Runs with the time of the machine, also where a test holds the clock. */
export const live: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R> = Effect.withClock(Clock.make())

/** Lets whatever still runs go on for a while, in real time. */
export const aWhile: Effect.Effect<void> = live(Effect.sleep("20 millis"))

/** Ends after a limit in real time, even when the effect cannot be interrupted. */
const within = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  limit: Duration.DurationInput,
  onTimeout: () => E
): Effect.Effect<A, E, R> =>
  Effect.flatMap(
    Effect.clock,
    (clock) =>
      live(Effect.timeoutFail(Effect.disconnect(Effect.withClock(effect, clock)), { duration: limit, onTimeout }))
  )

export const check = (name: string, body: Body, options: Options = {}): Check => {
  const { limit = "3 seconds" } = options
  const violation = (problem: Problem): Violation => new Violation({ check: name, problem })
  return {
    name,
    skipped: undefined,
    effect: Effect.scoped(body).pipe(
      Effect.catchAllCause((cause) => Effect.fail(violation(problemOf(cause)))),
      (effect) => within(effect, limit, () => violation("it does not come to an end"))
    )
  }
}

/** A check that cannot be made, because `missing` was not given. */
export const skip = (name: string, missing: string): Check => ({ name, skipped: missing, effect: Effect.void })

const problemOf = (cause: Cause.Cause<Problem>): Problem =>
  Option.getOrElse(Chunk.head(Cause.failures(cause)), () => `it crashed: ${Cause.pretty(cause)}`)

export const ensure = (holds: boolean, problem: () => Problem): Effect.Effect<void, Problem> =>
  holds ? Effect.void : Effect.fail(problem())

export const each = <A, R>(
  values: ReadonlyArray<A>,
  body: (value: A) => Effect.Effect<unknown, Problem, R>
): Effect.Effect<void, Problem, R> => Effect.forEach(values, body, { discard: true })

/** Compares by what `render` shows of them. */
export const same = (what: string, actual: unknown, expected: unknown): Effect.Effect<void, Problem> =>
  ensure(
    render(actual) === render(expected),
    () => `${what} is ${cut(render(actual))}, not ${cut(render(expected))}`
  )

/** Waits, in real time, until something holds; the check's limit ends the wait. */
export const until = (condition: Effect.Effect<boolean, Problem>): Effect.Effect<void, Problem> =>
  Effect.flatMap(condition, (holds) => holds ? Effect.void : Effect.zipRight(aWhile, until(condition)))

const cut = (text: string): string => text.length > 300 ? `${text.slice(0, 297)}...` : text

/** A value as text: the same for equal data, whatever the order of its keys. Never throws. */
export const render = (value: unknown): string => {
  try {
    return draw(value, [])
  } catch {
    return "[unreadable]"
  }
}

const draw = (value: unknown, above: ReadonlyArray<unknown>): string => {
  if (typeof value === "string") return JSON.stringify(value)
  if (typeof value === "bigint") return `${value}n`
  if (typeof value === "function") return "[function]"
  if (Object.is(value, -0)) return "-0"
  if (typeof value !== "object" || value === null) return String(value)
  if (above.includes(value)) return "[cycle]"
  if (above.length > 100) return "[deep]"
  const inside = [...above, value]
  if (Array.isArray(value)) return `[${Array.from(value, (member) => draw(member, inside)).join(",")}]`
  const name: unknown = Object.getPrototypeOf(value)?.constructor?.name
  const members = Object.keys(value).sort().map((key) =>
    `${JSON.stringify(key)}:${draw((value as Record<string, unknown>)[key], inside)}`
  )
  const text = `{${members.join(",")}}`
  return typeof name === "string" && name !== "Object" ? `${name} ${text}` : text
}
