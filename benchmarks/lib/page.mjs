// The page has two parts, which are measured apart. Writing one leaves the other.
import { readFileSync, writeFileSync } from "node:fs"

const page = new URL("../../docs/performance.md", import.meta.url)

const head = `# Performance

What the loop costs next to other ways to run it, and what to do about it. A model takes seconds; a chat with one call takes some
tens of microseconds of your CPU ([W1](#w1-one-turn-with-one-tool-call-then-text)). So mostly there is nothing to do. It matters
with hundreds of chats at once, with large batches, and as soon as something is written to a disk.

| do                                                                                 | because                                                                                                                                                    |
| ---------------------------------------------------------------------------------- | ---------------------------------------------------------------------------------------------------------------------------------------------------------- |
| make tools and engines once, not per request                                       | schemas are compiled once per tool, and labels of metrics are kept with it                                                                                 |
| let a handler that needs no Effect be a plain or an async function                 | only an Effect needs a fiber: \`allm\` and \`allm-effect\` in [W2](#w2-one-batch-of-n-trivial-calls)                                                           |
| take \`run\` and \`chat\` when nobody watches, \`stream\` when somebody does             | opening a Stream costs more than a small batch: \`allm\` and \`allm-stream\` in [W2](#w2-one-batch-of-n-trivial-calls)                                         |
| read a stream by chunks (\`Stream.runForEachChunk\`) when there are very many deltas | events come as many at once as have gathered: [W4](#w4-a-streamed-text-of-10-000-deltas-one-or-64-per-read-or-2-000-deltas-one-per-turn-of-the-event-loop) |
| send long conversations [in parts](guide/07-the-loop.md#changing-a-step)           | the model reads all of it in every turn, and you pay for it                                                                                                |
| keep long sessions in SQL                                                          | it writes what is new; memory and files write the whole: [S1](#s1-saving-a-turn-of-a-session-that-has-h-messages)                                          |
| leave the journal out where nothing counts                                         | each call waits for the disk twice: [J1](#j1-a-batch-of-n-trivial-calls-that-are-noted-before-and-after)                                                   |

[Where the time goes](where-the-time-goes.md) tells what is left.

Below this line: written by \`npm run bench -- --write\`; benchmarks/README.md says how it is measured.
`

const cut = "\n## Stores\n"

export const writePage = (parts) => {
  const old = readFileSync(page, "utf8")
  const at = old.indexOf(cut)
  const [oldLoop, oldStores] = at === -1 ? [old, ""] : [old.slice(0, at), old.slice(at)]
  const loop = parts.loop === undefined ? oldLoop : `${head}\n${parts.loop}\n`
  const stores = parts.stores === undefined ? oldStores : `\n${parts.stores}\n`
  writeFileSync(page, `${loop}${stores}`)
}
