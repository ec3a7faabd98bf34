// The stores' part of the page.
import { cpus } from "node:os"
import { versionOf } from "./install.mjs"
import { table } from "./markdown.mjs"
import { gatePart, rowPart, times } from "./report.mjs"
import { short } from "./stats.mjs"

const readMe =
  `Each cell says how many times as long as the store named above the table it took, and then its time. The last
column says how much longer the last cell took than the first: what does not depend on the history, or on the number of
calls, stays near 1. Disks differ more than anything else here: a flush takes from 50 µs to 10 ms.`

const workloadPart = ({ subjects }, { failures, results }) => ({ cells, id, title, to, unit }) => {
  const rows = subjects.filter(({ name }) =>
    !failures.has(name) && cells.some((cell) => Number.isFinite(results.value(name, cell.id)))
  )
  const shown = (name, cell) => {
    const value = results.value(name, cell.id)
    return Number.isFinite(value) ? `${times(results.ratio(name, to, cell.id))}, ${short(value)} µs` : "-"
  }
  const [first, last] = [cells[0], cells[cells.length - 1]]
  const rendered = table(
    ["store", ...cells.map(({ label }) => label), `${last.label} / ${first.label}`],
    rows.map(({ name }) => [
      name,
      ...cells.map((cell) => shown(name, cell)),
      times(results.growth(name, first.id, last.id))
    ])
  )
  return `### ${id}: ${title}\n\nCompared with ${to}, in ${unit}.\n\n${rendered}`
}

const surroundings = ({ isQuick, rounds }, { foreignCores }) => {
  const packages = ["effect", "@effect/sql-libsql", "@effect/sql-pg"].map((name) => `${name} ${versionOf(name)}`)
  const machine = `${cpus().length} cores (${cpus()[0]?.model.trim() ?? "unknown"})`
  const length = isQuick ? `${rounds} short rounds, a first look and not a verdict` : `${rounds} rounds`
  return `Written by \`npm run bench -- --stores --write\`. Node ${process.versions.node}, ${packages.join(", ")};
${machine}; ${length}; other processes used ${foreignCores.toFixed(1)} cores meanwhile.`
}

export const storeReport = (plan, outcome, verdicts) => {
  const told = verdicts.filter(({ value }) => plan.check || Number.isFinite(value))
  return [
    "## Stores",
    surroundings(plan, outcome),
    readMe,
    rowPart(plan, "###"),
    ...plan.workloads.map(workloadPart(plan, outcome)),
    ...(told.length > 0 ? [gatePart(told, "###")] : []),
    ...(outcome.failures.size > 0
      ? [`### Notes\n\n${Array.from(outcome.failures, ([name, message]) => `- ${name} failed: ${message}`).join("\n")}`]
      : [])
  ].join("\n\n")
}
