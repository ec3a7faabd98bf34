// What the stores need of the machine: a directory and a PostgreSQL server. They are made here, because the processes that
// are measured are killed.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export const directoryVariable = "ALLM_BENCH_DIRECTORY"
export const portVariable = "ALLM_BENCH_POSTGRES_PORT"

const startServer = async (say) => {
  await import("./typescript.mjs")
  const { start } = await import("../../packages/sql/test/postgres.ts")
  const server = await start({ durable: true })
  if (typeof server === "string") say(server)
  return typeof server === "string" ? undefined : server
}

export const withPlaces = async ({ subjects }, say, measure) => {
  const directory = mkdtempSync(join(tmpdir(), "allm-bench-"))
  const server = subjects.some(({ name }) => name === "postgres") ? await startServer(say) : undefined
  process.env[directoryVariable] = directory
  if (server !== undefined) process.env[portVariable] = String(server.port)
  try {
    return await measure()
  } finally {
    await server?.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}
