import { fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"

const folder = new URL("../", import.meta.url)
const script = fileURLToPath(new URL("worker.mjs", folder))
const patienceMs = 120_000

/** Starts the model behind HTTP. */
export const startServer = async () => {
  const child = fork(fileURLToPath(new URL("lib/server.mjs", folder)), {
    stdio: ["ignore", "ignore", "inherit", "ipc"]
  })
  const [{ url }] = await once(child, "message")
  return { url, stop: () => child.kill("SIGKILL") }
}

/** Starts the process of one subject. It is asked one thing at a time, and only one process works at a time. */
export const startWorker = async ({ name, module = name, nodeOptions = [] }, serverUrl) => {
  const child = fork(script, [module], {
    cwd: fileURLToPath(folder),
    execArgv: ["--no-warnings", ...nodeOptions],
    env: { ...process.env, NODE_ENV: "production", BENCHMARK_SERVER: serverUrl },
    stdio: ["ignore", "ignore", "pipe", "ipc"]
  })
  let complaint = ""
  child.stderr.on("data", (text) => {
    complaint = (complaint + text).slice(-4_000)
  })

  const answer = async () => {
    const settled = new AbortController()
    const options = { signal: AbortSignal.any([settled.signal, AbortSignal.timeout(patienceMs)]) }
    try {
      const [reply, code] = await Promise.race([
        once(child, "message", options),
        once(child, "close", options).then(([code]) => [undefined, code])
      ])
      if (reply === undefined) throw new Error(firstLine(complaint) ?? `its process ended with ${code}`)
      if (reply.error !== undefined) throw new Error(reply.error)
      return reply.value
    } catch (error) {
      throw error.name === "AbortError" ? new Error(`no answer within ${patienceMs / 1_000} s`) : error
    } finally {
      settled.abort()
    }
  }

  const stop = () => {
    child.removeAllListeners()
    child.kill("SIGKILL")
  }

  let operations
  try {
    operations = await answer()
  } catch (error) {
    stop()
    throw error
  }
  return {
    /** What the subject can do. */
    operations,
    ask: (command, options = {}) => {
      child.send({ command, ...options })
      return answer()
    },
    stop
  }
}

const firstLine = (text) => text.split("\n").find((line) => /error/i.test(line))?.trim()
