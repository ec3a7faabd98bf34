// The benchmark's own dependencies are installed on first use, so that nobody who only uses or tests ALLM pays for them.
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const folder = new URL("../", import.meta.url)

const readJson = (path) => {
  try {
    return JSON.parse(readFileSync(new URL(path, folder), "utf8"))
  } catch {
    return undefined
  }
}

const dependencies = () => Object.entries(readJson("package.json").dependencies)

const isMissing = ([name, version]) => readJson(`node_modules/${name}/package.json`)?.version !== version

/** Installs what is missing or has another version, and throws when that fails. */
export const installDependencies = (say) => {
  const missing = dependencies().filter(isMissing)
  if (missing.length === 0) return
  say(`installing ${missing.map(([name, version]) => `${name} ${version}`).join(", ")}`)
  const { status } = spawnSync("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: fileURLToPath(folder),
    // Standard output belongs to the report.
    stdio: ["ignore", process.stderr, process.stderr],
    shell: process.platform === "win32"
  })
  if (status !== 0) {
    throw new Error("the benchmark's dependencies could not be installed; run npm install in benchmarks/")
  }
}

/** The version in use, wherever Node finds the package. */
export const versionOf = (name) =>
  (readJson(`node_modules/${name}/package.json`) ?? readJson(`../node_modules/${name}/package.json`))?.version
