// What is done with every store: save a turn, load a session, run calls that are noted in a journal.
import * as Session from "@allm/core/Session"
import { SessionStore } from "@allm/core/SessionStore"
import * as ToolCall from "@allm/core/ToolCall"
import { ToolJournal } from "@allm/core/ToolJournal"
import * as ToolRunner from "@allm/core/ToolRunner"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { same, summarize } from "../../lib/work.mjs"
import { makeEcho, options } from "../allm.mjs"

const text = "A sentence of a length that people write and models answer with, more or less. ".repeat(3).slice(0, 200)

const message = (index) =>
  index % 2 === 0
    ? { role: "user", content: `${index} ${text}`, metadata: {} }
    : { role: "assistant", content: `${index} ${text}`, toolCalls: [], metadata: {} }

const grown = (session, length) => {
  const messages = [...session.thread.messages]
  while (messages.length < length) messages.push(message(messages.length))
  return { ...session, thread: { ...session.thread, messages } }
}

const timed = async (action) => {
  const start = performance.now()
  const result = await action()
  return [performance.now() - start, result]
}

/** `client` is what stores opened anew share; each build of `store` remembers nothing. */
export const sessions = ({ client = Layer.empty, isReopened = true, store }) => {
  const runtime = ManagedRuntime.make(Layer.provideMerge(store, client))
  const run = (effect) => runtime.runPromise(effect)
  const saved = (session) => run(Effect.flatMap(SessionStore, ({ save }) => save(session)))
  const prefix = `${process.pid}-`
  let made = 0

  /** A session that was saved twice, so that what its first save left to do is done. */
  const setUp = async (history) => {
    const first = await saved(grown(Session.make({ id: `${prefix}${made++}` }), history - 2))
    return saved(grown(first, history))
  }

  const growing = new Map()
  const standing = new Map()

  const save = async ({ history }) => {
    let current = growing.get(history)
    // Not for long, or it would be another history.
    if (current === undefined || current.thread.messages.length >= history * 1.2 + 10) current = await setUp(history)
    const next = grown(current, current.thread.messages.length + 2)
    const [ms, result] = await timed(() => saved(next))
    same("version", result.version, current.version + 1)
    growing.set(history, result)
    return ms
  }

  const idOf = async (history) => {
    if (!standing.has(history)) standing.set(history, (await setUp(history)).id)
    return standing.get(history)
  }

  const load = Effect.fnUntraced(function*(id) {
    return yield* (yield* SessionStore).load(id)
  })

  const loadAgain = async ({ history }) => {
    const id = await idOf(history)
    const [ms, { thread }] = await timed(() => run(load(id)))
    same("messages", thread.messages.length, history)
    return ms
  }

  const loadFirst = async ({ history }) => {
    const id = await idOf(history)
    const context = await run(Effect.scoped(Layer.build(store)))
    const [ms, { thread }] = await timed(() => run(Effect.provide(load(id), context)))
    same("messages", thread.messages.length, history)
    return ms
  }

  return isReopened ? { save, loadAgain, loadFirst } : { save, loadAgain }
}

/** Calls of a batch, each noted before it starts and after it ended. */
export const journaled = ({ echo }, layer) => {
  const runtime = ManagedRuntime.make(layer)
  const tool = makeEcho((input) => echo(input))
  let made = 0
  return {
    journaled: async (calls) => {
      const sessionId = `${process.pid}-${made++}`
      const batch = ToolRunner.run(calls.map((call) => ToolCall.fromRaw(call)), [tool], { ...options, sessionId })
      const [ms, { messages }] = await timed(() => runtime.runPromise(batch))
      // A journal that is never cleared is another one after a while.
      await runtime.runPromise(
        Effect.flatMap(
          Effect.serviceOption(ToolJournal),
          (journal) => journal._tag === "Some" ? journal.value.compact(sessionId) : Effect.void
        )
      )
      return { ...summarize(messages), ms }
    }
  }
}
