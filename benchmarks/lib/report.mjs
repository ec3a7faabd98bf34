import { short, sizeLabel, table } from "./stats.mjs"

const times = (value) => (Number.isFinite(value) ? `${short(value)}x` : "-")

/** The main table: a row per subject, ratios listed in the order of the sizes. */
export const resultTable = ({ subjects, sizes }, { results, failures }) => {
  const across = (ratio) => sizes.map((size) => times(ratio(size))).join(" / ")
  const head = [
    "subject",
    ...sizes.map((size) => `N=${sizeLabel(size)} µs`),
    "x promise-all",
    "x effect-foreach",
    "vs ai-sdk"
  ]
  const rows = subjects.filter(({ name }) => !failures.has(name)).map(({ name }) => [
    name,
    ...sizes.map((size) => short(results.usPerCall(name, size))),
    across((size) => results.ratio(name, "promise-all", size)),
    across((size) => results.ratio(name, "effect-foreach", size)),
    across((size) => results.ratio("ai-sdk", name, size))
  ])
  return table(head, rows)
}

const verdict = ({ measured, holds, stretches, informs }) => {
  if (!Number.isFinite(measured)) return "not measured"
  if (stretches) return "stretch met"
  if (holds) return "met"
  return informs ? "above" : "NOT MET"
}

export const gateTable = (verdicts) =>
  table(
    ["gate", "N", "measured", "gate", "stretch", "verdict"],
    verdicts.map((row) => [
      row.informs ? `${row.what} (informs)` : row.what,
      row.size === "both" ? "-" : sizeLabel(row.size),
      short(row.measured),
      `${row.limit} ${row.gate}`,
      row.stretch === undefined ? "-" : `${row.limit} ${row.stretch}`,
      verdict(row)
    ])
  )

export const leftoverLine = ({ name }, { timers, fibers }) =>
  `- ${name} left ${timers} timers and ${fibers} fibers behind${timers + fibers === 0 ? "" : ": LEAK"}`
