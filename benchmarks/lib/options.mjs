import { parseArgs } from "node:util"
import { names, subjects } from "../subjects/index.mjs"
import { storeSubjects } from "./store-subjects.mjs"
import { storeWorkloads } from "./store-workloads.mjs"
import { burst, ids, workloads } from "./workloads.mjs"

export const usage = `Usage: npm run bench -- [flags]

  --rounds=7            interleaved rounds, each cell is the median over them
  --quick               three short rounds after a short warm-up: a first look, not a verdict
  --only=W1,W3          only these workloads (of ${ids.join(", ")})
  --subjects=allm,...   only these subjects (of ${names.join(", ")})
  --stores              what sessions and journals cost in memory, files and databases, instead of the loop
  --check               exit with 1 when a gate is not met
  --write               write the report to docs/performance.md as well
  --help                this text`

const list = (flag, text, known) => {
  if (text === undefined) return known
  const wanted = text.split(",").map((item) => item.trim()).filter((item) => item !== "")
  const strange = wanted.filter((item) => !known.includes(item))
  if (strange.length > 0 || wanted.length === 0) {
    throw new Error(`--${flag}=${text}: write one or more of ${known.join(", ")}, separated by commas`)
  }
  return known.filter((name) => wanted.includes(name))
}

/** Reads the command line, or throws with a sentence that says what to write instead. */
export const readOptions = (argv) => {
  const { values } = parseArgs({
    args: argv,
    options: {
      rounds: { type: "string" },
      quick: { type: "boolean", default: false },
      only: { type: "string" },
      subjects: { type: "string" },
      stores: { type: "boolean", default: false },
      check: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      help: { type: "boolean", default: false }
    }
  })
  const isQuick = values.quick
  const rounds = values.rounds === undefined ? (isQuick ? 3 : 7) : Number(values.rounds)
  if (!Number.isInteger(rounds) || rounds < 1) {
    throw new Error(`--rounds=${values.rounds}: write a whole number of at least 1`)
  }
  if (values.write && (values.only ?? values.subjects) !== undefined) {
    throw new Error("--write: the page shows everything, so leave out --only and --subjects")
  }
  const all = values.stores
    ? { subjects: storeSubjects, workloads: storeWorkloads }
    : { subjects, workloads }
  const wanted = list("only", values.only, values.stores ? storeWorkloads.map(({ id }) => id) : ids)
  const chosen = list("subjects", values.subjects, values.stores ? storeSubjects.map(({ name }) => name) : names)
  return {
    help: values.help,
    check: values.check,
    write: values.write,
    stores: values.stores,
    isQuick,
    rounds,
    workloads: all.workloads.filter(({ id }) => wanted.includes(id)),
    hasBurst: wanted.includes(burst.id),
    subjects: all.subjects.filter(({ name }) => chosen.includes(name)),
    // For each cell. Effect 3 and the AI SDK need one to three seconds of a workload before their times stop falling.
    warmUpMs: isQuick ? 300 : 1_000,
    // The rest before a process's next turn is long enough for caches to go cold, so each turn starts with a few operations.
    primeMs: isQuick ? 10 : 30,
    windowMs: isQuick ? 60 : 200,
    burstRounds: Math.min(rounds, isQuick ? 1 : 5),
    burstWarmUpMs: isQuick ? 60 : 120
  }
}
