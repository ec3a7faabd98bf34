import { median } from "./stats.mjs"

/** Keeps µs per call by subject and size, one entry per round. */
export const makeResults = () => {
  const cells = new Map()
  const cell = (name, size) => cells.get(`${name} ${size}`) ?? []

  // Neighbours in time share the machine's mood, so a ratio is taken within a round before the median is.
  const medianRatio = (above, below) =>
    median(above.map((value, round) => value / below[round]).filter((value) => Number.isFinite(value)))

  return {
    add: (name, size, usPerCall) => {
      const key = `${name} ${size}`
      cells.set(key, [...(cells.get(key) ?? []), usPerCall])
    },
    usPerCall: (name, size) => median(cell(name, size)),
    ratio: (above, below, size) => medianRatio(cell(above, size), cell(below, size)),
    growth: (name, small, large) => medianRatio(cell(name, large), cell(name, small))
  }
}
