import { makeNoiseMeter } from "./noise.mjs"
import { makeResults } from "./results.mjs"
import { sizeLabel } from "./stats.mjs"
import { startWorker } from "./worker-process.mjs"

/**
 * Measures every subject at every size, round by round. A subject that fails is left out from then on,
 * and its error is reported: the others remain comparable.
 */
export const measure = async ({ subjects, sizes, rounds, warmUpMs, primeMs, windowMs }, say) => {
  const results = makeResults()
  const noise = makeNoiseMeter()
  const workers = new Map()
  const failures = new Map()
  const leftovers = new Map()

  const attempt = async ({ name }, action) => {
    if (failures.has(name)) return
    try {
      await action()
    } catch (error) {
      failures.set(name, error.message)
      // It may still be busy, and would disturb the others.
      workers.get(name)?.stop()
      say(`${name} failed: ${error.message}`)
    }
  }

  try {
    for (const subject of subjects) {
      say(`warming up ${subject.name}`)
      await attempt(subject, async () => {
        workers.set(subject.name, await startWorker(subject))
        await workers.get(subject.name).ask("warmUp", { sizes, ms: warmUpMs })
      })
    }
    for (let round = 0; round < rounds; round++) {
      for (const size of sizes) {
        say(`round ${round + 1} of ${rounds}, ${sizeLabel(size)} calls`)
        // Another one goes first each time, so that no subject always follows the same neighbour.
        for (const subject of rotate(subjects, round)) {
          await attempt(subject, async () => {
            const worker = workers.get(subject.name)
            const { usPerCall } = await noise.during(() => worker.ask("measure", { size, primeMs, windowMs }))
            results.add(subject.name, size, usPerCall)
          })
        }
      }
    }
    for (const subject of subjects) {
      await attempt(subject, async () => {
        leftovers.set(subject.name, await workers.get(subject.name).ask("leftovers"))
      })
    }
  } finally {
    for (const worker of workers.values()) worker.stop()
  }
  return { results, failures, leftovers, foreignCores: noise.foreignCores() }
}

const rotate = (list, by) => list.map((_, index) => list[(index + by) % list.length])
