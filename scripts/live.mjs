// Runs examples on real models: those of every provider whose key is in the environment, or the one that ALLM_MODEL names.
//
// `npm run live -- google/gemini-flash-latest 03` runs only what is named. ALLM_BASE_URL says where, if elsewhere.
import { chosen, hasKey, providers, read } from "../examples/live/models.mjs"
import { examples, find, run, scripted } from "./examples.mjs"

/** Those that make sense whatever a model says. */
const usual = ["01-plain-text", "02-streaming", "03-single-tool", "04-parallel-tools", "18-structured-finalize"]

const asked = process.argv.slice(2)
const isModel = (text) => Object.hasOwn(providers, text.split("/")[0])
const programs = asked.filter((text) => !isModel(text)).flatMap((text) => {
  const found = find(text).filter((name) => !scripted.includes(name))
  if (found.length === 1) return found
  console.error(`${text} names no provider, and not one example.\nProviders: ${Object.keys(providers).join(", ")}.`)
  console.error(`Examples: ${examples.filter((name) => !scripted.includes(name)).join(", ")}.`)
  process.exit(2)
})

const models = named()

const results = []
for (const { model, provider } of models) {
  for (const program of programs.length > 0 ? programs : usual) {
    const title = `${provider}/${model} ${program}`
    console.log(`\n── ${title} ${"─".repeat(Math.max(2, 60 - title.length))}\n`)
    const start = performance.now()
    const env = { ALLM_MODEL: `${provider}/${model}` }
    const code = await run(program, { env, stdin: "ignore", timeout: 180_000 })
    const seconds = ((performance.now() - start) / 1000).toFixed(1)
    results.push({ failed: code !== 0, line: `${code === 0 ? "ok    " : "FAILED"} ${title}, ${seconds} s` })
  }
}

console.log(`\n${"─".repeat(64)}\n`)
for (const { line } of results) console.log(line)
process.exitCode = results.some(({ failed }) => failed) ? 1 : 0

/** The models to ask. Whoever names one wants it to be asked; otherwise every key that is there is used. */
function named() {
  const given = chosen()
  const wanted = asked.some(isModel) ? asked.filter(isModel).map(read) : given === undefined ? [] : [given]
  const problems = wanted.filter((model) => typeof model === "string")
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) process.exit(2)
  if (wanted.length > 0) return wanted

  // A server on this machine may not be there, so nobody is asked without a key.
  const withKey = Object.entries(providers).filter(([, provider]) => provider.keys.length > 0)
  for (const [name, provider] of withKey.filter(([, provider]) => !hasKey(provider))) {
    console.log(`${name}: not asked, there is no ${provider.keys.join(" and no ")}`)
  }
  const found = withKey.filter(([, provider]) => hasKey(provider)).map(([provider, { model }]) => ({ provider, model }))
  if (found.length === 0) {
    console.log("\nNo key, so no model was asked. Set one of the variables above and run it again.")
    process.exit(0)
  }
  return found
}
