// `@allm/source` makes Node read the packages' TypeScript sources, so that the benchmark needs no build.
const fromSource = ["--conditions=@allm/source", "--import=./lib/typescript.mjs"]

/** In the order of the table. `ours` are held to the gates and must leave no timer and no fiber behind. */
export const subjects = [
  { name: "promise-all" },
  { name: "guarded" },
  { name: "effect-foreach" },
  { name: "ai-sdk" },
  { name: "allm", ours: true, nodeOptions: fromSource },
  { name: "allm-effect", ours: true, nodeOptions: fromSource },
  { name: "allm-stream", ours: true, nodeOptions: fromSource }
]

export const names = subjects.map(({ name }) => name)
