// Runs examples on real models: those of every provider whose key is in the environment.
//
// `npm run live -- google 03-single-tool` runs only the named ones. ALLM_MODEL names another model, ALLM_BASE_URL another place.
import { spawn } from "node:child_process"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))

/** By provider, the variables of which one has to hold a key. */
const keys = {
  openai: ["OPENAI_API_KEY"],
  "openai-chat": ["OPENAI_API_KEY"],
  anthropic: ["ANTHROPIC_API_KEY"],
  google: ["GOOGLE_API_KEY", "GEMINI_API_KEY"]
}

/** Those that make sense whatever a model says. */
const usual = ["03-single-tool", "17-cut-stream", "06-structured-output", "18-structured-finalize"]

const examples = readdirSync(join(root, "examples/src"))
  .filter((file) => /^\d\d-.*\.ts$/.test(file))
  .map((file) => file.slice(0, -".ts".length))

const asked = process.argv.slice(2)
const unknown = asked.filter((name) => !Object.hasOwn(keys, name) && !examples.includes(name))
if (unknown.length > 0) {
  console.error(`There is no ${unknown.join(", ")}.\nProviders: ${Object.keys(keys).join(", ")}.`)
  console.error(`Examples: ${examples.join(", ")}.`)
  process.exit(2)
}

const hasKey = (provider) => keys[provider].some((name) => (process.env[name] ?? "").trim() !== "")
const askedFor = Object.keys(keys).filter((provider) => asked.includes(provider))
const wanted = askedFor.length > 0 ? askedFor : Object.keys(keys)
const providers = wanted.filter(hasKey)
const programs = examples.filter((name) => asked.includes(name))

for (const provider of wanted.filter((name) => !hasKey(name))) {
  console.log(`${provider}: not asked, there is no ${keys[provider].join(" and no ")}`)
}
if (providers.length === 0) {
  console.log("\nNo key, so no model was asked. Set one of the variables above and run it again.")
  // Whoever names a provider wants it to be asked.
  process.exit(askedFor.length > 0 ? 1 : 0)
}

const results = []
for (const provider of providers) {
  for (const program of programs.length > 0 ? programs : usual) {
    console.log(`\n── ${provider} ${program} ${"─".repeat(Math.max(2, 50 - provider.length - program.length))}\n`)
    const start = performance.now()
    const code = await run(provider, program)
    const seconds = ((performance.now() - start) / 1000).toFixed(1)
    results.push({
      failed: code !== 0,
      line: `${code === 0 ? "ok    " : "FAILED"} ${provider} ${program}, ${seconds} s`
    })
  }
}

console.log(`\n${"─".repeat(64)}\n`)
for (const { line } of results) console.log(line)
process.exitCode = results.some(({ failed }) => failed) ? 1 : 0

function run(provider, program) {
  const hook = join(root, "examples/live/hook.mjs")
  const args = ["--conditions=@allm/source", "--import", "tsx", "--import", hook, `src/${program}.ts`]
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, {
      cwd: join(root, "examples"),
      stdio: ["ignore", "inherit", "inherit"],
      env: { ...process.env, ALLM_PROVIDER: provider },
      timeout: 180_000
    })
    child.on("error", (error) => {
      console.error(String(error))
      resolve(1)
    })
    child.on("close", (code) => resolve(code ?? 1))
  })
}
