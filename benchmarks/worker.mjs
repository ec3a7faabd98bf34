// Hosts one subject in a process of its own, so that neither heap nor compiled code is shared between subjects.
// A request is { command, ... } over IPC, answered by { value } or { error }.
import { makeWork } from "./lib/work.mjs"

const work = makeWork()
const { create } = await import(`./subjects/${process.argv[2]}.mjs`)
const subject = await create(work)

const repeat = async (size, ms) => {
  const start = performance.now()
  let batches = 0
  let elapsed = 0
  do {
    await work.operate(subject, size)
    batches++
    elapsed = performance.now() - start
  } while (elapsed < ms)
  return { batches, elapsed }
}

const commands = {
  warmUp: async ({ sizes, ms }) => {
    for (const size of sizes) await repeat(size, ms / sizes.length)
  },
  measure: async ({ size, primeMs, windowMs }) => {
    await repeat(Math.min(size, 100), primeMs)
    const cpu = process.cpuUsage()
    const { batches, elapsed } = await repeat(size, windowMs)
    const { user, system } = process.cpuUsage(cpu)
    return { usPerCall: (1_000 * elapsed) / (batches * size), elapsed, cpuMs: (user + system) / 1_000 }
  },
  leftovers: async () => {
    // A finished run may still hand its fibers' last notifications to the event loop.
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
    const timers = process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length
    return { timers, fibers: subject.fibers?.() ?? 0 }
  }
}

process.on("disconnect", () => process.exit())
process.on("message", async ({ command, ...options }) => {
  try {
    process.send({ value: await commands[command](options) })
  } catch (error) {
    process.send({ error: String(error?.message ?? error) })
  }
})
process.send({ value: "ready" })
