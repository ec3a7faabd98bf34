// The stream of ALLM over HTTP, with the client that the others use too: fetch.
import * as Allm from "@allm/core/Allm"
import * as OpenAi from "@allm/openai/OpenAi"
import * as OpenAiChat from "@allm/openai/OpenAiChat"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"

const modules = { chat: OpenAiChat, responses: OpenAi }

export const streamHttp = (consume) => {
  const runtimes = new Map()
  const runtimeFor = (baseUrl, protocol) => {
    const key = `${protocol} ${baseUrl}`
    if (!runtimes.has(key)) {
      const engine = modules[protocol].engine({ baseUrl, model: "scripted" })
      runtimes.set(key, ManagedRuntime.make(Layer.provide(engine, FetchHttpClient.layer)))
    }
    return runtimes.get(key)
  }
  return async ({ baseUrl, protocol }) => {
    const seen = { deltas: 0, chars: 0 }
    const take = (event) => {
      if (event._tag !== "TextDelta") return
      seen.deltas++
      seen.chars += event.delta.length
    }
    await runtimeFor(baseUrl, protocol).runPromise(consume(Allm.stream("go"), take))
    return seen
  }
}
