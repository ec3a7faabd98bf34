// Programs in TypeScript, translated once for all of them. Starting each through tsx translates the packages anew for every one
// of them, which takes longer than running it.
import { build } from "esbuild"
import { basename, join } from "node:path"

/**
 * Translates the programs into a directory, which has to be below the root of the repository.
 *
 * @param {ReadonlyArray<string>} files
 * @param {string} directory
 */
export const translate = (files, directory) =>
  build({
    entryPoints: [...files],
    outdir: directory,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20",
    conditions: ["@allm/source"],
    logLevel: "error",
    plugins: [{
      // Our own packages from their source, and Effect with them, whose many modules take long to load one by one. Those of
      // others stay outside.
      name: "others stay outside",
      setup: ({ onResolve }) =>
        onResolve(
          { filter: /^[^./]/ },
          ({ path }) => /^(effect$|effect\/|@effect\/|@allm\/)/.test(path) ? undefined : { external: true }
        )
    }]
  })

/**
 * The program that `translate` made of a file.
 *
 * @param {string} file
 * @param {string} directory
 */
export const programOf = (file, directory) => join(directory, basename(file).replace(/\.ts$/, ".mjs"))
