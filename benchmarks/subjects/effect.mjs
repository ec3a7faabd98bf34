// The same guarantees as an Effect user gets them from the primitives: a bound, a timeout and an exit for each call.
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { summarize } from "../lib/work.mjs"

export const create = ({ echo }) => {
  const runCall = ({ id, rawArguments }) =>
    Effect.promise(() => echo(JSON.parse(rawArguments))).pipe(
      Effect.timeout("30 seconds"),
      Effect.exit,
      Effect.map((exit) => ({
        role: "tool",
        toolCallId: id,
        content: Exit.isSuccess(exit) ? JSON.stringify(exit.value) : "failed",
        isError: Exit.isFailure(exit)
      }))
    )

  return {
    run: (calls) => Effect.runPromise(Effect.map(Effect.forEach(calls, runCall, { concurrency: 64 }), summarize)),
    fibers: () => Fiber.unsafeRoots().length
  }
}
