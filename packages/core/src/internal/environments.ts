/**
 * The services an engine's tools were given when it was built. Kept beside the engine, which stays a plain value.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import type { Service as Engine } from "../Engine.ts"
import type { Any } from "../Tool.ts"

interface Captured {
  readonly environment: Context.Context<never>
  /** The tools it belongs to: those of a call bring their own. */
  readonly tools: ReadonlySet<Any>
}

const captured = new WeakMap<Engine, Captured>()

export const capture = (engine: Engine, environment: Context.Context<never>): Engine => {
  captured.set(engine, { environment: lasting(environment), tools: new Set(engine.tools) })
  return engine
}

// Where something runs and what its span hangs on is the business of the run, not of where its services came from.
const lasting = (environment: Context.Context<never>): Context.Context<never> =>
  Context.omit(Tracer.ParentSpan, Scope.Scope)(environment as Context.Context<Tracer.ParentSpan>) as Context.Context<
    never
  >

/** An engine made from another one has its environment too. */
export const derive = (from: Engine, engine: Engine): Engine => {
  const known = captured.get(from)
  if (known !== undefined) captured.set(engine, known)
  return engine
}

export const environmentOf = (engine: Engine): Context.Context<never> | undefined => captured.get(engine)?.environment

/** The environment of an engine's tools, but for those a call brings along once more. */
export const toolEnvironment = (
  engine: Engine,
  given: ReadonlyArray<Any>
): (tool: Any) => Context.Context<never> | undefined => {
  const known = captured.get(engine)
  return (tool) => known?.tools.has(tool) === true && !given.includes(tool) ? known.environment : undefined
}

/** A function whose Effects find the services of where the function was given, whoever runs them. */
export const bound = <F>(callback: F, environment: Context.Context<never> | undefined): F => {
  if (typeof callback !== "function" || environment === undefined) return callback
  const services = lasting(environment)
  const wrapped = (...args: ReadonlyArray<unknown>): unknown => {
    const answer: unknown = callback(...args)
    return Effect.isEffect(answer)
      ? Effect.mapInputContext(answer as Effect.Effect<unknown, unknown>, (own) => Context.merge(own, services))
      : answer
  }
  return wrapped as F
}
