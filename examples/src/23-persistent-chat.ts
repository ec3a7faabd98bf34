/** A conversation in files. Run it again, with other words if you like, and it goes on where it was. */
import { Fake, Message, Session, SessionStore } from "@allm/core"
import { NodeContext } from "@effect/platform-node"
import { Console, Effect, Layer } from "effect"
import { tmpdir } from "node:os"
import { argv } from "node:process"

// Remembers nothing by itself: all it knows is what it is sent.
const Assistant = Fake.engine({
  respond: ({ messages }) => {
    const said = messages.filter(({ role }) => role === "user").map(Message.toText)
    return [Fake.text(`That was message ${said.length} of yours, the first was "${said[0]}".`), Fake.finish("stop")]
  }
})

const Store = Layer.provide(SessionStore.layerFileSystem(`${tmpdir()}/allm-persistent-chat`), NodeContext.layer)

const program = Effect.gen(function*() {
  const store = yield* SessionStore.SessionStore
  const before = yield* store.load("ada").pipe(
    Effect.catchTag("NotFound", () => Effect.succeed(Session.make({ id: "ada" })))
  )
  yield* Console.log(`version ${before.version}, ${before.thread.messages.length} messages`)

  const { result, session } = yield* Session.reply(before, argv[2] ?? "Hello")
  yield* Console.log(`assistant: ${result.finalResponse.outputText}`)

  // Had somebody else saved in the meantime, this would fail with a Conflict and overwrite nothing.
  const saved = yield* store.save(session)
  yield* Console.log(`version ${saved.version}, ${saved.thread.messages.length} messages`)
})

Effect.runPromise(Effect.provide(program, Layer.merge(Assistant, Store)))
