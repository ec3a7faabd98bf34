// ALLM as most people use it: a schema for the arguments, async handlers, everything else by default.
import * as Tool from "@allm/core/Tool"
import * as ToolCall from "@allm/core/ToolCall"
import * as ToolRunner from "@allm/core/ToolRunner"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import { openArguments, openChat, openText, plan, reply } from "../lib/script.mjs"
import { summarize } from "../lib/work.mjs"
import { streamHttp } from "./allm-http.mjs"
import { byChunk, makeLoop } from "./allm-loop.mjs"

const toolOf = (name) => (handler) =>
  Tool.make(name, {
    description: "Gives back its input",
    parameters: { text: Schema.String, n: Schema.Number },
    handler
  })

export const makeEcho = toolOf("echo")
const makeWait = toolOf("wait")

export const options = { concurrency: 64 }

export const batchOf = (tool) => async (calls) => {
  const { messages } = await Effect.runPromise(
    ToolRunner.run(calls.map((call) => ToolCall.fromRaw(call)), [tool], options)
  )
  return summarize(messages)
}

export const streamsOf = (loop, consume) => ({
  streamText: async (options) => {
    const { text, textDeltas } = await loop.stream(openText(options), consume)
    return { deltas: textDeltas, chars: text.length }
  },
  streamArguments: async (options) => {
    const { argumentDeltas, text } = await loop.stream(openArguments(options), consume)
    return { deltas: argumentDeltas, text }
  }
})

export const loopOf = ({ echo, wait }) => {
  const tools = [makeEcho((input) => echo(input)), makeWait((input) => wait(input))]
  return makeLoop({ plan, reply, tools })
}

export const fibers = () => Fiber.unsafeRoots().length

export const create = (work) => {
  const loop = loopOf(work)
  return {
    batch: batchOf(makeEcho((input) => work.echo(input))),
    chat: (options) => loop.chat(openChat(options)),
    ...streamsOf(loop, byChunk),
    streamHttp: streamHttp(byChunk),
    fibers
  }
}
