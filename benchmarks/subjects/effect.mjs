// The same guarantees as an Effect user gets them from the primitives: a bound, a timeout and an exit for each call, and
// a Stream over what arrives.
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { openArguments, openChat, openText, plan } from "../lib/script.mjs"
import { summarize } from "../lib/work.mjs"
import { ask } from "./floor.mjs"

export const create = ({ echo, wait }) => {
  const tools = { echo, wait }

  const runCall = ({ id, name, rawArguments }) =>
    Effect.promise(() => tools[name](JSON.parse(rawArguments))).pipe(
      Effect.timeout("30 seconds"),
      Effect.exit,
      Effect.map((exit) => ({
        role: "tool",
        toolCallId: id,
        content: Exit.isSuccess(exit) ? JSON.stringify(exit.value) : "failed",
        isError: Exit.isFailure(exit)
      }))
    )

  const runAll = (calls) => Effect.forEach(calls, runCall, { concurrency: 64 })

  const chat = Effect.fnUntraced(function*(options) {
    const messages = [{ role: "user", content: openChat(options) }]
    for (;;) {
      const { calls, text } = yield* Effect.promise(() => ask(messages))
      if (calls === undefined) return text
      messages.push({ role: "assistant", calls })
      for (const message of yield* runAll(calls)) messages.push(message)
    }
  })

  const streamText = Effect.fnUntraced(function*(options) {
    const { deltas, text } = yield* readAll(plan(openText(options)).reads)
    return { deltas, chars: text.length }
  })

  const streamArguments = Effect.fnUntraced(function*(options) {
    const { id, name, reads } = plan(openArguments(options))
    const { deltas, text } = yield* readAll(reads)
    const { toolCallId } = yield* runCall({ id, name, rawArguments: text })
    return { deltas, text: (yield* readAll(plan(toolCallId).reads)).text }
  })

  return {
    batch: (calls) => Effect.runPromise(Effect.map(runAll(calls), summarize)),
    chat: (options) => Effect.runPromise(chat(options)),
    streamText: (options) => Effect.runPromise(streamText(options)),
    streamArguments: (options) => Effect.runPromise(streamArguments(options)),
    fibers: () => Fiber.unsafeRoots().length
  }
}

const readAll = (reads) =>
  Effect.suspend(() => {
    let deltas = 0
    let text = ""
    return Stream.fromAsyncIterable(reads, (cause) => new Error("the model broke off", { cause })).pipe(
      Stream.mapConcat((read) => read),
      Stream.runForEach((delta) =>
        Effect.sync(() => {
          deltas++
          text += delta
        })
      ),
      Effect.map(() => ({ deltas, text }))
    )
  })
