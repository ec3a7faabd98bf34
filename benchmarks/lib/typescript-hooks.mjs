import { transformSync } from "amaro"
import { readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"

// The packages say under this condition where their sources are, so that no build is needed.
const condition = "@allm/source"

export const resolve = (specifier, context, nextResolve) =>
  nextResolve(specifier, { ...context, conditions: [condition, ...context.conditions] })

export const load = async (url, context, nextLoad) => {
  if (!url.startsWith("file:") || !url.endsWith(".ts")) return nextLoad(url, context)
  const source = await readFile(fileURLToPath(url), "utf8")
  return { format: "module", shortCircuit: true, source: transformSync(source, { mode: "strip-only" }).code }
}
