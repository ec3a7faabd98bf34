/** A command whose input and outputs are pipes, as in a script. */
import { spawn } from "node:child_process"
import type { Condition as Anything } from "./Terminal.ts"
import { includes } from "./Terminal.ts"

type Condition = Exclude<Anything, (...args: Array<never>) => unknown>

export interface Result {
  readonly code: number | undefined
  readonly signal: string | undefined
  readonly stdout: string
  readonly stderr: string
}

export interface Options {
  readonly cwd?: string | undefined
  readonly env?: Record<string, string> | undefined
}

export interface Piped extends AsyncDisposable {
  readonly pid: number
  readonly stdout: () => string
  readonly stderr: () => string
  /** Waits until it is in stdout or stderr. */
  readonly until: (condition: Condition, timeout?: number) => Promise<void>
  readonly write: (text: string) => void
  /** Ends the input. */
  readonly end: (text?: string) => void
  readonly kill: (signal: NodeJS.Signals) => void
  readonly exit: Promise<Result>
}

/** Starts a command with pipes; leaving the scope ends it and everything it started. */
export const start = (
  [command, ...args]: readonly [string, ...Array<string>],
  { cwd, env }: Options = {}
): Piped => {
  const child = spawn(command, args, { cwd, env, detached: true, stdio: "pipe" })
  const output = { stdout: "", stderr: "" }
  const watchers = new Set<() => void>()
  let ended = false
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (chunk: string) => {
      output[name] += chunk
      for (const watcher of watchers) watcher()
    })
  }
  // A command that has ended reads no more; its exit says what was wrong.
  child.stdin.on("error", () => undefined)

  const exit = new Promise<Result>((resolve, reject) => {
    child.on("error", reject)
    child.on("close", (code, signal) => {
      ended = true
      resolve({ code: code ?? undefined, signal: signal ?? undefined, ...output })
      for (const watcher of watchers) watcher()
    })
  })
  const kill = (signal: NodeJS.Signals) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal)
    } catch {
      // It has ended meanwhile.
    }
  }

  return {
    pid: child.pid ?? 0,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    until: (condition, timeout = 45_000) =>
      new Promise((resolve, reject) => {
        const done = () => {
          watchers.delete(watch)
          clearTimeout(timer)
        }
        const give = (why: string) => {
          done()
          reject(new Error(`${String(condition)}: ${why}\n${output.stdout}\n${output.stderr}`))
        }
        const watch = () => {
          if (includes(output.stdout, condition) || includes(output.stderr, condition)) {
            done()
            resolve()
          } else if (ended) {
            give("not before it ended")
          }
        }
        const timer = setTimeout(() => give(`not within ${timeout} ms`), timeout)
        watchers.add(watch)
        watch()
      }),
    write: (text) => void child.stdin.write(text),
    end: (text = "") => void child.stdin.end(text),
    kill,
    exit,
    [Symbol.asyncDispose]: async () => {
      if (!ended) kill("SIGKILL")
      await exit
    }
  }
}

/** Runs a command to its end, with all of its input there from the beginning. */
export const run = async (
  command: readonly [string, ...Array<string>],
  { input = "", ...options }: Options & { readonly input?: string | undefined } = {}
): Promise<Result> => {
  await using piped = start(command, options)
  piped.end(input)
  return await piped.exit
}
