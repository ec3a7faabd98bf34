// What every subject is given: the tools, and the check of what came back.
import { echoName, finalText, longArguments, longText, waitMs, waitName } from "./script.mjs"

/** Makes the work of one process: counting tools, and every kind of operation with its check. */
export const makeWork = () => {
  let runs = 0
  let seenLength = 0

  const echoNow = ({ text, n }) => {
    runs++
    seenLength = text.length
    return { text, n }
  }
  const echo = async (input) => echoNow(input)
  const wait = async (input) => {
    await new Promise((resolve) => setTimeout(resolve, waitMs))
    return echoNow(input)
  }

  // A batch is made once per size: writing the arguments is the model's work, reading them is the subject's.
  const batches = new Map()
  const callsOf = (size) => {
    if (!batches.has(size)) {
      batches.set(
        size,
        Array.from({ length: size }, (_, n) => ({
          id: `call_${n}`,
          name: echoName,
          rawArguments: JSON.stringify({ text: "hello", n })
        }))
      )
    }
    return batches.get(size)
  }

  /** Runs something that uses the tools, and throws unless they ran just so many times. */
  const counted = async (expected, run) => {
    const before = runs
    const result = await run()
    same("runs of the tool", runs - before, expected)
    return result
  }

  const operations = {
    batch: async (subject, { size }) => {
      const { count, errors, last } = await counted(size, () => subject.batch(callsOf(size)))
      same("results", count, size)
      same("errors", errors, 0)
      same("last result", last, JSON.stringify({ text: "hello", n: size - 1 }))
    },
    chat: async (subject, { turns }) => {
      same("final text", await counted(turns, () => subject.chat({ turns })), finalText)
    },
    burst: async (subject, { chats }) => {
      const one = { turns: 1, tool: waitName }
      const texts = await counted(chats, () => Promise.all(Array.from({ length: chats }, () => subject.chat(one))))
      same("chats that ended well", texts.filter((text) => text === finalText).length, chats)
    },
    streamText: async (subject, { count, read }) => {
      const { deltas, chars } = await subject.streamText({ count, read })
      same("deltas", deltas, count)
      same("characters", chars, longText(count, read).length)
    },
    streamHttp: async (subject, { count, protocol }) => {
      const { deltas, chars } = await subject.streamHttp({ baseUrl: serverFor(count), protocol })
      same("deltas", deltas, count)
      same("characters", chars, longText(count, 1).length)
    },
    streamArguments: async (subject, { bytes, count }) => {
      const { deltas, text } = await counted(1, () => subject.streamArguments({ bytes, count }))
      same("deltas", deltas, count)
      same("characters the tool saw", seenLength, longArguments(bytes, count).length)
      same("final text", text, finalText)
    },
    save: (subject, options) => subject.save(options),
    loadAgain: (subject, options) => subject.loadAgain(options),
    loadFirst: (subject, options) => subject.loadFirst(options),
    journaled: async (subject, { size }) => {
      const { count, errors, ms } = await counted(size, () => subject.journaled(callsOf(size)))
      same("results", count, size)
      same("errors", errors, 0)
      return ms
    }
  }

  return { echo, echoNow, wait, operations }
}

/** The server of the benchmark reads from its address how much it is to say. */
const serverFor = (count) => `${process.env.BENCHMARK_SERVER}/${count}/v1`

export const same = (what, found, expected) => {
  if (found !== expected) throw new Error(`${what}: ${found}, expected ${expected}`)
}

/** Sums up tool messages, so that the check costs each subject the same. */
export const summarize = (messages) => {
  let errors = 0
  for (const message of messages) if (message.isError) errors++
  return { count: messages.length, errors, last: messages[messages.length - 1]?.content }
}
