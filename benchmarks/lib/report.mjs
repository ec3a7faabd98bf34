// The report as markdown. A time never stands alone: it says little without what the others took in the same minute.
import { cpus } from "node:os"
import { versionOf } from "./install.mjs"
import { table } from "./markdown.mjs"
import { short } from "./stats.mjs"
import { burst, workloads } from "./workloads.mjs"

export const times = (value) => (Number.isFinite(value) ? `${short(value)}x` : "-")

const readMe =
  `Each cell says how many times the floor's time a subject took, and then its time. \`x effect\` compares with the loop on bare Effect
(less is better), \`ai-sdk takes\` says how much longer the AI SDK took (more is better), both in the order of the columns.
Ratios are taken between neighbours in time, and are medians over the rounds; times alone change twofold from hour to hour.`

/** A row per subject that took part, a column per cell. */
const cellTable = ({ subjects }, { failures, results }, cells, unitOf) => {
  const rows = subjects.filter(({ name }) =>
    !failures.has(name) && cells.some(({ id }) => Number.isFinite(results.value(name, id)))
  )
  const across = (ratio) => cells.map(({ id }) => times(ratio(id))).join(" / ")
  const shown = (name, cell) => {
    const value = results.value(name, cell.id)
    if (!Number.isFinite(value)) return "-"
    return `${times(results.ratio(name, "floor", cell.id))}, ${short(value)} ${unitOf(cell)}`
  }
  return table(
    ["subject", ...cells.map(({ label }) => label), "x effect", "ai-sdk takes"],
    rows.map(({ name }) => [
      name,
      ...cells.map((cell) => shown(name, cell)),
      across((id) => results.ratio(name, "effect", id)),
      across((id) => results.ratio("ai-sdk", name, id))
    ])
  )
}

const workloadPart = (plan, outcome) => ({ cells, id, memory = [], title, unit }) => {
  const shown = cellTable(plan, outcome, cells.concat(memory), (cell) => cell.unit ?? unit.split(" ")[0])
  return `## ${id}: ${title}\n\n${shown}\n\nTimes are in ${unit}.`
}

const burstPart = (plan, outcome) =>
  `## ${burst.id}: ${burst.title}\n\n${cellTable(plan, outcome, burst.cells, ({ unit }) => unit)}`

const verdict = ({ holds, informs, stretches, value }) => {
  if (!Number.isFinite(value)) return "not measured"
  if (stretches) return "stretch met"
  if (holds) return "met"
  return informs ? "missed" : "NOT MET"
}

const nameOf = (subject) => (subject === "peers" ? "fastest peer" : subject)

const barOf = ({ cell, cells, of, to, unit }) => {
  if (cells !== undefined) return `${of} ${cells[1]} / ${cells[0]}`
  return to === undefined ? `${of} ${cell}, ${unit}` : `${cell}: ${nameOf(of)} / ${nameOf(to)}`
}

export const gatePart = (verdicts, level = "##") => {
  const rows = verdicts.map((gate) => {
    const side = gate.atMost === undefined ? "at least" : "at most"
    return [
      gate.informs ? `${barOf(gate)} (informs)` : barOf(gate),
      short(gate.value),
      `${side} ${gate.atMost ?? gate.atLeast}`,
      gate.stretch === undefined ? "-" : `${side} ${gate.stretch}`,
      verdict(gate)
    ]
  })
  return `${level} Gates\n\n${table(["gate", "measured", "gate", "stretch", "verdict"], rows)}`
}

const leftoverLine = (name, { fibers, timers }) =>
  `- ${name} left ${timers} timers and ${fibers} fibers behind${timers + fibers === 0 ? "" : ": LEAK"}`

export const rowPart = ({ subjects }, level = "##") =>
  `${level} Rows\n\n${
    table(["subject", "what it is"], subjects.map(({ name, what }) => [name, what]), { numbers: false })
  }`

const surroundings = ({ isQuick, rounds }, { foreignCores }) => {
  const packages = ["effect", "ai", "@ai-sdk/openai", "@effect/ai", "@openai/agents-core", "openai"].map((name) =>
    `${name} ${versionOf(name)}`
  )
  const machine = `${cpus().length} cores (${cpus()[0]?.model.trim() ?? "unknown"})`
  const length = isQuick ? `${rounds} short rounds, a first look and not a verdict` : `${rounds} rounds`
  return `Node ${process.versions.node}, ${packages.join(", ")}; ${machine}; ${length};
other processes used ${foreignCores.toFixed(1)} cores meanwhile.`
}

/** Everything that was measured. Bars are told when they are measured, or when they are to be checked. */
export const report = (plan, outcome, verdicts) => {
  const told = verdicts.filter(({ value }) => plan.check || Number.isFinite(value))
  const notes = [
    ...plan.subjects
      .filter(({ name, ours }) => ours && outcome.leftovers.has(name))
      .map(({ name }) => leftoverLine(name, outcome.leftovers.get(name))),
    ...Array.from(outcome.failures, ([name, message]) => `- ${name} failed: ${message}`)
  ]
  return [
    surroundings(plan, outcome),
    readMe,
    rowPart(plan),
    ...workloads.filter(({ id }) => plan.workloads.some((workload) => workload.id === id)).map(
      workloadPart(plan, outcome)
    ),
    ...(plan.hasBurst ? [burstPart(plan, outcome)] : []),
    ...(told.length > 0 ? [gatePart(told)] : []),
    ...(notes.length > 0 ? [`## Notes\n\n${notes.join("\n")}`] : [])
  ].join("\n\n")
}
