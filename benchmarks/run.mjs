// Prints how batches, chats and streams compare between ALLM, hand-written code, bare Effect and other libraries.
import { gates, judge } from "./lib/gates.mjs"
import { installDependencies, versionOf } from "./lib/install.mjs"
import { measure } from "./lib/measure.mjs"
import { readOptions, usage } from "./lib/options.mjs"
import { writePage } from "./lib/page.mjs"
import { report } from "./lib/report.mjs"
import { withPlaces } from "./lib/store-places.mjs"
import { storeReport } from "./lib/store-report.mjs"
import { storeGates } from "./lib/store-workloads.mjs"

const started = performance.now()
const seconds = () => Math.round((performance.now() - started) / 1_000)

// Progress goes to standard error, the report alone to standard output.
const say = (text) => console.error(`[${String(seconds()).padStart(3)} s] ${text}`)

const main = async () => {
  const plan = readOptions(process.argv.slice(2))
  if (plan.help) {
    console.log(usage)
    return true
  }
  if (versionOf("effect") === undefined) {
    throw new Error("effect is not installed; run npm install in the root of the repository first")
  }
  installDependencies(say)

  const outcome = await (plan.stores ? withPlaces(plan, say, () => measure(plan, say)) : measure(plan, say))
  const verdicts = judge(outcome.results, plan.stores ? storeGates : gates)
  const missed = verdicts.filter(({ holds, informs }) => !holds && !informs)
  const leaks = plan.subjects.filter(({ name, ours }) => {
    const { fibers = 0, timers = 0 } = outcome.leftovers.get(name) ?? {}
    return ours && fibers + timers > 0
  })

  const text = (plan.stores ? storeReport : report)(plan, outcome, verdicts)
  console.log(text)
  if (plan.write) writePage(plan.stores ? { stores: text } : { loop: text })
  if (plan.check) console.log(`\nGates not met: ${missed.length}.`)
  say("done")
  return outcome.failures.size === 0 && leaks.length === 0 && (!plan.check || missed.length === 0)
}

try {
  process.exitCode = (await main()) ? 0 : 1
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
