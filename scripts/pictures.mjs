// Draws the pictures of README and docs from the real program: `node scripts/pictures.mjs` writes docs/pictures/*.svg.
//
// Each is the screen of a terminal at a moment that is waited for, so that only times and ids differ from run to run.
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { tsImport } from "tsx/esm/api"

const root = fileURLToPath(new URL("..", import.meta.url))
const directory = join(root, "docs/pictures")
const load = (name) => tsImport(join(root, "packages/cli/test/terminal", name), import.meta.url)
const { make } = await load("World.ts")
const { ready, sessionIn } = await load("screens.ts")
const { svg } = await load("picture.ts")

// How many columns a page has room for.
const columns = 100

const draw = (name, title, terminal) => {
  const cells = terminal.cells()
  writeFileSync(join(directory, `${name}.svg`), svg(cells, { title, columns: cells[0].length }))
  console.log(`docs/pictures/${name}.svg`)
}

/** A picture of a whole command, which ends by itself. */
const drawCommand = async (world, name, args, size) => {
  const terminal = await world.open(args, size)
  await terminal.exit
  draw(name, `allm ${args.join(" ")}`, terminal)
  await terminal[Symbol.asyncDispose]()
}

mkdirSync(directory, { recursive: true })
const world = make()
writeFileSync(join(world.directory, "README.md"), "# A project\n\nIt has a page.\n")

try {
  // What `npm start` shows: while tools run, and when the answer is there.
  const first = await world.open(["chat"], { columns, rows: 40 })
  await first.until(/█ +\d of 6|█░+ 3 of 6/)
  draw("chat-running", "npm start", first)
  await first.until(ready)
  draw("chat-answer", "npm start", first)
  const session = sessionIn(first.history())
  first.key("ctrl-d")
  await first.exit
  await first[Symbol.asyncDispose]()

  const second = await world.open(["chat", "Write a note that says hello"], { columns, rows: 40 })
  await second.until(/run it\?[^\n]*$/)
  second.type("y")
  await second.until(/run it\?[^\n]*› y$/)
  draw("chat-approval", "allm chat", second)
  await second[Symbol.asyncDispose]()

  const narrow = await world.open(["chat", "What time is it in Oslo? Try the slow, flaky and broken tool."], {
    columns: 40,
    rows: 40
  })
  await narrow.until(/flaky 1\.\d s/)
  draw("chat-narrow", "allm chat", narrow)
  await narrow[Symbol.asyncDispose]()

  await drawCommand(world, "replay", ["replay", session], { columns, rows: 40 })
  await drawCommand(world, "sessions", ["sessions"], { columns, rows: 20 })
} finally {
  world[Symbol.dispose]()
}
