// What every subject is given: the calls a model would have made, and the one tool they name.

export const toolName = "echo"

/** Makes the work of one process: a counting echo tool, batches of calls, and the check of what came back. */
export const makeWork = () => {
  let runs = 0

  const echoNow = ({ text, n }) => {
    runs++
    return { text, n }
  }
  const echo = async (input) => echoNow(input)

  // A batch is made once per size: writing the arguments is the model's work, reading them is the subject's.
  const batches = new Map()
  const calls = (size) => {
    let batch = batches.get(size)
    if (batch === undefined) {
      batch = Array.from({ length: size }, (_, n) => ({
        id: `call_${n}`,
        name: toolName,
        rawArguments: JSON.stringify({ text: "hello", n })
      }))
      batches.set(size, batch)
    }
    return batch
  }

  /** Runs one batch and throws unless every call ran once and came back, in place and without an error. */
  const operate = async (subject, size) => {
    const before = runs
    const { count, errors, last } = await subject.run(calls(size))
    const expected = JSON.stringify({ text: "hello", n: size - 1 })
    if (runs - before !== size) throw new Error(`the tool ran ${runs - before} times for ${size} calls`)
    if (count !== size) throw new Error(`${count} results for ${size} calls`)
    if (errors !== 0) throw new Error(`${errors} of ${size} results are errors`)
    if (last !== expected) throw new Error(`the last result is ${last}, expected ${expected}`)
  }

  return { echo, echoNow, operate }
}

/** Sums up tool messages, so that the check costs each subject the same. */
export const summarize = (messages) => {
  let errors = 0
  for (const message of messages) if (message.isError) errors++
  return { count: messages.length, errors, last: messages[messages.length - 1]?.content }
}
