/**
 * Spans that cost nothing unless someone listens.
 */
import * as Context from "effect/Context"
import * as DefaultServices from "effect/DefaultServices"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as Tracer from "effect/Tracer"

export type Attributes = { readonly [name: string]: unknown }

const nativeTracer = Context.get(DefaultServices.liveServices, Tracer.Tracer)

/** Whether spans of this fiber reach anyone: Effect's own tracer only keeps them. */
export const isListening = (fiber: Fiber.RuntimeFiber<unknown, unknown>): boolean =>
  fiber.currentTracer !== nativeTracer && fiber.getFiberRef(FiberRef.currentTracerEnabled)

/** Runs an effect in a span; `after` tells what is known of it at its end. */
export const traced = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  name: string,
  before: () => Attributes,
  after: (value: A) => Attributes
): Effect.Effect<A, E, R> =>
  Effect.withFiberRuntime<A, E, R>((fiber) =>
    isListening(fiber)
      ? effect.pipe(
        Effect.tap((value) => Effect.annotateCurrentSpan(defined(after(value)))),
        Effect.withSpan(name, { attributes: defined(before()), captureStackTrace: false })
      ) as Effect.Effect<A, E, R>
      : effect
  )

const defined = (attributes: Attributes): Record<string, unknown> =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))
