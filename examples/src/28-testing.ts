/** An agent of your own, and beside it, in `28-testing.test.ts`, its test: a scripted model, a clock moved by hand. */
import { Allm, Tool } from "@allm/core"
import { Context, Effect, Schema } from "effect"

export class Taxis extends Context.Tag("Taxis")<Taxis, {
  readonly call: (address: string) => Effect.Effect<string, "no taxi is free">
}>() {}

const callTaxi = Tool.make("call_taxi", {
  description: "Calls a taxi to an address",
  parameters: { address: Schema.String },
  timeout: "2 minutes",
  handler: ({ address }) => Effect.flatMap(Taxis, (taxis) => taxis.call(address))
})

export const goHome = Effect.fn("goHome")(function*(address: string) {
  const { finalResponse } = yield* Allm.chat(`I am at ${address} and want to go home`, { tools: [callTaxi] })
  return finalResponse.outputText
})
