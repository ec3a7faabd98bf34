// Prints how a batch of N tool calls compares between ALLM, hand-written code, bare Effect and the AI SDK.
import { judge } from "./lib/gates.mjs"
import { installDependencies, versionOf } from "./lib/install.mjs"
import { measure } from "./lib/measure.mjs"
import { readOptions, usage } from "./lib/options.mjs"
import { gateTable, leftoverLine, resultTable } from "./lib/report.mjs"
import { subjects as allSubjects } from "./subjects/index.mjs"

const started = performance.now()
const seconds = () => Math.round((performance.now() - started) / 1_000)

// Progress goes to standard error, the report alone to standard output.
const say = (text) => console.error(`[${String(seconds()).padStart(3)} s] ${text}`)

const main = async () => {
  const options = readOptions(process.argv.slice(2))
  if (options.help) {
    console.log(usage)
    return true
  }
  if (versionOf("effect") === undefined) {
    throw new Error("effect is not installed; run npm install in the root of the repository first")
  }
  installDependencies(say)

  const subjects = allSubjects.filter(({ name }) => options.subjects.includes(name))
  const plan = { ...options, subjects }
  const outcome = await measure(plan, say)
  const { failures, foreignCores, leftovers, results } = outcome
  const verdicts = judge(results)
  const ours = subjects.filter(({ name, ours }) => ours && leftovers.has(name))
  const leaks = ours.filter(({ name }) => leftovers.get(name).timers + leftovers.get(name).fibers > 0)
  const missed = verdicts.filter(({ holds, informs }) => !holds && !informs)

  console.log("### One batch of N trivial async tool calls, µs per call\n")
  console.log(resultTable(plan, outcome))
  console.log("\nRatios are in the order of N. `x` is time against that subject (less is better);")
  console.log("`vs ai-sdk` is how many times faster than the AI SDK (more is better).")
  // A partial run says nothing about the gates it left out, unless it was asked to check them.
  const told = verdicts.filter(({ measured }) => options.check || Number.isFinite(measured))
  if (told.length > 0) console.log(`\n### Gates\n\n${gateTable(told)}`)
  console.log("\n### Notes\n")
  for (const subject of ours) console.log(leftoverLine(subject, leftovers.get(subject.name)))
  for (const [name, message] of failures) console.log(`- ${name} failed: ${message}`)
  const versions = `Node ${process.versions.node}, effect ${versionOf("effect")}, ai ${versionOf("ai")}`
  const noise = `other processes used ${foreignCores.toFixed(1)} cores meanwhile`
  console.log(`\n${versions}; ${options.rounds} rounds in ${seconds()} s; ${noise}.`)
  if (options.check) console.log(`\nGates not met: ${missed.length}.`)
  return failures.size === 0 && leaks.length === 0 && (!options.check || missed.length === 0)
}

try {
  process.exitCode = (await main()) ? 0 : 1
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
