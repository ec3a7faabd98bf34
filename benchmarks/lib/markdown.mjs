/** A table with its columns aligned, as the formatter of the repository writes it. `numbers` stand on the right. */
export const table = (head, rows, { numbers = true } = {}) => {
  const isRight = (column) => numbers && column > 0
  const widths = head.map((_, column) => Math.max(3, ...[head, ...rows].map((cells) => cells[column].length)))
  const pad = (cell, column) => (isRight(column) ? cell.padStart(widths[column]) : cell.padEnd(widths[column]))
  const rule = widths.map((width, column) => (isRight(column) ? `${"-".repeat(width - 1)}:` : "-".repeat(width)))
  return [head.map(pad), rule, ...rows.map((cells) => cells.map(pad))]
    .map((cells) => `| ${cells.join(" | ")} |`)
    .join("\n")
}
