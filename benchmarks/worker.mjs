// Hosts one subject in a process of its own, so that neither heap nor compiled code is shared between subjects.
// A request is { command, ... } over IPC, answered by { value } or { error }.
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { makeWork } from "./lib/work.mjs"

const { operations, ...tools } = makeWork()
const { create } = await import(`./subjects/${process.argv[2]}.mjs`)
const subject = await create(tools)

const cpuMsSince = (start) => {
  const { system, user } = process.cpuUsage(start)
  return (user + system) / 1_000
}

const repeat = async (operation, params, ms) => {
  const cpu = process.cpuUsage()
  const start = performance.now()
  let times = 0
  let elapsed = 0
  let counted
  do {
    // Some have to set things up first, and say themselves how long the rest took.
    const own = await operations[operation](subject, params)
    if (own !== undefined) counted = (counted ?? 0) + own
    times++
    elapsed = performance.now() - start
  } while (elapsed < ms)
  return { times, elapsed: counted ?? elapsed, ownCpuMs: cpuMsSince(cpu) }
}

const collectGarbage = () => {
  setFlagsFromString("--expose-gc")
  runInNewContext("gc")()
}

/** The highest memory while something runs that leaves the event loop some turns. */
const peakDuring = async (run) => {
  collectGarbage()
  let peak = process.memoryUsage.rss()
  const sampling = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss())
  }, 2)
  await run()
  clearInterval(sampling)
  return peak
}

const commands = {
  warmUp: ({ operation, params, ms }) => repeat(operation, params, ms),

  measure: async ({ operation, params, prime, primeMs, windowMs }) => {
    await repeat(operation, prime, primeMs)
    return repeat(operation, params, windowMs)
  },

  /** Only for a fresh process. */
  burst: async ({ chats, warmUpMs }) => {
    const first = await repeat("chat", { turns: 1 }, 0)
    await repeat("burst", { chats: 50 }, warmUpMs)
    collectGarbage()
    const before = process.memoryUsage().rss
    const { elapsed, ownCpuMs } = await repeat("burst", { chats }, 0)
    const peak = process.resourceUsage().maxRSS * 1_024
    return { firstMs: first.elapsed, elapsed, ownCpuMs, grownMb: Math.max(0, peak - before) / 1e6 }
  },

  /** Only for a fresh process: how much higher the memory gets when there is much more to do. */
  memory: async ({ operation, before, params, warmUpMs }) => {
    await repeat(operation, before, warmUpMs)
    const little = await peakDuring(() => repeat(operation, before, warmUpMs))
    const much = await peakDuring(() => repeat(operation, params, 0))
    return { grownMb: Math.max(0, much - little) / 1e6 }
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
  const cpu = process.cpuUsage()
  try {
    const value = await commands[command](options)
    process.send({ value: { ...value, cpuMs: cpuMsSince(cpu) } })
  } catch (error) {
    process.send({ error: String(error?.message ?? error) })
  }
})
process.send({ value: Object.keys(operations).filter((name) => name in subject) })
