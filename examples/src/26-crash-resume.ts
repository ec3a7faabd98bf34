/**
 * A process that dies in the middle of its tools, and goes on. It is killed twice, for you to watch. To do it yourself, say
 * `slowly`: kill it whenever you like (`kill -9`, or ctrl-c), and run it again.
 */
import { Fake, Message, SessionLease, SessionRunner, SessionStore, Tool, ToolJournal } from "@allm/core"
import { Command, FileSystem } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { Console, Effect, Layer, Logger } from "effect"
import { tmpdir } from "node:os"
import { argv, execArgv, execPath, kill, pid } from "node:process"

const [script = "", name, diesIn] = argv.slice(1)
const directory = `${tmpdir()}/allm-crash-and-resume`

const tool = (toolName: string, replay: Tool.Replay) =>
  Tool.make(toolName, {
    description: "Does something that counts",
    replay,
    handler: Effect.fnUntraced(function*() {
      yield* Console.log(`  ${toolName} happens (${replay})`)
      yield* Effect.sleep(name === "slowly" ? "3 seconds" : "1 millis")
      return diesIn === toolName ? kill(pid, "SIGKILL") : "done"
    })
  })

const Assistant = Fake.engine({
  concurrency: 1, // One after the other, so that you see where it was killed.
  tools: [tool("book_flight", "never"), tool("charge_card", "idempotent"), tool("send_mail", "never")],
  respond: ({ messages, tools }) =>
    messages.at(-1)?.role === "user"
      ? [...tools.map(({ name }) => Fake.toolCall({ id: name, name })), Fake.finish("tool_calls")]
      : [Fake.text(messages.slice(2).map(Message.toText).join(", ")), Fake.finish("stop")]
})

const Stores = Layer.mergeAll(
  SessionStore.layerFileSystem(`${directory}/sessions`),
  SessionLease.layerFileSystem(`${directory}/leases`),
  ToolJournal.layerFileSystem(`${directory}/journal`),
  Logger.replace(Logger.defaultLogger, Logger.make(({ message }) => console.log(`  ${message}`)))
).pipe(Layer.provide(NodeContext.layer))

// A process that was killed keeps its session for as long as its lease.
const Runner = SessionRunner.layer({ holder: name, leaseDuration: "1 second" }).pipe(Layer.provideMerge(Stores))

const life = Effect.gen(function*() {
  const { session } = yield* SessionRunner.resume("trip").pipe(
    Effect.catchTag("NotFound", () => SessionRunner.start("trip", "Book the trip"))
  )
  yield* Console.log(`  ${session.status}: ${Message.toText(session.thread.messages.at(-1)!)}`)
  yield* Effect.flatMap(SessionStore.SessionStore, (store) => store.delete("trip"))
})

const lives = Effect.gen(function*() {
  yield* Effect.flatMap(FileSystem.FileSystem, (fs) => fs.remove(directory, { recursive: true, force: true }))
  for (const [name, diesIn] of [["Ada", "charge_card"], ["Bob", "send_mail"], ["Eve", "no tool"]] as const) {
    yield* Console.log(`process ${name}, killed in ${diesIn}`)
    const child = Command.make(execPath, ...execArgv, script, name, diesIn)
    yield* child.pipe(Command.stdout("inherit"), Command.stderr("inherit"), Command.exitCode, Effect.either)
  }
})

const Everything = Layer.merge(Assistant, Runner)

Effect.runPromise(name === undefined ? Effect.provide(lives, NodeContext.layer) : Effect.provide(life, Everything))
