/** A conversation of several turns: the thread of a result goes into the next question. */
import { Allm, Fake, Message, Thread } from "@allm/core"
import { Console, Effect } from "effect"

// Like any model it remembers nothing: all it knows is the thread it is sent.
const Model = Fake.engine({
  respond: ({ messages }) => {
    const [first, ...others] = messages.filter(({ role }) => role === "user").map(Message.toText)
    return [Fake.text(others.length === 0 ? "Hello, Ada." : `You began with "${first}"`), Fake.finish("stop")]
  }
})

const say = (thread: Thread.Thread, text: string) =>
  Effect.gen(function*() {
    const result = yield* Allm.chat(Thread.append(thread, Message.user(text)))
    yield* Console.log(`user: ${text}`)
    yield* Console.log(`assistant: ${result.finalResponse.outputText}`)
    return result.thread
  })

const program = Effect.gen(function*() {
  const empty = Thread.make([Message.system("Answer in one sentence.")])

  const first = yield* say(empty, "My name is Ada.")
  const second = yield* say(first, "What did I say first?")
  yield* Console.log(`${second.messages.length} messages`)

  // A thread never changes. To take something back, go on with an earlier one.
  const other = yield* say(empty, "What did I say first?")
  yield* Console.log(`${other.messages.length} messages`)
})

Effect.runPromise(Effect.provide(program, Model))
