// What is measured of stores. A session has a history; a turn adds a question and an answer of 200 characters each.
import { sizeLabel } from "./stats.mjs"

const histories = [10, 100, 1_000]

const cell = (workload, label, params, units = 1) => ({ id: `${workload} ${label}`, label, params, units })

const byHistory = (id, title, operation) => ({
  id,
  title,
  unit: "µs per turn",
  to: "memory",
  operation,
  prime: { history: histories[0] },
  cells: histories.map((history) => cell(id, `H=${sizeLabel(history)}`, { history }))
})

export const storeWorkloads = [
  byHistory("S1", "Saving a turn of a session that has H messages", "save"),
  byHistory("S2", "Loading a session of H messages, by a process that has seen it", "loadAgain"),
  { ...byHistory("S3", "Loading a session of H messages for the first time in a process", "loadFirst"), to: "files" },
  {
    id: "J1",
    title: "A batch of N trivial calls that are noted before and after",
    unit: "µs per call",
    to: "none",
    operation: "journaled",
    prime: { size: 1 },
    cells: [1, 10, 100].map((size) => cell("J1", `N=${sizeLabel(size)}`, { size }, size))
  }
]

// Memory and files write whole sessions, so a turn costs more the longer they are. A database must not let it.
export const storeGates = [
  ...["sqlite", "postgres"].map((of) => ({ cells: ["S1 H=10", "S1 H=1 000"], of, atMost: 1.5, stretch: 1.2 })),
  { cell: "J1 N=10", of: "memory", to: "none", atMost: 20, informs: true }
]
