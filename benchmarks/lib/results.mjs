import { median } from "./stats.mjs"

/** Keeps what was measured, by subject and cell, one entry per round. */
export const makeResults = () => {
  const cells = new Map()
  const values = (name, cell) => cells.get(`${name} ${cell}`) ?? []

  // Neighbours in time share the machine's mood, so a ratio is taken within a round before the median is.
  const medianRatio = (above, below) =>
    median(above.map((value, round) => value / below[round]).filter((value) => Number.isFinite(value)))
  const ratio = (above, below, cell) => medianRatio(values(above, cell), values(below, cell))

  return {
    add: (name, cell, value) => {
      cells.set(`${name} ${cell}`, [...values(name, cell), value])
    },
    value: (name, cell) => median(values(name, cell)),
    ratio,
    /** To the fastest of several, as the ratios say. */
    ratioToBest: (names, below, cell) => {
      const known = names.map((name) => ratio(name, below, cell)).filter((value) => Number.isFinite(value))
      return known.length === 0 ? NaN : Math.min(...known)
    },
    growth: (name, small, large) => medianRatio(values(name, large), values(name, small))
  }
}
