/**
 * A batch of five calls over a journal of files, in a process that can be told when to die.
 *
 * `node JournalCrash.ts <directory> <n>` is killed right before its n-th durable step; without `n` it prints how many
 * there are. What the tools do to the world is a line in a file.
 */
import { Tool, ToolCall, ToolJournal, ToolRunner } from "@allm/core"
import { FileSystem } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { appendFileSync } from "node:fs"
import { join } from "node:path"
import { argv } from "node:process"
import { fileURLToPath } from "node:url"

const names = ["pay", "mail", "book", "put", "look"]

export const calls = names.map((name, index) => ToolCall.make({ id: `c${index}`, name, arguments: { index } }))

const replays: { readonly [name: string]: Tool.Replay } = { put: "idempotent", look: "readonly" }

export const isReplayable = (name: string) => replays[name] !== undefined

export const batch = (directory: string, step: Effect.Effect<void>) =>
  ToolRunner.run(
    calls,
    names.map((name) =>
      Tool.make(name, {
        description: "Leaves a trace",
        replay: replays[name] ?? "never",
        handler: (_params, context) => {
          const trace = Effect.sync(() =>
            appendFileSync(join(directory, "traces"), `${name} ${context.idempotencyKey}\n`)
          )
          return step.pipe(Effect.zipRight(trace), Effect.zipRight(step), Effect.as(`${name} done`))
        }
      })
    ),
    { sessionId: "s" }
  )

export const journalIn = (directory: string) => ToolJournal.layerFileSystem(join(directory, "journal"))

/** Files that announce everything that changes the disk before they do it. */
const announced = (step: Effect.Effect<void>) =>
  Layer.effect(
    FileSystem.FileSystem,
    Effect.map(FileSystem.FileSystem, (fs) =>
      FileSystem.FileSystem.of({
        ...fs,
        makeDirectory: (path, options) => Effect.zipRight(step, fs.makeDirectory(path, options)),
        link: (from, to) => Effect.zipRight(step, fs.link(from, to)),
        rename: (from, to) => Effect.zipRight(step, fs.rename(from, to)),
        remove: (path, options) => Effect.zipRight(step, fs.remove(path, options)),
        open: (path, options) =>
          Effect.map(Effect.zipRight(options?.flag === "r" ? Effect.void : step, fs.open(path, options)), (file) =>
            Object.create(file, {
              writeAll: { value: (bytes: Uint8Array) => Effect.zipRight(step, file.writeAll(bytes)) },
              sync: { value: Effect.zipRight(step, file.sync) }
            }))
      }))
  )

if (argv[1] === fileURLToPath(import.meta.url)) {
  const [directory = "", limit = "Infinity"] = argv.slice(2)
  let steps = 0
  const step = Effect.sync(() => {
    steps++
    if (steps === Number(limit)) process.kill(process.pid, "SIGKILL")
  })
  const layer = journalIn(directory).pipe(Layer.provide(announced(step)), Layer.provide(NodeContext.layer))
  void Effect.runPromise(Effect.provide(batch(directory, step), layer)).then(() => process.stdout.write(String(steps)))
}
