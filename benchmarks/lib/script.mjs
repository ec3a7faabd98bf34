// The model that every subject asks. It keeps no state: what it says follows from the last message alone, which is the
// opening text or the result of the last call. So it costs nothing that grows with the history, and serves any number of chats.

export const echoName = "echo"
export const waitName = "wait"
export const waitMs = 10

/** Opens a chat of `turns` turns with one call each. The ids of the calls count on from there. */
export const openChat = ({ turns, tool = echoName }) => `${tool}-0-${turns}`

/** Opens an answer of `count` deltas, `read` of them at a time; 0 stands for one in each turn of the event loop. */
export const openText = ({ count, read }) => `text-${count}-${read}`

/** Opens an answer that is one call, its argument of about `bytes` in `count` deltas. */
export const openArguments = ({ bytes, count }) => `arguments-${bytes}-${count}`

export const finalText = "done"

/** The answer in one piece: `{ text }` or `{ calls }`. */
export const reply = (key) => {
  const [tool, done, turns] = key.split("-")
  const turn = Number(done)
  if (turn >= Number(turns)) return { text: finalText }
  const call = { id: `${tool}-${turn + 1}-${turns}`, name: tool, rawArguments: `{"text":"hello","n":${turn}}` }
  return { calls: [call] }
}

/** The answer in pieces: what it is, and the reads it arrives in, each a list of deltas. */
export const plan = (key) => {
  const [kind, first, second] = key.split("-")
  if (kind === "text") return { kind, reads: arrivals(longText(Number(first), Number(second)).reads, second === "0") }
  if (kind !== "arguments") return { kind: "text", reads: arrivals([[finalText]], false) }
  const { reads } = longArguments(Number(first), Number(second))
  return { kind: "call", id: `${echoName}-1-1`, name: echoName, reads: arrivals(reads, false) }
}

async function* arrivals(reads, isPaced) {
  for (const read of reads) {
    if (isPaced) await new Promise(setImmediate)
    yield read
  }
}

const memoized = (make) => {
  const known = new Map()
  return (...key) => {
    const name = key.join()
    if (!known.has(name)) known.set(name, make(...key))
    return known.get(name)
  }
}

const chunksOf = (list, size) =>
  Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size))

export const textPiece = (index) => `word${index % 10} `

/** A text in reads of deltas. Like the argument below it is made once: whoever is measured only reads it. */
export const longText = memoized((count, read) => {
  const deltas = Array.from({ length: count }, (_, i) => textPiece(i))
  return { length: deltas.join("").length, reads: chunksOf(deltas, Math.max(1, read)) }
})

/** A JSON argument, one delta to a read. It needs escapes, and some deltas end inside of one. */
export const longArguments = memoized((bytes, count) => {
  const phrase = `she said "no"\n and left the room, `
  const text = phrase.repeat(Math.round(bytes / (JSON.stringify(phrase).length - 2)))
  const json = JSON.stringify({ text, n: 0 })
  const cut = (i) => Math.floor((i * json.length) / count)
  return { length: text.length, reads: Array.from({ length: count }, (_, i) => [json.slice(cut(i), cut(i + 1))]) }
})
