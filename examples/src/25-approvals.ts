/**
 * A call that needs consent, in two processes. Run it: it asks, and exits. Run it again: somebody consents, and it goes on.
 * `deny` as an argument of the second run refuses instead.
 */
import { Fake, Session, SessionStore, Tool } from "@allm/core"
import { NodeContext } from "@effect/platform-node"
import { Console, Effect, Layer, Schema } from "effect"
import { tmpdir } from "node:os"
import { argv } from "node:process"

const transfer = Tool.make("transfer", {
  description: "Transfers money",
  parameters: { to: Schema.String, euros: Schema.Number },
  needsApproval: ({ euros }) => euros > 100,
  handler: ({ euros, to }) => Effect.as(Console.log(`  transfer of ${euros} euros to ${to}`), "done")
})

const pay = (id: string, to: string, euros: number) => Fake.toolCall({ id, name: "transfer", arguments: { to, euros } })

const Assistant = Fake.engine({
  tools: [transfer],
  respond: ({ messages }) =>
    messages.at(-1)?.role === "user"
      ? [pay("call_0", "Ada", 5), pay("call_1", "Bob", 5000), Fake.finish("tool_calls")]
      : [Fake.text(`Ada is paid. Bob: ${messages.at(-1)?.content}`), Fake.finish("stop")]
})

const Store = Layer.provide(SessionStore.layerFileSystem(`${tmpdir()}/allm-approval`), NodeContext.layer)

const ask = Effect.gen(function*() {
  const store = yield* SessionStore.SessionStore
  const { session } = yield* Session.start("Pay Ada and Bob", { sessionId: "payday", approvalTimeout: "1 hour" })
  yield* store.save(session)
  yield* Console.log(`${session.status}: run me again`)
})

const decide = Effect.fnUntraced(function*(waiting: Session.Session) {
  const store = yield* SessionStore.SessionStore
  const [{ digest, toolCall }] = waiting.pendingApprovals as [Session.PendingApproval]
  yield* Console.log(`${waiting.status}: ${toolCall.name} ${JSON.stringify(toolCall.arguments)}`)

  // The digest is of what the person was shown. Consent to anything else is refused.
  const decided = yield* argv[2] === "deny"
    ? Session.deny(waiting, toolCall.id, { reason: "Bob has enough" })
    : Session.approve(waiting, toolCall.id, { digest })
  // Saved before it is used: of two people who decide at once, one gets a Conflict.
  const { result, session } = yield* Session.continue(yield* store.save(decided))
  yield* Console.log(`${session.status}: ${result.finalResponse.outputText}`)
  yield* store.delete(session.id)
})

const program = Effect.flatMap(
  SessionStore.SessionStore,
  (store) => store.load("payday").pipe(Effect.flatMap(decide), Effect.catchTag("NotFound", () => ask))
)

Effect.runPromise(Effect.provide(program, Layer.merge(Assistant, Store)))
