/** The `allm` command with a home, a working directory and an environment of its own. */
import { build } from "esbuild"
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Piped from "./Piped.ts"
import * as Terminal from "./Terminal.ts"

const packageDirectory = fileURLToPath(new URL("../..", import.meta.url))
const root = join(packageDirectory, "../..")

export type Command = readonly [string, ...Array<string>]

/** As a clone runs it: from its sources, which takes seconds to start. */
export const fromSource: Command = [
  process.execPath,
  "--conditions=@allm/source",
  "--import",
  join(root, "node_modules/tsx/dist/loader.mjs"),
  join(packageDirectory, "src/bin.ts")
]

let built: Promise<Command> | undefined

/** The sources in one file, which starts in half a second. */
export const bundled = (): Promise<Command> => built ??= bundle()

const bundle = async (): Promise<Command> => {
  // The command looks for its package.json in the directory above, and for what it imports by name in those above that.
  const directory = join(packageDirectory, "node_modules/.cache/allm")
  const file = join(directory, "dist/bin.mjs")
  // Of its own until it is whole: other test files may start the last one meanwhile.
  const unfinished = join(directory, `dist/${process.pid}-${Date.now()}.mjs`)
  mkdirSync(join(directory, "dist"), { recursive: true })
  copyFileSync(join(packageDirectory, "package.json"), join(directory, "package.json"))
  await build({
    entryPoints: [join(packageDirectory, "src/bin.ts")],
    outfile: unfinished,
    bundle: true,
    platform: "node",
    target: "node20",
    format: "esm",
    conditions: ["@allm/source"],
    external: ["tsx", "tsx/*"],
    // Some dependencies are CommonJS and ask for Node's modules.
    banner: {
      js: `import { createRequire as makeRequire } from "node:module"\nconst require = makeRequire(import.meta.url)`
    },
    logLevel: "error"
  })
  renameSync(unfinished, file)
  return [process.execPath, file]
}

export interface Options extends Omit<Terminal.Options, "cwd"> {
  /** What starts the command; the bundle unless told. */
  readonly command?: Command | undefined
}

export interface World extends Disposable {
  readonly home: string
  readonly directory: string
  /** Runs the command in a terminal. */
  readonly open: (args: ReadonlyArray<string>, options?: Options) => Promise<Terminal.Terminal>
  /** Starts the command with pipes. */
  readonly start: (args: ReadonlyArray<string>, options?: Options) => Promise<Piped.Piped>
  /** Runs the command with pipes, to its end. */
  readonly run: (
    args: ReadonlyArray<string>,
    options?: Options & { readonly input?: string | undefined }
  ) => Promise<Piped.Result>
}

/** Leaving the scope deletes it. */
export const make = (): World => {
  const place = realpathSync(mkdtempSync(join(tmpdir(), "allm-cli-")))
  const home = join(place, "home")
  const directory = join(place, "work")
  mkdirSync(directory)
  const prepare = async (args: ReadonlyArray<string>, { command, env, ...options }: Options) => ({
    command: [...command ?? await bundled(), ...args] as const satisfies Command,
    options: {
      ...options,
      cwd: directory,
      // Nothing of the person who runs the tests: no keys, no colours, no home.
      env: { PATH: process.env["PATH"] ?? "", LANG: "C.UTF-8", TZ: "UTC", HOME: place, ALLM_HOME: home, ...env }
    }
  })
  return {
    home,
    directory,
    open: async (args, options = {}) => {
      const prepared = await prepare(args, options)
      return Terminal.open(prepared.command, prepared.options)
    },
    start: async (args, options = {}) => {
      const prepared = await prepare(args, options)
      return Piped.start(prepared.command, prepared.options)
    },
    run: async (args, { input, ...options } = {}) => {
      const prepared = await prepare(args, options)
      return await Piped.run(prepared.command, { ...prepared.options, input })
    },
    [Symbol.dispose]: () => rmSync(place, { recursive: true, force: true })
  }
}
