export const median = (values) => {
  if (values.length === 0) return NaN
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** Three significant digits at most: more would promise a precision that no shared machine has. */
export const short = (value) => {
  if (!Number.isFinite(value)) return "-"
  if (value >= 1_000) return sizeLabel(value.toFixed(0))
  if (value >= 100) return value.toFixed(0)
  if (value >= 10) return value.toFixed(1)
  return value.toFixed(2)
}

export const sizeLabel = (size) => String(size).replace(/\B(?=(\d{3})+$)/g, " ")
