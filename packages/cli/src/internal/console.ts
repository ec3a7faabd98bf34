/**
 * A console without colours, for output that is no terminal: help is always written in colours.
 */
import type * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Style from "./terminal/style.ts"

const withoutColours = (values: ReadonlyArray<unknown>): ReadonlyArray<unknown> =>
  values.map((value) => typeof value === "string" ? Style.unpainted(value) : value)

/** Leaves out the colours of what `self` prints where `isColoured` says there are none. */
export const withPlainConsole =
  (isColoured: { readonly log: boolean; readonly error: boolean }) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.flatMap(Effect.console, (console) =>
      Effect.withConsole(
        self,
        {
          ...console,
          log: (...values) => console.log(...(isColoured.log ? values : withoutColours(values))),
          error: (...values) => console.error(...(isColoured.error ? values : withoutColours(values)))
        } satisfies Console.Console
      ))
