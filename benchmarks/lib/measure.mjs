import { makeNoiseMeter } from "./noise.mjs"
import { makeResults } from "./results.mjs"
import { startServer, startWorker } from "./worker-process.mjs"
import { burst } from "./workloads.mjs"

/**
 * Measures every subject in every workload it can do, round by round. A subject that fails is left out from then on,
 * and its error is reported: the others remain comparable.
 */
export const measure = async (plan, say) => {
  const run = { results: makeResults(), noise: makeNoiseMeter(), failures: new Map(), leftovers: new Map() }
  const server = plan.workloads.some(({ needsServer }) => needsServer) ? await startServer() : undefined
  try {
    if (plan.workloads.length > 0) await measureWorkloads(plan, run, say, server?.url)
    await measureMemory(plan, run, say, server?.url)
  } finally {
    server?.stop()
  }
  if (plan.hasBurst) await measureBurst(plan, run, say)
  const { failures, leftovers, noise, results } = run
  return { results, failures, leftovers, foreignCores: noise.foreignCores() }
}

const attempt = async ({ failures }, { name }, say, action) => {
  if (failures.has(name)) return
  try {
    await action()
  } catch (error) {
    failures.set(name, error.message)
    say(`${name} failed: ${error.message}`)
  }
}

const measureWorkloads = async (
  { primeMs, rounds, subjects, warmUpMs, windowMs, workloads },
  run,
  say,
  serverUrl
) => {
  const workers = new Map()
  const forEach = async (list, action) => {
    for (const subject of list) {
      await attempt(run, subject, say, () => action(subject, workers.get(subject.name)))
      // One that failed may still be busy, and would disturb the others.
      if (run.failures.has(subject.name)) workers.get(subject.name)?.stop()
    }
  }
  const cells = workloads.flatMap(({ cells, operation, prime }) => cells.map((cell) => ({ ...cell, operation, prime })))

  try {
    await forEach(subjects, async ({ name, ...subject }) => {
      say(`warming up ${name}`)
      const worker = await startWorker({ name, ...subject }, serverUrl)
      workers.set(name, worker)
      for (const { operation, params } of cells) {
        if (worker.operations.includes(operation)) await worker.ask("warmUp", { operation, params, ms: warmUpMs })
      }
    })
    for (let round = 0; round < rounds; round++) {
      for (const { id, operation, params, prime, units } of cells) {
        say(`round ${round + 1} of ${rounds}, ${id}`)
        // Another one goes first each time, so that no subject always follows the same neighbour.
        await forEach(rotate(subjects, round), async ({ name }, worker) => {
          if (!worker.operations.includes(operation)) return
          const measured = () => worker.ask("measure", { operation, params, prime, primeMs, windowMs })
          const { elapsed, times } = await run.noise.during(measured)
          run.results.add(name, id, (1_000 * elapsed) / (times * units))
        })
      }
    }
    await forEach(subjects, async ({ name }, worker) => {
      run.leftovers.set(name, await worker.ask("leftovers"))
    })
  } finally {
    for (const worker of workers.values()) worker.stop()
  }
}

const measureMemory = async ({ burstRounds, subjects, warmUpMs, workloads }, run, say, serverUrl) => {
  for (const { memory, operation } of workloads.filter(({ memory }) => memory !== undefined)) {
    const { before, id, params } = memory
    for (let round = 0; round < burstRounds; round++) {
      say(`round ${round + 1} of ${burstRounds}, ${id}`)
      for (const subject of rotate(subjects, round)) {
        await attempt(run, subject, say, async () => {
          const worker = await startWorker(subject, serverUrl)
          try {
            if (!worker.operations.includes(operation)) return
            const measured = () => worker.ask("memory", { operation, before, params, warmUpMs })
            run.results.add(subject.name, id, (await run.noise.during(measured)).grownMb)
          } finally {
            worker.stop()
          }
        })
      }
    }
  }
}

const measureBurst = async ({ burstRounds, burstWarmUpMs, subjects }, run, say) => {
  const { chats } = burst
  for (let round = 0; round < burstRounds; round++) {
    say(`round ${round + 1} of ${burstRounds}, ${burst.id}`)
    for (const subject of rotate(subjects, round)) {
      await attempt(run, subject, say, async () => {
        const worker = await startWorker(subject)
        try {
          if (!worker.operations.includes("chat")) return
          const measured = () => worker.ask("burst", { chats, warmUpMs: burstWarmUpMs })
          const { elapsed, firstMs, grownMb, ownCpuMs } = await run.noise.during(measured)
          run.results.add(subject.name, "W6 first chat", firstMs)
          run.results.add(subject.name, "W6 wall", elapsed)
          run.results.add(subject.name, "W6 cpu", (1_000 * ownCpuMs) / chats)
          run.results.add(subject.name, "W6 memory", grownMb)
        } finally {
          worker.stop()
        }
      })
    }
  }
}

const rotate = (list, by) => list.map((_, index) => list[(index + by) % list.length])
