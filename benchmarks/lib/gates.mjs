// The bars this library holds itself to. A gate must hold; a stretch is what to aim for.
// `limit` says on which side of the bar the measured value has to be.

const perSize = {
  10: { floor: [25, 18], peer: [2.5, 4] },
  100: { floor: [18, 14], peer: [2, 2.7] },
  1_000: { floor: [15, 10], peer: [3.5, 5] },
  10_000: { floor: [15, 10], peer: [5, 8] }
}

const atMost = "at most"
const atLeast = "at least"

export const gates = [
  ...Object.keys(perSize).map((size) => ({
    what: "allm time / effect-foreach time",
    size,
    limit: atMost,
    gate: 0.4,
    value: (results) => results.ratio("allm", "effect-foreach", size)
  })),
  ...Object.entries(perSize).map(([size, { peer: [gate, stretch] }]) => ({
    what: "ai-sdk time / allm time",
    size,
    limit: atLeast,
    gate,
    stretch,
    value: (results) => results.ratio("ai-sdk", "allm", size)
  })),
  {
    what: "allm per call, N=10 000 / N=100",
    size: "both",
    limit: atMost,
    gate: 1.5,
    value: (results) => results.growth("allm", 100, 10_000)
  },
  // How far above the floor depends on the Node version as much as on us, so these inform and do not fail a check.
  ...Object.entries(perSize).map(([size, { floor: [gate, stretch] }]) => ({
    what: "allm time / promise-all time",
    size,
    limit: atMost,
    gate,
    stretch,
    informs: true,
    value: (results) => results.ratio("allm", "promise-all", size)
  }))
]

const meets = (limit, value, bar) => (limit === atMost ? value <= bar : value >= bar)

/** Holds the measured ratios against every bar. What was not measured does not hold. */
export const judge = (results) =>
  gates.map(({ value, ...gate }) => {
    const measured = value(results)
    return {
      ...gate,
      measured,
      holds: meets(gate.limit, measured, gate.gate),
      stretches: gate.stretch === undefined ? undefined : meets(gate.limit, measured, gate.stretch)
    }
  })
