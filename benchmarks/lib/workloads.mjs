// What is measured. A workload has cells, each one column of its table; `units` is what the time of one operation is divided by.
import { sizeLabel } from "./stats.mjs"

const cell = (workload, label, params, units) => ({ id: `${workload} ${label}`, label, params, units })

export const workloads = [
  {
    id: "W1",
    title: "One turn with one tool call, then text",
    unit: "µs per chat",
    operation: "chat",
    prime: { turns: 1 },
    cells: [cell("W1", "chat", { turns: 1 }, 1)]
  },
  {
    id: "W2",
    title: "One batch of N trivial calls",
    unit: "µs per call",
    operation: "batch",
    prime: { size: 10 },
    cells: [10, 100, 1_000, 10_000].map((size) => cell("W2", `N=${sizeLabel(size)}`, { size }, size))
  },
  {
    id: "W3",
    title: "T turns with one call each, then text",
    unit: "µs per turn",
    operation: "chat",
    prime: { turns: 10 },
    cells: [10, 100, 1_000].map((turns) => cell("W3", `T=${sizeLabel(turns)}`, { turns }, turns))
  },
  {
    id: "W4",
    title: "A streamed text of 10 000 deltas: one or 64 per read, or (2 000 deltas) one per turn of the event loop",
    unit: "µs per delta",
    operation: "streamText",
    prime: { count: 500, read: 1 },
    cells: [
      cell("W4", "1 per read", { count: 10_000, read: 1 }, 10_000),
      cell("W4", "64 per read", { count: 10_000, read: 64 }, 10_000),
      cell("W4", "paced", { count: 2_000, read: 0 }, 2_000)
    ]
  },
  {
    id: "W5",
    title: "A streamed call with a long argument: 50 kB in 1 250 deltas, 200 kB in 5 000",
    unit: "µs per delta",
    operation: "streamArguments",
    prime: { bytes: 10_000, count: 250 },
    cells: [
      cell("W5", "50 kB", { bytes: 50_000, count: 1_250 }, 1_250),
      cell("W5", "200 kB", { bytes: 200_000, count: 5_000 }, 5_000)
    ]
  },
  {
    id: "W7",
    title: "A text of 10 000 deltas over HTTP, and the memory that one of 100 000 takes beyond it",
    unit: "µs per delta",
    operation: "streamHttp",
    needsServer: true,
    prime: { count: 500, protocol: "chat" },
    cells: [
      cell("W7", "chat completions", { count: 10_000, protocol: "chat" }, 10_000),
      cell("W7", "responses", { count: 10_000, protocol: "responses" }, 10_000)
    ],
    // Measured in a fresh process.
    memory: {
      id: "W7 memory",
      label: "memory grown",
      unit: "MB",
      before: { count: 10_000, protocol: "responses" },
      params: { count: 100_000, protocol: "responses" }
    }
  }
]

/** Measured in a fresh process each time, because the memory and the first run of a process are part of it. */
export const burst = {
  id: "W6",
  title: "1 000 chats at once with a tool of 10 ms, in a young process",
  chats: 1_000,
  cells: [
    { id: "W6 first chat", label: "first chat of the process", unit: "ms" },
    { id: "W6 wall", label: "all chats", unit: "ms" },
    { id: "W6 cpu", label: "CPU per chat", unit: "µs" },
    { id: "W6 memory", label: "memory grown", unit: "MB" }
  ]
}

export const ids = [...workloads.map(({ id }) => id), burst.id]
