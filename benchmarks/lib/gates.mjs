// The bars this library holds itself to. A gate must hold; a stretch is what to aim for.
//
// A bar compares `of` with `to` in one cell, or `of` between two cells, or is about `of` alone. `peers` stands for the fastest
// of the other libraries. Bars that `informs` do not fail a check: how far the floor is away, and how many milliseconds
// something takes, depends on Node and on the machine as much as on us.
import { peers } from "../subjects/index.mjs"

const toFloor = (cell, atMost, stretch) => ({ cell, of: "allm", to: "floor", atMost, stretch, informs: true })
const toEffect = (cell, atMost) => ({ cell, of: "allm", to: "effect", atMost })
const faster = (than, cell, atLeast, stretch) => ({ cell, of: than, to: "allm", atLeast, stretch })

// The peers gain more from Node 22 and later than Effect does.
const isOldNode = Number(process.versions.node.split(".")[0]) < 22

export const gates = [
  faster("ai-sdk", "W1 chat", 4, 8),
  toEffect("W1 chat", 0.6),
  toFloor("W1 chat", 30, 15),

  faster("ai-sdk", "W2 N=10", 2.5, 4),
  faster("ai-sdk", "W2 N=100", 2, 2.7),
  faster("ai-sdk", "W2 N=1 000", 3.5, 5),
  faster("ai-sdk", "W2 N=10 000", 5, 8),
  ...["W2 N=10", "W2 N=100", "W2 N=1 000", "W2 N=10 000"].map((cell) => toEffect(cell, 0.4)),
  { cells: ["W2 N=100", "W2 N=10 000"], of: "allm", atMost: 1.5 },
  toFloor("W2 N=10", 25, 18),
  toFloor("W2 N=100", 18, 14),
  toFloor("W2 N=1 000", 15, 10),
  toFloor("W2 N=10 000", 15, 10),

  faster("ai-sdk", "W3 T=100", 5, 8),
  faster("ai-sdk", "W3 T=1 000", 12, 20),
  ...["W3 T=10", "W3 T=100", "W3 T=1 000"].map((cell) => toEffect(cell, 0.4)),
  { cells: ["W3 T=10", "W3 T=1 000"], of: "allm", atMost: 1.4 },
  { cell: "W3 T=1 000", of: "allm", to: "wire", atMost: 0.2, stretch: 0.1 },
  ...["W3 T=10", "W3 T=100", "W3 T=1 000"].map((cell) => toFloor(cell, 20, 13)),

  faster("peers", "W4 1 per read", isOldNode ? 3 : 1.5),
  faster("peers", "W4 64 per read", 6),
  // With one delta in each turn of the event loop there is nothing to gather, and waking a fiber is dear.
  { cell: "W4 paced", of: "allm", to: "openai-agents", atMost: 2.5, stretch: 1 },
  toFloor("W4 1 per read", 5, 3),
  toFloor("W4 64 per read", 15, 10),
  toFloor("W4 paced", 12, 5),

  ...["W5 50 kB", "W5 200 kB"].map((cell) => faster("peers", cell, 3, 6)),
  { cells: ["W5 50 kB", "W5 200 kB"], of: "allm", atMost: 1.2 },
  ...["W5 50 kB", "W5 200 kB"].map((cell) => toFloor(cell, 6, 3)),

  ...["W7 chat completions", "W7 responses"].flatMap((cell) => [
    faster("ai-sdk", cell, 2, 6),
    { cell, of: "allm", to: "openai", atMost: 1.5, stretch: 0.8 },
    toFloor(cell, 3, 1.5)
  ]),
  { cell: "W7 memory", of: "allm", unit: "MB", atMost: 40, stretch: 20 },

  { cell: "W6 wall", of: "allm", to: "guarded", atMost: 8, stretch: 5 },
  faster("ai-sdk", "W6 cpu", 3, 5),
  toEffect("W6 cpu", 0.5),
  { cell: "W6 memory", of: "allm", unit: "MB", atMost: 30, stretch: 20 },
  faster("peers", "W6 first chat", 1.3),
  { cell: "W6 first chat", of: "allm", unit: "ms", atMost: 25, stretch: 15, informs: true }
]

const measured = ({ cell, cells, of, to }, results) => {
  if (cells !== undefined) return results.growth(of, ...cells)
  if (to === undefined) return results.value(of, cell)
  return of === "peers" ? results.ratioToBest(peers, to, cell) : results.ratio(of, to, cell)
}

/** Holds what was measured against every bar. What was not measured does not hold. */
export const judge = (results, bars = gates) =>
  bars.map((gate) => {
    const value = measured(gate, results)
    const meets = (bar) => (gate.atMost === undefined ? value >= bar : value <= bar)
    return {
      ...gate,
      value,
      holds: meets(gate.atMost ?? gate.atLeast),
      stretches: gate.stretch !== undefined && meets(gate.stretch)
    }
  })
