// @effect/ai: `Chat` over a `LanguageModel`. It has no loop of its own; this is the one of its documentation.
import * as Chat from "@effect/ai/Chat"
import * as LanguageModel from "@effect/ai/LanguageModel"
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { openArguments, openChat, openText, plan, reply } from "../lib/script.mjs"

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 }

const keyOf = ({ content }) => {
  const last = content[content.length - 1]
  return last.role === "tool" ? last.content[0].id : last.content[0].text
}

const callPart = ({ id, name, rawArguments }) => ({
  type: "tool-call",
  id,
  name,
  params: JSON.parse(rawArguments),
  providerExecuted: false
})

const answer = ({ calls, text }) =>
  calls === undefined
    ? [{ type: "text", text }, { type: "finish", reason: "stop", usage }]
    : [...calls.map(callPart), { type: "finish", reason: "tool-calls", usage }]

const parts = ({ id, kind, name, reads }) => {
  const arriving = Stream.fromAsyncIterable(reads, (cause) => new Error("the model broke off", { cause }))
  if (kind === "text") {
    return Stream.make({ type: "text-start", id: "text" }).pipe(
      Stream.concat(
        Stream.mapConcat(arriving, (read) => read.map((delta) => ({ type: "text-delta", id: "text", delta })))
      ),
      Stream.concat(Stream.make({ type: "text-end", id: "text" }, { type: "finish", reason: "stop", usage }))
    )
  }
  let rawArguments = ""
  const deltas = Stream.mapConcat(arriving, (read) =>
    read.map((delta) => {
      rawArguments += delta
      return { type: "tool-params-delta", id, delta }
    }))
  return Stream.make({ type: "tool-params-start", id, name, providerExecuted: false }).pipe(
    Stream.concat(deltas),
    Stream.concat(
      Stream.suspend(() =>
        Stream.make(
          { type: "tool-params-end", id },
          callPart({ id, name, rawArguments }),
          { type: "finish", reason: "tool-calls", usage }
        )
      )
    )
  )
}

const model = LanguageModel.make({
  generateText: ({ prompt }) => Effect.promise(async () => answer(reply(keyOf(prompt)))),
  streamText: ({ prompt }) => parts(plan(keyOf(prompt)))
})

const fields = { text: Schema.String, n: Schema.Number }
const declared = { parameters: fields, success: Schema.Struct(fields) }
const toolkit = Toolkit.make(
  Tool.make("echo", { description: "Gives back its input", ...declared }),
  Tool.make("wait", { description: "Gives back its input, later", ...declared })
)
const request = { prompt: [], toolkit, concurrency: "unbounded" }

const chat = Effect.fnUntraced(function*(options) {
  const chat = yield* Chat.fromPrompt(openChat(options))
  for (;;) {
    const { text, toolCalls } = yield* chat.generateText(request)
    if (toolCalls.length === 0) return text
  }
})

const read = Effect.fnUntraced(function*(prompt) {
  const chat = yield* Chat.fromPrompt(prompt)
  const seen = { text: "", textDeltas: 0, paramsDeltas: 0, calls: 0 }
  const take = (part) => {
    if (part.type === "tool-params-delta") seen.paramsDeltas++
    else if (part.type === "tool-call") seen.calls++
    else if (part.type === "text-delta") {
      seen.textDeltas++
      seen.text += part.delta
    }
  }
  do {
    seen.calls = 0
    yield* Stream.runForEach(chat.streamText(request), (part) => Effect.sync(() => take(part)))
  } while (seen.calls > 0)
  return seen
})

export const create = ({ echo, wait }) => {
  const handlers = toolkit.toLayer({
    echo: (input) => Effect.promise(() => echo(input)),
    wait: (input) => Effect.promise(() => wait(input))
  })
  const runtime = ManagedRuntime.make(Layer.merge(Layer.effect(LanguageModel.LanguageModel, model), handlers))

  return {
    chat: (options) => runtime.runPromise(chat(options)),
    streamText: async (options) => {
      const { text, textDeltas } = await runtime.runPromise(read(openText(options)))
      return { deltas: textDeltas, chars: text.length }
    },
    streamArguments: async (options) => {
      const { paramsDeltas, text } = await runtime.runPromise(read(openArguments(options)))
      return { deltas: paramsDeltas, text }
    }
  }
}
