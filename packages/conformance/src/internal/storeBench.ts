/**
 * Services that keep things, opened for a check: once, again later, or by two at the same time.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import type { Check, Options, Place } from "../Check.ts"
import { type Body, check, type Problem, render, skip } from "./check.ts"

export type Open<S> = Effect.Effect<S, Problem, Scope.Scope>

export class StoreBench<I, S, E> {
  private readonly tag: Context.Tag<I, S>
  private readonly place: Effect.Effect<Layer.Layer<I, E>, E, Scope.Scope>
  private readonly outlives: boolean
  private readonly shared: boolean
  private readonly options: Options | undefined

  constructor(tag: Context.Tag<I, S>, subject: Layer.Layer<I, E> | Place<I, E>, options: Options | undefined) {
    this.tag = tag
    this.outlives = "place" in subject
    this.place = "place" in subject ? subject.place : Effect.succeed(subject)
    this.shared = "place" in subject && subject.shared === true
    this.options = options
  }

  /** A promise that one service keeps. Ids begin with something no other check has. */
  one(name: string, body: (store: S, prefix: string) => Effect.Effect<void, Problem>): Check {
    return this.check(name, (open, prefix) => Effect.flatMap(open, (store) => body(store, prefix)))
  }

  /** A promise about what is found when the place is opened again. */
  later(name: string, body: (open: Open<S>, prefix: string) => Body): Check {
    return this.outlives ? this.check(name, body) : skip(name, "a place that can be opened again")
  }

  /** A promise about those that have the place open at the same time. */
  together(name: string, body: (open: Open<S>, prefix: string) => Body): Check {
    return this.shared ? this.check(name, body) : skip(name, "a place that several may have open")
  }

  private check(name: string, body: (open: Open<S>, prefix: string) => Body): Check {
    const checked: Body = Effect.gen(this, function*() {
      const layer = yield* Effect.mapError(this.place, (error) => `the place cannot be made: ${render(error)}`)
      const open = Effect.mapBoth(Layer.build(layer), {
        onFailure: (error) => `the layer cannot be built: ${render(error)}`,
        onSuccess: Context.get(this.tag)
      })
      return yield* body(open, yield* freshPrefix)
    })
    return check(name, checked, this.options)
  }
}

const freshPrefix: Effect.Effect<string> = Effect.map(
  Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER),
  (number) => `${number.toString(36)}-`
)

/** What an operation gave. Anything but a value or one of its errors is a problem. */
export const settle = <A, E>(what: string, effect: Effect.Effect<A, E>): Effect.Effect<Either.Either<A, E>, Problem> =>
  Effect.flatMap(
    Effect.exit(Effect.suspend(() => effect)),
    (exit): Effect.Effect<Either.Either<A, E>, Problem> => {
      if (Exit.isSuccess(exit)) return Effect.succeed(Either.right(exit.value))
      const error = Cause.failureOrCause(exit.cause)
      return Either.isLeft(error)
        ? Effect.succeed(Either.left(error.left))
        : Effect.fail(`${what} crashed: ${Cause.pretty(error.right)}`)
    }
  )

/** What an operation gave that has to succeed. */
export const succeed = <A, E>(what: string, effect: Effect.Effect<A, E>): Effect.Effect<A, Problem> =>
  Effect.flatMap(
    settle(what, effect),
    Either.match({
      onLeft: (error) => Effect.fail(`${what} failed: ${told(error)}`),
      onRight: (value) => Effect.succeed(value)
    })
  )

/** The error of an operation that has to fail. */
export const refuse = <A, E>(what: string, effect: Effect.Effect<A, E>): Effect.Effect<E, Problem> =>
  Effect.flatMap(
    settle(what, effect),
    Either.match({
      onLeft: (error) => Effect.succeed(error),
      onRight: (value) => Effect.fail(`${what} succeeded with ${render(value)}`)
    })
  )

export const told = (error: unknown): string => error instanceof Error ? error.message : render(error)

/** A value as it comes back from a text. */
export const fromText = (value: unknown): unknown => {
  const text = JSON.stringify(value)
  return text === undefined ? undefined : JSON.parse(text)
}
