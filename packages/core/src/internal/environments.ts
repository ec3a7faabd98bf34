/**
 * The services an engine's tools were given when it was built. Kept beside the engine, which stays a plain value.
 */
import * as Context from "effect/Context"
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
  // Where a tool runs and what its span hangs on is the business of the run, not of the day the engine was built.
  const services = Context.omit(Tracer.ParentSpan, Scope.Scope)(environment as Context.Context<Tracer.ParentSpan>)
  captured.set(engine, { environment: services as Context.Context<never>, tools: new Set(engine.tools) })
  return engine
}

/** An engine made from another one has its environment too. */
export const derive = (from: Engine, engine: Engine): Engine => {
  const known = captured.get(from)
  if (known !== undefined) captured.set(engine, known)
  return engine
}

export const environmentOf = (engine: Engine): Context.Context<never> | undefined => captured.get(engine)?.environment

export const toolEnvironment = (engine: Engine): (tool: Any) => Context.Context<never> | undefined => {
  const known = captured.get(engine)
  return (tool) => known?.tools.has(tool) === true ? known.environment : undefined
}
