// How much of the machine something else used while a subject was measured: it tells a clean run from a disturbed one.
import { cpus } from "node:os"

const busyMs = () => cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0)

export const makeNoiseMeter = () => {
  let wall = 0
  let foreign = 0
  return {
    during: async (measure) => {
      const start = performance.now()
      const before = busyMs()
      const result = await measure()
      foreign += busyMs() - before - result.cpuMs
      wall += performance.now() - start
      return result
    },
    /** In cores: 1 means that others kept one core busy all the time. */
    foreignCores: () => (wall === 0 ? 0 : Math.max(0, foreign / wall))
  }
}
