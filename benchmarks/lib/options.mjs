import { parseArgs } from "node:util"
import { names } from "../subjects/index.mjs"

export const sizes = [10, 100, 1_000, 10_000]

export const usage = `Usage: npm run bench -- [flags]

  --rounds=7            interleaved rounds, each cell is the median over them
  --quick               three short rounds after a short warm-up: a first look, not a verdict
  --only=100,1000       only these batch sizes (of ${sizes.join(", ")})
  --subjects=allm,...   only these subjects (of ${names.join(", ")})
  --check               exit with 1 when a gate is not met
  --help                this text`

const list = (flag, text, known) => {
  if (text === undefined) return known
  const wanted = text.split(",").map((item) => item.trim()).filter((item) => item !== "")
  const strange = wanted.filter((item) => !known.some((name) => String(name) === item))
  if (strange.length > 0 || wanted.length === 0) {
    throw new Error(`--${flag}=${text}: write one or more of ${known.join(", ")}, separated by commas`)
  }
  return known.filter((name) => wanted.includes(String(name)))
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
      check: { type: "boolean", default: false },
      help: { type: "boolean", default: false }
    }
  })
  const rounds = values.rounds === undefined ? (values.quick ? 3 : 7) : Number(values.rounds)
  if (!Number.isInteger(rounds) || rounds < 1) {
    throw new Error(`--rounds=${values.rounds}: write a whole number of at least 1`)
  }
  return {
    help: values.help,
    check: values.check,
    rounds,
    sizes: list("only", values.only, sizes),
    subjects: list("subjects", values.subjects, names),
    // Effect 3 and the AI SDK need one to three seconds before their times stop falling.
    warmUpMs: values.quick ? 800 : 2_500,
    // The rest before a process's next turn is long enough for caches to go cold, so each turn starts with a few batches.
    primeMs: values.quick ? 10 : 30,
    windowMs: values.quick ? 60 : 200
  }
}
