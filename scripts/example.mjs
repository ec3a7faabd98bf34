// Runs an example: `npm run example -- 06`, by its number, its name or a part of it. What follows is handed to the example.
//
// ALLM_MODEL=provider/name puts a real model in the place of the scripted one, ALLM_BASE_URL says where, if elsewhere.
import { chosen } from "../examples/live/models.mjs"
import { examples, find, ideaOf, run, scripted } from "./examples.mjs"

const [asked, ...args] = process.argv.slice(2)

if (asked === undefined) {
  list(examples)
  console.log(
    "\nRun one with `npm run example -- 01`, or on a real model with `ALLM_MODEL=provider/name npm run example -- 01`."
  )
} else {
  const found = find(asked)
  if (found.length === 1) {
    const [name] = found
    if (chosen() !== undefined && scripted.includes(name)) {
      console.error(`${name} moves the clock by hand, and stays scripted.`)
    }
    // A terminal sends ctrl-c to both: the example ends by itself, and this one after it.
    process.on("SIGINT", () => {})
    const stop = new AbortController()
    process.on("SIGTERM", () => stop.abort())
    process.exitCode = await run(name, { args, signal: stop.signal })
  } else {
    console.error(found.length === 0 ? `There is no example ${asked}. There are:\n` : `${asked} may be one of:\n`)
    list(found.length === 0 ? examples : found, console.error)
    process.exitCode = 2
  }
}

function list(names, print = console.log) {
  const width = Math.max(...names.map((name) => name.length))
  for (const name of names) print(`${name.padEnd(width)}  ${ideaOf(name)}`)
}
