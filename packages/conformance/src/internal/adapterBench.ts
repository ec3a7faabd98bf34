/**
 * Opens the adapter under test, asks it, and keeps everything it emits.
 */
import { Adapter, AdapterError, type Event, type Request } from "@allm/core"
import * as Cause from "effect/Cause"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Problem, render } from "./check.ts"

export interface Opened {
  readonly adapter: Adapter.Service
  /** How many answers are being given at the other end. */
  readonly open?: Effect.Effect<number>
}

type Subject<E> =
  | Adapter.Service
  | Layer.Layer<Adapter.Adapter, E>
  | Effect.Effect<Opened, E, Scope.Scope>

export const open = <E>(subject: Subject<E>): Effect.Effect<Opened, Problem, Scope.Scope> => {
  const opened: Effect.Effect<Opened, E, Scope.Scope> = Effect.isEffect(subject)
    ? subject
    : Layer.isLayer(subject)
    ? Effect.map(
      Layer.build(subject as Layer.Layer<Adapter.Adapter, E>),
      (context) => ({ adapter: Context.get(context, Adapter.Adapter) })
    )
    : Effect.succeed({ adapter: subject as Adapter.Service })
  return Effect.mapError(opened, (error) => `the scenario cannot be opened: ${render(error)}`)
}

export interface Asked {
  readonly events: ReadonlyArray<Event.AdapterEvent>
  readonly exit: Exit.Exit<void, unknown>
}

/** Asks with an emit that keeps the events, each of them only after `wait`. */
export const ask = (
  adapter: Adapter.Service,
  request: Request.Request,
  wait?: () => Effect.Effect<void>
): Effect.Effect<Asked> =>
  Effect.suspend(() => {
    const events: Array<Event.AdapterEvent> = []
    const emit: Adapter.Emit = (batch) => {
      const keep = Effect.sync(() => {
        events.push(...batch)
      })
      return wait === undefined ? keep : Effect.zipRight(Effect.suspend(wait), keep)
    }
    return Effect.map(
      Effect.exit(Effect.suspend(() => adapter.generate(request, emit))),
      (exit) => ({ events, exit })
    )
  })

/** Asks through a Stream. */
export const streamed = (
  adapter: Adapter.Service,
  request: Request.Request,
  between: Effect.Effect<void>
): Effect.Effect<Asked> =>
  Effect.suspend(() => {
    const events: Array<Event.AdapterEvent> = []
    return Adapter.stream(request).pipe(
      Stream.runForEach((event) => Effect.zipRight(between, Effect.sync(() => void events.push(event)))),
      Effect.provideService(Adapter.Adapter, adapter),
      Effect.exit,
      Effect.map((exit) => ({ events, exit }))
    )
  })

export const finished = ({ exit }: Asked): Effect.Effect<void, Problem> =>
  Exit.isSuccess(exit) ? Effect.void : Effect.fail(`it failed: ${Cause.pretty(exit.cause)}`)

/** Exactly one `AdapterError`; everything else is a problem. */
export const failureOf = ({ exit }: Asked): Effect.Effect<AdapterError.AdapterError, Problem> => {
  if (Exit.isSuccess(exit)) return Effect.fail("it succeeded")
  const failures = Chunk.toReadonlyArray(Cause.failures(exit.cause))
  const [error] = failures
  return failures.length === 1 && Chunk.isEmpty(Cause.defects(exit.cause)) && error instanceof AdapterError.AdapterError
    ? Effect.succeed(error)
    : Effect.fail(`it ended in ${Cause.pretty(exit.cause)}, not in one AdapterError`)
}
