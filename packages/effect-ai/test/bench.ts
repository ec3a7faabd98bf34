import { type Adapter, type AdapterError, Collector, type Event, type Request, type Response } from "@allm/core"
import { EffectAi } from "@allm/effect-ai"
import { Cause, Effect, Either } from "effect"
import * as Scripted from "./scripted.ts"

/** What came of asking an adapter: its events, what they come to, and the error it failed with. */
export interface Asked {
  readonly events: ReadonlyArray<Event.AdapterEvent>
  readonly response: Response.Response
  readonly error: AdapterError.AdapterError | undefined
}

export const ask = (adapter: Adapter.Service, request: Request.Request): Effect.Effect<Asked> =>
  Effect.gen(function*() {
    const events: Array<Event.AdapterEvent> = []
    const result = yield* Effect.either(
      adapter.generate(request, (batch) => Effect.sync(() => void events.push(...batch)))
    )
    const collector = events.reduce(Collector.add, Collector.make())
    return {
      events,
      response: Collector.toResponse(collector),
      // Inside a span Effect fails with a proxy.
      error: Either.isLeft(result) ? Cause.originalError(result.left) : undefined
    }
  })

/** Asks a model of theirs that says these parts, each in a read of its own. */
export const askTheirs = (
  parts: ReadonlyArray<Scripted.Part>,
  request: Request.Request,
  options?: EffectAi.Options
) =>
  Effect.gen(function*() {
    const { asked, model } = yield* Scripted.make(() => Scripted.reads(parts))
    const said = yield* ask(EffectAi.fromLanguageModel(model, options), request)
    return { ...said, asked }
  })
